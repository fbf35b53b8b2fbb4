"""`MOMENTS`: aggregates computed from central moments: deviation, skewness, kurtosis, covariance, regression.

    variance family       count, mean, M2
    skewness, kurtosis    count, mean, M2, M3, M4
    covar, corr, regr     count, means of x and y, Mxy, Mxx, Myy

Mk is the sum of the k-th powers of the deviations from the mean, and Mxy the sum of the products of the deviations of x
and y. States are merged by the formulas of Chan, Golub and LeVeque (1979) and Pebay (2008), where n is the count of a
state, and d is the deviation of its mean from the merged mean:

    M2 = sum M2 + n d^2      M3 = sum M3 + 3 d M2 + n d^3      M4 = sum M4 + 4 d M3 + 6 d^2 M2 + n d^4
    Mxy = sum Mxy + n dx dy

A row is a state of count 1 whose moments are 0. Deviations are computed from the merged mean in a second pass, so there
is no cancellation. A row in which x or y is null is ignored.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from saros_engine.functions.aggregate import Aggregate, Rows, States, nullable
from saros_storage.base.block import Column
from saros_storage.base.types import NUMERIC_TYPES, BoolArray, DataType, Float64Array, Int64Array
from saros_storage.kernels.windows import window_moments
from saros_storage.read.row_ranges import RowRanges, doubles_of, mask_of

_WITH_TIMES = NUMERIC_TYPES | {DataType.TIMESTAMP}
#: Infinities and NaN propagate without warnings.
_QUIET = np.errstate(all="ignore")
#: The number of rows that are copied at once. If slices overlap, all slices together may have far more rows than the
#: column.
_ROWS_AT_ONCE = 1 << 20
#: If the spread of a series relative to its mean is at most this number, the series counts as constant, because the
#: spread may consist of rounding errors.
_ROUNDING = 2.0**-50


class _Deviation(Aggregate):
    """The variance family."""

    arguments = (NUMERIC_TYPES,)
    result = DataType.DOUBLE

    state = (DataType.INT64, DataType.DOUBLE, DataType.DOUBLE)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        counts, means = np.empty(len(slices), np.int64), np.empty(len(slices), np.float64)
        squares = np.empty(len(slices), np.float64)
        column = rows.columns[0]
        window_moments(doubles_of(column), mask_of(column), slices.starts, slices.stops, counts, means, squares)
        return _state(counts, means, squares)

    @_QUIET
    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        counts, (mean, m2) = _numbers(states)
        merged = _Merged(len(slices), 2)
        for part, n, total in _laid_out(counts, slices):
            d = merged.mean(0, part, n, total, mean)
            merged.put(1, part, total(m2[total.rows] + n * d**2))
        return merged.states()

    @_QUIET
    def final(self, states: Sequence[Column]) -> Column:
        counts, squares = states[0].numbers, states[2].numbers
        freedom = counts if self.name.endswith("_pop") else counts - 1
        values = squares / np.maximum(freedom, 1)
        if self.name.startswith("stddev"):
            values = np.sqrt(values)
        return nullable(DataType.DOUBLE, values, freedom > 0)


class _Shape(Aggregate):
    """skewness and kurtosis of samples.

    The result is null if there are fewer than three (skewness) or four (kurtosis) points, or if all values are equal.
    """

    arguments = (_WITH_TIMES,)
    result = DataType.DOUBLE

    state = (DataType.INT64, *[DataType.DOUBLE] * 4)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        return self.merge(_rows_as_states(rows, 3), slices)

    @_QUIET
    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        counts, (mean, m2, m3, m4) = _numbers(states)
        merged = _Merged(len(slices), 4)
        for part, n, total in _laid_out(counts, slices):
            d = merged.mean(0, part, n, total, mean)
            s2, s3, s4 = m2[total.rows], m3[total.rows], m4[total.rows]
            merged.put(1, part, total(s2 + n * d**2))
            merged.put(2, part, total(s3 + 3 * d * s2 + n * d**3))
            merged.put(3, part, total(s4 + 4 * d * s3 + 6 * d**2 * s2 + n * d**4))
        return merged.states()

    @_QUIET
    def final(self, states: Sequence[Column]) -> Column:
        counts, (mean, m2, m3, m4) = _numbers(states)
        n = counts.astype(np.float64)
        if self.name == "skewness":
            values = n * np.sqrt(n - 1) * m3 / ((n - 2) * m2**1.5)
        else:
            heaviness = n * (n + 1) * (n - 1) * m4 / ((n - 2) * (n - 3) * m2**2)
            values = heaviness - 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))
        least = 3 if self.name == "skewness" else 4
        return nullable(DataType.DOUBLE, values, (counts >= least) & ~_constant(counts, mean, m2))


class _Pairs(Aggregate):
    """covar_pop, covar_samp, corr, regr_slope and regr_intercept (regressions of the first series on the second)."""

    arguments = (_WITH_TIMES, _WITH_TIMES)
    result = DataType.DOUBLE

    state = (DataType.INT64, *[DataType.DOUBLE] * 5)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        return self.merge(_rows_as_states(rows, 3), slices)

    @_QUIET
    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        counts, (first, second, products, firsts, seconds) = _numbers(states)
        merged = _Merged(len(slices), 5)
        for part, n, total in _laid_out(counts, slices):
            d = merged.mean(0, part, n, total, first)
            e = merged.mean(1, part, n, total, second)
            merged.put(2, part, total(products[total.rows] + n * d * e))
            merged.put(3, part, total(firsts[total.rows] + n * d**2))
            merged.put(4, part, total(seconds[total.rows] + n * e**2))
        return merged.states()

    @_QUIET
    def final(self, states: Sequence[Column]) -> Column:
        counts, (first, second, products, firsts, seconds) = _numbers(states)
        if self.name.startswith("covar"):
            freedom = counts if self.name == "covar_pop" else counts - 1
            return nullable(DataType.DOUBLE, products / np.maximum(freedom, 1), freedom > 0)
        known = ~_constant(counts, second, seconds)
        if self.name == "corr":
            known &= ~_constant(counts, first, firsts)
            values = products / np.sqrt(firsts) / np.sqrt(seconds)
        else:
            values = products / seconds
            if self.name == "regr_intercept":
                values = first - values * second
        return nullable(DataType.DOUBLE, values, known & np.isfinite(values))


class _Total:
    """A function that sums values over the rows of each slice.

    `rows` has the rows of each slice, one slice after the other.
    """

    def __init__(self, rows: Int64Array, owner: Int64Array, slices: int) -> None:
        self.rows = rows
        self.owner = owner
        self._slices = slices

    def __call__(self, values: Float64Array) -> Float64Array:
        return np.bincount(self.owner, values, self._slices).astype(np.float64)


class _Merged:
    """The merged states under construction."""

    def __init__(self, slices: int, numbers: int) -> None:
        self._counts = np.zeros(slices, np.int64)
        self._numbers = [np.zeros(slices, np.float64) for _ in range(numbers)]

    def mean(self, number: int, part: slice, n: Float64Array, total: _Total, means: Float64Array) -> Float64Array:
        """Store the means of the slices; return the deviation of each row from the mean of its slice."""
        own = means[total.rows]
        counts = total(n)
        self._counts[part] = counts.astype(np.int64)
        merged = total(n * own) / np.maximum(counts, 1)
        self._numbers[number][part] = merged
        return own - merged[total.owner]

    def put(self, number: int, part: slice, values: Float64Array) -> None:
        self._numbers[number][part] = values

    def states(self) -> States:
        return _state(self._counts, *self._numbers)


def _state(counts: Int64Array, *numbers: Float64Array) -> States:
    return [Column(DataType.INT64, counts), *(Column(DataType.DOUBLE, one) for one in numbers)]


def _numbers(states: Sequence[Column]) -> tuple[Int64Array, list[Float64Array]]:
    """Return the counts and the other numbers of the states; for a state without rows, all are 0."""
    counts = np.where(states[0].present, states[0].numbers, 0)
    return counts, [np.where(counts > 0, column.numbers, 0.0) for column in states[1:]]


def _rows_as_states(rows: Rows, moments: int) -> States:
    present = rows.columns[0].present.copy()
    for column in rows.columns[1:]:
        present &= column.present
    none = np.zeros(len(present), np.float64)
    return _state(present.astype(np.int64), *map(doubles_of, rows.columns), *[none] * moments)


def _laid_out(counts: Int64Array, slices: RowRanges) -> Iterator[tuple[slice, Float64Array, _Total]]:
    """Split the slices into runs of limited size.

    Yield for each run its slices, the count of each of its rows, and a function that sums over the rows of each slice.
    """
    lengths = slices.stops - slices.starts
    ends = np.cumsum(lengths)
    start = 0
    while start < len(slices):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _ROWS_AT_ONCE, "right")))
        own = lengths[start:stop]
        owner = np.repeat(np.arange(stop - start), own)
        rows = np.arange(len(owner)) - np.repeat(np.cumsum(own) - own, own) + slices.starts[start:stop][owner]
        yield slice(start, stop), counts[rows].astype(np.float64), _Total(rows, owner, stop - start)
        start = stop


def _constant(counts: Int64Array, mean: Float64Array, squares: Float64Array) -> BoolArray:
    """Return the mask of states whose values differ only by rounding errors."""
    constant: BoolArray = squares <= counts * (mean * _ROUNDING) ** 2
    return constant


MOMENTS: tuple[Aggregate, ...] = (
    *map(_Deviation, ("stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp")),
    *map(_Shape, ("skewness", "kurtosis")),
    *map(_Pairs, ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept")),
)
