"""The anomaly functions of IoTDB's library, except for the functions that only compare values with bounds.

    OUTLIER             points with few neighbours in value, window by window
    TWOSIDEDFILTER      the points, except those that differ from both the preceding and the following points
    LOF                 the nearness of a row, or of a run of consecutive points, to all others: small for outliers
    MISSDETECT          true for points in a part so straight that it was probably filled by interpolation

Non-finite values are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saros_engine.base.errors import SemanticError
from saros_engine.functions.function import Attributes, choice_attribute, expect, integer_attribute, number_attribute
from saros_engine.plan.expression import FunctionCall
from saros_engine.transforms.profile import doubles, finite_points, made_points, point_function
from saros_engine.transforms.series_transform import Generator, Points, SeriesTransform, attributes_of
from saros_scheduler import require_wanted
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import NUMERIC_TYPES, BoolArray, DataType, Float64Array, Int64Array, TimeUnit


def _refuse(name: str, rows: int, advice: str) -> UserMistake:
    return UserMistake(f"{name}: {rows:,} points are too many for these attributes: {advice}", code=2005)


# ---------------------------------------------------------------------------------------------- straight parts

#: A part of a series counts as straight if its coefficient of determination (R squared) is at least this.
_STRAIGHT = 0.9999
#: The initial and the maximum number of windows, or of points, that are tested in one step.
_LOOK, _LOOK_MAX = 16, 1 << 14


def _make_missdetect(attributes: Attributes, _: TimeUnit) -> Generator:
    least = integer_attribute("missdetect", attributes, "minlen", 10, low=10)

    def run(points: Points) -> Points:
        known = finite_points(points)
        times, values = (known.times - known.times[:1]).astype(np.float64), doubles(known)
        filled = np.zeros(len(values), np.bool_)
        window, begin = least // 2, 0
        while (first := _straight_window(times, values, begin, window)) is not None:
            end = _straight_end(times, values, first, first + window)
            back = _straight_back(times, values, max(begin, first - window), first, first + window)
            filled[back:end] = end - back > least
            begin = end
        return made_points(known.times, DataType.BOOLEAN, filled)

    return run


def _explained(times: Float64Array, values: Float64Array) -> BoolArray:
    """Return a flag for each row of points: true if a straight line fits the points. Equal values always fit."""
    times = times - times.mean(axis=1, keepdims=True)
    values = values - values[:, :1]
    same = ~values.any(axis=1)
    values = values - values.mean(axis=1, keepdims=True)
    both, alone = (times * values).sum(axis=1), (times * times).sum(axis=1) * (values * values).sum(axis=1)
    return same | (both * both > _STRAIGHT * alone)  # type: ignore[no-any-return]


def _straight_window(times: Float64Array, values: Float64Array, begin: int, window: int) -> int | None:
    """Return the start of the first straight window among the consecutive windows starting at `begin`, or None."""
    look = _LOOK
    while (count := min((len(values) - begin) // window, look)) > 0:
        end = begin + count * window
        rows = (count, window)
        found = np.flatnonzero(_explained(times[begin:end].reshape(rows), values[begin:end].reshape(rows)))
        if len(found):
            return begin + int(found[0]) * window
        begin, look = end, min(2 * look, _LOOK_MAX)
    return None


def _straight_end(times: Float64Array, values: Float64Array, first: int, end: int) -> int:
    """Return the end of the straight part that begins at `first` and is known to extend at least to `end`."""
    look = _LOOK
    while end < len(values):
        stop = min(end + look, len(values))
        bent = np.flatnonzero(~_prefixes(times[first:stop], values[first:stop])[end - first :])
        if len(bent):
            return end + int(bent[0])
        end, look = stop, 2 * max(look, stop - first)
    return end


def _straight_back(times: Float64Array, values: Float64Array, low: int, first: int, end: int) -> int:
    """Extend the straight part [first, end) backwards. Return its earliest start, which is at least `low`."""
    bent = np.flatnonzero(~_prefixes(times[low:end][::-1], values[low:end][::-1])[end - first :])
    return first - int(bent[0]) if len(bent) else low


def _prefixes(times: Float64Array, values: Float64Array) -> BoolArray:
    """Return a flag for each point: true if a straight line fits all points up to this one."""
    x, y = times - times[0], values - values[0]
    count = np.arange(1, len(x) + 1)
    sums_x, sums_y = np.cumsum(x), np.cumsum(y)
    alone_x = np.cumsum(x * x) - sums_x * sums_x / count
    alone_y = np.cumsum(y * y) - sums_y * sums_y / count
    both = np.cumsum(x * y) - sums_x * sums_y / count
    return ~np.logical_or.accumulate(y != 0) | (both * both >= _STRAIGHT * alone_x * alone_y)  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------------------------- few neighbours

#: The limit on the number of points in all windows, and the cost of a window, which counts as this number of points.
_OUTLIER_POINTS_MAX, _WINDOW_COST = 1 << 25, 256


def _outlier_attributes(attributes: Attributes) -> tuple[float, int, int, int]:
    """Return (distance, number of neighbours, window, step)."""
    name = "outlier"
    distance = number_attribute(name, {"r": "5", **attributes}, "r")
    if not 0 <= distance < np.inf:
        raise UserMistake(f"{name}: 'r' must be a number of at least 0, not {distance}", code=701)
    neighbours = integer_attribute(name, attributes, "k", 3, low=1)
    return (
        distance,
        neighbours,
        integer_attribute(name, attributes, "w", 1_000, low=1),
        integer_attribute(name, attributes, "s", 500, low=1),
    )


def _make_outlier(attributes: Attributes, _: TimeUnit) -> Generator:
    distance, neighbours, window, step = _outlier_attributes(attributes)

    def run(points: Points) -> Points:
        found = finite_points(points)
        values = doubles(found)
        starts = range(0, len(values) - window + 1, step)
        if len(starts) * (window + _WINDOW_COST) > _OUTLIER_POINTS_MAX:
            raise _refuse("outlier", len(values), "take a wider step 's', or a shorter range of time")
        alone = np.zeros(len(values), np.bool_)
        for start in starts:
            require_wanted()
            alone[start : start + window] |= _near(values[start : start + window], distance) < neighbours
        return found.take(np.flatnonzero(alone))

    return run


def _near(values: Float64Array, distance: float) -> Int64Array:
    """Return, for each value, the number of values within `distance` of it, including the value itself."""
    order = np.argsort(values)
    ordered = values[order]
    places = np.arange(len(values))
    found = np.empty(len(values), np.int64)
    found[order] = _reached(ordered, places, distance) + _reached(-ordered[::-1], places, distance)[::-1] - 1
    return found


def _reached(ordered: Float64Array, places: Int64Array, distance: float) -> Int64Array:
    """Return, for each value v, the number of values in [v, v + distance], which includes v."""
    low, high = places, np.full(len(places), len(places))
    for _ in range(len(places).bit_length()):
        middle = (low + high) // 2
        with np.errstate(over="ignore"):
            near = ordered[middle] - ordered <= distance
        low, high = np.where(near, middle, low), np.where(near, high, middle)
    return low - places + 1


# ---------------------------------------------------------------------------------------------- both sides

#: Limit on the number of points times `len`.
_SIDES_MAX = 1 << 29


def _filter_attributes(attributes: Attributes) -> tuple[int, float]:
    threshold = number_attribute("twosidedfilter", {"threshold": "0.3", **attributes}, "threshold")
    if not 0 < threshold < 1:
        raise UserMistake(f"twosidedfilter: 'threshold' must be between 0 and 1, not {threshold}", code=701)
    return integer_attribute("twosidedfilter", attributes, "len", 5, low=1), threshold


def _make_twosidedfilter(attributes: Attributes, unit: TimeUnit) -> Generator:
    length, threshold = _filter_attributes(attributes)

    def run(points: Points) -> Points:
        found = finite_points(points)
        times, values = found.times, doubles(found)
        if len(values) * length > _SIDES_MAX:
            raise _refuse("twosidedfilter", len(values), "take a smaller 'len', or a shorter range of time")
        sides = np.zeros((2, len(values)))
        for shift in range(1, min(length, len(values) - 1) + 1):
            near = times[shift:] - times[:-shift] <= length * unit.value
            sides[0, shift:] += np.where(near, values[:-shift], 0)
            sides[1, :-shift] += np.where(near, values[shift:], 0)
        sides /= length
        with np.errstate(all="ignore"):
            unlike = np.abs(sides - values) / (np.maximum(sides, values) + 1)
        return found.take(np.flatnonzero((unlike < threshold).any(axis=0)))

    return run


# ---------------------------------------------------------------------------------------------- sparse neighbourhoods

#: The number of coordinate differences computed at once, and the limit on their total number.
_TOGETHER, _DIFFERENCES_MAX = 1 << 20, 1 << 28


def _lof_attributes(attributes: Attributes) -> tuple[bool, int, int, int]:
    """Return (whether `method` is `series`, the number of neighbours, the window, the number of consecutive points)."""
    return (
        choice_attribute("lof", attributes, "method", ("default", "series")) == "series",
        integer_attribute("lof", attributes, "k", 3, low=1),
        integer_attribute("lof", attributes, "window", 10_000, low=1),
        integer_attribute("lof", attributes, "windowsize", 5, low=1, high=1_000),
    )


def _lof_type(types: Sequence[DataType], attributes: Attributes) -> DataType:
    if not types:
        raise SemanticError("lof takes one or more series")
    expect("lof", types, *[NUMERIC_TYPES] * len(types))
    if _lof_attributes(attributes)[0] and len(types) > 1:
        raise SemanticError("lof takes one series with 'method'='series'")
    return DataType.DOUBLE


def _make_lof(call: FunctionCall, _: TimeUnit) -> Generator:
    in_a_row, neighbours, window, size = _lof_attributes(attributes_of(call))

    def run(points: Points) -> Points:
        found = finite_points(points)
        count = len(found.times)
        if count * min(count, window) * (size if in_a_row else len(found.columns)) > _DIFFERENCES_MAX:
            raise _refuse("lof", count, "take a smaller 'window', or a shorter range of time")
        made = [found.take(np.arange(start, min(start + window, count))) for start in range(0, count, window)]
        parts = [_factors(_places(part, size if in_a_row else 0), neighbours) for part in made]
        times = [part.times[: len(factors)] for part, factors in zip(made, parts, strict=True)]
        return made_points(
            np.concatenate([found.times[:0], *times]), DataType.DOUBLE, np.concatenate([np.empty(0), *parts])
        )

    return run


def _places(points: Points, size: int) -> Float64Array:
    """Return a matrix with a row of coordinates for each row of the arguments or run of `size` consecutive points."""
    if not size:
        return np.stack([doubles(points, number) for number in range(len(points.columns))], axis=1)
    if len(points.times) < size:
        return np.empty((0, size))
    return np.lib.stride_tricks.sliding_window_view(doubles(points), size)


def _factors(places: Float64Array, neighbours: int) -> Float64Array:
    """Return, for each place, the sum of the reaches of all places, divided by the place's reach and by `neighbours`.

    The reach of a place is the sum of its distances to all places, where each distance counts at least as much as the
    place's distance to its n-th nearest neighbour (n: `neighbours`).
    """
    count = len(places)
    if count <= neighbours:
        return np.empty(0)
    reaches = np.empty(count)
    step = max(_TOGETHER // (count * places.shape[1]), 1)
    for start in range(0, count, step):
        require_wanted()
        gaps = np.sqrt(((places[start : start + step, None, :] - places[None]) ** 2).sum(axis=2))
        least = np.partition(gaps, neighbours, axis=1)[:, neighbours]
        reaches[start : start + step] = np.maximum(gaps, least[:, None]).sum(axis=1)
    with np.errstate(all="ignore"):
        return np.asarray(reaches.sum() / reaches / neighbours)


ANOMALY = (
    point_function("outlier", None, _make_outlier, _outlier_attributes),
    point_function("twosidedfilter", None, _make_twosidedfilter, _filter_attributes),
    SeriesTransform("lof", _lof_type, _make_lof),
    point_function(
        "missdetect",
        DataType.BOOLEAN,
        _make_missdetect,
        lambda attributes: integer_attribute("missdetect", attributes, "minlen", 10, low=10),
    ),
)
