"""The port for clients of all protocols.

    poller: accepts, waits for idle clients --> worker pool: greets, executes requests --> parked again, or closed
                                                call monitor: clients of long calls

If the server has a certificate, clients must use TLS. For `saros status`, there is then also a local socket without
TLS, which only this machine can reach.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from saros_server.api.calls import Peer
from saros_server.config.configuration import ConfigurationError
from saros_server.pki.certificate_files import WatchedFiles
from saros_server.port.call_monitor import CallMonitor
from saros_server.port.client import UNKNOWN, Client
from saros_server.port.connection import Connection
from saros_server.port.counters import ProtocolCounters, snapshot
from saros_server.port.limits import Limits
from saros_server.port.poller import Poller
from saros_server.port.protocol_detection import ProtocolDetector
from saros_server.port.protocols import Protocol
from saros_server.port.tls import ServerTls
from saros_server.port.worker_pool import WorkerPool
from saros_storage.io.platform import HAS_ABSTRACT_SOCKETS, raise_descriptors_limit
from saros_wire.port_check import check_address

logger = logging.getLogger(__name__)

#: The number of connections that the operating system may queue until they are accepted. Its own limit may be lower.
_BACKLOG = 4_096
#: How many connections above the limit get an error as an answer. All further connections are closed without one.
_REFUSED_MAX = 256
#: TCP keep-alive: the number of seconds before the first probe of an idle client, the number of seconds between probes,
#: and the number of unanswered probes after which the connection ends.
_KEEPALIVE_IDLE, _KEEPALIVE_INTERVAL, _KEEPALIVE_COUNT = 60, 10, 6
_PEERS_CACHED = 1_024
#: Once a call is canceled, it ends within this time, unless it is waiting for other nodes of a cluster.
ABORT_SECONDS = 5.0
_THIS_MACHINE = Peer("unix", is_local=True)


class PortListener:
    """An implementation of `Listener` (`saros_server.server`). The constructor binds the port."""

    def __init__(
        self,
        host: str,
        port: int,
        certificate: WatchedFiles | None,
        protocols: Sequence[Protocol],
        limits: Limits | None = None,
    ) -> None:
        """Bind the port. Raises ConfigurationError (address, certificate)."""
        self._limits = limits or Limits()
        tls = None if certificate is None else ServerTls(certificate)
        self._bound = _bind(host, port)
        self._address = f"{host}:{self._bound[0].getsockname()[1]}"
        #: The address of the local socket without TLS. Empty if the port itself does not use TLS.
        self.local_address = ""
        local = []
        if tls is not None:
            made, self.local_address = _bind_local()
            local.append(made)
        self._is_tls = tls is not None
        self._monitor = CallMonitor()
        self._poller = Poller([*self._bound, *local], self._on_accept, self._on_ready)
        detector = ProtocolDetector(protocols, tls)
        self._workers = WorkerPool(detector, self._limits, self._poller.park, self._on_over)
        #: Guards the next three fields. It is notified when a connection is closed.
        self._changed = threading.Condition()
        self._clients: set[Client] = set()
        self._per_host: Counter[str] = Counter()
        self._is_stopped = False
        #: The counters of closed connections.
        self._closed: dict[str, ProtocolCounters] = {}

    @property
    def address(self) -> str:
        """See `Listener.address`."""
        return self._address

    def start(self) -> None:
        """See `Listener.start`."""
        raise_descriptors_limit()
        self._monitor.start()
        self._poller.start()

    def stop(self, grace_s: float) -> None:
        """See `Listener.stop`. Idempotent."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self._workers.drain()
        for client in self._poller.close():
            self._workers.serve(client)
        with self._changed:
            for client in self._clients:
                if not client.is_busy:
                    client.connection.end_input()
            self._changed.wait_for(self._is_empty, grace_s)
            for client in self._clients:
                client.connection.abort()
            if not self._changed.wait_for(self._is_empty, ABORT_SECONDS):
                logger.warning("calls are still running", extra={"calls": len(self._clients)})
                return  # they wait for the node, and end when the node closes
        self._workers.close()
        self._monitor.close()
        self._poller.release()

    def counters(self) -> dict[str, ProtocolCounters]:
        """Return the counters by protocol."""
        with self._changed:
            return snapshot(self._closed, self._clients)

    def _is_empty(self) -> bool:
        return not self._clients

    def _on_accept(self, listening: socket.socket, accepted: socket.socket, address: Any) -> None:
        is_local = listening.family == socket.AF_UNIX
        peer = _THIS_MACHINE if is_local else _peer(address[0])
        if not is_local:
            _set_options(accepted)
        refusal = self._refusal(peer.host)
        if len(self._clients) >= self._limits.connections + _REFUSED_MAX:
            accepted.close()
            with self._changed:
                self._closed.setdefault(UNKNOWN, ProtocolCounters()).refused += 1
            return
        connection = Connection(accepted, peer, self._monitor, lambda: self._workers.is_crowded)
        client = Client(connection, peer.host, self._is_tls and not is_local, refusal)
        client.deadline = time.monotonic() + self._limits.greeting_s
        with self._changed:
            self._clients.add(client)
            self._per_host[client.host] += 1
        if not self._poller.park(client):
            self._on_over(client)

    def _refusal(self, host: str) -> str:
        """Return the reason why another client from the host is refused, or an empty text if it is served."""
        limits = self._limits
        if len(self._clients) >= limits.connections:
            return f"this node has {limits.connections} connections, the maximum: close some"
        if self._per_host[host] >= limits.connections_per_address:
            found = limits.connections_per_address
            return f"this node has {found} connections from this address, the maximum: close some"
        return ""

    def _on_ready(self, client: Client) -> None:
        self._workers.serve(client)

    def _on_over(self, client: Client) -> None:
        """Close a client's connection. No thread may be using it."""
        self._poller.forget(client.connection.fileno())
        with self._changed:
            client.connection.close()
            self._clients.discard(client)
            self._per_host[client.host] -= 1
            if not self._per_host[client.host]:
                del self._per_host[client.host]
            self._closed.setdefault(client.protocol_name, ProtocolCounters()).add(client)
            self._changed.notify_all()


def _bind(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each address of a host. Raises ConfigurationError."""
    name, bound = host.strip("[]"), list[socket.socket]()
    try:
        check_address(name, port)
        for family, _, _, _, address in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM):
            number = int(bound[0].getsockname()[1]) if bound else port
            bound.append(_listening(family, (str(address[0]), number)))
    except (OSError, RuntimeError) as error:
        if bound:  # The host name also resolves to an address that this machine does not have.
            return bound
        raise ConfigurationError(f"cannot listen on {host}:{port}: {error}") from error
    return bound


def _listening(family: int, address: tuple[str, int]) -> socket.socket:
    dual = family == socket.AF_INET6 and address[0] == "::"
    made = socket.create_server(address, family=family, backlog=_BACKLOG, dualstack_ipv6=dual)
    made.setblocking(False)
    return made


def _bind_local() -> tuple[socket.socket, str]:
    """Return a socket that only this machine can reach, and its address.

    The socket's name is abstract. If the system has no abstract names, it is a path in a private folder, which the
    process removes when it ends.
    """
    made = socket.socket(socket.AF_UNIX)
    if HAS_ABSTRACT_SOCKETS:
        name = f"saros-{secrets.token_hex(16)}"
        made.bind(f"\0{name}")
        address = f"unix-abstract:{name}"
    else:
        folder = tempfile.mkdtemp(prefix="saros-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = os.path.join(folder, "port")
        made.bind(path)
        address = f"unix:{path}"
    made.listen(_BACKLOG)
    made.setblocking(False)
    return made, address


#: The socket option for `_KEEPALIVE_IDLE`, which has one name on Linux and another on macOS.
_KEEPALIVE_IDLE_OPTION: int = vars(socket).get("TCP_KEEPIDLE") or vars(socket)["TCP_KEEPALIVE"]


def _set_options(accepted: socket.socket) -> None:
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    accepted.setsockopt(socket.IPPROTO_TCP, _KEEPALIVE_IDLE_OPTION, _KEEPALIVE_IDLE)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_COUNT)


@lru_cache(_PEERS_CACHED)
def _peer(address: str) -> Peer:
    return Peer.at(address)
