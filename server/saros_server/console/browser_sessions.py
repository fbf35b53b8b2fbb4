"""Sessions of browsers, each identified by a cookie. Implements `CookieSessions` (`saros_server.http.session`).

    user and password, or ticket --> session, cookie --requests--> idle, old, logged out, password changed --> closed

A cookie is a random token, of which only a hash is stored. It is HttpOnly and SameSite=Strict, and Secure with TLS.
Requests that may write also need the session's CSRF token in the header `X-Saros-Csrf`, which only pages of this
service can know. Every session is admitted by the gate of the client API, which also applies the lock-out and writes
the audit trail.

A *ticket* is a token that admits one browser, once, without a password. Tickets are for a service with a single user,
such as the console of an embedded database. Thread-safe.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from saros_server.api import operations
from saros_server.api.calls import Peer
from saros_server.api.client_api import ApiConnection, ClientApi
from saros_server.api.client_sessions import NoSession
from saros_server.http.errors import NOT_LOGGED_IN, HttpError
from saros_server.http.session import CSRF_HEADER, HttpSession

#: Beyond this number of browsers, the least recently used session is closed.
SESSIONS_MAX = 1_000
#: Maximum number of unused tickets.
TICKETS_MAX = 16
_TOKEN_BYTES = 32
_READING_METHODS = ("GET", "HEAD")
_TICKET_USED = "this link was already used, or belongs to another console: run saros console again"


@dataclass(frozen=True, slots=True, eq=False)
class BrowserSession:
    """A session of a browser."""

    #: Empty: the service has no users.
    user: str
    csrf: str
    #: Token of the client API; `connection` holds its session.
    token: bytes = field(repr=False)
    connection: ApiConnection = field(repr=False)


class BrowserSessions:
    """The sessions of a service's browsers."""

    def __init__(self, api: ClientApi, *, secure: bool, is_sealed: bool = False) -> None:
        """`secure` means that the service has TLS. `is_sealed` means that only browsers with a ticket are admitted."""
        self._api = api
        self._secure = secure
        self.is_sealed = is_sealed
        self._lock = threading.Lock()
        #: Sessions by the hash of their cookies, the least recently used first.
        self._sessions: OrderedDict[bytes, BrowserSession] = OrderedDict()
        self._tickets: OrderedDict[bytes, None] = OrderedDict()

    @property
    def requires_login(self) -> bool:
        """True if a browser needs a session."""
        return self.is_sealed or self._api.requires_login

    def issue_ticket(self) -> str:
        """Return a new ticket."""
        ticket = secrets.token_urlsafe(_TOKEN_BYTES)
        with self._lock:
            self._tickets[_hash(ticket)] = None
            while len(self._tickets) > TICKETS_MAX:
                self._tickets.popitem(last=False)
        return ticket

    def redeem(self, ticket: str, headers: Headers, peer: Peer) -> tuple[BrowserSession, str]:
        """Open a session for a ticket. Return the session and the header that sets its cookie. Raises HttpError 401."""
        with self._lock:
            if not self.is_sealed or self._tickets.pop(_hash(ticket), self) is self:
                raise HttpError(401, _TICKET_USED, NOT_LOGGED_IN)
        return self.open(operations.Login(shared=True), headers, peer)

    def open(self, login: operations.Login, headers: Headers, peer: Peer) -> tuple[BrowserSession, str]:
        """Log in. Return the session and the header that sets its cookie. Raises LoginFailed, TooManyLogins."""
        connection = self._api.connect(peer)
        try:
            token = connection.call(operations.OPEN, b"", login).token
        except BaseException:
            connection.close()
            raise
        cookie = secrets.token_urlsafe(_TOKEN_BYTES)
        session = BrowserSession(login.user, secrets.token_urlsafe(_TOKEN_BYTES), token, connection)
        with self._lock:
            self._sessions[_hash(cookie)] = session
            surplus = [self._sessions.popitem(last=False)[1] for _ in range(len(self._sessions) - SESSIONS_MAX)]
        for old in surplus:
            _close(old)
        return session, self._cookie(headers, cookie)

    def find(self, headers: Headers, peer: Peer) -> BrowserSession | None:
        """Return the session of a request's cookie, if it is valid."""
        cookie = cookie_parser(headers.get("cookie", "")).get(self._cookie_name(headers))
        if cookie is None:
            return None
        digest = _hash(cookie)
        with self._lock:
            session = self._sessions.get(digest)
            if session is None or session.connection.host != peer.host:
                return None
            self._sessions.move_to_end(digest)
        try:
            session.connection.call(operations.RENEW, session.token, None)
        except NoSession:
            self._forget(session)
            return None
        return session

    def admit(self, method: str, headers: Headers, peer: Peer) -> HttpSession | None:
        """See `CookieSessions`."""
        session = self.find(headers, peer)
        if session is None:
            return None
        given = headers.get(CSRF_HEADER, "").encode()
        if method not in _READING_METHODS and not hmac.compare_digest(given, session.csrf.encode()):
            raise HttpError(403, f"the header {CSRF_HEADER} is missing or belongs to another session: reload the page")
        return HttpSession(self._api, peer, session.connection, session.token)

    def end(self, headers: Headers, peer: Peer) -> str:
        """Close the session of a request. Return the header that removes its cookie."""
        session = self.find(headers, peer)
        if session is not None:
            self._forget(session)
        return f"{self._cookie(headers, '')}; Max-Age=0"

    def close(self) -> None:
        """Close all sessions."""
        with self._lock:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session in sessions:
            _close(session)

    def _forget(self, session: BrowserSession) -> None:
        with self._lock:
            for digest in [digest for digest, found in self._sessions.items() if found is session]:
                del self._sessions[digest]
        _close(session)

    def _cookie(self, headers: Headers, value: str) -> str:
        secure = "; Secure" if self._secure else ""
        return f"{self._cookie_name(headers)}={value}; Path=/; HttpOnly; SameSite=Strict{secure}"

    def _cookie_name(self, headers: Headers) -> str:
        """Return a name that contains the port that the browser used, since all services on a machine share cookies."""
        port = headers.get("host", "").rpartition(":")[2]
        name = f"saros-{port}" if port.isascii() and port.isdecimal() else "saros"
        return f"__Host-{name}" if self._secure else name


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _close(session: BrowserSession) -> None:
    with suppress(NoSession):
        session.connection.call(operations.CLOSE, session.token, None)
    session.connection.close()
