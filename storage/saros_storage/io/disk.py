"""The disk as a dependency: all file operations of storage go through a `Disk`.

Tests replace the disk by one that tracks which data was fsynced, loses other data at a crash, tears the last write, or
fails at the nth call. These rules make a crash harmless:

  - a file is durable up to its last `sync`; its name is durable after `sync_folder` of its folder
  - `replace` is atomic: after a crash either the old or the new file has the name
  - a failed `sync` is never retried: the pages may be marked clean although they are lost

Thread-safe: many threads may use a `Disk` at the same time, but a `File` is used by one thread at a time. As an
exception, another thread may `sync` a file while it is being written. When this `sync` returns, all data written before
the call is durable.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Protocol

from saros_storage.io import platform

#: Error numbers for a full disk, an exhausted quota, and an exceeded file size limit: a retry may succeed later.
FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class File(Protocol):
    """A file opened for appending."""

    @property
    def size(self) -> int:
        """The size of the file in bytes, including the contents that it had when it was opened."""
        ...

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        """Append all parts in order. After an OSError, it is unknown how much was appended."""
        ...

    def reserve(self, count: int) -> None:
        """Make sure that at least `count` zero bytes follow the contents; later writes replace them.

        Syncing a write to reserved bytes is cheaper, since the file does not grow. After an OSError, the contents are
        unchanged.
        """
        ...

    def sync(self) -> None:
        """Make all written data durable. Raises OSError."""
        ...

    def close(self) -> None:
        """Close without syncing."""
        ...


class Disk(Protocol):
    """The file operations of storage. Paths are absolute or relative to the process's working directory."""

    def create(self, path: str) -> File:
        """Create an empty file for appending; an existing file is truncated."""
        ...

    def create_unread(self, path: str) -> File:
        """Create a file that is written from start to end, synced, and not read soon.

        It bypasses the page cache where possible. Its contents can be read only after the sync.
        """
        ...

    def append(self, path: str) -> File:
        """Open an existing file (or a new one) for appending at its end."""
        ...

    def map(self, path: str) -> memoryview:
        """Map the entire file read-only; the view stays valid when the file is removed."""
        ...

    def read(self, path: str, offset: int, count: int) -> bytes:
        """Read at most `count` bytes of a file that may be truncated concurrently, which would crash users of a map."""
        ...

    def truncate(self, path: str, size: int) -> None:
        """Cut a file to `size` bytes, durably."""
        ...

    def replace(self, source: str, target: str) -> None:
        """Rename atomically over `target`."""
        ...

    def link(self, source: str, target: str) -> None:
        """Hard-link `source` as `target`."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; a missing file is not an error."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a folder and everything below it; a missing folder is not an error."""
        ...

    def make_folder(self, path: str, *, durably: bool = True) -> None:
        """Create a folder and its parents durably.

        Existing folders are synced too, since their creator may have crashed before syncing them. With `durably` False,
        the caller syncs the parent folders later, all together.
        """
        ...

    def sync_folder(self, path: str) -> None:
        """Make the names in a folder durable."""
        ...

    def sync_all(self, paths: Collection[str]) -> None:
        """Make files, and the names in folders, durable, even if other processes wrote them.

        One call for many paths is cheaper than one call for each.
        """
        ...

    def list(self, path: str) -> list[str]:
        """Return the sorted names in a folder; empty if it is missing. Raises NotADirectoryError for a file."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or folder has this name."""
        ...

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        ...

    def free_bytes(self, path: str) -> int:
        """Return the number of bytes that can still be written to the file system of `path`."""
        ...


class LocalFile:
    """A `File` in the local file system."""

    def __init__(self, path: str, flags: int) -> None:
        self._fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
        self._size = os.lseek(self._fd, 0, os.SEEK_END)
        self._reserved_until = self._size

    @property
    def size(self) -> int:
        """See `File.size`."""
        return self._size

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        """See `File.write`."""
        for start in range(0, len(parts), _IOV_MAX):
            self._write_all(parts[start : start + _IOV_MAX])

    def _write_all(self, parts: Sequence[bytes | memoryview]) -> None:
        expected = sum(memoryview(p).nbytes for p in parts)
        written = os.writev(self._fd, parts)
        self._size += written
        if written < expected:
            rest = memoryview(b"".join(parts))[written:]
            while rest:
                written = os.write(self._fd, rest)
                self._size += written
                rest = rest[written:]

    def reserve(self, count: int) -> None:
        """See `File.reserve`."""
        start = max(self._reserved_until, self._size)
        missing = self._size + count - start
        if missing > 0:
            os.pwrite(self._fd, bytes(missing), start)
            self._reserved_until = start + missing

    def sync(self) -> None:
        """See `File.sync`."""
        platform.sync_contents(self._fd)

    def close(self) -> None:
        """See `File.close`."""
        os.close(self._fd)


class UnreadFile(LocalFile):
    """A file that is written without the page cache, if its file system supports direct I/O.

    Data is collected in a page-aligned buffer, as Linux requires, and written when the buffer is full.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._buffer = mmap.mmap(-1, _BUFFER_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._waiting = 0
        with suppress(OSError):
            platform.set_direct_io(self._fd, direct=True)

    @property
    def size(self) -> int:
        """See `File.size`."""
        return self._size + self._waiting

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        """See `File.write`."""
        for part in parts:
            data = memoryview(part).cast("B")
            while data:
                count = min(len(data), _BUFFER_BYTES - self._waiting)
                self._buffer[self._waiting : self._waiting + count] = data[:count]
                self._waiting += count
                data = data[count:]
                if self._waiting == _BUFFER_BYTES:
                    self._empty()

    def _empty(self) -> None:
        at, end, self._waiting = 0, self._waiting, 0
        with memoryview(self._buffer) as data:
            while at < end:
                try:
                    written = os.write(self._fd, data[at:end])
                except OSError as error:
                    if error.errno != errno.EINVAL or not platform.set_direct_io(self._fd, direct=False):
                        raise
                    continue  # direct I/O accepts only whole blocks, so write the rest without it
                at += written
                self._size += written

    def reserve(self, count: int) -> None:
        """See `File.reserve`. A no-op, since the file is synced only once."""

    def sync(self) -> None:
        """See `File.sync`."""
        self._empty()
        super().sync()

    def close(self) -> None:
        """See `File.close`."""
        super().close()
        self._buffer.close()


#: Linux accepts at most 1024 buffers in one `writev`.
_IOV_MAX = 1024
#: Size of a direct write in bytes. It is large because each write waits for the disk.
_BUFFER_BYTES = 4 << 20


_CANNOT_SYNC = {errno.EACCES, errno.EPERM, errno.EINVAL, errno.EROFS, errno.ENOTSUP}
#: From this number of files on, one call syncs their whole file system instead.
_MANY = 16
#: Absolute paths of folders that are durable because this process has synced their parents.
_durable_folders: set[str] = set()
#: When `_durable_folders` has this many entries, it is cleared, and its folders are synced again when they are next
#: used.
_DURABLE_FOLDERS_MAX = 100_000


class LocalDisk:
    """A `Disk` over the local file system."""

    def create(self, path: str) -> File:
        """See `Disk.create`."""
        return LocalFile(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def create_unread(self, path: str) -> File:
        """See `Disk.create_unread`."""
        return UnreadFile(path)

    def append(self, path: str) -> File:
        """See `Disk.append`."""
        return LocalFile(path, os.O_WRONLY | os.O_CREAT)

    def map(self, path: str) -> memoryview:
        """See `Disk.map`."""
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def read(self, path: str, offset: int, count: int) -> bytes:
        """See `Disk.read`."""
        with open(path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), count, offset)

    def truncate(self, path: str, size: int) -> None:
        """See `Disk.truncate`."""
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            platform.sync_file(fd)
        finally:
            os.close(fd)

    def replace(self, source: str, target: str) -> None:
        """See `Disk.replace`."""
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        """See `Disk.link`."""
        os.link(
            source, target, follow_symlinks=False
        )  # link the symbolic link itself, not its target, which may be elsewhere

    def remove(self, path: str) -> None:
        """See `Disk.remove`."""
        try:
            os.remove(path)
        except FileNotFoundError:
            return

    def remove_tree(self, path: str) -> None:
        """See `Disk.remove_tree`."""
        if os.path.isdir(path):
            shutil.rmtree(path)

    def make_folder(self, path: str, *, durably: bool = True) -> None:
        """See `Disk.make_folder`."""
        if not durably:
            os.makedirs(path, mode=0o700, exist_ok=True)
            return
        path = os.path.abspath(path)
        is_there = os.path.isdir(path)
        parent = os.path.dirname(path)
        if parent == path or (is_there and path in _durable_folders):
            return
        self.make_folder(parent)
        os.makedirs(path, mode=0o700, exist_ok=True)
        try:
            self.sync_folder(parent)
        except OSError as error:
            # This process may lack permission to sync an existing parent folder, or the file system may not support it.
            if not is_there or error.errno not in _CANNOT_SYNC:
                raise
        if len(_durable_folders) >= _DURABLE_FOLDERS_MAX:
            _durable_folders.clear()
        _durable_folders.add(path)

    def sync_folder(self, path: str) -> None:
        """See `Disk.sync_folder`."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            platform.sync_file(fd)
        finally:
            os.close(fd)

    def sync_all(self, paths: Collection[str]) -> None:
        """See `Disk.sync_all`.

        Many files are synced by one call for their file system, if the operating system reports errors of such calls.
        """
        by_device: dict[int, list[str]] = {}
        for path in paths:
            by_device.setdefault(os.stat(path).st_dev, []).append(path)
        for there in by_device.values():
            if len(there) >= _MANY and platform.sync_file_system is not None:
                platform.sync_file_system(there[0])
            else:
                for path in there:
                    self.sync_folder(path)

    def list(self, path: str) -> list[str]:
        """See `Disk.list`."""
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        """See `Disk.exists`."""
        return os.path.exists(path)

    def size(self, path: str) -> int:
        """See `Disk.size`."""
        return os.stat(path).st_size

    def free_bytes(self, path: str) -> int:
        """See `Disk.free_bytes`."""
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize
