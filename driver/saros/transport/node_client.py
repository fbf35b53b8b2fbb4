"""Sessions pinned to one node, for calls that belong to it: captures, uploads, rounds of the sync tool.

Each is used by one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

from saros.base.target import Target
from saros.errors import OperationalError
from saros.transport.channels import Lease, read_authority
from saros.transport.retry_policy import failure_of
from saros_wire import protocol
from saros_wire.generated import client_pb2

_OPEN_SECONDS = 10.0
_CLOSE_SECONDS = 5.0


class DirectSession:
    """A session at one address, open as soon as it is made."""

    def __init__(self, address: str, target: Target, authority: bytes | None) -> None:
        """`target` says as whom, `authority` who signs the nodes' certificates (see `Lease`). Raises grpc.RpcError."""
        self.address = address
        self._lease = Lease(address, authority)
        request = client_pb2.OpenRequest(
            protocol=protocol.PROTOCOL, client="python", user=target.user, password=target.password
        )
        try:
            open_ = self._method(protocol.OPEN, client_pb2.OpenReply.FromString)
            reply = open_(request, timeout=_OPEN_SECONDS)
        except BaseException:
            self.leave(broken=True)
            raise
        self._metadata = ((protocol.SESSION_KEY, reply.session),)

    def _method(self, name: str, decode: Any) -> Any:
        return self._lease.channel.unary_unary(
            protocol.path_of(name), request_serializer=_serialized, response_deserializer=decode
        )

    def call(self, name: str, request: Any, decode: Any, seconds: float) -> Any:
        """A call's answer. Raises grpc.RpcError."""
        return self._method(name, decode)(request, metadata=self._metadata, timeout=seconds)

    def begin(self, name: str, request: Any, decode: Any, seconds: float) -> Any:
        """A call that is under way, as a grpc.Future. Raises grpc.RpcError."""
        return self._method(name, decode).future(request, metadata=self._metadata, timeout=seconds)

    def stream(self, name: str, request: Any, seconds: float) -> Iterator[bytes]:
        """A call's answers. Raises grpc.RpcError."""
        call = self._lease.channel.unary_stream(
            protocol.path_of(name), request_serializer=_serialized, response_deserializer=bytes
        )
        answers: Iterator[bytes] = call(request, metadata=self._metadata, timeout=seconds)
        return answers

    def close(self) -> None:
        """End the session."""
        try:
            self.call(protocol.CLOSE, client_pb2.CloseRequest(), bytes, _CLOSE_SECONDS)
        except grpc.RpcError:
            return  # the server ends an idle session by itself
        finally:
            self.leave(broken=False)

    def leave(self, *, broken: bool) -> None:
        """Let go of the channel, without a word to the node. `broken`: nobody else is to take it up either."""
        if broken:
            self._lease.set_aside()
        self._lease.release()


def session_at_first(target: Target) -> DirectSession:
    """A session at the first of the target's addresses that answers.

    Raises OperationalError (nobody answers, wrong password), InterfaceError (no such CA file).
    """
    authority = read_authority(target.tls_ca)
    failures = []
    for address in target.addresses:
        try:
            return DirectSession(address, target, authority)
        except grpc.RpcError as error:
            failure = failure_of(error, address)
            if not failure.retryable:
                raise failure.error from None
            failures.append(str(failure.error))
    raise OperationalError("; ".join(failures), 2016)


def _serialized(request: Any) -> bytes:
    """A message, or one that is serialized already."""
    return request if isinstance(request, bytes) else bytes(request.SerializeToString())
