"""Aggregates in plain Python: `AGGREGATES[name](points)` takes points as (time, value) in the order of their times.

For `max_by` and `min_by`, points are (time, value to compare, value to return).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Points = Sequence[tuple[Any, ...]]


def _values(points: Points) -> list[Any]:
    return [point[1] for point in points]


def _total(points: Points) -> float:
    return math.fsum(map(float, _values(points))) if _finite(points) else sum(map(float, _values(points)))


def _finite(points: Points) -> bool:
    return all(math.isfinite(value) for value in _values(points))


def _ordered(points: Points) -> list[Any]:
    """Return the values that are not NaN; if all are NaN, return all."""
    values = _values(points)
    return [value for value in values if value == value] or values


def _extremum(choose: Callable[[list[Any]], Any]) -> Callable[[Points], Any]:
    def run(points: Points) -> Any:
        value = choose(_ordered(points))
        return value + 0.0 if isinstance(value, float) else value  # turns -0.0 into 0.0

    return run


def _furthest(values: list[Any]) -> Any:
    return max(values, key=lambda value: (abs(value), value))


def _squares(points: Points) -> float:
    """Return the exact sum of squared distances from the mean."""
    if not _finite(points):
        return math.nan
    exact = [Fraction(float(value)) for value in _values(points)]
    mean = sum(exact) / len(exact)
    try:
        return float(sum((value - mean) ** 2 for value in exact))
    except OverflowError:
        return math.inf


def _sample(points: Points) -> float | None:
    """Return the sample variance; a single point has no variance."""
    return None if len(points) == 1 else _squares(points) / (len(points) - 1)


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def _mode(points: Points) -> Any:
    counts = Counter(_values(points))  # values are in the order in which they first occur
    return max(counts, key=lambda value: counts[value])


def _by(choose: Callable[..., Any]) -> Callable[[Points], Any]:
    def run(points: Points) -> Any:
        wanted = [p for p in points if p[1] == p[1]] or points
        return choose(wanted, key=lambda point: point[1])[2]

    return run


AGGREGATES: dict[str, Callable[[Points], Any]] = {
    "count": len,
    "sum": _total,
    "avg": lambda points: _total(points) / len(points),
    "min_value": _extremum(min),
    "max_value": _extremum(max),
    "extreme": _extremum(_furthest),
    "first_value": lambda points: points[0][1],
    "last_value": lambda points: points[-1][1],
    "min_time": lambda points: points[0][0],
    "max_time": lambda points: points[-1][0],
    "time_duration": lambda points: points[-1][0] - points[0][0],
    "stddev_pop": lambda points: _root(_squares(points) / len(points)),
    "var_pop": lambda points: _squares(points) / len(points),
    "stddev_samp": lambda points: _root(_sample(points)),
    "variance": _sample,
    "mode": _mode,
    "max_by": _by(max),
    "min_by": _by(min),
}


def aggregate(name: str, points: Points) -> Any:
    """Return the aggregate of points; without points, this is 0 for a count, otherwise null."""
    return AGGREGATES[name](points) if points or name == "count" else None
