"""The steps import, rollup and export, on Spark.

    import   files -> device, time, values | reason -> rejected rows, or rows without duplicates -> tablets
    rollup   windows of the server's aggregates -> tablets of other devices
    export   rows by device -> Parquet

A step that runs again gives the same: points are upserts, folders are replaced.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from saros_spark.errors import SourceError
from saros_spark.pipeline.definition import Export, Import, Pipeline, Rollup, TimeColumn
from saros_spark.session import scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_REASON, _ORDER, _RAW = "_saros_reason", "_saros_order", "row"


@dataclass(frozen=True, slots=True)
class Context:
    """What steps share; `connecting` are options of format saros."""

    spark: SparkSession
    pipeline: Pipeline
    connecting: Mapping[str, str]

    def read(self, devices: str, **options: object) -> DataFrame:
        """A relation."""
        login = {name: value for name, value in self.connecting.items() if name != "url"}
        return scan(self.spark, self.connecting["url"], devices, **login, **options)  # type: ignore[arg-type]

    def write(self, frame: DataFrame) -> None:
        """Rows by device."""
        frame.write.format("saros").options(**self.connecting).mode("append").save()


# ---------------------------------------------------------------------------------------------- import


def import_files(context: Context, step: Import) -> str:
    """See the module. Raises SourceError if too many rows are rejected."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    read = _files(context, step)
    checked = _checked(read, step).persist()
    try:
        counts = {row[0]: row[1] for row in checked.groupBy(_REASON).count().collect()}
        good = counts.pop(None, 0)
        bad = sum(counts.values())
        reasons = "; ".join(f"{count} x {reason}" for reason, count in sorted(counts.items()))
        if bad and step.rejected is not None:
            rejected = checked.where(F.col(_REASON).isNotNull()).withColumnRenamed(_REASON, "reason").drop(_ORDER)
            rejected.write.mode("overwrite").json(context.pipeline.path(step.rejected))
        if bad > step.rejected_max * (good + bad):
            raise SourceError(
                f"{bad} of {good + bad} rows are rejected, more than rejected_max allows ({step.rejected_max:.2%}):"
                f" {reasons}"
            )
        rows = _distinct(checked.where(F.col(_REASON).isNull()), step)
        written = rows.count()
        context.write(rows)
    finally:
        checked.unpersist()
    said = f"{written} rows, {good - written} duplicates, {bad} rejected"
    return f"{said}: {reasons}" if reasons else said


def _files(context: Context, step: Import) -> DataFrame:
    names = sorted(name for pattern in step.files for name in glob.glob(context.pipeline.path(pattern)))
    if not names:
        raise SourceError(f"there are no files {', '.join(step.files)}")
    reader = context.spark.read
    if step.format == "tsfile":
        return reader.format("tsfile").load(names)
    from pyspark.sql import functions as F  # noqa: N812

    if step.format == "csv":
        frames = []
        for name in names:  # headers differ
            plain = reader.option("header", True).option("sep", step.delimiter).csv(name)
            frames.append(plain.withColumn("file", F.lit(re.sub(r"\.[^.]*$", "", name.rsplit("/", 1)[-1]))))
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    frame = reader.format(step.format).load(names)
    return frame.withColumn("file", F.regexp_replace(F.col("_metadata.file_name"), r"\.[^.]*$", ""))


def _checked(read: DataFrame, step: Import) -> DataFrame:
    """time, device, values, and why the row is rejected (null: it is not)."""
    from pyspark.sql import functions as F  # noqa: N812

    names = {name.lower(): name for name in read.columns}
    time = step.time.column
    missing = [name for name in (time, *step.columns, *step.types) if name.lower() not in names]
    if missing:
        raise SourceError(f"the files have no column {', '.join(missing)}; they have {', '.join(read.columns)}")
    other = {time.lower(), "file", "device"}
    taken = step.columns or {name: name for name in read.columns if name.lower() not in other}
    kinds = dict(read.dtypes)
    values, reasons = [], []
    for name, measurement in taken.items():
        source = _column(name)
        if kinds[names[name.lower()]] == "string":
            text = F.nullif(F.trim(source), F.lit(""))
            value = text.try_cast(step.types.get(name, "double"))
            reasons.append(
                F.when(text.isNotNull() & value.isNull(), F.lit(f"{name} is no {step.types.get(name, 'double')}"))
            )
        else:
            value = source.try_cast(step.types[name]) if name in step.types else source
        values.append(value.alias(measurement))
    at = _time(_column(time), kinds[names[time.lower()]], step.time)
    reasons = [F.when(at.isNull(), F.lit(f"{time} is no time")), *reasons]
    shaped = read.select(
        at.alias("time"),
        _device(step, read).alias("device"),
        *values,
        F.coalesce(*reasons).alias(_REASON),
        F.when(F.coalesce(*reasons).isNotNull(), F.to_json(F.struct(*map(_column, read.columns)))).alias(_RAW),
        F.monotonically_increasing_id().alias(_ORDER),
    )
    for rule in step.rules:
        broken = F.when(~F.coalesce(F.expr(rule.keep), F.lit(False)), F.lit(rule.name))
        shaped = shaped.withColumn(_REASON, F.coalesce(F.col(_REASON), broken))
    return shaped


def _column(name: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.col("`" + name.replace("`", "``") + "`")


def _time(column: Column, kind: str, how: TimeColumn) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    if how.unit is not None:
        per_second = {"s": 1, "ms": 1_000, "us": 1_000_000}[how.unit]
        return F.timestamp_micros(column.try_cast("bigint") * F.lit(1_000_000 // per_second))
    if kind == "timestamp":
        return column
    parsed = F.try_to_timestamp(column, F.lit(how.format)) if how.format else column.try_cast("timestamp")
    return parsed if how.zone == "UTC" else F.to_utc_timestamp(parsed, how.zone)


def _device(step: Import, read: DataFrame) -> Column:
    """The template with columns in the place of {names}; each value is one node."""
    from pyspark.sql import functions as F  # noqa: N812

    if not step.device:
        if "device" not in read.columns:
            raise SourceError("import has no device, and the files have no column of that name")
        return F.col("device")
    parts = []
    for number, text in enumerate(re.split(r"\{([^{}]*)\}", step.device)):
        if number % 2 == 0:
            parts.append(F.lit(text))
            continue
        if text not in read.columns:
            raise SourceError(f"device holds {{{text}}}, and the files have no such column")
        value = _column(text).cast("string")
        quoted = F.concat(F.lit("`"), F.replace(value, F.lit("`"), F.lit("``")), F.lit("`"))
        parts.append(F.when(value.rlike("^[A-Za-z_][A-Za-z0-9_]*$"), value).otherwise(quoted))
    return F.concat(*parts)


def _distinct(rows: DataFrame, step: Import) -> DataFrame:
    """Of rows of the same device and time one."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    order = F.col(_ORDER).desc() if step.duplicates == "last" else F.col(_ORDER)
    numbered = rows.withColumn("_n", F.row_number().over(Window.partitionBy("device", "time").orderBy(order)))
    return numbered.where("_n = 1").drop("_n", _ORDER, _REASON, _RAW)


# ---------------------------------------------------------------------------------------------- rollup, export


def roll_up(context: Context, step: Rollup) -> str:
    """See the module."""
    from pyspark.sql import functions as F  # noqa: N812

    columns = step.columns or _measurements(context, step.devices)
    calls = [f"{function}({name})" for name in columns for function in step.functions]
    read = context.read(
        step.devices, aggregate=", ".join(calls), interval=step.interval, start=step.start, end=step.end
    )
    values = []
    for call in read.columns[2:]:
        function, name = call.rstrip(")").split("(", 1)
        value = F.nullif(_column(call), F.lit(0)) if function == "count" else _column(call)
        values.append(value.alias(f"{name.strip('`')}_{function}"))
    path = F.regexp_replace("device", r"^root\.", "")
    last = F.regexp_extract("device", r"(`(?:[^`]|``)+`|[^.`]+)$", 1)
    into: Column = F.lit(step.into)
    for name, value in (("{path}", path), ("{device}", last)):
        into = F.replace(into, F.lit(name), value)
    rows = read.select("time", into.alias("device"), *values)
    rows = rows.where(reduce(lambda one, other: one | other, (_column(name).isNotNull() for name in rows.columns[2:])))
    context.write(rows)
    return f"{rows.count()} windows of {step.interval}, {len(calls)} values each, into {step.into}"


def _measurements(context: Context, devices: str) -> list[str]:
    """All whose values are numbers."""
    numbers = ("int", "bigint", "float", "double")
    kinds = context.read(devices).dtypes[2:]
    return [f"`{name}`" if not re.fullmatch(r"\w+", name) else name for name, kind in kinds if kind in numbers]


def export(context: Context, step: Export) -> str:
    """See the module."""
    from pyspark.sql import functions as F  # noqa: N812

    read = context.read(step.devices, columns=step.columns, start=step.start, end=step.end, where=step.where)
    keys = ["device"]
    if step.partition != "none":
        pattern = {"year": "yyyy", "month": "yyyy-MM", "day": "yyyy-MM-dd"}[step.partition]
        read = read.withColumn(step.partition, F.date_format("time", pattern))
        keys.append(step.partition)
    target = context.pipeline.path(step.to)
    read.write.mode("overwrite").partitionBy(*keys).parquet(target)
    rows = context.spark.read.parquet(target).count()
    return f"{rows} rows into {target}"
