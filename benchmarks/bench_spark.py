"""Spark and Saros on one machine: reading, a pushed-down average, writing, each beside what it competes with.

    python benchmarks/bench_spark.py [--rows 5000]        rows of each of 100 devices with 10 DOUBLE sensors

Wall time of all runs, and of the best. The server is a process of its own; Parquet lies on the same disk.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import saros
import saros_spark
from saros_spark.pipeline.definition import SparkSettings
from saros_spark.pipeline.runner import session

DEVICES, SENSORS = 100, 10
T0 = 1_700_000_000_000
#: Values that are written, at most; of more rows some groups of devices.
WRITTEN = 5_000_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="saros-spark-"))
    spark = session(SparkSettings("local[2]", {"spark.driver.memory": "4g"}))
    try:
        fill(folder / "data", options.rows)
        (folder / "data" / "saros.toml").write_text(f'durability = "os"\nload_folders = "{folder}"\n')
        with saros_spark.serving(str(folder / "data")) as url:
            compare(spark, url, folder, options.rows, options.rounds)
    finally:
        spark.stop()
        shutil.rmtree(folder)


def fill(folder: Path, rows: int) -> None:
    random = np.random.default_rng(1)
    with saros.connect(str(folder), options={"durability": "os"}) as connection:
        times = T0 + np.arange(rows) * 1000
        for number in range(DEVICES):
            columns = {f"s{n}": random.normal(20, 1, rows).round(3) for n in range(SENSORS)}
            connection.insert(f"root.g{number // 10}.d{number}", times, columns)
        connection.execute("flush")


def compare(spark: Any, url: str, folder: Path, rows: int, rounds: int) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    points = rows * DEVICES * SENSORS
    frame = saros_spark.scan(spark, url, "root.g*.*")
    parquet = str(folder / "parquet")
    frame.write.mode("overwrite").parquet(parquet)

    schema_read = frame.schema

    class Tuples(DataSourceReader):
        """What a reader without Arrow costs; of a tenth of the devices."""

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(number) for number in range(0, DEVICES, 10)]

        def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
            text = f"select * from root.g{partition.value // 10}.d{partition.value} align by device"
            with saros.connect(url) as connection:
                yield from connection.execute(text)

    class TupleSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "tuples"

        def schema(self) -> Any:
            return schema_read

        def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002
            return Tuples()

    spark.dataSource.register(TupleSource)
    ours = best(rounds, lambda: drain(saros_spark.scan(spark, url, "root.g*.*")))
    theirs = best(rounds, lambda: drain(spark.read.parquet(parquet)))
    slow = best(1, lambda: drain(spark.read.format("tuples").load())) * 10
    print(f"read {points / 1e6:.0f} M values: {ours:.2f} s, {points / ours / 1e6:.1f} M/s")
    print(f"  spark.read.parquet {theirs:.2f} s: ours has {theirs / ours:.2f} of its speed")
    print(f"  tuples {slow:.1f} s (10 x a tenth): ours is {slow / ours:.1f} times as fast")
    means = ", ".join(f"avg(s{n})" for n in range(SENSORS))
    span = {"start": T0 - T0 % 300_000, "end": T0 + rows * 1000}
    pushed = best(
        rounds, lambda: drain(saros_spark.scan(spark, url, "root.g*.*", aggregate=means, interval="5m", **span))
    )
    grouped = frame.groupBy("device", F.window("time", "5 minutes")).agg(*(F.avg(f"s{n}") for n in range(SENSORS)))
    whole = best(1, lambda: drain(grouped))
    print(f"averages of 5 minutes: {pushed:.2f} s by the server, {whole:.2f} s by Spark: {whole / pushed:.1f} times")
    groups = [f"root.g{number}" for number in range(max(min(WRITTEN // (points // 10), 10), 1))]
    of = F.col("device").substr(1, 7).isin(groups)
    source = spark.read.parquet(parquet).where(of).repartition(2, "device").cache()
    part = source.count() * SENSORS
    handed = best(rounds, lambda: drain(source.mapInArrow(counted, "rows long")))
    print(f"Spark hands {part / 1e6:.1f} M values to Python: {part / handed / 1e6:.2f} M/s")
    seconds = {}
    for name in ("tablet", "upload", "bulk"):
        method = {"method": "tablet" if name == "tablet" else "bulk"}
        if name == "bulk":
            method["bulkFolder"] = str(folder / "bulk")
        target = source.withColumn("device", F.regexp_replace("device", "^root", f"root.{name}"))
        writer = target.write.format("saros").options(url=url, **method)
        seconds[name] = best(rounds, lambda writer=writer: writer.mode("append").save())
        print(f"write {name}: {part / 1e6:.1f} M values: {part / seconds[name] / 1e6:.2f} M/s")
    print(f"  bulk is {seconds['tablet'] / seconds['bulk']:.1f} times as fast as tablets")


def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a writer costs that does nothing."""
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})


def drain(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def best(rounds: int, work: Callable[[], object]) -> float:
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    print("   ", " ".join(f"{seconds:.2f}" for seconds in taken), "s", flush=True)
    return min(taken)


if __name__ == "__main__":
    main()
