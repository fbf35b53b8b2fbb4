"""Convert columns, text and numbers to Arrow arrays and back; map data types to Arrow types and back.

    BOOLEAN bool · INT32 int32 · INT64 int64 · FLOAT float32 · DOUBLE float64 · TEXT, STRING string · BLOB binary
    DATE date32 · TIMESTAMP as the caller chooses: a timestamp with unit and zone, or int64

Values are not copied where the layouts agree (everything but BOOLEAN, DATE and masks). Arrow is imported at its first
use. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np

from saros_storage.base.block import Column, TextArray
from saros_storage.base.dates import dates_of, days_of
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import NUMPY_DTYPE, BoolArray, DataType, NumericArray, TimeUnit

#: An Arrow array, type or module. Any, because pyarrow has no type annotations that mypy could use.
Arrow = Any
#: Bytes of at least this value are not ASCII. Scanning for them takes a twentieth of the time of Arrow's validating
#: cast.
_NOT_ASCII = 128


def arrow_compute() -> Arrow:
    """Import and return Arrow's compute module."""
    import pyarrow.compute as pc

    return pc


# ---------------------------------------------------------------------------------------------- types


@cache
def arrow_types() -> Mapping[DataType, Arrow]:
    """Return the Arrow types of all data types except TIMESTAMP, whose type depends on unit and zone."""
    import pyarrow as pa

    return {
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


def arrow_type(type_: DataType, instant: Arrow) -> Arrow:
    """Return the Arrow type of a data type; `instant` is the Arrow type for TIMESTAMP."""
    return instant if type_ is DataType.TIMESTAMP else arrow_types()[type_]


@lru_cache
def data_type_of(type_: Arrow) -> DataType | None:
    """Return the data type that stores the values of an Arrow type, or None if Saros cannot store them."""
    import pyarrow as pa

    if pa.types.is_dictionary(type_):
        return data_type_of(type_.value_type)
    if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        return DataType.TEXT if pa.types.is_string_view(type_) else DataType.BLOB
    return None if pa.types.is_null(type_) else _stored_type(type_)


@lru_cache
def _stored_type(type_: Arrow) -> DataType | None:
    """Return the result of `data_type_of` for an Arrow type that is neither a view nor a dictionary."""
    import pyarrow as pa

    t = pa.types
    rules: tuple[tuple[bool, DataType], ...] = (
        (t.is_boolean(type_), DataType.BOOLEAN),
        (type_ in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()), DataType.INT32),
        (t.is_integer(type_), DataType.INT64),
        (type_ in (pa.float16(), pa.float32()), DataType.FLOAT),
        (t.is_floating(type_) or t.is_decimal(type_), DataType.DOUBLE),
        (t.is_string(type_) or t.is_large_string(type_), DataType.TEXT),
        (t.is_binary(type_) or t.is_large_binary(type_), DataType.BLOB),
        (t.is_timestamp(type_), DataType.TIMESTAMP),
        (t.is_date(type_), DataType.DATE),
    )
    return next((found for fits, found in rules if fits), None)


# ---------------------------------------------------------------------------------------------- to Arrow


def column_to_arrow(column: Column, type_: Arrow) -> Arrow:
    """Return the column as an Arrow array; `type_` is the result of `arrow_type` for the column's type."""
    values = column.values
    if isinstance(values, TextArray):
        return text_to_arrow(values, column.valid, binary=column.type is DataType.BLOB)
    if column.type is DataType.DATE:
        values = days_of(values).astype(np.int32)
    return numbers_to_arrow(values, column.valid, type_)


def numbers_to_arrow(values: NumericArray, valid: BoolArray | None = None, type_: Arrow | None = None) -> Arrow:
    """Return an Arrow array that shares the buffer of `values`. By default, the NumPy dtype determines its type.

    `pa.array` is avoided because it imports pandas.
    """
    import pyarrow as pa

    raw = np.packbits(values, bitorder="little") if values.dtype.kind == "b" else np.ascontiguousarray(values)
    type_ = pa.from_numpy_dtype(values.dtype) if type_ is None else type_
    return pa.Array.from_buffers(type_, len(values), [_mask_buffer(valid), pa.py_buffer(raw)])


def text_to_arrow(text: TextArray, valid: BoolArray | None = None, *, binary: bool = False) -> Arrow:
    """Return an Arrow array that shares the text's buffers: an array of strings, or of opaque bytes if `binary`.

    Bytes that are not UTF-8 become U+FFFD, as in Java. They occur after a series' type was changed from BLOB to TEXT,
    and in files that other programs wrote.
    """
    import pyarrow as pa

    offsets = pa.py_buffer(np.ascontiguousarray(text.offsets))
    data = pa.py_buffer(np.ascontiguousarray(text.data))
    ascii_only = not binary and text.data[text.offsets[0] : text.offsets[-1]].max(initial=0) < _NOT_ASCII
    buffers = [_mask_buffer(valid), offsets, data]
    array = pa.Array.from_buffers(pa.string() if ascii_only else pa.binary(), len(text), buffers)
    if binary or ascii_only:
        return array
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        # Invalid UTF-8 is rare, so it does not matter that this converts the values one by one.
        texts = [None if value is None else value.decode("utf-8", "replace") for value in array.to_pylist()]
        return pa.array(texts, pa.string())


def _mask_buffer(valid: BoolArray | None) -> Arrow | None:
    if valid is None:
        return None
    import pyarrow as pa

    return pa.py_buffer(np.packbits(valid, bitorder="little"))


# ---------------------------------------------------------------------------------------------- from Arrow


def column_from_arrow(array: Arrow, unit: TimeUnit, what: str) -> Column:
    """Convert an Arrow array that is neither a view nor a dictionary to a column, and its timestamps to `unit`.

    Raises UserMistake with a message that starts with `what`; its code is 507 if the type cannot be stored, and 2008 if
    a value does not fit.
    """
    import pyarrow as pa

    type_ = _stored_type(array.type)
    if type_ is None:
        if array.null_count == len(array):
            return Column.nulls(DataType.DOUBLE, len(array))  # any type will do: all values are null
        raise UserMistake(f"{what}: columns of Arrow type {array.type} cannot be stored", code=507)
    stored = pa.timestamp(unit.suffix) if type_ is DataType.TIMESTAMP else arrow_types()[type_]
    if array.type != stored:
        try:
            array = array.cast(stored)
        except pa.ArrowInvalid as error:
            raise UserMistake(f"{what}: a value does not fit {type_.name}: {error}", code=2008) from error
    valid = numbers_from_arrow(array.is_valid()) if array.null_count else None
    if type_.is_text:
        return Column(type_, text_from_arrow(array), valid)
    numbers = numbers_from_arrow(array, NUMPY_DTYPE[type_])
    if type_ is DataType.BOOLEAN and valid is not None:
        numbers = numbers & valid
    return Column(type_, dates_of(numbers) if type_ is DataType.DATE else numbers, valid)


def numbers_from_arrow(array: Arrow, dtype: np.dtype[Any] | None = None) -> NumericArray:
    """Return the values of an Arrow array of numbers or booleans; slots of nulls contain arbitrary values.

    For dates and timestamps, `dtype` is the type of the values in the buffer. None stands for the array's own type.
    `Array.to_numpy` is avoided because it imports pandas.
    """
    dtype = np.dtype(array.type.to_pandas_dtype()) if dtype is None else dtype
    count, start = len(array), array.offset
    if count == 0:
        return np.empty(0, dtype)
    _, values = array.buffers()
    if dtype.kind == "b":
        bits = np.unpackbits(np.frombuffer(values, np.uint8), bitorder="little")
        return bits[start : start + count].view(np.bool_)
    return np.frombuffer(values, dtype, count, start * dtype.itemsize)


def text_from_arrow(array: Arrow) -> TextArray:
    """Return the text of an Arrow string or binary array. Slots of nulls contain arbitrary text."""
    _, offsets, data = array.buffers()
    if offsets is None:
        return TextArray(np.zeros(len(array) + 1, np.int32), np.empty(0, np.uint8))
    bounds = np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4)
    return TextArray(bounds, np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8))
