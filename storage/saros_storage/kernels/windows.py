"""Kernels over windows: aggregates of many row slices `[starts[k], stops[k])` of one column, computed in one call.

Rows are sorted by time, so a window over time is a slice. Slices may be empty, may leave gaps between them, and may
overlap: a shared row is read once for each slice. `valid` is the column's mask, or an empty array when every row is
present. A slice without a present row has count 0 or position -1; its other results are 0.

    window_sums         count and sum (floats added in row order, so that a result depends on block borders as little
                        as possible)
    window_moments      count, mean and sum of squared deviations (two passes: stable)
    window_edges        positions of the first and the last present row
    window_extremes_*   positions of the first smallest and the first largest present value; NaN is ignored unless all
                        present values of a slice are NaN

Callers derive MIN, MAX, EXTREME and MAX_BY from positions. For texts, they pass the ranks of the texts as values.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import BoolArray, Float64Array, Int64Array, NumericArray
from saros_storage.kernels.jit import kernel, part

U = np.uint64


def _present(valid: BoolArray, start: int, stop: int) -> Int64Array:
    """Return the positions of the present rows of a slice."""
    if len(valid) == 0:
        return np.arange(start, stop, dtype=np.int64)
    return np.flatnonzero(valid[start:stop]) + start


def _sums_plain(
    values: Float64Array,
    valid: BoolArray,
    starts: Int64Array,
    stops: Int64Array,
    counts: Int64Array,
    sums: Float64Array,
) -> None:
    for k in range(len(starts)):
        rows = _present(valid, int(starts[k]), int(stops[k]))
        counts[k] = len(rows)
        sums[k] = _in_order(values[rows])


def _in_order(values: Float64Array) -> float:
    """Return the sum, added from left to right as in the kernels; NumPy's own sum adds pairwise."""
    return float(np.cumsum(values)[-1]) + 0.0 if len(values) else 0.0


@kernel("void(f64r[], b1r[], i64r[], i64r[], i64[], f64[])", twin=_sums_plain)
def window_sums(
    values: Float64Array,
    valid: BoolArray,
    starts: Int64Array,
    stops: Int64Array,
    counts: Int64Array,
    sums: Float64Array,
) -> None:
    """Compute count and sum of each slice's present rows."""
    if len(valid) == 0:
        together = len(starts) & ~3
        for k in range(0, together, 4):
            _four_sums(values, starts, stops, k, sums)
        for k in range(together, len(starts)):
            sums[k] = _sum(values, U(starts[k]), U(stops[k]), 0.0)
        for k in range(len(starts)):
            counts[k] = max(stops[k] - starts[k], 0)
        return
    for k in range(len(starts)):
        total = 0.0
        count = 0
        for i in range(starts[k], stops[k]):
            if valid[i]:
                total += values[i]
                count += 1
        counts[k] = count
        sums[k] = total


@part
def _sum(values: Float64Array, row: np.uint64, stop: np.uint64, total: float) -> float:
    """Add the rows from `row` to `stop` to `total`, in their order."""
    while row < stop:
        total += values[row]
        row += U(1)
    return total


@part
def _four_sums(values: Float64Array, starts: Int64Array, stops: Int64Array, k: int, sums: Float64Array) -> None:
    """Compute the sums of slices k to k + 3, each in row order.

    The additions to the four sums take turns, so that none has to wait for the previous addition to the same sum. Row
    numbers are unsigned, since numba adds code for NumPy's negative indices to every access by a signed integer.
    """
    first, second, third, fourth = U(starts[k]), U(starts[k + 1]), U(starts[k + 2]), U(starts[k + 3])
    shortest = min(stops[k] - starts[k], stops[k + 1] - starts[k + 1], stops[k + 2] - starts[k + 2])
    common = U(max(min(shortest, stops[k + 3] - starts[k + 3]), 0))
    a = b = c = d = 0.0
    row = U(0)
    while row < common:
        a += values[first + row]
        b += values[second + row]
        c += values[third + row]
        d += values[fourth + row]
        row += U(1)
    sums[k] = _sum(values, first + common, U(stops[k]), a)
    sums[k + 1] = _sum(values, second + common, U(stops[k + 1]), b)
    sums[k + 2] = _sum(values, third + common, U(stops[k + 2]), c)
    sums[k + 3] = _sum(values, fourth + common, U(stops[k + 3]), d)


def _moments_plain(
    values: Float64Array,
    valid: BoolArray,
    starts: Int64Array,
    stops: Int64Array,
    counts: Int64Array,
    means: Float64Array,
    squares: Float64Array,
) -> None:
    for k in range(len(starts)):
        present = values[_present(valid, int(starts[k]), int(stops[k]))]
        add = _in_order if len(valid) else _of_four
        counts[k] = len(present)
        means[k] = add(present) / len(present) if len(present) else 0.0
        squares[k] = add((present - means[k]) * (present - means[k]))


def _of_four(values: Float64Array) -> float:
    """Return the sum, added in the same order as in `_total`."""
    whole = len(values) & ~3
    a, b, c, d = (_in_order(values[first:whole:4]) for first in range(4))
    a = _in_order(np.concatenate((np.full(1, a), values[whole:])))
    return (a + b) + (c + d)


@kernel("void(f64r[], b1r[], i64r[], i64r[], i64[], f64[], f64[])", twin=_moments_plain)
def window_moments(
    values: Float64Array,
    valid: BoolArray,
    starts: Int64Array,
    stops: Int64Array,
    counts: Int64Array,
    means: Float64Array,
    squares: Float64Array,
) -> None:
    """Compute count, mean and sum of squared deviations of each slice's present rows; a NaN makes the last two NaN."""
    if len(valid) == 0:
        for k in range(len(starts)):
            rows = values[starts[k] : stops[k]]
            counts[k] = len(rows)
            means[k] = _total(rows) / len(rows) if len(rows) else 0.0
            squares[k] = _squares(rows, means[k])
        return
    for k in range(len(starts)):
        total = 0.0
        count = 0
        for i in range(starts[k], stops[k]):
            if valid[i]:
                total += values[i]
                count += 1
        mean = total / count if count > 0 else 0.0
        square = 0.0
        for i in range(starts[k], stops[k]):
            if valid[i]:
                square += (values[i] - mean) * (values[i] - mean)
        counts[k] = count
        means[k] = mean
        squares[k] = square


@part
def _total(values: Float64Array) -> float:
    """Return the sum, computed as four partial sums, since additions to a single sum would wait for each other."""
    a = b = c = d = 0.0
    whole = len(values) & ~3
    for i in range(0, whole, 4):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
    for i in range(whole, len(values)):
        a += values[i]
    return (a + b) + (c + d)


@part
def _squares(values: Float64Array, mean: float) -> float:
    """Return the sum of squared deviations from the mean, in four partial sums as in `_total`."""
    a = b = c = d = 0.0
    whole = len(values) & ~3
    for i in range(0, whole, 4):
        a += (values[i] - mean) * (values[i] - mean)
        b += (values[i + 1] - mean) * (values[i + 1] - mean)
        c += (values[i + 2] - mean) * (values[i + 2] - mean)
        d += (values[i + 3] - mean) * (values[i + 3] - mean)
    for i in range(whole, len(values)):
        a += (values[i] - mean) * (values[i] - mean)
    return (a + b) + (c + d)


def _edges_plain(valid: BoolArray, starts: Int64Array, stops: Int64Array, first: Int64Array, last: Int64Array) -> None:
    for k in range(len(starts)):
        rows = np.flatnonzero(valid[starts[k] : stops[k]]) + starts[k]
        first[k], last[k] = (rows[0], rows[-1]) if len(rows) else (-1, -1)


@kernel("void(b1r[], i64r[], i64r[], i64[], i64[])", twin=_edges_plain)
def window_edges(valid: BoolArray, starts: Int64Array, stops: Int64Array, first: Int64Array, last: Int64Array) -> None:
    """Find each slice's first and last present row. Unlike in the other kernels, `valid` must cover all rows."""
    for k in range(len(starts)):
        low = starts[k]
        high = stops[k] - 1
        while low <= high and not valid[low]:
            low += 1
        while high >= low and not valid[high]:
            high -= 1
        first[k] = low if low <= high else -1
        last[k] = high if low <= high else -1


def _extremes_f64_plain(
    values: Float64Array, valid: BoolArray, starts: Int64Array, stops: Int64Array, least: Int64Array, most: Int64Array
) -> None:
    for k in range(len(starts)):
        rows = _present(valid, int(starts[k]), int(stops[k]))
        least[k] = most[k] = -1
        if len(rows) == 0:
            continue
        real = rows[~np.isnan(values[rows])]
        if len(real) == 0:
            least[k] = most[k] = rows[0]
        else:
            least[k] = real[np.argmin(values[real])]
            most[k] = real[np.argmax(values[real])]


@kernel("void(f64r[], b1r[], i64r[], i64r[], i64[], i64[])", twin=_extremes_f64_plain)
def window_extremes_f64(
    values: Float64Array, valid: BoolArray, starts: Int64Array, stops: Int64Array, least: Int64Array, most: Int64Array
) -> None:
    """Find each slice's first smallest and first largest present value.

    NaN is ignored unless all present values are NaN; in that case, both results are the position of the first NaN.
    """
    masked = len(valid) > 0
    for k in range(len(starts)):
        low = -1
        high = -1
        smallest = np.inf
        largest = -np.inf
        for i in range(starts[k], stops[k]):
            if masked and not valid[i]:
                continue
            value = values[i]
            if value < smallest:
                smallest = value
                low = i
            if value > largest:
                largest = value
                high = i
        if low < 0 or high < 0:
            # The loop above finds no extreme in a slice without present rows, in a slice of NaN only, and in a slice
            # whose other values are all the same infinity.
            for i in range(starts[k], stops[k]):
                if masked and not valid[i]:
                    continue
                if low < 0 or (values[low] != values[low] and values[i] == values[i]):
                    low = i
                if high < 0 or (values[high] != values[high] and values[i] == values[i]):
                    high = i
        least[k] = low
        most[k] = high


def _extremes_i64_plain(
    values: Int64Array, valid: BoolArray, starts: Int64Array, stops: Int64Array, least: Int64Array, most: Int64Array
) -> None:
    for k in range(len(starts)):
        rows = _present(valid, int(starts[k]), int(stops[k]))
        least[k] = rows[np.argmin(values[rows])] if len(rows) else -1
        most[k] = rows[np.argmax(values[rows])] if len(rows) else -1


@kernel("void(i64r[], b1r[], i64r[], i64r[], i64[], i64[])", twin=_extremes_i64_plain)
def window_extremes_i64(
    values: Int64Array, valid: BoolArray, starts: Int64Array, stops: Int64Array, least: Int64Array, most: Int64Array
) -> None:
    """Find each slice's first smallest and first largest present value."""
    masked = len(valid) > 0
    for k in range(len(starts)):
        low = -1
        high = -1
        smallest = np.int64(0)
        largest = np.int64(0)
        for i in range(starts[k], stops[k]):
            if masked and not valid[i]:
                continue
            value = values[i]
            if low < 0 or value < smallest:
                smallest = value
                low = i
            if high < 0 or value > largest:
                largest = value
                high = i
        least[k] = low
        most[k] = high


def _variation_plain(
    values: NumericArray, valid: BoolArray, delta: float, base: float, has_base: int, starts: BoolArray
) -> float:
    for i, value in enumerate(values.tolist()):
        present = len(valid) == 0 or bool(valid[i])
        starts[i] = not present or not has_base or not abs(value - base) <= delta
        if starts[i]:
            base, has_base = value, int(present)
    return base


@kernel("f64(f64r[], b1r[], f64, f64, i64, b1[])", twin=_variation_plain)
def variation_starts(
    values: Float64Array, valid: BoolArray, delta: float, base: float, has_base: int, starts: BoolArray
) -> float:
    """Mark each row that starts a new run, since it differs by more than `delta` from the first row of the current run.

    A row that is not `valid` forms a run by itself. Returns the first value of the last run; the result has no meaning
    if the last row is not `valid`.
    """
    for i in range(len(values)):
        if len(valid) > 0 and not valid[i]:
            starts[i] = True
            has_base = 0
        elif has_base == 0 or not abs(values[i] - base) <= delta:
            starts[i] = True
            base = values[i]
            has_base = 1
        else:
            starts[i] = False
    return base


def _variation_i64_plain(
    values: Int64Array, valid: BoolArray, delta: int, base: int, has_base: int, starts: BoolArray
) -> int:
    return int(_variation_plain(values, valid, int(delta), int(base), has_base, starts))


@kernel("i64(i64r[], b1r[], u64, i64, i64, b1[])", twin=_variation_i64_plain)
def variation_starts_i64(
    values: Int64Array, valid: BoolArray, delta: int, base: int, has_base: int, starts: BoolArray
) -> int:
    """Mark the starts of runs like `variation_starts`, but compute exactly with integers."""
    for i in range(len(values)):
        value = values[i]
        if len(valid) > 0 and not valid[i]:
            starts[i] = True
            has_base = 0
        elif has_base == 0 or (U(value) - U(base) if value > base else U(base) - U(value)) > delta:
            starts[i] = True
            base = value
            has_base = 1
        else:
            starts[i] = False
    return base
