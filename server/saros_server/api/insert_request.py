"""Insert requests: columns of a device, as values or as an Arrow IPC stream.

    message --head--> device, ...
            --stream, of a known layout--> views of the message
                      of an unknown layout --Arrow, which validates it--> Arrow arrays; the layout is cached

Creating Arrow's objects for a batch costs several times as much as writing a few rows. So the layout that Arrow found
is cached if all columns are numbers of one type without nulls. The key is the stream's metadata, since it alone
determines the offset of each column. Any thread.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa

from saros_server.api.errors import BadMessage
from saros_storage.base.arrow import data_type_of
from saros_storage.base.block import Column
from saros_storage.base.types import NUMERIC_TYPES, NUMPY_DTYPE, DataType
from saros_wire import payload

#: The maximum total size of the metadata in the cache of layouts, in bytes.
_CACHED_BYTES = 16 << 20
#: The start of an Arrow IPC message: a continuation marker, and the size of its metadata.
_MESSAGE = struct.Struct("<Ii")
_MARK = 0xFFFF_FFFF
#: The number of messages in a stream: the schema and one record batch.
_MESSAGES = 2


class InsertRequest(msgspec.Struct, frozen=True):
    """Rows of one device; times and columns are of any type that the driver's `insert` accepts."""

    device: str
    #: None keeps the device's alignment.
    aligned: bool | None
    #: The client's sequence number of the write, so that retries take effect once; 0 if it has none.
    sequence: int
    times: object
    columns: Mapping[str, object]
    #: Only for INSERT_MANY: skip each column whose type differs from the type of its series, and write the others.
    partial: bool = False
    #: Only for INSERT_MANY: the tags of the series that the insert creates.
    tags: Mapping[str, str] = msgspec.field(default_factory=dict)


#: A request, or the message that contains it: see `saros_wire.payload`.
Columns = InsertRequest | bytes | memoryview


class _Layout(msgspec.Struct, frozen=True):
    """The layout of a stream that has times, then columns of numbers of one type at a fixed stride, without nulls."""

    names: tuple[str, ...]
    type: DataType
    rows: int
    stream_bytes: int
    #: The offsets of the times and of the first column, and the distance from each column to the next, in bytes.
    times_at: int
    columns_at: int
    stride: int


class _LayoutCache:
    """A cache that maps the metadata of a stream to the layout, or to None if the stream has no such layout."""

    def __init__(self) -> None:
        self._layouts: dict[bytes, _Layout | None] = {}
        self._bytes = 0

    def get(self, metadata: bytes) -> _Layout | None:
        """Return the cached layout, or None."""
        return self._layouts.get(metadata)

    def put(self, metadata: bytes, layout: _Layout | None) -> None:
        """Cache a layout; clear the cache first if it is full."""
        if self._bytes + len(metadata) > _CACHED_BYTES:
            self._layouts.clear()
            self._bytes = 0
        self._bytes += len(metadata)
        self._layouts[metadata] = layout


_layouts = _LayoutCache()


def read_insert(columns: Columns) -> InsertRequest:
    """Return the request, decoded from its message if necessary. Raises BadMessage for invalid offsets or lengths."""
    return columns if isinstance(columns, InsertRequest) else _read(columns)


def _read(message: bytes | memoryview) -> InsertRequest:
    try:
        head, start = payload.decode_insert_head(message)
        times, columns = _columns_of(memoryview(message)[start:])
    except (pa.ArrowException, OSError, ValueError, IndexError, StopIteration) as error:
        raise BadMessage(f"columns that cannot be read: {error}") from error
    return InsertRequest(head.device, head.aligned, head.sequence, times, columns)


def read_columns(stream: memoryview) -> tuple[object, Mapping[str, object]]:
    """Return the times and the columns of an Arrow IPC stream. Raises BadMessage if it is invalid."""
    try:
        return _columns_of(stream)
    except (pa.ArrowException, OSError, ValueError, IndexError, StopIteration) as error:
        raise BadMessage(f"columns that cannot be read: {error}") from error


def _columns_of(stream: memoryview) -> tuple[object, Mapping[str, object]]:
    """Return the times and the columns of a stream.

    The columns are `Column` objects if the stream's layout is cached.
    """
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
    """Return the offset of the first value. If the bytes are invalid, the result is arbitrary."""
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
    """Return the layout of a stream that Arrow has read, or None if it has no such layout."""
    types = set(batch.schema.types[1:])
    type_ = data_type_of(types.pop()) if len(types) == 1 else None
    if type_ not in NUMERIC_TYPES or batch.schema.types[1] != pa.from_numpy_dtype(NUMPY_DTYPE[type_]):
        return None
    buffers = [column.buffers() for column in batch.columns]
    if batch.schema.types[0] != pa.int64() or not batch.num_rows or any(valid is not None for valid, _ in buffers):
        return None
    places = [values.address - pa.py_buffer(stream).address for _, values in buffers]
    ends = [place + values.size for place, (_, values) in zip(places, buffers, strict=True)]
    if min(places) < 0 or max(ends) > len(stream):  # outside the stream: Arrow has decompressed or converted them
        return None
    distances = set(np.diff(places[1:]).tolist())
    stride = distances.pop() if distances else 0
    if distances:
        return None
    names = tuple(batch.schema.names[1:])
    return _Layout(names, type_, batch.num_rows, len(stream), places[0], places[1], stride)


def _batch_of(stream: memoryview) -> pa.RecordBatch:
    """Return the batch of a stream. Dictionaries precede the batch only if a column is dictionary-encoded."""
    reader = pa.ipc.MessageReader.open_stream(stream)
    schema, message = _message(reader, "schema"), _message(reader, "record batch", "dictionary")
    if message.type == "dictionary":
        return pa.ipc.open_stream(stream).read_next_batch()
    return pa.ipc.read_record_batch(message, pa.ipc.read_schema(schema))


def _message(reader: pa.MessageReader, *types: str) -> pa.Message:
    """Return the next message. Raises ValueError for any other type, since Arrow would read it without a check."""
    message = reader.read_next_message()
    if message.type not in types:
        raise ValueError(f"a message of type {message.type} instead of {' or '.join(types)}")
    return message
