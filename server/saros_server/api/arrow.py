"""Convert between blocks and Arrow: results for clients, and the columns that clients write.

Types and layouts are those of `saros_storage.base.arrow`; timestamps and the Time column are timestamp[unit, zone] in
the session's time zone. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from saros_engine.plan.plan import Field
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
from saros_wire.payload import MESSAGE_BYTES_MAX

_TYPES = arrow_types()

#: The maximum number of result schemas that are cached.
_SHAPES_CACHED = 4_096
#: The maximum number of columns of a schema that is cached.
_SMALL_WIDTH = 64
#: If a block has at most this many rows, its columns are copied into one buffer, which is faster than sending each of
#: them.
_FEW_ROWS = 64
#: The maximum size of the columns in a message, in bytes. This is half the size limit of a message: the other half is
#: for metadata, and for batches of text, which are split into halves with equal numbers of rows.
_BATCH_BYTES_MAX = MESSAGE_BYTES_MAX // 2
#: The numeric types whose arrays are Arrow buffers without conversion.
_PLAIN_TYPES = NUMERIC_TYPES | {DataType.TIMESTAMP}
_ALIGNMENT = 8


def arrow_schema(
    names: Sequence[str], types: Sequence[DataType], *, timed: bool, unit: TimeUnit, zone: str
) -> pa.Schema:
    """Return the schema of a result; if `timed`, a `Time` column comes first."""
    instant = pa.timestamp(unit.suffix, tz=zone)
    fields = [pa.field("Time", instant, nullable=False)] if timed else []
    fields += [pa.field(n, arrow_type(t, instant)) for n, t in zip(names, types, strict=True)]
    return pa.schema(fields)


class ResultSchema:
    """The schema of a result in three forms: an Arrow schema, Arrow IPC, and the names of the columns' types."""

    def __init__(self, fields: Sequence[Field], timed: bool, unit: TimeUnit, zone: str) -> None:
        """See `arrow_schema`."""
        types = [field.type for field in fields]
        self.arrow = arrow_schema([field.name for field in fields], types, timed=timed, unit=unit, zone=zone)
        names = [type_.name for type_ in types]
        self.type_names = ("TIMESTAMP", *names) if timed else tuple(names)

    @cached_property
    def encoded(self) -> bytes:
        """The schema as Arrow IPC."""
        encoded: bytes = self.arrow.serialize().to_pybytes()
        return encoded


def result_schema(fields: tuple[Field, ...], *, timed: bool, unit: TimeUnit, zone: str) -> ResultSchema:
    """Return the schema of a result with these fields."""
    make = _small_result_schema if len(fields) <= _SMALL_WIDTH else ResultSchema
    return make(fields, timed, unit, zone)


#: Small results recur, and building the schema of one takes as long as building its rows.
_small_result_schema = lru_cache(_SHAPES_CACHED)(ResultSchema)


def to_arrow(block: Block, schema: pa.Schema) -> pa.RecordBatch:
    """Return the block as a record batch with `schema`, which comes from `arrow_schema`."""
    first = len(schema) - len(block.columns)
    arrays = [
        column_to_arrow(column, _TYPES.get(column.type) or schema.field(place).type)
        for place, column in enumerate(block.columns, first)
    ]
    if first:
        arrays.insert(0, numbers_to_arrow(block.times, None, schema.field(0).type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class Message:
    """An Arrow IPC message of a record batch, as consecutive buffers. Buffers of columns are not copied."""

    __slots__ = ("buffers", "nbytes")

    def __init__(self, buffers: Sequence[bytes | memoryview], nbytes: int) -> None:
        """Wrap `buffers`, each of which is a view of single bytes; their total size is `nbytes`."""
        self.buffers = buffers
        self.nbytes = nbytes

    def joined(self) -> bytes | memoryview:
        """Return the message as one buffer."""
        return self.buffers[0] if len(self.buffers) == 1 else b"".join(self.buffers)

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return the record batch, whose schema is `schema`."""
        return pa.ipc.read_record_batch(pa.py_buffer(self.joined()), schema)


def encode(block: Block, schema: pa.Schema) -> list[Message]:
    """Return the block with `schema` as Arrow IPC messages, each within the size limit.

    Plain numbers without nulls are encoded without Arrow and without copying them: creating Arrow objects would take
    longer than all other work on a point query's answer, and copying a large block would take as long as sending it.
    """
    arrays = _plain_arrays(block)
    if arrays is None:
        return list(_messages(to_arrow(block, schema)))
    row_bytes = sum([array.itemsize for array in arrays])
    if block.rows * row_bytes <= _BATCH_BYTES_MAX:
        return [_plain_message(arrays)]
    step = max(_BATCH_BYTES_MAX // row_bytes, 1)
    return [_plain_message([array[at : at + step] for array in arrays]) for at in range(0, block.rows, step)]


def _messages(batch: pa.RecordBatch) -> Iterator[Message]:
    if batch.nbytes > _BATCH_BYTES_MAX and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _messages(batch.slice(0, half))
        yield from _messages(batch.slice(half))
    else:
        encoded = memoryview(batch.serialize())
        yield Message((encoded,), len(encoded))


def _plain_arrays(block: Block) -> list[NumericArray] | None:
    """Return the columns of a block of plain numbers without nulls, or None for any other block."""
    arrays: list[NumericArray] = [] if block.time is None else [block.time]
    for column in block.columns:
        if column.valid is not None or column.type not in _PLAIN_TYPES:
            return None
        arrays.append(column.numbers)
    return arrays if 0 < len(arrays) <= _SMALL_WIDTH else None


def _plain_message(arrays: Sequence[NumericArray]) -> Message:
    """Return the message of columns without nulls. Its metadata depends only on the types and the number of rows."""
    rows = len(arrays[0])
    head = _plain_head(rows, tuple([array.dtype for array in arrays]))
    if rows <= _FEW_ROWS:
        whole = b"".join([head, *[_padded(array.tobytes()) for array in arrays]])
        return Message((whole,), len(whole))
    buffers: list[bytes | memoryview] = [head]
    for array in arrays:
        buffers.append(np.ascontiguousarray(array).data.cast("B"))
        if padding := -array.nbytes % _ALIGNMENT:
            buffers.append(bytes(padding))
    return Message(buffers, sum(map(len, buffers)))


@lru_cache(_SHAPES_CACHED)
def _plain_head(rows: int, dtypes: tuple[np.dtype[Any], ...]) -> bytes:
    """Return the bytes that precede the columns in the message of a batch of numbers without nulls."""
    arrays = [numbers_to_arrow(np.zeros(rows, dtype)) for dtype in dtypes]
    batch = pa.RecordBatch.from_arrays(arrays, names=[""] * len(arrays))
    body_bytes = sum([rows * dtype.itemsize + -rows * dtype.itemsize % _ALIGNMENT for dtype in dtypes])
    return bytes(memoryview(batch.serialize())[:-body_bytes])


def _padded(data: bytes) -> bytes:
    return data if len(data) % _ALIGNMENT == 0 else data + bytes(-len(data) % _ALIGNMENT)


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


#: Numeric Arrow types whose buffers can be used as columns without conversion, if the columns have no nulls.
_FROM_ARROW = {_TYPES[type_]: (type_, NUMPY_DTYPE[type_]) for type_ in NUMERIC_TYPES}


def to_column(name: str, values: object, unit: TimeUnit, zone: str = "UTC") -> Column:
    """Convert a client's column (NumPy, Arrow, pandas, list) to a Column; a Column is returned unchanged.

    Naive datetimes are in `zone`, as in `to_times`.
    Raises UnreadableValues, UserMistake (507 for an unsupported type, 2008 for a value out of range); both name the
    column.
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
    return column_from_arrow(_zoned(arrow_array(values, what), zone), unit, what)


def to_times(times: object, unit: TimeUnit, zone: str) -> NumericArray:
    """Convert a client's times to int64 in `unit`, of shape (n,). Naive datetimes are in `zone`.

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
    times = _zoned(times, zone)
    return times.cast(pa.timestamp(unit.suffix, tz=times.type.tz)) if pa.types.is_timestamp(times.type) else times


def _zoned(values: pa.Array, zone: str) -> pa.Array:
    """Return timestamps without a time zone as timestamps in `zone`, and other values unchanged."""
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(values.type) or values.type.tz is not None:
        return values
    return pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="latest")
