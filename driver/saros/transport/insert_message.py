"""The encoding of inserts: Arrow arrays, record batches, messages. Pure: any thread.

    times, {name: values} --batch_of--> record batch --split--> parts, one a message --message--> Arrow IPC buffers
                          `-- plain NumPy that fits into one message --> Plain ----------^

Arrow arrays and plain NumPy arrays are not copied. For plain columns, the encoded bytes before the values depend only
on the number of rows and the types. These bytes are cached, so that encoding a batch creates no Arrow arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa

from saros.errors import database_error
from saros_wire import payload, protocol
from saros_wire.client_values import arrow_array
from saros_wire.device_rows import DeviceRows

#: Number of cached Arrow schemas (by names and types), and of cached heads of plain batches.
_SHAPES_KEPT = 4_096
#: Number of cached encoded schemas, and the largest number of columns of a cached schema.
_ENCODED_KEPT, _NARROW = 1_024, 64
#: Types with the same memory layout in NumPy and Arrow, and the type of times among them.
_PLAIN_TYPES = frozenset(map(np.dtype, ("<i4", "<i8", "<f4", "<f8")))
_TIME_TYPE = np.dtype("<i8")

Buffer = bytes | memoryview
PlainArray = np.ndarray[Any, Any]


class Plain(msgspec.Struct, frozen=True):
    """The encoded buffers of times and columns in plain NumPy arrays. In a message, they follow the schema."""

    names: tuple[str, ...]
    types: tuple[np.dtype[Any], ...]
    buffers: Sequence[Buffer]

    @property
    def schema(self) -> pa.Schema:
        """The schema, without metadata."""
        return _schema(self.names, tuple([pa.from_numpy_dtype(type_) for type_ in self.types]))


def parts_of(times: object, columns: Mapping[str, object]) -> Iterator[pa.RecordBatch | Plain]:
    """Yield the parts of an insert, one for each message, or none if there are no rows. Raises as `batch_of` does."""
    plain = _plain_of(times, columns)
    if plain is None:
        yield from split(batch_of(times, columns))
    else:
        yield plain


def plain_arrays(times: object, columns: Mapping[str, object]) -> list[PlainArray] | None:
    """Return times and columns if all are NumPy arrays of equal length with Arrow's memory layout, otherwise None."""
    if type(times) is not np.ndarray or times.dtype != _TIME_TYPE or times.ndim != 1:
        return None
    arrays = [times]
    for values in columns.values():
        if type(values) is not np.ndarray or values.dtype not in _PLAIN_TYPES or values.shape != times.shape:
            return None
        arrays.append(values)
    return arrays


def _plain_of(times: object, columns: Mapping[str, object]) -> Plain | None:
    arrays = plain_arrays(times, columns)
    if arrays is None:
        return None
    types = tuple([array.dtype for array in arrays])
    head = _plain_head(len(arrays[0]), types)
    if head is None:
        return None
    return Plain(("", *columns), types, [head, *[np.ascontiguousarray(array).data for array in arrays]])


@lru_cache(_SHAPES_KEPT)
def _plain_head(rows: int, types: tuple[np.dtype[Any], ...]) -> bytes | None:
    """Return the bytes before the values in the encoded record batch of plain columns.

    The result is None if there are no rows, if a column needs padding, or if the columns are too large for one message.
    """
    size = rows * sum(type_.itemsize for type_ in types)
    if rows == 0 or size > protocol.INSERT_BYTES or any(rows * type_.itemsize % 8 for type_ in types):
        return None
    values = {type_: np.arange(rows).astype(type_) for type_ in set(types)}
    arrays = {type_: pa.array(column) for type_, column in values.items()}
    made = (
        pa.RecordBatch.from_arrays([arrays[type_] for type_ in types], names=[""] * len(types)).serialize().to_pybytes()
    )
    assert made.endswith(b"".join([values[type_].data for type_ in types]))
    head: bytes = made[:-size]
    return head


def batch_of(times: object, columns: Mapping[str, object]) -> pa.RecordBatch:
    """Return a batch of the times, then the columns.

    Raises UnreadableValues (a type without an Arrow equivalent), ProgrammingError (columns of different lengths).
    """
    arrays = [arrow_array(times, "times")]
    for name, values in columns.items():
        array = arrow_array(values, f"column {name}")
        if len(array) != len(arrays[0]):
            raise database_error(f"column {name} has {len(array)} values for {len(arrays[0])} times", 2003)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=_schema(("", *columns), tuple(array.type for array in arrays)))


@lru_cache(_SHAPES_KEPT)
def _schema(names: tuple[str, ...], types: tuple[pa.DataType, ...]) -> pa.Schema:
    return pa.schema(list(zip(names, types, strict=True)))


def split(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in parts of about `INSERT_BYTES`. Yield nothing if it has no rows."""
    if batch.num_rows > 0 and batch.get_total_buffer_size() <= protocol.INSERT_BYTES:
        yield batch
        return
    rows = max(batch.num_rows * protocol.INSERT_BYTES // max(batch.nbytes, 1), 1)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def span_of(part: pa.RecordBatch | Plain, unit: str) -> tuple[int, int] | None:
    """Return the first and the last time of a part in the database's time precision (ms, us or ns).

    The result is None if only the node can interpret the times, for example because they have no time zone, or a higher
    precision than the database.
    """
    if isinstance(part, Plain):
        times = np.frombuffer(part.buffers[1], _TIME_TYPE)
        return int(times.min()), int(times.max())
    import pyarrow.compute as pc

    column = part.column(0)
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        try:
            column = column.cast(pa.timestamp(unit, tz=column.type.tz)).cast(pa.int64())
        except pa.ArrowInvalid:
            return None
    if not pa.types.is_integer(column.type):
        return None
    found = pc.min_max(column).as_py()
    return None if found["min"] is None else (found["min"], found["max"])


def message(part: pa.RecordBatch | Plain, device: str, sequence: int, *, aligned: bool | None) -> list[Buffer]:
    """Return the body of an INSERT, as `saros_wire.payload` defines it. `sequence` is 0 for no sequence number."""
    head = payload.encode_insert_head(device.encode(), sequence, aligned=aligned)
    if not isinstance(part, Plain):
        return [head + _encoded(part.schema), memoryview(part.serialize())]
    narrow = len(part.names) <= _NARROW
    schema = _encoded_plain(part.names, part.types) if narrow else _encoded(part.schema)
    return [head + schema, *part.buffers]


def rows_message(rows: DeviceRows) -> list[Buffer]:
    """Return the body of an INSERT_ROWS. The columns must be Arrow arrays."""
    arrays = [cast("pa.Array", array) for array in (rows.times, *rows.columns.values())]
    schema = _schema(("", *rows.columns), tuple(array.type for array in arrays))
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return [_encoded(schema), memoryview(batch.serialize())]


def _encoded(schema: pa.Schema) -> bytes:
    encoded: bytes = schema.serialize().to_pybytes()
    return encoded


@lru_cache(_ENCODED_KEPT)
def _encoded_plain(names: tuple[str, ...], types: tuple[np.dtype[Any], ...]) -> bytes:
    return _encoded(Plain(names, types, ()).schema)
