"""Further functions of IoTDB's library: resampling, filters, comparison of shapes, runs without a gap.

    of the whole series     QUANTILE DTW                       at time 0
    of all shifts           ACF                                at times 1, 2, ...
    evenly spaced           RESAMPLE (RE_SAMPLE)               at steps of `every` from `start` or the first point on
    some of the points      SAMPLE KSIGMA
    at the points' times    HIGHPASS LOWPASS
    runs                    CONSECUTIVESEQUENCES CONSECUTIVEWINDOWS     at the first time of each

ACF treats NaN as 0; SAMPLE and the functions that use only times keep it; all other functions skip NaN.

Source: Steinarsson, Downsampling Time Series for Visual Representation, 2013 (triangles).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from saros_engine.aggregation.windows import WINDOWS_MAX
from saros_engine.base.errors import SemanticError
from saros_engine.expressions.times import parse_time
from saros_engine.functions.function import (
    Attributes,
    choice_attribute,
    duration_attribute,
    expect,
    integer_attribute,
    number_attribute,
)
from saros_engine.plan.expression import FunctionCall
from saros_engine.transforms.profile import doubles, made_points, point_function, without_nan
from saros_engine.transforms.series_transform import Generator, Points, SeriesTransform, attributes_of
from saros_scheduler import require_wanted
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import NUMERIC_TYPES, BoolArray, DataType, Float64Array, Int64Array, TimeUnit

_ANY = frozenset(DataType)
#: The time of DTW is quadratic in the number of rows.
_DTW_ROWS_MAX = 20_000
_NANOSECOND = TimeUnit.NANOSECOND


# ---------------------------------------------------------------------------------------------- one number


def _check_quantile(attributes: Attributes) -> None:
    rank = number_attribute("quantile", {"rank": "0.5", **attributes}, "rank")
    if not 0 < rank <= 1:
        raise UserMistake(f"quantile: 'rank' must be above 0 and at most 1, not {rank}", code=701)
    integer_attribute("quantile", attributes, "K", 800, low=100)


def _make_quantile(attributes: Attributes, _: TimeUnit) -> Generator:
    rank = float(attributes.get("rank", 0.5))

    def run(points: Points) -> Points:
        found = without_nan(points)
        values = np.sort(found.columns[0].numbers)
        place = max(int(rank * len(values)), 1) - 1
        times = np.zeros(min(len(values), 1), np.int64)
        return made_points(times, found.columns[0].type, values[place : place + 1])

    return run


def _make_dtw(_: Attributes, __: TimeUnit) -> Generator:
    def run(points: Points) -> Points:
        found = without_nan(points)
        if len(found.times) > _DTW_ROWS_MAX:
            message = f"dtw compares at most {_DTW_ROWS_MAX:,} rows, not {len(found.times):,}: select a shorter range"
            raise UserMistake(message, code=701)
        distance = _warped(doubles(found), doubles(found, 1)) if len(found.times) else 0.0
        return made_points(np.zeros(1, np.int64), DataType.DOUBLE, np.array([distance]))

    return run


def _warped(x: Float64Array, y: Float64Array) -> float:
    """Return the cost of the cheapest path through the matrix |x[i] - y[j]|, which is traversed by diagonals."""
    count = len(x)
    before = last = np.full(count, np.inf)  # indexed by i, for the diagonals i + j = d - 2 and d - 1
    for d in range(2 * count - 1):
        require_wanted()
        rows = np.arange(max(0, d - count + 1), min(d, count - 1) + 1)
        above = np.where(rows > 0, last[rows - 1], np.inf)
        corner = np.where(rows > 0, before[rows - 1], np.inf)
        best = np.minimum(np.minimum(last[rows], above), corner)
        current = np.full(count, np.inf)
        current[rows] = np.abs(x[rows] - y[d - rows]) + (best if d else 0.0)
        before, last = last, current
    return float(last[-1])


# ---------------------------------------------------------------------------------------------- evenly spaced

_AGGREGATES = ("mean", "max", "min", "first", "last", "median")
_INTERPOLATIONS = ("nan", "ffill", "bfill", "linear")


def _resample(name: str) -> SeriesTransform:
    def check(attributes: Attributes) -> None:
        duration_attribute(name, attributes, "every", _NANOSECOND)
        choice_attribute(name, attributes, "aggr", _AGGREGATES)
        choice_attribute(name, attributes, "interp", _INTERPOLATIONS)
        for key in ("start", "end"):
            if key in attributes:
                parse_time(attributes[key], "UTC", TimeUnit.MILLISECOND)

    def make(attributes: Attributes, unit: TimeUnit) -> Generator:
        every = duration_attribute(name, attributes, "every", unit)
        aggregate = choice_attribute(name, attributes, "aggr", _AGGREGATES)
        interpolation = choice_attribute(name, attributes, "interp", _INTERPOLATIONS)
        bounds = [parse_time(attributes[key], "UTC", unit) if key in attributes else None for key in ("start", "end")]

        def run(points: Points) -> Points:
            found = without_nan(points)
            if not len(found.times):
                return made_points(found.times, DataType.DOUBLE, found.times)
            start = int(found.times[0]) if bounds[0] is None else bounds[0]
            end = int(found.times[-1]) + 1 if bounds[1] is None else bounds[1]
            found = found.take(np.flatnonzero(found.times < end))
            count = max(-(-(end - start) // every), 0)
            if count > WINDOWS_MAX:
                raise UserMistake(f"{name} would give {count} points; at most {WINDOWS_MAX:,} are allowed", code=2005)
            values = _by_bins(found, start, every, count, aggregate)
            return made_points(start + every * np.arange(count), DataType.DOUBLE, _bridged(values, interpolation))

        return run

    return point_function(name, DataType.DOUBLE, make, check)


#: Computes one value per bin from the values and from the starts and ends of the bins.
_REDUCED: dict[str, Callable[[Float64Array, Int64Array, Int64Array], Float64Array]] = {
    "mean": lambda values, firsts, ends: np.asarray(np.add.reduceat(values, firsts) / (ends - firsts)),
    "max": lambda values, firsts, _: np.maximum.reduceat(values, firsts),
    "min": lambda values, firsts, _: np.minimum.reduceat(values, firsts),
    "first": lambda values, firsts, _: values[firsts],
    "last": lambda values, _, ends: values[ends - 1],
}


def _by_bins(points: Points, start: int, every: int, count: int, aggregate: str) -> Float64Array:
    """Return one value per bin; NaN for a bin without points."""
    bins = (points.times - start) // every
    inside = (bins >= 0) & (bins < count)
    bins, values = bins[inside], doubles(points)[inside]
    result = np.full(count, np.nan)
    if not len(bins):
        return result
    firsts = np.flatnonzero(np.diff(bins, prepend=-1))
    ends = np.append(firsts[1:], len(bins))
    if aggregate == "median":
        order = np.lexsort((values, bins))
        low, high = values[order][(firsts + ends - 1) // 2], values[order][(firsts + ends) // 2]
        made = (low + high) / 2
    else:
        made = _REDUCED[aggregate](values, firsts, ends)
    result[bins[firsts]] = made
    return result


def _bridged(values: Float64Array, interpolation: str) -> Float64Array:
    there = ~np.isnan(values)
    if interpolation == "nan" or not there.any():
        return values
    if interpolation == "ffill":
        return forward_filled(values, there)
    if interpolation == "bfill":
        return forward_filled(values[::-1], there[::-1])[::-1]
    places = np.arange(len(values), dtype=np.float64)
    return np.interp(places, places[there], values[there], left=np.nan, right=np.nan)


def forward_filled(values: Float64Array, there: BoolArray) -> Float64Array:
    """Replace each missing value by the previous value, or by NaN if there is no previous value."""
    last = np.maximum.accumulate(np.where(there, np.arange(len(values)), -1))
    return np.where(last >= 0, values[last], np.nan)


# ---------------------------------------------------------------------------------------------- some of the points

_METHODS = ("reservoir", "isometric", "triangle")


def _sample_result(types: Sequence[DataType], attributes: Attributes) -> DataType:
    integer_attribute("sample", attributes, "k", 1, low=1)
    triangle = choice_attribute("sample", attributes, "method", _METHODS) == "triangle"
    expect("sample", types, NUMERIC_TYPES if triangle else _ANY)
    return types[0]


def _make_sample(call: FunctionCall, _: TimeUnit) -> Generator:
    attributes = attributes_of(call)
    wanted = integer_attribute("sample", attributes, "k", 1, low=1)
    method = choice_attribute("sample", attributes, "method", _METHODS)

    def run(points: Points) -> Points:
        count = len(points.times)
        chosen = min(wanted, count)
        if method == "triangle" and chosen < count:
            return points.take(_corners(points, chosen))
        if method != "reservoir":
            return points.take(np.arange(chosen) * count // max(chosen, 1))
        # Choose points randomly, with a fixed seed.
        return points.take(np.sort(np.random.default_rng(0).choice(count, chosen, replace=False)))

    return run


def _corners(points: Points, wanted: int) -> Int64Array:
    """Return the first point, the last point, and one point from each of the equal parts between them.

    Each part contributes the point that forms the largest triangle with the previously chosen point and the mean of the
    next part. Non-finite values form no triangle.
    """
    count = len(points.times)
    if wanted < 3:
        return np.array([0, count - 1][:wanted])
    since, values = (points.times - points.times[0]).astype(np.float64), doubles(points)
    size, more = divmod(count - 2, wanted - 2)
    parts = np.arange(wanted - 1)
    # The first `more` parts have one more point than the other parts; the last entry of `starts` is the last point.
    starts = 1 + parts * size + np.minimum(parts, more)
    lengths = np.append(np.diff(starts), 1)
    times, heights = (np.add.reduceat(v, starts) / lengths for v in (since, values))
    found = np.zeros(wanted, np.int64)
    found[-1] = count - 1
    for part, (first, end) in enumerate(pairwise(starts.tolist()), 1):
        last = found[part - 1]
        wide = (since[last] - times[part]) * (values[first:end] - values[last])
        high = (since[last] - since[first:end]) * (heights[part] - values[last])
        found[part] = first + np.argmax(np.nan_to_num(np.abs(wide - high), nan=-1.0))
    return found


def _check_ksigma(attributes: Attributes) -> None:
    number_attribute("ksigma", {"k": "3", **attributes}, "k")
    integer_attribute("ksigma", attributes, "window", 10_000, low=1)


def _make_ksigma(attributes: Attributes, _: TimeUnit) -> Generator:
    times_sigma = float(attributes.get("k", 3))
    size = integer_attribute("ksigma", attributes, "window", 10_000, low=1)

    def run(points: Points) -> Points:
        found = without_nan(points)
        values = doubles(found)
        if times_sigma <= 0 or not len(values):
            return found.take(np.empty(0, np.int64))
        values = values - values.mean()  # keeps sums of squares small
        sums, squares = (np.concatenate([[0.0], np.cumsum(v)]) for v in (values, values * values))
        # The points of the first window are compared with that window, each later point with the window that ends at
        # the point.
        behind = np.maximum(np.arange(len(values)) + 1, min(size, len(values)))
        first = np.maximum(behind - size, 0)
        mean = (sums[behind] - sums[first]) / (behind - first)
        variance = np.maximum((squares[behind] - squares[first]) / (behind - first) - mean * mean, 0)
        return found.take(np.flatnonzero(np.abs(values - mean) > times_sigma * np.sqrt(variance)))

    return run


# ---------------------------------------------------------------------------------------------- at the points' times


def _pass_filter(name: str, *, high: bool) -> SeriesTransform:
    def check(attributes: Attributes) -> None:
        cut = number_attribute(name, attributes, "wpass")
        if not 0 < cut < 1:
            raise UserMistake(f"{name}: 'wpass' must be between 0 and 1, not {cut}", code=701)

    def make(attributes: Attributes, _: TimeUnit) -> Generator:
        cut = float(attributes["wpass"])

        def run(points: Points) -> Points:
            found = without_nan(points)
            count = len(found.times)
            if not count:
                return made_points(found.times, DataType.DOUBLE, found.times)
            spectrum = np.fft.rfft(doubles(found))
            low = np.arange(len(spectrum)) <= int(cut * count / 2)
            spectrum[low if high else ~low] = 0
            return made_points(found.times, DataType.DOUBLE, np.fft.irfft(spectrum, count))

        return run

    return point_function(name, DataType.DOUBLE, make, check)


# ---------------------------------------------------------------------------------------------- runs


def _runs(
    name: str, check: Callable[[Attributes], object], least: Callable[[Attributes, TimeUnit], int]
) -> SeriesTransform:
    """Return a function that counts the rows of each run without a gap, for the runs that last at least `least`."""

    def result_type(types: object, attributes: Attributes) -> DataType:
        if not types:
            raise SemanticError(f"{name} takes one or more series")
        if "gap" in attributes:
            duration_attribute(name, attributes, "gap", _NANOSECOND)
        check(attributes)
        return DataType.INT32

    def make(call: FunctionCall, unit: TimeUnit) -> Generator:
        attributes = attributes_of(call)
        given = duration_attribute(name, attributes, "gap", unit) if "gap" in attributes else None
        shortest = least(attributes, unit)

        def run(points: Points) -> Points:
            times = points.times
            steps = np.diff(times)
            gap = mode(steps) if given is None else given
            firsts = np.concatenate([[0], np.flatnonzero(steps != gap) + 1]) if len(times) else np.empty(0, np.int64)
            counts = np.diff(np.append(firsts, len(times)))
            long = (counts - 1) * gap >= shortest
            return made_points(times[firsts[long]], DataType.INT32, counts[long])

        return run

    return SeriesTransform(name, result_type, make)


def mode(steps: Int64Array) -> int:
    """Return the most frequent step, or the smallest of several equally frequent steps, or 1 if there are no steps."""
    values, counts = np.unique(steps, return_counts=True)
    return int(values[np.argmax(counts)]) if len(values) else 1


# ---------------------------------------------------------------------------------------------- autocorrelation

#: Up to this number of points, products are summed directly, which is exact. For more points, the spectrum is used.
_PRODUCTS_MAX = 2_048


def _make_acf(_: Attributes, __: TimeUnit) -> Generator:
    """Return a function that computes the mean products of a series and itself shifted by -(n - 1) to n - 1 points."""

    def run(points: Points) -> Points:
        values = np.nan_to_num(doubles(points), nan=0.0, posinf=np.inf, neginf=-np.inf)
        count = len(values)
        half = shifted_products(values)
        sums = np.concatenate((half[:0:-1], half))
        return made_points(np.arange(1, 2 * count, dtype=np.int64), DataType.DOUBLE, sums / count)

    return run


def shifted_products(values: Float64Array) -> Float64Array:
    """Return, for each shift of 0, 1, ... points, the sum of the products of the values and the shifted values."""
    count = len(values)
    if count <= _PRODUCTS_MAX:
        return np.correlate(values, values, "full")[count - 1 :] if count else values
    spectrum = np.fft.rfft(values, 2 * count)
    return np.fft.irfft(spectrum * spectrum.conj(), 2 * count)[:count]


SIGNAL = (
    point_function("acf", DataType.DOUBLE, _make_acf),
    point_function("quantile", None, _make_quantile, _check_quantile),
    point_function("dtw", DataType.DOUBLE, _make_dtw, series=2),
    _resample("resample"),
    _resample("re_sample"),
    SeriesTransform("sample", _sample_result, _make_sample),
    point_function("ksigma", None, _make_ksigma, _check_ksigma),
    _pass_filter("highpass", high=True),
    _pass_filter("lowpass", high=False),
    _runs("consecutivesequences", lambda _: None, lambda _, __: 0),
    _runs(
        "consecutivewindows",
        lambda attributes: duration_attribute("consecutivewindows", attributes, "length", _NANOSECOND),
        lambda attributes, unit: duration_attribute("consecutivewindows", attributes, "length", unit),
    ),
)
