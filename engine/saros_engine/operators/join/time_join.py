"""TimeJoin: puts the columns of its children side by side, aligned by time (full outer join).

The operator keeps the current block of each child. All rows up to the earliest of the blocks' last times can be joined,
since no unfinished child can still return an earlier row. If all children have the same times, no values are copied.

    child 1   1  2  4  |7        joined now: times up to 4 (child 1 ends there first)
    child 2   2  3  5  6  8      -> 1 2 3 4, child 2 keeps 5 6 8

A block has a bounded number of values. The number of rows per child that are joined at once adapts to the number of
distinct times in the results. Thus the memory is bounded both for a thousand children with different times and for two
children with the same times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan.plan import TimeJoin
from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.types import DataType, Int64Array
from saros_storage.kernels.merge import union_times
from saros_storage.scan.reading import rows_per_block

#: Up to this number of children, whole blocks are joined at once, even if all times differ; with more children, parts
#: of blocks are joined.
_WHOLE_BLOCKS_MAX = 8
_QUOTA_MIN = 64


class TimeJoinOperator(PullOperator):
    """Joins its children by time."""

    def __init__(
        self,
        node: TimeJoin,
        children: Sequence[Operator],
        types: Sequence[Sequence[DataType]],
        context: OperatorContext,
    ) -> None:
        super().__init__("TimeJoin", context, children)
        self._types = types
        self._descending = node.descending
        #: For each child, the rows that were pulled but are not joined yet.
        self._rest: list[Block | None] = [None] * len(children)
        self._pending: list[Block] = []
        #: The size in bytes of the blocks in `_pending` before any of them was returned.
        self._joined_bytes = 0
        #: The maximum number of rows of a returned block.
        self._rows_max = rows_per_block(sum(map(len, types)))
        #: How many rows of each child are joined at once.
        self._quota = max(self._rows_max * _WHOLE_BLOCKS_MAX // max(len(children), _WHOLE_BLOCKS_MAX), _QUOTA_MIN)

    def _needed(self) -> Sequence[Operator]:
        if self._pending:
            return ()
        return [child for child, rest in zip(self._children, self._rest, strict=True) if rest is None]

    def _next(self) -> Block | None:
        if not self._pending:
            if not self._fill():
                return None
            self._join()
        block = self._pending.pop(0) if self._pending else None
        self._finished = not self._pending and self._exhausted()
        return block

    def _exhausted(self) -> bool:
        pairs = zip(self._children, self._rest, strict=True)
        return all(rest is None and child.finished for child, rest in pairs)

    def _fill(self) -> bool:
        """Pull once from each child that has no rows; return whether every child then has rows or has ended."""
        complete = True
        for number, child in enumerate(self._children):
            if self._rest[number] is None and not child.finished:
                self._rest[number] = child.next()
                complete = complete and (self._rest[number] is not None or child.finished)
        self._account()
        return complete

    def _account(self) -> None:
        pending = self._joined_bytes if self._pending else 0
        self._hold(pending + sum(rest.nbytes for rest in self._rest if rest is not None))

    def _join(self) -> None:
        heads = self._heads()
        if all(head is None for head in heads):
            return
        times, positions = self._align(heads)
        rows_max = self._rows_max
        if len(times) > 2 * rows_max:
            self._quota = max(self._quota // 2, _QUOTA_MIN)
        elif len(times) < rows_max // 2:
            self._quota = min(self._quota * 2, rows_max)
        columns: list[Column] = []
        for head, at, types in zip(heads, positions, self._types, strict=True):
            if head is None:
                columns += [Column.nulls(type_, len(times)) for type_ in types]
            else:
                columns += [_scatter(column, at, len(times)) for column in head.columns]
        joined = Block.timed(times, columns)
        self._pending = [joined]
        if len(times) > rows_max:
            self._pending = [joined.slice(at, at + rows_max) for at in range(0, len(times), rows_max)]
        self._joined_bytes = joined.nbytes
        self._account()

    def _heads(self) -> list[Block | None]:
        """Remove and return the rows of each child up to the common border."""
        ends = []
        for child, rest in zip(self._children, self._rest, strict=True):
            if rest is not None and (rest.rows > self._quota or not child.finished):
                ends.append(int(rest.times[min(rest.rows, self._quota) - 1]))
        border = None if not ends else max(ends) if self._descending else min(ends)
        heads: list[Block | None] = []
        for number, rest in enumerate(self._rest):
            stop = 0 if rest is None else self._rows_until(rest.times, border)
            if rest is None or stop == 0:
                heads.append(None)
            else:
                heads.append(rest if stop == rest.rows else rest.slice(0, stop))
                self._rest[number] = None if stop == rest.rows else rest.slice(stop, rest.rows)
        return heads

    def _rows_until(self, times: Int64Array, border: int | None) -> int:
        """Return the number of rows before or at the border."""
        if border is None:
            return len(times)
        if self._descending:
            return len(times) - int(np.searchsorted(times[::-1], border))
        return int(np.searchsorted(times, border, side="right"))

    def _align(self, heads: list[Block | None]) -> tuple[Int64Array, list[Int64Array | None]]:
        """Return the union of times, and each head's positions in the union (None if the head has all the times)."""
        blocks = [head for head in heads if head is not None]
        first = blocks[0].times
        if all(block.times is first or np.array_equal(block.times, first) for block in blocks[1:]):
            return first, [None] * len(heads)
        arrays = [np.ascontiguousarray(block.times[::-1] if self._descending else block.times) for block in blocks]
        times, found = union_times(arrays)
        if self._descending:
            times = np.ascontiguousarray(times[::-1])
            found = [np.ascontiguousarray(len(times) - 1 - at[::-1]) for at in found]
        places = iter(found)
        return times, [None if head is None else next(places) for head in heads]


def _scatter(column: Column, at: Int64Array | None, count: int) -> Column:
    """Return a column of `count` rows with the column's values at the ascending positions `at`, and nulls elsewhere."""
    if at is None or len(at) == count:
        return column
    valid = np.zeros(count, np.bool_)
    valid[at] = True if column.valid is None else column.valid
    if isinstance(column.values, TextArray):
        text = column.values
        lengths = np.zeros(count, np.int32)
        lengths[at] = np.diff(text.offsets)
        offsets = np.empty(count + 1, np.int32)
        offsets[0] = text.offsets[0]
        np.cumsum(lengths, out=offsets[1:])
        offsets[1:] += text.offsets[0]
        return Column(column.type, TextArray(offsets, text.data), valid)
    values = np.zeros(count, column.values.dtype)
    values[at] = column.values
    return Column(column.type, values, valid)
