"""Routes by which browsers log in and out.

    GET  /console/session    {"state": "open" | "login" | "ticket" | "in", "user", "csrf", "version", "time_unit"}
    POST /console/login      {"user", "password"} --> the same, and a cookie
    POST /console/ticket     {"ticket"} --> the same, and a cookie; works once
    POST /console/logout     ends the session

`open`: there are no users, so nobody needs to log in. Thread-safe.
"""

from __future__ import annotations

from saros_server.api import operations
from saros_server.console.browser_sessions import BrowserSession, BrowserSessions
from saros_server.http.errors import HttpError
from saros_server.http.request import HttpRequest
from saros_server.http.response import JSON, Response, json_response
from saros_server.http.routes import Policy, Route
from saros_server.http.session import HttpSession
from saros_server.process.version import RELEASE
from saros_server.rest.fields import text


class LoginRoutes:
    """The functions of the routes."""

    def __init__(self, sessions: BrowserSessions) -> None:
        self._sessions = sessions

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("GET", "/console/session", Policy.PUBLIC, self._session),
            Route("POST", "/console/login", Policy.PUBLIC, self._login),
            Route("POST", "/console/ticket", Policy.PUBLIC, self._ticket),
            Route("POST", "/console/logout", Policy.PUBLIC, self._logout),
        ]

    def _session(self, request: HttpRequest, session: HttpSession) -> Response:
        found = self._sessions.find(request.headers, request.peer)
        if found is None and self._sessions.requires_login:
            return json_response({"state": "ticket" if self._sessions.is_sealed else "login", "version": RELEASE})
        return json_response(_state(found, session))

    def _login(self, request: HttpRequest, session: HttpSession) -> Response:
        body = _json_of(request)
        login = operations.Login(text(body, "user"), text(body, "password"), shared=True)
        if self._sessions.is_sealed:
            raise HttpError(403, "this console has no users: open it with the link that saros console printed")
        opened, cookie = self._sessions.open(login, request.headers, request.peer)
        return json_response(_state(opened, session), headers={"Set-Cookie": cookie})

    def _ticket(self, request: HttpRequest, session: HttpSession) -> Response:
        ticket = text(_json_of(request), "ticket")
        opened, cookie = self._sessions.redeem(ticket, request.headers, request.peer)
        return json_response(_state(opened, session), headers={"Set-Cookie": cookie})

    def _logout(self, request: HttpRequest, _: HttpSession) -> Response:
        self._sessions.admit(request.method, request.headers, request.peer)
        cookie = self._sessions.end(request.headers, request.peer)
        return json_response({}, headers={"Set-Cookie": cookie})


def _state(found: BrowserSession | None, session: HttpSession) -> dict[str, str]:
    return {
        "state": "open" if found is None else "in",
        "user": "" if found is None else found.user,
        "csrf": "" if found is None else found.csrf,
        "version": RELEASE,
        "time_unit": session.time_unit,
    }


def _json_of(request: HttpRequest) -> dict[str, object]:
    """Return the JSON body.

    Raises HttpError for another content type: other sites can send JSON only after a preflight.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != JSON:
        raise HttpError(415, f"the body must be {JSON}")
    return request.object()
