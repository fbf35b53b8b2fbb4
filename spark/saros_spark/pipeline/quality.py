"""Assess the quality of a series: its gaps, outliers and drift. Also reduce the series to a line for a chart.

    gap       two neighbours that are further apart than 1.5 times the expected interval; n points are missing, and the
              gap is short (n < 10), medium (n < 100) or long
    outlier   |value - median| > outlier x 1.4826 x MAD (median absolute deviation); constant series have no outliers
    drift     (median of the last fifth of the time - of the first fifth) / (1.4826 x MAD)
    flag      a series whose values are all 0 or 1: it has gaps, but neither outliers nor drift
    score     from 0 (good) to 100 (bad), a third for each of: share of the time in medium and long gaps; 10 x share of
              outliers, at most 1; |drift| / 10, at most 1

1.4826 makes the MAD of a normal distribution its standard deviation. Times are seconds since 1970. Pure.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Severity = Literal["short", "medium", "long"]

_SCALE = 1.4826
GAP = 1.5
#: The minimum number of missing points of a medium gap, and of a long gap.
MEDIUM, LONG = 10, 100
#: The number of equal parts into which the time of a line is divided. The line has the least, mean and greatest value
#: of each part.
_BUCKETS = 240
#: The maximum number of gaps, of outliers and of a flag's runs that a page marks; it marks the worst or longest.
_MARKS_MAX = 50


class Gap(msgspec.Struct, frozen=True):
    """Two neighbouring points that are too far apart, and the number of points that are missing between them."""

    start: float
    end: float
    missing: int

    @property
    def severity(self) -> Severity:
        """The severity of the gap."""
        return "short" if self.missing < MEDIUM else "medium" if self.missing < LONG else "long"


class Line(msgspec.Struct, frozen=True):
    """The points of a line, as lists of equal length. The values are None where the line breaks."""

    at: list[float]
    low: list[float | None]
    mean: list[float | None]
    high: list[float | None]


class Quality(msgspec.Struct, frozen=True):
    """The figures of a series that has points."""

    points: int
    first: float
    last: float
    least: float
    median: float
    most: float
    #: The expected seconds between neighbours, or None if there is only one point.
    expected: float | None
    #: The number of gaps by severity.
    gaps: dict[Severity, int]
    missing: int
    #: The worst gaps, from the longest on, and the worst outliers (time, value), from the most distant on.
    marked_gaps: list[Gap]
    marked_outliers: list[tuple[float, float]]
    outliers: int
    #: The drift, or None for constant series and flags.
    drift: float | None
    score: float
    line: Line
    #: The spans of time (first, last) in which a flag is set, the longest first; None if the series is not a flag.
    runs: list[tuple[float, float]] | None = None
    #: The share of a flag's points that are set.
    set_share: float = 0.0


def assess(at: Floats, values: Floats, interval_s: float | None, outlier: float) -> Quality | None:
    """Return the quality of a series with times in order, or None if it has no finite value.

    `interval_s` is the expected interval between points, or None for the median. `outlier` is the factor in the
    module's table.
    """
    finite = np.isfinite(values)
    at, values = at[finite], values[finite]
    if not len(values):
        return None
    steps = np.diff(at)
    expected = (float(np.median(steps)) if len(steps) else None) if interval_s is None else interval_s
    missing = _missing(steps, expected)
    span = float(at[-1] - at[0])
    lost = float(steps[missing >= MEDIUM].sum()) / span if span else 0.0
    is_flag = bool(((values == 0) | (values == 1)).all())
    median = float(np.median(values))
    off = np.abs(values - median)
    deviation = 0.0 if is_flag else float(np.median(off)) * _SCALE
    far = np.flatnonzero(off > outlier * deviation) if deviation else np.array([], np.intp)
    drift = _drift(at, values, span, deviation) if deviation else None
    worst = far[np.argsort(-off[far], kind="stable")[:_MARKS_MAX]]
    parts = lost + min(10 * len(far) / len(values), 1.0) + min(abs(drift or 0.0) / 10, 1.0)
    return Quality(
        points=len(values),
        first=float(at[0]),
        last=float(at[-1]),
        least=float(values.min()),
        median=median,
        most=float(values.max()),
        expected=expected,
        gaps={
            "short": int(((missing > 0) & (missing < MEDIUM)).sum()),
            "medium": int(((missing >= MEDIUM) & (missing < LONG)).sum()),
            "long": int((missing >= LONG).sum()),
        },
        missing=int(missing.sum()),
        marked_gaps=_worst_gaps(at, steps, missing),
        marked_outliers=[(float(at[n]), float(values[n])) for n in worst],
        outliers=len(far),
        drift=drift,
        score=100 * parts / 3,
        line=_line(at, values, missing),
        runs=_runs(at, values) if is_flag else None,
        set_share=float(values.mean()) if is_flag else 0.0,
    )


def _missing(steps: Floats, expected: float | None) -> NDArray[np.int64]:
    """Return the number of points that are missing between each pair of neighbours."""
    if not expected:
        return np.zeros(len(steps), np.int64)
    found = np.maximum(np.rint(steps / expected) - 1, 1).astype(np.int64)
    return np.where(steps > expected * GAP, found, 0)


def _worst_gaps(at: Floats, steps: Floats, missing: NDArray[np.int64]) -> list[Gap]:
    places = np.flatnonzero(missing)
    places = places[np.argsort(-steps[places], kind="stable")[:_MARKS_MAX]]
    return [Gap(float(at[n]), float(at[n + 1]), int(missing[n])) for n in places]


def _drift(at: Floats, values: Floats, span: float, deviation: float) -> float:
    early, late = values[at <= at[0] + span / 5], values[at >= at[-1] - span / 5]
    return float(np.median(late) - np.median(early)) / deviation


def _runs(at: Floats, values: Floats) -> list[tuple[float, float]]:
    edges = np.diff(np.concatenate(([0], (values == 1).astype(np.int8), [0])))
    starts, stops = at[np.flatnonzero(edges == 1)], at[np.flatnonzero(edges == -1) - 1]
    longest = np.argsort(starts - stops, kind="stable")[:_MARKS_MAX]
    return [(float(starts[n]), float(stops[n])) for n in longest]


def _line(at: Floats, values: Floats, missing: NDArray[np.int64]) -> Line:
    """Return the least, mean and greatest value in each of equal parts of the time. Wide gaps break the line."""
    width = max(float(at[-1] - at[0]) / _BUCKETS, 1e-9)
    bucket = np.minimum((at - at[0]) // width, _BUCKETS - 1)
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    counts = np.diff(starts, append=len(at))
    columns = [at[starts], *(ufunc.reduceat(values, starts) for ufunc in (np.minimum, np.add, np.maximum))]
    columns[2] = columns[2] / counts
    breaks = [n for n, place in enumerate(starts) if n and missing[place - 1] and at[place] - at[place - 1] > width]
    rounded = [[float(f"{number:.6g}") for number in column] for column in columns[1:]]
    times: list[Any] = [round(float(second), 3) for second in columns[0]]
    for n in reversed(breaks):
        times.insert(n, round(float(at[starts[n] - 1]) + width / 2, 3))
        for column in rounded:
            column.insert(n, None)  # type: ignore[arg-type]
    low, mean, high = rounded
    return Line(times, low, mean, high)  # type: ignore[arg-type]
