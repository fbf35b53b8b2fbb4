"""Columns on their way to a node: Arrow arrays, batches, messages.

    times, {name: values} --batch_of--> record batch --split--> parts of a message's size --message--> Arrow IPC buffers
                          `-- plain NumPy that fits into one message --> Plain ------------^

Values that are Arrow or plain NumPy are not copied. Of plain columns, the bytes of the stream before the values are the
same for all batches of a shape: they are made once, and a batch costs no Arrow arrays. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
import pyarrow as pa

from saros.errors import database_error
from saros_wire import payload, protocol
from saros_wire.client_values import arrow_array
from saros_wire.device_rows import DeviceRows

#: Shapes of batches (names and types) whose Arrow schema is kept.
_SHAPES_KEPT = 4_096
#: Shapes whose encoded schema is kept, and the columns of the widest.
_ENCODED_KEPT, _NARROW = 1_024, 64
#: Numbers that lie in NumPy as in Arrow; times are the second.
_PLAIN_TYPES = tuple(map(np.dtype, ("<i4", "<i8", "<f4", "<f8")))
_TIME_TYPE = _PLAIN_TYPES[1]

Buffer = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Plain:
    """Times and columns as they lie in a message, after the schema."""

    names: tuple[str, ...]
    types: tuple[np.dtype[Any], ...]
    buffers: Sequence[Buffer]

    @property
    def schema(self) -> pa.Schema:
        """The schema, without metadata."""
        return _schema(self.names, tuple([pa.from_numpy_dtype(type_) for type_ in self.types]))


def parts_of(times: object, columns: Mapping[str, object]) -> Iterator[pa.RecordBatch | Plain]:
    """What goes into a message each; nothing if there are no rows. Raises as `batch_of`."""
    plain = _plain_of(times, columns)
    if plain is None:
        yield from split(batch_of(times, columns))
    else:
        yield plain


def _plain_of(times: object, columns: Mapping[str, object]) -> Plain | None:
    if type(times) is not np.ndarray or times.dtype != _TIME_TYPE or times.ndim != 1:
        return None
    arrays = [times]
    for values in columns.values():
        if type(values) is not np.ndarray or values.dtype not in _PLAIN_TYPES or values.shape != times.shape:
            return None
        arrays.append(values)
    types = tuple([array.dtype for array in arrays])
    head = _plain_head(len(times), types)
    if head is None:
        return None
    return Plain(("", *columns), types, [head, *[np.ascontiguousarray(array).data for array in arrays]])


@lru_cache(_SHAPES_KEPT)
def _plain_head(rows: int, types: tuple[np.dtype[Any], ...]) -> bytes | None:
    """What stands before the values in the record batch of such columns; None if some must be padded, or all split."""
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
    """Times, then the columns. Raises UnreadableValues, ProgrammingError (lengths)."""
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
    """The batch in parts of about `INSERT_BYTES`; one without rows has none."""
    if batch.num_rows > 0 and batch.get_total_buffer_size() <= protocol.INSERT_BYTES:
        yield batch
        return
    rows = max(batch.num_rows * protocol.INSERT_BYTES // max(batch.nbytes, 1), 1)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def span_of(part: pa.RecordBatch | Plain, unit: str) -> tuple[int, int] | None:
    """Return the first and the last time of a part in the database's unit (ms, us or ns).

    None if the node decides what the times mean: they have no zone, or are finer than the unit.
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
    """Return the body of an INSERT: see `saros_wire.payload`. `sequence` 0: none."""
    head = payload.encode_insert_head(device.encode(), sequence, aligned=aligned)
    if not isinstance(part, Plain):
        return [head + _encoded(part.schema), memoryview(part.serialize())]
    narrow = len(part.names) <= _NARROW
    schema = _encoded_plain(part.names, part.types) if narrow else _encoded(part.schema)
    return [head + schema, *part.buffers]


def rows_message(rows: DeviceRows) -> list[Buffer]:
    """Return the body of an INSERT_ROWS, whose columns are arrays of Arrow."""
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
