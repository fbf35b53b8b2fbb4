"""Blocks and Arrow: results for clients, and the columns that clients write.

Types and layouts are those of `saros_storage.base.arrow`; instants, and the Time column, are timestamp[unit, zone] with
the zone of the session. Pure: any thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from saros_storage.base.arrow import (
    arrow_type,
    arrow_types,
    column_from_arrow,
    column_to_arrow,
    numbers_from_arrow,
    numbers_to_arrow,
)
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import NUMERIC_TYPES, NUMPY_DTYPE, DataType, NumericArray, TimeUnit
from saros_wire.client_values import arrow_array

_TYPES = arrow_types()

#: Sets of columns whose names and types are remembered.
_SHAPES_CACHED = 4_096
#: Schemas of up to so many columns are kept.
_SMALL_WIDTH = 64


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
    instant = pa.timestamp(unit.suffix, tz=zone)
    fields = [pa.field("Time", instant, nullable=False)] if timed else []
    fields += [pa.field(n, arrow_type(t, instant)) for n, t in zip(names, types, strict=True)]
    return pa.schema(fields)


#: Small results come again, and making the schema of one takes as long as making its rows.
_small_schema = lru_cache(_SHAPES_CACHED)(_schema)


def encoded_schema(names: Sequence[str], types: Sequence[DataType], *, timed: bool, unit: TimeUnit, zone: str) -> bytes:
    """The same schema as Arrow IPC."""
    encode = _small_encoded_schema if len(names) <= _SMALL_WIDTH else _encoded_schema
    return encode(tuple(names), tuple(types), timed, unit, zone)


def _encoded_schema(
    names: tuple[str, ...], types: tuple[DataType, ...], timed: bool, unit: TimeUnit, zone: str
) -> bytes:
    encoded: bytes = arrow_schema(names, types, timed=timed, unit=unit, zone=zone).serialize().to_pybytes()
    return encoded


#: Encoding takes longer than making the rows of a small result.
_small_encoded_schema = lru_cache(_SHAPES_CACHED)(_encoded_schema)


def to_arrow(block: Block, schema: pa.Schema) -> pa.RecordBatch:
    """The block under `schema` (of `arrow_schema`)."""
    first = len(schema) - len(block.columns)
    arrays = [
        column_to_arrow(column, _TYPES.get(column.type) or schema.field(place).type)
        for place, column in enumerate(block.columns, first)
    ]
    if first:
        arrays.insert(0, numbers_to_arrow(block.times, None, schema.field(0).type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


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


#: Arrow types of numbers whose buffers are columns as they are: the shortest way for columns without nulls.
_FROM_ARROW = {_TYPES[type_]: (type_, NUMPY_DTYPE[type_]) for type_ in NUMERIC_TYPES}


#: By digest of the metadata of a message: offset of its first column in its body, and bytes from each to the next.
#: None: they are no such columns.
_layouts: dict[bytes, tuple[int, int] | None] = {}


def columns_of(batch: pa.RecordBatch, message: pa.Message | None) -> dict[str, Column | pa.Array]:
    """Return a batch's columns after the first, by name: as `Column` if all are numbers of one type without nulls.

    These are views of the body of the batch's message. This is the shortest way for many columns: no copy, and no Arrow
    object for each.
    """
    names, found = _shape_of(batch.schema.remove_metadata().serialize().to_pybytes())
    layout = None if found is None or message is None else _layout_of(batch, message)
    if found is None or message is None or layout is None:
        return dict(zip(names, batch.columns[1:], strict=True))
    dtype, (offset, stride) = np.dtype(NUMPY_DTYPE[found]), layout
    shape, strides = (len(names), batch.num_rows), (stride, dtype.itemsize)
    matrix = np.ndarray(shape, dtype, message.body, offset, strides)
    return {name: Column(found, values) for name, values in zip(names, matrix, strict=True)}


def _layout_of(batch: pa.RecordBatch, message: pa.Message) -> tuple[int, int] | None:
    """Return the layout of a message. Its metadata determines it, so it is looked for once per shape and row count."""
    digest = hashlib.blake2b(message.metadata, digest_size=16).digest()
    if digest not in _layouts:
        if len(_layouts) >= _SHAPES_CACHED:
            _layouts.clear()
        _layouts[digest] = _find_layout(batch, message.body)
    return _layouts.get(digest)


def _find_layout(batch: pa.RecordBatch, body: pa.Buffer) -> tuple[int, int] | None:
    buffers = [column.buffers() for column in batch.columns[1:]]
    if not batch.num_rows or any(validity is not None for validity, _ in buffers):
        return None
    offsets = np.array([values.address for _, values in buffers]) - body.address
    stride = int(offsets[1] - offsets[0]) if len(offsets) > 1 else 0
    is_inside = offsets[0] >= 0 and offsets[-1] + buffers[-1][1].size <= body.size  # not decompressed elsewhere
    return (int(offsets[0]), stride) if is_inside and (np.diff(offsets) == stride).all() else None


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
            return Column(found[0], numbers_from_arrow(values, found[1]))
    if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
        known = _FROM_NUMPY.get(values.dtype.str[1:])
        if known is not None and values.ndim == 1:
            return Column(known[0], np.ascontiguousarray(values, known[1]))
    what = f"column {name}"
    return column_from_arrow(arrow_array(values, what), unit, what)


def to_times(times: object, unit: TimeUnit, zone: str) -> NumericArray:
    """A client's times as int64 in `unit`: shape (n,). Naive datetimes are in `zone`.

    Raises UnreadableValues, UserMistake 2007.
    """
    if type(times) is np.ndarray and times.dtype == np.int64 and times.ndim == 1:
        return np.ascontiguousarray(times, np.int64)
    if isinstance(times, pa.Int64Array) and not times.null_count:
        return numbers_from_arrow(times, NUMPY_DTYPE[DataType.INT64])
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
