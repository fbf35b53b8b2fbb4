"""The `saros` format in Spark: its Spark types, Spark's handling of filters, and the errors that users see."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql.datasource import DataSource, DataSourceRegistration

import saros
import saros_spark
from saros_spark.base.connecting import _connection
from saros_spark.base.errors import SourceError
from saros_spark.base.options import scan_options
from saros_spark.read.scanning import Relation, read_task

pytestmark = pytest.mark.filterwarnings("ignore")
T0 = 1_704_067_200_000


@pytest.fixture(scope="module")
def plant(spark: Any, url: str) -> str:
    with saros.connect(url) as connection:
        connection.execute("create timeseries root.p.a.s with datatype=STRING")
        connection.execute("create timeseries root.p.a.d with datatype=DATE")
        connection.execute("create timeseries root.p.a.w with datatype=TIMESTAMP")
        moment = datetime(2024, 1, 1, 12, tzinfo=UTC)
        connection.execute(
            f"insert into root.p.a(time, b, d, o, s, w, x) values ({T0}, true, ?, X'00ff', 'é', ?, 1.5)",
            [date(1600, 2, 29), moment],
        )
        connection.execute(f"insert into root.p.a(time, x) values ({T0 + 1}, NaN)")
        connection.insert("root.ten.d", np.arange(10), {"s0": np.arange(10.0)})
    return url


def test_rows_are_what_was_written(spark: Any, plant: str) -> None:
    frame = saros_spark.scan(spark, plant, "root.p.a")
    assert "time timestamp, device string, b boolean, d date, o binary, s string, w timestamp, x double" == ", ".join(
        f"{name} {type_}" for name, type_ in frame.dtypes
    )
    assert "STRING" == frame.schema["s"].metadata["saros.type"]
    table = frame.orderBy("time").toArrow()
    first, second = table.to_pylist()
    assert {
        "time": datetime(2024, 1, 1, tzinfo=UTC),
        "device": "root.p.a",
        "b": True,
        "d": date(1600, 2, 29),
        "o": b"\x00\xff",
        "s": "é",
        "w": datetime(2024, 1, 1, 12, tzinfo=UTC),
        "x": 1.5,
    } == first
    assert [None] * 5 == [second[name] for name in "bdosw"]
    assert np.isnan(second["x"])


def test_a_schema_of_the_users_chooses_columns(spark: Any, plant: str) -> None:
    reader = spark.read.format("saros").option("url", plant).schema("x double, time timestamp")
    assert [(1.5,)] == [tuple(row) for row in reader.load("root.p.a").where("x < 2").select("x").collect()]


@pytest.mark.parametrize("push_down", ["false", "true"])
def test_spark_answers_rightly_when_a_frame_is_used_twice(spark: Any, plant: str, push_down: str) -> None:
    """Spark 4.3 returns wrong results here for sources that accept filters, with either value of the setting."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", push_down)
    try:
        frame = saros_spark.scan(spark, plant, "root.ten.d")
        assert (3, 10) == (frame.where("s0 > 6").count(), frame.count())
        assert 10 == frame.where("s0 > 6").union(frame.where("s0 > 2")).count()
        assert 10 == frame.where("s0 > 2").union(frame.where("s0 > 6")).count()
        few = frame.where("s0 > 6").alias("a")
        assert 10 == few.join(frame.alias("b"), few.s0 == frame.s0, "right").count()
        frame.createOrReplaceTempView("ten")
        assert [3, 10] == [
            spark.sql(text).first()[0] for text in ("select count(*) from ten where s0 > 6", "select count(*) from ten")
        ]
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_a_view_keeps_its_options(spark: Any, plant: str) -> None:
    spark.sql(f"create temporary view late using saros options (url '{plant}', devices 'root.ten.d', startTime '7')")
    assert 3 == spark.sql("select count(*) from late").first()[0]


def test_a_table_of_the_catalog_keeps_its_options(spark: Any, plant: str) -> None:
    """Reads, appends and overwrites use the table's options, although Spark plans each statement separately."""
    with saros.connect(plant) as connection:
        connection.insert("root.table.d", np.arange(10), {"x": np.arange(10.0)})
    options = f"url '{plant}', devices 'root.table.d', startTime '2'"
    spark.sql(
        f"create table kept using saros options ({options}) comment 'of a plant' tblproperties (owner_team = 'a')"
    )
    try:
        assert (8, 44.0) == tuple(spark.sql("select count(*), sum(x) from kept").first())
        spark.sql("insert into kept select timestamp_millis(10), 'root.table.d', 100.0D")
        assert (9, 144.0) == tuple(spark.sql("select count(*), sum(x) from kept").first())
        spark.sql("insert overwrite kept select timestamp_millis(5), 'root.table.d', 7.0D")
        assert [7.0] == [row.x for row in spark.table("kept").collect()]
        assert [(0.0,), (1.0,), (7.0,)] == [
            row[1:] for row in saros.connect(plant).execute("select x from root.table.d").fetchall()
        ]
    finally:
        spark.sql("drop table kept")


def test_a_table_without_options_says_how_to_make_one(spark: Any, plant: str) -> None:
    frame = spark.sql("select 1L time, 'root.saved.d' device, 1.0D x")
    frame.write.format("saros").option("url", plant).saveAsTable("saved")
    try:
        with pytest.raises(Exception, match="CREATE TABLE name USING saros OPTIONS"):
            spark.table("saved").count()
        with pytest.raises(Exception, match="CREATE TABLE name USING saros OPTIONS"):
            spark.sql(f"create table selected using saros options (url '{plant}') as select * from saved")
        with pytest.raises(Exception, match="give passwordFile instead"):
            spark.sql(f"create table secret using saros options (url '{plant}', devices 'root.ten.d', password 'x')")
    finally:
        spark.sql("drop table saved")


def test_settings_of_a_session_are_options_of_relations_without_a_url(spark: Any, plant: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.saros.url", plant)
    saros_spark.register(session)
    assert 10 == saros_spark.scan(session, devices="root.ten.d").count()
    assert 10 == session.read.format("saros").load("root.ten.d").count()
    session.sql("select 1L time, 'root.of_session.d' device, 1.0D x").write.format("saros").mode("append").save()
    session.sql("create temporary view written using saros options (devices 'root.of_session.d')")
    assert [1.0] == [row.x for row in session.table("written").collect()]
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1"):
        saros_spark.scan(session, "saros://127.0.0.1:1", "root.ten.d")


def test_a_session_learns_the_formats_once_and_again_if_its_settings_change(
    spark: Any, plant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every scan needs the registered formats, but Spark warns about each repeated registration."""
    registered = []
    register = DataSourceRegistration.register

    def noted(self: DataSourceRegistration, source: type[DataSource]) -> None:
        registered.append(source.name())
        register(self, source)

    monkeypatch.setattr(DataSourceRegistration, "register", noted)
    session = spark.newSession()
    saros_spark.register(session)
    saros_spark.register(session)
    assert ["saros", "tsfile"] == registered
    session.conf.set("spark.saros.url", plant)
    saros_spark.register(session)
    assert ["saros", "tsfile", "saros"] == registered


def test_local_workers_run_the_python_that_registers(spark: Any, plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python3")
    session = spark.newSession()
    saros_spark.register(session)
    assert 10 == saros_spark.scan(session, plant, "root.ten.d").count()


def test_rows_are_counted_by_the_server(spark: Any, plant: str) -> None:
    counted = saros_spark.scan(spark, plant, "root.ten.d", start=3, aggregate="count_time(*)").first()
    assert ("root.ten.d", 7) == tuple(counted)


def test_a_later_action_and_a_task_that_runs_again_see_what_the_first_one_saw(spark: Any, url: str) -> None:
    with saros.connect(url) as connection:
        connection.insert("root.grows.d", np.arange(100), {"x": np.arange(100.0)})
        frame = saros_spark.scan(spark, url, "root.grows.*", pointsPerPartition=50)
        assert 100 == frame.count()

        def upset(rows: Iterator[Any]) -> Iterator[float]:
            """Count the rows of a partition. The first attempt inserts and deletes points, and then fails."""
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            found = [row.x for row in rows]
            if context.attemptNumber() == 0:
                with saros.connect(url) as other:
                    other.execute("delete from root.grows.d.x where time < 90")
                    other.insert("root.grows.d", [95, 10**15], {"x": [-1.0, -2.0]})
                    other.execute("flush")
                raise ValueError("the first attempt fails")
            yield from found

        assert [float(number) for number in range(100)] == sorted(frame.rdd.mapPartitions(upset).collect())
        assert 100 == frame.count()
        assert 11 == saros_spark.scan(spark, url, "root.grows.*").count()


def test_errors_are_sentences(spark: Any, plant: str) -> None:
    with pytest.raises(SourceError, match="did you mean columns"):
        saros_spark.scan(spark, plant, "root.p.a", colums="x")
    with pytest.raises(Exception, match="did you mean startTime"):
        spark.read.format("saros").option("url", plant).option("startTme", "5").load("root.p.a")
    with pytest.raises(Exception, match="has no series"):
        spark.read.format("saros").option("url", plant).load("root.nowhere")
    with pytest.raises(Exception, match=r"must be a date such as.*not 'yesterday'") as refused:
        spark.read.format("saros").options(url=plant, startTime="yesterday").load("root.p.a")
    assert "Traceback" not in str(refused.value)
    for option in ({"columns": "zzz"}, {"where": "zzz > 3"}):
        with pytest.raises(Exception, match=r"no device of root\.p\.a has zzz"):
            spark.read.format("saros").options(url=plant, **option).load("root.p.a")
        with pytest.raises(Exception, match=r"no device of root\.p\.a has zzz"):
            spark.readStream.format("saros").options(url=plant, **option).load("root.p.a")


@pytest.mark.slow
def test_a_folder_is_served_while_the_block_runs(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    with saros.connect(folder) as connection:
        connection.insert("root.a.d", [1, 2], {"x": [1.0, 2.0]})
        with pytest.raises(SourceError, match="in use"), saros_spark.serving(folder):
            pass
    with saros_spark.serving(folder) as url:
        assert url.startswith("saros://127.0.0.1:")
        assert [2] == [row["count(x)"] for row in rows_of(folder)]
        with saros_spark.serving(folder) as again:
            assert again == url
        _connection.cache_clear()
    with saros.connect(folder) as connection:
        assert [(2,)] == connection.execute("select count(x) from root.a.d").fetchall()


def rows_of(url: str) -> list[dict[str, Any]]:
    options = scan_options({"url": url, "path": "root.a.d", "aggregate": "count(x)"})
    relation = Relation(options)
    return [
        row
        for task in relation.tasks()
        for part in read_task(task, options, relation.schema)
        for row in part.to_pylist()
    ]
