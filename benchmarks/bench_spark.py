"""Spark and Saros on one machine: the times of reading, of a pushed-down average, and of writing, next to alternatives.

    python benchmarks/bench_spark.py [--rows 5000] [--rounds 3] [--reads]

--rows is the number of rows of each of 100 devices with 10 DOUBLE sensors: 5,000 are 5 million values, 50,000 are 50
million. With --reads, writing and the reads in eight tasks are not measured.

The figures are wall-clock seconds per round, and ratios of their medians. The server is a separate process; the Parquet
files are on the same disk. Reading from and writing to the format `nobody` measures Spark itself: this data source in
Python reads the same batches from mapped files, and discards the rows that Spark writes to it.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import saros
import saros_spark
from saros_spark.base.options import scan_options
from saros_spark.base.types import from_spark, to_spark
from saros_spark.pipeline.definition import SparkSettings
from saros_spark.pipeline.runner import session
from saros_spark.read.scanning import planned, read_task

DEVICES, SENSORS = 100, 10
T0 = 1_700_000_000_000
#: The maximum number of values that are written; if there are more, only some groups of devices are written.
WRITTEN = 5_000_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reads", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="saros-spark-"))
    spark = session(SparkSettings("local[2]", {"spark.driver.memory": "4g"}))
    try:
        fill(folder / "data", options.rows)
        (folder / "data" / "saros.toml").write_text(f'durability = "os"\nload_folders = "{folder}"\n')
        with saros_spark.serving(str(folder / "data")) as url:
            points = options.rows * DEVICES * SENSORS
            register_nobody(spark)
            compare_reads(spark, url, folder, options.rows, options.rounds, few=options.reads)
            if not options.reads:
                compare_writes(spark, url, folder, points, options.rounds)
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


def compare_reads(spark: Any, url: str, folder: Path, rows: int, rounds: int, *, few: bool) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    points = rows * DEVICES * SENSORS
    parquet = str(folder / "parquet")
    relation = {"url": url, "devices": "root.g*.*"}
    means = {
        **relation,
        "aggregate": ", ".join(f"avg(s{n})" for n in range(SENSORS)),
        "interval": "5m",
        "startTime": str(T0 - T0 % 300_000),
        "endTime": str(T0 + rows * 1000),
    }

    def scan(options: Mapping[str, str]) -> Any:
        return spark.read.format("saros").options(**options).load()

    saros_spark.register(spark)
    frame = scan(relation)
    frame.write.mode("overwrite").parquet(parquet)
    grouped = frame.groupBy("device", F.window("time", "5 minutes")).agg(*(F.avg(f"s{n}") for n in range(SENSORS)))
    kept = keep(folder / "rows", frame.schema, relation)
    few_kept = keep(folder / "means", scan(means).schema, means)
    work: dict[str, Callable[[], object]] = {
        "read": lambda: drain(scan(relation)),
        "read of nobody": lambda: drain(spark.read.format("nobody").load(kept)),
        "parquet": lambda: drain(spark.read.parquet(parquet)),
        "one row": lambda: drain(scan({"url": url, "sql": "select s0 from root.g0.d0 limit 1"})),
        "pushed": lambda: drain(scan(means)),
        "pushed of nobody": lambda: drain(spark.read.format("nobody").load(few_kept)),
        "whole": lambda: drain(grouped),
    }
    if not few:
        work["read, 8 tasks"] = lambda: drain(scan({**relation, "pointsPerPartition": str(points // 8)}))
    print(f"{points / 1e6:.0f} M values")
    taken = measured(rounds, work)
    print(f"read: {taken['parquet'] / taken['read']:.2f} of the speed of Parquet")
    print(f"      and Spark takes {taken['read of nobody'] / taken['read']:.2f} of the time by itself")
    print(f"averages of 5 minutes: the server is {taken['whole'] / taken['pushed']:.1f} times as fast as Spark")
    print(f"      were it no work at all, {taken['whole'] / taken['pushed of nobody']:.1f} times")
    slow = measured(1, {"tuples, a tenth": lambda: drain(by_tuples(spark, url, frame.schema))})
    print(f"read: {slow['tuples, a tenth'] * 10 / taken['read']:.1f} times as fast as tuples")


def by_tuples(spark: Any, url: str, schema_read: Any) -> Any:
    """Read a tenth of the devices by a reader without Arrow."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Tuples(DataSourceReader):
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
    return spark.read.format("tuples").load()


def keep(folder: Path, schema_read: Any, options: Mapping[str, str]) -> str:
    """Write the batches of a relation to one Arrow file per Spark task, and return the folder."""
    folder.mkdir()
    given = scan_options(options)
    schema = from_spark(schema_read)
    for number, task in enumerate(planned(given)):
        with pa.ipc.new_file(folder / f"{number}.arrow", schema) as file:
            for batch in read_task(task, given, schema):
                file.write(batch)
    return str(folder)


def register_nobody(spark: Any) -> None:
    """Register the format `nobody`, which reads the files that `keep` wrote, and discards written rows."""
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        InputPartition,
        WriterCommitMessage,
    )

    class Reader(DataSourceReader):
        def __init__(self, folder: str) -> None:
            self._folder = folder

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(str(file)) for file in sorted(Path(self._folder).iterdir())]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            reader = pa.ipc.open_file(pa.memory_map(partition.value))
            yield from (reader.get_batch(number) for number in range(reader.num_record_batches))

    class Writer(DataSourceArrowWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            for _ in iterator:
                pass
            return WriterCommitMessage()

    class Nobody(DataSource):
        @classmethod
        def name(cls) -> str:
            return "nobody"

        def schema(self) -> Any:
            first = next(Path(self.options["path"]).iterdir())
            return to_spark(pa.ipc.open_file(pa.memory_map(str(first))).schema)

        def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002
            return Reader(self.options["path"])

        def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
            return Writer()

    spark.dataSource.register(Nobody)


def compare_writes(spark: Any, url: str, folder: Path, points: int, rounds: int) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    groups = [f"root.g{number}" for number in range(max(min(WRITTEN // (points // 10), 10), 1))]
    of = F.col("device").substr(1, 7).isin(groups)
    source = spark.read.parquet(str(folder / "parquet")).where(of).repartition(2, "device").cache()
    part = source.count() * SENSORS
    print(f"{part / 1e6:.0f} M values are written")
    work: dict[str, Callable[[], object]] = {}
    saros_source = {"format": "saros", "url": url, "method": "bulk"}
    ways: dict[str, dict[str, str]] = {
        "nobody": {"format": "nobody"},
        "tablet": {**saros_source, "method": "tablet"},
        "upload": saros_source,
        "bulk": {**saros_source, "bulkFolder": str(folder / "bulk")},
    }
    for name, way in ways.items():
        target = source.withColumn("device", F.regexp_replace("device", "^root", f"root.{name}"))
        work[f"write {name}"] = partial(target.write.mode("append").save, **way)
    work["tablet, flushed"] = lambda: flushed(url, work["write tablet"])
    taken = measured(rounds, work)
    print(f"bulk is {taken['write tablet'] / taken['write bulk']:.1f} times as fast as tablets")
    print(f"      were it no work at all, {taken['write tablet'] / taken['write nobody']:.1f} times")
    print(f"      and {taken['tablet, flushed'] / taken['write bulk']:.1f} times until the points are in files")


def flushed(url: str, write: Callable[[], object]) -> None:
    """Write and then flush, so that the points are in sealed files, as they are after a bulk write."""
    write()
    with saros.connect(url) as connection:
        connection.execute("flush")


def drain(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def measured(rounds: int, work: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median seconds of each task, in alternating rounds after a warm-up round."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds + 1):
        for name, run in work.items():
            began = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - began)
    for name, (first, *rest) in taken.items():
        print(f"  {name:15} {first:6.2f} at first, then", *(f"{seconds:.2f}" for seconds in rest), flush=True)
    return {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}


if __name__ == "__main__":
    main()
