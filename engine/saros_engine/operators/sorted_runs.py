"""Sorted runs of rows in a file, and their merge into one stream. Sort uses them if its rows do not fit into memory.

    run 1   [ 1 4 | 7 9 ]            one piece of each run is in memory, the other pieces are in the file
    run 2   [ 2 3 | 8   ]            the border is the smallest of the last rows in memory of the unfinished runs: 3
    run 3   [ 5 6 ]                  rows up to the border can be returned: 1 2 3; then run 2 reads its next piece

The merge is stable: equal rows are in the order of the runs, which is the order of arrival. The runs are used only by
the thread of their operator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from saros_engine.memory.spill import Spilled, SpillFile
from saros_storage.base.block import Block
from saros_storage.base.types import Int64Array, NumericArray

#: A function that returns arrays that ascend in the requested order of a block's rows, the most important array first.
Keys = Callable[[Block], Sequence[NumericArray]]

#: The limits of the number of rows of a piece. Reading fewer rows at once would cost more per row; dozens of larger
#: pieces could not be sorted in the CPU's cache.
_PIECE_ROWS_MIN, _PIECE_ROWS_MAX = 64, 16_384


class SortedRuns:
    """Sorted runs and their merge. `close` deletes the file."""

    def __init__(self, file: SpillFile, keys: Keys, piece_bytes: int) -> None:
        """`piece_bytes` is the approximate size of one run's piece in memory."""
        self._file = file
        self._keys = keys
        self._piece_bytes = piece_bytes
        #: For each run, its pieces in the file, and its rows in memory.
        self._pieces: list[deque[Spilled]] = []
        self._heads: list[Block | None] = []

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(head.nbytes for head in self._heads if head is not None)

    def add(self, run: Block) -> None:
        """Spill sorted rows as a run. The rows of a run come after equal rows of earlier runs."""
        rows = min(max(self._piece_bytes * run.rows // run.nbytes, _PIECE_ROWS_MIN), _PIECE_ROWS_MAX)
        pieces = [self._file.write(run.slice(at, min(at + rows, run.rows))) for at in range(0, run.rows, rows)]
        self._pieces.append(deque(pieces))
        self._heads.append(None)

    def next(self) -> Block | None:
        """Return the next rows, at least one; None at the end."""
        for number, pieces in enumerate(self._pieces):
            if self._heads[number] is None and pieces:
                self._heads[number] = self._file.read(pieces.popleft())
        live = [number for number, head in enumerate(self._heads) if head is not None]
        if not live:
            return None
        heads = [head for head in self._heads if head is not None]
        joined = Block.concat(heads)
        ends = np.cumsum([head.rows for head in heads])
        keys = self._keys(joined)
        going_on = np.array([end - 1 for end, number in zip(ends, live, strict=True) if self._pieces[number]], np.int64)
        chosen = np.arange(joined.rows) if len(going_on) == 0 else _up_to_border(keys, going_on)
        self._cut(live, heads, ends, chosen)
        order = np.lexsort([key[chosen] for key in reversed(keys)])
        return joined.take(chosen[order])

    def _cut(self, live: Sequence[int], heads: Sequence[Block], ends: Int64Array, chosen: Int64Array) -> None:
        """Remove the chosen rows, which are the first rows of each run, from the rows in memory."""
        taken = np.diff(np.searchsorted(chosen, ends), prepend=0)
        for number, head, count in zip(live, heads, taken.tolist(), strict=True):
            self._heads[number] = None if count == head.rows else head.slice(count, head.rows)

    def close(self) -> None:
        """Delete the file. Idempotent."""
        self._file.close()
        self._pieces, self._heads = [], []


def _up_to_border(keys: Sequence[NumericArray], last: Int64Array) -> Int64Array:
    """Return the numbers of the rows up to the smallest of the rows `last` in the order of the sort."""
    border = last[np.lexsort([key[last] for key in reversed(keys)])[0]]
    rows = len(keys[0])
    below, equal = np.zeros(rows, np.bool_), np.ones(rows, np.bool_)
    for key in keys:
        below |= equal & (key < key[border])
        equal &= key == key[border]
    # Equal rows are ordered by their numbers.
    equal[border + 1 :] = False
    return np.flatnonzero(below | equal)
