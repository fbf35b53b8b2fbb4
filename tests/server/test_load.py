"""LOAD statements, TTL, and SHOW statements about the disk, executed in sessions."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saros
from saros_server.api.session import EmbeddedSession, open_session
from saros_shell.transfer import exporter
from saros_storage.base.errors import UserMistake

OPTIONS = {"durability": "os"}


def connect(folder: Path) -> saros.Connection:
    return saros.connect(str(folder), options=OPTIONS, timestamps="epoch")


def rows(connection: saros.Connection, text: str) -> list[tuple[Any, ...]]:
    return connection.execute(text).fetchall()


def export(source: Path, target: Path, pattern: str = "root.**") -> Path:
    assert 0 == exporter.main([pattern, "-d", str(source), "-o", str(target), "--quiet"])
    return target


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    """Create aligned and other devices of many types; some rows are late, and the data spans several partitions."""
    source = np.random.default_rng(3)
    times = np.arange(0, 3_000_000_000, 1_000_000, np.int64)
    count = len(times)
    with connect(tmp_path / "plant") as connection:
        for late in (False, True):
            shift = 500_000 if late else 0
            columns = {
                "d": source.normal(size=count).round(2),
                "f": source.normal(size=count).astype(np.float32),
                "i": source.integers(-1000, 1000, count).astype(np.int32),
                "l": np.cumsum(source.integers(0, 9, count)),
                "b": source.random(count) > 0.5,
                "t": [f"text {n % 17}" for n in range(count)],
            }
            connection.insert("root.p.line1.m1", times + shift, columns)
            connection.insert("root.p.line1.w", times + shift, columns, aligned=True)
            connection.execute("flush")
        connection.execute("insert into root.p.line1.w(time, d, extra) values (7, null, 1.5)")
        connection.execute("delete from root.p.line1.m1.i where time < 1000000000")
    return tmp_path / "plant"


QUERIES = (
    "select * from root.p.** where time < 50000000",
    "select * from root.p.** order by time desc limit 20",
    "select count(*), sum(i), avg(i), min_value(l), max_value(f), last_value(t) from root.p.line1.*",
    "select count(d), max_value(d) from root.p.line1.* group by ([0, 3000000000), 100000000ms)",
    "select last * from root.p.**",
    "show timeseries root.p.**",
)


def answers(folder: Path) -> list[list[tuple[Any, ...]]]:
    with connect(folder) as connection:
        return [rows(connection, text) for text in QUERIES]


@pytest.mark.slow
def test_an_exported_file_loaded_into_an_empty_folder_gives_the_same_answers(plant: Path, tmp_path: Path) -> None:
    file = export(plant, tmp_path / "plant.tsfile")
    if importlib.util.find_spec("tsfile") is not None:
        from storage.test_tsfile_interop import dumped

        found = dumped(tmp_path, str(file))
        with connect(plant) as connection:
            for name in ("d", "i", "t", "b"):
                expected = rows(connection, f"select {name} from root.p.line1.m1")
                assert expected == [tuple(row) for row in found["root.p.line1.m1"][name]]
    with connect(tmp_path / "again") as connection:
        connection.execute(f"load '{file}' sglevel=1")
    assert answers(plant) == answers(tmp_path / "again")
    with connect(tmp_path / "again") as connection:
        connection.execute("flush")
    assert answers(plant) == answers(tmp_path / "again")


def test_a_folder_is_loaded_in_order_and_bad_files_are_named(tmp_path: Path) -> None:
    files = tmp_path / "files"
    (files / "sub").mkdir(parents=True)
    for number, name in enumerate(("100-1-0-0", "20-2-0-0", "sub/1-1-0-0")):
        with connect(tmp_path / str(number)) as connection:
            connection.execute(f"insert into root.a.d(time, x, y{number}) values (1, {number}, 1)")
        export(tmp_path / str(number), files / f"{name}.tsfile")
    (files / "bad.tsfile").write_bytes(b"TsFile no more")
    (files / "note.txt").write_text("not looked at")
    with connect(tmp_path / "data") as connection:
        with pytest.raises(saros.Error, match=r"1 of 4 files could not be loaded.*bad\.tsfile") as raised:
            connection.execute(f"load '{files}' onSuccess=delete")
        assert (2010, True) == (raised.value.code, "a file to LOAD was only refused" in raised.value.advice)
        assert [(1, 2.0)] == rows(connection, "select x from root.a.d")
        assert 4 == len(rows(connection, "show timeseries root.a.d.**"))
        with pytest.raises(saros.Error) as raised:
            connection.execute(f"load '{files / 'sub'}'")
        assert 2051 == raised.value.code
    assert ["bad.tsfile", "note.txt", "sub"] == sorted(os.listdir(files))


# --- a server's clients


def served(folder: Path, load_folders: str) -> EmbeddedSession:
    options = {**OPTIONS, "load_folders": load_folders}
    return open_session(str(folder), time_zone=None, options=options, files=False)


def test_a_server_reads_only_below_its_load_folders(plant: Path, tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "allowed-not"
    for folder in (allowed, other):
        folder.mkdir()
        export(plant, folder / "f.tsfile", "root.p.line1.m1.d")
    (allowed / "link.tsfile").symlink_to(other / "f.tsfile")
    (allowed / "way").symlink_to(other)
    session = served(tmp_path / "data", f"{tmp_path / 'none'}:{allowed}")
    try:
        for path in (
            "allowed-not/f.tsfile",
            "allowed/../allowed-not",
            "allowed/link.tsfile",
            "allowed/way",
            "",
            "allowed",
        ):
            with pytest.raises(UserMistake) as raised:
                session.execute(f"load '{tmp_path}/{path}'", (), None)
            assert 2050 == raised.value.code
        (allowed / "link.tsfile").unlink()
        session.execute(f"load '{allowed}/f.tsfile'", (), None)
    finally:
        session.close()
    session = served(tmp_path / "data2", "")
    try:
        with pytest.raises(UserMistake, match="outside the folders"):
            session.execute(f"load '{allowed}/f.tsfile'", (), None)
    finally:
        session.close()


# --- TTL


def codes(connection: saros.Connection, *texts: str) -> list[int | None]:
    found: list[int | None] = []
    for text in texts:
        try:
            connection.execute(text)
            found.append(None)
        except saros.Error as error:
            found.append(error.code)
    return found


def test_ttl_of_a_database_hides_refuses_and_is_forgotten_with_it(tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000
    with connect(tmp_path) as connection:
        connection.execute(f"insert into root.a.d(time, x) values (5, 1), ({now}, 2)")
        connection.execute(f"insert into root.b.d(time, x) values (5, 1), ({now}, 2)")
        connection.execute("set ttl to root.a 3600000")
        assert [("root.**", "INF"), ("root.a", "3600000"), ("root.a.**", "3600000")] == rows(connection, "show all ttl")
        assert [("root.a.d", "3600000"), ("root.b.d", "INF")] == [
            (row[0], row[-1]) for row in rows(connection, "show devices")
        ]
        assert [(1, 2)] == rows(connection, "select count(a.d.x), count(b.d.x) from root")
        with pytest.raises(saros.DataError, match="1 of 2 rows") as raised:
            connection.execute(f"insert into root.a.d(time, x, z) values (6, 3, 3), ({now + 1}, 4, 4)")
        assert 607 == raised.value.code
        with pytest.raises(saros.DataError, match="2 of 3 rows"):
            connection.insert("root.a.d", [1, 2, now + 2], {"x": [1.0, 2.0, 5.0]})
        assert [607] == codes(connection, "insert into root.a.e(time, x) values (1, 1)")
        assert [(now, 2.0), (now + 1, 4.0), (now + 2, 5.0)] == rows(connection, "select x from root.a.d")
        assert [] == rows(connection, "show timeseries root.a.e.*")
        connection.execute("drop database root.a")
        assert [("root.**", "INF")] == rows(connection, "show all ttl")


def test_rules_come_and_go_and_mistakes_are_told(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        connection.execute("set ttl to root.a.** 100")
        connection.execute("set ttl to root.a.b.** 200")
        connection.execute("set ttl to root.a.b.d INF")
        assert [("root.a.b.**", "200"), ("root.a.b.d", "INF")] == rows(connection, "show ttl on root.a.b.**")
        assert [("root.a.b.d", "INF")] == rows(connection, "show ttl on root.a.b.d")
        connection.execute("unset ttl from root.a.b.**")
        assert [508] == codes(connection, "unset ttl to root.nothing")
        assert ["root.**", "root.a.**", "root.a.b.d"] == [row[0] for row in rows(connection, "show all ttl")]
        assert [303, 701] == codes(connection, "set ttl to root.*.a 5", "set ttl to root.a 99999999999999999")


# --- SHOW


def test_partitions_and_files_show(tmp_path: Path) -> None:
    week = 7 * 24 * 3_600_000
    with connect(tmp_path) as connection:
        connection.execute(f"insert into root.a.d(time, x) values (5, 1), ({week}, 2)")
        connection.execute("insert into root.b.d(time, x) values (5, 1)")
        connection.execute("flush root.a")
        found = {(row[0], row[1]): row for row in rows(connection, "show partitions")}
        assert [("root.a", 0), ("root.a", 1), ("root.b", 0)] == list(found)
        assert (1, 0) == found["root.a", 1][4:6]
        assert found["root.a", 0][6] > 0
        assert (0, 0, 0) == found["root.b", 0][4:7]
        assert found["root.b", 0][7] > 0
        assert found["root.a", 1][2].startswith("1970-01-08")
        files = rows(connection, "show files of database root.a")
        assert ["Sequence", "Sequence"] == [row[3] for row in files]
        assert [] == rows(connection, "show files of root.b")
    (path,) = tmp_path.glob("groups/0/root.a/1/seq/*.tsfile")
    path.write_bytes(path.read_bytes()[:-3])
    with connect(tmp_path) as connection:
        (damaged,) = [row for row in rows(connection, "show files") if row[3] == "SetAside"]
        assert path.name == damaged[2]
        assert "bytes" in damaged[9]
        assert 1 == next(row[9] for row in rows(connection, "show partitions of root.a") if row[1] == 1)


@pytest.mark.parametrize(
    ("view", "problem"),
    [
        ("root.p.d.x", "root.p.d.x is a view"),
        (
            "root.p.d",
            "root.p.d is a view: only views of one series are written, and no series is created there or below",
        ),
    ],
)
def test_a_file_whose_series_would_be_where_a_view_is_is_refused(tmp_path: Path, view: str, problem: str) -> None:
    with connect(tmp_path / "source") as connection:
        connection.execute("insert into root.p.d(time, x, y) values (1, 2, 3)")
    file = export(tmp_path / "source", tmp_path / "file.tsfile")
    with connect(tmp_path / "target") as connection:
        connection.execute("insert into root.q.d(time, z) values (1, 7)")
        connection.execute(f"create view {view} as root.q.d.z")
        with pytest.raises(saros.IntegrityError, match=problem) as refusal:
            connection.execute(f"load '{file}'")
        assert 503 == refusal.value.code
        assert [("root.q.d.z",)] == [row[:1] for row in rows(connection, "show timeseries where viewtype = 'BASE'")]
        connection.execute(f"drop view {view}")
        connection.execute(f"load '{file}'")
        assert [(1, 2.0, 3.0)] == rows(connection, "select x, y from root.p.d")
