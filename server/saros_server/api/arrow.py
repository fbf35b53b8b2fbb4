"""Blocks and Arrow: what a result looks like to clients, and what a client's columns look like to the store.

    BOOLEAN bool · INT32 int32 · INT64 int64 · FLOAT float32 · DOUBLE float64 · TEXT, STRING string · BLOB binary
    TIMESTAMP timestamp[unit, zone] · DATE date32 · the Time column timestamp[unit, zone]

Values are not copied where the layouts agree (everything but BOOLEAN, DATE and masks). Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.dates import dates_of, days_of
from saros_storage.base.errors import UserMistake
from saros_storage.base.text_conversion import to_arrow as text_to_arrow
from saros_storage.base.types import BoolArray, DataType, NumericArray, TimeUnit
from saros_wire.client_values import arrow_array

_SIMPLE: dict[DataType, pa.DataType] = {
    DataType.BOOLEAN: pa.bool_(),
    DataType.INT32: pa.int32(),
    DataType.INT64: pa.int64(),
    DataType.FLOAT: pa.float32(),
    DataType.DOUBLE: pa.float64(),
    DataType.TEXT: pa.string(),
    DataType.STRING: pa.string(),
    DataType.BLOB: pa.binary(),
    DataType.DATE: pa.date32(),
}

#: Sets of columns whose names and types are remembered.
_SHAPES_CACHED = 4_096
#: Schemas of up to so many columns are kept.
_SMALL_WIDTH = 64


def arrow_type(type_: DataType, unit: TimeUnit, zone: str) -> pa.DataType:
    """Arrow's type for a column."""
    return pa.timestamp(unit.suffix, tz=zone) if type_ is DataType.TIMESTAMP else _SIMPLE[type_]


def arrow_schema(
    names: Sequence[str], types: Sequence[DataType], *, timed: bool, unit: TimeUnit, zone: str
) -> pa.Schema:
    """Schema of a result; `timed`: a `Time` column comes first."""
    make = _small_schema if len(names) <= _SMALL_WIDTH else _schema
    return make(tuple(names), tuple(types), timed, unit, zone)


def _schema(
    names: Sequence[str],
    types: Sequence[DataType],
    timed: bool,
    unit: TimeUnit,
    zone: str,
) -> pa.Schema:
    fields = [pa.field("Time", pa.timestamp(unit.suffix, tz=zone), nullable=False)] if timed else []
    fields += [pa.field(n, arrow_type(t, unit, zone)) for n, t in zip(names, types, strict=True)]
    return pa.schema(fields)


#: Small results come again, and making the schema of one takes as long as making its rows.
_small_schema = lru_cache(_SHAPES_CACHED)(_schema)


def to_arrow(block: Block, schema: pa.Schema) -> pa.RecordBatch:
    """The block under `schema` (of `arrow_schema`)."""
    first = len(schema) - len(block.columns)
    arrays = [_array(column, schema, place) for place, column in enumerate(block.columns, first)]
    if first:
        times = pa.py_buffer(np.ascontiguousarray(block.times))
        arrays.insert(0, pa.Array.from_buffers(schema.field(0).type, block.rows, [None, times]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(column: Column, schema: pa.Schema, place: int) -> pa.Array:
    values = column.values
    if isinstance(values, TextArray):
        return text_to_arrow(values, column.valid, binary=column.type is DataType.BLOB)
    validity = None if column.valid is None else pa.py_buffer(np.packbits(column.valid, bitorder="little"))
    rows, type_ = len(values), _SIMPLE.get(column.type) or schema.field(place).type
    if column.type is DataType.BOOLEAN:
        values = np.packbits(values, bitorder="little")
    elif column.type is DataType.DATE:
        values = days_of(values).astype(np.int32)
    return pa.Array.from_buffers(type_, rows, [validity, pa.py_buffer(np.ascontiguousarray(values))])


# ---------------------------------------------------------------------------------------------- from clients

_FROM_NUMPY: dict[str, tuple[DataType, type[np.generic]]] = {
    "b1": (DataType.BOOLEAN, np.bool_),
    "i1": (DataType.INT32, np.int32),
    "i2": (DataType.INT32, np.int32),
    "i4": (DataType.INT32, np.int32),
    "i8": (DataType.INT64, np.int64),
    "u1": (DataType.INT32, np.int32),
    "u2": (DataType.INT32, np.int32),
    "u4": (DataType.INT64, np.int64),
    "f2": (DataType.FLOAT, np.float32),
    "f4": (DataType.FLOAT, np.float32),
    "f8": (DataType.DOUBLE, np.float64),
}


#: Arrow types whose values are ours as they lie there: the shortest way for columns without nulls.
_FROM_ARROW: dict[pa.DataType, tuple[DataType, type[np.generic]]] = {
    pa.int32(): (DataType.INT32, np.int32),
    pa.int64(): (DataType.INT64, np.int64),
    pa.float32(): (DataType.FLOAT, np.float32),
    pa.float64(): (DataType.DOUBLE, np.float64),
}


def columns_of(batch: pa.RecordBatch) -> dict[str, Column | pa.Array]:
    """A batch's columns behind the first, by name: as ours if all are numbers of one type without nulls.

    That is the shortest way for many columns: one copy, and no object of Arrow for each.
    """
    names, found = _shape_of(batch.schema.remove_metadata().serialize().to_pybytes())
    if found is not None:
        try:
            matrix = batch.remove_column(0).to_tensor(row_major=False).to_numpy().T
        except pa.ArrowTypeError:  # a null
            matrix = None
        if matrix is not None:
            return {name: Column(found, values) for name, values in zip(names, matrix, strict=True)}
    return dict(zip(names, batch.columns[1:], strict=True))


@lru_cache(_SHAPES_CACHED)
def _shape_of(schema: bytes) -> tuple[list[str], DataType | None]:
    """The names of the columns behind the first, and their type, if they are numbers of one."""
    read = pa.ipc.read_schema(pa.py_buffer(schema))
    types = set(read.types[1:])
    known = _FROM_ARROW.get(types.pop()) if len(types) == 1 else None
    return read.names[1:], None if known is None else known[0]


def to_column(name: str, values: object, unit: TimeUnit) -> Column:
    """A client's column (NumPy, Arrow, pandas, list) as ours; one that is ours already stays as it is.

    Raises UnreadableValues, UserMistake (507 for a type we do not have, 2008 for a value that does not fit): both name
    the column.
    """
    if type(values) is Column:
        return values
    if isinstance(values, pa.Array) and not values.null_count:
        found = _FROM_ARROW.get(values.type)
        if found is not None:
            return Column(found[0], _numbers_at(values, found[1]))
    if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
        known = _FROM_NUMPY.get(values.dtype.str[1:])
        if known is not None and values.ndim == 1:
            return Column(known[0], np.ascontiguousarray(values, known[1]))
    what = f"column {name}"
    return _from_arrow(arrow_array(values, what), unit, what)


def _from_arrow(array: pa.Array, unit: TimeUnit, what: str) -> Column:
    target = _target(array.type, unit)
    if target is None:
        if array.null_count == len(array):
            return Column.nulls(DataType.DOUBLE, len(array))  # without values, any type does
        raise UserMistake(f"{what}: columns of Arrow type {array.type} cannot be stored", code=507)
    data_type, storage_type = target
    if array.type != storage_type:
        try:
            array = array.cast(storage_type)
        except pa.ArrowInvalid as error:
            raise UserMistake(f"{what}: a value does not fit {data_type.name}: {error}", code=2008) from error
    valid: BoolArray | None = None
    if array.null_count:
        valid = np.asarray(array.is_valid())
    if data_type.is_text:
        return Column(data_type, _text(array), valid)
    return Column(data_type, _numbers(array, data_type), valid)


@lru_cache
def _target(type_: pa.DataType, unit: TimeUnit) -> tuple[DataType, pa.DataType] | None:
    """Our type for an Arrow type, and the Arrow type whose buffers are ours."""
    t: Any = pa.types
    rules: tuple[tuple[bool, DataType, pa.DataType], ...] = (
        (t.is_boolean(type_), DataType.BOOLEAN, pa.bool_()),
        (type_ in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()), DataType.INT32, pa.int32()),
        (t.is_integer(type_), DataType.INT64, pa.int64()),
        (type_ in (pa.float16(), pa.float32()), DataType.FLOAT, pa.float32()),
        (t.is_floating(type_) or t.is_decimal(type_), DataType.DOUBLE, pa.float64()),
        (t.is_string(type_) or t.is_large_string(type_), DataType.TEXT, pa.string()),
        (t.is_binary(type_) or t.is_large_binary(type_), DataType.BLOB, pa.binary()),
        (t.is_timestamp(type_), DataType.TIMESTAMP, pa.timestamp(unit.suffix)),
        (t.is_date(type_), DataType.DATE, pa.date32()),
    )
    return next(((ours, theirs) for fits, ours, theirs in rules if fits), None)


@lru_cache
def data_type_of(type_: pa.DataType) -> DataType | None:
    """The type of series that a column of this Arrow type makes; None if none does, or if it can hold no value."""
    if pa.types.is_dictionary(type_):
        return data_type_of(type_.value_type)
    if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        return DataType.TEXT if pa.types.is_string_view(type_) else DataType.BLOB
    target = None if pa.types.is_null(type_) else _target(type_, TimeUnit.MILLISECOND)
    return None if target is None else target[0]


def _text(array: pa.Array) -> TextArray:
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4)
    return TextArray(bounds, np.frombuffer(b"" if data is None else data, np.uint8))


def _numbers(array: pa.Array, type_: DataType) -> NumericArray:
    if type_ is DataType.BOOLEAN:
        filled = array.fill_null(False) if array.null_count else array
        return np.asarray(filled.to_numpy(zero_copy_only=False))
    dtype = {DataType.DATE: np.int32, DataType.TIMESTAMP: np.int64}.get(type_) or array.type.to_pandas_dtype()
    numbers = _numbers_at(array, dtype)
    return dates_of(numbers) if type_ is DataType.DATE else numbers


def _numbers_at(array: pa.Array, dtype: Any) -> NumericArray:
    """The array's buffer of values, not copied."""
    numbers: NumericArray = np.frombuffer(
        array.buffers()[1], dtype, len(array), array.offset * np.dtype(dtype).itemsize
    )
    return numbers


def to_times(times: object, unit: TimeUnit, zone: str) -> NumericArray:
    """A client's times as int64 in `unit`: shape (n,). Naive datetimes are in `zone`.

    Raises UnreadableValues, UserMistake 2007.
    """
    if type(times) is np.ndarray and times.dtype == np.int64 and times.ndim == 1:
        return np.ascontiguousarray(times, np.int64)
    if isinstance(times, pa.Int64Array) and not times.null_count:
        return _numbers_at(times, np.int64)
    array = arrow_array(times, "times")
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("ms"))
    if array.null_count:
        raise UserMistake("a time is null: every row needs a time", code=2007)
    if not len(array):
        return np.empty(0, np.int64)
    if not pa.types.is_timestamp(array.type) and not pa.types.is_integer(array.type):
        texts = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
        remedy = "; np.array(times, 'datetime64[ms]') makes them of ISO 8601 texts" if texts else ""
        raise UserMistake(f"times must be integers or timestamps, not {array.type}{remedy}", code=2007)
    try:
        return np.asarray(_in_unit(array, unit, zone).cast(pa.int64()).to_numpy())
    except pa.ArrowInvalid as error:
        cut = f"; np.array(times, 'datetime64[{unit.suffix}]') cuts off what is finer"
        remedy = cut if "lose data" in str(error) else ""
        raise UserMistake(f"a time cannot be held in {unit.suffix}: {error}{remedy}", code=2007) from error


def _in_unit(times: pa.Array, unit: TimeUnit, zone: str) -> pa.Array:
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(times.type):
        return times
    if times.type.tz is None:
        times = pc.assume_timezone(times, zone, ambiguous="earliest", nonexistent="latest")
    return times.cast(pa.timestamp(unit.suffix, tz=times.type.tz))
