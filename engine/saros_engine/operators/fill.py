"""Fill: nulls of the result are replaced, column by column.

    previous   the last value above, in the order of the rows; with a bound only if it is at most so far away in time
    linear     between the value above and the next one below, by time; numbers only; nothing outside of them
    value      a constant, where the node has one for the column

Linear keeps rows back until the next value of every number column has come; they are accounted to the query.
"""

from __future__ import annotations

import numpy as np

from saros_engine.evaluate import constant_column
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan import FillKind, FillNode
from saros_storage.block import Block, Column
from saros_storage.types import NUMPY_DTYPE, DataType, Float64Array, Int64Array, Scalar


class FillOperator(PullOperator):
    """PREVIOUS and VALUE: one block in, one block out."""

    def __init__(self, node: FillNode, child: Operator, context: OperatorContext) -> None:
        super().__init__("Fill", context, (child,), detail=node.kind.value)
        self._child = child
        self._kind = node.kind
        self._values = node.values
        self._bound = node.bound
        #: Per column the last row that had a value: a column of one row, and its time.
        self._last: dict[int, tuple[Column, int]] = {}

    def _next(self) -> Block | None:
        if self._child.finished:
            self._finished = True
            return None
        block = self._child.next()
        if block is None:
            return None
        columns = []
        for number, column in enumerate(block.columns):
            if self._kind is FillKind.VALUE:
                columns.append(_with_value(column, self._values[number]))
            else:
                columns.append(self._with_previous(number, column, block))
        return Block(block.time, tuple(columns), block.rows)

    def _with_previous(self, number: int, column: Column, block: Block) -> Column:
        times = np.zeros(block.rows, np.int64) if block.time is None else block.time
        carried = self._last.get(number)
        if column.valid is None:
            self._last[number] = column.slice(len(column) - 1, len(column)), int(times[-1])
            return column
        if carried is not None:
            column = Column.concat([carried[0], column])
            times = np.concatenate((np.full(1, carried[1]), times))
        filled, source = _previous(column, times, self._bound)
        if source[-1] >= 0:
            at = int(source[-1])
            self._last[number] = column.slice(at, at + 1), int(times[at])
        return filled if carried is None else filled.slice(1, len(filled))


def _previous(column: Column, times: Int64Array, bound: int | None) -> tuple[Column, Int64Array]:
    """Nulls replaced, and for each row the last row with a value (-1: none)."""
    present = column.present
    source = np.maximum.accumulate(np.where(present, np.arange(len(column)), -1))
    usable = source >= 0
    if bound is not None:
        usable &= np.abs(times - times[np.maximum(source, 0)]) <= bound
    taken = column.take(np.where(usable, source, np.arange(len(column))))
    return Column(column.type, taken.values, None if usable.all() else usable), source


def _with_value(column: Column, value: Scalar) -> Column:
    if value is None or column.valid is None:
        return column
    if column.type.is_text:
        both = Column.concat([column, constant_column(column.type, value, 1)])
        rows = np.where(column.valid, np.arange(len(column)), len(column))
        return Column(column.type, both.text.take(rows))
    return Column(column.type, np.where(column.valid, column.numbers, NUMPY_DTYPE[column.type].type(value)))


class LinearFillOperator(PullOperator):
    """LINEAR: rows wait for the next value of each number column."""

    def __init__(self, node: FillNode, child: Operator, context: OperatorContext) -> None:
        super().__init__("Fill", context, (child,), detail=node.kind.value)
        self._child = child
        #: Rows that wait for a value below them.
        self._waiting: list[Block] = []
        #: Last known value and its time, per column: what the first waiting nulls are measured from.
        self._anchors: dict[int, tuple[float, int]] = {}

    def _next(self) -> Block | None:
        if self._child.finished:
            self._finished = True
            return self._fill_all(to_the_end=True)
        block = self._child.next()
        if block is None:
            return None
        if block.time is None:
            return block
        self._waiting.append(block)
        self._hold(sum(b.nbytes for b in self._waiting))
        # Without a value in this block, a column that waits goes on waiting: nothing can be answered.
        return self._fill_all(to_the_end=False) if self._may_answer(block) else None

    def _may_answer(self, block: Block) -> bool:
        numbers = [c for c in block.columns if _is_filled(c.type)]
        return all(c.valid is None or bool(c.valid.any()) for c in numbers)

    def _fill_all(self, *, to_the_end: bool) -> Block | None:
        if not self._waiting:
            return None
        block = Block.concat(self._waiting)
        stop = block.rows if to_the_end else self._settled(block)
        if stop == 0:
            self._waiting = [block]
            return None
        columns = [
            self._interpolate(number, column, block.times) if _is_filled(column.type) else column
            for number, column in enumerate(block.columns)
        ]
        result = Block(block.time, tuple(columns), block.rows).slice(0, stop)
        self._move_anchors(block.slice(0, stop))
        self._waiting = [] if stop == block.rows else [block.slice(stop, block.rows)]
        self._hold(sum(b.nbytes for b in self._waiting))
        return result

    def _settled(self, block: Block) -> int:
        """Rows before the first one that still waits for a value below it."""
        stop = block.rows
        for column in block.columns:
            if _is_filled(column.type) and column.valid is not None:
                present = np.flatnonzero(column.valid)
                stop = min(stop, int(present[-1]) + 1 if len(present) else 0)
        return stop

    def _interpolate(self, number: int, column: Column, times: Int64Array) -> Column:
        if column.valid is None:
            return column
        rows = np.flatnonzero(column.valid)
        missing = np.flatnonzero(~column.valid)
        known_times, known = times[rows], column.numbers[rows].astype(np.float64)
        anchor = self._anchors.get(number)
        if anchor is not None:
            known = np.concatenate((np.full(1, anchor[0]), known))
            known_times = np.concatenate((np.full(1, anchor[1]), known_times))
        # Row i lies between the known points after[i] - 1 and after[i].
        after = np.searchsorted(rows, missing) + (anchor is not None)
        inside = (after > 0) & (after < len(known))
        missing, after = missing[inside], after[inside]
        # The last row of a device and the first of the next one may have the same time: no line goes through them.
        apart = known_times[after] != known_times[after - 1]
        missing, after = missing[apart], after[apart]
        values, valid = column.numbers.copy(), column.valid.copy()
        values[missing] = _between(known_times, known, times[missing], after).astype(values.dtype)
        valid[missing] = True
        return Column(column.type, values, None if valid.all() else valid)

    def _move_anchors(self, block: Block) -> None:
        for number, column in enumerate(block.columns):
            rows = np.arange(len(column)) if column.valid is None else np.flatnonzero(column.valid)
            if _is_filled(column.type) and len(rows):
                self._anchors[number] = float(column.numbers[rows[-1]]), int(block.times[rows[-1]])


def _is_filled(type_: DataType) -> bool:
    return type_.is_numeric


def _between(known_times: Int64Array, known: Float64Array, times: Int64Array, after: Int64Array) -> Float64Array:
    """Points on the lines between known points; integers are cut off by the caller's cast."""
    before = after - 1
    share = (times - known_times[before]) / (known_times[after] - known_times[before])
    with np.errstate(invalid="ignore", over="ignore"):
        return known[before] + (known[after] - known[before]) * share
