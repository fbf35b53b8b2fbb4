"""The client service: what arrives by gRPC, carried out by sessions that are the embedded ones.

    Open -> token    Ask / Rest / DiscardRest / Execute / Insert / Close with the token in the metadata    Ping without

Every call has a policy in `POLICIES`: a call without one cannot be registered. Statements run on gRPC's threads up to
the first batch (`statements`); a client that goes away cancels what runs. Streams have threads of their own: each keeps
one until its client has read it, however slowly.

Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Any, NoReturn
from urllib.parse import unquote

import grpc

from saros_server.api.client_sessions import ClientSessions
from saros_server.api.errors import BadMessage, refusal_of
from saros_server.api.insert_batching import InsertBatcher
from saros_server.api.insert_request import read_insert
from saros_server.api.session import EmbeddedSession, open_session
from saros_server.auth.audit import AuditLog
from saros_server.auth.login import LoginGate
from saros_server.auth.passwords import Cost
from saros_server.grpc.admin_calls import OTHER_CALLS, OTHER_STREAMS
from saros_server.grpc.leader_wait import leaders_until_ns
from saros_server.grpc.statements import Statements
from saros_server.grpc.sync_calls import SYNC_CALLS
from saros_server.node.node import Node
from saros_server.process.version import RELEASE
from saros_storage.base.clock import Clock
from saros_storage.io.disk import LocalDisk
from saros_wire import protocol
from saros_wire.generated import client_pb2
from saros_wire.status import ErrorClass, status_of

#: Calls of clients at a time; there are as many threads for streams.
CALLS_MAX = 256
#: Of reads, if the client does not say.
_CONSISTENCY = "strong"
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
    PARTS = "each part by itself: the holder of a session"


POLICIES: dict[str, Policy] = {
    protocol.OPEN: Policy.ANYONE,
    protocol.PING: Policy.ANYONE,
    protocol.CLOSE: Policy.SESSION,
    protocol.EXECUTE: Policy.SESSION,
    protocol.ASK: Policy.SESSION,
    protocol.REST: Policy.SESSION,
    protocol.DISCARD_REST: Policy.SESSION,
    protocol.INSERT: Policy.SESSION,
    protocol.INSERT_TOGETHER: Policy.PARTS,
    protocol.HOLD: Policy.SESSION,
    protocol.UPLOAD: Policy.SESSION,
    protocol.DISCARD_UPLOADS: Policy.SESSION,
    protocol.FREEZE: Policy.SESSION,
    protocol.FETCH: Policy.SESSION,
    protocol.THAW: Policy.SESSION,
    protocol.SYNC_BEGIN: Policy.SESSION,
    protocol.SYNC_CHUNK: Policy.SESSION,
    protocol.SYNC_COMMIT: Policy.SESSION,
}


class ClientService:
    """See the module; serves the database in `folder`, which this process has open."""

    def __init__(self, folder: str, clock: Clock, *, authentication: bool = False) -> None:
        """`authentication`: clients log in; else everybody is let in, and may everything. Raises StorageError."""
        self._folder = folder
        self._clock = clock
        self._started_ns = clock.monotonic_ns()
        #: Keeps the node open, and answers Ping.
        self._own = open_session(folder, time_zone=None, options={})
        try:
            self._gate = self._make_gate(authentication=authentication)
            self._sessions = ClientSessions(self._gate, clock)
            self._together = InsertBatcher(self.node)
            self._statements = Statements(clock)
            self._streams = ThreadPoolExecutor(CALLS_MAX, thread_name_prefix="saros-stream")
        except BaseException:
            self._own.close()
            raise

    def _make_gate(self, *, authentication: bool) -> LoginGate:
        node = self._own.node
        directory = node.directory if authentication else None
        audit = AuditLog(self._folder, LocalDisk(), self._clock)
        return LoginGate(directory, audit, self._clock, Cost(node.configuration.password_cost))

    @property
    def node(self) -> Node:
        """The node that is served."""
        return self._own.node

    @property
    def sessions(self) -> int:
        """Open sessions of clients."""
        return len(self._sessions)

    @property
    def uptime_s(self) -> float:
        """Seconds since the service was made."""
        return (self._clock.monotonic_ns() - self._started_ns) / 1e9

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to register with a gRPC server."""
        statements = self._statements
        methods = {
            protocol.OPEN: self._unary(protocol.OPEN, self._open, client_pb2.OpenRequest.FromString),
            protocol.PING: self._unary(protocol.PING, self._ping, client_pb2.PingRequest.FromString),
            protocol.CLOSE: self._unary(protocol.CLOSE, self._close, client_pb2.CloseRequest.FromString),
            protocol.INSERT: self._unary(protocol.INSERT, self._insert, bytes),
            protocol.INSERT_TOGETHER: self._unary(
                protocol.INSERT_TOGETHER, self._insert_together, client_pb2.InsertTogetherRequest.FromString
            ),
            **{call: self._unary(call, *handler) for call, handler in (OTHER_CALLS | SYNC_CALLS).items()},
            protocol.ASK: self._unary(protocol.ASK, statements.ask, client_pb2.ExecuteRequest.FromString),
            protocol.DISCARD_REST: self._unary(
                protocol.DISCARD_REST, statements.discard_rest, client_pb2.RestRequest.FromString
            ),
            protocol.REST: self._stream_of(protocol.REST, statements.rest, client_pb2.RestRequest.FromString),
            protocol.EXECUTE: self._stream_of(
                protocol.EXECUTE, statements.execute, client_pb2.ExecuteRequest.FromString
            ),
            **{call: self._stream_of(call, *handler) for call, handler in OTHER_STREAMS.items()},
        }
        return grpc.method_handlers_generic_handler(protocol.SERVICE, methods)

    def _unary(self, call: str, method: Callable[..., Any], decode: Callable[[bytes], Any]) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            self._guarded(call, method),
            request_deserializer=decode,
            response_serializer=lambda reply: reply.SerializeToString(),
        )

    def _stream_of(self, call: str, method: Callable[..., Any], decode: Callable[[bytes], Any]) -> Any:
        begin = self._guarded(call, method)

        def stream(request: Any, context: grpc.ServicerContext) -> Iterator[bytes]:
            return _refusing(begin(request, context), context)

        stream.experimental_thread_pool = self._streams  # type: ignore[attr-defined]  # gRPC looks there
        return grpc.unary_stream_rpc_method_handler(stream, request_deserializer=decode, response_serializer=bytes)

    def _guarded(self, call: str, method: Callable[..., Any]) -> Callable[[Any, grpc.ServicerContext], Any]:
        """The method behind its policy; its exceptions as statuses with a code."""
        policy = POLICIES[call]

        def run(request: Any, context: grpc.ServicerContext) -> Any:
            try:
                match policy:
                    case Policy.ANYONE:
                        return method(request, context)
                    case Policy.SESSION:
                        session = self._sessions.find(_token(_metadata(context)), _host(context))
                        return method(request, context, session)
                    case Policy.PARTS:
                        host = _host(context)
                        find = self._sessions.find
                        return method(request, context, lambda token: find(token, host))
            except Exception as error:  # noqa: BLE001 (the top of a call)
                _refuse(context, error)

        return run

    # ------------------------------------------------------------------ sessions

    def _open(self, request: client_pb2.OpenRequest, context: grpc.ServicerContext) -> client_pb2.OpenReply:
        if request.protocol < protocol.PROTOCOL_MIN:
            raise _OldClient
        self._sessions.close_idle()
        host = _host(context)
        visitor = self._gate.enter(request.user, request.password, host)
        consistency = request.consistency or _CONSISTENCY
        session = open_session(
            self._folder,
            time_zone=request.time_zone or None,
            options={},
            consistency=consistency,
            files=False,
            host=_address(host),
        )
        session.client_id = request.client_id
        token = self._sessions.add(session, host, visitor)
        return client_pb2.OpenReply(
            protocol=min(request.protocol, protocol.PROTOCOL),
            session=token,
            time_unit=session.time_unit.suffix,
            server=RELEASE,
            addresses=self._addresses(),
            memory=self.node.requests.memory if self.node.cluster is None else 0,
        )

    @property
    def is_joining(self) -> bool:
        """Whether the node is to become one of a cluster's, and is not yet."""
        cluster = self._own.node.cluster
        return cluster is not None and not cluster.status.is_in

    def _addresses(self) -> list[str]:
        cluster = self._own.node.cluster
        return [] if cluster is None else cluster.status.client_addresses()

    def _close(
        self, _: client_pb2.CloseRequest, __: grpc.ServicerContext, session: EmbeddedSession
    ) -> client_pb2.CloseReply:
        self._sessions.remove(session)
        return client_pb2.CloseReply()

    def close(self) -> None:
        """Close all sessions; the node closes with the last."""
        self._statements.close()
        self._streams.shutdown(wait=False)
        self._sessions.close()
        self._together.close()
        self._gate.close()
        self._own.close()

    def _ping(self, _: client_pb2.PingRequest, context: grpc.ServicerContext) -> client_pb2.PingReply:
        """How the node is; who asks from elsewhere a node that has users learns that it is there."""
        if not self._gate.is_open and not _is_local_peer(_host(context)):
            return client_pb2.PingReply(server=RELEASE)
        node = self._own.node
        return client_pb2.PingReply(
            server=RELEASE,
            uptime_ms=int(self.uptime_s * 1_000),
            sessions=self.sessions,
            queries=node.engine.open_queries,
            problems=node.problems(),
        )

    # ------------------------------------------------------------------ writes

    def _insert(
        self, message: bytes, context: grpc.ServicerContext, session: EmbeddedSession
    ) -> client_pb2.InsertReply:
        until_ns = leaders_until_ns(context, self._clock.monotonic_ns())
        insert = read_insert(message)
        points = session.insert(
            insert.device,
            insert.times,
            insert.columns,
            aligned=insert.aligned,
            request=session.numbered(insert.sequence, until_ns),
        )
        return client_pb2.InsertReply(points=points, leader=self.node.leader_elsewhere(insert.device))

    def _insert_together(
        self,
        request: client_pb2.InsertTogetherRequest,
        context: grpc.ServicerContext,
        session_of: Callable[[bytes], EmbeddedSession],
    ) -> client_pb2.InsertTogetherReply:
        if len(request.parts) > protocol.TOGETHER_MAX:
            raise BadMessage(f"{len(request.parts)} inserts in one call: more than {protocol.TOGETHER_MAX}")
        until_ns = leaders_until_ns(context, self._clock.monotonic_ns())
        return client_pb2.InsertTogetherReply(outcomes=self._together.insert(request.parts, session_of, until_ns))


def _metadata(context: grpc.ServicerContext) -> dict[str, object]:
    return dict(context.invocation_metadata())


def _token(metadata: Mapping[str, object]) -> bytes:
    """The token in a call's metadata; empty if there is none."""
    token = metadata.get(protocol.SESSION_KEY)
    return token if isinstance(token, bytes) else b""


def _host(context: grpc.ServicerContext) -> str:
    """The peer without its port."""
    kind, _, address = unquote(str(context.peer())).partition(":")
    return kind if kind.startswith("unix") else f"{kind}:{address.rpartition(':')[0]}"


def _address(host: str) -> str:
    """A host as users write it."""
    return host.removeprefix("ipv4:").removeprefix("ipv6:").strip("[]")


def _is_local_peer(host: str) -> bool:
    """Whether a peer is on this machine."""
    return host.startswith(("unix", "ipv4:127.", "ipv6:[::1]"))


def _refusing(pieces: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    """A stream; what goes wrong amid it ends the call as what goes wrong before it does."""
    try:
        yield from pieces
    except Exception as error:  # noqa: BLE001 (the top of a call)
        _refuse(context, error)


def _refuse(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    """End the call with what went wrong."""
    code, message = refusal_of(error)
    context.set_trailing_metadata(((protocol.CODE_KEY, str(code)),))
    context.abort(_GRPC_STATUS[status_of(code).error_class], message)
    raise AssertionError


class _OldClient(Exception):
    code = 2015

    def __init__(self) -> None:
        super().__init__(
            f"this node speaks protocols {protocol.PROTOCOL_MIN} to {protocol.PROTOCOL}: use a newer driver"
        )
