"""A cache of decoded pages.

    (file, device, column, chunk)  ->  runs of rows [first, stop) of that chunk, each one decoded block

For a non-aligned device, a column is a measurement with its times. For an aligned device, it is either a measurement
alone or `TIMES` alone, so that requests for different sets of measurements share the columns they have in common. A
look-up succeeds if any cached run contains the requested rows; it returns a view of that run.

    first use -> new -- used again --> proven            one large scan goes through `new` and leaves `proven` alone
                 new <-- `proven` exceeds 80 % of the bytes -- proven
    the least recently used entries of `new` are evicted first

The cached blocks are bounded by their size in bytes. In addition, the indexes of devices (`indexes`) may take a quarter
of that bound, and the statistics of pages per window (`cells`) an eighth. Files never change and every opened file has
its own serial number, so entries never become invalid. (Paths cannot be keys: a file of a database that was dropped and
created again may have the path of an earlier file.) Thread-safe.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeAlias

from saros_storage.base.block import Block
from saros_storage.cache.cell_cache import CellCache
from saros_storage.cache.index_cache import IndexCache

#: (serial of the file, device, measurement or TIMES, number of the chunk)
ChunkKey: TypeAlias = tuple[int, str, str, int]
#: The column name for an aligned device's times; no measurement has this name.
TIMES = ""
#: Rows [first, stop) of a chunk.
_Run: TypeAlias = tuple[int, int, Block]
_Entries: TypeAlias = OrderedDict[ChunkKey, tuple[_Run, ...]]
#: Memory of an entry without its arrays.
_ENTRY_BYTES = 500
#: Maximum share of the cache for entries that were used more than once.
_PROVEN_PERCENT = 80
#: The indexes may take a quarter of the bytes for pages. If the pages take 256 MiB, the indexes of about 110,000 series
#: with one chunk each fit.
_INDEX_SHARE = 4
#: The cells may take an eighth of the bytes for pages. If the pages take 256 MiB, the cells of about 500,000 windows of
#: a series fit.
_CELL_SHARE = 8


class ChunkCache:
    """A cache of decoded chunks; it contains the caches of indexes and of cells. `bytes_max` 0 keeps nothing."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        #: Indexes of devices in files.
        self.indexes = IndexCache(bytes_max // _INDEX_SHARE)
        #: Statistics of pages per window.
        self.cells = CellCache(bytes_max // _CELL_SHARE)
        self._new: _Entries = OrderedDict()
        self._proven: _Entries = OrderedDict()
        self._new_bytes = 0
        self._proven_bytes = 0
        self._lock = threading.Lock()
        self._hits = 0
        self._misses = 0

    @property
    def keeps(self) -> bool:
        """True if the cache stores anything."""
        return self._bytes_max > 0

    @property
    def bytes(self) -> int:
        """Size of the cached blocks."""
        return self._new_bytes + self._proven_bytes

    @property
    def hits(self) -> int:
        """Number of look-ups that found their rows."""
        return self._hits

    @property
    def misses(self) -> int:
        """Number of look-ups that did not find their rows."""
        return self._misses

    def get(self, key: ChunkKey, first: int, stop: int) -> Block | None:
        """Return rows [first, stop) of a column of a chunk, or None."""
        with self._lock:
            proven = key in self._proven
            runs = self._proven[key] if proven else self._new.get(key, ())
            for start, end, block in runs:
                if start <= first and stop <= end:
                    if proven:
                        self._proven.move_to_end(key)
                    else:
                        self._promote(key)
                    self._hits += 1
                    return block if end - start == stop - first else block.slice(first - start, stop - start)
            self._misses += 1
            return None

    def _promote(self, key: ChunkKey) -> None:
        """Move an entry from `_new` to `_proven`; make room by moving the least recently used proven entries back."""
        runs = self._new.pop(key)
        self._proven[key] = runs
        size = _size(runs)
        self._new_bytes -= size
        self._proven_bytes += size
        while self._proven_bytes * 100 > self._bytes_max * _PROVEN_PERCENT and len(self._proven) > 1:
            old, gone = self._proven.popitem(last=False)
            self._new[old] = gone
            self._proven_bytes -= _size(gone)
            self._new_bytes += _size(gone)

    def put(self, key: ChunkKey, first: int, block: Block) -> None:
        """Cache a block whose first row is row `first` of the chunk."""
        if not self.keeps:
            return
        stop = first + block.rows
        with self._lock:
            proven = key in self._proven
            entries = self._proven if proven else self._new
            runs = entries.pop(key, ())
            kept = tuple(run for run in runs if not (first <= run[0] and run[1] <= stop))
            entries[key] = (*kept, (first, stop, block))
            more = _size(entries[key]) - _size(runs)
            if proven:
                self._proven_bytes += more
            else:
                self._new_bytes += more
            while self.bytes > self._bytes_max:
                if self._new:
                    self._new_bytes -= _size(self._new.popitem(last=False)[1])
                else:
                    self._proven_bytes -= _size(self._proven.popitem(last=False)[1])

    def clear(self) -> None:
        """Remove all entries, including indexes and cells."""
        with self._lock:
            self._new.clear()
            self._proven.clear()
            self._new_bytes = self._proven_bytes = 0
        self.indexes.clear()
        self.cells.clear()


def _size(runs: tuple[_Run, ...]) -> int:
    return sum(block.nbytes + _ENTRY_BYTES for _, _, block in runs)
