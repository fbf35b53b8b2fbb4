"""The shape of a series: correlation with itself or another series, period, symmetry, straight parts, a smooth curve.

    XCORR               two series, one shifted by -(n - 1) to n - 1 points, at times 1, 2, ...
    PACF QLB            a series and itself, shifted: partial correlation at the points' times; p values at the lags
    AR                  coefficients of the autoregressive model, at times 1, 2, ...
    PERIOD              the period in points, at time 0
    PTNSYM SEGMENT      parts that are symmetric, or nearly straight, at their first times
    SPLINE              a curve through the points (Akima), at evenly spaced times

A non-finite value counts as 0 in XCORR, PACF and QLB, and as the previous value in PERIOD. Other functions skip it.

Sources: Akima, A New Method of Interpolation and Smooth Curve Fitting, 1970; Keogh et al., An Online Algorithm for
Segmenting Time Series, 2001 (bottom-up); Durbin, The Fitting of Time-Series Models, 1960.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from saros_engine.aggregation.windows import WINDOWS_MAX
from saros_engine.functions.function import Attributes, choice_attribute, integer_attribute, number_attribute
from saros_engine.transforms.profile import doubles, finite_points, made_points, point_function
from saros_engine.transforms.series_transform import Generator, Points
from saros_engine.transforms.signal import mode, shifted_products
from saros_engine.transforms.spectrum import convolved
from saros_scheduler import require_wanted
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType, Float64Array, Int64Array, TimeUnit

_DOUBLE = DataType.DOUBLE
#: The time of PACF, AR and QLB is quadratic in the number of lags.
_LAG_MAX = 10_000
#: The time of PTNSYM is proportional to the number of points times the square of the window.
_SYMMETRY_MAX = 1 << 29
#: The limit on the total number of values in windows that are computed together.
_TOGETHER = 1 << 18
#: The limit on the points of SEGMENT, which searches all parts each time it joins two of them.
_SEGMENT_ROWS_MAX = 20_000


def _or_zero(points: Points, number: int = 0) -> Float64Array:
    values = doubles(points, number)
    return np.where(np.isfinite(values) & points.columns[number].present, values, 0.0)


def _require_lag(name: str, lag: int, key: str = "lag") -> None:
    if lag > _LAG_MAX:
        raise UserMistake(f"{name}: '{key}' would be {lag}, but at most {_LAG_MAX:,} is allowed: set it", code=2005)


# ---------------------------------------------------------------------------------------------- shifted


def _make_xcorr(_: Attributes, __: TimeUnit) -> Generator:
    def run(points: Points) -> Points:
        x, y = _or_zero(points), _or_zero(points, 1)
        count = len(x)
        sums = convolved(x, y[::-1]) if count else x
        return made_points(np.arange(1, len(sums) + 1, dtype=np.int64), _DOUBLE, sums / max(count, 1))

    return run


def _make_pacf(attributes: Attributes, _: TimeUnit) -> Generator:
    given = integer_attribute("pacf", attributes, "lag", -1)

    def run(points: Points) -> Points:
        values = _or_zero(points)
        count = len(values)
        if count < 2:
            return made_points(points.times[:0], _DOUBLE, values[:0])
        lag = given if 0 <= given < count else min(int(10 * math.log10(count)), count - 1)
        _require_lag("pacf", lag)
        products = shifted_products(values - values.mean())[: lag + 1]
        with np.errstate(all="ignore"):
            found = _predicted(products / (count - np.arange(lag + 1)))[0]
        return made_points(points.times[: lag + 1], _DOUBLE, found)

    return run


def _predicted(covariances: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Run Durbin's recursion: return the last coefficient of each order, and all coefficients of the last order."""
    found = np.ones(len(covariances))
    weights = np.empty(0)
    for order in range(1, len(covariances)):
        before = covariances[1:order]
        missing = covariances[order] - weights @ before[::-1]
        found[order] = last = missing / (covariances[0] - weights @ before)
        weights = np.append(weights - last * weights[::-1], last)
    return found, weights


def _make_ar(attributes: Attributes, _: TimeUnit) -> Generator:
    order = integer_attribute("ar", attributes, "p", 1, low=1)

    def run(points: Points) -> Points:
        known = finite_points(points)
        values = _regularized(known.times, doubles(known))
        if len(values) <= order:
            return made_points(points.times[:0], _DOUBLE, values[:0])
        _require_lag("ar", order, "p")
        products = shifted_products(values)[: order + 1]
        with np.errstate(all="ignore"):
            weights = _predicted(products / (len(values) - np.arange(order + 1)))[1]
        return made_points(np.arange(1, order + 1), _DOUBLE, weights)

    return run


def _regularized(times: Int64Array, values: Float64Array) -> Float64Array:
    """Return the values at the most frequent step, with missing points interpolated."""
    if len(times) < 2:
        return values
    steps = np.diff(times)
    gaps = np.maximum(steps // mode(steps), 1)
    if int(gaps.sum()) > WINDOWS_MAX:
        raise UserMistake(
            f"ar: with missing points filled in there are {gaps.sum():,} points; at most {WINDOWS_MAX:,} are allowed",
            code=2005,
        )
    within = np.arange(int(gaps.sum())) - np.repeat(np.cumsum(gaps) - gaps, gaps)
    return np.append(np.repeat(values[:-1], gaps) + within * np.repeat(np.diff(values) / gaps, gaps), values[-1])


def _make_qlb(attributes: Attributes, _: TimeUnit) -> Generator:
    given = integer_attribute("qlb", attributes, "lag", 0, low=0)

    def run(points: Points) -> Points:
        values = _or_zero(points)
        count = len(values)
        lag = given if 0 < given < count else max(count - 2, 0)
        _require_lag("qlb", lag)
        lags = np.arange(1, lag + 1)
        if not lag:
            return made_points(lags, _DOUBLE, values[:0])
        products = shifted_products(values - values.mean())[: lag + 1]
        with np.errstate(all="ignore"):  # a constant series has no correlation
            correlations = products[1:] / products[0]
        statistics = np.cumsum(correlations**2 / (count - lags) * count * (count + 2))
        return made_points(lags, _DOUBLE, _beyond(statistics))

    return run


def _beyond(statistics: Float64Array) -> Float64Array:
    """Return the probabilities that chi-squared variables with 1, 2, ... degrees of freedom exceed the statistics.

    With x half of the statistic, the probability for 2 n degrees is the sum of exp(-x) x^k / gamma(k + 1) over k = 0
    ... n - 1. For 2 n + 1 degrees it is erfc(sqrt x) plus the same sum over k = 1/2 ... n - 1/2.
    """
    whole = np.arange(len(statistics) // 2 + 1)
    gammas = (
        np.cumsum(np.log(np.maximum(whole, 1))),
        math.lgamma(1.5) + np.cumsum(np.log(np.maximum(whole + 0.5, 1.0))),
    )
    found = np.empty(len(statistics))
    for number, half in enumerate((statistics / 2).tolist()):
        terms, odd = divmod(number + 1, 2)
        if not half > 0:
            found[number] = half + 1  # 1, or NaN
            continue
        logs = (whole[:terms] + odd / 2) * math.log(half) - half - gammas[odd][:terms]
        found[number] = np.exp(logs).sum() + odd * math.erfc(math.sqrt(half))
    return found


# ---------------------------------------------------------------------------------------------- periodic

#: The autocorrelation at a multiple of the period must be at least this.
_ALIKE = 0.5
#: The largest shift that is tried as the shortest period. If no shift fits, this number is used as the shortest period.
_PERIOD_VIEW = 100
#: Correlations are rounded to this number of decimals, because sums of products are not more precise.
_DIGITS = 12


def _make_period(_: Attributes, __: TimeUnit) -> Generator:
    def run(points: Points) -> Points:
        values = doubles(points)
        known = np.isfinite(values)
        # A non-finite value is replaced by the previous finite value; leading non-finite values are dropped.
        last = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
        values = values[last[last >= 0]]
        if not len(values):
            return made_points(points.times[:0], DataType.INT32, values)
        peaks = np.concatenate([[0], _peaks(_autocorrelation(values))])
        period = int(np.median(np.diff(peaks))) if len(peaks) > 1 else 0
        return made_points(np.zeros(1, np.int64), DataType.INT32, np.array([period]))

    return run


def _autocorrelation(values: Float64Array) -> Float64Array:
    """Return the correlations of the series with itself shifted by 0, 1, ... points (-inf if not defined)."""
    values = values - values.mean()
    count = len(values)
    sums, squares = (np.concatenate([[0.0], np.cumsum(v)]) for v in (values, values * values))
    kept = np.arange(count, 0, -1)
    first, second = sums[kept], sums[-1] - sums[count - kept]
    spreads = [kept * s - m * m for s, m in ((squares[kept], first), (squares[-1] - squares[count - kept], second))]
    with np.errstate(all="ignore"):
        found = (kept * shifted_products(values) - first * second) / np.sqrt(spreads[0] * spreads[1])
    still = np.minimum(*spreads) <= 10.0**-_DIGITS * kept * squares[-1]
    return np.where(still, -np.inf, np.round(found, _DIGITS))


def _peaks(likenesses: Float64Array) -> Int64Array:
    """Return the shifts at which the autocorrelation is greatest within half of the shortest period on both sides."""
    near = likenesses[: min(len(likenesses), _PERIOD_VIEW + 1)]
    rising = (near[1:-1] > near[:-2]) & (near[1:-1] > near[2:]) & (near[1:-1] > _ALIKE)
    width = int(np.argmax(rising)) + 1 if rising.any() else _PERIOD_VIEW
    if len(likenesses) < width:
        return np.empty(0, np.int64)
    middle = width // 2
    views = np.lib.stride_tricks.sliding_window_view(likenesses, width)
    likely = np.flatnonzero(views[:, middle] > _ALIKE)
    parts = np.split(likely, range(_TOGETHER // width, len(likely), _TOGETHER // width))
    return np.concatenate([part[views[part].argmax(axis=1) == middle] for part in parts]) + middle


# ---------------------------------------------------------------------------------------------- symmetric


def _check_ptnsym(attributes: Attributes) -> None:
    integer_attribute("ptnsym", attributes, "window", 10, low=1)
    if "threshold" in attributes and not 0 <= number_attribute("ptnsym", attributes, "threshold") < np.inf:
        raise UserMistake("ptnsym: 'threshold' must be a number of at least 0", code=701)


def _make_ptnsym(attributes: Attributes, _: TimeUnit) -> Generator:
    window = integer_attribute("ptnsym", attributes, "window", 10, low=1)
    threshold = float(attributes.get("threshold", "inf"))

    def run(points: Points) -> Points:
        values = doubles(points)
        if len(values) < window:
            return made_points(points.times[:0], _DOUBLE, values[:0])
        if len(values) * window * window > _SYMMETRY_MAX:
            raise UserMistake(
                f"ptnsym: {len(values):,} points are too many for a window of {window}; the points times the square of"
                f" the window may be at most {_SYMMETRY_MAX:,}",
                code=2005,
            )
        views = np.lib.stride_tricks.sliding_window_view(values, window)
        step = max(_TOGETHER // window, 1)
        found = np.concatenate([_asymmetry(views[at : at + step]) for at in range(0, len(views), step)])
        return made_points(points.times[: len(found)], _DOUBLE, found).take(np.flatnonzero(found <= threshold))

    return run


def _asymmetry(views: Float64Array) -> Float64Array:
    """Return the dynamic time warping distance of each window from its mirror image; non-finite values propagate.

    The distance is computed from the middle outwards: the cost of a part is the squared difference of its ends, plus
    the least of the costs of the part without its first, its last, or both points.
    """
    columns = np.ascontiguousarray(views.T)
    inner = np.zeros(columns.shape)
    outer = np.where(np.isfinite(columns), 0.0, np.nan) if len(columns) == 1 else (columns[1:] - columns[:-1]) ** 2
    for length in range(3, len(columns) + 1):
        ends = (columns[length - 1 :] - columns[: 1 - length]) ** 2
        inner, outer = outer, ends + np.minimum(np.minimum(outer[1:], outer[:-1]), inner[1:-1])
    return np.asarray(outer[0])


# ---------------------------------------------------------------------------------------------- lines, curves


def _check_segment(attributes: Attributes) -> None:
    choice_attribute("segment", attributes, "output", ("first", "all"))
    choice_attribute("segment", attributes, "method", ("bottom-up",))
    if not 0 <= number_attribute("segment", {"error": "0.1", **attributes}, "error") < np.inf:
        raise UserMistake("segment: 'error' must be a number of at least 0", code=701)


def _make_segment(attributes: Attributes, _: TimeUnit) -> Generator:
    whole = choice_attribute("segment", attributes, "output", ("first", "all")) == "all"
    error_max = float(attributes.get("error", "0.1"))

    def run(points: Points) -> Points:
        found = finite_points(points)
        values = doubles(found)
        if len(values) > _SEGMENT_ROWS_MAX:
            raise UserMistake(
                f"segment: {len(values):,} points are too many; at most {_SEGMENT_ROWS_MAX:,} are allowed: sample them",
                code=2005,
            )
        edges = _edges(values, error_max)
        lines = [_line(values[low:high]) for low, high in pairwise(edges)]
        if whole:
            return made_points(found.times, _DOUBLE, np.concatenate([values[:0], *lines]))
        return made_points(found.times[edges[:-1]], _DOUBLE, np.array([line[0] for line in lines]))

    return run


def _edges(values: Float64Array, error_max: float) -> list[int]:
    """Return the starts of the parts that SEGMENT finds, followed by the end of the series.

    SEGMENT begins with pairs of points, and repeatedly joins the two neighbouring parts that fit one line best.
    """
    count = len(values)
    if count <= 3:
        return [0, count] if count else [0]
    edges = [*range(0, count - 1 - count % 2, 2), count]
    errors = np.array([_error(values[a:c]) for a, c in zip(edges[:-2], edges[2:], strict=True)])
    while len(errors) and errors.min() < error_max:
        require_wanted()
        at = int(errors.argmin())
        del edges[at + 1]
        errors = np.delete(errors, at)
        for near in (at - 1, at):
            if 0 <= near < len(errors):
                errors[near] = _error(values[edges[near] : edges[near + 2]])
    return edges


def _line(values: Float64Array) -> Float64Array:
    """Return the values of the straight line that fits evenly spaced values best (least squares)."""
    if len(values) <= 2:
        return values
    places = np.arange(len(values)) - (len(values) - 1) / 2
    return np.asarray(values.mean() + places * (places @ values / (places @ places)))


def _error(values: Float64Array) -> float:
    return float(np.abs(values - _line(values)).mean())


#: A curve needs at least this number of points.
_CURVE_POINTS_MIN = 5


def _count(attributes: Attributes) -> int:
    return integer_attribute("spline", attributes, "points", low=2, high=WINDOWS_MAX)


def _make_spline(attributes: Attributes, _: TimeUnit) -> Generator:
    count = _count(attributes)

    def run(points: Points) -> Points:
        known = finite_points(points)
        if len(known.times) < _CURVE_POINTS_MIN:
            return made_points(known.times[:0], _DOUBLE, doubles(known)[:0])
        since = (known.times - known.times[0]).astype(np.float64)
        wanted = np.unique(np.floor(since[-1] * np.arange(count) / (count - 1) + 0.5))
        curve = _curve(since, doubles(known), wanted)
        return made_points(known.times[0] + wanted.astype(np.int64), _DOUBLE, curve)

    return run


def _curve(x: Float64Array, y: Float64Array, wanted: Float64Array) -> Float64Array:
    """Evaluate Akima's curve: cubics between the points, with tangents weighted towards the smoother side."""
    slopes = np.diff(y) / np.diff(x)
    bends = np.abs(np.diff(slopes))
    left, right = bends[2:], bends[:-2]
    straight = (left == 0) & (right == 0)
    steps = np.diff(x)
    left, right = np.where(straight, steps[2:-1], left), np.where(straight, steps[1:-2], right)
    tangents = np.empty(len(x))
    tangents[2:-2] = (left * slopes[1:-2] + right * slopes[2:-1]) / (left + right)
    for first, ends in ((0, (0, 1)), (len(x) - 3, (len(x) - 2, len(x) - 1))):
        for at in ends:
            tangents[at] = _tangent(x[first : first + 3], y[first : first + 3], x[at])
    place = np.clip(np.searchsorted(x, wanted, "right") - 1, 0, len(x) - 2)
    along, step = wanted - x[place], steps[place]
    third = (tangents[place] + tangents[place + 1] - 2 * slopes[place]) / step**2
    second = (3 * slopes[place] - 2 * tangents[place] - tangents[place + 1]) / step
    return np.asarray(y[place] + along * (tangents[place] + along * (second + along * third)))


def _tangent(x: Float64Array, y: Float64Array, at: float) -> float:
    """Return the slope at `at` of the parabola through three points."""
    first, second = np.diff(y) / np.diff(x)
    bend = (second - first) / (x[2] - x[0])
    return float(first + bend * (2 * at - x[0] - x[1]))


SHAPE = (
    point_function("xcorr", _DOUBLE, _make_xcorr, series=2, apart=True),
    point_function("pacf", _DOUBLE, _make_pacf, lambda a: integer_attribute("pacf", a, "lag", -1)),
    point_function("ar", _DOUBLE, _make_ar, lambda a: integer_attribute("ar", a, "p", 1, low=1)),
    point_function("qlb", _DOUBLE, _make_qlb, lambda a: integer_attribute("qlb", a, "lag", 0, low=0)),
    point_function("period", DataType.INT32, _make_period),
    point_function("ptnsym", _DOUBLE, _make_ptnsym, _check_ptnsym),
    point_function("segment", _DOUBLE, _make_segment, _check_segment),
    point_function("spline", _DOUBLE, _make_spline, _count),
)
