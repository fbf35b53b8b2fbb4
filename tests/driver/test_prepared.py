"""Statements that are executed repeatedly with different values, embedded and through a server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import saros
from saros_server.server import Server
from saros_storage.base.clock import SystemClock


@pytest.fixture(params=["embedded", "server"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[saros.Connection]:
    if request.param == "embedded":
        with saros.connect(str(tmp_path), timestamps="epoch") as opened:
            yield opened
        return
    server = Server(str(tmp_path), "127.0.0.1", 0, clock=SystemClock())
    server.start()
    with saros.connect(f"saros://{server.address}", timestamps="epoch") as opened:
        yield opened
    server.stop()


def test_a_statement_runs_with_other_values_each_time(connection: saros.Connection) -> None:
    cursor = connection.cursor()
    cursor.prepare("insert into root.g.d(time, s, t) values (?, ?, ?)").executemany([(1, 1.5, "a"), (2, 2.5, "?'\"")])
    prepared = cursor.prepare("select s, t from root.g.d where time >= ? and t != ? limit ?")
    assert [(1, 1.5, "a"), (2, 2.5, "?'\"")] == prepared.execute((0, "x", 9)).fetchall()
    assert [(2, 2.5, "?'\"")] == prepared.execute((0, "a", 9)).fetchall()
    assert [(1, 1.5, "a")] == prepared.execute((0, "x", 1)).fetchall()
    assert [] == prepared.execute((3, "x", 9)).fetchall()
    assert [(2, 2.5, "?'\"")] == prepared.execute((2.0, "x", 9)).fetchall()


def test_values_keep_their_types(connection: saros.Connection) -> None:
    connection.execute(
        "create aligned timeseries root.g.d(i int64, d double, t text, b boolean, x blob, m timestamp, y date)"
    )
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    row = (2**53 + 1, 0.1, "1 or 1 = 1", True, b"\x00'", moment, date(2024, 1, 1))
    cursor = connection.cursor()
    cursor.prepare("insert into root.g.d(time, i, d, t, b, x, m, y) aligned values (?, ?, ?, ?, ?, ?, ?, ?)").execute(
        (moment, *row)
    )
    for name, value in zip("idtbxm", row, strict=False):
        prepared = cursor.prepare(f"select i from root.g.d where {name} = ?")
        assert 1 == len(prepared.execute((value,)).fetchall()), name
    by_number = cursor.prepare("select i from root.g.d where i = ?")
    assert 0 == len(by_number.execute((2**53,)).fetchall())
    assert 1 == len(by_number.execute((np.int64(2**53 + 1),)).fetchall())
    assert 1 == len(cursor.prepare("select i from root.g.d where d = ?").execute((Decimal("0.1"),)).fetchall())
    assert 0 == len(by_number.execute((None,)).fetchall())


def test_wrong_values_are_refused_each_time(connection: saros.Connection) -> None:
    connection.execute("insert into root.g.d(time, s) values (1, 1)")
    prepared = connection.cursor().prepare("select s from root.g.d where time = ?")
    for values in ((), (1, 2)):
        with pytest.raises(saros.ProgrammingError, match=r"has 1 parameter \(\?\)"):
            prepared.execute(values)
    with pytest.raises(saros.ProgrammingError, match="object"):
        prepared.execute((object(),))
    assert [(1, 1.0)] == prepared.execute((1,)).fetchall()


def test_mistakes_show_when_it_runs(connection: saros.Connection) -> None:
    cursor = connection.cursor()
    prepared = cursor.prepare("select from where")
    with pytest.raises(saros.ProgrammingError):
        prepared.execute()
    with pytest.raises(saros.InterfaceError, match="prepare"):
        cursor.prepare(" ")
    cursor.close()
    with pytest.raises(saros.InterfaceError, match="closed"):
        prepared.execute()


def test_a_schema_that_changes_changes_the_answer(connection: saros.Connection) -> None:
    connection.execute("insert into root.g.d(time, s) values (1, 1)")
    prepared = connection.cursor().prepare("select * from root.g.d where time = ?")
    assert [(1, 1.0)] == prepared.execute((1,)).fetchall()
    connection.execute("insert into root.g.d(time, t) values (1, 'x')")
    assert [(1, 1.0, "x")] == prepared.execute((1,)).fetchall()
    connection.execute("delete timeseries root.g.d.s")
    connection.execute("insert into root.g.d(time, s) values (1, 'text')")
    assert [(1, "text", "x")] == prepared.execute((1,)).fetchall()


def test_half_a_character_is_the_callers_mistake(connection: saros.Connection) -> None:
    half = b"20 \xb0C".decode(errors="surrogateescape")
    cursor = connection.cursor()
    connection.insert("root.g.d", [1], {"s": [1.5], "t": ["a"]})
    with pytest.raises(saros.ProgrammingError, match=r"'20 \\udcb0' ends with '\\udcb0', which is not a character"):
        cursor.execute("insert into root.g.d(time, t) values (2, ?)", (half,))
    with pytest.raises(saros.ProgrammingError, match="which is not a character"):
        cursor.executemany("insert into root.g.d(time, t) values (?, ?)", [(3, "b"), (4, half)])
    with pytest.raises(saros.ProgrammingError, match="which is not a character"):
        cursor.execute(f"select s from root.g.d where t = '{half}'").fetchall()
    for columns in ({"t": [half]}, {half: [1]}):
        with pytest.raises(saros.ProgrammingError, match="which is not a character"):
            connection.insert("root.g.d", [5], columns)
    assert [(1, "a"), (3, "b")] == cursor.execute("select t from root.g.d").fetchall()


def test_texts_that_a_frame_keeps_in_chunks_are_written(connection: saros.Connection) -> None:
    pandas = pytest.importorskip("pandas")
    parts = [pandas.DataFrame({"t": pandas.array(texts, dtype="string[pyarrow]")}) for texts in (["a", None], ["b"])]
    frame = pandas.concat(parts, ignore_index=True)
    assert 1 < frame["t"].array.__arrow_array__().num_chunks
    assert 2 == connection.insert("root.g.d", [1, 2, 3], frame)
    assert [(1, "a"), (3, "b")] == connection.execute("select t from root.g.d").fetchall()
