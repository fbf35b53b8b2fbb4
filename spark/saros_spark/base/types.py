"""Convert between the types of Saros, Arrow and Spark, and find the common type of two types.

    BOOLEAN bool boolean · INT32 int32 int · INT64 int64 bigint · FLOAT float32 float · DOUBLE float64 double
    TEXT, STRING string string · BLOB binary binary · DATE date32 date · TIMESTAMP, time timestamp[us, UTC] timestamp

Spark's timestamps are in microseconds, so times in nanoseconds become integers (bigint) unless the options say
otherwise. Measurements with the same name share a column if no value changes: INT32 and INT64 become bigint, INT32 and
the floats double, FLOAT and DOUBLE double, TEXT and STRING string. Pure; PySpark is imported only by the functions that
return its types.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from saros_spark.base.errors import SourceError
from saros_spark.base.options import TimeType
from saros_storage.base.arrow import arrow_type
from saros_storage.base.types import DataType, TimeUnit

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: The key of the column metadata that holds the table's options as JSON.
_OPTIONS = "saros.options"
INSTANT = pa.timestamp("us", tz="UTC")
_WIDER: dict[frozenset[DataType], DataType] = {
    frozenset({DataType.INT32, DataType.INT64}): DataType.INT64,
    frozenset({DataType.INT32, DataType.FLOAT}): DataType.DOUBLE,
    frozenset({DataType.INT32, DataType.DOUBLE}): DataType.DOUBLE,
    frozenset({DataType.FLOAT, DataType.DOUBLE}): DataType.DOUBLE,
    frozenset({DataType.TEXT, DataType.STRING}): DataType.STRING,
}
_NAMED = {"boolean", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp"}


def instant_type(time_type: TimeType, unit: TimeUnit) -> pa.DataType:
    """Return Arrow's type for times and TIMESTAMP series."""
    if time_type == "auto":
        return pa.int64() if unit is TimeUnit.NANOSECOND else INSTANT
    return INSTANT if time_type == "timestamp" else pa.int64()


def wider(one: DataType, other: DataType) -> DataType | None:
    """Return the type that holds the values of both types without loss, or None if there is no such type."""
    return one if one is other else _WIDER.get(frozenset({one, other}))


def common_type(types: Mapping[str, DataType]) -> DataType:
    """Return the type that holds the values of all measurements; there is at least one. Raises SourceError."""
    (first, common), *others = types.items()
    for name, type_ in others:
        both = wider(common, type_)
        if both is None:
            raise SourceError(
                f"{first} is {common.name} and {name} is {type_.name}, which no column can hold together; choose"
                " measurements with the option columns, or cast all to a type such as string with valueType"
            )
        first, common = name, both
    return common


def field_of(name: str, type_: DataType, instant: pa.DataType) -> pa.Field:
    """Return the column of a series. The column's metadata names the type of the series."""
    return pa.field(name, arrow_type(type_, instant), metadata={"saros.type": type_.name})


def to_spark(schema: pa.Schema) -> StructType:
    """Return Spark's schema. Every column is nullable, because Spark compares nullability strictly."""
    from pyspark.sql import types as spark

    simple: dict[pa.DataType, Any] = {
        pa.bool_(): spark.BooleanType(),
        pa.int32(): spark.IntegerType(),
        pa.int64(): spark.LongType(),
        pa.float32(): spark.FloatType(),
        pa.float64(): spark.DoubleType(),
        pa.string(): spark.StringType(),
        pa.binary(): spark.BinaryType(),
        pa.date32(): spark.DateType(),
        INSTANT: spark.TimestampType(),
    }
    fields = []
    for field in schema:
        metadata = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        fields.append(spark.StructField(field.name, simple[field.type], True, metadata))
    return spark.StructType(fields)


def keep_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return the schema of a table with its options as metadata, since Spark's catalog does not pass them on."""
    from pyspark.sql import types as spark

    first, *others = schema.fields
    metadata = {**first.metadata, _OPTIONS: json.dumps(dict(options))}
    return spark.StructType([spark.StructField(first.name, first.dataType, first.nullable, metadata), *others])


def kept_options(schema: StructType) -> dict[str, str]:
    """Return the options that `keep_options` put into the schema; empty if there are none."""
    texts = (field.metadata.get(_OPTIONS) for field in schema.fields)
    return next((json.loads(text) for text in texts if text is not None), {})


def from_spark(schema: StructType, *, void: bool = False) -> pa.Schema:
    """Return Arrow's schema for Spark's. Raises SourceError naming the first column whose type Saros does not have.

    `void` accepts columns of Spark's null type, which can be written but not read.
    """
    from pyspark.sql import types as spark

    simple: dict[type[object], pa.DataType] = {
        spark.BooleanType: pa.bool_(),
        spark.ByteType: pa.int8(),
        spark.ShortType: pa.int16(),
        spark.IntegerType: pa.int32(),
        spark.LongType: pa.int64(),
        spark.FloatType: pa.float32(),
        spark.DoubleType: pa.float64(),
        spark.StringType: pa.string(),
        spark.BinaryType: pa.binary(),
        spark.DateType: pa.date32(),
        spark.TimestampType: INSTANT,
        spark.TimestampNTZType: pa.timestamp("us"),
    }
    if void:
        simple[spark.NullType] = pa.null()
    fields = []
    for field in schema.fields:
        found = simple.get(type(field.dataType))
        if found is None:
            raise SourceError(
                f"column {field.name} is {field.dataType.simpleString()}, which Saros does not store; cast it"
            )
        fields.append(pa.field(field.name, found))
    return pa.schema(fields)


def named_type(name: str) -> pa.DataType:
    """Return the Arrow type for a Spark type name. Raises SourceError."""
    names = {"int": "int32", "bigint": "int64", "boolean": "bool", "date": "date32"}
    if name not in _NAMED:
        raise SourceError(f"valueType must be one of {', '.join(sorted(_NAMED))}, not {name!r}")
    return INSTANT if name == "timestamp" else pa.type_for_alias(names.get(name, name))
