"""A disk in memory that tracks fsynced data, and enumerates its possible states after a crash at any operation.

The disk is a `DiskModel`. After each operation it keeps a `Picture` of its state, whose `crashes` are the disks that a
restart may find:

    process   only the process crashed: nothing is lost, and unsynced data remains unsynced
    all       the power failed after everything had reached the disk
    none      no unsynced data had reached the disk
    torn      the first unsynced bytes, and reserved space, had reached the disk
    zeros     files have their new sizes, with zeros in place of unsynced data
    blocks    some of the unsynced blocks had reached the disk: every set of blocks if there are few; otherwise each
              block alone, all blocks except one, and some random sets

Renames and removals that no fsync of their folder has made durable may be lost, too: each state except the first is
tried with every prefix of these changes, and with all of them except one.

Operation number `fails_at` fails like an operation on a bad or full disk: a write stores half of its bytes, and the
data of a failed sync never becomes durable.

If several threads use the disk, their operations are executed one after the other.
"""

from __future__ import annotations

import errno
import random
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, combinations

from disk_model import DiskModel, Folder, Inode, Node

#: The longest tail of zeros. A longer tail would have the same effect, since the segments of the tests are shorter.
_ZEROS_MAX = 600
_TEARS = (0.0, 0.15, 0.35, 0.55, 0.8, 1.0)
#: The size of a block. Blocks are smaller than on any real disk, so even the small files of tests have many.
BLOCK_BYTES = 64
#: All sets of unsynced blocks are tried if there are at most `_BLOCKS_MAX` blocks, otherwise `_SETS` random sets.
_BLOCKS_MAX = 4
_SETS = 8


@dataclass(slots=True)
class Picture:
    """The disk after an operation, with the note (any value that the test wants back) of that moment."""

    operation: str
    disk: DiskModel
    note: object

    def crashes(
        self, block_bytes: int = BLOCK_BYTES, tears: Sequence[float] = _TEARS
    ) -> Iterator[tuple[str, CrashDisk]]:
        """Yield each distinct disk that a restart may find, with the kind of the crash."""
        yield "process", CrashDisk(self)
        seen = set()
        for lost in self._lost_moves():
            nodes = self._after_moves(lost)
            inodes = {path: node for path, node in nodes.items() if isinstance(node, Inode)}
            folders = frozenset(nodes.keys() - inodes.keys())
            for how, files in chain(_with_tails(inodes, tears), _with_blocks(inodes, block_bytes)):
                key = (tuple(sorted(files.items())), folders)
                if key not in seen:
                    seen.add(key)
                    yield f"{how}, {len(lost)} names lost", CrashDisk.of(files, folders)

    def _lost_moves(self) -> list[range]:
        count = len(self.disk.journal)
        return [*(range(kept, count) for kept in range(count + 1)), *(range(n, n + 1) for n in range(count - 1))]

    def _after_moves(self, lost: range) -> dict[str, Node]:
        return self.disk.durable(move for number, move in enumerate(self.disk.journal) if number not in lost)


def _with_tails(inodes: dict[str, Inode], tears: Sequence[float]) -> Iterator[tuple[str, dict[str, bytes]]]:
    for how, tear in (("all", 0.0), ("none", 0.0), *(("torn", tear) for tear in tears), ("zeros", 0.0)):
        yield f"{how} {tear}", {path: _after_power_cut(inode, how, tear) for path, inode in inodes.items()}


def _after_power_cut(inode: Inode, how: str, tear: float) -> bytes:
    if how == "zeros":
        return inode.zeroed()
    if how == "none":
        return inode.synced
    size = inode.dirty_bytes(reserved=False)
    left = size if how == "all" else min(1 + int(tear * (size - 2)), size)
    return inode.torn(left, keeps_reserved=True)


def _with_blocks(inodes: dict[str, Inode], block_bytes: int) -> Iterator[tuple[str, dict[str, bytes]]]:
    blocks = [(path, block) for path, inode in inodes.items() for block in inode.dirty_blocks(block_bytes)]
    if len(blocks) < 2:
        return
    without = {path: inode.with_blocks([]) for path, inode in inodes.items()}
    for kept in _sets(len(blocks)):
        written: dict[str, list[tuple[int, bytes]]] = {}
        for number in kept:
            path, block = blocks[number]
            written.setdefault(path, []).append(block)
        yield f"blocks {kept}", without | {path: inodes[path].with_blocks(of_file) for path, of_file in written.items()}


def _sets(count: int) -> list[tuple[int, ...]]:
    """Return the possible sets of the blocks that reached the disk."""
    every = range(count)
    if count <= _BLOCKS_MAX:
        return [kept for size in every for kept in combinations(every, size + 1)]
    chance = random.Random(count)
    by_chance = [tuple(n for n in every if chance.random() < 0.5) for _ in range(_SETS)]
    return [*((n,) for n in every), *(tuple(m for m in every if m != n) for n in every), *by_chance]


class CrashFile:
    """A file of a crash disk: implements `saros_storage.io.disk.File`."""

    def __init__(self, disk: CrashDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self.size = len(inode.seen)

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        data = b"".join(parts)
        with self._disk.operation("write", f"write {len(data)} to {self._path}") as failure:
            if failure:
                data = data[: len(data) // 2]
            if data:
                self._inode.write(self.size, data)
            self.size += len(data)

    def reserve(self, count: int) -> None:
        with self._disk.operation("reserve", f"reserve in {self._path}") as failure:
            if not failure:
                self._inode.reserve(self.size + min(count, _ZEROS_MAX))

    def sync(self) -> None:
        with self._disk.operation("sync", f"sync {self._path}") as failure:
            if failure:
                self._inode.dirty = ()  # the kernel may mark pages as clean although the fsync failed
            self._inode.sync()
            self._disk.syncs += 1

    def close(self) -> None:
        return


class CrashDisk(DiskModel):
    """A disk that keeps pictures of its states, and whose operations can fail.

    Implements `saros_storage.io.disk.Disk`.
    """

    def __init__(self, picture: Picture | None = None) -> None:
        super().__init__()
        if picture is not None:
            self.become_copy(picture.disk)
        self._lock = threading.Lock()
        #: One picture for each operation, taken afterwards, with the test's note.
        self.pictures: list[Picture] = []
        self.keeps_pictures = False
        self.note: Callable[[], object] = lambda: None
        self.syncs = 0
        self.operations = 0
        #: The number of the first operation that fails, and the errno of the failure. The field `fails_for` is the
        #: number of operations that fail; with `is_full`, all writes fail because the disk is full.
        self.fails_at: tuple[int, int] | None = None
        self.fails_for = 1
        self.is_full = False
        #: The failed operations.
        self.failed: list[str] = []

    @staticmethod
    def of(files: dict[str, bytes], folders: frozenset[str] = frozenset()) -> CrashDisk:
        return CrashDisk().put(files, folders)

    def place(self, path: str, data: bytes) -> None:
        """Add a durable file, as if another process had created it."""
        with self._lock:
            self.put({path: data})

    def after_power_cut(self) -> CrashDisk:
        """Return a disk that has only the fsynced data of this disk."""
        durable = self.durable()
        files = {path: node.synced for path, node in durable.items() if isinstance(node, Inode)}
        return CrashDisk.of(files, frozenset(durable.keys() - files.keys()))

    def picture(self) -> Picture:
        """Return a picture of the disk's current state."""
        return Picture("now", DiskModel().become_copy(self), self.note())

    # ------------------------------------------------------------------ operations

    @contextmanager
    def operation(self, kind: str, text: str) -> Iterator[int]:
        """Execute an operation within this context.

        The context yields 0, or the errno if the operation must fail half-way.
        """
        with self._lock:
            failure = self._failure_of(kind)
            yield failure
            self.operations += 1
            if self.keeps_pictures:
                picture = self.picture()
                picture.operation = text
                self.pictures.append(picture)
            if failure:
                self.failed.append(text)
                raise OSError(failure, f"injected into {text}")

    def _failure_of(self, kind: str) -> int:
        if self.fails_at is not None and 0 <= self.operations - self.fails_at[0] < self.fails_for:
            return self.fails_at[1]
        return errno.ENOSPC if self.is_full and kind in ("write", "reserve", "create", "make_folder") else 0

    # ------------------------------------------------------------------ Disk

    def create(self, path: str) -> CrashFile:
        inode = Inode()
        with self.operation("create", f"create {path}") as failure:
            if not failure:
                self.move((path, inode))
        return CrashFile(self, path, inode)

    def create_unread(self, path: str) -> CrashFile:
        return self.create(path)

    def append(self, path: str) -> CrashFile:
        if self.find(path) is None:
            return self.create(path)
        with self.operation("append", f"open {path}"):
            inode = self.inode(path)
        return CrashFile(self, path, inode)

    def truncate(self, path: str, size: int) -> None:
        with self.operation("truncate", f"truncate {path} to {size}") as failure:
            if not failure:
                self.inode(path).truncate(size)

    def replace(self, source: str, target: str) -> None:
        with self.operation("replace", f"rename {source} to {target}") as failure:
            if not failure:
                self.rename(source, target)

    def link(self, source: str, target: str) -> None:
        with self.operation("link", f"link {source} as {target}") as failure:
            if not failure:
                self.move((target, self.inode(source)))

    def remove(self, path: str) -> None:
        if self.find(path) is not None:
            with self.operation("remove", f"remove {path}") as failure:
                if not failure:
                    self.move((path, None))

    def remove_tree(self, path: str) -> None:
        found = self.find(path)
        if isinstance(found, Folder):
            for name in list(found.names):
                if isinstance(found.names[name], Folder):
                    self.remove_tree(f"{path}/{name}")
                else:
                    self.remove(f"{path}/{name}")
            self.remove(path)

    def make_folder(self, path: str, *, durably: bool = True) -> None:
        parent, _, name = path.rpartition("/")
        if parent:
            self.make_folder(parent, durably=durably)
        above = self.folder(parent)
        if name not in above.names:
            with self.operation("make_folder", f"make {path}") as failure:
                if not failure:
                    self.move((path, Folder()))
        if durably and above.durable.get(name) is not above.names[name]:
            self.sync_folder(parent)

    def sync_all(self, paths: Collection[str]) -> None:
        for path in paths:
            if isinstance(self.find(path), Folder):
                self.sync_folder(path)
            else:
                CrashFile(self, path, self.inode(path)).sync()

    def sync_folder(self, path: str) -> None:
        with self.operation("sync_folder", f"sync the folder {path}") as failure:
            folder = self.folder(path)
            if not failure:
                self.make_durable(self.moves_of(folder))

    def free_bytes(self, path: str) -> int:
        return 0 if self.is_full else 1 << 40
