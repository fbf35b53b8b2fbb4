"""M4: select the points of a series that draw the same line as all of its points.

    a window of time for each column of pixels --> its first, smallest, largest, and last point

Source: Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014.
Pure: any thread.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
#: If the distance between two points is this many times the usual distance, there is a gap between them.
_GAP = 5.0
_QUARTERS = 4


def reduce_points(times: Times, values: Values, interval: int) -> tuple[Times, Values]:
    """Return the points that M4 keeps; `times` ascend, and each window is `interval` ticks long."""
    if len(times) == 0:
        return times, values
    windows = (times - times[0]) // interval
    starts = np.flatnonzero(np.diff(windows, prepend=-1))
    ends = np.append(starts[1:], len(times))
    numbers = np.repeat(np.arange(len(starts)), ends - starts)
    lowest = _first_equal(values, np.minimum.reduceat(values, starts), numbers)
    highest = _first_equal(values, np.maximum.reduceat(values, starts), numbers)
    kept = np.unique(np.concatenate([starts, lowest, highest, ends - 1]))
    return times[kept], values[kept]


def _first_equal(values: Values, wanted: Values, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return, for each window, the position of the first value that equals the window's value in `wanted`."""
    places = np.flatnonzero(values == wanted[numbers])
    return places[np.flatnonzero(np.diff(numbers[places], prepend=-1))]


def from_windows(
    starts: Times, interval: int, first: Values, low: Values, high: Values, last: Values
) -> tuple[Times, Values]:
    """Return the points to draw, given the aggregates of each window.

    The aggregates of a window without points are NaN.

    The four values of a window lie in one column of pixels, so the order in which they are drawn is not visible.
    """
    known = ~np.isnan(first)
    offsets = np.arange(_QUARTERS) * interval // _QUARTERS
    times = (starts[known, None] + offsets[None, :]).ravel()
    values = np.stack([first[known], low[known], high[known], last[known]], axis=1).ravel()
    return times, values


def with_gaps(times: Times, values: Values, least: int) -> tuple[Times, Values]:
    """Insert NaN where the distance between two points is much larger than usual, and larger than `least` ticks."""
    distances = np.diff(times)
    if len(distances) == 0:
        return times, values
    usual = float(np.median(distances))
    places = np.flatnonzero(distances > max(_GAP * usual, least)) + 1
    return np.insert(times, places, times[places - 1] + 1), np.insert(values, places, np.nan)
