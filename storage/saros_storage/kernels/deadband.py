"""Kernel over points: which of them a swinging door (SDT) keeps.

    stored point o        doors: the steepest line from it below all points behind it, and the flattest above all,
           | ` - .  x x   each moved towards them by the deviation
           o - - x        they open with every point; once they no longer meet, no line from o is near all points,
             ` x          so the point before is stored, and the doors hang there from now on

The first and the last point are kept. So is what is no number, with its neighbour before: it is on no line. Points at
most `shortest` behind the stored one are dropped unseen, but for the one that broke the doors before; one that is
`longest` or more behind it is stored. All as in IoTDB, but for what is no number.

A straight line through what is kept passes what was dropped at about the deviation, at most at twice it.
"""

from __future__ import annotations

from math import inf, isfinite

from saros_storage.kernels.jit import kernel
from saros_storage.types import BoolArray, Float64Array, Int64Array


def _kept_plain(
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


@kernel("void(i64r[], f64r[], f64, i64, i64, b1[])", twin=_kept_plain)
def kept_by_deadband(
    times: Int64Array, values: Float64Array, deviation: float, shortest: int, longest: int, kept: BoolArray
) -> None:
    """See the module; at least one point, in order of time. `kept` is filled."""
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
