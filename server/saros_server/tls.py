"""TLS for clients: a certificate and its key as gRPC takes them, read anew when the files change.

Versions below 1.2 are not spoken (gRPC's own floor). Thread-safe.
"""

from __future__ import annotations

import logging

import grpc

from saros_server.certificate_files import CertificateFiles, read_with_key, stamp_of
from saros_server.configuration import ConfigurationError

logger = logging.getLogger(__name__)


def server_credentials(files: CertificateFiles) -> grpc.ServerCredentials:
    """For `add_secure_port`. Raises ConfigurationError."""
    reader = _Reader(files)
    return grpc.dynamic_ssl_server_credentials(reader.first, reader.fetch)


class _Reader:
    """The files as they are now; what they were before, if they cannot be read now."""

    def __init__(self, files: CertificateFiles) -> None:
        self._paths = (files.certificate, files.key)
        self._seen = stamp_of(self._paths)
        self.first = self._read()

    def fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """The files if they have changed, else None; gRPC asks at every handshake."""
        try:
            stamp = stamp_of(self._paths)
            if stamp == self._seen:
                return None
            configuration = self._read()
        except ConfigurationError as error:
            logger.warning("the certificate cannot be read anew", extra={"error": str(error)})
            return None
        self._seen = stamp
        logger.info("a new certificate", extra={"certificate": self._paths[0]})
        return configuration

    def _read(self) -> grpc.ServerCertificateConfiguration:
        certificate, key = read_with_key(self._paths)
        return grpc.ssl_server_certificate_configuration([(key, certificate)])
