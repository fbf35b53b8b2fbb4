"""Repair of series: functions that make timestamps evenly spaced, or remove jumps from values.

    TIMESTAMPREPAIR     moves the points to evenly spaced times, at the least total cost
    VALUEREPAIR         corrects values that change too fast (Screen), or whose speed changes too fast (LsGreedy)

TIMESTAMPREPAIR moves non-finite values like other values, but leaves them out if there are at most two points.
VALUEREPAIR interpolates non-finite values.

Sources: Fang et al., On Repairing Timestamps for Regular Interval Time Series, 2022; Song et al., SCREEN: Stream Data
Cleaning under Speed Constraints, 2015; Zhang et al., Sequential Data Cleaning: A Statistical Approach, 2016.
"""

from __future__ import annotations

import heapq

import numpy as np

from saros_engine.expressions.integer_arithmetic import checked_integers
from saros_engine.functions.function import (
    Attributes,
    choice_attribute,
    duration_attribute,
    integer_attribute,
    number_attribute,
)
from saros_engine.transforms.profile import doubles, finite_points, made_points, point_function
from saros_engine.transforms.quality import bridged, deviation
from saros_engine.transforms.series_transform import Generator, Points
from saros_grammar.syntax.literals import is_duration
from saros_scheduler import require_wanted
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import FLOATING_TYPES, DataType, Float64Array, Int64Array, NumericArray, TimeUnit

_NANOSECOND = TimeUnit.NANOSECOND


def _as_type(times: Int64Array, type_: DataType, values: Float64Array) -> Points:
    """Return points of `type_`; for integer types, values are rounded half up. Raises UserMistake 750."""
    if type_ in (DataType.INT32, DataType.INT64):
        values = checked_integers(np.floor(values + 0.5), type_, times)
    return made_points(times, type_, values)


# ---------------------------------------------------------------------------------------------- times

_METHODS = ("median", "mode", "cluster")
#: The cost of adding a time or leaving out a point; the cost of moving a point is the distance in ticks.
_ADD_COST = 100_000
#: The limits on the number of times (or of points), and on the number of pairs of a time and a point to compare.
_TIMES_MAX, _PAIRS_MAX = 20_000, 1 << 25
_CLUSTERS = 3
_CLUSTERING_ROUNDS_MAX = 100
_MOVED, _ADDED, _LEFT_OUT = range(3)


def _interval(attributes: Attributes, unit: TimeUnit) -> int | None:
    """Return the attribute `interval` (a number of ticks, or a duration) in ticks; None if it must be estimated."""
    name = "timestamprepair"
    choice_attribute(name, attributes, "method", _METHODS)
    if "interval" not in attributes:
        return None
    if is_duration(attributes["interval"]):
        return duration_attribute(name, attributes, "interval", unit)
    return integer_attribute(name, attributes, "interval", low=1)


def _make_timestamprepair(attributes: Attributes, unit: TimeUnit) -> Generator:
    given = _interval(attributes, unit)
    method = choice_attribute("timestamprepair", attributes, "method", _METHODS)

    def run(points: Points) -> Points:
        times, column = points.times, points.columns[0]
        if len(times) > 2:
            pace = given or _estimated_interval(np.diff(times), method)
            # Choose the offset for which the most points need not be moved.
            offset = _most_frequent(times % pace)
            start = int(times[0]) - (int(times[0]) - offset) % pace
            count = -(-(int(times[-1]) - start) // pace) + 1
            _require_few(count, len(times))
            even = start + pace * np.arange(count)
            return _at_places(even, *_moves(even, times), column)
        return finite_points(Points(times, (column,)))

    return run


def _at_places(even: Int64Array, places: Int64Array, rows: Int64Array, column: Column) -> Points:
    """Return the moved points. If the type has NaN, times without a point between moved points get a NaN."""
    moved = Points(even[places], (column.take(rows),))
    if column.type not in FLOATING_TYPES or not len(places):
        return moved
    first, stop = int(places[0]), int(places[-1]) + 1
    values = np.full(stop - first, np.nan)
    values[places - first] = doubles(moved)
    return made_points(even[first:stop], column.type, values)


def _require_few(count: int, rows: int) -> None:
    if max(count, rows) > _TIMES_MAX or count * rows > _PAIRS_MAX:
        raise UserMistake(
            f"timestamprepair: {rows:,} points for {count:,} times are too many; at most {_TIMES_MAX:,} of either are"
            f" allowed, and {_PAIRS_MAX:,} pairs: take a shorter range of time",
            code=2005,
        )


def _estimated_interval(steps: Int64Array, method: str) -> int:
    if method == "mode":
        return _most_frequent(steps)
    if method == "cluster":
        return _of_clusters(steps)
    ordered = np.sort(steps)
    return int(ordered[(len(steps) - 1) // 2] + ordered[len(steps) // 2]) // 2


def _most_frequent(values: Int64Array) -> int:
    """Return the most frequent value; among equally frequent values, the one that occurs first."""
    found, firsts, counts = np.unique(values, return_index=True, return_counts=True)
    return int(found[np.lexsort((firsts, -counts))[0]])


def _of_clusters(steps: Int64Array) -> int:
    """Return the centre of the largest of three clusters of steps (k-means)."""
    low, high = int(steps.min()), int(steps.max())
    middles = low + np.arange(1, _CLUSTERS + 1) * (high - low) // (_CLUSTERS + 1)
    nearest = np.full(len(steps), -1)
    for _ in range(_CLUSTERING_ROUNDS_MAX):
        before, nearest = nearest, np.abs(steps[:, None] - middles).argmin(axis=1)
        if (before == nearest).all():
            break
        for cluster in np.unique(nearest):
            members = steps[nearest == cluster]
            middles[cluster] = int(members.sum()) // len(members)
    return int(middles[np.bincount(nearest, minlength=_CLUSTERS).argmax()])


def _moves(even: Int64Array, times: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return (places, rows): point `rows[i]` moves to the time `even[places[i]]`, and the total cost is the least.

    Points without a place are left out, and places without a point stay empty. Dynamic programming over cost[i, j], the
    cost of the first i times and the first j points, proceeds by diagonals i + j; `steps` has the cheapest step of each
    cell.
    """
    places, rows = len(even), len(times)
    steps = np.zeros((places + 1, rows + 1), np.uint8)
    before = np.zeros(places + 1, np.int64)
    last = np.full(places + 1, _ADD_COST)
    for diagonal in range(2, places + rows + 1):
        require_wanted()
        i = np.arange(max(1, diagonal - rows), min(places, diagonal - 1) + 1)
        j = diagonal - i
        distance = np.abs(times[j - 1] - even[i - 1])
        adding, leaving, moving = last[i - 1], last[i], before[i - 1] + distance
        skipping = np.minimum(adding, leaving) + _ADD_COST
        moved = (moving < skipping) | (distance == 0)
        steps[i, j] = np.where(moved, _MOVED, np.where(adding < leaving, _ADDED, _LEFT_OUT))
        current = np.full(places + 1, _ADD_COST * diagonal)
        current[i] = np.where(moved, moving, skipping)
        before, last = last, current
    return _traced(steps)


def _traced(steps: NumericArray) -> tuple[Int64Array, Int64Array]:
    """Trace the moves back from the end to the beginning; return them in the order of time."""
    found = []
    i, j = steps.shape[0] - 1, steps.shape[1] - 1
    while i and j:
        step = steps[i, j]
        if step == _MOVED:
            found.append((i - 1, j - 1))
        i, j = i - (step != _LEFT_OUT), j - (step != _ADDED)
    pairs = np.array(found[::-1], np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


# ---------------------------------------------------------------------------------------------- values

_REPAIRS = ("screen", "lsgreedy")
#: The window of Screen in median steps, and the bounds of Screen and LsGreedy in scaled median absolute deviations.
_WINDOW, _DEVIATIONS = 5, 3
#: The limit on the number of bounds in all windows of Screen.
_WINDOWS_MAX = 1 << 28
#: The bound on changes of speed is at least this.
_LEAST = 1e-12
_REPAIRS_MAX = 500_000


def _check_valuerepair(attributes: Attributes) -> None:
    name = "valuerepair"
    choice_attribute(name, attributes, "method", _REPAIRS)
    found = {
        key: number_attribute(name, attributes, key)
        for key in ("minSpeed", "maxSpeed", "center", "sigma")
        if key in attributes
    }
    if not np.isfinite(list(found.values())).all() or found.get("sigma", 1) <= 0:
        raise UserMistake(f"{name}: its numbers must be finite, and 'sigma' above 0", code=701)
    if found.get("minSpeed", -np.inf) >= found.get("maxSpeed", np.inf):
        raise UserMistake(f"{name}: 'minSpeed' must be below 'maxSpeed'", code=701)


def _make_valuerepair(attributes: Attributes, _: TimeUnit) -> Generator:
    method = choice_attribute("valuerepair", attributes, "method", _REPAIRS)

    def run(points: Points) -> Points:
        values = bridged(points.times, doubles(points))
        type_ = points.columns[0].type
        if values is None or len(values) < 2:
            return made_points(points.times[:0], type_, points.times[:0])
        since = (points.times - points.times[0]).astype(np.float64)
        repaired = _screened(since, values, attributes) if method == "screen" else _smoothed(since, values, attributes)
        return _as_type(points.times, type_, repaired)

    return run


def _screened(times: Float64Array, values: Float64Array, attributes: Attributes) -> Float64Array:
    """Bound the speeds: move each value as near to the median of `_constrained_medians` as the bounds permit."""
    steps = np.diff(times)
    speeds = np.diff(values) / steps
    reach = _DEVIATIONS * deviation(speeds)
    low = float(attributes.get("minSpeed", np.median(speeds) - reach))
    high = float(attributes.get("maxSpeed", np.median(speeds) + reach))
    asked = _constrained_medians(times, values, _WINDOW * float(np.median(steps)), low, high)
    return _within(asked, low * steps, high * steps)


def _constrained_medians(
    times: Float64Array, values: Float64Array, window: float, low: float, high: float
) -> Float64Array:
    """Return, for each value, the median of the value and of the bounds on it that later values in its window imply."""
    counts = np.searchsorted(times, times + window, "right") - 1 - np.arange(len(times))
    if int(2 * counts.sum()) > _WINDOWS_MAX:
        raise UserMistake(
            f"valuerepair: too many points are within {window:g} ticks, five median steps: select fewer points",
            code=2005,
        )
    found = np.empty(len(values))
    for count in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == count)
        views = [values[rows]]
        for ahead in range(1, count + 1):
            require_wanted()
            back = times[rows] - times[rows + ahead]
            views += [values[rows + ahead] + speed * back for speed in (low, high)]
        found[rows] = np.partition(np.array(views), count, axis=0)[count]
    return found


def _within(asked: Float64Array, least: Float64Array, most: Float64Array) -> Float64Array:
    """Return the values of `asked`, changed where the step from the previous value is not between `least` and `most`.

    For speed, values are computed one by one only from the start of a change until a value of `asked` is in reach
    again.
    """
    found = asked.copy()
    steps = np.diff(asked)
    row = 0
    for first in (np.flatnonzero((steps < least) | (steps > most)) + 1).tolist():
        require_wanted()
        row = max(row, first)
        while row < len(found) and (row == first or found[row - 1] != asked[row - 1]):
            before = found[row - 1]
            found[row] = max(min(asked[row], before + most[row - 1]), before + least[row - 1])
            row += 1
    return found


def _smoothed(times: Float64Array, values: Float64Array, attributes: Attributes) -> Float64Array:
    """Bound the changes of speed by repeatedly reducing the greatest change."""
    steps = np.diff(times)
    center = float(attributes.get("center", "0"))
    changes = np.diff(np.diff(values) / steps) - center
    if not len(changes):
        return values
    sigma = float(attributes["sigma"]) if "sigma" in attributes else deviation(changes)
    bound = max(_LEAST, _DEVIATIONS * sigma)
    weights = (steps[1:] * steps[:-1] / (steps[1:] + steps[:-1])).tolist()
    found, widths, wrong = values.tolist(), steps.tolist(), changes.tolist()
    heap = [(-abs(wrong[at]), at) for at in np.flatnonzero(np.abs(changes) >= bound).tolist()]
    heapq.heapify(heap)
    for _ in range(_REPAIRS_MAX):
        while heap and -heap[0][0] != abs(wrong[heap[0][1]]):
            heapq.heappop(heap)  # an outdated entry
        if not heap:
            return np.array(found)
        _, at = heapq.heappop(heap)
        by = abs(wrong[at]) if sigma < _LEAST else max(sigma, abs(wrong[at]) / _DEVIATIONS)
        found[at + 1] += by * weights[at] if wrong[at] > 0 else -by * weights[at]
        for near in range(max(at - 1, 0), min(at + 2, len(wrong))):
            after = (found[near + 2] - found[near + 1]) / widths[near + 1]
            wrong[near] = after - (found[near + 1] - found[near]) / widths[near] - center
            if abs(wrong[near]) >= bound:
                heapq.heappush(heap, (-abs(wrong[near]), near))
    raise UserMistake(
        f"valuerepair: after {_REPAIRS_MAX:,} repairs speeds still change too much: set a larger 'sigma'", code=2005
    )


REPAIR = (
    point_function("timestamprepair", None, _make_timestamprepair, lambda a: _interval(a, _NANOSECOND)),
    point_function("valuerepair", None, _make_valuerepair, _check_valuerepair),
)
