"""Cursors that other libraries read through Arrow's PyCapsule interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from driver.targets import WAYS, target_of

import saros

QUERY = "select n, t from root.a.d"
NAMES = ["Time", "root.a.d.n", "root.a.d.t"]
TEXTS = ["a", None, "c"]


@pytest.fixture(params=WAYS)
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[saros.Connection]:
    with (
        target_of(request.param, tmp_path / "data") as target,
        saros.connect(target, time_zone="Europe/Berlin") as connection,
    ):
        connection.insert("root.a.d", [0, 1, 2], {"n": [1, 2, 3], "t": TEXTS})
        yield connection


def test_polars_takes_a_cursor_with_names_and_types(connection: saros.Connection) -> None:
    frame = pl.DataFrame(connection.execute(QUERY))
    types = [pl.Datetime("ms", "Europe/Berlin"), pl.Int64(), pl.String()]
    assert dict(zip(NAMES, types, strict=True)) == dict(frame.schema)
    assert [(1, "a"), (2, None), (3, "c")] == frame.select(NAMES[1:]).rows()


def test_duckdb_queries_a_cursor_by_its_variable(connection: saros.Connection) -> None:
    cursor = connection.execute(QUERY)
    assert [(6, 2)] == duckdb.sql('select sum("root.a.d.n"), count("root.a.d.t") from cursor').fetchall()
    assert NAMES == duckdb.from_arrow(connection.execute(QUERY)).columns
    assert cursor.fetchone() is None


def test_arrow_and_pandas_take_a_cursor(connection: saros.Connection) -> None:
    expected = connection.execute(QUERY).fetch_arrow()
    assert expected == pa.table(connection.execute(QUERY))
    if hasattr(pd.DataFrame, "from_arrow"):  # pandas 3
        assert NAMES == list(pd.DataFrame.from_arrow(connection.execute(QUERY)).columns)


def test_the_schema_is_told_without_fetching(connection: saros.Connection) -> None:
    cursor = connection.execute(QUERY)
    schema = pa.schema(cursor)
    assert NAMES == schema.names
    assert schema == cursor.fetch_arrow().schema
    assert 3 == len(connection.execute(QUERY).fetchall())


def test_a_stream_has_the_rows_that_are_left(connection: saros.Connection) -> None:
    cursor = connection.execute(QUERY)
    cursor.fetchone()
    assert [2, 3] == pl.DataFrame(cursor)["root.a.d.n"].to_list()
    assert [] == cursor.fetchall()
    assert NAMES == pl.DataFrame(connection.execute(f"{QUERY} where n > 9")).columns


def test_a_stream_is_read_batch_by_batch(connection: saros.Connection) -> None:
    connection.insert("root.a.long", range(400_000), {"n": range(400_000)})
    cursor = connection.execute("select n from root.a.long")
    reader = pa.RecordBatchReader.from_stream(cursor)
    first = reader.read_next_batch()
    assert 400_000 > first.num_rows
    rest = cursor.fetch_arrow()
    assert [*range(400_000)] == first["root.a.long.n"].to_pylist() + rest["root.a.long.n"].to_pylist()


def test_a_requested_schema_is_cast_to(connection: saros.Connection) -> None:
    wanted = pa.schema([pa.field(NAMES[0], pa.timestamp("us", "UTC")), (NAMES[1], pa.int32()), (NAMES[2], pa.string())])
    assert wanted == pa.RecordBatchReader.from_stream(connection.execute(QUERY), schema=wanted).read_all().schema


def test_what_ends_a_result_reaches_the_library(connection: saros.Connection) -> None:
    cursor = connection.execute(QUERY)
    cursor.cancel()
    with pytest.raises(pl.exceptions.ComputeError, match=r"closed the result|cancelled"):
        pl.DataFrame(cursor)
    with pytest.raises(saros.InterfaceError, match="the last statement gives no rows"):
        pl.DataFrame(connection.execute("flush"))
