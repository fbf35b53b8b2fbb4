"""The client service: what arrives by gRPC, carried out by sessions that are the embedded ones.

    Open -> token    Execute / Insert / Close with the token in the metadata    Ping without

A token names a session of this process and nothing else; it is random, bound to the peer's address, and forgotten when
the session was idle for long. Every call has a policy in `POLICIES`: a call without one cannot be registered.
Statements run on gRPC's threads up to the first batch; a client that goes away cancels what runs.

Thread-safe.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import version
from typing import Any, NoReturn

import grpc
import pyarrow as pa

from saros_server.logs import shape_of
from saros_server.node import Node
from saros_server.session import EmbeddedOutcome, EmbeddedSession, open_session
from saros_storage.clock import Clock
from saros_wire import protocol
from saros_wire.generated import client_pb2
from saros_wire.status import ErrorClass, status_of

logger = logging.getLogger(__name__)

#: A session that did nothing for so long is closed.
IDLE_SECONDS = 1_800
SESSIONS_MAX = 1_000
#: A statement whose rows took longer, the client's reading included, is logged.
SLOW_MS = 1_000
_TOKEN_BYTES = 32
_INTERNAL = 2001
_CLOSED = 2014
_GRPC_STATUS = {
    ErrorClass.PROGRAMMING: grpc.StatusCode.INVALID_ARGUMENT,
    ErrorClass.DATA: grpc.StatusCode.INVALID_ARGUMENT,
    ErrorClass.INTEGRITY: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorClass.OPERATIONAL: grpc.StatusCode.UNAVAILABLE,
    ErrorClass.NOT_SUPPORTED: grpc.StatusCode.UNIMPLEMENTED,
    ErrorClass.INTERNAL: grpc.StatusCode.INTERNAL,
}


class Policy(Enum):
    """Who may make a call."""

    ANYONE = "anyone who can reach the port"
    SESSION = "the holder of a session"


POLICIES: dict[str, Policy] = {
    protocol.OPEN: Policy.ANYONE,
    protocol.PING: Policy.ANYONE,
    protocol.CLOSE: Policy.SESSION,
    protocol.EXECUTE: Policy.SESSION,
    protocol.INSERT: Policy.SESSION,
}


@dataclass(slots=True)
class _Client:
    session: EmbeddedSession
    host: str
    used_ns: int


class ClientService:
    """See the module; serves the database in `folder`, which this process has open."""

    def __init__(self, folder: str, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._started_ns = clock.monotonic_ns()
        self._lock = threading.Lock()
        self._clients: dict[bytes, _Client] = {}
        #: Keeps the node open, and answers Ping.
        self._own = open_session(folder, time_zone=None, options={})

    @property
    def node(self) -> Node:
        """The node that is served."""
        return self._own.node

    @property
    def sessions(self) -> int:
        """Open sessions of clients."""
        return len(self._clients)

    @property
    def uptime_s(self) -> float:
        """Seconds since the service was made."""
        return (self._clock.monotonic_ns() - self._started_ns) / 1e9

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to register with a gRPC server."""
        methods = {
            protocol.OPEN: self._unary(protocol.OPEN, self._open, client_pb2.OpenRequest.FromString),
            protocol.PING: self._unary(protocol.PING, self._ping, client_pb2.PingRequest.FromString),
            protocol.CLOSE: self._unary(protocol.CLOSE, self._close, client_pb2.CloseRequest.FromString),
            protocol.INSERT: self._unary(protocol.INSERT, self._insert, bytes),
            protocol.EXECUTE: grpc.unary_stream_rpc_method_handler(
                self._guarded(protocol.EXECUTE, self._execute),
                request_deserializer=client_pb2.ExecuteRequest.FromString,
                response_serializer=bytes,
            ),
        }
        return grpc.method_handlers_generic_handler(protocol.SERVICE, methods)

    def _unary(self, call: str, method: Callable[..., Any], decode: Callable[[bytes], Any]) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            self._guarded(call, method),
            request_deserializer=decode,
            response_serializer=lambda reply: reply.SerializeToString(),
        )

    def _guarded(self, call: str, method: Callable[..., Any]) -> Callable[[Any, grpc.ServicerContext], Any]:
        """The method behind its policy; its exceptions as statuses with a code."""
        policy = POLICIES[call]

        def run(request: Any, context: grpc.ServicerContext) -> Any:
            try:
                if policy is Policy.ANYONE:
                    return method(request, context)
                return method(request, context, self._client_of(context))
            except Exception as error:  # noqa: BLE001 (the top of a call)
                _refuse(context, error)

        return run

    # ------------------------------------------------------------------ sessions

    def _client_of(self, context: grpc.ServicerContext) -> EmbeddedSession:
        tokens = [value for key, value in context.invocation_metadata() if key == protocol.SESSION_KEY]
        token = tokens[0] if tokens and isinstance(tokens[0], bytes) else b""
        now = self._clock.monotonic_ns()
        with self._lock:
            client = self._clients.get(token)
            if client is None or client.host != _host(context):
                raise _NoSession
            client.used_ns = now
            return client.session

    def _open(self, request: client_pb2.OpenRequest, context: grpc.ServicerContext) -> client_pb2.OpenReply:
        if request.protocol < protocol.PROTOCOL:
            raise _OldClient
        self.close_idle()
        session = open_session(self._folder, time_zone=request.time_zone or None, options={})
        token = secrets.token_bytes(_TOKEN_BYTES)
        with self._lock:
            full = len(self._clients) >= SESSIONS_MAX
            if not full:
                self._clients[token] = _Client(session, _host(context), self._clock.monotonic_ns())
        if full:
            session.close()
            raise _TooMany
        return client_pb2.OpenReply(
            protocol=protocol.PROTOCOL, session=token, time_unit=session.time_unit.suffix, server=version("saros")
        )

    def _close(
        self, _: client_pb2.CloseRequest, __: grpc.ServicerContext, session: EmbeddedSession
    ) -> client_pb2.CloseReply:
        with self._lock:
            self._clients = {token: c for token, c in self._clients.items() if c.session is not session}
        session.close()
        return client_pb2.CloseReply()

    def close_idle(self) -> None:
        """Close sessions that nobody used for long."""
        limit = self._clock.monotonic_ns() - IDLE_SECONDS * 1_000_000_000
        with self._lock:
            idle = [token for token, client in self._clients.items() if client.used_ns < limit]
            gone = [self._clients.pop(token) for token in idle]
        for client in gone:
            client.session.close()

    def close(self) -> None:
        """Close all sessions; the node closes with the last."""
        with self._lock:
            gone, self._clients = list(self._clients.values()), {}
        for client in gone:
            client.session.close()
        self._own.close()

    def _ping(self, _: client_pb2.PingRequest, __: grpc.ServicerContext) -> client_pb2.PingReply:
        node = self._own.node
        return client_pb2.PingReply(
            server=version("saros"),
            uptime_ms=int(self.uptime_s * 1_000),
            sessions=self.sessions,
            queries=node.engine.open_queries,
            problems=node.store.status().problems,
        )

    # ------------------------------------------------------------------ statements

    def _execute(
        self, request: client_pb2.ExecuteRequest, context: grpc.ServicerContext, session: EmbeddedSession
    ) -> Iterator[bytes]:
        timeout_s = request.timeout_ms / 1_000 if request.timeout_ms else None
        outcome = session.execute(request.statement, protocol.decode_values(request.parameters), timeout_s)
        if not context.add_callback(outcome.close):
            outcome.close()
        return self._stream(outcome, request.statement, context)

    def _stream(self, outcome: EmbeddedOutcome, statement: str, context: grpc.ServicerContext) -> Iterator[bytes]:
        started = self._clock.monotonic_ns()
        try:
            rows = outcome.names is not None
            head = client_pb2.ResultHead(query_id=outcome.query_id, update_count=outcome.update_count)
            if rows:
                head.schema = outcome.schema.serialize().to_pybytes()
                head.type_names.extend(outcome.type_names)
            yield head.SerializeToString()
            while rows and (batch := outcome.next_batch()) is not None:
                yield from _messages(batch)
        except Exception as error:  # noqa: BLE001 (the top of a call)
            _refuse(context, error)
        finally:
            outcome.close()
            elapsed_ms = (self._clock.monotonic_ns() - started) // 1_000_000
            if elapsed_ms >= SLOW_MS:
                extra = {"ms": elapsed_ms, "query": outcome.query_id, "statement": shape_of(statement)}
                logger.warning("slow statement", extra=extra)

    def _insert(self, request: bytes, _: grpc.ServicerContext, session: EmbeddedSession) -> client_pb2.InsertReply:
        try:
            table = pa.ipc.open_stream(request).read_all()
        except pa.ArrowInvalid as error:
            raise _BadMessage(f"columns that cannot be read: {error}") from error
        metadata = table.schema.metadata or {}
        device = metadata.get(protocol.DEVICE_KEY, b"").decode()
        aligned = {b"true": True, b"false": False}.get(metadata.get(protocol.ALIGNED_KEY, b""))
        names = table.column_names[1:]
        columns = {name: table.column(number) for number, name in enumerate(names, 1)}
        return client_pb2.InsertReply(points=session.insert(device, table.column(0), columns, aligned=aligned))


def _messages(batch: pa.RecordBatch) -> Iterator[bytes]:
    """The batch as Arrow IPC messages, none above the limit."""
    if batch.nbytes > protocol.MESSAGE_BYTES_MAX // 2 and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _messages(batch.slice(0, half))
        yield from _messages(batch.slice(half))
    else:
        yield batch.serialize().to_pybytes()


def _host(context: grpc.ServicerContext) -> str:
    """The peer without its port."""
    return str(context.peer()).rpartition(":")[0]


def _refuse(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    """End the call with what went wrong."""
    code = getattr(error, "code", None)
    if not isinstance(code, int):
        logger.error("a call failed", exc_info=error)
        code = _INTERNAL
    caret = getattr(error, "caret", None)
    message = str(error) if caret is None else f"{error}\n{caret()}"
    context.set_trailing_metadata(((protocol.CODE_KEY, str(code)),))
    context.abort(_GRPC_STATUS[status_of(code).error_class], message)
    raise AssertionError


class _ServiceError(Exception):
    """A call that cannot be carried out."""

    code = _CLOSED


class _NoSession(_ServiceError):
    def __init__(self) -> None:
        super().__init__("no such session: it was closed, idle for too long, or opened elsewhere; connect again")


class _TooMany(_ServiceError):
    code = 606

    def __init__(self) -> None:
        super().__init__(f"there are {SESSIONS_MAX} sessions already: close some, or wait for idle ones to end")


class _OldClient(_ServiceError):
    code = 2015

    def __init__(self) -> None:
        super().__init__(f"this node speaks protocol {protocol.PROTOCOL}: use a newer driver")


class _BadMessage(_ServiceError):
    code = 2003
