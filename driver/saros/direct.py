"""A session at one node, for calls that belong to it and no other: captures, uploads.

Speaks to the first of the target's addresses that answers. Used by one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

from saros.attempts import failure_of
from saros.channels import Lease, read_authority
from saros.errors import OperationalError
from saros.target import Target
from saros_wire import protocol
from saros_wire.generated import client_pb2

_OPEN_SECONDS = 10.0
_CLOSE_SECONDS = 5.0


class DirectSession:
    """See the module."""

    def __init__(self, target: Target) -> None:
        """Connect. Raises OperationalError (nobody answers, wrong password), InterfaceError (no such CA file)."""
        authority = read_authority(target.tls_ca)
        request = client_pb2.OpenRequest(
            protocol=protocol.PROTOCOL, client="python", user=target.user, password=target.password
        )
        failures = []
        for address in target.addresses:
            self.address, self._lease = address, Lease(address, authority)
            try:
                open_ = self._method(protocol.OPEN, client_pb2.OpenReply.FromString)
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

    def _method(self, name: str, decode: Any) -> Any:
        return self._lease.channel.unary_unary(
            protocol.path_of(name),
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=decode,
        )

    def call(self, name: str, request: Any, decode: Any, seconds: float) -> Any:
        """A call's answer. Raises grpc.RpcError."""
        return self._method(name, decode)(request, metadata=self._metadata, timeout=seconds)

    def stream(self, name: str, request: Any, seconds: float) -> Iterator[bytes]:
        """A call's answers. Raises grpc.RpcError."""
        call = self._lease.channel.unary_stream(
            protocol.path_of(name),
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=bytes,
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
            self._lease.release()
