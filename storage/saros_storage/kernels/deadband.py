"""Kernel that selects the points that swinging-door compression (SDT) keeps.

    stored point o        doors: the flattest line above all later points that begins one deviation above o, and the
           | ` - .  x x   steepest line below all of them that begins one deviation below o
           o - - x        the doors open with every point; once they no longer meet, no line from o is near all points,
             ` x          so the previous point is stored and becomes the new o

The first and the last point are kept. A point whose value is NaN or infinite is not on any line. Therefore it is kept,
as are the last checked point before it and the point after it. A point at most `shortest` after the stored point is
dropped without a check. One point is an exception: the point at which the doors no longer meet is always checked
against the new stored point. A point `longest` or more after the stored point is stored. For finite values, IoTDB keeps
the same points.

The line through the kept points misses a dropped point by about the deviation, and at most by twice the deviation.
"""

from __future__ import annotations

from math import inf, isfinite

from saros_storage.base.types import BoolArray, Float64Array, Int64Array
from saros_storage.kernels.jit import kernel


def _apply_deadband_plain(
    times: Int64Array, values: Float64Array, deviation: float, shortest: int, longest: int, kept: BoolArray
) -> None:
    points = list(zip(times.tolist(), values.tolist(), strict=True))
    found = {0, len(points) - 1}
    stored = before = 0
    seen: list[int] = []
    for place, (time, value) in enumerate(points):
        since, start = points[stored]
        if not (isfinite(value) and isfinite(start)) or time - since >= longest:
            found |= {place} if isfinite(value) and isfinite(start) else {place, before}
            stored = before = place
            seen = []
        elif time - since > shortest:
            seen.append(place)
            slopes = [(points[p][1] - start, points[p][0] - since) for p in seen]
            if max((v - deviation) / t for v, t in slopes) >= min((v + deviation) / t for v, t in slopes):
                found.add(before)
                stored, seen = before, [place]
            before = place
    kept[:] = False
    kept[sorted(found)] = True


@kernel("void(i64r[], f64r[], f64, i64, i64, b1[])", twin=_apply_deadband_plain)
def apply_deadband(
    times: Int64Array, values: Float64Array, deviation: float, shortest: int, longest: int, kept: BoolArray
) -> None:
    """Store in `kept` whether to keep each point; see the module.

    There is at least one point; points are in time order.
    """
    kept[:] = False
    kept[0] = kept[len(times) - 1] = True
    stored = before = 0
    least, most = inf, -inf
    for place in range(len(times)):
        elapsed = times[place] - times[stored]
        on_a_line = isfinite(values[place]) and isfinite(values[stored])
        if not on_a_line or elapsed >= longest:
            kept[place] = True
            if not on_a_line:
                kept[before] = True
            stored = before = place
            least, most = inf, -inf
        elif elapsed > shortest:
            rise = values[place] - values[stored]
            most = max(most, (rise - deviation) / elapsed)
            least = min(least, (rise + deviation) / elapsed)
            if most >= least:
                kept[before] = True
                stored = before
                elapsed = times[place] - times[stored]
                rise = values[place] - values[stored]
                most, least = (rise - deviation) / elapsed, (rise + deviation) / elapsed
            before = place
