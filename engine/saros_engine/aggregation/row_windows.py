"""Windows formed by the rows themselves: session, variation, condition, count.

A *splitter* reads the blocks of one operator in time order. A splitter selects the rows that belong to windows, and
marks each selected row that begins a window. No window contains the other rows: those that fail the condition, and with
ignoreNull, those whose control is null. The *control* is the expression that is written in the window clause.

    session     a window begins where the time since the previous row exceeds the gap
    variation   a window begins where the control differs by more than delta from the first value of the current window;
                if delta is 0, a window begins where the control changes
    condition   a window is a run of rows for which the predicate is true; it is kept if its length satisfies KEEP
    count       a window begins after every `size` rows; a last window with fewer rows is dropped

Unless nulls are ignored, rows whose control is null form separate windows (variation), end a run (condition), or count
like other rows (count). The label of a window is the time of its first row; its end is the time of its last row. Each
splitter is used by only one operator.
"""

from __future__ import annotations

import operator
from typing import Protocol

import msgspec
import numpy as np

from saros_engine.aggregation.aggregation import STATE_BYTES_MAX, WINDOW_ROWS_MAX, Calls, StateTable
from saros_engine.evaluation.evaluate import compile_expression
from saros_engine.expressions.text import text_ranks
from saros_engine.plan.expression import InputTime
from saros_engine.plan.plan import (
    AggregateCall,
    ConditionWindows,
    CountWindows,
    SessionWindows,
    Stage,
    VariationWindows,
)
from saros_storage.base.block import Block, Column
from saros_storage.base.dates import days_of
from saros_storage.base.types import FLOATING_TYPES, BoolArray, DataType, Int64Array
from saros_storage.kernels.windows import variation_starts, variation_starts_i64
from saros_storage.read.row_ranges import RowRanges

RowWindows = SessionWindows | VariationWindows | ConditionWindows | CountWindows

#: The largest possible difference between two 64-bit integers.
_DELTA_MAX = 2**64 - 1

_KEEP = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Split(msgspec.Struct, frozen=True):
    """The rows of a block that belong to windows; for each row, `begins` is true if the row begins a window."""

    rows: Int64Array
    begins: BoolArray


class Splitter(Protocol):
    """Divides the rows of one operator into windows of one kind."""

    def split(self, block: Block) -> Split:
        """Return the rows of the next block that belong to windows."""
        ...

    def keeps(self, lengths: Int64Array) -> BoolArray:
        """Return for each window whether the result includes the window.

        `lengths` has the number of rows of each window.
        """
        ...


def splitter(windows: RowWindows) -> Splitter:
    """Return the splitter for windows of this kind."""
    match windows:
        case SessionWindows(gap):
            return _Session(gap)
        case VariationWindows():
            return _Variation(windows)
        case ConditionWindows():
            return _Condition(windows)
        case CountWindows():
            return _Count(windows)


def _all(lengths: Int64Array) -> BoolArray:
    return np.ones(len(lengths), np.bool_)


class _Session:
    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._last: int | None = None

    def split(self, block: Block) -> Split:
        times = block.times
        begins = np.empty(block.rows, np.bool_)
        # Times ascend, so the difference is exact as an unsigned number, even if it exceeds the range of INT64.
        begins[1:] = (times[1:] - times[:-1]).view(np.uint64) > self._gap
        begins[0] = self._last is None or int(times[0]) - self._last > self._gap
        self._last = int(times[-1])
        return Split(np.arange(block.rows), begins)

    def keeps(self, lengths: Int64Array) -> BoolArray:
        return _all(lengths)


class _Variation:
    def __init__(self, windows: VariationWindows) -> None:
        self._control = compile_expression(windows.control)
        self._delta = windows.delta
        self._ignore_null = windows.ignore_null
        #: The value of the previous row. If delta is 0, this is also the window's first value, as all its values are
        #: equal.
        self._before: Column | None = None
        #: The first value of the current window, if delta is greater than 0.
        self._base: float = 0

    def split(self, block: Block) -> Split:
        column = self._control(block)
        rows = np.arange(block.rows)
        if self._ignore_null and column.valid is not None:
            rows = np.flatnonzero(column.valid)
            column = column.take(rows)
        if len(rows) == 0:
            return Split(rows, np.empty(0, np.bool_))
        sequence = column if self._before is None else Column.concat([self._before, column])
        begins = self._far(column) if self._delta > 0 else self._changes(sequence)
        if self._before is None and self._delta <= 0:
            begins = np.concatenate((np.ones(1, np.bool_), begins))
        if not self._ignore_null and column.valid is not None:
            # Neighbouring nulls count as equal, although the values stored in their places are arbitrary.
            present = sequence.present
            both_null = ~present[1:] & ~present[:-1]
            begins[len(begins) - len(both_null) :][both_null] = False
        self._before = column.slice(len(column) - 1, len(column))
        return Split(rows, begins)

    def _changes(self, sequence: Column) -> BoolArray:
        """Return a flag for each row except the first: true if the value differs from the previous row's value."""
        keys = text_ranks(sequence.text) if sequence.type.is_text else sequence.numbers
        changed = keys[1:] != keys[:-1]
        if sequence.valid is not None:
            both = sequence.valid[1:] & sequence.valid[:-1]
            changed = np.where(both, changed, sequence.valid[1:] != sequence.valid[:-1])
        return np.asarray(changed)

    def _far(self, column: Column) -> BoolArray:
        """Return a flag per row: true if the row's value differs by more than delta from the window's first value.

        Integers are compared exactly; DATE values are compared as days.
        """
        begins = np.empty(len(column), np.bool_)
        valid = np.empty(0, np.bool_) if column.valid is None else column.valid
        has_base = int(self._before is not None and bool(self._before.present[0]))
        if column.type in FLOATING_TYPES:
            values = column.numbers.astype(np.float64)
            self._base = float(variation_starts(values, valid, self._delta, self._base, has_base, begins))
            return begins
        whole = days_of(column.numbers) if column.type is DataType.DATE else column.numbers.astype(np.int64)
        delta = int(self._delta) if self._delta < _DELTA_MAX else _DELTA_MAX
        self._base = int(variation_starts_i64(whole, valid, delta, int(self._base), has_base, begins))
        return begins

    def keeps(self, lengths: Int64Array) -> BoolArray:
        return _all(lengths)


class _Condition:
    def __init__(self, windows: ConditionWindows) -> None:
        self._predicate = compile_expression(windows.predicate)
        self._ignore_null = windows.ignore_null
        self._keep = _KEEP[windows.keep_operator]
        self._keep_count = windows.keep_count
        #: True if the last row (if nulls are ignored: the last row that is not null) was in a window.
        self._open = False

    def split(self, block: Block) -> Split:
        column = self._predicate(block)
        holds = column.numbers if column.valid is None else column.numbers & column.valid
        rows = np.arange(block.rows)
        if self._ignore_null and column.valid is not None:
            rows = np.flatnonzero(column.valid)
            holds = holds[rows]
        if len(rows) == 0:
            return Split(rows, np.empty(0, np.bool_))
        before = np.concatenate((np.full(1, self._open), holds[:-1]))
        self._open = bool(holds[-1])
        return Split(rows[holds], ~before[holds])

    def keeps(self, lengths: Int64Array) -> BoolArray:
        return np.asarray(self._keep(lengths, self._keep_count))


class _Count:
    def __init__(self, windows: CountWindows) -> None:
        self._control = compile_expression(windows.control)
        self._size = windows.size
        self._ignore_null = windows.ignore_null
        self._seen = 0

    def split(self, block: Block) -> Split:
        rows = np.arange(block.rows)
        valid = self._control(block).valid if self._ignore_null else None
        if valid is not None:
            rows = np.flatnonzero(valid)
        begins = (self._seen + np.arange(len(rows))) % self._size == 0
        self._seen += len(rows)
        return Split(rows, begins)

    def keeps(self, lengths: Int64Array) -> BoolArray:
        return np.asarray(lengths == self._size)


class RowWindowAggregation:
    """An `Aggregation` (see `aggregation.py`) over windows formed by the rows; results are in time order."""

    def __init__(self, calls: tuple[AggregateCall, ...], stage: Stage, windows: RowWindows, *, with_end: bool) -> None:
        time = InputTime()
        # The states of the calls are preceded by the first time, the last time and the number of rows of each window.
        bounds = tuple(AggregateCall(name, (time,), DataType.TIMESTAMP) for name in ("min_time", "max_time"))
        self._calls = Calls((*bounds, AggregateCall("count", (time,), DataType.INT64), *calls), stage)
        self._values = Calls(calls, stage)
        self._splitter = splitter(windows)
        self._with_end = with_end
        self._table = StateTable(self._calls)
        #: The number of windows that have begun; later rows may belong to the last of them.
        self._begun = 0
        #: The number of windows whose results were taken.
        self._taken = 0
        self._finished = False

    @property
    def nbytes(self) -> int:
        """See `Aggregation`."""
        return self._table.nbytes

    def add_block(self, block: Block) -> None:
        """See `Aggregation`."""
        split = self._splitter.split(block)
        if len(split.rows) == 0:
            return
        numbers = self._begun - 1 + np.cumsum(split.begins)
        heads = np.flatnonzero(np.concatenate((np.ones(1, np.bool_), numbers[1:] != numbers[:-1])))
        slices = RowRanges(heads, np.append(heads[1:], len(numbers)))
        rows = block if len(split.rows) == block.rows else block.take(split.rows)
        self._table.add(numbers[heads], self._calls.states(rows, slices))
        self._begun = int(numbers[-1]) + 1

    def finish(self) -> None:
        """See `Aggregation`."""
        self._finished = True

    def take(self) -> Block | None:
        """See `Aggregation`."""
        complete = self._begun if self._finished else self._begun - 1
        while complete > self._taken and (self._finished or self._enough(complete - self._taken)):
            low, self._taken = self._taken, min(complete, self._taken + WINDOW_ROWS_MAX)
            states = self._table.rows(low, self._taken)
            self._table.keep(lambda slots: slots >= self._taken)
            kept = np.flatnonzero(self._splitter.keeps(states[2].numbers))
            if len(kept):
                return self._block([column.take(kept) for column in states])
        return None

    def _enough(self, windows: int) -> bool:
        return windows >= WINDOW_ROWS_MAX or self.nbytes >= STATE_BYTES_MAX

    def _block(self, states: list[Column]) -> Block:
        columns = self._values.results(states[3:])
        if self._with_end:
            columns.insert(0, Column(DataType.INT64, states[1].numbers))
        return Block.timed(states[0].numbers, columns)
