"""Aggregate a stream of blocks into windows, without I/O. The operators AggregateScan and Aggregate use this module.

    add_block / add_summaries ->  StateTable (window number -> partial states)  ->  take  ->  blocks of results

`StateTable` holds partial states in parts, one per block, and merges the states of a window only when they are read.
Complete windows are removed from the table, so the table stays about as large as one block, however many windows there
are. `take` returns values in the stages SINGLE and FINAL, and states in the stages PARTIAL and MERGE.

    GlobalAggregation     one row of results in all
    TimeAggregation       windows over time, including empty windows; sliding windows use panes (`windows.py`)
    LabelAggregation      one row per label; each input row holds states, and its time is the label of its window

Windows formed by rows (session, variation, condition, count) are in `row_windows.py`. Each aggregation is used by only
one operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from saros_engine.aggregation.windows import WindowSequence, cut, spans_inside
from saros_engine.evaluation.evaluate import Compiled, compile_expression
from saros_engine.functions.aggregate import Aggregate, Rows
from saros_engine.functions.aggregates import retyped
from saros_engine.functions.registry import aggregate_of
from saros_engine.plan.expression import InputColumn
from saros_engine.plan.plan import AggregateCall, Stage
from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType, Int64Array
from saros_storage.read.row_ranges import RowRanges
from saros_storage.scan.reading import SpanStatistics, Summaries

#: The number of rows per block of results. Such a block is large enough to amortize its cost, and small enough that
#: 1,000 series can be aggregated at the same time.
WINDOW_ROWS_MAX = 4_096
#: Once the states take this many bytes, complete windows are returned even if they do not fill a block.
STATE_BYTES_MAX = 16 << 20
#: When a state table has this many parts, the states of each window are merged into one row. A merge reads all parts.
_PARTS_MAX = 256


class Calls:
    """The compiled calls of aggregate functions in one aggregation."""

    def __init__(self, calls: Sequence[AggregateCall], stage: Stage) -> None:
        self.calls = tuple(calls)
        self.stage = stage
        self.aggregates: list[Aggregate] = [aggregate_of(call) for call in calls]
        self._arguments: list[list[Compiled]] = [[compile_expression(a) for a in call.arguments] for call in calls]
        self._reads_states = stage in (Stage.FINAL, Stage.MERGE)
        #: The types of the state columns of each call.
        self.types: list[tuple[DataType, ...]] = [
            tuple(a.type for a in call.arguments)
            if self._reads_states
            else aggregate.state_types([a.type for a in call.arguments])
            for call, aggregate in zip(calls, self.aggregates, strict=True)
        ]

    def states(self, block: Block, slices: RowRanges) -> list[Column]:
        """Return the state columns of all calls, in the order of the calls, with one row per slice of the block."""
        result: list[Column] = []
        time = Column(DataType.TIMESTAMP, np.zeros(block.rows, np.int64) if block.time is None else block.time)
        for aggregate, arguments in zip(self.aggregates, self._arguments, strict=True):
            columns = [argument(block) for argument in arguments]
            if self._reads_states:
                result += aggregate.merge(columns, slices)
            else:
                result += aggregate.partial(Rows(columns, time), slices)
        return result

    def merge(self, states: Sequence[Column], slices: RowRanges) -> list[Column]:
        """Merge the rows of `states` in each slice into one row."""
        result: list[Column] = []
        for aggregate, part in self._per_call(states):
            result += aggregate.merge(part, slices)
        return result

    def results(self, states: Sequence[Column]) -> list[Column]:
        """Return the results of the stage: the states themselves, or values of the calls' types."""
        if self.stage in (Stage.PARTIAL, Stage.MERGE):
            return list(states)
        pairs = zip(self.calls, self._per_call(states), strict=True)
        return [retyped(call.type, aggregate.final(part)) for call, (aggregate, part) in pairs]

    def summary(self, known: Sequence[SpanStatistics]) -> list[Column]:
        """Compute the state columns of all calls from statistics of the input columns over spans of rows.

        Each span becomes one row.
        """
        result: list[Column] = []
        for call, aggregate in zip(self.calls, self.aggregates, strict=True):
            argument = call.arguments[0]
            assert isinstance(argument, InputColumn)
            result += aggregate.summary(known[argument.index])
        return result

    def windowed(self, block: Block, windows: WindowSequence) -> tuple[Int64Array, list[Column]]:
        """Return the numbers of the windows that contain rows of the block, and one row of states per window.

        The windows must not overlap, and the block's times must ascend.
        """
        numbers, slices = cut(windows, block.times)
        filled = slices.starts < slices.stops
        if not filled.all():
            numbers, slices = numbers[filled], RowRanges(slices.starts[filled], slices.stops[filled])
        return numbers, self.states(block, slices)

    def empty(self) -> list[Column]:
        """Return the state columns of all calls, without any rows."""
        return [Column.nulls(type_, 0) for types in self.types for type_ in types]

    def _per_call(self, states: Sequence[Column]) -> list[tuple[Aggregate, Sequence[Column]]]:
        result, at = [], 0
        for aggregate, types in zip(self.aggregates, self.types, strict=True):
            result.append((aggregate, states[at : at + len(types)]))
            at += len(types)
        return result


class StateTable:
    """A table of partial states, keyed by window number (*slot*)."""

    def __init__(self, calls: Calls, *, newest_first: bool = False) -> None:
        self._calls = calls
        #: True if parts are added in descending order of time.
        self._newest_first = newest_first
        #: For each part, its slots in ascending order (a slot may occur repeatedly) and their state columns.
        self._parts: list[tuple[Int64Array, list[Column]]] = []
        #: The size of the slots and states in bytes.
        self.nbytes = 0

    def add(self, slots: Int64Array, states: list[Column]) -> None:
        """Add one state row for each of `slots`, which must be sorted; rows of the same slot must be in time order."""
        if len(slots):
            self._parts.append((slots, states))
            self.nbytes += _bytes_of(slots, states)
        if len(self._parts) >= _PARTS_MAX:
            self._compact()

    def rows(self, low: int, high: int) -> list[Column]:
        """Return one state row for each slot in [low, high); a slot without states has the state of an empty window."""
        slots, states = self._sorted()
        first, stop = np.searchsorted(slots, np.array([low, high])).tolist()
        stops = np.cumsum(np.bincount(slots[first:stop] - low, minlength=high - low)) + first
        starts = np.concatenate((np.full(1, first, np.int64), stops[:-1]))
        return self._calls.merge(states, RowRanges(starts, stops))

    def merged(self) -> tuple[Int64Array, list[Column]]:
        """Return the slots that have states, in ascending order, and one state row for each."""
        self._compact()
        return self._parts[0] if self._parts else (np.empty(0, np.int64), self._calls.empty())

    def keep(self, wanted: Callable[[Int64Array], np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]) -> None:
        """Remove the slots that are not `wanted`."""
        kept = []
        for slots, states in self._parts:
            rows = np.flatnonzero(wanted(slots))
            if len(rows):
                kept.append((slots[rows], [column.take(rows) for column in states]))
        self._parts = kept
        self.nbytes = sum(_bytes_of(*part) for part in kept)

    def _sorted(self) -> tuple[Int64Array, list[Column]]:
        """Return the rows of all parts, sorted by slot, then by time."""
        if not self._parts:
            return np.empty(0, np.int64), self._calls.empty()
        parts = self._parts[::-1] if self._newest_first else self._parts
        slots = np.concatenate([part[0] for part in parts])
        columns = [Column.concat(column) for column in zip(*(part[1] for part in parts), strict=True)]
        if len(slots) > 1 and (slots[1:] < slots[:-1]).any():
            order = np.argsort(slots, kind="stable")
            slots, columns = slots[order], [column.take(order) for column in columns]
        return slots, columns

    def _compact(self) -> None:
        """Merge the states of each slot into one row."""
        slots, states = self._sorted()
        if len(slots) == 0:
            return
        starts = np.flatnonzero(np.concatenate((np.ones(1, np.bool_), slots[1:] != slots[:-1])))
        merged = self._calls.merge(states, RowRanges(starts, np.append(starts[1:], len(slots))))
        self._parts = [(slots[starts], merged)]
        self.nbytes = _bytes_of(*self._parts[0])


def _bytes_of(slots: Int64Array, states: list[Column]) -> int:
    return slots.nbytes + sum(column.nbytes for column in states)


class Aggregation(Protocol):
    """An aggregation of one stream of blocks, which are added in the order of the stream."""

    @property
    def nbytes(self) -> int:
        """The number of bytes that the aggregation holds in memory between calls."""
        ...

    def add_block(self, block: Block) -> None:
        """Add the rows of a block."""
        ...

    def finish(self) -> None:
        """Record that the stream has ended."""
        ...

    def take(self) -> Block | None:
        """Remove complete results and return them as a block; return None while they do not fill a block.

        After `finish`, return the remaining results block by block, then None.
        """
        ...


class GlobalAggregation:
    """Aggregation of all rows into one row of results without a time."""

    def __init__(self, calls: Calls, *, newest_first: bool = False) -> None:
        self._calls = calls
        self._newest_first = newest_first
        self._table = StateTable(calls, newest_first=newest_first)
        self._finished = False
        self._taken = False

    @property
    def nbytes(self) -> int:
        """See `Aggregation`."""
        return self._table.nbytes

    def add_block(self, block: Block) -> None:
        """See `Aggregation`."""
        block = block.reversed() if self._newest_first else block
        whole = RowRanges(np.zeros(1, np.int64), np.full(1, block.rows, np.int64))
        self._table.add(np.zeros(1, np.int64), self._calls.states(block, whole))

    def add_summaries(self, summaries: Summaries) -> None:
        """Add the statistics of spans of rows instead of the rows themselves."""
        states = self._calls.summary((summaries.reversed() if self._newest_first else summaries).columns)
        self._table.add(np.zeros(summaries.rows, np.int64), states)

    def finish(self) -> None:
        """See `Aggregation`."""
        self._finished = True

    def take(self) -> Block | None:
        """See `Aggregation`."""
        if not self._finished or self._taken:
            return None
        self._taken = True
        return Block.untimed(self._calls.results(self._table.rows(0, 1)), 1)


class TimeAggregation:
    """Aggregation into windows over time. If `descending`, blocks and results are in descending order of time."""

    def __init__(
        self,
        calls: Calls,
        windows: WindowSequence,
        panes: WindowSequence | None,
        *,
        label_end: bool = False,
        with_end: bool = False,
        descending: bool = False,
        rows_max: int = WINDOW_ROWS_MAX,
    ) -> None:
        """`rows_max` is the number of rows per block of results."""
        self._calls = calls
        self._rows_max = rows_max
        self._windows = windows
        #: The slots of the state table: the windows, or the panes of overlapping windows.
        self._cells = windows if panes is None else panes
        self._sliding = panes is not None
        self._label_end = label_end
        self._with_end = with_end
        self._descending = descending
        self._table = StateTable(calls, newest_first=descending)
        #: The complete windows that have not been taken yet: [low, border) if ascending, [border, high) if descending.
        self._low = 0
        self._high = windows.count if descending else 0
        #: Ascending: the number of the first incomplete window. Descending: the number of the last incomplete window,
        #: plus one.
        self._border = windows.count if descending else 0
        self._finished = False

    @property
    def nbytes(self) -> int:
        """See `Aggregation`."""
        return self._table.nbytes

    def add_block(self, block: Block) -> None:
        """See `Aggregation`."""
        block = block.reversed() if self._descending else block
        self._table.add(*self._calls.windowed(block, self._cells))
        self._advance(int(block.times[0]), int(block.times[-1]))

    def add_summaries(self, summaries: Summaries) -> None:
        """Add the statistics of spans of rows instead of the rows themselves.

        Each span must be inside one window (or pane, if windows overlap), or in a gap between windows.
        """
        starts, ends = summaries.starts, summaries.ends
        if not (starts <= ends).any():
            return
        spans, cells = spans_inside(self._cells, starts, ends)
        if self._descending:
            spans, cells = spans[::-1], cells[::-1]
        if len(spans):
            self._table.add(cells, [column.take(spans) for column in self._calls.summary(summaries.columns)])
        self._advance(int(starts.min()), int(ends.max()))

    def finish(self) -> None:
        """See `Aggregation`."""
        self._finished = True
        self._border = 0 if self._descending else self._windows.count

    def take(self) -> Block | None:
        """See `Aggregation`."""
        ready = self._high - self._border if self._descending else self._border - self._low
        enough = self._finished or ready >= self._rows_max or self.nbytes >= STATE_BYTES_MAX
        if ready <= 0 or not enough:
            return None
        count = min(ready, self._rows_max)
        if self._descending:
            low, high = self._high - count, self._high
            self._high = low
        else:
            low, high = self._low, self._low + count
            self._low = high
        result = self._results(low, high)
        self._forget()
        return result.reversed() if self._descending else result

    def _advance(self, first: int, last: int) -> None:
        """Move the border between the complete windows and the incomplete windows.

        `first` and `last` are the first and the last time of the rows that were just added.
        """
        if self._descending:
            self._border = min(self._border, self._windows.count_starting_until(first - 1))
        else:
            self._border = max(self._border, self._windows.first_ending_after(last + 1))

    def _results(self, low: int, high: int) -> Block:
        starts, ends = self._windows.starts(low, high), self._windows.ends(low, high)
        columns = self._calls.results(self._states(low, high, starts, ends))
        if self._with_end:
            columns.insert(0, Column(DataType.INT64, ends - 1))
        return Block.timed(ends - 1 if self._label_end else starts, columns)

    def _states(self, low: int, high: int, starts: Int64Array, ends: Int64Array) -> list[Column]:
        if not self._sliding:
            return self._table.rows(low, high)
        first, stop = self._cells.index_of(starts), self._cells.index_of(ends - 1) + 1
        base = int(first[0])
        states = self._table.rows(base, int(stop[-1]))
        return self._calls.merge(states, RowRanges(first - base, stop - base))

    def _forget(self) -> None:
        """Drop the states of the windows (or panes) that no later result needs."""
        if self._descending:
            if self._high:
                stop = int(self._windows.ends(self._high - 1, self._high)[0])
                self._table.keep(lambda slots: slots < self._cells.count_starting_until(stop - 1))
        elif self._low < self._windows.count:
            start = int(self._windows.starts(self._low, self._low + 1)[0])
            self._table.keep(lambda slots: slots >= self._cells.first_ending_after(start))


class LabelAggregation:
    """Aggregation of partial states by label: the time of each row is the label of its window.

    Any number of producers may add states, in any order; the results have one row per label.
    """

    def __init__(self, calls: Calls, end_of: Callable[[Int64Array], Int64Array] | None) -> None:
        self._calls = calls
        #: Maps the label of each window to the last time of this window; None if the results have no column of window
        #: ends.
        self._end_of = end_of
        self._table = StateTable(calls)
        #: The labels in ascending order, and for each label its row of states; None before `finish`.
        self._merged: tuple[Int64Array, list[Column]] | None = None
        self._taken = 0

    @property
    def nbytes(self) -> int:
        """See `Aggregation`."""
        return self._table.nbytes

    def add_block(self, block: Block) -> None:
        """See `Aggregation`."""
        order = np.argsort(block.times, kind="stable")
        block = block.take(order) if (order[1:] < order[:-1]).any() else block
        rows = np.arange(block.rows, dtype=np.int64)
        self._table.add(block.times, self._calls.states(block, RowRanges(rows, rows + 1)))

    def finish(self) -> None:
        """See `Aggregation`."""
        self._merged = self._table.merged()

    def take(self) -> Block | None:
        """See `Aggregation`."""
        if self._merged is None or self._taken == len(self._merged[0]):
            return None
        labels, states = self._merged
        low, self._taken = self._taken, min(len(labels), self._taken + WINDOW_ROWS_MAX)
        labels = labels[low : self._taken]
        columns = self._calls.results([column.slice(low, self._taken) for column in states])
        if self._end_of is not None:
            columns.insert(0, Column(DataType.INT64, self._end_of(labels)))
        return Block.timed(labels, columns)
