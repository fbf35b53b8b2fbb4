"""Fill: replaces nulls of the result, column by column.

    previous   the last value above the row; a bound limits how far away in time that value may be
    linear     interpolated by time between the last value above the row and the next value below it, for numbers, times
               and dates (in days); nulls before the first value and after the last value remain
    value      a constant, if the node has a constant for the column

`linear` holds rows back until the next value of every interpolated column has arrived. If the rows exceed the
operator's share of the query's memory, they are spilled to a file; only the first values of each block stay in memory.

    blocks     [ 1 . ]  [ . . ]  [ . 5 ]      the first two are returned once the 5 has arrived: 1 2, 3 4
"""

from __future__ import annotations

from collections import deque

import numpy as np

from saros_engine.evaluation.evaluate import constant_column
from saros_engine.operators.base import BlockwiseOperator, PullOperator
from saros_engine.operators.block_buffer import BlockBuffer
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan.plan import FillKind, FillNode
from saros_storage.base.block import Block, Column
from saros_storage.base.dates import dates_of, days_of
from saros_storage.base.types import NUMPY_DTYPE, BoolArray, DataType, Int64Array, NumericArray, Scalar

#: A value as a number that can be interpolated, and its time.
_Point = tuple[float, int]
#: The types whose values are interpolated although they are not numeric: in whole ticks or in whole days.
_WHOLE = frozenset({DataType.TIMESTAMP, DataType.DATE})
#: Doubles represent integers below this magnitude, and their differences, exactly.
_DOUBLE_WHOLE_MAX = 1 << 52


class FillOperator(BlockwiseOperator):
    """Fills by PREVIOUS or VALUE. Each block of the child becomes one block."""

    def __init__(self, node: FillNode, child: Operator, context: OperatorContext) -> None:
        super().__init__("Fill", context, child, detail=node.kind.value)
        self._kind = node.kind
        self._values = node.values
        self._bound = node.bound
        #: For each column number, the last value (as a column of one row) and its time.
        self._last: dict[int, tuple[Column, int]] = {}

    def _made_of(self, block: Block) -> Block | None:
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
    """Return the column with nulls replaced, and for each row the last row with a value at or above it, or -1."""
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
    """Fills by LINEAR. Rows wait for the next value of each interpolated column."""

    def __init__(self, node: FillNode, child: Operator, context: OperatorContext) -> None:
        super().__init__("Fill", context, (child,), detail=node.kind.value)
        self._child = child
        #: The blocks with rows that were not returned yet. `_at` is the number of returned rows of the first of these
        #: blocks; `_first` is the number of that block among all blocks.
        self._waiting = BlockBuffer(context.spill)
        self._at = self._first = 0
        #: How many rows were received, how many were returned, and how many can be returned without later values.
        self._rows = self._given = self._settled = 0
        #: For each interpolated column, the number of rows up to and including its last value.
        self._known = {n: 0 for n, field in enumerate(node.fields) if field.type.is_numeric or field.type in _WHOLE}
        #: For each interpolated column, the last value above the waiting rows, and the first value of each waiting
        #: block that has a value.
        self._above: dict[int, _Point] = {}
        self._below: dict[int, deque[tuple[int, _Point]]] = {number: deque() for number in self._known}

    def _next(self) -> Block | None:
        if self._given < self._settled:
            return self._give()
        if self._child.finished:
            self._settled = self._rows
            self._finished = self._given == self._rows
            return None
        block = self._child.next()
        if block is None or block.time is None:
            return block
        self._buffer(block)
        return self._give() if self._given < self._settled else None

    def _buffer(self, block: Block) -> None:
        number = self._first + len(self._waiting)
        for place in self._known:
            column = block.columns[place]
            edges = (0, block.rows - 1) if column.valid is None else _edges(column.valid)
            if edges is not None:
                self._known[place] = self._rows + edges[1] + 1
                self._below[place].append((number, _point(column, block, edges[0])))
        self._waiting.append(block)
        self._rows += block.rows
        self._settled = max(self._given, min(self._known.values(), default=self._rows))
        if not self._may_hold(self._waiting.nbytes):
            if not self._waiting.in_files:
                self._statistics.detail += " in files"
            self._waiting.spill_to_file()
            self._hold(0)

    def _give(self) -> Block:
        """Return the rows of the first block that can be returned without later values."""
        whole = self._waiting.first()
        rest = whole.slice(self._at, whole.rows)
        count = min(rest.rows, self._settled - self._given)
        for points in self._below.values():
            while points and points[0][0] <= self._first:
                points.popleft()
        columns = [
            self._interpolate(number, column, rest.times) if number in self._known else column
            for number, column in enumerate(rest.columns)
        ]
        self._move_on(rest.slice(0, count), whole.rows)
        return Block(rest.time, tuple(columns), rest.rows).slice(0, count)

    def _move_on(self, given: Block, rows: int) -> None:
        for place in self._known:
            column = given.columns[place]
            edges = (0, given.rows - 1) if column.valid is None else _edges(column.valid)
            if edges is not None:
                self._above[place] = _point(column, given, edges[1])
        self._given += given.rows
        self._at += given.rows
        if self._at == rows:
            self._waiting.drop_first()
            self._at, self._first = 0, self._first + 1
        self._hold(self._waiting.nbytes)

    def _interpolate(self, number: int, column: Column, times: Int64Array) -> Column:
        if column.valid is None:
            return column
        rows = np.flatnonzero(column.valid)
        missing = np.flatnonzero(~column.valid)
        known_times, known = times[rows], _on_line(column, rows)
        above, below = self._above.get(number), self._below[number]
        if above is not None:
            known, known_times = np.insert(known, 0, above[0]), np.insert(known_times, 0, above[1])
        if below:
            known, known_times = np.append(known, below[0][1][0]), np.append(known_times, below[0][1][1])
        # Missing row i is between the known points after[i] - 1 and after[i].
        after = np.searchsorted(rows, missing) + (above is not None)
        inside = (after > 0) & (after < len(known))
        missing, after = missing[inside], after[inside]
        # The last row of a device and the first row of the next device may have the same time; there is no
        # interpolation between them.
        apart = known_times[after] != known_times[after - 1]
        missing, after = missing[apart], after[apart]
        values, valid = column.numbers.copy(), column.valid.copy()
        between = _cut_between if column.type is DataType.INT64 else _between
        found = between(known_times, known, times[missing], after)
        values[missing] = (dates_of(found) if column.type is DataType.DATE else found).astype(values.dtype)
        valid[missing] = True
        return Column(column.type, values, None if valid.all() else valid)

    def _release(self) -> None:
        self._waiting.close()


def _edges(valid: BoolArray) -> tuple[int, int] | None:
    """Return the first and the last row with a value, or None."""
    rows = np.flatnonzero(valid)
    return (int(rows[0]), int(rows[-1])) if len(rows) else None


def _point(column: Column, block: Block, row: int) -> _Point:
    return _on_line(column, np.array([row]))[0].item(), int(block.times[row])


def _on_line(column: Column, rows: Int64Array) -> NumericArray:
    """Convert values to numbers that can be interpolated: dates to days, and all but 64-bit integers to float64."""
    values = column.numbers[rows]
    if column.type is DataType.DATE:
        return days_of(values)
    return values if values.dtype == np.int64 else values.astype(np.float64)


def _cut_between(known_times: Int64Array, known: NumericArray, times: Int64Array, after: Int64Array) -> NumericArray:
    """Interpolate INT64 values, truncate the results towards zero, and avoid the rounding errors of large doubles."""
    if ((known > -_DOUBLE_WHOLE_MAX) & (known < _DOUBLE_WHOLE_MAX)).all():
        return _between(known_times, known.astype(np.float64), times, after).astype(np.int64)
    moments, whole = known_times.astype(object), known.astype(object)
    run = moments[after] - moments[after - 1]
    above = whole[after - 1] * run + (whole[after] - whole[after - 1]) * (times - moments[after - 1])
    return (np.sign(above) * (abs(above) // abs(run)) * np.sign(run)).astype(np.int64)  # type: ignore[no-any-return]


def _between(known_times: Int64Array, known: NumericArray, times: Int64Array, after: Int64Array) -> NumericArray:
    """Interpolate between known points.

    The results are rounded down if they are integers, and not rounded if they are doubles.
    """
    before = after - 1
    rise, run, gone = (
        known[after] - known[before],
        known_times[after] - known_times[before],
        times - known_times[before],
    )
    with np.errstate(invalid="ignore", over="ignore"):
        steps = rise * (gone / run)
        if known.dtype.kind != "i":
            return known[before] + steps  # type: ignore[no-any-return]
    # As doubles, present-day times that differ by a few nanoseconds are equal, and 49 * (1 / 49) is not 1. Because the
    # remainder is a small integer, it is correct even if the products overflow.
    whole = np.floor(steps).astype(np.int64)
    return known[before] + whole + (rise * gone - whole * run) // run  # type: ignore[no-any-return]
