"""Inserts of whole data frames that contain the times."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import saros

MOMENTS = pd.to_datetime([1, 2, 3], unit="ms", utc=True)
COLUMNS = {"n": [1, None, 3], "t": ["a", "b", None]}
ROWS = [(1, 1, "a"), (2, None, "b"), (3, 3, None)]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[saros.Connection]:
    with saros.connect(tmp_path, timestamps="epoch", options={"durability": "os"}) as connection:
        yield connection


def arrow() -> pa.Table:
    return pa.table({"time": pa.array([1, 2, 3], pa.timestamp("ms", "UTC")), **COLUMNS})


def pandas() -> pd.DataFrame:
    return pd.DataFrame({"n": pd.array(COLUMNS["n"], "Int64"), "t": COLUMNS["t"]})


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas, column": lambda: pandas().assign(Time=MOMENTS),
    "pandas, index": lambda: pandas().set_index(MOMENTS),
    "pandas, index of integers": lambda: pandas().set_index(pd.Index([1, 2, 3], name="time")),
    "Polars": lambda: pl.DataFrame({"Time": MOMENTS, **COLUMNS}),
    "Arrow table": arrow,
    "Arrow batch": lambda: arrow().to_batches()[0],
    "Arrow reader": lambda: arrow().to_reader(),
    "DuckDB": lambda: duckdb.from_arrow(arrow()),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_with_its_times_is_inserted(frame: Callable[[], Any], connection: saros.Connection) -> None:
    assert 4 == connection.insert("root.a.d", frame())
    assert ROWS == connection.execute("select n, t from root.a.d").fetchall()
    types = connection.execute("show timeseries root.a.d.*").fetch_arrow().select(["Timeseries", "DataType"])
    assert {"root.a.d.n": "INT64", "root.a.d.t": "TEXT"} == {
        row["Timeseries"]: row["DataType"] for row in types.to_pylist()
    }


def test_a_relation_gives_columns_beside_times(connection: saros.Connection) -> None:
    relation = duckdb.from_arrow(arrow().drop_columns("time"))
    assert 4 == connection.insert("root.a.d", [1, 2, 3], relation)
    assert ROWS == connection.execute("select n, t from root.a.d").fetchall()


def test_a_bulk_writer_and_asyncio_take_frames(connection: saros.Connection, tmp_path: Path) -> None:
    with connection.bulk_writer() as writer:
        writer.add("root.a.d", arrow())

    async def insert() -> int:
        async with await saros.aio.connect(tmp_path) as other:
            return await other.insert("root.a.e", arrow())

    assert 4 == asyncio.run(insert())
    for device in ("d", "e"):
        assert ROWS == connection.execute(f"select n, t from root.a.{device}").fetchall()


@pytest.mark.parametrize(("zone", "hours"), [("UTC", 0), ("Europe/Berlin", 1)])
def test_naive_times_are_in_the_zone_of_the_session(zone: str, hours: int, tmp_path: Path) -> None:
    with saros.connect(tmp_path, timestamps="epoch", time_zone=zone, options={"durability": "os"}) as connection:
        moments = pd.to_datetime(["1970-01-02T00:00"])
        connection.insert("root.a.d", pd.DataFrame({"time": moments, "moment": moments}))
        connection.insert("root.a.e", moments, {"moment": np.array(["1970-01-02"], "M8[ms]")})
        expected = (24 - hours) * 3_600_000
        for device in ("d", "e"):
            assert [(expected, expected)] == connection.execute(f"select moment from root.a.{device}").fetchall()


def test_a_fetched_frame_goes_back_under_its_names(connection: saros.Connection) -> None:
    connection.insert("root.a.d", [1, 2], {"a.b": [1, 2], "x": [0.5, 1.5]})
    cursor = connection.cursor()
    query = "select `a.b`, x from root.a.d"
    connection.insert("root.a.d1", cursor.execute(query).fetch_pandas(short_names=True))
    connection.insert("root.a.d2", cursor.execute(query).fetch_pandas(short_names=True, time_index=True))
    connection.insert("root.a.d3", cursor.execute(query).fetch_polars(short_names=True))
    for number in (1, 2, 3):
        found = connection.execute(f"select `a.b`, x from root.a.d{number}").fetchall()
        assert [(1, 1, 0.5), (2, 2, 1.5)] == found


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            pd.DataFrame({"n": [1]}),
            "the DataFrame has no column time, and no index of times: rename one to time, or give the times",
        ),
        (pd.DataFrame({"time": [1]}, index=MOMENTS[:1]), "a column time and an index of times: remove one"),
        (pl.DataFrame({"time": [1], "Time": [1]}), "a column time and a column Time: remove one"),
        (pl.DataFrame({"time": [1], "root.a.d.n": [1]}), "column root.a.d.n is a full path"),
        (pl.DataFrame({"timestamp": [1], "n": [1]}), "the DataFrame has no column time"),
        ({"time": [1], "n": [1]}, "the second argument is a dict, and there is no third"),
        ([1, 2], "the second argument is a list, and there is no third"),
        (pl.Series("n", [1]), "the second argument is a Series, and there is no third"),
    ],
)
def test_a_frame_without_clear_times_is_refused(frame: object, message: str, connection: saros.Connection) -> None:
    with pytest.raises(saros.InterfaceError, match=message):
        connection.insert("root.a.d", frame)
    assert [] == connection.execute("show timeseries").fetchall()
