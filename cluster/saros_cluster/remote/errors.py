"""What remote reading raises, and what an error of the holder's storage becomes here.

    ReadLost         a part of the query is gone (lease, closed, node lost in the middle): run the query again
    TooManyReads     the holder has as many queries or readers as it takes: try later, or read less at once

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
    """A part of the query that a holder kept is gone, with the cut that was read: only a new run can be right."""

    code = 2030


class TooManyReads(Exception):
    """A limit of the holder."""

    code = 2031


def local_error(error: RemoteError) -> Exception:
    """The error that a local reader would have raised, its text naming the node; `error` itself if none would."""
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
