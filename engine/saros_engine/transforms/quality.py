"""The data quality functions of IoTDB's library.

These functions rate each window of a series with a number from 0 to 1.

    COMPLETENESS    1 - (missing + not finite) / (points + missing)
    CONSISTENCY     1 - redundant / points
    TIMELINESS      1 - late / points
    VALIDITY        1 - outliers / (4 * points), counted among the values, their steps, their speeds, the speeds' steps

The pace of a window is the median of its steps in time; `saros_storage.kernels.time_gaps` defines missing, redundant
and late points with respect to the pace. An outlier is further from the median than 3 * 1.4826 times the median
absolute deviation; non-finite values are interpolated first.

A window is `window` points, or a duration, counted from the first point of the series. Windows of at most ten points
have no result; VALIDITY also has none for a window with fewer than two finite values. The result has the time of the
window's first point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from saros_engine.functions.function import Attributes, duration_attribute, flag_attribute, integer_attribute
from saros_engine.transforms.profile import doubles, made_points, point_function
from saros_engine.transforms.series_transform import Generator, Points, SeriesTransform
from saros_grammar.syntax.literals import is_duration
from saros_scheduler import require_wanted
from saros_storage.base.types import DataType, Float64Array, Int64Array, TimeUnit
from saros_storage.kernels.time_gaps import pace_faults

#: The detection of faults looks at this number of points at a time; a window needs more points than this.
_VIEW = 10
#: A step of more paces than this is downtime, not a gap, unless the attribute `downtime` is false.
_GAP_PACES_MAX = 9.0
_OUTLIER_DEVIATIONS, _DEVIATION = 3, 1.4826
_POINTS_MAX = (1 << 31) - 1

#: Computes the result of a window from the window's times and values, or None if the window has no result.
_Share = Callable[[Int64Array, Float64Array], float | None]


def _windows(name: str, attributes: Attributes, times: Int64Array, unit: TimeUnit) -> Iterator[slice]:
    """Yield the windows that have enough points."""
    if is_duration(attributes.get("window", "")):
        ticks = duration_attribute(name, attributes, "window", unit)
        number = (times - times[:1]) // ticks
        edges = np.concatenate((np.flatnonzero(np.diff(number, prepend=-1)), [len(times)]))
    else:
        size = integer_attribute(name, attributes, "window", _POINTS_MAX, low=1)
        edges = np.arange(0, len(times) + size, size)
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        require_wanted()
        if min(stop, len(times)) - start > _VIEW:
            yield slice(start, stop)


def _quality(name: str, make: Callable[[Attributes], _Share]) -> SeriesTransform:
    def check(attributes: Attributes) -> None:
        list(_windows(name, attributes, np.empty(0, np.int64), TimeUnit.NANOSECOND))
        make(attributes)

    def made(attributes: Attributes, unit: TimeUnit) -> Generator:
        ratio = make(attributes)

        def run(points: Points) -> Points:
            values = doubles(points)
            windows = _windows(name, attributes, points.times, unit)
            found = [(points.times[w.start], ratio(points.times[w], values[w])) for w in windows]
            known = [(time, value) for time, value in found if value is not None]
            times = np.array([time for time, _ in known], np.int64)
            return made_points(times, DataType.DOUBLE, np.array([value for _, value in known], np.float64))

        return run

    return point_function(name, DataType.DOUBLE, made, check)


# ---------------------------------------------------------------------------------------------- times


def _faults(times: Int64Array, longest: float = _GAP_PACES_MAX) -> tuple[int, int, int]:
    """Return the numbers of redundant, late, and missing points."""
    found = np.empty(3, np.int64)
    pace_faults(times, float(np.median(np.diff(times))), longest, np.empty(_VIEW, np.int64), found)
    redundant, late, missing = found.tolist()
    return redundant, late, missing


def _completeness(attributes: Attributes) -> _Share:
    longest = _GAP_PACES_MAX if flag_attribute("completeness", attributes, "downtime", default=True) else np.inf

    def ratio(times: Int64Array, values: Float64Array) -> float:
        missing = _faults(times, longest)[2]
        odd = int(np.count_nonzero(~np.isfinite(values)))
        return 1 - (missing + odd) / (len(times) + missing)

    return ratio


def _consistency(_: Attributes) -> _Share:
    return lambda times, _: 1 - _faults(times)[0] / len(times)


def _timeliness(_: Attributes) -> _Share:
    return lambda times, _: 1 - _faults(times)[1] / len(times)


# ---------------------------------------------------------------------------------------------- values


def _validity(_: Attributes) -> _Share:
    def ratio(times: Int64Array, values: Float64Array) -> float | None:
        whole = bridged(times, values)
        if whole is None:
            return None
        with np.errstate(all="ignore"):
            speeds = np.diff(whole) / np.diff(times)
            outliers = sum(_outliers(series) for series in (whole, np.diff(whole), speeds, np.diff(speeds)))
        return 1 - outliers / 4 / len(times)

    return ratio


def _outliers(values: Float64Array) -> int:
    return int(np.count_nonzero(np.abs(values - np.median(values)) > _OUTLIER_DEVIATIONS * deviation(values)))


def deviation(values: Float64Array) -> float:
    """Return the median absolute deviation, scaled to the standard deviation of a normal distribution."""
    return _DEVIATION * float(np.median(np.abs(values - np.median(values))))


def bridged(times: Int64Array, values: Float64Array) -> Float64Array | None:
    """Replace non-finite values by interpolation between finite values, or by extrapolation at the ends.

    Returns None if fewer than two values are finite.
    """
    finite = np.flatnonzero(np.isfinite(values))
    if len(finite) == len(values):
        return values
    if len(finite) < 2:
        return None
    behind = np.clip(np.searchsorted(finite, np.arange(len(values))), 1, len(finite) - 1)
    low, high = finite[behind - 1], finite[behind]
    slopes = (values[high] - values[low]) / (times[high] - times[low])
    return np.where(np.isfinite(values), values, values[low] + slopes * (times - times[low]))


QUALITY = (
    _quality("completeness", _completeness),
    _quality("consistency", _consistency),
    _quality("timeliness", _timeliness),
    _quality("validity", _validity),
)
