"""The client API: all operations that a node offers remote clients, in any protocol.

    protocol: connection --> connect(peer) --> ApiConnection
              message    --> call(operation, token, request)
                                 policy: is the caller the holder of a session?
                                 function --> answer, or an exception with a `code` (`errors.refusal_of`)
              its end    --> close(): sessions that no other connection holds end soon

Remote clients are served by the same sessions as embedded callers. A protocol translates between its messages and the
values of `operations`, and cancels the call's token when its client disconnects. Calls run on the protocol's threads.

Thread-safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from saros_server.api.calls import Call, Operation, Peer, Policy, Services
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_sessions import ClientSessions, SessionHolder
from saros_server.api.executions import Executions
from saros_server.api.operations import OPERATIONS
from saros_server.api.session import EmbeddedSession, open_session
from saros_server.auth.audit import AuditLog
from saros_server.auth.login import LoginGate
from saros_server.auth.passwords import Cost
from saros_server.node.node import Node
from saros_server.process.logs import log_slow
from saros_storage.base.clock import Clock
from saros_storage.io.disk import LocalDisk

#: Concurrent calls of clients.
CALLS_MAX = 256

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class ClientApi:
    """The operations on the database in `folder`, which stays open in this process until `close`."""

    def __init__(
        self,
        folder: str,
        clock: Clock,
        *,
        authentication: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> None:
        """Open the database, with `options` that take precedence over the folder's file.

        Without `authentication`, every client has all privileges. Raises ConfigurationError, StorageError.
        """
        #: Keeps the node open.
        self._own = open_session(folder, time_zone=None, options=options or {})
        try:
            node = self._own.node
            node.engine.slow_queries.listener = log_slow
            audit = AuditLog(folder, LocalDisk(), clock)
            directory = node.directory if authentication else None
            gate = LoginGate(directory, audit, clock, Cost(node.configuration.password_cost))
            self._services = Services(
                folder=folder,
                node=node,
                clock=clock,
                started_ns=clock.monotonic_ns(),
                gate=gate,
                sessions=ClientSessions(gate, clock),
                executions=Executions(clock),
            )
        except BaseException:
            self._own.close()
            raise

    def connect(self, peer: Peer) -> ApiConnection:
        """Return the API for a new connection of a client; close it with the connection."""
        return ApiConnection(self._services, peer)

    @property
    def node(self) -> Node:
        """The node that is served."""
        return self._services.node

    @property
    def sessions(self) -> int:
        """Open sessions of clients."""
        return len(self._services.sessions)

    @property
    def requires_login(self) -> bool:
        """True if a client must log in to get a session."""
        return not self._services.gate.is_open

    @property
    def now_ns(self) -> int:
        """The time of the node's clock."""
        return self._services.clock.now_ns()

    @property
    def uptime_s(self) -> float:
        """Seconds since the API was created."""
        return self._services.uptime_s

    @property
    def is_joining(self) -> bool:
        """True if the node is joining a cluster but is not a member yet."""
        cluster = self.node.cluster
        return cluster is not None and not cluster.status.is_in

    def close(self) -> None:
        """Close all sessions; the node closes with the last one."""
        services = self._services
        services.executions.close()
        services.sessions.close()
        services.gate.close()
        self._own.close()


class ApiConnection:
    """The client API for one connection. Thread-safe, except `close`: call it when no call is in progress."""

    def __init__(self, services: Services, peer: Peer) -> None:
        self._services = services
        self._peer = peer
        self._holder = SessionHolder(peer.host)

    @property
    def host(self) -> str:
        """The host of the client (`Peer.host`)."""
        return self._holder.host

    def call(
        self,
        operation: Operation[_Request, _Answer],
        token: bytes,
        request: _Request,
        *,
        cancel: CancelToken | None = None,
        wait_ms: int | None = None,
    ) -> _Answer:
        """Apply the operation's policy to the caller, and run the operation.

        `token` is the token of the caller's session, or empty. A write may wait `wait_ms` for other nodes of a cluster;
        if it is None, each step of the write has its own limit. Raises NoSession, and the errors of the operation.
        """
        if OPERATIONS.get(operation.name) is not operation:
            raise TypeError(f"operation {operation.name} is not registered")
        session = self._admitted(operation.policy, token)
        call = Call(
            self._services,
            self._peer,
            self._holder,
            cancel or CancelToken(),
            token,
            session,
            self._deadline_ns(wait_ms),
        )
        return operation.function(call, request)

    def _deadline_ns(self, wait_ms: int | None) -> int | None:
        return None if wait_ms is None else self._services.clock.monotonic_ns() + wait_ms * 1_000_000

    def _admitted(self, policy: Policy, token: bytes) -> EmbeddedSession | None:
        """Return the caller's session if the policy requires one. Raises NoSession."""
        match policy:
            case Policy.SESSION:
                return self._services.sessions.find(token, self._holder)
            case Policy.ANYONE:
                return None

    def close(self) -> None:
        """Release the sessions that the connection holds."""
        self._services.sessions.release(self._holder)
