"""Sessions of remote clients, each identified by a token that its client got when it opened the session.

    OPEN --> held by connections --CLOSE, idle, old, password changed--> closed
               | the last of them ends          ^ a call on another one
               +----> leased -------------------+
                        | LEASE_SECONDS without a call, or the table is full: the longest leased first
                        +--> closed

A token is random, is valid in this process only, and is bound to the peer's address and to the user that logged in
(`login`). A connection holds the sessions that it has opened or used. A session outlives its connections for a short
time, so that a client that has lost them can continue. The time is short so that the sessions of crashed clients do not
fill the table.

Thread-safe.
"""

from __future__ import annotations

import secrets
import threading

import msgspec

from saros_server.api.session import EmbeddedSession
from saros_server.auth.login import AuthenticatedClient, LoginGate
from saros_storage.base.clock import Clock

#: A session without calls for this long is closed.
IDLE_SECONDS = 1_800
#: A user's session is closed this long after the login. The client then has to log in again.
LIFE_SECONDS = 86_400
#: A session that no connection holds is closed after this time. A client that has lost its connection reconnects much
#: sooner.
LEASE_SECONDS = 60
#: Equal to the limit on connections: a client needs at most one session for each connection. A session takes 1 KiB.
SESSIONS_MAX = 10_000
#: The interval at which all sessions are checked for expiry.
_SWEEP_SECONDS = 10
_TOKEN_BYTES = 32


class NoSession(Exception):
    """The token does not identify a session that this peer may use."""

    code = 2014

    def __init__(self) -> None:
        super().__init__(
            "no such session: it was closed, idle for too long, or opened elsewhere, or the password was changed;"
            " connect again"
        )


class TooManySessions(Exception):
    """The node has the maximum number of sessions, and none can be closed, because each is held by a connection."""

    code = 2034

    def __init__(self) -> None:
        super().__init__(
            f"this node has {SESSIONS_MAX} sessions, the maximum: close some, or wait for idle ones to expire"
        )


class _ClientSession(msgspec.Struct, eq=False):
    """A session, its client, and the connections that hold it."""

    token: bytes
    session: EmbeddedSession
    host: str
    visitor: AuthenticatedClient
    opened_ns: int
    used_ns: int
    #: The connections that hold the session. While there are none, the session is leased: it is kept for
    #: `LEASE_SECONDS`.
    holders: set[SessionHolder] = msgspec.field(default_factory=set)
    #: The start of the session's last lease.
    leased_ns: int = 0

    def is_expired(self, now_ns: int) -> bool:
        """Return whether the session was idle for too long, or is too old. Anonymous sessions have no maximum age."""
        old = self.visitor.user != "" and now_ns - self.opened_ns > LIFE_SECONDS * 1_000_000_000
        idle = now_ns - self.used_ns > IDLE_SECONDS * 1_000_000_000
        return old or idle or (not self.holders and now_ns - self.leased_ns > LEASE_SECONDS * 1_000_000_000)


class SessionHolder(msgspec.Struct, eq=False):
    """A connection, and the sessions that it holds."""

    #: The peer's host.
    host: str
    #: Guarded by the lock of `ClientSessions`.
    held: set[_ClientSession] = msgspec.field(default_factory=set)


class ClientSessions:
    """The sessions of a node's clients."""

    def __init__(self, gate: LoginGate, clock: Clock) -> None:
        self._gate = gate
        self._clock = clock
        self._lock = threading.Lock()
        self._clients: dict[bytes, _ClientSession] = {}
        #: The sessions that no connection holds, in the order in which they lost their last connections.
        self._leased: dict[bytes, _ClientSession] = {}
        self._next_sweep_ns = 0

    def __len__(self) -> int:
        return len(self._clients)

    def add(self, session: EmbeddedSession, holder: SessionHolder, visitor: AuthenticatedClient) -> bytes:
        """Add a session of an admitted client, and return its token.

        If there are too many, close it; raises TooManySessions.
        """
        session.set_access(visitor.access, visitor.trail)
        now = self._clock.monotonic_ns()
        client = _ClientSession(secrets.token_bytes(_TOKEN_BYTES), session, holder.host, visitor, now, now)
        with self._lock:
            gone = self._make_room(now)
            full = len(self._clients) >= SESSIONS_MAX
            if not full:
                self._clients[client.token] = client
                self._hold(client, holder)
        _close_all(gone)
        if full:
            session.close()
            raise TooManySessions
        return client.token

    def find(self, token: bytes, holder: SessionHolder) -> EmbeddedSession:
        """Return the session of a token, after updating the session's privileges. Raises NoSession."""
        now = self._clock.monotonic_ns()
        with self._lock:
            client = self._clients.get(token)
            if client is None or client.host != holder.host:
                raise NoSession
            visitor = None if client.is_expired(now) else self._gate.revalidate(client.visitor)
            if visitor is not None:
                client.used_ns = now
                if holder not in client.holders:
                    self._hold(client, holder)
                if visitor is not client.visitor:
                    client.visitor = visitor
                    client.session.set_access(visitor.access, visitor.trail)
                return client.session
            self._forget(client)
        client.session.close()
        raise NoSession

    def remove(self, token: bytes) -> None:
        """Remove and close a session, if it exists."""
        with self._lock:
            client = self._clients.get(token)
            if client is not None:
                self._forget(client)
        if client is not None:
            client.session.close()

    def release(self, holder: SessionHolder) -> None:
        """Release the sessions of a connection that has ended."""
        now = self._clock.monotonic_ns()
        with self._lock:
            for client in holder.held:
                client.holders.discard(holder)
                if not client.holders:
                    client.leased_ns = now
                    self._leased[client.token] = client
            holder.held.clear()

    def close(self) -> None:
        """Close all sessions."""
        with self._lock:
            gone = list(self._clients.values())
            for client in gone:
                self._forget(client)
        _close_all(gone)

    def _hold(self, client: _ClientSession, holder: SessionHolder) -> None:
        self._leased.pop(client.token, None)
        client.holders.add(holder)
        holder.held.add(client)

    def _forget(self, client: _ClientSession) -> None:
        del self._clients[client.token]
        self._leased.pop(client.token, None)
        for holder in client.holders:
            holder.held.discard(client)

    def _make_room(self, now: int) -> list[_ClientSession]:
        """Forget expired sessions.

        If the table is still full, also forget the session that lost its last connection first.

        Return them, to be closed.
        """
        gone: list[_ClientSession] = []
        if now >= self._next_sweep_ns:
            self._next_sweep_ns = now + _SWEEP_SECONDS * 1_000_000_000
            gone = [client for client in self._clients.values() if client.is_expired(now)]
        if self._leased and len(self._clients) - len(gone) >= SESSIONS_MAX:
            gone.append(next(iter(self._leased.values())))
        for client in gone:
            self._forget(client)
        return gone


def _close_all(clients: list[_ClientSession]) -> None:
    for client in clients:
        client.session.close()
