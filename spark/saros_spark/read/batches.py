"""Convert results to exactly the schema that Spark expects.

Spark compares a batch's schema strictly (order, types, nullability) and fails if the schema differs. These functions
therefore select columns by name, fill missing columns with nulls, widen narrower types, and convert times to
microseconds. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from saros_spark.base.errors import SourceError


def conform(batch: pa.RecordBatch, target: pa.Schema, names: Mapping[str, str]) -> pa.RecordBatch:
    """Convert a batch to `target`; `names` maps the target's column names to the batch's. Raises SourceError."""
    places = {name: number for number, name in enumerate(batch.schema.names)}
    arrays = []
    for field in target:
        place = places.get(names.get(field.name, field.name))
        if place is None:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            arrays.append(cast(batch.column(place), field.type, field.name))
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def cast(array: pa.Array, type_: pa.DataType, name: str) -> pa.Array:
    """Cast an array to `type_` without loss, except that nanoseconds are truncated to microseconds.

    Raises SourceError.
    """
    if array.type == type_:
        return array
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns" and pa.types.is_timestamp(type_):
        array = pc.floor_temporal(array, unit="microsecond")  # as documented for the option timeType
    try:
        return array.cast(type_)
    except pa.ArrowInvalid as error:
        raise SourceError(
            f"column {name} cannot be {type_}: {error}"
            + ("; timeType=long reads times as they are" if pa.types.is_timestamp(type_) else "")
        ) from error


def melt(batch: pa.RecordBatch, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Turn rows by device into points (time, device, measurement, value).

    Yield one batch for each measurement that has values.
    """
    time, device, *_ = batch.columns
    value = target.field(3)
    for name, column in zip(batch.schema.names[2:], batch.columns[2:], strict=True):
        if column.null_count == len(column):
            continue
        points = [time, device, pa.repeat(pa.scalar(name), len(column)), column]
        if column.null_count:
            present = column.is_valid()
            points = [array.filter(present) for array in points]
        points[3] = cast(points[3], value.type, name)
        yield pa.RecordBatch.from_arrays(points, schema=target)
