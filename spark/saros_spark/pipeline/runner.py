"""Run a pipeline: create a Spark session, start a server for a data folder if necessary, and run the steps in order."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

import msgspec

from saros_spark.base.local_server import serving
from saros_spark.pipeline.definition import Export, Import, Pipeline, Report, Rollup, SparkSettings
from saros_spark.session import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_ZONE = "spark.sql.session.timeZone"
#: Thresholds of Java's second compiler, ten times the defaults: in a job of half a minute, this compiler takes a third
#: of the processor time without making the job faster. Jobs of many minutes still reach the thresholds.
_LATER = {"InvocationThreshold": 50_000, "MinInvocationThreshold": 6_000, "CompileThreshold": 150_000,
          "BackEdgeThreshold": 400_000}  # fmt: skip


class Result(msgspec.Struct, frozen=True):
    """The result of a step: a summary, and its duration."""

    step: str
    said: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.step:<8} {self.said} ({self.seconds:.1f} s)"


def run(pipeline: Pipeline, spark: SparkSession | None = None) -> Iterator[Result]:
    """Run the steps, and yield each step's result when it is done. Without `spark`, create a session for the run.

    Raises SourceError, the driver's errors and Spark's errors; the steps before the failed step keep their effect.
    """
    from saros_spark.pipeline.report import write_report
    from saros_spark.pipeline.steps import Context, export, import_files, roll_up

    with ExitStack() as closing:
        if spark is None:
            spark = session(pipeline.spark)
            closing.callback(spark.stop)
        register(spark)
        zone = spark.conf.get(_ZONE) or "UTC"
        closing.callback(spark.conf.set, _ZONE, zone)
        spark.conf.set(_ZONE, "UTC")  # times in files and the starts of days must not depend on the machine's zone
        target = pipeline.database
        served = nullcontext(target) if "://" in target else serving(pipeline.path(target))
        login = {"user": pipeline.user, "tlsCa": pipeline.tls_ca and pipeline.path(pipeline.tls_ca)}
        login["passwordFile"] = pipeline.password_file and pipeline.path(pipeline.password_file)
        options = {name: value for name, value in login.items() if value is not None}
        context = Context(spark, pipeline, {"url": closing.enter_context(served), **options})
        for step in pipeline.steps:
            began = time.monotonic()
            name, work = _work(step, import_files, roll_up, export, write_report)
            said = work(context, step)
            context.done.append((step, said))
            yield Result(name, said, time.monotonic() - began)


def _work(step: object, *functions: Callable[..., str]) -> tuple[str, Callable[..., str]]:
    kinds = (("import", Import), ("rollup", Rollup), ("export", Export), ("report", Report))
    return next((kind[0], made) for kind, made in zip(kinds, functions, strict=True) if isinstance(step, kind[1]))


def session(settings: SparkSettings) -> SparkSession:
    """Return a session whose workers run this Python interpreter, in UTC, without Spark's web page."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")  # it is not needed here
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(settings.master).appName("saros")
    defaults = {
        "spark.driver.extraJavaOptions": " ".join(f"-XX:Tier4{name}={value}" for name, value in _LATER.items()),
        "spark.log.level": "ERROR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",  # the default, 200 tasks with a connection each, is too many here
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in {**defaults, **settings.conf}.items():
        builder = builder.config(name, value)
    made: SparkSession = builder.getOrCreate()
    return made
