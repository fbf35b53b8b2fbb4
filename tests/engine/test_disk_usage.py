"""SHOW DISK_USAGE: the bytes of databases' files, per partition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from engine.embedded_engine import Engine

from saros_engine.base.errors import SemanticError

#: The length of a partition's slice of time, in ms.
WEEK = 7 * 24 * 3600 * 1000
HEADER = ["Database", "DataNodeId", "RegionId", "TimePartition", "SizeInBytes"]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = Engine(tmp_path_factory.mktemp("usage"))
    for text in (
        "create database root.a.one",
        "insert into root.a.one.d(time, x) values (1, 1)",
        "insert into root.a.one.d(time, x) values (-1, 1)",
        f"insert into root.b.d(time, x) values ({2 * WEEK}, 1)",
        "flush",
    ):
        opened.ask(text)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("root.**", [("root.a.one", -1), ("root.a.one", 0), ("root.b", 2)]),
        ("root.a.**", [("root.a.one", -1), ("root.a.one", 0)]),
        ("root.a.one", [("root.a.one", -1), ("root.a.one", 0)]),
        ("root.*.**", [("root.a.one", -1), ("root.a.one", 0), ("root.b", 2)]),
        ("root.b.**", [("root.b", 2)]),
        ("root.a", []),
        ("root.nothing.**", []),
        ("root.** limit 1", [("root.a.one", -1)]),
        ("root.** order by TimePartition desc limit 2 offset 1", [("root.a.one", 0), ("root.a.one", -1)]),
        ("root.** where TimePartition < 0 or DataNodeId >= 2", [("root.a.one", -1)]),
        ("root.** where database = 'root.b' and sizeinbytes > 0", [("root.b", 2)]),
    ],
)
def test_partitions_of_databases(engine: Engine, rest: str, expected: list[tuple[str, int]]) -> None:
    header, rows = engine.ask(f"show disk_usage from {rest}")
    assert (HEADER, expected) == (header, [(row[0], row[3]) for row in rows])


def test_the_bytes_are_those_of_the_files_where_they_lie(engine: Engine) -> None:
    sizes = {(row[0], row[1]): row[8] for row in engine.ask("show files")[1]}  # one file in each partition
    found = engine.ask("show disk_usage from root.**")[1]
    assert sizes == {(row[0], row[3]): row[4] for row in found}
    ((region, *_),) = engine.ask("show data regions")[1]
    assert {(1, region)} == {(row[1], row[2]) for row in found}


def test_what_is_in_memory_takes_no_disk(engine: Engine) -> None:
    engine.ask("insert into root.c.d(time, x) values (1, 1)")
    try:
        assert [["root.c", 1, 1, 0, 0]] == engine.ask("show disk_usage from root.c.**")[1]
    finally:
        engine.ask("delete database root.c")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("root.b.d.**", r"a part of root\.b"),
        ("root.b.*", r"a part of root\.b"),
        ("root.**.d", r"a part of root\.a\.one"),
        ("root.** where x > 1", "no column x: its columns are database, datanodeid"),
        ("root.** order by x", "no column x"),
    ],
)
def test_what_is_refused(engine: Engine, rest: str, message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        engine.ask(f"show disk_usage from {rest}")
