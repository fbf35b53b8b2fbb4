"""Captures of a running server, for `saros backup`: a backup's `Source` over gRPC.

    Freeze -> what there is        Fetch -> a file, by its number; asked again from where a lost connection ended
    Thaw                           the server lets go of it; else after ten minutes

Used by one thread; speaks to the first of the target's addresses that answers, and to no other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import grpc

from saros.attempts import failure_of
from saros.channels import Lease, read_authority
from saros.errors import OperationalError
from saros.target import Target
from saros_storage.capture.frozen import Frozen, decode_frozen
from saros_wire import protocol
from saros_wire.generated import client_pb2

_OPEN_SECONDS = 10.0
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
        """Connect. Raises OperationalError (nobody answers, wrong password), InterfaceError (no such CA file)."""
        self._ids: Sequence[bytes] = ()
        authority = read_authority(target.tls_ca)
        request = client_pb2.OpenRequest(
            protocol=protocol.PROTOCOL, client="python", user=target.user, password=target.password
        )
        failures = []
        for address in target.addresses:
            self._address, self._lease = address, Lease(address, authority)
            try:
                open_ = self._call(protocol.OPEN, client_pb2.OpenReply.FromString)
                reply = open_(request, timeout=_OPEN_SECONDS)
            except grpc.RpcError as error:
                self._lease.release()
                failure = failure_of(error, address)
                if not failure.retryable:
                    raise failure.error from None
                failures.append(str(failure.error))
            else:
                self._metadata = ((protocol.SESSION_KEY, reply.session),)
                return
        raise OperationalError("; ".join(failures), 2016)

    def _call(self, name: str, decode: Any) -> Any:
        return self._lease.channel.unary_unary(
            protocol.path_of(name),
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=decode,
        )

    def _stream(self, name: str, request: Any, seconds: float) -> Iterator[bytes]:
        call = self._lease.channel.unary_stream(
            protocol.path_of(name),
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=bytes,
        )
        stream: Iterator[bytes] = call(request, metadata=self._metadata, timeout=seconds)
        return stream

    def freeze(self, since: int | None) -> Frozen:
        """See `Source.freeze`. Raises DatabaseError."""
        request = client_pb2.FreezeRequest(since=-1 if since is None else since)
        try:
            content = b"".join(self._stream(protocol.FREEZE, request, _FREEZE_SECONDS))
        except grpc.RpcError as error:
            raise failure_of(error, self._address).error from None
        frozen = decode_frozen(content)
        self._ids = frozen.ids
        return frozen

    def read(self, capture: int, number: int) -> Iterator[bytes]:
        """See `Source.read`. Raises DatabaseError."""
        offset = retries = 0
        while True:
            request = client_pb2.FetchRequest(capture=self._ids[capture], number=number, offset=offset)
            try:
                for piece in self._stream(protocol.FETCH, request, _FETCH_SECONDS):
                    yield piece
                    offset += len(piece)
            except grpc.RpcError as error:
                failure = failure_of(error, self._address)
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
            self._call(protocol.THAW, bytes)(request, metadata=self._metadata, timeout=_THAW_SECONDS)
        except grpc.RpcError:
            return

    def close(self) -> None:
        """End the session."""
        try:
            self._call(protocol.CLOSE, bytes)(client_pb2.CloseRequest(), metadata=self._metadata, timeout=_THAW_SECONDS)
        except grpc.RpcError:
            return  # the server ends an idle session by itself
        finally:
            self._lease.release()
