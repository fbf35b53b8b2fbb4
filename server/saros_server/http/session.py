"""The session of a request: calls of the client API on behalf of its user. One thread at a time, `cancel` from any."""

from __future__ import annotations

from typing import Protocol, TypeVar

from starlette.datastructures import Headers

from saros_server.api.calls import Operation, Peer
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_api import ApiConnection, ClientApi

#: Pages of the console send it with every request: the CSRF token of their session.
CSRF_HEADER = "X-Saros-Csrf"

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class HttpSession:
    """A session of the client API, which other requests with the same credentials share."""

    def __init__(self, api: ClientApi, peer: Peer, connection: ApiConnection, token: bytes) -> None:
        """`token`: empty where no login is needed; only operations for anyone can then be called."""
        self.api = api
        self.peer = peer
        self._connection = connection
        self._token = token
        #: Cancelled when the client goes away.
        self.cancel = CancelToken()

    @property
    def time_unit(self) -> str:
        """The unit of times in the database: ms, us or ns."""
        return self.api.node.configuration.time_unit

    def call(self, operation: Operation[_Request, _Answer], request: _Request) -> _Answer:
        """Call an operation of the client API. Raises NoSession, and the errors of the operation."""
        return self._connection.call(operation, self._token, request, cancel=self.cancel)


class CookieSessions(Protocol):
    """Sessions of browsers, known by cookies. Thread-safe."""

    @property
    def is_sealed(self) -> bool:
        """Only requests with a session are let in, though the node has no users."""
        ...

    def admit(self, method: str, headers: Headers, peer: Peer) -> HttpSession | None:
        """Return the session of a request's cookie; None: it has none. Raises HttpError 403 without CSRF token."""
        ...

    def close(self) -> None:
        """Close all sessions."""
        ...
