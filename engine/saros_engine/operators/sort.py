"""Sort: sorts the child's rows stably by any number of keys.

With a limit, the operator keeps only rows that may be returned.

Each key is converted to arrays that ascend in the requested order: one for nulls, one for NaN, and one for the other
values. One stable lexicographic sort by all arrays follows. NaN is the largest number, as in Java. The rows are charged
to the query's memory. If they exceed the share of a sort, or the rest of the query's memory, they are spilled to a file
as a sorted run, and the runs are merged (`sorted_runs.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saros_engine.evaluation.evaluate import Compiled, compile_expression
from saros_engine.expressions.text import text_ranks
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.operators.sorted_runs import SortedRuns
from saros_engine.plan.plan import Sort, SortItem
from saros_scheduler import require_wanted
from saros_storage.base.block import Block, Column
from saros_storage.base.types import Int64Array, NumericArray
from saros_storage.scan.reading import BLOCK_ROWS_MAX

#: The number of pieces of the first run. With this number of runs, the pieces in memory (one of each run) together take
#: as much memory as the first run did. The merged rows take the same amount again.
_PIECES = 64
#: The number of rows that are sorted by one key between two checks for cancellation. Sorting this number of rows takes
#: about a tenth of a second.
_PIECE_ROWS = 1 << 19


class SortOperator(PullOperator):
    """Sorts its child's rows, in memory or with sorted runs in a file."""

    def __init__(self, node: Sort, child: Operator, context: OperatorContext) -> None:
        limit = "" if node.limit is None else f"top {node.limit}"
        super().__init__("Sort", context, (child,), detail=limit)
        self._child = child
        self._items = node.keys
        self._keys: list[Compiled] = [compile_expression(item.expression) for item in node.keys]
        self._limit = node.limit
        #: The rows in memory; rows with equal keys are in the order of arrival.
        self._blocks: list[Block] = []
        self._bytes = 0
        #: The spilled runs of earlier rows, if there were too many rows for memory.
        self._runs: SortedRuns | None = None
        #: The sorted rows (None until the child has ended); the number of these rows that were returned; and the number
        #: of rows that were taken from the runs.
        self._sorted: Block | None = None
        self._at = self._given = 0

    def _next(self) -> Block | None:
        if self._sorted is not None:
            return self._next_slice(self._sorted)
        if self._child.finished:
            self._end()
            return None
        block = self._child.next()
        if block is not None:
            self._buffer(block)
        return None

    def _buffer(self, block: Block) -> None:
        self._blocks.append(block)
        self._bytes += block.nbytes
        if self._limit is not None and sum(b.rows for b in self._blocks) > 4 * self._limit + BLOCK_ROWS_MAX:
            self._blocks = [self._ordered(Block.concat(self._blocks))]
            self._bytes = self._blocks[0].nbytes
        if not self._may_hold(self._bytes):
            self._spill_run()

    def _spill_run(self) -> None:
        """Spill the rows in memory as a sorted run."""
        if self._runs is None:
            assert self._context.spill is not None
            self._runs = SortedRuns(self._context.spill.open(), self._ascending, self._bytes // _PIECES)
            self._statistics.detail = f"{self._statistics.detail} in files".lstrip()
        if self._blocks:
            self._runs.add(self._ordered(Block.concat(self._blocks)))
        self._blocks, self._bytes = [], 0
        self._hold(0)

    def _end(self) -> None:
        # While rows are sorted, memory holds them twice.
        if self._runs is not None or (self._blocks and not self._may_hold(2 * self._bytes)):
            self._spill_run()
            self._take_merged()
            return
        if not self._blocks:
            self._finished = True
            return
        self._sorted = self._ordered(Block.concat(self._blocks))
        self._blocks = []
        self._hold(self._sorted.nbytes)
        self._finished = self._sorted.rows == 0

    def _next_slice(self, rows: Block) -> Block:
        start, self._at = self._at, min(self._at + BLOCK_ROWS_MAX, rows.rows)
        if self._at == rows.rows:
            self._take_merged()
        return rows.slice(start, min(start + BLOCK_ROWS_MAX, rows.rows))

    def _take_merged(self) -> None:
        """Take the next rows of the runs. Finish if there are no more rows, or if the limit is reached."""
        merged = None
        if self._runs is not None and (self._limit is None or self._given < self._limit):
            merged = self._runs.next()
            self._hold(self._runs.nbytes + (0 if merged is None else merged.nbytes))
        if merged is None:
            self._finished = True
            return
        if self._limit is not None:
            merged = merged.slice(0, min(merged.rows, self._limit - self._given))
        self._given += merged.rows
        self._sorted, self._at = merged, 0

    def _release(self) -> None:
        if self._runs is not None:
            self._runs.close()

    def _ordered(self, block: Block) -> Block:
        order = stable_order(self._ascending(block))[: self._limit]
        require_wanted()
        return block.take(order)

    def _ascending(self, block: Block) -> list[NumericArray]:
        return ascending_keys([key(block) for key in self._keys], self._items)


def stable_order(keys: Sequence[NumericArray]) -> Int64Array:
    """Return the row numbers in the order of the keys, of which the first is the most important. Raises Unwanted.

    Many rows are sorted by one key after the other, starting with the least important key, in pieces that are merged.
    Sorting in pieces is as fast as a single sort, which would run for seconds without a check for cancellation.
    """
    if len(keys[0]) <= _PIECE_ROWS:
        return np.lexsort(keys[::-1]).astype(np.int64, copy=False)  # lexsort takes the most important key last
    order = np.arange(len(keys[0]))
    for key in reversed(keys):
        values, within = key[order], np.empty(len(order), np.int64)
        for start in range(0, len(values), _PIECE_ROWS):
            require_wanted()
            piece = slice(start, start + _PIECE_ROWS)
            within[piece] = start + np.lexsort([values[piece]])
        require_wanted()
        # The pieces are sorted, so this sort only merges them, which takes a fifth of the time of sorting from scratch.
        order = order[within[np.lexsort([values[within]])]]
    return order


def ascending_keys(columns: Sequence[Column], items: Sequence[SortItem]) -> list[NumericArray]:
    """Return arrays with the same lexicographic order as the keys. The first array is the most important."""
    return [key for column, item in zip(columns, items, strict=True) for key in _ascending(column, item)]


def _ascending(column: Column, item: SortItem) -> list[NumericArray]:
    keys: list[NumericArray] = []
    values = text_ranks(column.text) if column.type.is_text else column.numbers
    if column.valid is not None:
        keys.append(column.valid if item.nulls_first else ~column.valid)
        values = np.where(column.valid, values, values.dtype.type(0))
    if values.dtype.kind == "f":
        unordered = np.isnan(values)
        if unordered.any():
            keys.append(~unordered if item.descending else unordered)
            values = np.where(unordered, values.dtype.type(0), values)
        keys.append(-values if item.descending else values)
    else:
        # ~x descends where x ascends, for integers of any width and for booleans.
        keys.append(~values if item.descending else values)
    return keys
