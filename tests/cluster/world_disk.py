"""The disk of a simulated node: what was not fsynced may be gone after a crash, in part or all of it; it takes time.

    folder -> names -> folders and files                what a process sees
    journal: (folder, name, what) ...                   names given and taken that are not durable yet, in order
    file: data, synced, dirty [(offset, bytes) ...]     what is written and not durable yet, in order

After a crash of the process all is there that was. After a power cut each file has what was synced and, of what was
not, all, nothing, the first part, or zeros of the same size; and the journal's first part came true, or all but one.

Operations are carried out at once and then take their time; syncs take it first. So a crash finds tasks in between.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from cluster.world_threads import Threads

#: A tail of zeros is as good as a longer one.
_ZEROS_MAX = 64


@dataclass(slots=True, eq=False)
class Inode:
    """A file's bytes as they are seen, those that are durable, and what was written since: (offset, bytes)."""

    data: bytearray = field(default_factory=bytearray)
    synced: bytearray = field(default_factory=bytearray)
    dirty: list[tuple[int, bytes]] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        _overlay(self.data, offset, data)
        self.dirty.append((offset, data))

    def sync(self, count: int) -> None:
        """The first writes are durable."""
        for offset, data in self.dirty[:count]:
            _overlay(self.synced, offset, data)
        del self.dirty[:count]

    def truncate(self, size: int) -> None:
        self.sync(len(self.dirty))
        del self.data[size:]
        del self.synced[size:]

    def after_power_cut(self, chance: random.Random) -> bytes:
        how = chance.choice(("all", "none", "torn", "torn", "zeros")) if self.dirty else "none"
        found = bytearray(self.synced)
        if how == "zeros":
            found.extend(bytes(max(len(self.data) - len(found), 0)))
        elif how != "none":
            total = sum(len(data) for _, data in self.dirty)
            left = total if how == "all" else chance.randrange(total + 1)
            for offset, data in self.dirty:
                _overlay(found, offset, data[:left])
                left -= min(len(data), left)
                if not left:
                    break
        return bytes(found)


def _overlay(data: bytearray, offset: int, new: bytes) -> None:
    if offset > len(data):
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(new)] = new


@dataclass(slots=True, eq=False)
class Folder:
    """Names as they are seen, and those that are durable."""

    names: dict[str, Inode | Folder] = field(default_factory=dict)
    durable: dict[str, Inode | Folder] = field(default_factory=dict)


#: Names that change together: (folder, name, what it names, or None).
Move = tuple[tuple[Folder, str, "Inode | Folder | None"], ...]


class WorldDisk:
    """See the module: implements `saros_storage.io.disk.Disk` for the tasks of one node."""

    def __init__(self, threads: Threads, root: Folder | None = None) -> None:
        self._threads = threads
        self._random = threads.random
        self._root = root or Folder()
        self._journal: list[Move] = []
        #: A sync takes up to so long.
        self.sync_ns = self._random.choice((100_000, 1_000_000, 10_000_000))
        self.is_full = False
        self._operations = 0
        #: At which operation its node dies, and what brings that about.
        self._fatal: tuple[int, Callable[[], None]] | None = None

    def crash(self, *, power: bool) -> WorldDisk:
        """The disk that is found afterwards; this one is nobody's."""
        if power:
            disk = WorldDisk(self._threads, self._after_power_cut())
        else:
            copies = _Copies()
            disk = WorldDisk(self._threads, copies.folder(self._root))
            disk._journal = [copies.move(move) for move in self._journal]
        disk.sync_ns = self.sync_ns
        return disk

    def die_after(self, operations: int, die: Callable[[], None]) -> None:
        """In the middle of what so many operations from now on are for, `die` is called, and a task kills the node."""
        self._fatal = (self._operations + operations, die)

    def live_on(self) -> None:
        """It dies of no operation."""
        self._fatal = None

    def _after_power_cut(self) -> Folder:
        journal = self._journal
        kept = journal[: self._random.randrange(len(journal) + 1)]
        if len(journal) > 1 and self._random.random() < 0.1:
            lost = self._random.randrange(len(journal))
            kept = journal[:lost] + journal[lost + 1 :]
        for move in kept:
            _apply(move)
        return _survivor(self._root, self._random)

    def _spend(self, most_ns: int) -> None:
        """Time that an operation takes; a crash may come meanwhile."""
        if self._threads.current is self._threads.main:
            return
        self._operations += 1
        if self._fatal is not None and self._operations >= self._fatal[0]:
            self._fatal[1]()
            self._threads.park()
        if most_ns:
            self._threads.park(self._threads.now_ns + self._random.randrange(most_ns))

    def _spend_a_little(self) -> None:
        self._spend(300_000 if self._random.random() < 0.05 else 0)

    def _need_room(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "the disk is full")

    # ------------------------------------------------------------------ paths

    def _find(self, path: str) -> Inode | Folder | None:
        found: Inode | Folder | None = self._root
        for name in path.strip("/").split("/"):
            if not isinstance(found, Folder):
                return None
            found = found.names.get(name)
        return found

    def _folder(self, path: str) -> Folder:
        found = self._find(path) if path.strip("/") else self._root
        if not isinstance(found, Folder):
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        return found

    def _file(self, path: str) -> Inode:
        found = self._find(path)
        if not isinstance(found, Inode):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return found

    def _move(self, *changes: tuple[str, Inode | Folder | None]) -> None:
        """Give or take names, at once for whoever looks, durably later."""
        move = []
        for path, what in changes:
            parent, _, name = path.rstrip("/").rpartition("/")
            folder = self._folder(parent)
            if what is None:
                folder.names.pop(name, None)
            else:
                folder.names[name] = what
            move.append((folder, name, what))
        self._journal.append(tuple(move))

    # ------------------------------------------------------------------ Disk

    def create(self, path: str) -> WorldFile:
        self._need_room()
        inode = Inode()
        self._move((path, inode))
        self._spend_a_little()
        return WorldFile(self, inode)

    def create_unread(self, path: str) -> WorldFile:
        return self.create(path)

    def append(self, path: str) -> WorldFile:
        found = self._find(path)
        if found is None:
            return self.create(path)
        assert isinstance(found, Inode)
        return WorldFile(self, found)

    def map(self, path: str) -> memoryview:
        return memoryview(bytes(self._file(path).data))

    def read(self, path: str, offset: int, count: int) -> bytes:
        return bytes(self.map(path)[offset : offset + count])

    def truncate(self, path: str, size: int) -> None:
        inode = self._file(path)
        self._spend(self.sync_ns)
        inode.truncate(size)

    def replace(self, source: str, target: str) -> None:
        what = self._find(source)
        if what is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        self._move((source, None), (target, what))
        self._spend_a_little()

    def link(self, source: str, target: str) -> None:
        self._move((target, self._file(source)))
        self._spend_a_little()

    def remove(self, path: str) -> None:
        if self._find(path) is not None:
            self._move((path, None))
            self._spend_a_little()

    def remove_tree(self, path: str) -> None:
        found = self._find(path)
        if isinstance(found, Folder):
            for name in list(found.names):
                if isinstance(found.names[name], Folder):
                    self.remove_tree(f"{path}/{name}")
                else:
                    self.remove(f"{path}/{name}")
            self._move((path, None))

    def make_folder(self, path: str, *, durably: bool = True) -> None:
        parent, _, name = path.rstrip("/").rpartition("/")
        found = self._find(path)
        if isinstance(found, Folder) and (not durably or self._folder(parent).durable.get(name) is found):
            return
        if parent:
            self.make_folder(parent, durably=durably)
        if not isinstance(self._find(path), Folder):
            self._need_room()
            self._move((path, Folder()))
        if durably:
            self.sync_folder(parent)  # also of one that is there: who made it may have died before

    def sync_all(self, paths: Collection[str]) -> None:
        for path in paths:
            if isinstance(self._find(path), Folder):
                self.sync_folder(path)
            else:
                WorldFile(self, self._file(path)).sync()

    def sync_folder(self, path: str) -> None:
        folder = self._folder(path)
        count = len(self._journal)
        moves = [move for move in self._journal[:count] if any(where is folder for where, _, _ in move)]
        self._spend(self.sync_ns)
        for move in moves:
            _apply(move)
        gone = set(map(id, moves))
        self._journal = [move for move in self._journal if id(move) not in gone]

    def list(self, path: str) -> list[str]:
        found = self._find(path)
        return sorted(found.names) if isinstance(found, Folder) else []

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def size(self, path: str) -> int:
        return len(self._file(path).data)

    def free_bytes(self, path: str) -> int:
        return 0 if self.is_full else 1 << 40


class WorldFile:
    """See `saros_storage.io.disk.File`."""

    def __init__(self, disk: WorldDisk, inode: Inode) -> None:
        self._disk = disk
        self._inode = inode
        self.size = len(inode.data)

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
        end = self.size + min(count, _ZEROS_MAX)
        if end > len(self._inode.data):
            self._inode.write(len(self._inode.data), bytes(end - len(self._inode.data)))

    def sync(self) -> None:
        count = len(self._inode.dirty)
        self._disk._spend(self._disk.sync_ns)
        self._inode.sync(count)

    def close(self) -> None:
        return


def _apply(move: Move) -> None:
    for folder, name, what in move:
        if what is None:
            folder.durable.pop(name, None)
        else:
            folder.durable[name] = what


def _survivor(folder: Folder, chance: random.Random) -> Folder:
    """What is durable, as a disk of its own."""
    found = Folder()
    for name, what in folder.durable.items():
        if isinstance(what, Folder):
            copy: Inode | Folder = _survivor(what, chance)
        else:
            data = what.after_power_cut(chance)
            copy = Inode(bytearray(data), bytearray(data))
        found.names[name] = found.durable[name] = copy
    return found


class _Copies:
    """Folders and files as they are, each copied once."""

    def __init__(self) -> None:
        self._known: dict[Inode | Folder, Inode | Folder] = {}

    def folder(self, folder: Folder) -> Folder:
        found = self._known.get(folder)
        if found is None:
            found = self._known[folder] = Folder()
            found.names = {name: self._copy(what) for name, what in folder.names.items()}
            found.durable = {name: self._copy(what) for name, what in folder.durable.items()}
        assert isinstance(found, Folder)
        return found

    def _copy(self, what: Inode | Folder) -> Inode | Folder:
        if isinstance(what, Folder):
            return self.folder(what)
        if what not in self._known:
            self._known[what] = Inode(bytearray(what.data), bytearray(what.synced), list(what.dirty))
        return self._known[what]

    def move(self, move: Move) -> Move:
        return tuple((self.folder(where), name, what and self._copy(what)) for where, name, what in move)


def contents(disk: WorldDisk, visit: Callable[[str, bytes], None], path: str = "") -> None:
    """Each file and its bytes, in order of paths."""
    for name in disk.list(path):
        inner = f"{path}/{name}"
        if isinstance(disk._find(inner), Inode):
            visit(inner, bytes(disk._find(inner).data))  # type: ignore[union-attr]
        else:
            contents(disk, visit, inner)
