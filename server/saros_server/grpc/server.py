"""A node behind a port: gRPC on top of the service, and what tells other processes about it.

While it runs, the folder says who serves it (`server_file`). With a certificate, clients speak TLS; then it also names
a socket without, which only this machine can reach, for `saros status`. What a server needs to listen on which address
is decided by `security`.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc

from saros_cluster.node.cluster_file import load as load_cluster_file
from saros_server.auth.security import Security, check_folder, check_host, has_users, warning
from saros_server.config.configuration import ConfigurationError
from saros_server.grpc.service import CALLS_MAX, ClientService
from saros_server.http.metrics import MetricsServer, NodeCollector
from saros_server.pki.certificate_files import WatchedFiles
from saros_server.process.server_file import Serving, announce, withdraw
from saros_server.process.warm_up import WarmUp
from saros_storage.base.clock import Clock, SystemClock
from saros_storage.io.disk import LocalDisk
from saros_wire import protocol
from saros_wire.addresses import is_loopback
from saros_wire.port_check import check_address

logger = logging.getLogger(__name__)

#: Calls, but streams, that are carried out at once; more wait.
_THREADS = 32
#: How long running calls may go on after the server was told to stop.
_GRACE_SECONDS = 5.0
#: How long a thread that computes in Python may keep others waiting. A write goes through ten threads on three nodes,
#: and a flush would add Python's 5 ms to each.
_SWITCH_SECONDS = 0.0005
#: A server that is this old warms up: one that was started for a moment only does not.
_COLD_SECONDS = 3.0
#: Who joins a cluster has nobody to serve yet, and much to do once it is in: it serves when it is warm, or so late.
_JOINING_SECONDS, _POLL_SECONDS = 10.0, 0.05
#: A signal that another thread was given does not wake the main one: it looks so often whether there was one.
_LOOK_SECONDS = 0.5
#: Of the gRPC server.
OPTIONS = [
    ("grpc.max_receive_message_length", protocol.MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", protocol.MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),
    # gRPC closes connections that ping more often than this, or while they carry no call. The last ping of a call may
    # arrive after the call's end.
    ("grpc.http2.min_ping_interval_without_data_ms", protocol.KEEPALIVE_MS // 2),
    ("grpc.keepalive_permit_without_calls", 1),
]


def server_credentials(files: WatchedFiles) -> grpc.ServerCredentials:
    """Return TLS credentials for `add_secure_port`; at each handshake gRPC asks for changed files.

    TLS versions below 1.2 are refused by gRPC itself. Thread-safe.
    """

    def configuration() -> grpc.ServerCertificateConfiguration:
        certificate, key = files.contents
        return grpc.ssl_server_certificate_configuration([(key, certificate)])

    return grpc.dynamic_ssl_server_credentials(
        configuration(), lambda: configuration() if files.reload_if_changed() else None
    )


class Server:
    """See the module. `start`, then `wait` or `stop`."""

    def __init__(
        self,
        folder: str,
        host: str,
        port: int,
        *,
        metrics_port: int | None = None,
        clock: Clock | None = None,
        security: Security | None = None,
    ) -> None:
        """Open the database and bind the ports. Raises ConfigurationError, StorageError.

        A node of a cluster listens where its `cluster.json` says.
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
        self._service = ClientService(folder, clock or SystemClock(), authentication=authenticated)
        self._server = grpc.server(
            ThreadPoolExecutor(_THREADS, thread_name_prefix="saros-rpc"),
            options=OPTIONS,
            maximum_concurrent_rpcs=CALLS_MAX,
        )
        self._server.add_generic_rpc_handlers((self._service.handlers(),))
        self._local = ""
        try:
            bound = self._bind(host, port, security)
            self.metrics = None if metrics_port is None else self._serve_metrics(host, metrics_port, bound)
        except BaseException:
            self._service.close()
            raise
        #: Whether clients must log in.
        self.authenticated = authenticated
        #: host:port that clients connect to.
        self.address = f"{host}:{bound}"
        self._stopped = threading.Event()

    def _bind(self, host: str, port: int, security: Security) -> int:
        """Listen; the port. Raises ConfigurationError (address, certificate)."""
        try:
            check_address(host, port)
            if security.tls is None:
                return int(self._server.add_insecure_port(f"{host}:{port}"))
            files = WatchedFiles((security.tls.certificate, security.tls.key))
            self._service.node.certificates.append(files)
            bound = int(self._server.add_secure_port(f"{host}:{port}", server_credentials(files)))
            self._local = f"unix-abstract:saros-{secrets.token_hex(16)}"
            self._server.add_insecure_port(self._local)
        except RuntimeError as error:
            raise ConfigurationError(f"cannot listen on {host}:{port}: {error}") from error
        return bound

    def _serve_metrics(self, host: str, port: int, taken: int) -> MetricsServer:
        """On this machine only: who scrapes does not log in. Raises ConfigurationError."""
        host = host if is_loopback(host) else "127.0.0.1"
        service = self._service
        collector = NodeCollector(service.node, lambda: service.sessions, lambda: service.uptime_s, self._folder)
        try:
            check_address(host, port)
            return MetricsServer(host, port, service.node, collector)
        except (OSError, RuntimeError) as error:
            why = "clients have this port: choose another one" if port == taken else error
            raise ConfigurationError(f"cannot listen on {host}:{port} for metrics: {why}") from error

    def start(self) -> None:
        """Serve, and say so in the folder."""
        self._server.start()
        announce(self._folder, Serving(os.getpid(), self.address, self._local))
        level = logging.WARNING if self._warning else logging.INFO
        extra = {"address": self.address, "folder": self._folder}
        logger.log(level, "serving", extra=extra | ({"access": self._warning} if self._warning else {}))
        for problem in self._service.node.problems():
            logger.warning("a problem", extra={"problem": problem})

    def stop(self) -> None:
        """Let running calls end, close the database. Idempotent."""
        if self._stopped.is_set():
            return
        logger.info("stopping", extra={"sessions": self._service.sessions})
        self._server.stop(_GRACE_SECONDS).wait()
        if self.metrics is not None:
            self.metrics.close()
        withdraw(self._folder)
        self._service.close()
        self._stopped.set()
        logger.info("stopped")

    def run_until_signalled(self) -> None:
        """Serve until SIGTERM or SIGINT; on the main thread. The process is the server's own from here on."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        asked = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: asked.set())
        warming = WarmUp()
        if self._service.is_joining:
            warming.start()
            limit = time.monotonic() + _JOINING_SECONDS
            while warming.is_under_way and time.monotonic() < limit and not asked.wait(_POLL_SECONDS):
                pass
        self.start()
        if not asked.wait(_COLD_SECONDS):
            warming.start()
        while not asked.wait(_LOOK_SECONDS):
            pass
        warming.stop()
        self.stop()
