"""A client's call: an operation, the policy that admits the caller, and the services that the operation uses.

An operation is a name, a policy and a function. Every operation has a policy, and only `ClientApi.call`, which applies
the policy, can give a function the `Services` that it needs.

Thread-safe.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

import msgspec

from saros_server.api.cancellation import CancelToken
from saros_server.api.client_sessions import ClientSessions, SessionHolder
from saros_server.api.executions import Executions
from saros_server.api.session import EmbeddedSession
from saros_server.auth.login import LoginGate
from saros_server.node.node import Node
from saros_storage.base.clock import Clock
from saros_storage.base.write_request import WriteRequest

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class Policy(Enum):
    """The callers that may use an operation."""

    ANYONE = "anyone who can reach the port"
    SESSION = "the holder of a session"


class Peer(msgspec.Struct, frozen=True):
    """The machine that a call comes from, without the port."""

    #: `ipv4:192.0.2.1`, `ipv6:[2001:db8::1]`, or `unix`. A session's token is valid only for calls from the host that
    #: opened the session.
    host: str
    #: True if the peer is this machine.
    is_local: bool

    @classmethod
    def at(cls, address: str) -> Peer:
        """Return the peer at an IP address, given in the form in which a socket reports it. Raises ValueError."""
        found = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(found, ipaddress.IPv6Address):
            if found.ipv4_mapped is None:
                return cls(f"ipv6:[{found}]", found.is_loopback)
            found = found.ipv4_mapped
        return cls(f"ipv4:{found}", found.is_loopback)

    @property
    def address(self) -> str:
        """The host's IP address without the prefix and brackets that `host` has."""
        return self.host.removeprefix("ipv4:").removeprefix("ipv6:").strip("[]")


class Services(msgspec.Struct, frozen=True):
    """The state that the operations of a node's client API share."""

    folder: str
    node: Node
    clock: Clock
    started_ns: int
    gate: LoginGate
    sessions: ClientSessions
    executions: Executions

    @property
    def uptime_s(self) -> float:
        """Seconds since the API was created."""
        return (self.clock.monotonic_ns() - self.started_ns) / 1e9


#: The time reserved for reporting an error if a statement has waited for other nodes until its deadline.
_ERROR_MS = 150


class Call(NamedTuple):
    """A call by a client that satisfies the operation's policy."""

    services: Services
    peer: Peer
    #: The connection on which the call arrived.
    holder: SessionHolder
    cancel: CancelToken
    #: The token of the caller's session; empty if the caller has none.
    token: bytes
    #: The caller's session, if the policy requires one.
    admitted: EmbeddedSession | None
    #: See `WriteRequest`.
    deadline_ns: int | None = None

    @property
    def session(self) -> EmbeddedSession:
        """The caller's session; only for operations whose policy is SESSION."""
        assert self.admitted is not None
        return self.admitted

    def numbered(self, sequence: int, timeout_ms: int = 0) -> WriteRequest:
        """Return the caller's write request with a sequence number and the call's deadline.

        `timeout_ms`: the statement's own time limit (0: none). The write's deadline is shortly before that limit: so
        the error names the node that does not answer, and not the limit. If the call has an earlier deadline, that one
        applies.
        """
        deadline_ns = self.deadline_ns
        if timeout_ms:
            wait_ms = timeout_ms - min(_ERROR_MS, timeout_ms // 4)
            own_ns = self.services.clock.monotonic_ns() + wait_ms * 1_000_000
            deadline_ns = own_ns if deadline_ns is None else min(own_ns, deadline_ns)
        return self.session.numbered(sequence, deadline_ns)


class Operation(msgspec.Struct, Generic[_Request, _Answer], frozen=True):
    """A kind of request that clients can send to a node: its name, its policy and its implementation."""

    name: str
    policy: Policy
    function: Callable[[Call, _Request], _Answer]

    def __post_init__(self) -> None:
        """Raise TypeError if `policy` is not a Policy."""
        if not isinstance(self.policy, Policy):
            raise TypeError(f"operation {self.name} has no policy")
