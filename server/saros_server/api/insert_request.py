"""The request of an insert: columns of a device, as values or as an Arrow IPC stream.

    message --head--> device, ...
            --stream, of a shape that was met before--> views of the message
                      of another shape --Arrow, which checks it--> arrays of Arrow; its layout is kept

Arrow's objects for a batch cost several times as much as the write of a few rows. So where all columns are numbers of
one type without nulls, what Arrow found is kept by the stream's metadata: they determine where each column lies,
whatever its values. Any thread.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from saros_server.api.errors import BadMessage
from saros_storage.base.arrow import data_type_of
from saros_storage.base.block import Column
from saros_storage.base.types import NUMERIC_TYPES, NUMPY_DTYPE, DataType
from saros_wire import payload

#: Metadata of streams whose layout is kept, in all.
_CACHED_BYTES = 16 << 20
#: The start of an Arrow IPC message: a mark, and the bytes of its metadata.
_MESSAGE = struct.Struct("<Ii")
_MARK = 0xFFFF_FFFF
#: Schema, and record batch.
_MESSAGES = 2


@dataclass(frozen=True, slots=True)
class InsertRequest:
    """Rows of one device; times and columns are anything that the driver's `insert` takes."""

    device: str
    #: None: as the device is.
    aligned: bool | None
    #: The number among the client's writes, for one effect however often it is sent; 0: none.
    sequence: int
    times: object
    columns: Mapping[str, object]
    #: Of INSERT_MANY: columns that do not fit their series are left out, and the others are written.
    partial: bool = False
    #: Of INSERT_MANY: tags of the series that it creates.
    tags: Mapping[str, str] = field(default_factory=dict)


#: A request, or the message that contains it: see `saros_wire.payload`.
Columns = InsertRequest | bytes | memoryview


@dataclass(frozen=True, slots=True)
class _Layout:
    """The place of the columns in a stream: times, then numbers of one type at equal distances, all without nulls."""

    names: tuple[str, ...]
    type: DataType
    rows: int
    stream_bytes: int
    #: Offsets of the times and of the first column, and bytes from each column to the next.
    times_at: int
    columns_at: int
    stride: int


class _LayoutCache:
    """Layouts by the metadata of a stream; None: its columns have no such layout."""

    def __init__(self) -> None:
        self._layouts: dict[bytes, _Layout | None] = {}
        self._bytes = 0

    def get(self, metadata: bytes) -> _Layout | None:
        """Return the layout, if one is kept."""
        return self._layouts.get(metadata)

    def put(self, metadata: bytes, layout: _Layout | None) -> None:
        """Keep a layout; forget all others if they have become too many."""
        if self._bytes + len(metadata) > _CACHED_BYTES:
            self._layouts.clear()
            self._bytes = 0
        self._bytes += len(metadata)
        self._layouts[metadata] = layout


_layouts = _LayoutCache()


def read_insert(columns: Columns) -> InsertRequest:
    """Return the request; offsets and lengths of a message are checked. Raises BadMessage."""
    return columns if isinstance(columns, InsertRequest) else _read(columns)


def _read(message: bytes | memoryview) -> InsertRequest:
    try:
        head, start = payload.decode_insert_head(message)
        times, columns = _columns_of(memoryview(message)[start:])
    except (pa.ArrowException, OSError, ValueError, IndexError, StopIteration) as error:
        raise BadMessage(f"columns that cannot be read: {error}") from error
    return InsertRequest(head.device, head.aligned, head.sequence, times, columns)


def read_columns(stream: memoryview) -> tuple[object, Mapping[str, object]]:
    """Return the times and the columns of an Arrow IPC stream, which is checked. Raises BadMessage."""
    try:
        return _columns_of(stream)
    except (pa.ArrowException, OSError, ValueError, IndexError, StopIteration) as error:
        raise BadMessage(f"columns that cannot be read: {error}") from error


def _columns_of(stream: memoryview) -> tuple[object, Mapping[str, object]]:
    """Return the times and the columns of a stream: as `Column` if its layout is known."""
    metadata = bytes(stream[: _metadata_end(stream)])
    layout = _layouts.get(metadata)
    if layout is not None and layout.stream_bytes == len(stream):
        return _views(stream, layout)
    batch = _batch_of(stream)
    batch.validate(full=True)
    layout = _layout_of(batch, stream)
    _layouts.put(metadata, layout)
    if layout is not None:
        return _views(stream, layout)
    return batch.column(0), dict(zip(batch.schema.names[1:], batch.columns[1:], strict=True))


def _metadata_end(stream: memoryview) -> int:
    """Return the offset of the first value; the result for invalid bytes is arbitrary."""
    end = 0
    for _ in range(_MESSAGES):
        if end + _MESSAGE.size > len(stream):
            break
        mark, size = _MESSAGE.unpack_from(stream, end)
        if mark != _MARK or size < 0:
            break
        end += _MESSAGE.size + size
    return end


def _views(stream: memoryview, layout: _Layout) -> tuple[object, dict[str, Column]]:
    type_, rows = layout.type, layout.rows
    dtype = NUMPY_DTYPE[type_]
    strides = (layout.stride, dtype.itemsize)
    matrix = np.ndarray((len(layout.names), rows), dtype, stream, layout.columns_at, strides)
    times = np.ndarray(rows, np.int64, stream, layout.times_at)
    return times, {name: Column(type_, values) for name, values in zip(layout.names, matrix, strict=True)}


def _layout_of(batch: pa.RecordBatch, stream: memoryview) -> _Layout | None:
    """Return the layout of a stream that Arrow has read; None: it has none."""
    types = set(batch.schema.types[1:])
    type_ = data_type_of(types.pop()) if len(types) == 1 else None
    if type_ not in NUMERIC_TYPES or batch.schema.types[1] != pa.from_numpy_dtype(NUMPY_DTYPE[type_]):
        return None
    buffers = [column.buffers() for column in batch.columns]
    if batch.schema.types[0] != pa.int64() or not batch.num_rows or any(valid is not None for valid, _ in buffers):
        return None
    places = [values.address - pa.py_buffer(stream).address for _, values in buffers]
    ends = [place + values.size for place, (_, values) in zip(places, buffers, strict=True)]
    if min(places) < 0 or max(ends) > len(stream):  # decompressed, or converted, elsewhere
        return None
    distances = set(np.diff(places[1:]).tolist())
    stride = distances.pop() if distances else 0
    if distances:
        return None
    names = tuple(batch.schema.names[1:])
    return _Layout(names, type_, batch.num_rows, len(stream), places[0], places[1], stride)


def _batch_of(stream: memoryview) -> pa.RecordBatch:
    """Return the batch of a stream. Dictionaries come before it only if a column is encoded by one."""
    reader = pa.ipc.MessageReader.open_stream(stream)
    schema, message = _message(reader, "schema"), _message(reader, "record batch", "dictionary")
    if message.type == "dictionary":
        return pa.ipc.open_stream(stream).read_next_batch()
    return pa.ipc.read_record_batch(message, pa.ipc.read_schema(schema))


def _message(reader: pa.MessageReader, *types: str) -> pa.Message:
    """Return the next message. Raises ValueError if it is of another type: Arrow would read it without a check."""
    message = reader.read_next_message()
    if message.type not in types:
        raise ValueError(f"a message of type {message.type} instead of {' or '.join(types)}")
    return message
