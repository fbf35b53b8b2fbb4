"""A cache of the statistics that windowed queries need: one cell for each page and each time window that it overlaps.

    page 0      . . . . | . . . . . | . .         page 1   . . . | . . . . . | . .
    its cells      c         c        c                      c       c         c        a row of Summaries each

A cell contains the statistics of those rows of one page that lie in one window (`window_statistics.celled`). Cells can
therefore be reused page by page for any requested time range. Cells take a small part of the memory that the decoded
pages would take. A repeated windowed query is therefore answered without decoding rows, even if the decoded rows do not
fit into memory.

    (file, device, columns, chunk, position of the grid)  ->  ChunkCells

Files never change and serial numbers are never reused, so entries never become invalid. The reader must account for the
effect of other files, MemTables and tombstones on the rows of a page. Bounded by bytes. Thread-safe; `ChunkCells` are
values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import msgspec

from saros_storage.base.lru import LruCache
from saros_storage.base.types import DataType
from saros_storage.scan.reading import Summaries

#: (serial of the file, device, measurements, number of the chunk, the grid's origin within its step, the grid's step)
CellKey: TypeAlias = tuple[int, str, tuple[str, ...], int, int, int]
#: Bytes of memory that an entry takes, and that each column of a page takes, in addition to the arrays.
_ENTRY_BYTES, _COLUMN_BYTES = 600, 250


class ChunkCells(msgspec.Struct, frozen=True, eq=False):
    """The cells of some pages of a chunk, which are joined into one object once all pages are present."""

    #: The cells of each page; empty once all pages are present and joined.
    pages: Mapping[int, Summaries] = msgspec.field(default_factory=dict)
    whole: Summaries | None = None
    #: The first row of each page in `whole`, then the number of rows of `whole`.
    begins: Sequence[int] = ()

    def of(self, first: int, stop: int) -> Summaries | None:
        """Return the cells of pages [first, stop), or None if some are missing."""
        if self.whole is None:
            parts = [self.pages[page] for page in range(first, stop) if page in self.pages]
            return Summaries.concat(parts) if len(parts) == stop - first else None
        if stop - first == len(self.begins) - 1:
            return self.whole
        return self.whole.slice(self.begins[first], self.begins[stop])

    def missing(self, first: int, stop: int) -> tuple[int, int]:
        """Return the shortest range with all pages of [first, stop) that have no cells; there must be such pages."""
        lacking = [page for page in range(first, stop) if page not in self.pages]
        return lacking[0], lacking[-1] + 1

    def plus(self, first: int, cells: Summaries, bounds: Sequence[int], total: int) -> ChunkCells:
        """Return a copy that also has the cells of some consecutive pages; the chunk has `total` pages.

        The cells of page `first` + i are the rows [bounds[i], bounds[i + 1]) of `cells`.
        """
        if len(bounds) == total + 1:
            return ChunkCells({}, cells, tuple(bounds))
        pages = {**self.pages, **{page: cells.slice(a, b) for page, (a, b) in enumerate(pairwise(bounds), first)}}
        if len(pages) < total:
            return ChunkCells(pages)
        parts = [pages[page] for page in range(total)]
        return ChunkCells({}, Summaries.concat(parts), tuple(accumulate((part.rows for part in parts), initial=0)))

    @property
    def types(self) -> tuple[DataType, ...]:
        """The types of the columns."""
        return next((part.types for part in self._parts()), ())

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes."""
        return _ENTRY_BYTES + sum(part.nbytes + _COLUMN_BYTES * len(part.block.columns) for part in self._parts())

    def _parts(self) -> Collection[Summaries]:
        return self.pages.values() if self.whole is None else (self.whole,)


class CellCache:
    """A cache of cells. `bytes_max` 0 keeps nothing."""

    def __init__(self, bytes_max: int) -> None:
        #: True if the cache stores anything, so that it is worthwhile to compute cells.
        self.keeps = bytes_max > 0
        self._known: LruCache[CellKey, ChunkCells] = LruCache(bytes_max)

    def get(self, key: CellKey) -> ChunkCells | None:
        """Return the cached cells of a chunk, or None."""
        return self._known.get(key)

    def put(self, key: CellKey, cells: ChunkCells) -> None:
        """Cache the cells of a chunk; they replace older cells with the same key."""
        self._known.put(key, cells, cells.nbytes)

    def clear(self) -> None:
        """Remove all entries."""
        self._known.clear()

    def __len__(self) -> int:
        return len(self._known)
