"""Sessions of clients, each known by the token that it got when it opened.

A token names a session of this process and nothing else; it is random, bound to the peer's address and to who logged in
(`login`), and forgotten when the session was idle for long, is old, or its user's password was changed. Thread-safe.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass

from saros_server.api.session import EmbeddedSession
from saros_server.auth.login import AuthenticatedClient, LoginGate
from saros_storage.base.clock import Clock

#: A session that did nothing for so long is closed.
IDLE_SECONDS = 1_800
#: Whoever logged in longer ago logs in again.
LIFE_SECONDS = 86_400
SESSIONS_MAX = 1_000
_TOKEN_BYTES = 32


class NoSession(Exception):
    """A token that names none, or none that this peer may use."""

    code = 2014

    def __init__(self) -> None:
        super().__init__(
            "no such session: it was closed, idle for too long, or opened elsewhere, or the password was changed;"
            " connect again"
        )


class TooManySessions(Exception):
    """There is no room for another one."""

    code = 606

    def __init__(self) -> None:
        super().__init__(f"there are {SESSIONS_MAX} sessions already: close some, or wait for idle ones to end")


@dataclass(slots=True)
class _Client:
    session: EmbeddedSession
    host: str
    visitor: AuthenticatedClient
    opened_ns: int
    used_ns: int

    def is_expired(self, now_ns: int) -> bool:
        """Whether the session was idle for too long, or is too old; without users it may be of any age."""
        old = self.visitor.user != "" and now_ns - self.opened_ns > LIFE_SECONDS * 1_000_000_000
        return old or now_ns - self.used_ns > IDLE_SECONDS * 1_000_000_000


class ClientSessions:
    """See the module."""

    def __init__(self, gate: LoginGate, clock: Clock) -> None:
        self._gate = gate
        self._clock = clock
        self._lock = threading.Lock()
        self._clients: dict[bytes, _Client] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def add(self, session: EmbeddedSession, host: str, visitor: AuthenticatedClient) -> bytes:
        """The token of a session that a visitor opened from a host. Raises TooManySessions; then it is closed."""
        session.set_access(visitor.access, visitor.trail)
        token = secrets.token_bytes(_TOKEN_BYTES)
        with self._lock:
            full = len(self._clients) >= SESSIONS_MAX
            if not full:
                now = self._clock.monotonic_ns()
                self._clients[token] = _Client(session, host, visitor, now, now)
        if full:
            session.close()
            raise TooManySessions
        return token

    def find(self, token: bytes, host: str) -> EmbeddedSession:
        """The session that a peer may use, with the rights of now. Raises NoSession."""
        now = self._clock.monotonic_ns()
        with self._lock:
            client = self._clients.get(token)
            if client is None or client.host != host:
                raise NoSession
            visitor = None if client.is_expired(now) else self._gate.revalidate(client.visitor)
            if visitor is not None:
                client.used_ns = now
                if visitor is not client.visitor:
                    client.visitor = visitor
                    client.session.set_access(visitor.access, visitor.trail)
                return client.session
            del self._clients[token]
        client.session.close()
        raise NoSession

    def remove(self, session: EmbeddedSession) -> None:
        """Forget and close one."""
        with self._lock:
            self._clients = {token: c for token, c in self._clients.items() if c.session is not session}
        session.close()

    def close_idle(self) -> None:
        """Close those that nobody used for long, and those that are old."""
        now = self._clock.monotonic_ns()
        with self._lock:
            over = [token for token, client in self._clients.items() if client.is_expired(now)]
            gone = [self._clients.pop(token) for token in over]
        for client in gone:
            client.session.close()

    def close(self) -> None:
        """Close all."""
        with self._lock:
            gone, self._clients = list(self._clients.values()), {}
        for client in gone:
            client.session.close()
