"""DataFrames written to a database: modes, retries, commit and abort as Spark calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import saros
import saros_spark

pytestmark = pytest.mark.filterwarnings("ignore")


def answers(url: str, text: str) -> list[tuple[Any, ...]]:
    with saros.connect(url, timestamps="epoch") as connection:
        return connection.execute(text).fetchall()


def writer(frame: Any, url: str, **options: str) -> Any:
    return frame.write.format("saros").option("url", url).options(**options)


@pytest.mark.parametrize(("method", "shared"), [("tablet", False), ("bulk", True), ("bulk", False)])
def test_a_frame_becomes_points_though_a_task_fails_once(
    spark: Any, url: str, folder: Path, method: str, *, shared: bool
) -> None:
    """The failing task has already written some of its rows; every row is still read back exactly once."""
    name = f"{method}_{shared}"
    marker = str(folder / f"failed-{name}")

    def fails_once(batches: Any) -> Any:
        for batch in batches:
            yield batch
            if not Path(marker).exists():
                Path(marker).touch()
                raise RuntimeError("as the test wishes")

    base = spark.range(0, 2000, 1, 2).selectExpr(
        "timestamp_millis(id * 1000) time",
        f"concat('root.{name}.d', id % 3) device",
        "cast(id as double) x",
        "cast(id % 7 as int) i",
        "if(id % 2 = 0, 'even', null) s",
    )
    frame = spark.createDataFrame(base.rdd.mapPartitions(fails_once), base.schema)
    where = {"bulkFolder": str(folder / "files")} if shared else {}
    writer(frame, url, method=method, **where).mode("append").save()
    back = saros_spark.scan(spark, url, f"root.{name}.*").select(*frame.columns)
    assert 2000 == back.count()
    assert 0 == back.exceptAll(base).count()
    assert [] == [*(folder / "files").iterdir(), *(folder / "data").glob("uploads/*")]


@pytest.mark.parametrize("shared", [True, False])
def test_a_job_that_fails_leaves_no_files(spark: Any, url: str, folder: Path, *, shared: bool) -> None:
    where = {"bulkFolder": str(folder / "files")} if shared else {}
    frame = spark.range(0, 10, 1, 1).selectExpr("id time", "'root.never.d' device", "1 / (5 - id) x")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        writer(frame, url, method="bulk", **where).mode("append").save()
    assert [] == [*(folder / "files").iterdir(), *(folder / "data").glob("uploads/*")]
    assert [] == answers(url, "show devices root.never.**")


def test_modes_that_cannot_be_and_rows_that_do_not_fit_say_so(spark: Any, url: str) -> None:
    with saros.connect(url) as connection:
        connection.execute("create timeseries root.typed.d.i with datatype=INT32")
    frame = spark.sql("select 7L time, 'root.typed.d' device, 4294967296L i")
    with pytest.raises(Exception, match=r"root\.typed\.d at 7: i is INT32, and 4294967296"):
        writer(frame, url).mode("append").save()
    with pytest.raises(Exception, match="give devices"):
        writer(frame, url).mode("overwrite").save()
    with pytest.raises(Exception, match="cast it"):
        writer(spark.sql("select 7L time, 'root.typed.d' device, array(1) i"), url).mode("append").save()


@pytest.mark.parametrize("method", ["tablet", "bulk", "tsfile"])
def test_rows_that_cannot_be_written_fail_the_job_at_their_first_attempt(
    spark: Any, url: str, tmp_path: Path, method: str
) -> None:
    """The job's error names the bad row; task 1 of 3, which contains this row, is attempted only once."""
    attempts = spark.sparkContext.accumulator(0)

    def counted(batches: Any) -> Any:
        attempts.add(1)
        yield from batches

    rows = spark.range(0, 90_000, 1, 3).selectExpr(
        "id time", f"if(id = 30005, 'rot.d', 'root.once_{method}.d') device", "id x"
    )
    frame = spark.createDataFrame(rows.rdd.mapPartitions(counted), rows.schema)
    written = frame.write.format("tsfile") if method == "tsfile" else writer(frame, url, method=method)
    with pytest.raises(Exception, match=r"SourceError: device 'rot.d': .* does not begin with root") as refused:
        written.mode("append").save(*([str(tmp_path / "out")] if method == "tsfile" else []))
    assert 3 == attempts.value
    assert "Traceback" not in str(refused.value)
    assert [] == [*tmp_path.glob("out/*")]


@pytest.mark.parametrize("method", ["tablet", "bulk"])
def test_columns_of_nulls_are_absent(spark: Any, url: str, method: str) -> None:
    with saros.connect(url) as connection:
        connection.execute(f"create timeseries root.null_{method}.d.flag BOOLEAN")
    columns = "null untyped, cast(null as string) text, cast(null as double) flag, 1.5D x"
    frame = spark.sql(f"select 7L time, 'root.null_{method}.d' device, {columns}")
    writer(frame, url, method=method).mode("append").save()
    assert [(7, 1.5)] == answers(url, f"select x from root.null_{method}.d")
    assert ["flag", "x"] == [
        row[0].rpartition(".")[2] for row in answers(url, f"show timeseries root.null_{method}.**")
    ]
