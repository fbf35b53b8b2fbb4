"""What users call: registering the sources, and one relation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: Sessions that know the formats: Spark warns of those that are registered again.
_registered: WeakSet[SparkSession] = WeakSet()


def register(spark: SparkSession) -> None:
    """Make the formats `saros` and `tsfile` known to the session. Idempotent."""
    if spark in _registered:
        return
    from saros_spark.file_source import TsFileSource
    from saros_spark.source import SarosSource

    spark.dataSource.register(SarosSource)
    spark.dataSource.register(TsFileSource)
    _registered.add(spark)


def scan(
    spark: SparkSession,
    url: str,
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
    """A DataFrame of a relation, all of which the server cuts down before anything travels.

    url      saros://..., or the folder of a running server
    devices  patterns such as root.plant.**
    columns  measurements (default: all)
    start, end   times: [start, end); datetimes, ISO dates, or integers in the database's unit
    where    a condition of the SQL dialect on measurements
    aggregate, interval   such as "avg(temperature), max_value(pressure)", in windows of "5m" (else a row per device)
    sql      instead of all of these: a query
    layout   by_device (default), by_time, narrow
    options  the others of docs/spark.md, such as user, passwordFile, timeType

    Each call is a relation of its own: make a new one to see devices that are new. Raises SourceError (options).
    """
    given = scan_options(
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
    register(spark)
    return spark.read.format("saros").options(**given).load()


def scan_options(**options: object) -> dict[str, str]:
    """Options as texts, checked, without those that are None or empty. Raises SourceError."""
    from saros_spark.base.options import scan_options as check

    given = {name: _text(value) for name, value in options.items() if value is not None and value not in ("", ())}
    check(given)
    return given


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)
