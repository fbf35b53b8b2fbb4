"""The server side of Raft's batches, calls and streams. Each request is checked before it is carried out.

    handshake -> name, deadline -> a place -> handler -> answer
        |             |               |          |
       2019         2002/2003        606     its own code, or 2001 and the log          (the code ends the call)

The number of concurrent requests is limited separately for each kind, so that waiting calls do not take Raft's threads.

    connection 1 of node 7   ----m1--m2--|                        2 arrives: 1 is cancelled, and none of its messages
    connection 2 of node 7             --|--m3--m4--->            is delivered after the first one of 2

A stream's iterator is closed when the other side has cancelled the stream, or is lost. Another thread cannot close a
generator that is running, so a generator is closed at its next yield. An iterator that is not a generator is closed at
once by a thread of gRPC, even if another thread is waiting in its `next`. The `close` of such an iterator must not
wait, and may be called twice.

Threads: gRPC's.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import isgenerator
from typing import NoReturn, TypeVar

import grpc
import msgspec

from saros_cluster.multiraft.peers import CallHandler, Receive, StreamHandler
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Message
from saros_cluster.transport.channels import (
    CALL,
    CODE_KEY,
    CONNECTION_KEY,
    ERROR_CHARACTERS_MAX,
    MESSAGE_BYTES_MAX,
    NAME_KEY,
    RAFT,
    SERVICE,
    STREAM,
    TIMEOUT_KEY,
)
from saros_cluster.transport.codec import decode_batch
from saros_cluster.transport.counters import Counters
from saros_cluster.transport.handshake import SENDER_KEY, Identity, advertised_address, verified_sender

logger = logging.getLogger(__name__)

#: The limits of concurrent senders of Raft's messages, of calls, and of streams. Each of them occupies a thread while
#: it lasts. The leader of the meta group has a lane from every other node. Most nodes have a few.
LANES_MAX, CALLS_MAX, STREAMS_MAX = 1_024, 64, 64
#: The number of threads: one for each permitted request, and some more that refuse further requests.
THREADS_MAX = LANES_MAX + CALLS_MAX + STREAMS_MAX + 16
#: The maximum deadline of a call, and the maximum time to wait for the next answer of a stream.
DEADLINE_S_MAX = 3_600
_CONNECTION = re.compile(r"([0-9]{1,20})/([0-9]{1,20})")
_INTERNAL, _UNKNOWN, _INVALID, _TOO_LARGE, _TOO_MANY = 2001, 2002, 2003, 2006, 606
Handler = TypeVar("Handler")
Fields = Mapping[str, object]


class ServingError(Exception):
    """Raised to refuse a call, with the code for the caller."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Arrival(msgspec.Struct, frozen=True, eq=False):
    """A connection of a sender. Successive connections of one sender share the lock."""

    boot: int
    number: int
    context: grpc.ServicerContext
    #: Held while messages are delivered.
    delivering: threading.Lock


class InboundStreams:
    """The newest connection of each sender."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._lock = threading.Lock()
        self._newest: dict[NodeId, _Arrival] = {}

    def enter(self, sender: NodeId, boot: int, number: int, context: grpc.ServicerContext) -> _Arrival:
        """Register a new connection, and cancel the sender's previous one. Raises ServingError."""
        with self._lock:
            old = self._newest.get(sender)
            if old is None and len(self._newest) >= LANES_MAX:
                raise ServingError(_TOO_MANY, f"the limit of {LANES_MAX} sending nodes is reached")
            if old is not None and old.boot == boot and old.number > number:
                raise ServingError(_INVALID, f"connection {number} is older than connection {old.number}")
            lock = threading.Lock() if old is None else old.delivering
            arrival = self._newest[sender] = _Arrival(boot, number, context, lock)
        if old is not None:
            old.context.cancel()
        return arrival

    def deliver(self, sender: NodeId, arrival: _Arrival, messages: Sequence[Message]) -> bool:
        """Deliver messages, unless the sender has a newer connection. Return whether they were delivered."""
        with arrival.delivering:
            if self._newest.get(sender) is not arrival:
                return False
            self._receive(sender, messages)
            return True

    def leave(self, sender: NodeId, arrival: _Arrival) -> None:
        """Record that the connection has ended."""
        with self._lock:
            if self._newest.get(sender) is arrival:
                del self._newest[sender]


class Serving:
    """The handlers of a node's gRPC server.

    `learn_address` is called with the addresses that callers advertise. If `secure`, certificates are verified.
    """

    def __init__(
        self,
        identity: Identity,
        receive: Receive,
        calls: Mapping[str, CallHandler],
        streams: Mapping[str, StreamHandler],
        counters: Counters,
        learn_address: Callable[[NodeId, str], None],
        *,
        secure: bool,
    ) -> None:
        self._identity = identity
        self._learn_address = learn_address
        self._secure = secure
        self._arrivals = InboundStreams(receive)
        self._calls = dict(calls)
        self._streams = dict(streams)
        self._counters = counters
        self._call_places = threading.BoundedSemaphore(CALLS_MAX)
        self._stream_places = threading.BoundedSemaphore(STREAMS_MAX)

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the handlers to register with a gRPC server."""
        methods = {
            RAFT: grpc.stream_unary_rpc_method_handler(self._raft),
            CALL: grpc.unary_unary_rpc_method_handler(self._call),
            STREAM: grpc.unary_stream_rpc_method_handler(self._stream),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    def _authenticate(self, context: grpc.ServicerContext) -> tuple[NodeId, Fields]:
        """Return the calling node and the metadata. Raises Refused."""
        metadata: Fields = dict(context.invocation_metadata())
        certificate = context.auth_context() if self._secure else None
        return verified_sender(self._identity, metadata, certificate), metadata

    # ------------------------------------------------------------------ Raft

    def _raft(self, batches: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        try:
            sender, metadata = self._authenticate(context)
            address = advertised_address(metadata)
            if address is not None:
                self._learn_address(sender, address)
            arrival = self._arrivals.enter(sender, *_connection(metadata), context)
            try:
                context.send_initial_metadata(((SENDER_KEY, str(self._identity.node)),))
                self._deliver_all(sender, arrival, batches)
            finally:
                self._arrivals.leave(sender, arrival)
        except grpc.RpcError:
            logger.info("the connection from a node ended", extra={"peer": sender})
        except Exception as error:  # noqa: BLE001 (the top of a call)
            _refuse(context, error)
        return b""

    def _deliver_all(self, sender: NodeId, arrival: _Arrival, batches: Iterator[bytes]) -> None:
        for batch in batches:
            try:
                messages = decode_batch(batch, sender, self._identity.node)
            except ValueError as error:
                logger.warning("received an invalid batch from a node", extra={"peer": sender, "why": str(error)})
                raise ServingError(_INVALID, f"invalid batch: {error}") from error
            self._counters.add(sender, received=len(messages), received_bytes=len(batch))
            if not self._arrivals.deliver(sender, arrival, messages):
                return

    # ------------------------------------------------------------------ calls

    def _call(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            sender, metadata = self._authenticate(context)
            _check_deadline(context.time_remaining())
            handler = _named(self._calls, metadata)
            with _place(self._call_places):
                return _sized(handler(sender, request))
        except Exception as error:  # noqa: BLE001 (the top of a call)
            _refuse(context, error)

    def _stream(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            sender, metadata = self._authenticate(context)
            _check_deadline(_timeout_s(metadata))
            handler = _named(self._streams, metadata)
            with _place(self._stream_places), _closing(handler(sender, request), context) as answers:
                yield from map(_sized, answers)
        except Exception as error:  # noqa: BLE001 (the top of a call)
            _refuse(context, error)


def _connection(metadata: Fields) -> tuple[int, int]:
    match = _CONNECTION.fullmatch(str(metadata.get(CONNECTION_KEY)))
    if match is None:
        raise ServingError(_INVALID, "the connection number is missing or invalid")
    return int(match[1]), int(match[2])


def _timeout_s(metadata: Fields) -> float | None:
    text = str(metadata.get(TIMEOUT_KEY))
    return int(text) / 1_000 if text.isdecimal() and len(text) < 10 else None


def _check_deadline(seconds: float | None) -> None:
    if seconds is None or seconds > DEADLINE_S_MAX:
        raise ServingError(_INVALID, f"a call needs a deadline, {DEADLINE_S_MAX} s at most")


def _named(handlers: Mapping[str, Handler], metadata: Fields) -> Handler:
    name = str(metadata.get(NAME_KEY))
    handler = handlers.get(name)
    if handler is None:
        raise ServingError(_UNKNOWN, f"this node has no handler for {name!r}")
    return handler


def _sized(answer: bytes) -> bytes:
    if len(answer) > MESSAGE_BYTES_MAX:
        raise ServingError(_TOO_LARGE, f"the response of {len(answer)} bytes exceeds the limit of {MESSAGE_BYTES_MAX}")
    return answer


@contextmanager
def _place(places: threading.BoundedSemaphore) -> Iterator[None]:
    if not places.acquire(blocking=False):
        raise ServingError(_TOO_MANY, "this node handles too many calls; retry later")
    try:
        yield
    finally:
        places.release()


@contextmanager
def _closing(answers: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Iterator[bytes]]:
    """Yield the iterator's items. Close the iterator when the stream ends, or when the other side has disconnected."""
    close = getattr(answers, "close", None)
    if close is None:
        yield answers
        return
    if not isgenerator(answers):
        context.add_callback(close)
    try:
        yield answers
    finally:
        close()


def _refuse(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    """End the call with the error."""
    code = getattr(error, "code", None)
    if not isinstance(code, int):
        logger.error("a call from a node failed", exc_info=error)
        code = _INTERNAL
    context.set_trailing_metadata(((CODE_KEY, str(code)),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error)[:ERROR_CHARACTERS_MAX])
    raise AssertionError
