"""A disk in memory that remembers what was fsynced, and what it may look like after a crash at any operation.

    folder -> names -> folders and files                what a process sees
    journal: moves of names that are not durable yet, in order        sync_folder makes those of a folder durable
    file: seen, synced, dirty (offset, bytes) ...       what was written and is not durable yet, in order

After each operation a `Picture` of the disk is kept. Its `crashes` are the disks that a restart may find:

    process   only the process died: all is there as it was, and what was not fsynced still is not
    all       the power failed, and everything had reached the disk
    none      nothing had that was not fsynced
    torn      the first bytes of what was not fsynced had, and what was reserved
    zeros     files have their new sizes, but zeros where the data was not fsynced
    blocks    some of the blocks that were not fsynced had reached the disk: all sets of few blocks; of many each one
              alone, all but each one, and some sets by chance

Each but the first with every first part of the names that were given or taken since their folder was fsynced, and with
all but one of them. Truncating is durable at once.

The `fails_at`th operation fails, as a disk or a full one does: a write lets half of the bytes through, and what a
failed sync should have made durable never will be.

Operations of several threads come one after the other.
"""

from __future__ import annotations

import errno
import random
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, combinations

#: A tail of zeros is as good as a longer one; this is more than a segment of the tests is filled to.
_ZEROS_MAX = 600
_TEARS = (0.0, 0.15, 0.35, 0.55, 0.8, 1.0)
#: Smaller than any disk's, so that the small files of tests have many.
BLOCK_BYTES = 64
#: All sets of so many blocks are tried, and so many sets of more blocks.
_BLOCKS_MAX = 4
_SETS = 8


@dataclass(slots=True, eq=False)
class Inode:
    """A file's bytes as a reader sees them, those that are fsynced, and what was written since: (offset, bytes)."""

    seen: bytes = b""
    synced: bytes = b""
    dirty: tuple[tuple[int, bytes], ...] = ()

    def write(self, offset: int, data: bytes) -> None:
        self.seen = _overlaid(self.seen, [(offset, data)])
        self.dirty = (*self.dirty, (offset, data))

    def sync(self) -> None:
        self.synced = _overlaid(self.synced, self.dirty)
        self.dirty = ()

    def truncate(self, size: int) -> None:
        self.sync()
        self.seen = self.seen[:size]
        self.synced = self.seen

    def after_power_cut(self, how: str, tear: float) -> bytes:
        if how == "zeros":
            return self.synced + bytes(max(len(self.seen) - len(self.synced), 0))
        if how == "none":
            return self.synced
        size = sum(len(data) for _, data in self.dirty if any(data))
        left = size if how == "all" else min(1 + int(tear * (size - 2)), size)
        kept = []
        for offset, data in self.dirty:
            count = max(left, 0) if any(data) else len(data)
            kept.append((offset, data[:count]))
            left -= len(data) if any(data) else 0
        return _overlaid(self.synced, kept)

    def dirty_blocks(self, size: int) -> list[tuple[int, bytes]]:
        """What each block would have that is not fsynced: (offset, bytes)."""
        numbers = {
            n for at, data in self.dirty if any(data) for n in range(at // size, (at + len(data) - 1) // size + 1)
        }
        return [(n * size, self.seen[n * size : (n + 1) * size]) for n in sorted(numbers)]

    def with_blocks(self, blocks: Sequence[tuple[int, bytes]]) -> bytes:
        reserved = [(offset, data) for offset, data in self.dirty if not any(data)]
        return _overlaid(_overlaid(self.synced, reserved), blocks)


def _overlaid(base: bytes, writes: Sequence[tuple[int, bytes]]) -> bytes:
    if not writes:
        return base
    found = bytearray(base)
    for offset, data in writes:
        found.extend(bytes(max(offset - len(found), 0)))
        found[offset : offset + len(data)] = data
    return bytes(found)


@dataclass(slots=True, eq=False)
class Folder:
    """Names as they are seen, and those that are durable."""

    names: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)


Node = Inode | Folder
#: Names that change together: (folder, name, what it names, or None).
Move = tuple[tuple[Folder, str, Node | None], ...]


class _Copies:
    """Folders and files as they are, each copied once."""

    def __init__(self) -> None:
        self._known: dict[Node, Node] = {}

    def folder(self, folder: Folder) -> Folder:
        found = self._known.get(folder)
        if found is None:
            found = self._known[folder] = Folder()
            found.names = {name: self._node(node) for name, node in folder.names.items()}
            found.durable = {name: self._node(node) for name, node in folder.durable.items()}
        assert isinstance(found, Folder)
        return found

    def _node(self, node: Node) -> Node:
        if isinstance(node, Folder):
            return self.folder(node)
        if node not in self._known:
            self._known[node] = Inode(node.seen, node.synced, node.dirty)
        return self._known[node]

    def move(self, move: Move) -> Move:
        return tuple((self.folder(where), name, node and self._node(node)) for where, name, node in move)


def _walk(folder: Folder, names: Callable[[Folder], dict[str, Node]], path: str = "") -> Iterator[tuple[str, Node]]:
    for name, node in names(folder).items():
        inner = f"{path}/{name}" if path else name
        yield inner, node
        if isinstance(node, Folder):
            yield from _walk(node, names, inner)


@dataclass(slots=True)
class Picture:
    """The disk after an operation, and what the test knew then."""

    operation: str
    root: Folder
    journal: list[Move]
    note: object

    def crashes(
        self, block_bytes: int = BLOCK_BYTES, tears: Sequence[float] = _TEARS
    ) -> Iterator[tuple[str, CrashDisk]]:
        """What a restart may find, and how it came to be so; the same only once."""
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
        count = len(self.journal)
        return [*(range(kept, count) for kept in range(count + 1)), *(range(n, n + 1) for n in range(count - 1))]

    def _after_moves(self, lost: range) -> dict[str, Node]:
        tables: dict[Folder, dict[str, Node]] = {}

        def table(folder: Folder) -> dict[str, Node]:
            if folder not in tables:
                tables[folder] = dict(folder.durable)
            return tables[folder]

        for number, move in enumerate(self.journal):
            if number not in lost:
                for folder, name, node in move:
                    _name(table(folder), name, node)
        return dict(_walk(self.root, table))


def _with_tails(inodes: dict[str, Inode], tears: Sequence[float]) -> Iterator[tuple[str, dict[str, bytes]]]:
    for how, tear in (("all", 0.0), ("none", 0.0), *(("torn", tear) for tear in tears), ("zeros", 0.0)):
        yield f"{how} {tear}", {path: inode.after_power_cut(how, tear) for path, inode in inodes.items()}


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
    """Which of some blocks reached the disk."""
    every = range(count)
    if count <= _BLOCKS_MAX:
        return [kept for size in every for kept in combinations(every, size + 1)]
    chance = random.Random(count)
    by_chance = [tuple(n for n in every if chance.random() < 0.5) for _ in range(_SETS)]
    return [*((n,) for n in every), *(tuple(m for m in every if m != n) for n in every), *by_chance]


def _made(folders: dict[str, Folder], path: str) -> Folder:
    """Return the folder at a path, made and durable like those above it; `folders` holds the known ones by path."""
    found = folders.get(path)
    if found is None:
        parent, _, name = path.rpartition("/")
        above = _made(folders, parent)
        node = above.durable[name] = above.names.setdefault(name, Folder())
        assert isinstance(node, Folder)
        found = folders[path] = node
    return found


def _name(names: dict[str, Node], name: str, node: Node | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


class CrashFile:
    """See `saros_storage.io.disk.File`."""

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
            end = self.size + min(count, _ZEROS_MAX)
            if not failure and end > len(self._inode.seen):
                self._inode.write(len(self._inode.seen), bytes(end - len(self._inode.seen)))

    def sync(self) -> None:
        with self._disk.operation("sync", f"sync {self._path}") as failure:
            if failure:
                self._inode.dirty = ()  # what a failed fsync leaves may count as clean
            self._inode.sync()
            self._disk.syncs += 1

    def close(self) -> None:
        return


class CrashDisk:
    """See the module: implements `saros_storage.io.disk.Disk`."""

    def __init__(self, picture: Picture | None = None) -> None:
        copies = _Copies()
        self._root = Folder() if picture is None else copies.folder(picture.root)
        self._journal = [] if picture is None else [copies.move(move) for move in picture.journal]
        self._lock = threading.Lock()
        #: Whether pictures are taken, and of what; what the test adds to each.
        self.pictures: list[Picture] = []
        self.keeps_pictures = False
        self.note: Callable[[], object] = lambda: None
        self.syncs = 0
        self.operations = 0
        #: The number of the operation that fails, and how; how many after it do, too; or whether every write does,
        #: since the disk is full.
        self.fails_at: tuple[int, int] | None = None
        self.fails_for = 1
        self.is_full = False
        #: What the operations that failed were.
        self.failed: list[str] = []

    @staticmethod
    def of(files: dict[str, bytes], folders: frozenset[str] = frozenset()) -> CrashDisk:
        disk = CrashDisk()
        made = {"": disk._root}
        for path in folders:
            _made(made, path)
        for path, data in files.items():
            parent, _, name = path.rpartition("/")
            folder = _made(made, parent)
            folder.names[name] = folder.durable[name] = Inode(data, data)
        return disk

    def place(self, path: str, data: bytes) -> None:
        """A file that somebody else made, durable; no operation of the store's."""
        with self._lock:
            parent, _, name = path.rpartition("/")
            folder = _made({"": self._root}, parent)
            folder.names[name] = folder.durable[name] = Inode(data, data)

    def after_power_cut(self) -> CrashDisk:
        """What was fsynced, and nothing else."""
        durable = dict(_walk(self._root, lambda folder: folder.durable))
        files = {path: node.synced for path, node in durable.items() if isinstance(node, Inode)}
        return CrashDisk.of(files, frozenset(durable.keys() - files.keys()))

    def picture(self) -> Picture:
        """The disk as it is."""
        copies = _Copies()
        return Picture("now", copies.folder(self._root), [copies.move(move) for move in self._journal], self.note())

    @property
    def files(self) -> dict[str, bytes]:
        """All files as they are seen."""
        found = _walk(self._root, lambda folder: folder.names)
        return {path: node.seen for path, node in found if isinstance(node, Inode)}

    @property
    def fingerprint(self) -> object:
        """Equal for equal disks."""
        paths = dict(_walk(self._root, lambda folder: folder.names))
        durable = dict(_walk(self._root, lambda folder: folder.durable))
        seen = [
            (path, (node.seen, node.synced, node.dirty) if isinstance(node, Inode) else None, durable.get(path) is node)
            for path, node in paths.items()
        ]
        return tuple(sorted(seen, key=lambda item: item[0])), tuple(
            (name, node is None) for move in self._journal for _, name, node in move
        )

    # ------------------------------------------------------------------ operations

    @contextmanager
    def operation(self, kind: str, text: str) -> Iterator[int]:
        """Carry out an operation, or half of it if there is an errno with which it fails."""
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

    def _find(self, path: str) -> Node | None:
        found: Node | None = self._root
        for name in filter(None, path.split("/")):
            if not isinstance(found, Folder):
                return None
            found = found.names.get(name)
        return found

    def _file(self, path: str) -> Inode:
        found = self._find(path)
        if not isinstance(found, Inode):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return found

    def _move(self, *changes: tuple[str, Node | None]) -> None:
        """Give or take names, at once for whoever looks, durably later."""
        move = []
        for path, node in changes:
            parent, _, name = path.rpartition("/")
            folder = self._find(parent)
            if not isinstance(folder, Folder):
                raise FileNotFoundError(errno.ENOENT, "no such folder", parent)
            _name(folder.names, name, node)
            move.append((folder, name, node))
        self._journal.append(tuple(move))

    # ------------------------------------------------------------------ Disk

    def create(self, path: str) -> CrashFile:
        inode = Inode()
        with self.operation("create", f"create {path}") as failure:
            if not failure:
                self._move((path, inode))
        return CrashFile(self, path, inode)

    def create_unread(self, path: str) -> CrashFile:
        return self.create(path)

    def append(self, path: str) -> CrashFile:
        if self._find(path) is None:
            return self.create(path)
        with self.operation("append", f"open {path}"):
            inode = self._file(path)
        return CrashFile(self, path, inode)

    def map(self, path: str) -> memoryview:
        return memoryview(self._file(path).seen)

    def read(self, path: str, offset: int, count: int) -> bytes:
        return bytes(self.map(path)[offset : offset + count])

    def truncate(self, path: str, size: int) -> None:
        with self.operation("truncate", f"truncate {path} to {size}") as failure:
            if not failure:
                self._file(path).truncate(size)

    def replace(self, source: str, target: str) -> None:
        with self.operation("replace", f"rename {source} to {target}") as failure:
            if not failure:
                node = self._find(source)
                if node is None:
                    raise FileNotFoundError(errno.ENOENT, "no such file", source)
                self._move((source, None), (target, node))

    def link(self, source: str, target: str) -> None:
        with self.operation("link", f"link {source} as {target}") as failure:
            if not failure:
                self._move((target, self._file(source)))

    def remove(self, path: str) -> None:
        if self._find(path) is not None:
            with self.operation("remove", f"remove {path}") as failure:
                if not failure:
                    self._move((path, None))

    def remove_tree(self, path: str) -> None:
        found = self._find(path)
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
        above = self._find(parent)
        assert isinstance(above, Folder)
        if name not in above.names:
            with self.operation("make_folder", f"make {path}") as failure:
                if not failure:
                    self._move((path, Folder()))
        if durably and above.durable.get(name) is not above.names[name]:
            self.sync_folder(parent)

    def sync_all(self, paths: Collection[str]) -> None:
        for path in paths:
            if isinstance(self._find(path), Folder):
                self.sync_folder(path)
            else:
                CrashFile(self, path, self._file(path)).sync()

    def sync_folder(self, path: str) -> None:
        with self.operation("sync_folder", f"sync the folder {path}") as failure:
            folder = self._find(path)
            if not isinstance(folder, Folder):
                raise FileNotFoundError(errno.ENOENT, "no such folder", path)
            if not failure:
                synced = [move for move in self._journal if any(where is folder for where, _, _ in move)]
                for where, name, node in chain.from_iterable(synced):
                    _name(where.durable, name, node)
                self._journal = [move for move in self._journal if move not in synced]

    def list(self, path: str) -> list[str]:
        found = self._find(path)
        if isinstance(found, Inode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
        return [] if found is None else sorted(found.names)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def size(self, path: str) -> int:
        return len(self._file(path).seen)

    def free_bytes(self, path: str) -> int:
        return 0 if self.is_full else 1 << 40
