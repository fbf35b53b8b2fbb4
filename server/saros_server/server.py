"""A server: the composition root of a node's client API, the listeners of its protocols, and the HTTP service.

Only this module and `embedded_console` refer to protocols. While a server runs, a file in the folder has its addresses
(`server_file`). The rules for addresses to listen on, and for login and TLS, are in `security`.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Protocol

from saros_cluster.node.cluster_file import load as load_cluster_file
from saros_server.api.client_api import ClientApi
from saros_server.auth.security import Security, check_folder, check_host, has_users, warning
from saros_server.config.configuration import ConfigurationError
from saros_server.console import routes as console
from saros_server.console.browser_sessions import BrowserSessions
from saros_server.frames.frame_protocol import FrameProtocol
from saros_server.http.metrics import Figures, NodeCollector
from saros_server.http.routes import Route
from saros_server.http.service import HttpService
from saros_server.influx import routes as influx
from saros_server.pki.certificate_files import WatchedFiles
from saros_server.port.counters import ProtocolCounters
from saros_server.port.listener import PortListener
from saros_server.process.server_file import Serving, announce, withdraw
from saros_server.process.warm_up import WarmUp
from saros_server.prometheus import routes as prometheus
from saros_server.rest import grafana, imports, iotdb_rest, monitoring, openapi, query
from saros_server.rest.observation import Observation
from saros_server.thrift.protocol import ThriftProtocol
from saros_storage.base.clock import Clock, SystemClock
from saros_storage.io.disk import LocalDisk
from saros_wire.addresses import is_loopback

logger = logging.getLogger(__name__)

#: The time in which running calls must finish after the server has received the signal to stop.
_GRACE_SECONDS = 5.0
#: Python's switch interval: the time for which a computing thread may keep other threads waiting. A write passes
#: through ten threads on three nodes. With Python's default of 5 ms, a flush would delay the write in each of them.
_SWITCH_SECONDS = 0.0005
#: Warm-up begins when the server is this old, so that short-lived servers skip it.
_COLD_SECONDS = 3.0
#: A node that joins a cluster has no clients yet, but will have much work afterwards. So it warms up before it begins
#: to serve, for at most this time.
_JOINING_SECONDS, _POLL_SECONDS = 10.0, 0.05
#: The interval at which the main thread checks for signals. If the system delivers a signal to another thread, this
#: does not wake the main thread.
_LOOK_SECONDS = 0.5


class Listener(Protocol):
    """A listening port. Its constructor binds the port."""

    @property
    def address(self) -> str:
        """The address for clients, as host:port."""
        ...

    def start(self) -> None:
        """Begin to accept clients."""
        ...

    def stop(self, grace_s: float) -> None:
        """Refuse new calls.

        After `grace_s`, cancel the calls that still run, and wait for all that can be cancelled.
        """
        ...


def http_routes(observation: list[Route]) -> list[Route]:
    """Return the routes of the HTTP service, without those of the console."""
    modules = (iotdb_rest, query, grafana, influx, prometheus, imports, monitoring)
    routes = [*observation, *(route for module in modules for route in module.routes())]
    return [*routes, openapi.route(routes)]


class Server:
    """A node with its listeners. After construction, call `run_until_signalled`, or `start` and `stop`."""

    def __init__(
        self,
        folder: str,
        host: str,
        port: int,
        *,
        http_port: int | None = None,
        http_required: bool = True,
        metrics_port: int | None = None,
        clock: Clock | None = None,
        security: Security | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        """Open the database and bind the ports. Raises ConfigurationError, StorageError.

        host, port     ignored for a node of a cluster, which listens on the address in its `cluster.json`
        http_port      None: no HTTP service; 0: any free port
        http_required  raise if the HTTP port is taken; otherwise serve without HTTP, and set `http_problem`
        metrics_port   a port for metrics without TLS, on this machine only; None: no such port
        options        options of the node that take precedence over the folder's file
        """
        cluster = load_cluster_file(folder, LocalDisk())
        if cluster is not None:
            host, _, text = cluster.address.client.rpartition(":")
            port = int(text)
        security = security or Security()
        authenticated = security.authentication or has_users(folder)
        check_host(host, security, authenticated=authenticated, clustered=cluster is not None)
        check_folder(folder)
        self._folder = folder
        self._warning = warning(host, security, authenticated=authenticated, clustered=cluster is not None)
        #: The operations for clients.
        self.api = ClientApi(folder, clock or SystemClock(), authentication=authenticated, options=options)
        self._listeners: list[Listener] = []
        try:
            certificate = self._certificate(security)
            protocols = (FrameProtocol(self.api), ThriftProtocol(self.api))
            client_port = PortListener(host, port, certificate, protocols)
            self._listeners.append(client_port)
            observation = self._observation(client_port)
            self.metrics = self._serve_metrics(host, metrics_port, observation, client_port.address)
            self.http_problem = ""
            self.http = self._serve_http(host, http_port, http_required, certificate, observation)
        except BaseException:
            self._stop_listening(0.0)
            self.api.close()
            raise
        #: True if clients must log in to the server.
        self.authenticated = authenticated
        #: The address for drivers as host:port, and an address without TLS that can be reached only on this machine.
        self.address, self._local = client_port.address, client_port.local_address
        self._stopped = threading.Event()

    def _certificate(self, security: Security) -> WatchedFiles | None:
        """Return the certificate of the listeners, or None without TLS. Raises ConfigurationError."""
        if security.tls is None:
            return None
        files = WatchedFiles((security.tls.certificate, security.tls.key))
        self.api.node.certificates.append(files)
        return files

    def _observation(self, client_port: PortListener) -> list[Route]:
        """Return the routes for monitoring programs."""
        api = self.api
        figures = Figures(lambda: api.sessions, lambda: api.uptime_s, lambda: self._port_figures(client_port))
        return Observation(api.node, NodeCollector(api.node, figures, self._folder)).routes()

    def _port_figures(self, client_port: PortListener) -> dict[str, ProtocolCounters]:
        """Return the counters of client connections, by protocol."""
        http = {} if self.http is None else {"http": self.http.counters()}
        return client_port.counters() | http

    def _serve_metrics(self, host: str, port: int | None, routes: list[Route], clients: str) -> HttpService | None:
        """Serve metrics without TLS, on this machine only. Raises ConfigurationError."""
        if port is None:
            return None
        try:
            made = HttpService(self.api, host if is_loopback(host) else "127.0.0.1", port, None, routes)
        except ConfigurationError as error:
            if not clients.endswith(f":{port}"):
                raise
            raise ConfigurationError(
                f"cannot listen on port {port} for HTTP: it is the port for clients; choose another one"
            ) from error
        self._listeners.append(made)
        return made

    def _serve_http(
        self, host: str, port: int | None, required: bool, certificate: WatchedFiles | None, routes: list[Route]
    ) -> HttpService | None:
        """Serve HTTP, or set `http_problem`. Raises ConfigurationError if the port is required."""
        if port is None:
            return None
        try:
            browsers = BrowserSessions(self.api, secure=certificate is not None)
            all_routes = [*http_routes(routes), *console.routes(browsers)]
            made = HttpService(self.api, host, port, certificate, all_routes, cookies=browsers)
        except ConfigurationError as error:
            if required:
                raise
            self.http_problem = f"{error}; this server runs without HTTP: choose another port with http_port"
            return None
        self._listeners.append(made)
        return made

    def start(self) -> None:
        """Begin to serve, and write the addresses to the folder."""
        for listener in self._listeners:
            listener.start()
        url = "" if self.http is None else self.http.url
        announce(self._folder, Serving(os.getpid(), self.address, self._local, url))
        level = logging.WARNING if self._warning else logging.INFO
        extra = {"address": self.address, "folder": self._folder} | ({"http": url} if url else {})
        logger.log(level, "serving", extra=extra | ({"access": self._warning} if self._warning else {}))
        if self.http_problem:
            logger.warning("no HTTP", extra={"problem": self.http_problem})
        for problem in self.api.node.problems():
            logger.warning("a problem", extra={"problem": problem})

    def stop(self) -> None:
        """Wait for running calls, and close the database. Idempotent."""
        if self._stopped.is_set():
            return
        logger.info("stopping", extra={"sessions": self.api.sessions})
        self._stop_listening(_GRACE_SECONDS)
        withdraw(self._folder)
        self.api.close()
        self._stopped.set()
        logger.info("stopped")

    def _stop_listening(self, grace_s: float) -> None:
        """Stop all listeners concurrently, since each may wait for its clients."""
        stops = [threading.Thread(target=listener.stop, args=(grace_s,)) for listener in self._listeners]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()

    def run_until_signalled(self) -> None:
        """Serve until SIGTERM or SIGINT. This must run on the main thread of a process that does nothing else."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        asked = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: asked.set())
        warming = WarmUp(gently=self.api.is_joining)
        if self.api.is_joining:
            warming.start()
            limit = time.monotonic() + _JOINING_SECONDS
            while warming.is_under_way and time.monotonic() < limit and not asked.wait(_POLL_SECONDS):
                pass
            if warming.is_under_way and not asked.is_set():
                logger.info("serving before the warm-up has ended", extra={"seconds": _JOINING_SECONDS})
        self.start()
        if not asked.wait(_COLD_SECONDS):
            warming.start()
        while not asked.wait(_LOOK_SECONDS):
            pass
        warming.stop()
        self.stop()
