"""The client of a sync receiver at a node. Implements `saros_sync.transport.Transport`.

The first call opens a session. If a session is lost, the next call opens another session. After a failure, the client
moves on to the next address of the target. For one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from saros.base.target import Target
from saros.transport.exchange import CallFailed
from saros.transport.node_client import DirectSession
from saros.transport.node_connection import read_authority
from saros.transport.retry_policy import SESSION_LOST, failure_of
from saros_storage.base.errors import StorageError
from saros_sync.errors import BeginAgain, RoundRefused, Unreachable
from saros_sync.round import Content
from saros_sync.transport import Answer, BeginReply, Conflict, MissingContent, RoundStatus
from saros_wire.frames import Call
from saros_wire.generated import client_pb2

if TYPE_CHECKING:
    from google.protobuf.message import Message

#: Time limit of a call: enough for a chunk on a slow line, and for the last chunk of a large file, after which all
#: pages of the file are verified.
_CALL_SECONDS = 120.0


class RemoteReceiver:
    """A client of the sync receiver at the nodes of a target."""

    def __init__(self, target: Target) -> None:
        """Prepare the client. The first call connects. Raises InterfaceError if the certificate file cannot be read."""
        self._target = target
        self._authority = read_authority(target.tls_ca)
        #: The number of times that the client has moved on to the next address.
        self._turns = 0
        self._address = target.addresses[0]
        self._session: DirectSession | None = None

    def begin(self, sender: str, name: str, number: int, document: Content) -> BeginReply:
        """See `Transport.begin`."""
        request = client_pb2.SyncBeginRequest(
            sender=sender, name=name, number=number, sha256=document.sha256, size=document.size
        )
        return _begin_reply(self._ask(Call.SYNC_BEGIN, request))

    def chunk(self, sender: str, number: int, sha256: str, offset: int, crc32: int, data: memoryview) -> Answer:
        """See `Transport.chunk`."""
        head = client_pb2.SyncChunkRequest(sender=sender, number=number, sha256=sha256, offset=offset, crc32=crc32)
        with self._translated_errors():
            coming = self._opened().begin(Call.SYNC_CHUNK, head, _CALL_SECONDS, (data,))

        def answer() -> int:
            with self._translated_errors():
                return int(client_pb2.SyncChunkReply.FromString(coming()).have)

        return answer

    def commit(self, sender: str, number: int) -> BeginReply:
        """See `Transport.commit`."""
        request = client_pb2.SyncCommitRequest(sender=sender, number=number)
        return _begin_reply(self._ask(Call.SYNC_COMMIT, request))

    def _ask(self, call: Call, request: Message) -> client_pb2.SyncReply:
        with self._translated_errors():
            reply: client_pb2.SyncReply = client_pb2.SyncReply.FromString(
                self._opened().call(call, request, _CALL_SECONDS)
            )
        return reply

    def _opened(self) -> DirectSession:
        """Return the session, after opening it if necessary. Raises CallFailed."""
        if self._session is None:
            self._address = self._target.addresses[self._turns % len(self._target.addresses)]
            try:
                self._session = DirectSession(self._address, self._target, self._authority)
            except CallFailed:
                self._turns += 1
                raise
        return self._session

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except CallFailed as failed:
            failure = failure_of(failed, self._address)
            said = failure.error
            if failure.retryable or failure.lost:
                self._close_session(broken=said.code != SESSION_LOST)
                raise Unreachable(str(said)) from None
            for refusal in (BeginAgain, RoundRefused):
                if said.code == refusal.code:
                    raise refusal(str(said)) from None
            raise StorageError(str(said), code=said.code) from None

    def _close_session(self, *, broken: bool) -> None:
        if self._session is not None:
            self._session.leave()
            self._session = None
            self._turns += broken

    def close(self) -> None:
        """Close the session. If the node cannot be reached, the session expires there."""
        if self._session is not None:
            self._session.close()
            self._session = None


def _begin_reply(reply: client_pb2.SyncReply) -> BeginReply:
    return BeginReply(
        RoundStatus(reply.standing),
        reply.last,
        tuple(MissingContent(Content(want.sha256, want.size), want.have) for want in reply.wants),
        tuple(Conflict(c.device, c.owner, c.reason) for c in reply.conflicts),
    )
