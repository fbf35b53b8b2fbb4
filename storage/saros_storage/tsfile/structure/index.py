"""The index of a file: a search tree of devices, and below each device a search tree of its series.

    root (in the metadata, one per table)      INTERNAL_DEVICE or LEAF_DEVICE
      ... INTERNAL_DEVICE                      at most 256 children each
        LEAF_DEVICE    device -> its root measurement node
          ... INTERNAL_MEASUREMENT
            LEAF_MEASUREMENT   every 256th series -> the start of its run of TimeseriesMetadata

Child i of a node covers the bytes from its offset to the offset of the next child; the last child covers the bytes up
to the node's end offset. Children precede their parent in the file. The reader enforces this order, so a cycle in a
malformed file cannot make it loop forever. It also visits no more nodes than the file has room for. Otherwise, children
that several nodes share could make it visit far too many nodes.

`build_index` writes an index and is pure. `IndexTree` reads an index; it is thread-safe and has a bounded cache of
parsed nodes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import groupby, pairwise
from typing import TypeAlias

import msgspec

from saros_storage.base.errors import CorruptFile
from saros_storage.base.lru import LruCache
from saros_storage.tsfile.structure.device_id import Segments, decode_segments, encode_segments, name_key, segments_key
from saros_storage.tsfile.structure.format import HEAD_BYTES, Cursor, i64, uvar, vstr

DEGREE = 256
#: Size of the smallest entry of a node: a name of one byte, and an offset of eight bytes.
_ENTRY_BYTES_MIN = 9
#: Maximum depth of the tree: no file can hold 256 ** 8 devices.
_DEPTH_MAX = 8
_CACHED_ENTRIES_MAX = 16_384


class NodeKind(IntEnum):
    """The type byte of a node."""

    INTERNAL_DEVICE = 0
    LEAF_DEVICE = 1
    INTERNAL_MEASUREMENT = 2
    LEAF_MEASUREMENT = 3


class Span(msgspec.Struct, frozen=True):
    """The bytes [start, end) of the file."""

    start: int
    end: int


class IndexNode(msgspec.Struct, frozen=True):
    """A parsed node: `names[i]` (sort key `keys[i]`) is the first name below child i, which starts at `offsets[i]`."""

    kind: NodeKind
    names: tuple[Segments, ...]
    keys: tuple[tuple[str, ...], ...]
    offsets: tuple[int, ...]
    end: int

    def child(self, position: int) -> Span:
        """Return the bytes of child number `position`."""
        after = position + 1
        return Span(self.offsets[position], self.offsets[after] if after < len(self.offsets) else self.end)


#: An entry of a node to be written: an encoded name, and the offset of a child node or a run of TimeseriesMetadata.
Entry: TypeAlias = tuple[bytes, int]


#: The name of the first series of a run, and the joined TimeseriesMetadata of the run: of `DEGREE` series, or of all
#: series of a device.
Run: TypeAlias = tuple[str, bytes]


def runs_of(series: Sequence[tuple[str, bytes]]) -> list[Run]:
    """Divide a device's sorted (name, TimeseriesMetadata) into runs."""
    starts = range(0, len(series), DEGREE)
    return [(series[at][0], b"".join([raw for _, raw in series[at : at + DEGREE]])) for at in starts]


class IndexBuilder:
    """Collects the parts of the index area, which starts at `position` of the file."""

    def __init__(self, position: int) -> None:
        self.parts: list[bytes] = []
        self.position = position

    def add(self, part: bytes) -> None:
        """Append to the area."""
        self.parts.append(part)
        self.position += len(part)

    def add_series(self, series: Iterable[Run]) -> bytes:
        """Append the sorted series of a device. Return the device's root node without appending it."""
        runs: list[Entry] = []
        leaves: list[tuple[bytes, bytes]] = []
        for first, raw in series:
            runs.append((vstr(first), self.position))
            self.add(raw)
            if len(runs) == DEGREE:
                leaves.append(self._node(NodeKind.LEAF_MEASUREMENT, runs))
                runs = []
        if runs:
            leaves.append(self._node(NodeKind.LEAF_MEASUREMENT, runs))
        return self._root(leaves, NodeKind.INTERNAL_MEASUREMENT)

    def add_devices(self, devices: Sequence[tuple[Segments, bytes]]) -> bytes:
        """Append the root nodes of a table's sorted devices. Return the table's root node without appending it."""
        entries: list[Entry] = []
        leaves: list[tuple[bytes, bytes]] = []
        for segments, node in devices:
            entries.append((encode_segments(segments), self.position))
            self.add(node)
            if len(entries) == DEGREE:
                leaves.append(self._node(NodeKind.LEAF_DEVICE, entries))
                entries = []
        if entries:
            leaves.append(self._node(NodeKind.LEAF_DEVICE, entries))
        return self._root(leaves, NodeKind.INTERNAL_DEVICE)

    def _root(self, nodes: list[tuple[bytes, bytes]], kind: NodeKind) -> bytes:
        while len(nodes) > 1:
            entries: list[Entry] = []
            for name, node in nodes:
                entries.append((name, self.position))
                self.add(node)
            ends = [offset for _, offset in entries[DEGREE::DEGREE]] + [self.position]
            nodes = [self._node(kind, entries[i * DEGREE : (i + 1) * DEGREE], end) for i, end in enumerate(ends)]
        return nodes[0][1]

    def _node(self, kind: NodeKind, entries: Sequence[Entry], end: int | None = None) -> tuple[bytes, bytes]:
        """Return (name of the first entry, the node's bytes); `end` defaults to the current position."""
        body = [uvar(len(entries))]
        for name, offset in entries:
            body += (name, i64(offset))
        body += (i64(self.position if end is None else end), bytes((kind,)))
        return entries[0][0], b"".join(body)


def build_index(
    position: int, devices: Iterable[tuple[Segments, Iterable[Run]]]
) -> tuple[list[bytes], list[tuple[str, bytes]]]:
    """Return the parts of the index area, which starts at `position`, and the pair (name, root node) of each table.

    `devices` must be sorted, and so must the series of each device (see `runs_of`).
    """
    builder = IndexBuilder(position)
    roots = [(segments, builder.add_series(series)) for segments, series in devices]
    tables = [(table or "", builder.add_devices(list(group))) for table, group in groupby(roots, key=lambda r: r[0][0])]
    return builder.parts, tables


class IndexTree:
    """Finds devices in a file's index. `limit` is the end of the index area."""

    def __init__(self, file: str, data: memoryview, limit: int, *, version_3: bool) -> None:
        self._file = file
        self._data = data
        self._limit = limit
        self._version_3 = version_3
        #: The root node of each table, in the file's order. A v3 file has a single root node, with the key None.
        self.roots: dict[str | None, IndexNode] = {}
        self._nodes: LruCache[int, IndexNode] = LruCache(_CACHED_ENTRIES_MAX)

    def add_root(self, table: str | None, cursor: Cursor) -> None:
        """Read a root node from the metadata; raises CorruptFile."""
        self.roots[table] = self._parse(cursor, devices=True, before=self._limit)

    def find(self, segments: Segments) -> Span | None:
        """Return the bytes of a device's root measurement node, or None if the device is not in the file."""
        node = self.roots.get(None if self._version_3 else segments[0])
        key = segments_key(segments)
        while node is not None and node.kind is NodeKind.INTERNAL_DEVICE:
            position = bisect_right(node.keys, key) - 1
            node = None if position < 0 else self._node(node.child(position), devices=True)
        if node is None:
            return None
        position = bisect_left(node.keys, key)
        if position == len(node.keys) or node.names[position] != segments:
            return None
        return node.child(position)

    def devices(self) -> Iterator[tuple[Segments, Span]]:
        """Yield all devices in the file's order, each with the bytes of its root measurement node."""
        budget = _Budget(self._file, self._limit)
        for root in self.roots.values():
            for leaf in self._leaves(root, NodeKind.LEAF_DEVICE, budget):
                for position, segments in enumerate(leaf.names):
                    yield segments, leaf.child(position)

    def series_spans(self, device: Span) -> list[Span]:
        """Return the runs of TimeseriesMetadata below a device's root measurement node, in order."""
        budget = _Budget(self._file, self._limit)
        root = self._parse(self._cursor(device), devices=False, before=device.start)
        leaves = list(self._leaves(root, NodeKind.LEAF_MEASUREMENT, budget))
        spans = [Span(leaf.offsets[0], leaf.end) for leaf in leaves if leaf.offsets]
        if any(a.end > b.start for a, b in pairwise(spans)):
            raise CorruptFile(self._file, device.start, "the series of a device are out of order")
        return spans

    def _leaves(self, node: IndexNode, leaf: NodeKind, budget: _Budget, depth: int = 0) -> Iterator[IndexNode]:
        budget.spend(node)
        if node.kind is leaf:
            yield node
            return
        if depth == _DEPTH_MAX:
            raise CorruptFile(self._file, node.end, "the index is too deep")
        for position in range(len(node.offsets)):
            child = self._node(node.child(position), devices=leaf is NodeKind.LEAF_DEVICE)
            yield from self._leaves(child, leaf, budget, depth + 1)

    def _node(self, span: Span, *, devices: bool) -> IndexNode:
        node = self._nodes.get(span.start)
        if node is None or (node.kind <= NodeKind.LEAF_DEVICE) != devices:
            node = self._parse(self._cursor(span), devices=devices, before=span.start)
            self._nodes.put(span.start, node, len(node.names) + 1)
        return node

    def _cursor(self, span: Span) -> Cursor:
        return Cursor(self._file, self._data[span.start : span.end], span.start)

    def _parse(self, cursor: Cursor, *, devices: bool, before: int) -> IndexNode:
        """Parse a node. Raises CorruptFile if its children end after the byte `before`."""
        count = cursor.uvar()
        if count * _ENTRY_BYTES_MIN > cursor.rest:
            raise cursor.corrupt(f"an index node of {count} entries")
        names: list[Segments] = []
        offsets: list[int] = []
        for _ in range(count):
            names.append(decode_segments(cursor, version_3=self._version_3) if devices else (cursor.name(),))
            offsets.append(cursor.i64())
        end = cursor.i64()
        kind = cursor.u8()
        legal = (NodeKind.INTERNAL_DEVICE, NodeKind.LEAF_DEVICE) if devices else tuple(NodeKind)[2:]
        if kind not in legal:
            raise cursor.corrupt(f"an index node of type {kind}")
        rising = all(a < b for a, b in pairwise([*offsets, end]))
        if count and (offsets[0] < HEAD_BYTES or end > before or not rising):
            raise cursor.corrupt("children of an index node are out of place")
        keys = tuple(map(segments_key, names)) if devices else tuple((name_key(n[0] or ""),) for n in names)
        return IndexNode(NodeKind(kind), tuple(names), keys, tuple(offsets), end)


class _Budget:
    """The number of index entries that may still be visited; initially, as many as the file has room for."""

    def __init__(self, file: str, size: int) -> None:
        self._file = file
        self._left = size // _ENTRY_BYTES_MIN + 1

    def spend(self, node: IndexNode) -> None:
        """Count one visited node. Raises CorruptFile if the budget is exhausted, since then some nodes are shared."""
        self._left -= len(node.offsets) + 1
        if self._left < 0:
            raise CorruptFile(self._file, node.end, "index nodes are shared")
