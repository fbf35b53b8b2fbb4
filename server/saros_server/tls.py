"""TLS for clients: a certificate and its key as gRPC takes them, read anew when the files change.

Versions below 1.2 are not spoken (gRPC's own floor). A key that others may read is refused. Thread-safe.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc

from saros_server.configuration import ConfigurationError

logger = logging.getLogger(__name__)

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Two PEM files: the certificate with those that lead to its authority, and the key."""

    certificate: str
    key: str


def server_credentials(files: CertificateFiles) -> grpc.ServerCredentials:
    """For `add_secure_port`. Raises ConfigurationError."""
    reader = _Reader(files)
    return grpc.dynamic_ssl_server_credentials(reader.first, reader.fetch)


def check_key(path: str) -> None:
    """Raise ConfigurationError for a key that others may read, or that is not there."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise _unreadable(error) from error
    if mode & _OTHERS:
        raise ConfigurationError(f"others may read the key {path}: chmod 600 it")


def stamp_of(paths: Sequence[str]) -> tuple[int, ...]:
    """Another one when a file has changed. Raises ConfigurationError."""
    try:
        return tuple(os.stat(path).st_mtime_ns for path in paths)
    except OSError as error:
        raise _unreadable(error) from error


def read_with_key(paths: Sequence[str]) -> list[bytes]:
    """What is in the files; the last one is a key. Raises ConfigurationError, also as `check_key` does."""
    check_key(paths[-1])
    try:
        return [Path(path).read_bytes() for path in paths]
    except OSError as error:
        raise _unreadable(error) from error


def _unreadable(error: OSError) -> ConfigurationError:
    return ConfigurationError(f"cannot read {error.filename}: {error.strerror}")


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
