"""A disk in memory, initialised with given files: all changes stay in this process.

    MemoryDisk({"/data/node.json": b"..."})  ->  a store opens /data, writes, and leaves the machine's disk unchanged

The given contents are not copied until they are written to, so a file that was mapped from the local disk takes no
memory. Implements `io.disk.Disk`; even synced data is lost when the process ends. Thread-safe.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Collection, Mapping, Sequence

from saros_storage.io.disk import File

#: Effectively unlimited: memory is exhausted first.
_FREE_BYTES = 1 << 62


class _Content:
    """The content of a file, which may have several names."""

    __slots__ = ("data",)

    def __init__(self, data: memoryview) -> None:
        #: This is a bytearray after a write, until the next call of `frozen`.
        self.data: memoryview | bytearray = data

    def frozen(self) -> memoryview:
        """Return the bytes; later writes do not change them."""
        if isinstance(self.data, bytearray):
            self.data = memoryview(bytes(self.data))
        return self.data

    def writable(self) -> bytearray:
        """Return the bytes in a form that can be changed in place."""
        if not isinstance(self.data, bytearray):
            self.data = bytearray(self.data)
        return self.data


_Folder = dict[str, "_Folder | _Content"]


class _MemoryFile:
    """A `File` in memory."""

    def __init__(self, content: _Content, lock: threading.Lock) -> None:
        self._content = content
        self._lock = lock

    @property
    def size(self) -> int:
        """See `File.size`."""
        return len(self._content.data)

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        """See `File.write`."""
        with self._lock:
            data = self._content.writable()
            for part in parts:
                data += part

    def reserve(self, count: int) -> None:
        """See `File.reserve`. A no-op."""

    def sync(self) -> None:
        """See `File.sync`. A no-op."""

    def close(self) -> None:
        """See `File.close`."""


class MemoryDisk:
    """A `Disk` that keeps its tree of files in memory."""

    def __init__(self, files: Mapping[str, memoryview]) -> None:
        """Create a disk with these files, given as contents by path, and with their parent folders."""
        self._lock = threading.Lock()
        self._root: _Folder = {}
        for path, data in files.items():
            folder, name = self._parent(path, make=True)
            folder[name] = _Content(data)

    # ------------------------------------------------------------------ the tree

    def _find(self, path: str) -> _Folder | _Content | None:
        found: _Folder | _Content | None = self._root
        for name in _names(path):
            found = found.get(name) if isinstance(found, dict) else None
        return found

    def _parent(self, path: str, *, make: bool = False) -> tuple[_Folder, str]:
        """Return the parent folder of a path, and the path's name in that folder.

        Raises FileNotFoundError, NotADirectoryError.
        """
        *above, last = _names(path)
        folder = self._root
        for name in above:
            found = folder.setdefault(name, {}) if make else folder.get(name)
            if found is None:
                raise _error(errno.ENOENT, path)
            if isinstance(found, _Content):
                raise _error(errno.ENOTDIR, path)
            folder = found
        return folder, last

    def _content(self, path: str) -> _Content:
        found = self._find(path)
        if isinstance(found, _Content):
            return found
        raise _error(errno.ENOENT if found is None else errno.EISDIR, path)

    # ------------------------------------------------------------------ Disk

    def create(self, path: str) -> File:
        """See `Disk.create`."""
        with self._lock:
            folder, name = self._parent(path)
            content = folder[name] = _Content(memoryview(b""))
            return _MemoryFile(content, self._lock)

    def create_unread(self, path: str) -> File:
        """See `Disk.create_unread`."""
        return self.create(path)

    def append(self, path: str) -> File:
        """See `Disk.append`."""
        if not self.exists(path):
            return self.create(path)
        with self._lock:
            return _MemoryFile(self._content(path), self._lock)

    def map(self, path: str) -> memoryview:
        """See `Disk.map`."""
        with self._lock:
            return self._content(path).frozen()

    def read(self, path: str, offset: int, count: int) -> bytes:
        """See `Disk.read`."""
        with self._lock:
            return bytes(self._content(path).data[offset : offset + count])

    def truncate(self, path: str, size: int) -> None:
        """See `Disk.truncate`."""
        with self._lock:
            content = self._content(path)
            if size < len(content.data):
                del content.writable()[size:]

    def replace(self, source: str, target: str) -> None:
        """See `Disk.replace`."""
        with self._lock:
            found = self._find(source)
            if found is None:
                raise _error(errno.ENOENT, source)
            folder, name = self._parent(target)
            above, former = self._parent(source)
            del above[former]
            folder[name] = found

    def link(self, source: str, target: str) -> None:
        """See `Disk.link`."""
        with self._lock:
            folder, name = self._parent(target)
            if name in folder:
                raise _error(errno.EEXIST, target)
            folder[name] = self._content(source)

    def remove(self, path: str) -> None:
        """See `Disk.remove`."""
        with self._lock:
            if self._find(path) is not None:
                folder, name = self._parent(path)
                self._content(path)
                del folder[name]

    def remove_tree(self, path: str) -> None:
        """See `Disk.remove_tree`."""
        with self._lock:
            if isinstance(self._find(path), dict):
                folder, name = self._parent(path)
                del folder[name]

    def make_folder(self, path: str, *, durably: bool = True) -> None:  # noqa: ARG002 (nothing here is durable)
        """See `Disk.make_folder`."""
        with self._lock:
            self._parent(os.path.join(path, "any"), make=True)

    def sync_folder(self, path: str) -> None:
        """See `Disk.sync_folder`. A no-op."""

    def sync_all(self, paths: Collection[str]) -> None:
        """See `Disk.sync_all`. A no-op."""

    def list(self, path: str) -> list[str]:
        """See `Disk.list`."""
        with self._lock:
            found = self._find(path)
            if isinstance(found, _Content):
                raise _error(errno.ENOTDIR, path)
            return sorted(found or ())

    def exists(self, path: str) -> bool:
        """See `Disk.exists`."""
        with self._lock:
            return self._find(path) is not None

    def size(self, path: str) -> int:
        """See `Disk.size`."""
        with self._lock:
            return len(self._content(path).data)

    def free_bytes(self, path: str) -> int:  # noqa: ARG002
        """See `Disk.free_bytes`."""
        return _FREE_BYTES


def _names(path: str) -> list[str]:
    return [name for name in os.path.abspath(path).split(os.sep) if name]


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
