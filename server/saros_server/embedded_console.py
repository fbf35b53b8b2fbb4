"""The console of an embedded database: open a folder, and serve its console on a local port to one browser.

opened --link: a ticket in its fragment--> the browser's cookie --> requests --> close
"""

from __future__ import annotations

from saros_server.api.client_api import ClientApi
from saros_server.console import routes as console
from saros_server.console.browser_sessions import BrowserSessions
from saros_server.http.metrics import Figures, NodeCollector
from saros_server.http.routes import Route
from saros_server.http.service import HttpService
from saros_server.rest.observation import Observation
from saros_server.server import http_routes
from saros_storage.base.clock import SystemClock

_GRACE_SECONDS = 2.0


class EmbeddedConsole:
    """An open folder with its console."""

    def __init__(self, folder: str, port: int = 0) -> None:
        """Open the folder and serve it; `port` 0: any free port. Raises StorageError, ConfigurationError."""
        self._api = ClientApi(folder, SystemClock())
        try:
            self._browsers = BrowserSessions(self._api, secure=False, is_sealed=True)
            routes = [*http_routes(self._observation(folder)), *console.routes(self._browsers)]
            self._service = HttpService(self._api, "127.0.0.1", port, None, routes, cookies=self._browsers)
        except BaseException:
            self._api.close()
            raise
        self._service.start()

    def _observation(self, folder: str) -> list[Route]:
        api = self._api
        figures = Figures(lambda: api.sessions, lambda: api.uptime_s, dict)
        return Observation(api.node, NodeCollector(api.node, figures, folder)).routes()

    def link(self) -> str:
        """Return a link that admits one browser, once.

        The link's ticket is in the URL's fragment, which browsers neither send nor log.
        """
        return f"{self._service.url}/console/#ticket={self._browsers.issue_ticket()}"

    def close(self) -> None:
        """Stop the service, and close the folder."""
        self._service.stop(_GRACE_SECONDS)
        self._api.close()
