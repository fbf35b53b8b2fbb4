"""Nodes that serve HTTP, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from server.secured import ANN, CHEAP, ROOT
from waiting import PATIENCE_S

from saros_cluster.users.commands import CreateUser
from saros_cluster.users.directory import FileDirectory
from saros_server.api.client_api import ClientApi
from saros_server.auth.passwords import hash_password
from saros_server.auth.security import Security
from saros_server.http.limits import HttpLimits
from saros_server.http.routes import Route
from saros_server.http.service import HttpService
from saros_server.pki.certificate_files import WatchedFiles
from saros_server.server import Server
from saros_storage.base.clock import SystemClock
from saros_storage.io.disk import LocalDisk


class HttpNode:
    """A node, its HTTP service, and a client of this service."""

    def __init__(self, api: ClientApi, service: HttpService, **options: Any) -> None:
        self.api = api
        self.service = service
        self.url = service.url
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE_S, **options)

    def sql(self, text: str, **options: Any) -> httpx.Response:
        """Send a statement by POST."""
        return self.client.post("/query", content=text, headers={"accept": "application/x-ndjson"}, **options)

    def written(self, *statements: str) -> None:
        """Execute statements."""
        for text in statements:
            answer = self.sql(text)
            assert 200 == answer.status_code, answer.text


@contextmanager
def serving(
    folder: Path, routes: Iterable[Route], limits: HttpLimits | None = None, certificate: WatchedFiles | None = None
) -> Iterator[HttpNode]:
    """Serve routes on a free port of this machine, without users."""
    api = ClientApi(str(folder), SystemClock())
    try:
        service = HttpService(api, "127.0.0.1", 0, certificate, routes, limits)
        service.start()
        node = HttpNode(api, service)
        try:
            yield node
        finally:
            node.client.close()
            service.stop(1.0)
    finally:
        api.close()


@contextmanager
def http_server(folder: Path, security: Security | None = None, **options: Any) -> Iterator[HttpNode]:
    """Run a complete server with HTTP; `options` are passed to the HTTP client."""
    server = Server(str(folder), "127.0.0.1", 0, http_port=0, security=security)
    server.start()
    assert server.http is not None
    node = HttpNode(server.api, server.http, **options)
    try:
        yield node
    finally:
        node.client.close()
        server.stop()


def make_users(folder: Path) -> None:
    """Create users root (administrator) and ann (no rights) in a new folder."""
    folder.mkdir(exist_ok=True)
    (folder / "saros.toml").write_text('password_cost = 10\ndurability = "os"\n')
    directory = FileDirectory(str(folder), LocalDisk())
    directory.change(CreateUser("root", hash_password(ROOT, CHEAP), administrator=True))
    directory.change(CreateUser("ann", hash_password(ANN, CHEAP)))
