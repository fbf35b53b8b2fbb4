"""The gRPC service: handlers for the calls in `rpcs`; contexts to peers and cancel tokens, errors to statuses.

A session's token comes in the metadata of a call. An error ends the call with a status whose trailing metadata has the
code. Statements run on gRPC's threads up to the first batch. Streams have threads of their own: each keeps one until
its client has read it, however slowly.

Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NoReturn, TypeVar
from urllib.parse import unquote

import grpc

from saros_server.api.calls import Operation, Peer
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_api import CALLS_MAX, ClientApi
from saros_server.api.errors import BadMessage, refusal_of, rows_left_of
from saros_server.grpc.rpcs import STREAMS, UNARY, Client, Rpc, partial_write
from saros_wire import protocol
from saros_wire.status import ErrorClass, status_of

#: Of a wait in milliseconds: more than a day.
_WAIT_DIGITS = 9
#: Connections whose peer is remembered.
_PEERS_CACHED = 1_024
_GRPC_STATUS = {
    ErrorClass.PROGRAMMING: grpc.StatusCode.INVALID_ARGUMENT,
    ErrorClass.DATA: grpc.StatusCode.INVALID_ARGUMENT,
    ErrorClass.INTEGRITY: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorClass.OPERATIONAL: grpc.StatusCode.UNAVAILABLE,
    ErrorClass.NOT_SUPPORTED: grpc.StatusCode.UNIMPLEMENTED,
    ErrorClass.INTERNAL: grpc.StatusCode.INTERNAL,
}
_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class GrpcService:
    """The handlers of a client API's calls."""

    def __init__(self, api: ClientApi) -> None:
        self._api = api
        self._streams = ThreadPoolExecutor(CALLS_MAX, thread_name_prefix="saros-stream")

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the handlers to register with a gRPC server."""
        methods = {name: self._unary(rpc) for name, rpc in UNARY.items()}
        methods |= {name: self._stream(rpc) for name, rpc in STREAMS.items()}
        return grpc.method_handlers_generic_handler(protocol.SERVICE, methods)

    def close(self) -> None:
        """Release the threads for streams when these have ended."""
        self._streams.shutdown(wait=False)

    def _unary(self, rpc: Rpc) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            self._guarded(rpc.run),
            request_deserializer=rpc.decode,
            response_serializer=lambda reply: reply.SerializeToString(),
        )

    def _stream(self, rpc: Rpc) -> Any:
        begin = self._guarded(rpc.run)

        def stream(message: Any, context: grpc.ServicerContext) -> Iterator[bytes | memoryview]:
            return _refusing(begin(message, context), context)

        stream.experimental_thread_pool = self._streams  # type: ignore[attr-defined]  # gRPC looks there
        return grpc.unary_stream_rpc_method_handler(stream, request_deserializer=rpc.decode, response_serializer=bytes)

    def _guarded(self, run: Callable[[Client, Any], Any]) -> Callable[[Any, grpc.ServicerContext], Any]:
        """Return a handler that runs a call for its client, and turns exceptions into statuses with a code."""

        def handle(message: Any, context: grpc.ServicerContext) -> Any:
            if not context.is_active():  # the client gave the call up while it waited for a thread
                return context.abort(grpc.StatusCode.CANCELLED, "the client has given the call up")
            try:
                return run(_Client(self._api, context), message)
            except Exception as error:  # noqa: BLE001 (the top of a call)
                _refuse(context, error)

        return handle


class _Client:
    """The client of an RPC; implements `Client`."""

    __slots__ = ("_api", "_context")

    def __init__(self, api: ClientApi, context: grpc.ServicerContext) -> None:
        self._api = api
        self._context = context

    def __call__(
        self, operation: Operation[_Request, _Answer], request: _Request, cancel: CancelToken | None = None
    ) -> _Answer:
        metadata = dict(self._context.invocation_metadata())
        peer = _peer(self._context.peer())
        wait_ms = _wait_ms(metadata)
        return self._api.call(operation, peer, _token(metadata), request, cancel=cancel, wait_ms=wait_ms)

    def cancel_token(self) -> CancelToken:
        """See `Client.cancel_token`."""
        token = CancelToken()
        if not self._context.add_callback(token.cancel):
            token.cancel()
        return token

    def set_trailer(self, key: str, value: str | bytes) -> None:
        """See `Client.set_trailer`."""
        self._context.set_trailing_metadata(((key, value),))


def _token(metadata: Mapping[str, object]) -> bytes:
    """Return the token in a call's metadata; empty if there is none."""
    token = metadata.get(protocol.SESSION_KEY)
    return token if isinstance(token, bytes) else b""


def _wait_ms(metadata: Mapping[str, object]) -> int | None:
    """Return how long a write may wait for other nodes; None: the client did not say. Raises BadMessage."""
    text = metadata.get(protocol.WAIT_KEY)
    if text is None:
        return None
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= _WAIT_DIGITS):
        raise BadMessage(f"{protocol.WAIT_KEY} {text!r}: not a number of milliseconds")
    return int(text)


@lru_cache(_PEERS_CACHED)
def _peer(text: str) -> Peer:
    """Return the peer of a connection, which gRPC writes with its port."""
    kind, _, address = unquote(text).partition(":")
    host = kind if kind.startswith("unix") else f"{kind}:{address.rpartition(':')[0]}"
    return Peer(host, host.startswith(("unix", "ipv4:127.", "ipv6:[::1]")))


def _refusing(messages: Iterator[bytes | memoryview], context: grpc.ServicerContext) -> Iterator[bytes | memoryview]:
    """Yield a stream; an error in it ends the call as one before it does."""
    try:
        yield from messages
    except Exception as error:  # noqa: BLE001 (the top of a call)
        _refuse(context, error)


def _refuse(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    """End the call with an error."""
    code, message = refusal_of(error)
    metadata: list[tuple[str, str | bytes]] = [(protocol.CODE_KEY, str(code))]
    rows = rows_left_of(error)
    if rows is not None:
        encoded = partial_write(rows).SerializeToString()
        if len(encoded) <= protocol.PARTIAL_WRITE_BYTES_MAX:
            metadata.append((protocol.PARTIAL_WRITE_KEY, encoded))
    context.set_trailing_metadata(tuple(metadata))
    context.abort(_GRPC_STATUS[status_of(code).error_class], message)
    raise AssertionError
