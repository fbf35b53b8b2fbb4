"""The functions of IoTDB's library for data profiling, and the functions that find outliers by simple bounds.

    one point at time 0     SPREAD INTEGRAL INTEGRALAVG SKEW MEDIAN MAD COV PEARSON;  PERCENTILE (at its value's time)
    points at other times   DISTINCT HISTOGRAM
    at the points' times    MINMAX ZSCORE MVAVG
    outliers                IQR RANGE

NaN is skipped, except by DISTINCT. The attribute `error`, which permits IoTDB to approximate, is accepted, but results
are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from saros_engine.expressions.integer_arithmetic import subtracted
from saros_engine.expressions.text import text_ranks
from saros_engine.functions.function import Attributes, choice_attribute, expect, integer_attribute, number_attribute
from saros_engine.plan.expression import FunctionCall
from saros_engine.transforms.series_transform import Generator, Points, SeriesTransform, attributes_of
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import (
    NUMERIC_TYPES,
    NUMPY_DTYPE,
    DataType,
    Float64Array,
    Int64Array,
    NumericArray,
    TimeUnit,
)

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_MILLISECONDS = 1_000
_ANY = frozenset(DataType)
#: The distance of a box plot's inner fences from the quartiles, in interquartile ranges.
_FENCE = 1.5

_Check = Callable[[Attributes], object]


def _nothing(_: Attributes) -> None:
    return


def point_function(
    name: str,
    result: DataType | None,
    make: Callable[[Attributes, TimeUnit], Generator],
    check: _Check = _nothing,
    *,
    series: int = 1,
    allowed: frozenset[DataType] = NUMERIC_TYPES,
    apart: bool = False,
) -> SeriesTransform:
    """Return a function of `series` arguments. If `result` is None, the first argument gives its result type."""

    def result_type(types: Sequence[DataType], attributes: Attributes) -> DataType:
        expect(name, types, *[allowed] * series)
        check(attributes)
        return types[0] if result is None else result

    def made(call: FunctionCall, unit: TimeUnit) -> Generator:
        return make(attributes_of(call), unit)

    return SeriesTransform(name, result_type, made, apart)


def without_nan(points: Points) -> Points:
    """Return the points in which no argument is NaN."""
    known = np.ones(len(points.times), np.bool_)
    for column in points.columns:
        if column.numbers.dtype.kind == "f":
            known &= ~np.isnan(column.numbers)
    return points if known.all() else points.take(np.flatnonzero(known))


def finite_points(points: Points) -> Points:
    """Return the points in which all arguments are finite."""
    known = np.logical_and.reduce([np.isfinite(doubles(points, number)) for number in range(len(points.columns))])
    return points.take(np.flatnonzero(known))


def doubles(points: Points, number: int = 0) -> Float64Array:
    """Return the values of argument `number` as float64."""
    return points.columns[number].numbers.astype(np.float64, copy=False)


def made_points(times: Int64Array, type_: DataType, values: NumericArray) -> Points:
    """Return points with one column, whose values are cast to `type_`."""
    return Points(times, (Column(type_, values.astype(NUMPY_DTYPE[type_], copy=False)),))


# ---------------------------------------------------------------------------------------------- one number


def _number(
    name: str, compute: Callable[[Points], float], *, series: int = 1, if_empty: float | None = None
) -> SeriesTransform:
    """Return a function that computes one DOUBLE at time 0: `if_empty` without points, or no point if that is None."""

    def make(_: Attributes, __: TimeUnit) -> Generator:
        def run(points: Points) -> Points:
            known = without_nan(points)
            if not len(known.times) and if_empty is None:
                return made_points(known.times, DataType.DOUBLE, known.times)
            with np.errstate(all="ignore"):
                value = if_empty if not len(known.times) else compute(known)
            return made_points(np.zeros(1, np.int64), DataType.DOUBLE, np.array([value]))

        return run

    return point_function(name, DataType.DOUBLE, make, _check_error, series=series)


def _check_error(attributes: Attributes) -> None:
    if "error" in attributes and not 0 <= number_attribute("the function", attributes, "error") < 1:
        raise UserMistake("'error' must be at least 0 and below 1", code=701)


def _skewness(points: Points) -> float:
    values = doubles(points)
    from_mean = values - values.mean()
    return float((from_mean**3).mean() / (from_mean**2).mean() ** 1.5)


def _deviation(points: Points) -> float:
    values = doubles(points)
    return float(np.median(np.abs(values - np.median(values))))


def _covariance(points: Points) -> float:
    x, y = doubles(points), doubles(points, 1)
    return float(((x - x.mean()) * (y - y.mean())).mean())


def _correlation(points: Points) -> float:
    return float(_covariance(points) / (doubles(points).std() * doubles(points, 1).std()))


def _make_spread(_: Attributes, __: TimeUnit) -> Generator:
    def run(points: Points) -> Points:
        column = without_nan(points).columns[0]
        times = np.zeros(min(len(column), 1), np.int64)
        if not len(column):
            return made_points(times, column.type, times)
        least, most = column.numbers.min(keepdims=True), column.numbers.max(keepdims=True)
        return made_points(times, column.type, subtracted(most, least, None))

    return run


def _check_rank(attributes: Attributes) -> None:
    _check_error(attributes)
    if not 0 < number_attribute("percentile", {"rank": "0.5", **attributes}, "rank") <= 1:
        raise UserMistake("percentile: 'rank' must be above 0 and at most 1", code=701)


def _make_percentile(attributes: Attributes, _: TimeUnit) -> Generator:
    rank = float(attributes.get("rank", "0.5"))
    exact = float(attributes.get("error", "0")) == 0

    def run(points: Points) -> Points:
        known = without_nan(points)
        values = known.columns[0].numbers
        place = min(int(rank * len(values)), len(values) - 1)
        # Of several equal values, the first one determines the time.
        first = np.flatnonzero(values == np.sort(values)[place])[:1] if len(values) else np.empty(0, np.int64)
        found = known.take(first)
        return found if exact else Points(np.zeros(len(first), np.int64), found.columns)

    return run


# ---------------------------------------------------------------------------------------------- areas


def _seconds(attributes: Attributes) -> float:
    """Return the seconds of the attribute `unit`: 1S is a millisecond, and 1s is a second."""
    lengths = {"1S": 1 / _MILLISECONDS, "1s": 1.0, "1m": _MINUTE, "1H": _HOUR, "1d": _DAY}
    unit = attributes.get("unit", "1s")
    if unit not in lengths:
        raise UserMistake(f"integral: 'unit' must be one of {', '.join(lengths)}, not {unit!r}", code=701)
    return float(lengths[unit])


def _area(points: Points, ticks: float) -> float:
    """Return the area below the line through the points, with `ticks` as the unit of time."""
    values = doubles(points)
    return float((np.diff(points.times) / ticks * (values[1:] + values[:-1]) / 2).sum())


def _make_integral(attributes: Attributes, unit: TimeUnit) -> Generator:
    ticks = _seconds(attributes) * unit.value

    def run(points: Points) -> Points:
        return made_points(np.zeros(1, np.int64), DataType.DOUBLE, np.array([_area(without_nan(points), ticks)]))

    return run


def _mean_height(points: Points) -> float:
    length = float(points.times[-1] - points.times[0])
    return _area(points, 1.0) / length if length else float(doubles(points)[0])


# ---------------------------------------------------------------------------------------------- distributions


def _make_distinct(_: Attributes, __: TimeUnit) -> Generator:
    def run(points: Points) -> Points:
        column = points.columns[0]
        keys = text_ranks(column.text) if column.type.is_text else column.numbers
        found = points.take(np.sort(np.unique(keys, return_index=True)[1]))
        return Points(np.arange(len(found.times), dtype=np.int64), found.columns)

    return run


def _bins(attributes: Attributes) -> tuple[float, float, int]:
    limit = np.finfo(np.float64).max
    given = {"min": str(-limit), "max": str(limit), **attributes}
    low, high = (number_attribute("histogram", given, key) for key in ("min", "max"))
    if low > high:
        raise UserMistake(f"histogram: 'min' ({low}) is above 'max' ({high})", code=701)
    return low, high, integer_attribute("histogram", attributes, "count", 1, low=1, high=1_000_000)


def _make_histogram(attributes: Attributes, _: TimeUnit) -> Generator:
    low, high, count = _bins(attributes)

    def run(points: Points) -> Points:
        values = np.clip(doubles(without_nan(points)), low, high)
        # Halve the numbers before subtracting them, so that the widest range does not overflow.
        width = high / 2 - low / 2
        places = np.zeros(len(values)) if not width else (values / 2 - low / 2) / width * count
        counts = np.bincount(np.minimum(places.astype(np.int64), count - 1), minlength=count)
        return made_points(np.arange(count, dtype=np.int64), DataType.INT32, counts)

    return run


# ---------------------------------------------------------------------------------------------- standardised


def _check_standard(name: str, keys: tuple[str, str]) -> _Check:
    def check(attributes: Attributes) -> None:
        if choice_attribute(name, attributes, "compute", ("batch", "stream")) == "stream":
            for key in keys:
                number_attribute(name, attributes, key)

    return check


def _standardised(
    keys: tuple[str, str], of: Callable[[Float64Array], tuple[float, float]]
) -> Callable[[Attributes, TimeUnit], Generator]:
    """Return a function of (value - shift) / scale, where attributes or `of` give the shift and the scale."""

    def make(attributes: Attributes, _: TimeUnit) -> Generator:
        given = attributes.get("compute", "batch").lower() == "stream"

        def run(points: Points) -> Points:
            known = without_nan(points)
            values = doubles(known)
            if not len(values):
                return made_points(known.times, DataType.DOUBLE, values)
            first, second = (float(attributes[key]) for key in keys) if given else of(values)
            scale = second - first if keys == _EXTREMES else second
            with np.errstate(all="ignore"):
                return made_points(known.times, DataType.DOUBLE, (values - first) / scale)

        return run

    return make


_EXTREMES, _MOMENTS = ("min", "max"), ("avg", "sd")


def _make_mvavg(attributes: Attributes, _: TimeUnit) -> Generator:
    window = integer_attribute("mvavg", attributes, "window", 10, low=1)

    def run(points: Points) -> Points:
        known = without_nan(points)
        values = doubles(known)
        if len(values) < window:
            return made_points(known.times[:0], DataType.DOUBLE, values[:0])
        means = np.lib.stride_tricks.sliding_window_view(values, window).mean(axis=1)
        return made_points(known.times[window - 1 :], DataType.DOUBLE, means)

    return run


# ---------------------------------------------------------------------------------------------- outliers


def _check_iqr(attributes: Attributes) -> None:
    if choice_attribute("iqr", attributes, "method", ("batch", "stream")) == "stream":
        low, high = (number_attribute("iqr", attributes, key) for key in ("q1", "q3"))
        if low > high:
            raise UserMistake(f"iqr: 'q1' ({low}) is above 'q3' ({high})", code=701)


def _make_iqr(attributes: Attributes, _: TimeUnit) -> Generator:
    given = attributes.get("method", "batch").lower() == "stream"

    def run(points: Points) -> Points:
        known = without_nan(points)
        values = doubles(known)
        if not len(values):
            return made_points(known.times, DataType.DOUBLE, values)
        low, high = (float(attributes[k]) for k in ("q1", "q3")) if given else np.percentile(values, (25, 75))
        reach = _FENCE * (high - low)
        out = (values < low - reach) | (values > high + reach)
        return made_points(known.times[out], DataType.DOUBLE, values[out])

    return run


def _bounds(attributes: Attributes) -> tuple[float, float]:
    low, high = (number_attribute("range", attributes, key) for key in ("lower_bound", "upper_bound"))
    return low, high


def _make_range(attributes: Attributes, _: TimeUnit) -> Generator:
    low, high = _bounds(attributes)

    def run(points: Points) -> Points:
        values = doubles(points)
        out = (values < low) | (values > high) if high > low else np.zeros(len(values), np.bool_)
        return points.take(np.flatnonzero(out))

    return run


PROFILE = (
    point_function("spread", None, _make_spread),
    point_function("integral", DataType.DOUBLE, _make_integral, _seconds),
    _number("integralavg", _mean_height),
    _number("skew", _skewness),
    _number("median", lambda points: float(np.median(doubles(points)))),
    _number("mad", _deviation),
    _number("cov", _covariance, series=2, if_empty=float("nan")),
    _number("pearson", _correlation, series=2, if_empty=float("nan")),
    point_function("percentile", None, _make_percentile, _check_rank),
    point_function("distinct", None, _make_distinct, allowed=_ANY),
    point_function("histogram", DataType.INT32, _make_histogram, _bins),
    point_function(
        "minmax",
        DataType.DOUBLE,
        _standardised(_EXTREMES, lambda values: (float(values.min()), float(values.max()))),
        _check_standard("minmax", _EXTREMES),
    ),
    point_function(
        "zscore",
        DataType.DOUBLE,
        _standardised(_MOMENTS, lambda values: (float(values.mean()), float(values.std()))),
        _check_standard("zscore", _MOMENTS),
    ),
    point_function("mvavg", DataType.DOUBLE, _make_mvavg, lambda a: integer_attribute("mvavg", a, "window", 10, low=1)),
    point_function("iqr", DataType.DOUBLE, _make_iqr, _check_iqr),
    point_function("range", None, _make_range, _bounds),
)
