"""The files of certificates and of their key, which are reloaded while a server runs.

Files that are invalid or do not match are refused when a server starts. Later, while the server runs, invalid files are
ignored: the server continues with the previous certificates. A key that other users can read is refused as well. The
objects may be used on any thread, but by one thread at a time.
"""

from __future__ import annotations

import logging
import os
import ssl
import stat
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509

from saros_server.config.configuration import ConfigurationError

logger = logging.getLogger(__name__)

#: A certificate's expiry is reported a month ahead, since a manual renewal may take that long.
_SOON = timedelta(days=30)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_CERTIFICATE, _KEY = b"-----BEGIN CERTIFICATE-----", b"PRIVATE KEY-----"


class CertificateFiles(msgspec.Struct, frozen=True):
    """Two PEM files: the certificate with its chain, and the key."""

    certificate: str
    key: str


class Validity(msgspec.Struct, frozen=True):
    """The period in which all certificates of a file are valid."""

    begin: datetime
    end: datetime

    def problem(self, path: str, now: datetime) -> str | None:
        """Return a warning about the certificate in `path`, or None if it will be valid for more than a month."""
        if now < self.begin:
            return f"{path} is not valid before {_day(self.begin)}: check the clock of this machine"
        if now >= self.end:
            return f"the certificate {path} has expired on {_day(self.end)}: renew it"
        if self.end - now < _SOON:
            return f"the certificate {path} expires on {_day(self.end)}: renew it"
        return None


class WatchedFiles:
    """The newest valid contents of files: of certificates, and of the key that belongs to the last certificate."""

    def __init__(self, paths: Sequence[str], uri: str | None = None) -> None:
        """Load the files. Raises ConfigurationError.

        `paths` has the certificates, then the key; `uri` is a name that the last certificate must have.
        """
        self._paths = tuple(paths)
        self._uri = uri
        self._seen = _stamp_of(self._paths)
        #: The reason why the current files were refused, if they were refused.
        self._refused: str | None = None
        #: The contents of the files, in the order of `paths`.
        self.contents: list[bytes]
        self._validities: list[tuple[str, Validity]]
        self._read()

    @property
    def validities(self) -> Iterable[tuple[str, Validity]]:
        """The path and the validity of each certificate's file."""
        return self._validities

    def reload_if_changed(self) -> bool:
        """Load the files if they have changed and are valid. Return True if they were loaded."""
        try:
            stamp = _stamp_of(self._paths)
            if stamp == self._seen:
                return False
            self._read()
        except ConfigurationError as error:  # the next file may not be written yet
            if str(error) != self._refused:
                logger.warning("a changed certificate cannot be read", extra={"error": str(error)})
            self._refused = str(error)
            return False
        self._seen, self._refused = stamp, None
        logger.info("a new certificate", extra={"certificate": self._paths[-2]})
        return True

    def problems(self, now: datetime) -> list[str]:
        """Return descriptions of current problems for operators."""
        found = [validity.problem(path, now) for path, validity in self._validities]
        refused = None if self._refused is None else f"a certificate was refused: {self._refused}"
        return [problem for problem in (*found, refused) if problem is not None]

    def _read(self) -> None:
        *_, certificate, key = self._paths
        _check_key(key)
        try:
            found = [Path(path).read_bytes() for path in self._paths]
        except OSError as error:
            raise _unreadable(error) from error
        for path, content, words in zip(self._paths, found, [_CERTIFICATE] * (len(found) - 1) + [_KEY], strict=True):
            if words not in content:
                raise ConfigurationError(f"{path} holds no {'key' if words is _KEY else 'certificate'} in PEM form")
        _check_pair(certificate, key)
        validities = [(path, _validity(path, pem)) for path, pem in zip(self._paths, found[:-1], strict=False)]
        if self._uri is not None and not has_uri(found[-2], self._uri):
            raise ConfigurationError(
                f"{certificate} is another node's certificate: it lacks the name {self._uri} (docs/security.md)"
            )
        self.contents, self._validities = found, validities


def validity_of(pem: bytes) -> Validity:
    """Return the period in which all certificates of a PEM file are valid.

    Raises ValueError if there is no certificate, or one that cannot be parsed.
    """
    found = x509.load_pem_x509_certificates(pem)
    begin = max(certificate.not_valid_before_utc for certificate in found)
    return Validity(begin, min(certificate.not_valid_after_utc for certificate in found))


def has_uri(pem: bytes, uri: str) -> bool:
    """Return whether the first certificate of a PEM file has the URI among its names. Raises as `validity_of`."""
    extensions = x509.load_pem_x509_certificates(pem)[0].extensions
    try:
        found = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return uri in found.get_values_for_type(x509.UniformResourceIdentifier)


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _validity(path: str, pem: bytes) -> Validity:
    """Return the validity of a certificate's file. Raises ConfigurationError."""
    try:
        return validity_of(pem)
    except ValueError as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error


def _check_key(path: str) -> None:
    """Raise ConfigurationError for a key that other users can read, or that does not exist."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise _unreadable(error) from error
    if mode & _OTHERS:
        raise ConfigurationError(f"other users can read the key {path}; run chmod 600 {path}")


def _check_pair(certificate: str, key: str) -> None:
    """Raise ConfigurationError for a certificate and a key that cannot be used for TLS."""
    try:
        # Without a `password` argument, OpenSSL would ask for the key's password on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigurationError(f"{key} is not the key of the certificate {certificate}") from error
        why = error.reason or "the key has a password"
        raise ConfigurationError(f"{certificate} and its key {key} cannot be read: {why}") from error
    except OSError as error:
        raise _unreadable(error) from error


def _stamp_of(paths: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Return a value that changes when a file is changed or replaced. Raises ConfigurationError."""
    try:
        return tuple((found.st_ino, found.st_mtime_ns) for found in map(os.stat, paths))
    except OSError as error:
        raise _unreadable(error) from error


def _unreadable(error: OSError) -> ConfigurationError:
    return ConfigurationError(f"cannot read {error.filename}: {error.strerror}")
