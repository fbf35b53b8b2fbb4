"""Take a snapshot of a data folder while another process may be writing to it. The snapshot is a disk in memory.

    documents    MANIFEST, meta/schema, ...: replaced as a whole       read first, and once more at the end
    log          the last segment grows, old segments are removed      read after that, up to the last complete record
    data         TsFiles and resources: never changed, only removed    opened after the log, and kept open

If no document has changed between the first and the last reading, and the log still begins with the records that were
read, then these documents and records existed together at the moment when the log was read. The snapshot is the state
that the folder's owner would have left if it had been killed at that moment. If something has changed, the attempt is
repeated. A store opened on the snapshot recovers as the owner would, and shows a prefix of the log that includes all
entries acknowledged before the snapshot began.

No file that the snapshot needs is missing. The files of a manifest stay until the manifest is replaced. A file of a
LOAD exists before its entry is in the log, and stays until a manifest contains it. Segments are removed only after
manifests and schema contain their entries. The snapshot takes no lock and writes nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence

import msgspec

from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.folder.layout import (
    CORRUPT_FOLDER,
    GROUP_FOLDER,
    LOG_FOLDER,
    NODE_FILE,
    RESOURCE,
    SCHEMA_FILE,
    TEMPORARY,
    TRASH_PREFIX,
)
from saros_storage.io.disk import Disk
from saros_storage.io.memory_disk import MemoryDisk
from saros_storage.log.record import Scan, scan
from saros_storage.log.segment_name import SUFFIX, SegmentName, list_segments

#: Flushes and merges replace documents a few times per second, whereas an attempt takes some milliseconds.
_ATTEMPTS_MAX = 200
_DATA = (".tsfile", RESOURCE)
#: Suffixes of unfinished files, and of the journals of operations in progress: no committed data depends on such files.
_PASSING = (TEMPORARY, ".part", SUFFIX)
_NO_FOLDER = 2051


class _Changed(Exception):
    """The owner changed the folder during an attempt."""


class _Paths(msgspec.Struct):
    documents: list[str] = msgspec.field(default_factory=list)
    data: list[str] = msgspec.field(default_factory=list)


def take_snapshot(disk: Disk, folder: str, trees: Sequence[str] = ()) -> MemoryDisk:
    """Take a snapshot of a data folder, including its sub-folders `trees`, which are updated in the same way.

    Raises UserMistake 2051 (no data folder), StorageError (the folder changes too fast, or has too many files).
    """
    if not disk.exists(os.path.join(folder, NODE_FILE)):
        problem = "is not a data folder" if disk.exists(folder) else "does not exist"
        raise UserMistake(f"{folder} {problem}: nothing can be read there", code=_NO_FOLDER)
    below = (NODE_FILE, os.path.dirname(SCHEMA_FILE), GROUP_FOLDER, *trees)
    roots = [os.path.join(folder, name) for name in below]
    try:
        for _ in range(_ATTEMPTS_MAX):
            try:
                return MemoryDisk(_attempt(disk, folder, roots))
            except (_Changed, FileNotFoundError):
                continue
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise StorageError(f"{folder} has more files than this process may open: raise ulimit -n") from error
        raise
    raise StorageError(f"{folder} changed during each of {_ATTEMPTS_MAX} attempts to read it; try again")


def _attempt(disk: Disk, folder: str, roots: Sequence[str]) -> dict[str, memoryview]:
    """Return all files as they were at one moment. Raises _Changed, FileNotFoundError."""
    documents = _documents(disk, roots)
    log = _Log(disk, os.path.join(folder, LOG_FOLDER))
    data = {path: _data(disk, path) for path in _walk(disk, roots).data}
    log.confirm()
    if _documents(disk, roots) != documents:
        raise _Changed
    return {**{path: memoryview(content) for path, content in documents.items()}, **data, **log.segments}


def _walk(disk: Disk, roots: Sequence[str]) -> _Paths:
    found = _Paths()
    for path in _files(disk, roots):
        (found.data if path.endswith(_DATA) else found.documents).append(path)
    return found


def _files(disk: Disk, paths: Sequence[str]) -> Iterator[str]:
    """Yield the given files, and all files in the given folders, except those that a snapshot does not need."""
    for path in paths:
        name = os.path.basename(path)
        if name == CORRUPT_FOLDER or name.startswith(TRASH_PREFIX) or name.endswith(_PASSING):
            continue
        try:
            names = None if name.endswith(_DATA) else disk.list(path)
        except NotADirectoryError:
            names = None
        if names is None:
            yield path
        else:
            yield from _files(disk, [os.path.join(path, inner) for inner in names])


def _documents(disk: Disk, roots: Sequence[str]) -> dict[str, bytes]:
    return {path: bytes(disk.map(path)) for path in _walk(disk, roots).documents}


def _data(disk: Disk, path: str) -> memoryview:
    """Return the content of a file. A resource file is small, so it is read immediately and does not stay open."""
    content = disk.map(path)
    return memoryview(bytes(content)) if path.endswith(RESOURCE) else content


class _Log:
    """The log as it was read; `confirm` checks that the log had this content at one moment."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._paths = self._list()
        #: The content of each segment by path: closed segments entirely, the last segment up to its last complete
        #: record.
        self.segments = {path: disk.map(path) for path in self._paths[:-1]}
        if self._paths:
            self._last = self._paths[-1]
            self._read = self._read_last()
            self._found = self._scan(self._read)
            end = len(self._read) if self._found.damaged else self._found.end
            self.segments[self._last] = memoryview(self._read)[:end]

    def _list(self) -> list[str]:
        return list_segments(self._disk, self._folder)

    def _scan(self, data: bytes) -> Scan:
        name = SegmentName.of(self._last)
        return scan(memoryview(data), name.first_index, name.salt)

    def _read_last(self) -> bytes:
        """Read the last segment. It is not mapped, since its owner may truncate it in the meantime."""
        return self._disk.read(self._last, 0, self._disk.size(self._last))

    def confirm(self) -> None:
        """Raise _Changed or FileNotFoundError if records were removed, or if the log was read with a hole in it.

        While records are being written, a later record may be visible before an earlier one, and the hole between
        them looks like damage. A second reading tells the difference: real damage is still there.
        """
        if not self._paths:
            return
        if [path for path in self._list() if self._paths[0] <= path <= self._last] != self._paths:
            raise _Changed  # segments created in the meantime may become visible in any order
        now, end = self._read_last(), self._found.end
        if now[:end] != self._read[:end]:
            raise _Changed
        if self._found.damaged:
            again = self._scan(now)
            if not again.damaged or again.end != end:
                raise _Changed
