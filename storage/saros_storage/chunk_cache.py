"""Decoded pages, kept for the next query.

    (file, device, column, chunk)  ->  runs of rows [first, stop) of that chunk, each one decoded block

A column is a measurement with its times (non-aligned), a measurement alone, or `TIMES` alone (aligned: column sets that
differ share what they have in common). A look-up is served by any run that holds the asked rows, without a copy.

Bounded by bytes; the entry that was used least recently goes first. Files never change and their names are never used
again, so that nothing is ever invalidated. Thread-safe.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeAlias

from saros_storage.block import Block

#: (path of the file, device, measurement or TIMES, number of the chunk)
ChunkKey: TypeAlias = tuple[str, str, str, int]
#: The column of an aligned device's times: no measurement is called so.
TIMES = ""
#: Rows [first, stop) of a chunk.
_Run: TypeAlias = tuple[int, int, Block]
#: What an entry costs besides its arrays.
_ENTRY_BYTES = 500


class ChunkCache:
    """See the module. `bytes_max` 0 keeps nothing."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._entries: OrderedDict[ChunkKey, tuple[_Run, ...]] = OrderedDict()
        self._lock = threading.Lock()
        self._hits = 0
        self._misses = 0

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return self._bytes

    @property
    def hits(self) -> int:
        """Look-ups that were served."""
        return self._hits

    @property
    def misses(self) -> int:
        """Look-ups that were not."""
        return self._misses

    def get(self, key: ChunkKey, first: int, stop: int) -> Block | None:
        """Rows [first, stop) of a column of a chunk, or None."""
        with self._lock:
            for start, end, block in self._entries.get(key, ()):
                if start <= first and stop <= end:
                    self._entries.move_to_end(key)
                    self._hits += 1
                    return block if end - start == stop - first else block.slice(first - start, stop - start)
            self._misses += 1
            return None

    def put(self, key: ChunkKey, first: int, block: Block) -> None:
        """Keep a block whose first row is row `first` of the chunk."""
        stop = first + block.rows
        with self._lock:
            runs = self._entries.pop(key, ())
            kept = tuple(run for run in runs if not (first <= run[0] and run[1] <= stop))
            self._bytes += _size((*kept, (first, stop, block))) - _size(runs)
            self._entries[key] = (*kept, (first, stop, block))
            while self._bytes > self._bytes_max:
                _, gone = self._entries.popitem(last=False)
                self._bytes -= _size(gone)


def _size(runs: tuple[_Run, ...]) -> int:
    return sum(block.nbytes + _ENTRY_BYTES for _, _, block in runs)
