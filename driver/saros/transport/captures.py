"""Checkpoints of a running server for `saros backup`: the implementation of `Source` for a server.

    CREATE_CHECKPOINT     -> the list of files
    READ_CHECKPOINT       -> a file, by its number; after a lost connection, from the offset that was reached
    RELEASE_CHECKPOINTS   -> the server deletes the checkpoint; without this call, it is deleted after ten minutes

For one thread. All calls go to the first address of the target that answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from saros.base.target import Target
from saros.transport.exchange import CallFailed
from saros.transport.node_client import session_at_first
from saros.transport.retry_policy import failure_of
from saros_storage.checkpoint.checkpoint_set import CheckpointSet, decode_checkpoint_set
from saros_wire.frames import Call
from saros_wire.generated import client_pb2

#: The time limits of calls. Creating a checkpoint first flushes all data, which may take long. The other calls are
#: answered at once.
_CREATE_SECONDS = 600.0
_READ_SECONDS = 60.0
_RELEASE_SECONDS = 5.0
#: Limit on the retries of a file.
_RETRIES_MAX = 5
_PAUSE_SECONDS = 0.5


class RemoteCaptures:
    """A connection to a server that reads checkpoints. Implements the backup's `Source`."""

    def __init__(self, target: Target) -> None:
        """Connect. Raises what `session_at_first` raises."""
        self._ids: Sequence[bytes] = ()
        self._session = session_at_first(target)

    def create_checkpoint(self, since: int | None) -> CheckpointSet:
        """See `Source.create_checkpoint`. Raises DatabaseError."""
        request = client_pb2.CreateCheckpointRequest(since=-1 if since is None else since)
        try:
            content = b"".join(self._session.stream(Call.CREATE_CHECKPOINT, request, _CREATE_SECONDS))
        except CallFailed as failed:
            raise failure_of(failed, self._session.address).error from None
        frozen = decode_checkpoint_set(content)
        self._ids = frozen.ids
        return frozen

    def read(self, capture: int, number: int) -> Iterator[bytes]:
        """See `Source.read`. Raises DatabaseError."""
        offset = retries = 0
        while True:
            request = client_pb2.ReadCheckpointRequest(capture=self._ids[capture], number=number, offset=offset)
            try:
                for piece in self._session.stream(Call.READ_CHECKPOINT, request, _READ_SECONDS):
                    yield bytes(piece)
                    offset += len(piece)
            except CallFailed as failed:
                failure = failure_of(failed, self._session.address)
                retries += 1
                if not failure.retryable or retries > _RETRIES_MAX:
                    raise failure.error from None
                time.sleep(_PAUSE_SECONDS)
            else:
                return

    def release(self) -> None:
        """See `Source.release`. If the server does not answer, it deletes the checkpoints after ten minutes."""
        if not self._ids:
            return
        request = client_pb2.ReleaseCheckpointsRequest(captures=self._ids)
        try:
            self._session.call(Call.RELEASE_CHECKPOINTS, request, _RELEASE_SECONDS)
        except CallFailed:
            return

    def close(self) -> None:
        """Close the session."""
        self._session.close()
