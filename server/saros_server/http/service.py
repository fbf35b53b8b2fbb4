"""The HTTP service: a listener with an event loop on its own thread. Implements `Listener` (`saros_server.server`).

    bound --start--> serving --stop(grace)--> draining: no new connections --> stopped

uvicorn implements HTTP, `connection` adds limits, and `application` answers. With a certificate, clients must use TLS.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Iterable
from typing import Any

import uvicorn
from msgspec.structs import replace

from saros_server.api.client_api import ClientApi
from saros_server.config.configuration import ConfigurationError
from saros_server.http.application import HttpApplication
from saros_server.http.connection import connection_class
from saros_server.http.limits import HttpLimits, HttpThreads
from saros_server.http.routes import Route, RouteTable
from saros_server.http.session import CookieSessions
from saros_server.pki.certificate_files import WatchedFiles
from saros_server.port.counters import ProtocolCounters
from saros_server.port.tls import ServerTls
from saros_wire.addresses import is_loopback
from saros_wire.port_check import check_address

logger = logging.getLogger(__name__)

_BACKLOG = 1_024
#: Once a call is cancelled, it ends within this time, unless it is waiting for other nodes of a cluster.
_ABORT_SECONDS = 5.0
#: The interval at which uvicorn checks whether it should stop and, once it stops, whether all connections have ended.
_TICK_SECONDS = 1.0


class HttpService:
    """A port that serves HTTP. The constructor binds it."""

    def __init__(
        self,
        api: ClientApi,
        host: str,
        port: int,
        certificate: WatchedFiles | None,
        routes: Iterable[Route],
        limits: HttpLimits | None = None,
        cookies: CookieSessions | None = None,
    ) -> None:
        """Bind the port. Raises ConfigurationError (address, certificate)."""
        limits = limits or HttpLimits()
        self._tls = None if certificate is None else ServerTls(certificate, ["http/1.1"])
        self._socket = _bind(host, port)
        #: The bound port.
        self.port = int(self._socket.getsockname()[1])
        self._host = host
        self._threads = HttpThreads(limits)
        table = RouteTable(routes)
        #: Updated by the event loop.
        self._counters = ProtocolCounters()
        local = is_loopback(host)
        self._cookies = cookies
        self._application = HttpApplication(
            api, table, limits, self._threads, self._counters, local=local, cookies=cookies
        )
        self._server = uvicorn.Server(self._configuration(limits))
        self._handshake_s = limits.header_s
        self._thread = threading.Thread(target=self._serve, name="saros-http-loop", daemon=True)
        self._is_stopped = False

    @property
    def address(self) -> str:
        """See `Listener.address`."""
        return f"{self._host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL of the service."""
        return f"{'http' if self._tls is None else 'https'}://{self.address}"

    def counters(self) -> ProtocolCounters:
        """Return a copy of the counters of the service."""
        return replace(self._counters)

    def start(self) -> None:
        """See `Listener.start`."""
        self._thread.start()

    def stop(self, grace_s: float) -> None:
        """See `Listener.stop`. Idempotent."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._thread.is_alive():
            self._server.config.timeout_graceful_shutdown = int(grace_s)
            self._server.should_exit = True
            self._thread.join(grace_s + _ABORT_SECONDS + 2 * _TICK_SECONDS)
            if self._thread.is_alive():
                logger.warning("HTTP requests are still running")  # they end when the node closes
        self._socket.close()
        self._threads.close()

    def _configuration(self, limits: HttpLimits) -> uvicorn.Config:
        tls = self._tls
        return uvicorn.Config(
            self._application,
            loop="asyncio",
            http=connection_class(limits, self._counters),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.CRITICAL,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=_BACKLOG,
            limit_concurrency=limits.connections,
            timeout_keep_alive=int(limits.idle_s),
            ssl_context_factory=None if tls is None else lambda *_: _reloading(tls),
        )

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: _EventLoop(self._handshake_s)) as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        try:
            await self._server.serve(sockets=[self._socket])
        except Exception:
            logger.exception("the HTTP service has ended")
        finally:
            self._application.sessions.close()
            if self._cookies is not None:
                self._cookies.close()


class _EventLoop(asyncio.SelectorEventLoop):
    """An event loop that sets the timeout for TLS handshakes, since uvicorn does not set it."""

    def __init__(self, handshake_s: float) -> None:
        super().__init__()
        self._handshake_s = handshake_s

    async def create_server(self, *arguments: Any, **named: Any) -> asyncio.Server:
        """Create a server. If it uses TLS, its handshakes have the timeout."""
        if named.get("ssl") is not None:
            named["ssl_handshake_timeout"] = self._handshake_s
        return await super().create_server(*arguments, **named)


def _bind(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ConfigurationError."""
    name = host.strip("[]")
    try:
        check_address(name, port)
        family, _, _, _, address = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
        dual = family == socket.AF_INET6 and address[0] == "::"
        made = socket.create_server((str(address[0]), port), family=family, backlog=_BACKLOG, dualstack_ipv6=dual)
    except (OSError, RuntimeError) as error:
        raise ConfigurationError(f"cannot listen on {host}:{port} for HTTP: {error}") from error
    # Accepted connections inherit this option. Without it, a response could be delayed, because its status and its body
    # are written separately.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setblocking(False)
    return made


def _reloading(tls: ServerTls) -> ssl.SSLContext:
    """Return a TLS context that uses the current certificate for each new connection."""

    def use_current(connection: ssl.SSLObject | ssl.SSLSocket, _: str | None, __: ssl.SSLContext) -> None:
        connection.context = tls.context

    made = tls.context
    made.sni_callback = use_current
    return made
