"""The aggregate functions whose state consists of a few simple columns: `BASIC_AGGREGATES`.

An aggregate is three pure functions over columns, so it works in the same way on rows, on states received from other
nodes, and on stored statistics:

    partial   rows, cut into slices            -> one row of state columns per slice
    merge     states, cut into slices          -> one row of state columns per slice (in time order within a slice)
    final     states                           -> values

A state is a row of columns (`state_types`), and states are sent as blocks. The state of no rows is null (0 for counts),
and merging this state into another one changes nothing. Sums are DOUBLE; values are added in row order. Min, max and
extreme skip NaN unless all values are NaN. If min, max or extreme is zero, it is always 0.0, since statistics may
contain 0.0 or -0.0. Without rows, `count` is 0 and all other results are null.

    count                   count INT64                     first_value, last_value   value, its time
    sum                     sum                             min_time, max_time        time
    avg                     count, sum                      time_duration             first time, last time
    min_value, max_value,   value                           max_by, min_by            y, x, time of both
    extreme

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saros_engine.expressions.integer_arithmetic import subtracted
from saros_engine.expressions.text import text_ranks
from saros_engine.functions.aggregate import Aggregate, Rows, States, nullable
from saros_storage.base.block import Column
from saros_storage.base.types import FLOATING_TYPES, NUMERIC_TYPES, NUMPY_DTYPE, DataType, Int64Array
from saros_storage.read.row_ranges import RowRanges, counts_of, edges_of, extremes_of, pick, prefix_sums, sums_of
from saros_storage.scan.reading import SpanStatistics

_ORDERED = NUMERIC_TYPES | {DataType.STRING, DataType.TIMESTAMP, DataType.DATE}


def retyped(type_: DataType, column: Column) -> Column:
    """Return the column with the type that a call declares."""
    if column.type is type_ or type_.is_text:
        return Column(type_, column.values, column.valid)
    return Column(type_, column.numbers.astype(NUMPY_DTYPE[type_], copy=False), column.valid)


# ---------------------------------------------------------------------------------------------- columns


def _extremes(column: Column, slices: RowRanges) -> tuple[Int64Array, Int64Array]:
    """Return for each slice the positions of the first smallest and the first largest value; -1 if all are null."""
    if column.type.is_text:
        column = Column(DataType.INT64, text_ranks(column.text), column.valid)
    return extremes_of(column, slices)


# ---------------------------------------------------------------------------------------------- count, sum, avg


class _Count(Aggregate):
    """count: the number of non-null values."""

    result = DataType.INT64
    summarised: frozenset[DataType] | None = frozenset(DataType)

    state = (DataType.INT64,)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        return [Column(DataType.INT64, counts_of(rows.columns[0], slices))]

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        # When the windows of different fragments were joined, nulls may have replaced missing counts.
        counts = np.where(states[0].present, states[0].numbers, 0)
        return [Column(DataType.INT64, prefix_sums(counts, slices))]

    def final(self, states: Sequence[Column]) -> Column:
        return Column(DataType.INT64, states[0].numbers)

    def summary(self, statistics: SpanStatistics) -> States:
        return [statistics.count]


class _CountTime(_Count):
    """`count_time(*)`: the number of rows, even if all their values are null."""

    arguments = ()
    summarised = None

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        assert not rows.columns
        return [Column(DataType.INT64, slices.stops - slices.starts)]


class _Sum(Aggregate):
    """sum, as DOUBLE."""

    arguments = (NUMERIC_TYPES,)
    result = DataType.DOUBLE
    summarised = NUMERIC_TYPES
    state: tuple[DataType | str, ...] = (DataType.DOUBLE,)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        return self.merge(rows.columns, slices)

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        counts, sums = sums_of(states[0], slices)
        return [nullable(DataType.DOUBLE, sums, counts > 0)]

    def final(self, states: Sequence[Column]) -> Column:
        return states[0]

    def summary(self, statistics: SpanStatistics) -> States:
        return [_total(statistics)]


class _Average(_Sum):
    """avg: the state is count and sum."""

    state = (DataType.INT64, DataType.DOUBLE)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        counts, sums = sums_of(rows.columns[0], slices)
        return [Column(DataType.INT64, counts), Column(DataType.DOUBLE, sums)]

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        _, sums = sums_of(states[1], slices)
        counts = np.where(states[0].present, states[0].numbers, 0)
        return [Column(DataType.INT64, prefix_sums(counts, slices)), Column(DataType.DOUBLE, sums)]

    def final(self, states: Sequence[Column]) -> Column:
        counts = states[0].numbers
        return nullable(DataType.DOUBLE, states[1].numbers / np.maximum(counts, 1), counts > 0)

    def summary(self, statistics: SpanStatistics) -> States:
        return [statistics.count, _total(statistics)]


def _total(statistics: SpanStatistics) -> Column:
    assert statistics.total is not None
    return retyped(DataType.DOUBLE, statistics.total)


# ---------------------------------------------------------------------------------------------- least and largest


class _Extremum(Aggregate):
    """min_value, max_value and extreme: the state is one value, so each row can be used as a state."""

    arguments = (_ORDERED,)
    summarised = NUMERIC_TYPES

    state = ("x",)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        return self.merge(rows.columns, slices)

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        least, most = _extremes(states[0], slices)
        return [pick(states[0], least if self.name == "min_value" else most)]

    def final(self, states: Sequence[Column]) -> Column:
        (value,) = states
        if value.type not in FLOATING_TYPES:
            return value
        return Column(value.type, value.numbers + 0.0, value.valid)  # -0.0 + 0.0 is 0.0

    def summary(self, statistics: SpanStatistics) -> States:
        value = statistics.minimum if self.name == "min_value" else statistics.maximum
        assert value is not None
        return [value]


class _Extreme(_Extremum):
    """extreme: the value furthest from zero.

    If two values are equally far from zero, the result is the positive one.
    """

    arguments = (NUMERIC_TYPES,)

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        least, most = _extremes(states[0], slices)
        if len(states[0]):
            values = states[0].numbers
            # Compare min < -max rather than |min| > max, since |min| can overflow, and -max cannot.
            further = values[np.maximum(least, 0)] < -values[np.maximum(most, 0)]
            most = np.where(further, least, most)
        return [pick(states[0], most)]

    def summary(self, statistics: SpanStatistics) -> States:
        least, most = statistics.minimum, statistics.maximum
        assert least is not None
        assert most is not None
        low, high = least.numbers, most.numbers
        return [Column(most.type, np.where(low < -high, low, high), most.valid)]


class _By(Aggregate):
    """max_by(x, y), min_by(x, y): x at the earliest row where y is largest or smallest; x may be null there."""

    arguments = (frozenset(DataType), _ORDERED)

    state = ("y", "x", DataType.TIMESTAMP)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        x, y = rows.columns
        return self.merge([y, x, rows.time], slices)

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        least, most = _extremes(states[0], slices)
        positions = most if self.name == "max_by" else least
        return [pick(column, positions) for column in states]

    def final(self, states: Sequence[Column]) -> Column:
        return states[1]


# ---------------------------------------------------------------------------------------------- first and last


class _Edge(Aggregate):
    """first_value and last_value. Statistics of BLOB contain no first and last value."""

    summarised = frozenset(DataType) - {DataType.BLOB}

    state = ("x", DataType.TIMESTAMP)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        first, last = edges_of(rows.columns[0], slices)
        positions = first if self.name == "first_value" else last
        return [pick(rows.columns[0], positions), pick(rows.time, positions)]

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        earliest, latest = _extremes(states[1], slices)
        positions = earliest if self.name == "first_value" else latest
        return [pick(column, positions) for column in states]

    def final(self, states: Sequence[Column]) -> Column:
        return states[0]

    def summary(self, statistics: SpanStatistics) -> States:
        value = statistics.first if self.name == "first_value" else statistics.last
        assert value is not None
        return [value, statistics.start if self.name == "first_value" else statistics.end]


class _TimeEdge(Aggregate):
    """min_time and max_time."""

    result = DataType.INT64
    summarised = frozenset(DataType)

    state = (DataType.TIMESTAMP,)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        first, last = edges_of(rows.columns[0], slices)
        return [pick(rows.time, first if self.name == "min_time" else last)]

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        earliest, latest = _extremes(states[0], slices)
        return [pick(states[0], earliest if self.name == "min_time" else latest)]

    def final(self, states: Sequence[Column]) -> Column:
        return states[0]

    def summary(self, statistics: SpanStatistics) -> States:
        return [statistics.start if self.name == "min_time" else statistics.end]


class _Duration(Aggregate):
    """time_duration: the last time minus the first time.

    `final` raises UserMistake 750 if the difference does not fit INT64.
    """

    result = DataType.INT64
    summarised = frozenset(DataType)

    state = (DataType.TIMESTAMP, DataType.TIMESTAMP)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        first, last = edges_of(rows.columns[0], slices)
        return [pick(rows.time, first), pick(rows.time, last)]

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        earliest, _ = _extremes(states[0], slices)
        _, latest = _extremes(states[1], slices)
        return [pick(states[0], earliest), pick(states[1], latest)]

    def final(self, states: Sequence[Column]) -> Column:
        starts, ends = states[0].numbers, states[1].numbers
        if states[0].valid is not None:
            ends = np.where(states[0].valid, ends, starts)
        return Column(DataType.INT64, subtracted(ends, starts, None), states[0].valid)

    def summary(self, statistics: SpanStatistics) -> States:
        return [statistics.start, statistics.end]


BASIC_AGGREGATES: tuple[Aggregate, ...] = (
    _Count("count"),
    _CountTime("count_time"),
    _Sum("sum"),
    _Average("avg"),
    _Extremum("min_value"),
    _Extremum("max_value"),
    _Extreme("extreme"),
    _Edge("first_value"),
    _Edge("last_value"),
    _TimeEdge("min_time"),
    _TimeEdge("max_time"),
    _Duration("time_duration"),
    _By("max_by"),
    _By("min_by"),
)
