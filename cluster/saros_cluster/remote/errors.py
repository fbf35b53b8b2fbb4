"""The errors of remote reading, and the translation of a holder's storage errors.

    ReadLost         a part of the query is gone (lease over, closed, node lost): run the query again
    TooManyReads     the holder has reached its limit of queries or readers: try later, or read less at once

Pure: any thread.
"""

from __future__ import annotations

import re

from saros_cluster.multiraft.peers import RemoteError
from saros_storage.base.errors import CorruptFile, DiskFull, LogFailed, StorageError, StoreClosed, UnsupportedFile
from saros_storage.scan.type_conversion import TypeChanged

_CORRUPT = re.compile(r"corrupt file (.*) at byte (\d+): (.*)", re.DOTALL)
_UNSUPPORTED = re.compile(r"file (.*) uses (.*), which this version of Saros does not read", re.DOTALL)
_SIMPLE: dict[int, type[StorageError]] = {
    kind.code: kind for kind in (StorageError, CorruptFile, UnsupportedFile, DiskFull, LogFailed, StoreClosed)
} | {TypeChanged.code: StorageError}


class ReadLost(Exception):
    """A holder no longer has the query's view. The query must be run again, since another view may have other data."""

    code = 2030


class TooManyReads(Exception):
    """The holder has reached a limit of open queries, readers or streams."""

    code = 2031


def local_error(error: RemoteError) -> Exception:
    """Return the error that a local reader would have raised, with the node's name, or `error` itself."""
    kind = _SIMPLE.get(error.code)
    if kind is None:
        return error
    text = str(error)
    if corrupt := _CORRUPT.fullmatch(text):
        return CorruptFile(f"{corrupt[1]} of node {error.node}", int(corrupt[2]), corrupt[3])
    if unsupported := _UNSUPPORTED.fullmatch(text):
        return UnsupportedFile(f"{unsupported[1]} of node {error.node}", unsupported[2])
    if kind in (CorruptFile, UnsupportedFile):
        kind = StorageError
    return kind(f"node {error.node}: {text}", code=error.code)
