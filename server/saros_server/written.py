"""The request of an Insert, and what is said of it: what one that comes alone and those that come together share.

Pure: any thread.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pyarrow as pa

from saros_server.arrow import columns_of
from saros_server.node import Node
from saros_server.requests import NO_REQUEST, Request
from saros_server.session import EmbeddedSession
from saros_storage.block import Column
from saros_wire import protocol

logger = logging.getLogger(__name__)

_INTERNAL = 2001


class BadMessage(Exception):
    """A request that cannot be read."""

    code = 2003


@dataclass(frozen=True, slots=True)
class Written:
    """What an Insert says."""

    device: str
    aligned: bool | None
    sequence: int
    times: pa.Array
    columns: dict[str, Column | pa.Array]


def read_columns(request: bytes) -> Written:
    """The request of an Insert; its offsets and lengths are checked. Raises BadMessage."""
    try:
        batch = pa.ipc.open_stream(request).read_next_batch()
        batch.validate(full=True)
        metadata = batch.schema.metadata or {}
        return Written(
            metadata.get(protocol.DEVICE_KEY, b"").decode(),
            {b"true": True, b"false": False}.get(metadata.get(protocol.ALIGNED_KEY, b"")),
            int(metadata.get(protocol.SEQUENCE_KEY, b"0")),
            batch.column(0),
            columns_of(batch),
        )
    except (pa.ArrowException, OSError, ValueError, IndexError, StopIteration) as error:
        raise BadMessage(f"columns that cannot be read: {error}") from error


def request_of(session: EmbeddedSession, sequence: int) -> Request:
    """Whose and which write it is; without both it cannot be told from others."""
    return (session.client_id, sequence) if session.client_id and sequence else NO_REQUEST


def leader_elsewhere(node: Node, device: str) -> str:
    """Where clients reach the node that led a device's last write; empty if it is this one, or no cluster's."""
    return "" if node.cluster is None else node.cluster.leader_elsewhere(device)


def refusal_of(error: Exception) -> tuple[int, str]:
    """Code and message by which a client is told what went wrong."""
    code = getattr(error, "code", None)
    if not isinstance(code, int):
        logger.error("a call failed", exc_info=error)
        code = _INTERNAL
    caret = getattr(error, "caret", None)
    return code, str(error) if caret is None else f"{error}\n{caret()}"
