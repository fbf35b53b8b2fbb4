"""Format `tsfile` in Spark: written rows come back, and Saros accepts the files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import saros

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("aligned", ["false", "true"])
def test_a_frame_goes_into_files_and_comes_back(spark: Any, tmp_path: Path, aligned: str) -> None:
    frame = spark.range(0, 1000, 1, 2).selectExpr(
        "timestamp_millis(id * 1000) time",
        "concat('root.p.d', id % 3) device",
        "cast(id as double) x",
        "cast(id as int) i",
        "id l",
        "if(id % 2 = 0, 'é', null) s",
        "id % 5 = 0 b",
        "date_add(date'2024-01-01', 3) d",
    )
    target = tmp_path / "files"
    frame.write.format("tsfile").option("aligned", aligned).mode("append").save(str(target))
    assert (target / "_SUCCESS").exists()
    files = list(target.glob("*.tsfile"))
    assert 2 == len(files) == len(list(target.iterdir())) - 1
    assert {(target / "_SUCCESS").stat().st_mode} == {file.stat().st_mode for file in files}
    back = spark.read.format("tsfile").load(str(target)).select(*frame.columns)
    assert 0 == frame.exceptAll(back).count()
    assert 1000 == back.count()
    with saros.connect(str(tmp_path / "data"), options={"durability": "os"}) as connection:
        connection.execute(f"load '{target}'")
        assert [(334, 333, 333)] == connection.execute("select count(x) from root.p.*").fetchall()


def test_overwrite_replaces_the_files_and_columns_are_pruned(spark: Any, tmp_path: Path) -> None:
    target = str(tmp_path / "year=2024")
    for x in (1.0, 2.0):
        frame = spark.sql(f"select 5L time, 'root.p.d' device, {x}D x, 'a' s")
        frame.write.format("tsfile").mode("overwrite").save(target)
    rows = spark.read.format("tsfile").schema("x double, year bigint").load(str(tmp_path))
    assert [(2.0, 2024)] == [tuple(row) for row in rows.collect()]


def test_columns_of_nulls_are_left_out_of_files(spark: Any, tmp_path: Path) -> None:
    target = str(tmp_path / "files")
    frame = spark.sql("select 5L time, 'root.p.d' device, 2.0D x, null untyped, cast(null as string) text")
    frame.write.format("tsfile").mode("append").save(target)
    assert {"time", "device", "x"} == set(spark.read.format("tsfile").load(target).columns)
    with pytest.raises(Exception, match="x is void, which Saros does not store"):
        spark.read.format("tsfile").schema("x void").load(target).collect()


def test_a_table_of_the_catalog_reads_and_writes_a_folder(spark: Any, tmp_path: Path) -> None:
    """Spark plans each statement separately; the table's location comes from LOCATION or from the option `path`."""
    folder = tmp_path / "a folder"
    spark.sql("select 5L time, 'root.p.d' device, 2.0D x").write.format("tsfile").mode("append").save(str(folder))
    spark.sql(f"create table archive using tsfile options (timeUnit 'us') location '{folder}'")
    spark.sql(f"create table narrowed using tsfile options (path '{folder}', layout 'narrow', timeType 'long')")
    try:
        assert [datetime(1970, 1, 1, 0, 0, 0, 5, UTC)] == spark.table("archive").toArrow()["time"].to_pylist()
        spark.sql("insert into archive select timestamp_micros(6), 'root.p.d', 3.0D")
        assert [2.0, 3.0] == sorted(row.x for row in spark.table("archive").collect())
        assert [(5, "x", 2.0), (6, "x", 3.0)] == sorted(
            (row.time, row.measurement, row.value) for row in spark.table("narrowed").collect()
        )
        spark.sql("insert overwrite archive select timestamp_micros(7), 'root.p.d', 4.0D")
        assert [4.0] == [row.x for row in spark.table("archive").collect()]
        with pytest.raises(Exception, match="CREATE TABLE name USING tsfile LOCATION"):
            spark.sql("create table nowhere using tsfile")
    finally:
        spark.sql("drop table if exists archive")
        spark.sql("drop table if exists narrowed")
    assert 1 == len(list(folder.glob("*.tsfile")))
