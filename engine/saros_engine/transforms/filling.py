"""VALUEFILL: replace the NaN values of a series, without changing the points' times.

    linear previous mean     from the points around the value, the point before it, and all points
    ma                       the mean of the five points around
    ar                       from the previous value, with the model x' = theta x + mean residual (AR(1))
    screen                   the median of the bounds implied by points within five steps, limited by the speed bounds
    likelihood               the smallest changes of speed (least squares): a cubic for evenly spaced points

Non-finite values are treated as NaN. Values for which a model has no result stay NaN, for example before the first
value.

Sources: Song et al., SCREEN: Stream Data Cleaning under Speed Constraints, 2015; Zhang et al., Sequential Data
Cleaning: A Statistical Approach, 2016.
"""

from __future__ import annotations

import numpy as np

from saros_engine.functions.function import Attributes, choice_attribute
from saros_engine.transforms.profile import doubles, made_points, point_function
from saros_engine.transforms.quality import deviation
from saros_engine.transforms.series_transform import Generator, Points
from saros_engine.transforms.signal import forward_filled
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import BoolArray, Float64Array, TimeUnit

_NAME = "valuefill"
_METHODS = ("linear", "previous", "mean", "ma", "ar", "screen", "likelihood")
#: The number of points on each side of a missing value that MA uses.
_REACH = 2
#: The number of median steps that Screen looks ahead, and the number of scaled median absolute deviations between the
#: median speed and Screen's bounds.
_STEPS, _DEVIATIONS = 5, 3
#: The maximum length of a stretch of missing values. Likelihood solves one system of equations for each stretch.
_EQUATIONS_MAX = 500
#: The limit on the number of bounds that Screen computes.
_NUMBERS_MAX = 1 << 26


def _make_valuefill(attributes: Attributes, _: TimeUnit) -> Generator:
    fill = _FILLS[choice_attribute(_NAME, attributes, "method", _METHODS)]

    def run(points: Points) -> Points:
        values = doubles(points)
        there = np.isfinite(values)
        if there.all() or not there.any():
            return points
        since = (points.times - points.times[0]).astype(np.float64)
        return made_points(points.times, points.columns[0].type, fill(since, np.where(there, values, np.nan), there))

    return run


def _linear(_: Float64Array, values: Float64Array, there: BoolArray) -> Float64Array:
    places = np.arange(len(values), dtype=np.float64)
    return np.interp(places, places[there], values[there])


def _previous(_: Float64Array, values: Float64Array, there: BoolArray) -> Float64Array:
    return forward_filled(values, there)


def _mean(_: Float64Array, values: Float64Array, there: BoolArray) -> Float64Array:
    return np.where(there, values, values[there].mean())


def _around(_: Float64Array, values: Float64Array, there: BoolArray) -> Float64Array:
    missing = np.flatnonzero(~there)
    size = min(2 * _REACH + 1, len(values))
    near = np.clip(missing - _REACH, 0, len(values) - size)[:, None] + np.arange(size)  # shifted inwards at the ends
    counts = there[near].sum(axis=1)
    sums = np.where(there[near], values[near], 0.0).sum(axis=1)
    found = values.copy()
    found[missing] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return found


def _autoregressive(_: Float64Array, values: Float64Array, there: BoolArray) -> Float64Array:
    known = np.where(there, values, 0.0)
    pairs = there[:-1] & there[1:]
    squares = known[:-1] @ known[:-1]
    if not squares or not pairs.any():
        return values
    theta = (known[:-1] @ known[1:]) / squares
    rest = (values[1:] - theta * values[:-1])[pairs].mean()
    first = values if there[0] else np.concatenate([[values[there].mean()], values[1:]])
    last = np.maximum.accumulate(np.where(there, np.arange(len(values)), 0))
    ahead = np.arange(len(values)) - last
    powers = theta**ahead
    sums = ahead if theta == 1 else (1 - powers) / (1 - theta)
    return np.where(there, values, powers * first[last] + sums * rest)


def _screened(since: Float64Array, values: Float64Array, there: BoolArray) -> Float64Array:
    known = np.flatnonzero(there)
    if len(known) < 2:
        return values
    speeds = np.diff(values[known]) / np.diff(since[known])
    middle, reach = float(np.median(speeds)), _DEVIATIONS * deviation(speeds)
    low, high = middle - reach, middle + reach
    missing = np.flatnonzero(~there)
    behind = np.searchsorted(since, since + _STEPS * float(np.median(np.diff(since))), "right") - 1
    ahead = max(int((behind - np.arange(len(since)))[missing].max()), 1)
    if 2 * ahead * len(missing) > _NUMBERS_MAX:
        raise UserMistake(f"{_NAME}: too many points are within five median steps: select fewer points", code=2005)
    near = np.minimum(missing[:, None] + np.arange(1, ahead + 1), len(values) - 1)
    seen = np.where(near <= behind[missing, None], values[near], np.nan)
    back = since[missing, None] - since[near]
    asked = np.sort(np.concatenate([seen + low * back, seen + high * back], axis=1), axis=1)  # NaN sorts last
    counts = (~np.isnan(seen)).sum(axis=1)
    # If there are no values, the median is NaN.
    middles = np.take_along_axis(asked, np.minimum(counts, 2 * ahead - 1)[:, None], axis=1)[:, 0]
    found = values.copy()
    for row, asked_for in zip(missing.tolist(), middles.tolist(), strict=True):
        before = found[row - 1] if row else np.nan
        if np.isnan(before):
            found[row] = asked_for
            continue
        step = since[row] - since[row - 1]
        nearest = before if np.isnan(asked_for) else asked_for
        found[row] = max(min(nearest, before + high * step), before + low * step)
    return found


def _likeliest(since: Float64Array, values: Float64Array, there: BoolArray) -> Float64Array:
    """Fill each stretch of missing values between two values. Two points on each side of the stretch are used.

    The changes of speed are linear in the values, so a system of linear equations determines the values for which the
    sum of the squares of these changes is smallest.
    """
    known = np.flatnonzero(there)
    missing = np.flatnonzero(~there[: known[-1]])
    missing = missing[missing > known[0]]
    found = values.copy()
    for stretch in np.split(missing, np.flatnonzero(np.diff(missing) > _REACH) + 1):
        if len(stretch) > _EQUATIONS_MAX:
            raise UserMistake(
                f"{_NAME}: {len(stretch):,} values are missing in a row; likelihood fills at most {_EQUATIONS_MAX:,}",
                code=2005,
            )
        if len(stretch):
            first, end = max(stretch[0] - _REACH, known[0]), min(stretch[-1] + _REACH, known[-1]) + 1
            found[stretch] = _smoothest(since[first:end], values[first:end])
    return found


def _smoothest(since: Float64Array, values: Float64Array) -> Float64Array:
    rows = len(values)
    speeds = np.diff(np.eye(rows), axis=0) / np.diff(since)[:, None]
    changes = np.diff(speeds, axis=0)
    unknown = np.isnan(values)
    right = -changes[:, ~unknown] @ values[~unknown]
    return np.linalg.lstsq(changes[:, unknown], right, rcond=None)[0].astype(np.float64, copy=False)


_FILLS = dict(zip(_METHODS, (_linear, _previous, _mean, _around, _autoregressive, _screened, _likeliest), strict=True))
FILLING = (
    point_function(
        _NAME, None, _make_valuefill, lambda attributes: choice_attribute(_NAME, attributes, "method", _METHODS)
    ),
)
