"""The user interface: `register` for the data sources, and `scan` for one relation."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: The registered sessions with their options. They are stored because Spark warns if a format is registered twice.
_registered: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()


def register(spark: SparkSession) -> None:
    """Register the formats `saros` and `tsfile` with the session. Idempotent.

    Settings of the session such as `spark.saros.url`, `spark.saros.user` and `spark.saros.passwordFile` become the
    options of relations without a url; call this again after changing them. The workers of a local session run this
    Python interpreter, unless PYSPARK_PYTHON or spark.pyspark.python names another one.
    """
    options = _session_options(spark)
    if _registered.get(spark) == options:
        return
    from pyspark.sql.utils import is_remote

    from saros_spark.file_source import TsFileSource
    from saros_spark.source import source_for

    _run_this_python(spark)
    if spark not in _registered and not is_remote():
        spark.createDataFrame([], "nothing int")  # makes it the active session, whose formats Spark uses
    spark.dataSource.register(source_for(options))
    if spark not in _registered:
        spark.dataSource.register(TsFileSource)
    _registered[spark] = options


def _session_options(spark: SparkSession) -> dict[str, str]:
    from saros_spark.base.options import SESSION

    found = {name: spark.conf.get(f"spark.saros.{name}", None) for name in SESSION}
    return {name.lower(): value for name, value in found.items() if value}


def _run_this_python(spark: SparkSession) -> None:
    """Let Spark start the workers of local sessions with this interpreter, which has Saros, instead of `python3`."""
    from pyspark.sql.utils import is_remote

    if is_remote() or "PYSPARK_PYTHON" in os.environ or spark.conf.get("spark.pyspark.python", None):
        return
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        context.pythonExec = sys.executable


def scan(
    spark: SparkSession,
    url: str | None = None,
    devices: str | Sequence[str] = (),
    *,
    columns: Sequence[str] = (),
    start: object = None,
    end: object = None,
    where: str | None = None,
    aggregate: str | None = None,
    interval: str | None = None,
    sql: str | None = None,
    layout: str | None = None,
    **options: object,
) -> DataFrame:
    """Return a DataFrame of a relation. The server filters and aggregates the relation before it sends rows.

    url      saros://..., or the data folder of a running server; None: the session's spark.saros.url
    devices  patterns such as root.plant.**
    columns  measurements (default: all)
    start, end   times: [start, end); datetimes, ISO dates, or integers in the database's unit
    where    a condition of the SQL dialect on measurements
    aggregate, interval   such as "avg(temperature), max_value(pressure)", in windows of "5m" (none: a row per device)
    sql      a query, instead of all of these
    layout   by_device (default), by_time, narrow
    options  other options of docs/spark.md, such as user, passwordFile, timeType

    Each call returns a separate relation, so call again to see devices that were created later. Raises SourceError for
    invalid options.
    """
    from saros_spark.base.options import scan_options as check_scan
    from saros_spark.base.options import with_session

    given = _texts(
        url=url,
        devices=",".join([devices] if isinstance(devices, str) else devices),
        columns=",".join(columns),
        startTime=start,
        endTime=end,
        where=where,
        aggregate=aggregate,
        interval=interval,
        sql=sql,
        layout=layout,
        **options,
    )
    check_scan(with_session({name.lower(): value for name, value in given.items()}, _session_options(spark)))
    register(spark)
    return spark.read.format("saros").options(**given).load()


def scan_options(**options: object) -> dict[str, str]:
    """Check options, and return them as text. Options that are None or empty are left out. Raises SourceError."""
    from saros_spark.base.options import scan_options as check_scan

    given = _texts(**options)
    check_scan(given)
    return given


def _texts(**options: object) -> dict[str, str]:
    return {name: _text(value) for name, value in options.items() if value is not None and value not in ("", ())}


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)
