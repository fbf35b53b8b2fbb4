"""The port of the gRPC protocol. Implements `Listener` (`saros_server.server`).

With a certificate, clients speak TLS; then there is also a socket without, which only this machine can reach, for
`saros status`.
"""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor

import grpc

from saros_server.api.client_api import CALLS_MAX, ClientApi
from saros_server.config.configuration import ConfigurationError
from saros_server.grpc.service import GrpcService
from saros_server.pki.certificate_files import WatchedFiles
from saros_wire import payload, protocol
from saros_wire.port_check import check_address

#: Calls, except streams, that run at once; more wait.
_THREADS = 32
#: Of the gRPC server.
OPTIONS = [
    ("grpc.max_receive_message_length", payload.MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", payload.MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),
    # gRPC closes connections that ping more often than this, or while they carry no call. The last ping of a call may
    # arrive after the call's end.
    ("grpc.http2.min_ping_interval_without_data_ms", protocol.KEEPALIVE_MS // 2),
    ("grpc.keepalive_permit_without_calls", 1),
]


class GrpcListener:
    """A bound port, from the constructor on."""

    def __init__(self, api: ClientApi, host: str, port: int, certificate: WatchedFiles | None) -> None:
        """Bind the port. Raises ConfigurationError (address, certificate)."""
        self._service = GrpcService(api)
        self._server = grpc.server(
            ThreadPoolExecutor(_THREADS, thread_name_prefix="saros-rpc"),
            options=OPTIONS,
            maximum_concurrent_rpcs=CALLS_MAX,
        )
        self._server.add_generic_rpc_handlers((self._service.handlers(),))
        #: The socket without TLS; empty: the port is without TLS itself.
        self.local_address = ""
        try:
            self._address = f"{host}:{self._bind(host, port, certificate)}"
        except RuntimeError as error:
            raise ConfigurationError(f"cannot listen on {host}:{port}: {error}") from error

    def _bind(self, host: str, port: int, certificate: WatchedFiles | None) -> int:
        check_address(host, port)
        if certificate is None:
            return int(self._server.add_insecure_port(f"{host}:{port}"))
        bound = int(self._server.add_secure_port(f"{host}:{port}", _credentials(certificate)))
        self.local_address = f"unix-abstract:saros-{secrets.token_hex(16)}"
        self._server.add_insecure_port(self.local_address)
        return bound

    @property
    def address(self) -> str:
        """See `Listener.address`."""
        return self._address

    def start(self) -> None:
        """See `Listener.start`."""
        self._server.start()

    def stop(self, grace_s: float) -> None:
        """See `Listener.stop`."""
        self._server.stop(grace_s).wait()
        self._service.close()


def _credentials(files: WatchedFiles) -> grpc.ServerCredentials:
    """Return the certificate and its key for a port. gRPC asks at every handshake whether the files have changed."""

    def configuration() -> grpc.ServerCertificateConfiguration:
        certificate, key = files.contents
        return grpc.ssl_server_certificate_configuration([(key, certificate)])

    return grpc.dynamic_ssl_server_credentials(
        configuration(), lambda: configuration() if files.reload_if_changed() else None
    )
