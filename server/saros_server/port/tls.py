"""The TLS of a listener. The certificate is reloaded when its files change. Thread-safe."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Sequence

from saros_server.config.configuration import ConfigurationError
from saros_server.pki.certificate_files import WatchedFiles
from saros_storage.io.platform import memory_file

#: The ALPN name that gRPC clients require. The port answers such clients with errors (`old_drivers`).
_GRPC = "h2"


class ServerTls:
    """The current TLS context of a listener, which each new connection uses."""

    def __init__(self, files: WatchedFiles, protocols: Sequence[str] = (_GRPC,)) -> None:
        """Load the certificate. Raises ConfigurationError if it cannot be used.

        `protocols` are the names that the server offers in ALPN.
        """
        self._files = files
        self._protocols = list(protocols)
        self._lock = threading.Lock()
        try:
            self._context = _context_of(files, self._protocols)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(f"the certificate cannot be used: {error}") from error

    @property
    def context(self) -> ssl.SSLContext:
        """The current context. If the files have changed, they are reloaded first."""
        with self._lock:
            if self._files.reload_if_changed():
                self._context = _context_of(self._files, self._protocols)
            return self._context


def _context_of(files: WatchedFiles, protocols: list[str]) -> ssl.SSLContext:
    """Return a context made from the contents of the files, as they were validated.

    The files are not read again, since they may have changed since the validation.
    """
    certificate, key = files.contents
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(protocols)
    with memory_file(certificate + b"\n" + key) as path:
        context.load_cert_chain(path, password="")
    return context
