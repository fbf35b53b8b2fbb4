"""A receiver of the sync tool over gRPC: implements `saros_sync.transport.Transport`.

A session is opened with the first question, and anew after it was lost: whatever a bad line does to it, the next
question finds another one. Used by one thread; speaks to the target's addresses in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc

from saros.attempts import SESSION_LOST, failure_of
from saros.channels import Lease, read_authority
from saros.target import Target
from saros_storage.errors import StorageError
from saros_sync.errors import BeginAgain, RoundRefused, Unreachable
from saros_sync.round import Content
from saros_sync.transport import Answer, Begun, Conflict, Standing, Want
from saros_wire import protocol
from saros_wire.appending import with_bytes
from saros_wire.generated import client_pb2

_OPEN_SECONDS = 10.0
#: A chunk on a slow line; a large file's pages are all checked when its last one came.
_CALL_SECONDS = 120.0
_CLOSE_SECONDS = 5.0


class RemoteReceiver:
    """See the module."""

    def __init__(self, target: Target) -> None:
        """Connects with the first question. Raises InterfaceError (no such CA file)."""
        self._target = target
        self._authority = read_authority(target.tls_ca)
        self._next = 0
        self._address = target.addresses[0]
        self._lease: Lease | None = None
        self._metadata: tuple[tuple[str, bytes], ...] = ()

    def begin(self, sender: str, name: str, number: int, document: Content) -> Begun:
        """See `Transport.begin`."""
        request = client_pb2.SyncBeginRequest(
            sender=sender, name=name, number=number, sha256=document.sha256, size=document.size
        )
        return _begun(self._ask(protocol.SYNC_BEGIN, request, client_pb2.SyncReply.FromString))

    def chunk(self, sender: str, number: int, sha256: str, offset: int, crc32: int, data: memoryview) -> Answer:
        """See `Transport.chunk`."""
        head = client_pb2.SyncChunkRequest(sender=sender, number=number, sha256=sha256, offset=offset, crc32=crc32)
        request = with_bytes(head, client_pb2.SyncChunkRequest.DATA_FIELD_NUMBER, data)
        with self._telling_errors():
            call = self._ready(protocol.SYNC_CHUNK, client_pb2.SyncChunkReply.FromString)
            coming = call.future(request, metadata=self._metadata, timeout=_CALL_SECONDS)

        def answer() -> int:
            with self._telling_errors():
                reply: client_pb2.SyncChunkReply = coming.result()
            return reply.have

        return answer

    def commit(self, sender: str, number: int) -> Begun:
        """See `Transport.commit`."""
        request = client_pb2.SyncCommitRequest(sender=sender, number=number)
        return _begun(self._ask(protocol.SYNC_COMMIT, request, client_pb2.SyncReply.FromString))

    def _ask(self, name: str, request: Any, decode: Any) -> Any:
        with self._telling_errors():
            return self._ready(name, decode)(request, metadata=self._metadata, timeout=_CALL_SECONDS)

    def _ready(self, name: str, decode: Any) -> Any:
        """A call in a session."""
        if self._lease is None:
            self._open()
        return self._call(name, decode)

    @contextmanager
    def _telling_errors(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            failure = failure_of(error, self._address)
            said = failure.error
            if failure.retryable or failure.lost:
                self._let_go(said.code != SESSION_LOST)
                raise Unreachable(str(said)) from None
            for refusal in (BeginAgain, RoundRefused):
                if said.code == refusal.code:
                    raise refusal(str(said)) from None
            raise StorageError(str(said), code=said.code) from None

    def _open(self) -> None:
        self._address = self._target.addresses[self._next % len(self._target.addresses)]
        self._lease = Lease(self._address, self._authority)
        request = client_pb2.OpenRequest(
            protocol=protocol.PROTOCOL,
            client="sync",
            user=self._target.user,
            password=self._target.password,
        )
        reply = self._call(protocol.OPEN, client_pb2.OpenReply.FromString)(request, timeout=_OPEN_SECONDS)
        self._metadata = ((protocol.SESSION_KEY, reply.session),)

    def _call(self, name: str, decode: Any) -> Any:
        assert self._lease is not None
        return self._lease.channel.unary_unary(
            protocol.path_of(name),
            request_serializer=_serialized,
            response_deserializer=decode,
        )

    def _let_go(self, of_channel: bool) -> None:
        if self._lease is not None:
            if of_channel:
                self._lease.set_aside()
                self._next += 1
            self._lease.release()
            self._lease = None

    def close(self) -> None:
        """End the session; a server that does not hear of it ends it by itself."""
        if self._lease is None:
            return
        try:
            self._call(protocol.CLOSE, bytes)(
                client_pb2.CloseRequest(), metadata=self._metadata, timeout=_CLOSE_SECONDS
            )
        except grpc.RpcError:
            return
        finally:
            self._let_go(False)


def _serialized(request: Any) -> bytes:
    """A message, or one that is serialized already."""
    return request if isinstance(request, bytes) else bytes(request.SerializeToString())


def _begun(reply: client_pb2.SyncReply) -> Begun:
    return Begun(
        Standing(reply.standing),
        reply.last,
        tuple(Want(Content(want.sha256, want.size), want.have) for want in reply.wants),
        tuple(Conflict(c.device, c.owner, c.reason) for c in reply.conflicts),
    )
