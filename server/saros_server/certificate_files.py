"""A certificate and its key, as files. A key that others may read is refused. Any thread."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saros_server.configuration import ConfigurationError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Two PEM files: the certificate with those that lead to its authority, and the key."""

    certificate: str
    key: str


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
