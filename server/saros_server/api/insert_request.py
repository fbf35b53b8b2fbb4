"""The request of an insert: columns of a device, as values or as an Arrow IPC stream. Pure: any thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from saros_server.api.arrow import columns_of
from saros_server.api.errors import BadMessage
from saros_wire import payload


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


#: A request, or the Arrow IPC stream of one batch that contains it: see `saros_wire.payload`.
Columns = InsertRequest | bytes | memoryview


def read_insert(columns: Columns) -> InsertRequest:
    """Return the request; offsets and lengths of a message are checked. Raises BadMessage."""
    return columns if isinstance(columns, InsertRequest) else _read(columns)


def _read(message: bytes | memoryview) -> InsertRequest:
    try:
        batch, content = _batch_of(message)
        batch.validate(full=True)
        metadata = batch.schema.metadata or {}
        return InsertRequest(
            metadata.get(payload.DEVICE_KEY, b"").decode(),
            {b"true": True, b"false": False}.get(metadata.get(payload.ALIGNED_KEY, b"")),
            int(metadata.get(payload.SEQUENCE_KEY, b"0")),
            batch.column(0),
            columns_of(batch, content),
        )
    except (pa.ArrowException, OSError, ValueError, IndexError, StopIteration) as error:
        raise BadMessage(f"columns that cannot be read: {error}") from error


def _batch_of(stream: bytes | memoryview) -> tuple[pa.RecordBatch, pa.Message | None]:
    """Return the batch of a stream, and the message that has all of it, unless dictionaries come before it."""
    reader = pa.ipc.MessageReader.open_stream(stream)
    schema, message = _message(reader, "schema"), _message(reader, "record batch", "dictionary")
    if message.type == "dictionary":
        return pa.ipc.open_stream(stream).read_next_batch(), None
    return pa.ipc.read_record_batch(message, pa.ipc.read_schema(schema)), message


def _message(reader: pa.MessageReader, *types: str) -> pa.Message:
    """Return the next message. Raises ValueError if it is of another type: Arrow would read it without a check."""
    message = reader.read_next_message()
    if message.type not in types:
        raise ValueError(f"a message of type {message.type} instead of {' or '.join(types)}")
    return message
