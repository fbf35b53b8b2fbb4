"""A kernel that compares the steps between times with a steady pace; it counts redundant, late and missing points.

The kernel scans with a window of `len(view)` points, whose first point is the current one:

    |  a . b     a step of at most half the pace: b is redundant and is skipped
    |  a ........ b c d e    a step of two paces or more: a gap of round(step) - 1 points. A point after b, but before
    |                        the next gap, is a late arrival if it is at most half a pace from its predecessor. The
    |                        other points of the gap are missing

`faults` receives the numbers of redundant, late and missing points.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import Int64Array
from saros_storage.kernels.jit import kernel


def _faults_plain(times: Int64Array, pace: float, longest: float, view: Int64Array, faults: Int64Array) -> None:
    rest = times.tolist()
    seen, rest = rest[: len(view)], rest[len(view) :][::-1]
    faults[:] = 0
    while len(seen) > 1:
        step = (seen[1] - seen[0]) / pace
        if step <= 0.5:
            del seen[1]
            faults[0] += 1
        elif 2.0 <= step <= longest:
            missing = int(np.floor(step - 1 + 0.5))
            late = 0
            place = 2
            while place < len(seen) and late < missing and (near := (seen[place] - seen[place - 1]) / pace) < 2.0:
                if near <= 0.5:
                    late += 1
                    del seen[place]
                else:
                    place += 1
            faults[1] += late
            faults[2] += missing - late
        del seen[0]
        while rest and len(seen) < len(view):
            seen.append(rest.pop())


@kernel("void(i64r[], f64, f64, i64[], i64[])", twin=_faults_plain)
def pace_faults(times: Int64Array, pace: float, longest: float, view: Int64Array, faults: Int64Array) -> None:
    """Count redundant, late and missing points; see the module.

    A step of more than `longest` paces is not counted as a gap. `view` is scratch space for the points of the window.
    """
    faults[:] = 0
    count = min(len(times), len(view))
    for place in range(count):
        view[place] = times[place]
    taken = count
    while count > 1:
        step = (view[1] - view[0]) / pace
        gone = 1
        if step <= 0.5:
            gone = 2
            faults[0] += 1
        elif step >= 2.0 and step <= longest:
            missing = np.int64(np.floor(step - 1 + 0.5))
            late = 0
            kept = 2
            for place in range(2, count):
                near = (view[place] - view[kept - 1]) / pace
                if late == missing or near >= 2.0:
                    for behind in range(place, count):
                        view[kept] = view[behind]
                        kept += 1
                    break
                if near <= 0.5:
                    late += 1
                else:
                    view[kept] = view[place]
                    kept += 1
            count = kept
            faults[1] += late
            faults[2] += missing - late
        count -= gone
        for place in range(count):
            view[place] = view[place + gone]
        while count < len(view) and taken < len(times):
            view[count] = times[taken]
            count += 1
            taken += 1
