"""The steps import, rollup and export, on Spark.

    import   files -> device, time, values | reason -> rejected rows, or rows without duplicates -> tablets
    rollup   windows of the server's aggregates -> tablets of other devices
    export   rows by device -> Parquet

A repeated step has the same result, because points are upserted and folders are replaced. The job that writes rows also
counts them (with Spark's Observation), so no input is read or computed twice.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

import msgspec

from saros_spark.base.errors import SourceError
from saros_spark.base.options import ScanOptions
from saros_spark.base.options import scan_options as parsed_options
from saros_spark.pipeline.definition import Export, Import, Pipeline, Rollup, Step, TimeColumn
from saros_spark.session import scan, scan_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

_REASON, _ORDER, _RAW = "_saros_reason", "_saros_order", "row"
_ROWS = "rows"


class Context(msgspec.Struct, frozen=True):
    """The values that steps share; `connecting` has options of format saros."""

    spark: SparkSession
    pipeline: Pipeline
    connecting: Mapping[str, str]
    #: Finished steps with their summaries. The report links to their files.
    done: list[tuple[Step, str]] = msgspec.field(default_factory=list)

    def options(self, devices: str, **options: object) -> ScanOptions:
        """Return the options of a relation, with which it can be read without a DataFrame. Raises SourceError."""
        return parsed_options(scan_options(devices=devices, **self.connecting, **options))

    def read(self, devices: str, **options: object) -> DataFrame:
        """Return the DataFrame of a relation. Raises SourceError."""
        login = {name: value for name, value in self.connecting.items() if name != "url"}
        return scan(self.spark, self.connecting["url"], devices, **login, **options)  # type: ignore[arg-type]

    def write(self, frame: DataFrame) -> int:
        """Write rows by device; return their number."""
        counted, rows = _counted(frame)
        counted.write.format("saros").options(**self.connecting).mode("append").save()
        return _observed(rows, _ROWS)


def _counted(frame: DataFrame) -> tuple[DataFrame, Observation]:
    """Add an observation to the frame, and return both. The next action stores the number of rows in it."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812 - the customary name

    rows = Observation()
    return frame.observe(rows, F.count(F.lit(1)).alias(_ROWS)), rows


def _observed(observation: Observation, name: str) -> int:
    """Return a number that an action has observed, or 0 if Spark skipped the action because there are no rows."""
    return int(observation.get.get(name) or 0)


# ---------------------------------------------------------------------------------------------- import


def import_files(context: Context, step: Import) -> str:
    """Run the step import; return its summary. Raises SourceError if too many rows are rejected."""
    from pyspark.sql import functions as F  # noqa: N812

    checked, reasons = _checked(_files(context, step), step)
    checked = checked.persist()
    try:
        good, counts = _reject(context, step, checked, reasons)
        bad = sum(counts.values())
        told = "; ".join(f"{count} x {reason}" for reason, count in sorted(counts.items()))
        if bad > step.rejected_max * (good + bad):
            raise SourceError(
                f"{bad} of {good + bad} rows are rejected, more than rejected_max allows ({step.rejected_max:.2%}):"
                f" {told}"
            )
        written = context.write(_distinct(checked.where(F.col(_REASON).isNull()), step))
    finally:
        checked.unpersist()
    said = f"{written} rows, {good - written} duplicates, {bad} rejected"
    return f"{said}: {told}" if told else said


def _reject(context: Context, step: Import, checked: DataFrame, reasons: list[str]) -> tuple[int, dict[str, int]]:
    """Write the rejected rows if the step asks for them.

    Return the number of good rows, and of rejected rows by reason.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    seen, reason = Observation(), F.col(_REASON)
    counts = [F.count_if(reason == text).alias(str(number)) for number, text in enumerate(reasons)]
    observed = checked.observe(seen, F.count_if(reason.isNull()).alias(_ROWS), *counts)
    rejected = observed.where(reason.isNotNull()).withColumnRenamed(_REASON, "reason").drop(_ORDER)
    if step.rejected is None:
        rejected.write.mode("overwrite").format("noop").save()
    else:
        rejected.write.mode("overwrite").json(context.pipeline.path(step.rejected))
    found = {text: _observed(seen, str(number)) for number, text in enumerate(reasons)}
    return _observed(seen, _ROWS), {text: count for text, count in found.items() if count}


def _files(context: Context, step: Import) -> DataFrame:
    """Return the rows of all files, with a column that orders them."""
    names = sorted(name for pattern in step.files for name in glob.glob(context.pipeline.path(pattern)))
    if not names:
        raise SourceError(f"no file matches {', '.join(step.files)}")
    from pyspark.sql import functions as F  # noqa: N812

    number = F.monotonically_increasing_id()
    if step.format == "tsfile":
        return context.spark.read.format("tsfile").load(names).withColumn(_ORDER, number)
    if step.format == "csv":
        frames = _tables(context, step, names)
    else:
        frames = [context.spark.read.format(step.format).load(names)]
    order = F.struct("_metadata.file_path", "_metadata.file_block_start", number).alias(_ORDER)
    written = F.replace("_metadata.file_name", F.lit("+"), F.lit("%2B"))  # in URIs (unlike in forms), + is no space
    file = F.regexp_replace(F.url_decode(written), r"\.[^.]*$", "").alias("file")
    placed = [
        frame.select(*(_column(name) for name in frame.columns if name.lower() != "file"), file, order)
        for frame in frames
    ]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), placed)


def _tables(context: Context, step: Import, names: list[str]) -> list[DataFrame]:
    """Return the tables of CSV files. Files with the same first line form one table, since each table costs a job."""
    alike: dict[bytes, list[str]] = {}
    for name in names:
        with open(name, "rb") as file:
            alike.setdefault(next((line.strip() for line in file if line.strip()), b""), []).append(name)
    options = {"header": "true", "sep": step.delimiter}
    columns = [context.spark.read.options(**options).csv(files[0]).schema for files in alike.values()]
    return [
        context.spark.read.options(**options).schema(schema).csv(files)
        for schema, files in zip(columns, alike.values(), strict=True)
    ]


def _checked(read: DataFrame, step: Import) -> tuple[DataFrame, list[str]]:
    """Return rows (time, device, values, and the reason for the rejection or null), and all possible reasons."""
    from pyspark.sql import functions as F  # noqa: N812

    kinds = {name: kind for name, kind in read.dtypes if name != _ORDER}
    names = {name.lower(): name for name in kinds}
    time = step.time.column
    missing = [name for name in (time, *step.columns, *step.types) if name.lower() not in names]
    if missing:
        raise SourceError(f"the files have no column {', '.join(missing)}; they have {', '.join(kinds)}")
    other = {time.lower(), "file", "device"}
    taken = step.columns or {name: name for name in kinds if name.lower() not in other}
    at = _time(_column(time), kinds[names[time.lower()]], step.time)
    values, broken = [], {f"{time} is not a time": at.isNull()}
    for name, measurement in taken.items():
        source = _column(name)
        if kinds[names[name.lower()]] == "string":
            type_ = step.types.get(name, "double")
            text = F.nullif(F.trim(source), F.lit(""))
            value = text.try_cast(type_)
            broken[f"{name} is not a valid {type_}"] = text.isNotNull() & value.isNull()
        else:
            value = source.try_cast(step.types[name]) if name in step.types else source
        values.append(value.alias(measurement))
    reason = F.coalesce(*(F.when(condition, F.lit(text)) for text, condition in broken.items()))
    shaped = read.select(
        at.alias("time"),
        _device(step, read).alias("device"),
        *values,
        reason.alias(_REASON),
        F.when(reason.isNotNull(), F.to_json(F.struct(*map(_column, kinds)))).alias(_RAW),
        F.col(_ORDER),
    )
    for rule in step.rules:
        no = F.when(~F.expr(rule.keep), F.lit(rule.name))  # a condition that is null rejects no row, as in SQL's CHECK
        shaped = shaped.withColumn(_REASON, F.coalesce(F.col(_REASON), no))
    return shaped, list(dict.fromkeys([*broken, *(rule.name for rule in step.rules)]))


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
    """Return the template with {names} replaced by the columns' values. Each value becomes one node of the path."""
    from pyspark.sql import functions as F  # noqa: N812

    if not step.device:
        if "device" not in read.columns:
            raise SourceError("import has no device, and the files have no column device")
        return F.col("device")
    parts = []
    for number, text in enumerate(re.split(r"\{([^{}]*)\}", step.device)):
        if number % 2 == 0:
            parts.append(F.lit(text))
            continue
        if text not in read.columns:
            raise SourceError(f"device refers to {{{text}}}, but the files have no such column")
        value = _column(text).cast("string")
        quoted = F.concat(F.lit("`"), F.replace(value, F.lit("`"), F.lit("``")), F.lit("`"))
        parts.append(F.when(value.rlike("^[A-Za-z_][A-Za-z0-9_]*$"), value).otherwise(quoted))
    return F.concat(*parts)


def _distinct(rows: DataFrame, step: Import) -> DataFrame:
    """Return one row for each device and time."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    order = F.col(_ORDER).desc() if step.duplicates == "last" else F.col(_ORDER)
    numbered = rows.withColumn("_n", F.row_number().over(Window.partitionBy("device", "time").orderBy(order)))
    return numbered.where("_n = 1").drop("_n", _ORDER, _REASON, _RAW)


# ---------------------------------------------------------------------------------------------- rollup, export


def roll_up(context: Context, step: Rollup) -> str:
    """Run the step rollup; return its summary."""
    from pyspark.sql import functions as F  # noqa: N812

    columns = step.columns or measurements_of(context, step.devices)
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
    return f"{context.write(rows)} windows of {step.interval}, {len(calls)} values each, into {step.into}"


def measurements_of(context: Context, devices: str) -> list[str]:
    """Return the numeric measurements of devices, quoted for SQL where necessary."""
    numbers = ("int", "bigint", "float", "double")
    kinds = context.read(devices).dtypes[2:]
    return [f"`{name}`" if not re.fullmatch(r"\w+", name) else name for name, kind in kinds if kind in numbers]


def export(context: Context, step: Export) -> str:
    """Run the step export; return its summary."""
    from pyspark.sql import functions as F  # noqa: N812

    read = context.read(step.devices, columns=step.columns, start=step.start, end=step.end, where=step.where)
    keys = ["device"]
    if step.partition != "none":
        pattern = {"year": "yyyy", "month": "yyyy-MM", "day": "yyyy-MM-dd"}[step.partition]
        read = read.withColumn(step.partition, F.date_format("time", pattern))
        keys.append(step.partition)
    target = context.pipeline.path(step.to)
    counted, rows = _counted(read)
    counted.write.mode("overwrite").partitionBy(*keys).parquet(target)
    return f"{_observed(rows, _ROWS)} rows into {target}"
