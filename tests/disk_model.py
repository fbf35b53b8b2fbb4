"""A disk in memory: the state visible to processes, the durable state, and the possible states after a power cut.

    folder -> names -> folders and files                the visible state
    journal: moves of names that are not durable yet, in order        a sync of a folder makes its moves durable
    file: seen, synced, dirty (offset, bytes) ...       writes that are not durable yet, in order

After a power cut, each file has its synced content and a part of its unsynced writes: all, none, the first bytes
(`Inode.torn`), zeros in their place, or some blocks. Some moves of names in the journal are durable
(`DiskModel.durable`). Truncation is durable at once.

`DiskModel` implements the read-only part of `saros_storage.io.disk.Disk`. Its subclasses decide when an operation
fails, how long an operation takes, and which states after a crash are tried: `storage.crash_disk` enumerates these
states, and `cluster.world_disk` draws one at random.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self


@dataclass(slots=True, eq=False)
class Inode:
    """A file's visible bytes, its fsynced bytes, and the writes since the last fsync: (offset, bytes)."""

    seen: bytes = b""
    synced: bytes = b""
    dirty: tuple[tuple[int, bytes], ...] = ()

    def write(self, offset: int, data: bytes) -> None:
        self.seen = _overlaid(self.seen, [(offset, data)])
        self.dirty = (*self.dirty, (offset, data))

    def reserve(self, end: int) -> None:
        """Write zeros up to `end`."""
        if end > len(self.seen):
            self.write(len(self.seen), bytes(end - len(self.seen)))

    def sync(self, count: int | None = None) -> None:
        """Make the first `count` unsynced writes durable; None: all of them."""
        self.synced = _overlaid(self.synced, self.dirty[:count])
        self.dirty = () if count is None else self.dirty[count:]

    def truncate(self, size: int) -> None:
        self.sync()
        self.seen = self.synced = self.seen[:size]

    # ------------------------------------------------------------------ states after a power cut

    def dirty_bytes(self, *, reserved: bool) -> int:
        """Return the number of unsynced bytes. With `reserved`, zeros that only reserve space count, too."""
        return sum(len(data) for _, data in self.dirty if reserved or any(data))

    def torn(self, left: int, *, keeps_reserved: bool) -> bytes:
        """Return the content that remains if the first `left` unsynced bytes reached the disk.

        With `keeps_reserved`, reserved space and the file's size are durable in any case, and reserved bytes do not
        count among the `left` bytes.
        """
        kept = []
        for offset, data in self.dirty:
            is_reserved = keeps_reserved and not any(data)
            count = len(data) if is_reserved else max(left, 0)
            if count or keeps_reserved:
                kept.append((offset, data[:count]))
            left -= 0 if is_reserved else len(data)
        return _overlaid(self.synced, kept)

    def zeroed(self) -> bytes:
        """Return the content that remains if only the new size reached the disk: zeros fill the part that was added."""
        return self.synced + bytes(max(len(self.seen) - len(self.synced), 0))

    def dirty_blocks(self, size: int) -> list[tuple[int, bytes]]:
        """Return (offset, new content) of each block with unsynced writes."""
        numbers = {
            n for at, data in self.dirty if any(data) for n in range(at // size, (at + len(data) - 1) // size + 1)
        }
        return [(n * size, self.seen[n * size : (n + 1) * size]) for n in sorted(numbers)]

    def with_blocks(self, blocks: Sequence[tuple[int, bytes]]) -> bytes:
        """Return the content that remains if only `blocks` and reserved space reached the disk."""
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
    """Visible and durable names."""

    names: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)


Node = Inode | Folder
#: Names that change together: (folder, name, target or None).
Move = tuple[tuple[Folder, str, Node | None], ...]


class _Copies:
    """Copies folders and files. An object that occurs several times is copied only once."""

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


class DiskModel:
    """The visible and the durable state of a simulated disk."""

    def __init__(self) -> None:
        self._root = Folder()
        #: The moves that are not durable yet, in their order.
        self.journal: list[Move] = []

    # ------------------------------------------------------------------ other disks

    def become_copy(self, other: DiskModel) -> Self:
        """Copy the state of another disk; the other disk does not change."""
        copies = _Copies()
        self._root = copies.folder(other._root)
        self.journal = [copies.move(move) for move in other.journal]
        return self

    def put(self, files: Mapping[str, bytes], folders: Iterable[str] = ()) -> Self:
        """Create durable files and folders at their paths, and the folders above them."""
        made = {"": self._root}
        for path in folders:
            _made(made, path)
        for path, data in files.items():
            parent, _, name = path.strip("/").rpartition("/")
            folder = _made(made, parent)
            folder.names[name] = folder.durable[name] = Inode(data, data)
        return self

    def durable(self, moves: Iterable[Move] = ()) -> dict[str, Node]:
        """Return the durable files and folders by path, as if of the journal only `moves` had become durable."""
        tables: dict[Folder, dict[str, Node]] = {}

        def table(folder: Folder) -> dict[str, Node]:
            if folder not in tables:
                tables[folder] = dict(folder.durable)
            return tables[folder]

        for move in moves:
            for folder, name, node in move:
                _name(table(folder), name, node)
        return dict(_walk(self._root, table))

    @property
    def files(self) -> dict[str, bytes]:
        """Return the visible content of all files."""
        found = _walk(self._root, lambda folder: folder.names)
        return {path: node.seen for path, node in found if isinstance(node, Inode)}

    @property
    def fingerprint(self) -> object:
        """Return a value that is equal for disks in the same state."""
        durable = self.durable()
        seen = [
            (path, (node.seen, node.synced, node.dirty) if isinstance(node, Inode) else None, durable.get(path) is node)
            for path, node in _walk(self._root, lambda folder: folder.names)
        ]
        return tuple(sorted(seen, key=lambda item: item[0])), tuple(
            (name, node is None) for move in self.journal for _, name, node in move
        )

    # ------------------------------------------------------------------ names

    def find(self, path: str) -> Node | None:
        """Return the visible file or folder at a path, or None."""
        found: Node | None = self._root
        for name in filter(None, path.split("/")):
            if not isinstance(found, Folder):
                return None
            found = found.names.get(name)
        return found

    def inode(self, path: str) -> Inode:
        """Return the file at a path. Raises FileNotFoundError."""
        found = self.find(path)
        if not isinstance(found, Inode):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return found

    def folder(self, path: str) -> Folder:
        """Return the folder at a path. Raises FileNotFoundError."""
        found = self.find(path)
        if not isinstance(found, Folder):
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        return found

    def move(self, *changes: tuple[str, Node | None]) -> None:
        """Set or remove several names as one move, which is visible at once and durable later."""
        move = []
        for path, node in changes:
            parent, _, name = path.rstrip("/").rpartition("/")
            folder = self.folder(parent)
            _name(folder.names, name, node)
            move.append((folder, name, node))
        self.journal.append(tuple(move))

    def rename(self, source: str, target: str) -> None:
        """Rename a file. Raises FileNotFoundError."""
        node = self.find(source)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        self.move((source, None), (target, node))

    def moves_of(self, folder: Folder) -> list[Move]:
        """Return the moves that a sync of the folder makes durable: those that change a name in the folder."""
        return [move for move in self.journal if any(where is folder for where, _, _ in move)]

    def make_durable(self, moves: Collection[Move]) -> None:
        """Make moves of the journal durable, and remove them from the journal."""
        for move in moves:
            for where, name, node in move:
                _name(where.durable, name, node)
        synced = set(map(id, moves))
        self.journal = [move for move in self.journal if id(move) not in synced]

    # ------------------------------------------------------------------ Disk

    def map(self, path: str) -> memoryview:
        return memoryview(self.inode(path).seen)

    def read(self, path: str, offset: int, count: int) -> bytes:
        return self.inode(path).seen[offset : offset + count]

    def list(self, path: str) -> list[str]:
        found = self.find(path)
        if isinstance(found, Inode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
        return [] if found is None else sorted(found.names)

    def exists(self, path: str) -> bool:
        return self.find(path) is not None

    def size(self, path: str) -> int:
        return len(self.inode(path).seen)


def _walk(folder: Folder, names: Callable[[Folder], dict[str, Node]], path: str = "") -> Iterator[tuple[str, Node]]:
    for name, node in names(folder).items():
        inner = f"{path}/{name}" if path else name
        yield inner, node
        if isinstance(node, Folder):
            yield from _walk(node, names, inner)


def _made(folders: dict[str, Folder], path: str) -> Folder:
    """Return the folder at a path; create it and the folders above it as durable. `folders` caches folders by path."""
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
