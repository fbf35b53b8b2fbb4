"""Calls and streams to other nodes, over one channel per node. Errors of gRPC are converted to the errors of `peers`.

    the node's own answer, with a code          RemoteError
    no answer, no connection, out of time       Unreachable: its effect is unknown

A stream is requested at once, and the thread that iterates over it reads the answers. Nothing is read ahead beyond
gRPC's window.

Thread-safe. A stream is used by one thread at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

import grpc
import msgspec

from saros_cluster.multiraft.peers import RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.transport.channels import (
    CALL_PATH,
    MESSAGE_BYTES_MAX,
    NAME_KEY,
    STREAM_PATH,
    TIMEOUT_KEY,
    Dialer,
    call_error,
    code_of,
)
from saros_cluster.transport.handshake import Identity, Metadata, PeerCredentials, handshake_metadata
from saros_cluster.transport.watchdog import Watchdog
from saros_storage.base.clock import Clock

_TOO_LARGE = 2006
#: A part of gRPC's error message for a call without a connection.
_NOT_SENT = "failed to connect"


class _Route(msgspec.Struct, frozen=True):
    """A channel to a node, with the address and the credentials from which it was made."""

    address: str
    credentials: PeerCredentials | None
    channel: grpc.Channel
    call: Any
    stream: Any


class Calls:
    """The client side of calls and streams, with a cached channel to each node."""

    def __init__(self, identity: Identity, dialer: Dialer, clock: Clock) -> None:
        self._identity = identity
        self._dialer = dialer
        self._watchdog = Watchdog(clock)
        self._lock = threading.Lock()
        self._routes: dict[NodeId, _Route] = {}
        self._closed = False

    def call(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> bytes:
        """Call a node, as `Peers.call` does."""
        route = self._route(node, request, timeout_s)
        try:
            answer: bytes = route.call(request, timeout=timeout_s, metadata=self._metadata(node, name, timeout_s))
        except grpc.RpcError as error:
            raise _translated(node, error) from error
        except ValueError as error:
            raise Unreachable(node, str(error)) from error  # the channel was closed in the meantime
        return answer

    def stream(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> Generator[bytes, None, None]:
        """Start a stream from a node, as `Peers.stream` does."""
        route = self._route(node, request, timeout_s)
        try:
            call = route.stream(request, metadata=self._metadata(node, name, timeout_s))
        except ValueError as error:
            raise Unreachable(node, str(error)) from error
        return self._answers(node, call, timeout_s)

    def _answers(self, node: NodeId, call: Any, timeout_s: float) -> Generator[bytes, None, None]:
        try:
            while True:
                with self._watchdog.limit(timeout_s, call.cancel) as limit:
                    answer = next(call, None)
                if answer is None:
                    return
                yield answer
        except grpc.RpcError as error:
            if limit.passed:
                raise Unreachable(node, f"no response within {timeout_s} s") from error
            raise _translated(node, error) from error
        finally:
            call.cancel()

    def close(self) -> None:
        """Cancel all calls and streams."""
        with self._lock:
            self._closed = True
            routes, self._routes = list(self._routes.values()), {}
        for route in routes:
            route.channel.close()
        self._watchdog.close()

    def _metadata(self, node: NodeId, name: str, timeout_s: float) -> Metadata:
        own = ((NAME_KEY, name), (TIMEOUT_KEY, str(int(timeout_s * 1_000))))
        return handshake_metadata(self._identity, node) + own

    def _route(self, node: NodeId, request: bytes, timeout_s: float) -> _Route:
        """Return a channel for a request, after checking its size. Raises Unreachable, RemoteError."""
        assert timeout_s > 0
        if len(request) > MESSAGE_BYTES_MAX:
            raise RemoteError(
                node, _TOO_LARGE, f"the request of {len(request)} bytes exceeds the limit of {MESSAGE_BYTES_MAX}"
            )
        address, credentials = self._dialer.address(node), self._dialer.credentials
        with self._lock:
            if self._closed:
                raise Unreachable(node, "this node is closing")
            old = self._routes.get(node)
            if old is not None and old.address == address and old.credentials is credentials:
                return old
            route = self._routes[node] = _route_to(address, credentials, self._dialer.dial(node, address))
        if old is not None:
            old.channel.close()
        return route


def _route_to(address: str, credentials: PeerCredentials | None, channel: grpc.Channel) -> _Route:
    return _Route(address, credentials, channel, channel.unary_unary(CALL_PATH), channel.unary_stream(STREAM_PATH))


def _translated(node: NodeId, error: Any) -> Unreachable | RemoteError:
    code = code_of(error)
    if code is None:
        trouble = call_error(error)
        return Unreachable(node, trouble, sent=_NOT_SENT not in trouble)
    return RemoteError(node, code, str(error.details()))
