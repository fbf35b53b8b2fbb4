"""Captures of a running server, for `saros backup`: a backup's `Source` over gRPC.

    Freeze -> what there is        Fetch -> a file, by its number; asked again from where a lost connection ended
    Thaw                           the server lets go of it; else after ten minutes

Used by one thread; speaks to the first of the target's addresses that answers, and to no other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import grpc

from saros.base.target import Target
from saros.transport.node_client import session_at_first
from saros.transport.retry_policy import failure_of
from saros_storage.checkpoint.checkpoint_set import CheckpointSet, decode_checkpoint_set
from saros_wire import protocol
from saros_wire.generated import client_pb2

#: Flushing much takes long; nothing else of these calls does.
_FREEZE_SECONDS = 600.0
_FETCH_SECONDS = 3_600.0
_THAW_SECONDS = 5.0
#: How often a file is asked for again.
_RETRIES_MAX = 5
_PAUSE_SECONDS = 0.5


class RemoteCaptures:
    """See the module. Implements the backup's `Source`."""

    def __init__(self, target: Target) -> None:
        """Connect. Raises what `session_at_first` raises."""
        self._ids: Sequence[bytes] = ()
        self._session = session_at_first(target)

    def create_checkpoint(self, since: int | None) -> CheckpointSet:
        """See `Source.create_checkpoint`. Raises DatabaseError."""
        request = client_pb2.FreezeRequest(since=-1 if since is None else since)
        try:
            content = b"".join(self._session.stream(protocol.FREEZE, request, _FREEZE_SECONDS))
        except grpc.RpcError as error:
            raise failure_of(error, self._session.address).error from None
        frozen = decode_checkpoint_set(content)
        self._ids = frozen.ids
        return frozen

    def read(self, capture: int, number: int) -> Iterator[bytes]:
        """See `Source.read`. Raises DatabaseError."""
        offset = retries = 0
        while True:
            request = client_pb2.FetchRequest(capture=self._ids[capture], number=number, offset=offset)
            try:
                for piece in self._session.stream(protocol.FETCH, request, _FETCH_SECONDS):
                    yield piece
                    offset += len(piece)
            except grpc.RpcError as error:
                failure = failure_of(error, self._session.address)
                retries += 1
                if not failure.retryable or retries > _RETRIES_MAX:
                    raise failure.error from None
                time.sleep(_PAUSE_SECONDS)
            else:
                return

    def release(self) -> None:
        """See `Source.release`; a server that does not answer forgets by itself."""
        if not self._ids:
            return
        request = client_pb2.ThawRequest(captures=self._ids)
        try:
            self._session.call(protocol.THAW, request, bytes, _THAW_SECONDS)
        except grpc.RpcError:
            return

    def close(self) -> None:
        """End the session."""
        self._session.close()
