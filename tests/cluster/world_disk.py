"""The disk of a simulated node: a power cut may lose some or all unsynced writes, and operations take time.

A crash of the process loses no writes. After a power cut, each file has its synced content, followed by all, none or
the first part of its unsynced writes, or by zeros. In the journal of moves (`disk_model`), a prefix of the moves is
durable, or all moves except one.

A sync takes effect at the end of its duration, and every other operation at the beginning of its duration. Since
operations take time, a crash can occur in the middle of a task.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Collection, Sequence

from cluster.world_threads import Threads
from disk_model import DiskModel, Folder, Inode

#: The maximum number of zeros at the end of a file. More zeros would have the same effect.
_ZEROS_MAX = 64


class WorldDisk(DiskModel):
    """The disk of one node, which implements `saros_storage.io.disk.Disk` for the node's tasks."""

    def __init__(self, threads: Threads) -> None:
        super().__init__()
        self._threads = threads
        self._random = threads.random
        #: The longest and the shortest duration of a sync.
        self.sync_ns = self._random.choice((100_000, 1_000_000, 10_000_000))
        self.sync_min_ns = 0
        self.is_full = False
        self._operations = 0
        #: The operation at which the node crashes, and the function that crashes it.
        self._fatal: tuple[int, Callable[[], None]] | None = None

    def crash(self, *, power: bool) -> WorldDisk:
        """Return the disk after a crash; this object must not be used any more."""
        disk = WorldDisk(self._threads)
        disk.sync_ns, disk.sync_min_ns = self.sync_ns, self.sync_min_ns
        return self._put_survivors(disk) if power else disk.become_copy(self)

    def die_after(self, operations: int, die: Callable[[], None]) -> None:
        """Call `die`, which kills the node, in a task after the given number of further operations."""
        self._fatal = (self._operations + operations, die)

    def live_on(self) -> None:
        """Cancel `die_after`."""
        self._fatal = None

    def _put_survivors(self, disk: WorldDisk) -> WorldDisk:
        """Copy to another disk the content that this disk has after a power cut."""
        journal = self.journal
        kept = journal[: self._random.randrange(len(journal) + 1)]
        if len(journal) > 1 and self._random.random() < 0.1:
            lost = self._random.randrange(len(journal))
            kept = journal[:lost] + journal[lost + 1 :]
        nodes = self.durable(kept)
        files = {path: _survivor(node, self._random) for path, node in nodes.items() if isinstance(node, Inode)}
        return disk.put(files, [path for path in nodes if path not in files])

    def _spend(self, most_ns: int, least_ns: int = 0) -> None:
        """Let the time of an operation pass. The node may crash during this time."""
        if self._threads.current is self._threads.main:
            return
        self._operations += 1
        if self._fatal is not None and self._operations >= self._fatal[0]:
            self._fatal[1]()
            self._threads.park()
        if most_ns:
            self._threads.park(self._threads.now_ns + self._random.randrange(least_ns, most_ns))

    def _spend_sync(self) -> None:
        self._spend(self.sync_ns, self.sync_min_ns)

    def _spend_a_little(self) -> None:
        self._spend(300_000 if self._random.random() < 0.05 else 0)

    def _need_room(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "the disk is full")

    # ------------------------------------------------------------------ Disk

    def create(self, path: str) -> WorldFile:
        self._need_room()
        inode = Inode()
        self.move((path, inode))
        self._spend_a_little()
        return WorldFile(self, inode)

    def create_unread(self, path: str) -> WorldFile:
        return self.create(path)

    def append(self, path: str) -> WorldFile:
        found = self.find(path)
        if found is None:
            return self.create(path)
        assert isinstance(found, Inode)
        return WorldFile(self, found)

    def truncate(self, path: str, size: int) -> None:
        inode = self.inode(path)
        self._spend_sync()
        inode.truncate(size)

    def replace(self, source: str, target: str) -> None:
        self.rename(source, target)
        self._spend_a_little()

    def link(self, source: str, target: str) -> None:
        self.move((target, self.inode(source)))
        self._spend_a_little()

    def remove(self, path: str) -> None:
        if self.find(path) is not None:
            self.move((path, None))
            self._spend_a_little()

    def remove_tree(self, path: str) -> None:
        found = self.find(path)
        if isinstance(found, Folder):
            for name in list(found.names):
                if isinstance(found.names[name], Folder):
                    self.remove_tree(f"{path}/{name}")
                else:
                    self.remove(f"{path}/{name}")
            self.move((path, None))

    def make_folder(self, path: str, *, durably: bool = True) -> None:
        parent, _, name = path.rstrip("/").rpartition("/")
        found = self.find(path)
        if isinstance(found, Folder) and (not durably or self.folder(parent).durable.get(name) is found):
            return
        if parent:
            self.make_folder(parent, durably=durably)
        if not isinstance(self.find(path), Folder):
            self._need_room()
            self.move((path, Folder()))
        if durably:
            self.sync_folder(parent)  # even if the folder existed: its creator may have crashed before the sync

    def sync_all(self, paths: Collection[str]) -> None:
        for path in paths:
            if isinstance(self.find(path), Folder):
                self.sync_folder(path)
            else:
                WorldFile(self, self.inode(path)).sync()

    def sync_folder(self, path: str) -> None:
        folder = self.folder(path)
        moves = self.moves_of(folder)
        self._spend_sync()
        self.make_durable(moves)

    def free_bytes(self, path: str) -> int:
        return 0 if self.is_full else 1 << 40


class WorldFile:
    """A file of a world's disk; implements `saros_storage.io.disk.File`."""

    def __init__(self, disk: WorldDisk, inode: Inode) -> None:
        self._disk = disk
        self._inode = inode
        self.size = len(inode.seen)

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        data = b"".join(parts)
        disk = self._disk
        if disk.is_full:
            data = data[: len(data) // 2]
        if data:
            self._inode.write(self.size, data)
            self.size += len(data)
        disk._need_room()
        disk._spend_a_little()

    def reserve(self, count: int) -> None:
        self._disk._need_room()
        self._inode.reserve(self.size + min(count, _ZEROS_MAX))

    def sync(self) -> None:
        count = len(self._inode.dirty)
        self._disk._spend_sync()
        self._inode.sync(count)

    def close(self) -> None:
        return


def _survivor(inode: Inode, chance: random.Random) -> bytes:
    """Return the content of a file after a power cut."""
    how = chance.choice(("all", "none", "torn", "torn", "zeros")) if inode.dirty else "none"
    if how == "none":
        return inode.synced
    if how == "zeros":
        return inode.zeroed()
    size = inode.dirty_bytes(reserved=True)
    return inode.torn(size if how == "all" else chance.randrange(size + 1), keeps_reserved=False)
