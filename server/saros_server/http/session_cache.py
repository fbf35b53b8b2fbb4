"""A cache of sessions: requests with the same credentials share a session, which saves hashing the password each time.

    credentials, peer --keyed hash--> session --valid?--> used by requests --> cached, least recently used evicted first
                                        └ missing or ended: one login for all requests that wait for it

Every login is checked by the authentication gate of the client API, which also applies the lockout and writes the audit
trail. Once a session has ended, for example because the user's password was changed, it is not used again. As in other
sessions, every call checks the privileges that the user has at that time.

For the event loop only.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from concurrent.futures import Executor
from contextlib import suppress

import msgspec

from saros_server.api import operations
from saros_server.api.calls import Peer
from saros_server.api.client_api import ApiConnection, ClientApi
from saros_server.api.client_sessions import NoSession
from saros_server.auth.authentication import TooManyLogins
from saros_server.http.credentials import Credentials
from saros_server.http.limits import HttpLimits


class CachedSession(msgspec.Struct, eq=False):
    """A cached session, and the number of requests that currently use it."""

    token: bytes
    #: The connection to the client API that owns the session. It does not depend on the HTTP connections on which
    #: requests arrive.
    connection: ApiConnection
    #: Number of requests that use the session.
    requests: int = 0
    #: True if the session was evicted. It is then closed once no request uses it.
    is_dropped: bool = False


class SessionCache:
    """The cached sessions, and the logins that are in progress."""

    def __init__(self, api: ClientApi, logins: Executor, limits: HttpLimits) -> None:
        """Create an empty cache. Since logins take long, they run on the threads of `logins`."""
        self._api = api
        self._logins = logins
        self._limits = limits
        self._key = secrets.token_bytes(32)
        #: The sessions by the hash of their credentials, in the order of their last use.
        self._sessions: OrderedDict[bytes, CachedSession] = OrderedDict()
        self._pending: dict[bytes, asyncio.Future[CachedSession]] = {}

    async def acquire(self, credentials: Credentials, peer: Peer) -> CachedSession:
        """Return a session, which the caller must release. Raises the errors of a login, such as LoginFailed."""
        digest = credentials.digest(self._key, peer.host)
        session = self._find(digest)
        if session is None:
            session = await self._login_once(digest, credentials, peer)
        session.requests += 1
        return session

    def release(self, session: CachedSession) -> None:
        """End the use of a session by a request."""
        session.requests -= 1
        self._close_if_unused(session)

    def close(self) -> None:
        """Close all sessions. A session in use is closed when it is released."""
        while self._sessions:
            self._drop(next(iter(self._sessions)))

    def _find(self, digest: bytes) -> CachedSession | None:
        session = self._sessions.get(digest)
        if session is None:
            return None
        try:
            session.connection.call(operations.RENEW, session.token, None)
        except NoSession:
            self._drop(digest)
            return None
        self._sessions.move_to_end(digest)
        return session

    async def _login_once(self, digest: bytes, credentials: Credentials, peer: Peer) -> CachedSession:
        """Log in. If a login with the same credentials is in progress, wait for that login instead."""
        pending = self._pending.get(digest)
        if pending is None:
            if len(self._pending) >= self._limits.logins:
                raise TooManyLogins
            login = _LoginCall(self._api, credentials, peer)
            pending = asyncio.get_running_loop().run_in_executor(self._logins, login)
            self._pending[digest] = pending
            pending.add_done_callback(lambda done: self._on_login(digest, done))
        return await asyncio.shield(pending)

    def _on_login(self, digest: bytes, done: asyncio.Future[CachedSession]) -> None:
        del self._pending[digest]
        if done.cancelled() or done.exception() is not None:
            return
        self._sessions[digest] = done.result()
        while len(self._sessions) > self._limits.sessions:
            self._drop(next(iter(self._sessions)))

    def _drop(self, digest: bytes) -> None:
        session = self._sessions.pop(digest)
        session.is_dropped = True
        self._close_if_unused(session)

    def _close_if_unused(self, session: CachedSession) -> None:
        if session.is_dropped and not session.requests:
            with suppress(NoSession):
                session.connection.call(operations.CLOSE, session.token, None)
            session.connection.close()


class _LoginCall(msgspec.Struct, frozen=True):
    """A login. It is called on one of the threads for logins."""

    api: ClientApi
    credentials: Credentials
    peer: Peer

    def __call__(self) -> CachedSession:
        login = operations.Login(self.credentials.user, self.credentials.password, shared=True)
        connection = self.api.connect(self.peer)
        return CachedSession(connection.call(operations.OPEN, b"", login).token, connection)
