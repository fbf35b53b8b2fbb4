"""A disk in memory that remembers what was fsynced, and what it may look like after a crash at any operation.

After each operation a `Picture` of the disk is kept. Its `crashes` are the disks that a restart may find:

    process   only the process died: all is there as it was, and what was not fsynced still is not
    all       the power failed, and everything had reached the disk
    none      nothing had that was not fsynced
    torn      the first bytes of what was not fsynced had, and what was reserved
    zeros     files have their new sizes, but zeros where the data was not fsynced

Each of the last four with every first part of the names that were made or removed since the folder was fsynced, and
with all but one of them.
One thread; paths are only looked at as wholes.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

#: A tail of zeros is as good as a longer one; this is more than a segment of the tests is filled to.
_ZEROS_MAX = 600
_TEARS = (0.0, 0.15, 0.35, 0.55, 0.8, 1.0)


@dataclass(slots=True)
class Inode:
    """A file's bytes as a reader sees them, those that are fsynced, and what was written since: (offset, bytes)."""

    seen: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    dirty: list[tuple[int, bytes]] = field(default_factory=list)

    def copy(self) -> Inode:
        return Inode(bytearray(self.seen), self.synced, list(self.dirty))

    def write(self, offset: int, data: bytes) -> None:
        self.seen = _overlaid(self.seen, [(offset, data)])
        self.dirty.append((offset, data))

    def sync(self) -> None:
        self.synced = bytes(_overlaid(self.synced, self.dirty))
        self.dirty.clear()

    def after_power_cut(self, how: str, tear: float) -> bytes:
        if how == "zeros":
            return self.synced + bytes(len(self.seen) - len(self.synced))
        if how == "none":
            return self.synced
        size = sum(len(data) for _, data in self.dirty if any(data))
        left = size if how == "all" else min(1 + int(tear * (size - 2)), size)
        kept = []
        for offset, data in self.dirty:
            count = max(left, 0) if any(data) else len(data)
            kept.append((offset, data[:count]))
            left -= len(data) if any(data) else 0
        return bytes(_overlaid(self.synced, kept))


def _overlaid(base: bytes | bytearray, writes: Sequence[tuple[int, bytes]]) -> bytearray:
    found = bytearray(base)
    for offset, data in writes:
        found.extend(bytes(max(offset - len(found), 0)))
        found[offset : offset + len(data)] = data
    return found


@dataclass(slots=True)
class Picture:
    """The disk after an operation, and what the test knew then."""

    operation: str
    names: dict[str, Inode]
    durable: dict[str, Inode]
    moves: list[tuple[str, Inode | None]]
    note: object

    def crashes(self) -> Iterator[tuple[str, CrashDisk]]:
        """What a restart may find, and how it came to be so; the same only once."""
        yield "process", CrashDisk(self)
        seen = set()
        for lost in self._lost_moves():
            names = dict(self.durable)
            for number, (name, inode) in enumerate(self.moves):
                if number not in lost:
                    _move(names, name, inode)
            for how, tear in (("all", 0), ("none", 0), *(("torn", tear) for tear in _TEARS), ("zeros", 0)):
                files = {name: inode.after_power_cut(how, tear) for name, inode in names.items()}
                key = tuple(sorted(files.items()))
                if key not in seen:
                    seen.add(key)
                    yield f"{how} {tear}, {len(lost)} names lost", CrashDisk.of(files)

    def _lost_moves(self) -> list[range]:
        count = len(self.moves)
        return [*(range(kept, count) for kept in range(count + 1)), *(range(n, n + 1) for n in range(count - 1))]


def _move(names: dict[str, Inode], name: str, inode: Inode | None) -> None:
    if inode is None:
        names.pop(name, None)
    else:
        names[name] = inode


class CrashFile:
    def __init__(self, disk: CrashDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self.size = len(inode.seen)

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        data = b"".join(parts)
        failure = self._disk.failure_of("write")
        if failure:
            data = data[: len(data) // 2]
        self._inode.write(self.size, data)
        self.size += len(data)
        self._disk.done(f"write {len(data)} to {self._path}", failure)

    def reserve(self, count: int) -> None:
        failure = self._disk.failure_of("reserve")
        end = self.size + min(count, _ZEROS_MAX)
        if not failure and end > len(self._inode.seen):
            self._inode.write(len(self._inode.seen), bytes(end - len(self._inode.seen)))
        self._disk.done(f"reserve in {self._path}", failure)

    def sync(self) -> None:
        failure = self._disk.failure_of("sync")
        if failure:
            self._inode.dirty.clear()  # what a failed fsync leaves may count as clean
        self._inode.sync()
        self._disk.syncs += 1
        self._disk.done(f"sync {self._path}", failure)

    def close(self) -> None:
        return


class CrashDisk:
    """See the module: of `saros_storage.disk.Disk`, what a log needs."""

    def __init__(self, picture: Picture | None = None) -> None:
        copies: dict[int, Inode] = {}

        def copied(inode: Inode) -> Inode:
            return copies.setdefault(id(inode), inode.copy())

        self._names = {} if picture is None else {n: copied(i) for n, i in picture.names.items()}
        self._durable = {} if picture is None else {n: copied(i) for n, i in picture.durable.items()}
        self._moves = [] if picture is None else [(n, i and copied(i)) for n, i in picture.moves]
        #: Whether pictures are taken, and of what; what the test adds to each.
        self.pictures: list[Picture] = []
        self.keeps_pictures = False
        self.note: Callable[[], object] = lambda: None
        self.syncs = 0
        self.operations = 0
        #: The number of the operation that fails, and how; and whether every write does, since the disk is full.
        self.fails_at: tuple[int, int] | None = None
        self.is_full = False

    @staticmethod
    def of(files: dict[str, bytes]) -> CrashDisk:
        disk = CrashDisk()
        disk._names = {name: Inode(bytearray(data), data) for name, data in files.items()}
        disk._durable = dict(disk._names)
        return disk

    def after_power_cut(self) -> CrashDisk:
        """What was fsynced, and nothing else."""
        return CrashDisk.of({name: inode.synced for name, inode in self._durable.items()})

    def picture(self) -> Picture:
        """The disk as it is."""
        copy = CrashDisk(Picture("", self._names, self._durable, self._moves, None))
        return Picture("now", copy._names, copy._durable, copy._moves, self.note())

    @property
    def fingerprint(self) -> object:
        """Equal for equal disks."""
        return tuple(
            sorted((n, bytes(i.seen), i.synced, tuple(i.dirty), n in self._durable) for n, i in self._names.items())
        ), tuple((n, i is None) for n, i in self._moves)

    def failure_of(self, kind: str) -> int:
        """The errno that the next operation fails with, or 0."""
        if self.fails_at is not None and self.operations == self.fails_at[0]:
            return self.fails_at[1]
        return errno.ENOSPC if self.is_full and kind in ("write", "reserve", "create") else 0

    def done(self, operation: str, failure: int) -> None:
        """An operation was carried out, or failed half way."""
        self.operations += 1
        if self.keeps_pictures:
            picture = self.picture()
            picture.operation = operation
            self.pictures.append(picture)
        if failure:
            raise OSError(failure, f"injected into {operation}")

    # ------------------------------------------------------------------ Disk

    def create(self, path: str) -> CrashFile:
        failure = self.failure_of("create")
        inode = Inode()
        if not failure:
            self._names[path] = inode
            self._moves.append((path, inode))
        self.done(f"create {path}", failure)
        return CrashFile(self, path, inode)

    def append(self, path: str) -> CrashFile:
        self.done(f"open {path}", self.failure_of("append"))
        return CrashFile(self, path, self._names[path])

    def map(self, path: str) -> memoryview:
        return memoryview(bytes(self._names[path].seen))

    def truncate(self, path: str, size: int) -> None:
        failure = self.failure_of("truncate")
        if not failure:
            inode = self._names[path]
            inode.sync()
            inode.seen = inode.seen[:size]
            inode.synced = bytes(inode.seen)
        self.done(f"truncate {path} to {size}", failure)

    def remove(self, path: str) -> None:
        failure = self.failure_of("remove")
        if not failure:
            self._names.pop(path, None)
            self._moves.append((path, None))
        self.done(f"remove {path}", failure)

    def make_folder(self, path: str) -> None:
        return

    def sync_folder(self, path: str) -> None:
        failure = self.failure_of("sync_folder")
        if not failure:
            for name, inode in self._moves:
                _move(self._durable, name, inode)
            self._moves.clear()
        self.done("sync the folder", failure)

    def list(self, path: str) -> list[str]:
        return sorted(name.removeprefix(f"{path}/") for name in self._names)

    def size(self, path: str) -> int:
        return len(self._names[path].seen)
