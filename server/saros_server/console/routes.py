"""The routes of the console."""

from __future__ import annotations

from saros_server.console import assets, chart, query
from saros_server.console.browser_sessions import BrowserSessions
from saros_server.console.login import LoginRoutes
from saros_server.http.routes import Route


def routes(sessions: BrowserSessions) -> list[Route]:
    """Return the routes."""
    return [*assets.routes(), *LoginRoutes(sessions).routes(), *query.routes(), *chart.routes()]
