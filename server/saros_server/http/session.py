"""The session of a request, in which the client API is called on behalf of the user.

Only one thread uses a session, but any thread may cancel its `cancel` token.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from starlette.datastructures import Headers

from saros_server.api.calls import Operation, Peer
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_api import ApiConnection, ClientApi

#: The header in which a page of the console sends the CSRF token of its session.
CSRF_HEADER = "X-Saros-Csrf"

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class HttpSession:
    """A request's view of a session of the client API. Requests with the same credentials share that session."""

    def __init__(self, api: ClientApi, peer: Peer, connection: ApiConnection, token: bytes) -> None:
        """Create the session. If `token` is empty, it can call only the operations that require no login."""
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
        """True if a request without a session is refused even on a node that has no users."""
        ...

    def admit(self, method: str, headers: Headers, peer: Peer) -> HttpSession | None:
        """Return the session that a request's cookie identifies, or None. Raises HttpError 403 without a CSRF token."""
        ...

    def close(self) -> None:
        """Close all sessions."""
        ...
