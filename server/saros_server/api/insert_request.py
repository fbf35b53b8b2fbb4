"""The request of an Insert: columns of a device as an Arrow IPC stream. Pure: any thread."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from saros_server.api.arrow import columns_of
from saros_server.api.errors import BadMessage
from saros_storage.base.block import Column
from saros_wire import protocol


@dataclass(frozen=True, slots=True)
class InsertRequest:
    """What is to be written. `sequence`: its number among the client's writes; 0: none."""

    device: str
    aligned: bool | None
    sequence: int
    times: pa.Array
    columns: dict[str, Column | pa.Array]


def read_insert(message: bytes) -> InsertRequest:
    """The request in a message, whose offsets and lengths are checked. Raises BadMessage."""
    try:
        batch = pa.ipc.open_stream(message).read_next_batch()
        batch.validate(full=True)
        metadata = batch.schema.metadata or {}
        return InsertRequest(
            metadata.get(protocol.DEVICE_KEY, b"").decode(),
            {b"true": True, b"false": False}.get(metadata.get(protocol.ALIGNED_KEY, b"")),
            int(metadata.get(protocol.SEQUENCE_KEY, b"0")),
            batch.column(0),
            columns_of(batch),
        )
    except (pa.ArrowException, OSError, ValueError, IndexError, StopIteration) as error:
        raise BadMessage(f"columns that cannot be read: {error}") from error
