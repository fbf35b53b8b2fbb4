"""Streams by time: offsets without Spark, and queries that stop, restart, and write each batch once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saros
from saros_spark.base.errors import SourceError
from saros_spark.base.options import Connecting, stream_options, write_options
from saros_spark.read.streaming import available, first_offset, is_written, next_offset, note_written
from saros_storage.base.types import TIME_MIN

pytestmark = pytest.mark.filterwarnings("ignore")


def insert(url: str, device: str, start: int, stop: int) -> None:
    with saros.connect(url) as connection:
        connection.insert(device, np.arange(start, stop), {"x": np.arange(start, stop) * 1.0})


def test_batches_are_bounded_and_leave_nothing_out(url: str) -> None:
    insert(url, "root.bound.d", 0, 1000)
    options = stream_options({"url": url, "path": "root.bound.*", "maxRowsPerTrigger": "100"})
    until = first_offset(options)
    assert TIME_MIN == until
    ends = []
    while (end := next_offset(options, until, options.rows_per_trigger, None)) != until:
        assert 1 <= end - max(until, 0) <= 100
        ends.append(end)
        until = end
    assert 1000 == ends[-1]
    assert 1000 == next_offset(options, TIME_MIN, None, None)
    assert 300 == next_offset(options, TIME_MIN, None, 300)
    assert 1000 == next_offset(options, 1000, None, None)


def test_the_delay_and_the_end_hold_batches_back(url: str) -> None:
    insert(url, "root.held.d", 0, 5000)
    base = {"url": url, "path": "root.held.*"}
    assert 4000 == available(stream_options({**base, "delay": "1s"}))
    assert 700 == available(stream_options({**base, "delay": "1s", "endTime": "700"}))
    assert 100 == first_offset(stream_options({**base, "startTime": "100"}))
    with pytest.raises(SourceError, match="no y, mo"):
        available(stream_options({**base, "delay": "1mo"}))


def test_progress_is_a_device(url: str) -> None:
    connecting = Connecting(url)
    assert not is_written(connecting, "root.ops.job", 0)
    note_written(connecting, "root.ops.job", 0, 5)
    assert is_written(connecting, "root.ops.job", 0)
    assert not is_written(connecting, "root.ops.job", 1)
    with pytest.raises(SourceError, match="progress must be the path of a device"):
        write_options({"url": url, "progress": "job"}, streaming=True)


def run(spark: Any, url: str, tmp_path: Path, *, crash: bool = False) -> list[int]:
    """Run a query that copies root.in.* to root.out.copy until all rows are read; return the rows of each batch."""
    from pyspark.errors import StreamingQueryException

    rows: list[int] = []
    source = spark.readStream.format("saros").option("url", url).option("maxRowsPerTrigger", "400")

    def take(batch: Any, number: int) -> None:
        rows.append(batch.count())
        if crash and len(rows) == 2:
            raise RuntimeError("as the test wishes")
        batch.selectExpr("time", "'root.out.copy' device", "x").write.format("saros").option("url", url).mode(
            "append"
        ).save()

    stream = source.load("root.in.*").writeStream.foreachBatch(take)
    query = stream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    if crash:
        with pytest.raises(StreamingQueryException, match="as the test wishes"):
            query.awaitTermination()
    else:
        query.awaitTermination()
    return rows


def test_a_query_that_starts_again_goes_on_where_it_stopped(spark: Any, url: str, tmp_path: Path) -> None:
    insert(url, "root.in.a", 0, 1000)
    assert 2 == len(run(spark, url, tmp_path, crash=True))
    insert(url, "root.in.b", 1000, 1200)
    rows = run(spark, url, tmp_path)
    assert all(0 < count <= 400 for count in rows)
    with saros.connect(url) as connection:
        assert [(1200,)] == connection.execute("select count(x) from root.out.copy").fetchall()
    assert [] == run(spark, url, tmp_path)


def test_a_stream_writes_each_batch_once(spark: Any, url: str, tmp_path: Path) -> None:
    """The last batch is repeated, as after a crash between its commit in Saros and its commit in Spark's checkpoint."""
    files = tmp_path / "in"
    sink = {"url": url, "progress": "root.ops.once", "checkpointLocation": str(tmp_path / "checkpoint")}

    def go(number: int) -> None:
        spark.sql(f"select {number}L time, 'root.once.d' device, {number}D x").write.mode("append").json(str(files))
        stream = spark.readStream.schema("time bigint, device string, x double").json(str(files))
        stream.writeStream.format("saros").options(**sink).trigger(availableNow=True).start().awaitTermination()

    go(1)
    go(2)
    with saros.connect(url, timestamps="epoch") as connection:
        assert [(0, 1), (1, 1)] == connection.execute("select rows from root.ops.once").fetchall()
        connection.execute("insert into root.once.d(time, x) values (2, 20.0)")
    for leftover in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        leftover.unlink()
    go(3)
    with saros.connect(url, timestamps="epoch") as connection:
        assert [(1, 1.0), (2, 20.0), (3, 3.0)] == connection.execute("select x from root.once.d").fetchall()


def test_a_stream_leaves_out_columns_of_nulls(spark: Any, url: str, tmp_path: Path) -> None:
    files = str(tmp_path / "in")
    with saros.connect(url) as connection:
        connection.execute("create timeseries root.nulls.d.flag BOOLEAN")
    columns = "cast(null as string) text, cast(null as double) flag, 1.5D x"
    frame = spark.sql(f"select 7L time, 'root.nulls.d' device, {columns}")
    frame.write.parquet(files)
    stream = spark.readStream.schema(frame.schema).parquet(files).selectExpr("*", "null untyped")
    sink = {"url": url, "checkpointLocation": str(tmp_path / "checkpoint")}
    stream.writeStream.format("saros").options(**sink).trigger(availableNow=True).start().awaitTermination()
    with saros.connect(url, timestamps="epoch") as connection:
        assert [(7, 1.5)] == connection.execute("select x from root.nulls.d").fetchall()
        shown = connection.execute("show timeseries root.nulls.**").fetchall()
    assert ["root.nulls.d.flag", "root.nulls.d.x"] == [row[0] for row in shown]
