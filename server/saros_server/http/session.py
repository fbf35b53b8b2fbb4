"""The session of a request: calls the client API on behalf of its user.

A session is used by one thread, except that any thread may call `cancel`.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from starlette.datastructures import Headers

from saros_server.api.calls import Operation, Peer
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_api import ApiConnection, ClientApi

#: The header in which pages of the console send the CSRF token of their session.
CSRF_HEADER = "X-Saros-Csrf"

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class HttpSession:
    """A session of the client API, shared by requests with the same credentials."""

    def __init__(self, api: ClientApi, peer: Peer, connection: ApiConnection, token: bytes) -> None:
        """Create the session. If it has no token, it can call only operations that require no login."""
        self.api = api
        self.peer = peer
        self._connection = connection
        self._token = token
        #: Cancelled when the client disconnects.
        self.cancel = CancelToken()

    @property
    def time_unit(self) -> str:
        """The time precision of the database: ms, us or ns."""
        return self.api.node.configuration.time_unit

    def call(self, operation: Operation[_Request, _Answer], request: _Request) -> _Answer:
        """Call an operation of the client API. Raises NoSession, and the errors of the operation."""
        return self._connection.call(operation, self._token, request, cancel=self.cancel)


class CookieSessions(Protocol):
    """The sessions of browsers, identified by cookies. Thread-safe."""

    @property
    def is_sealed(self) -> bool:
        """True if requests without a session are refused even though the node has no users."""
        ...

    def admit(self, method: str, headers: Headers, peer: Peer) -> HttpSession | None:
        """Return the session of a request's cookie, or None. Raises HttpError 403 without CSRF token."""
        ...

    def close(self) -> None:
        """Close all sessions."""
        ...
