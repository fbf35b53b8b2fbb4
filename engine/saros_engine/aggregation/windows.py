"""Windows over time: sequences of intervals [start, end) in time order, and the assignment of rows to windows.

    sequence = window_sequence(windows, unit)       tumbling, sliding, with gaps; of fixed ticks or by the calendar
    sequence.starts(low, high)                      numbered from 0; starts and ends never decrease with the number
    first = sequence.first_ending_after(t)          windows with smaller numbers are complete once time has reached t

Window k begins `k` steps after the start of the range. Window k ends `k` steps and one interval after that start, but
not after the end of the range. The months of all steps are added to the start of the range at once, in the time zone,
so that the 31st stays the 31st in every month that has 31 days. The calendar days are added next, which keeps the time
of day when daylight saving time begins or ends. Fixed ticks are added last. Therefore, windows whose interval equals
their step never overlap.

Overlapping windows consist of *panes*, the spans between neighbouring borders. Each row is added to one pane, and the
states of a window are merged from the states of its panes.

    windows  |----0----|              panes  |-0-|-1-|-2-|-3-|
                 |----1----|                 window 0 = panes 0 1 2, window 1 = panes 1 2 3

A sequence of fixed windows caches only the borders near the most recently read borders, however many windows there are.
A sequence of calendar windows keeps all borders in arrays. Pure: any thread.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Protocol

import numpy as np

from saros_engine.expressions.times import Calendar
from saros_engine.plan.plan import TimeWindows
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import Int64Array, TimeUnit
from saros_storage.read.row_ranges import RowRanges
from saros_storage.scan.reading import WindowGrid

#: The maximum number of windows if they overlap, follow the calendar, or are returned in descending order.
WINDOWS_MAX = 1_000_000
#: The number of windows whose borders are computed at once.
_BORDERS = 4_096
_NONE = np.empty(0, np.int64)
#: The number of cached calendar sequences; the scans of one query share a sequence.
_CACHED_SEQUENCES = 16


class WindowSequence(Protocol):
    """Windows in time order, numbered from 0. Times passed to the methods may be outside of all windows."""

    @property
    def count(self) -> int:
        """The number of windows."""
        ...

    def starts(self, low: int, high: int) -> Int64Array:
        """Return the starts of windows [low, high)."""
        ...

    def ends(self, low: int, high: int) -> Int64Array:
        """Return the ends (exclusive) of windows [low, high)."""
        ...

    def first_ending_after(self, time: int) -> int:
        """Return the number of the first window with end > time.

        The result is also the count of windows with end <= time.
        """
        ...

    def count_starting_until(self, time: int) -> int:
        """Return the count of windows with start <= time."""
        ...

    def index_of(self, times: Int64Array) -> Int64Array:
        """Return, for each time, the number of the last window that starts at or before it; -1 if no window does."""
        ...

    def ends_of(self, numbers: Int64Array) -> Int64Array:
        """Return the ends of the windows with these numbers."""
        ...


class FixedSequence:
    """Windows of a fixed length that start at a fixed step."""

    def __init__(self, start: int, end: int, interval: int, step: int) -> None:
        self._start = start
        self._end = end
        self._interval = interval
        self._step = step
        self.count = max(-(-(end - start) // step), 0)
        #: A tuple of low, high, starts and ends: the cached borders of windows [low, high).
        self._kept = 0, 0, _NONE, _NONE

    def starts(self, low: int, high: int) -> Int64Array:
        """See `WindowSequence`."""
        return self._borders(low, high)[0]

    def ends(self, low: int, high: int) -> Int64Array:
        """See `WindowSequence`."""
        return self._borders(low, high)[1]

    def _borders(self, low: int, high: int) -> tuple[Int64Array, Int64Array]:
        """Return the starts and ends of windows [low, high).

        The borders of a larger range are cached, because other series and the next rows of this series need them too.
        """
        first, stop, _, _ = self._kept
        if low < first or high > stop:
            first = low - low % _BORDERS
            stop = max(high, min(first + _BORDERS, self.count))
            starts = np.arange(first, stop, dtype=np.int64) * self._step + self._start
            self._kept = first, stop, starts, self._ends_from(starts)
        _, _, starts, ends = self._kept
        return starts[low - first : high - first], ends[low - first : high - first]

    def first_ending_after(self, time: int) -> int:
        """See `WindowSequence`."""
        if time >= self._end:
            return self.count
        return min(max((time - self._start - self._interval) // self._step + 1, 0), self.count)

    def count_starting_until(self, time: int) -> int:
        """See `WindowSequence`."""
        return min(max((time - self._start) // self._step + 1, 0), self.count)

    def index_of(self, times: Int64Array) -> Int64Array:
        """See `WindowSequence`."""
        return np.clip((times - self._start) // self._step, -1, self.count - 1)

    def ends_of(self, numbers: Int64Array) -> Int64Array:
        """See `WindowSequence`."""
        return self._ends_from(numbers * self._step + self._start)

    def _ends_from(self, starts: Int64Array) -> Int64Array:
        """Return the ends of the windows with these starts, without exceeding the greatest 64-bit time."""
        return np.where(self._end - starts < self._interval, self._end, starts + self._interval)


class ListedSequence:
    """Windows whose borders are kept in arrays."""

    def __init__(self, starts: Int64Array, ends: Int64Array) -> None:
        self._starts = starts
        self._ends = ends
        self.count = len(starts)

    def starts(self, low: int, high: int) -> Int64Array:
        """See `WindowSequence`."""
        return self._starts[low:high]

    def ends(self, low: int, high: int) -> Int64Array:
        """See `WindowSequence`."""
        return self._ends[low:high]

    def first_ending_after(self, time: int) -> int:
        """See `WindowSequence`."""
        return int(np.searchsorted(self._ends, time, side="right"))

    def count_starting_until(self, time: int) -> int:
        """See `WindowSequence`."""
        return int(np.searchsorted(self._starts, time, side="right"))

    def index_of(self, times: Int64Array) -> Int64Array:
        """See `WindowSequence`."""
        return np.searchsorted(self._starts, times, side="right").astype(np.int64) - 1

    def ends_of(self, numbers: Int64Array) -> Int64Array:
        """See `WindowSequence`."""
        return self._ends[numbers]


def window_sequence(windows: TimeWindows, unit: TimeUnit = TimeUnit.MILLISECOND) -> WindowSequence:
    """Return the sequence of the windows of a GROUP BY.

    Raises UserMistake with code 701 (step or interval not positive), 2005 (too many windows) or 2007 (a time out of
    range).
    """
    interval = windows.interval_ticks + windows.interval_months + windows.interval_days
    if interval <= 0 or windows.step_ticks + windows.step_months + windows.step_days <= 0:
        raise UserMistake("The second parameter time interval should be a positive integer", code=701)
    if windows.by_calendar:
        return _calendar_sequence(windows, unit)
    sequence = FixedSequence(windows.start, windows.end, windows.interval_ticks, windows.step_ticks)
    if windows.interval_ticks > windows.step_ticks:
        require_few(sequence, "overlapping")
    return sequence


def require_few(sequence: WindowSequence, kind: str) -> None:
    """Raise UserMistake with code 2005 if there are more than `WINDOWS_MAX` windows; `kind` describes them."""
    if sequence.count > WINDOWS_MAX:
        raise _too_many(f"{sequence.count:,} {kind}")


def _too_many(windows: str) -> UserMistake:
    return UserMistake(
        f"GROUP BY would give {windows} windows; at most {WINDOWS_MAX:,} are allowed: use larger windows or a shorter "
        "range",
        code=2005,
    )


def pane_sequence(windows: TimeWindows, unit: TimeUnit = TimeUnit.MILLISECOND) -> WindowSequence | None:
    """Return the panes of overlapping windows, or None if the windows do not overlap. Raises as `window_sequence`."""
    sequence = window_sequence(windows, unit)
    # All fixed windows overlap if the first two do. Calendar windows differ in length, so all of them are compared.
    compared = sequence.count if windows.by_calendar else min(sequence.count, 2)
    overlap = bool(np.any(sequence.ends(0, compared - 1) > sequence.starts(1, compared))) if compared > 1 else False
    return _panes(windows, unit) if overlap else None


@lru_cache(_CACHED_SEQUENCES)
def _panes(windows: TimeWindows, unit: TimeUnit) -> WindowSequence:
    sequence = window_sequence(windows, unit)
    step, interval = windows.step_ticks, windows.interval_ticks
    if not windows.by_calendar and interval % step == 0:
        last_end = int(sequence.ends(sequence.count - 1, sequence.count)[0])
        return FixedSequence(windows.start, last_end, step, step)
    borders = np.concatenate((sequence.starts(0, sequence.count), sequence.ends(0, sequence.count)))
    borders.sort()
    borders = borders[np.concatenate((np.ones(1, np.bool_), borders[1:] != borders[:-1]))]
    return ListedSequence(borders[:-1], borders[1:])


def grid(windows: TimeWindows | None, unit: TimeUnit = TimeUnit.MILLISECOND) -> WindowGrid:
    """Return the grid with the widest cells that have no window border inside.

    The statistics of such a cell may be used instead of its rows.
    For calendar windows, the cells are usually days, or hours if daylight saving time begins or ends in the range.
    """
    if windows is None:
        return WindowGrid()
    if windows.by_calendar:
        return WindowGrid(windows.start, _calendar_step(windows, unit))
    return WindowGrid(windows.start, math.gcd(windows.interval_ticks, windows.step_ticks))


def cut(sequence: WindowSequence, times: Int64Array) -> tuple[Int64Array, RowRanges]:
    """Return the numbers of the windows that may contain the ascending `times`, and the range of rows in each window.

    A range may be empty.

    The windows must not overlap.
    """
    low = sequence.first_ending_after(int(times[0]))
    high = sequence.count_starting_until(int(times[-1]))
    if high - low > len(times) // 4:
        return _cut_by_row(sequence, times)
    starts = times.searchsorted(sequence.starts(low, high)).astype(np.int64, copy=False)
    stops = times.searchsorted(sequence.ends(low, high)).astype(np.int64, copy=False)
    return np.arange(low, high, dtype=np.int64), RowRanges(starts, stops)


def _cut_by_row(sequence: WindowSequence, times: Int64Array) -> tuple[Int64Array, RowRanges]:
    """Like `cut`, but look up the window of each row, which is cheaper if there are many windows but few rows."""
    number = sequence.index_of(times)
    begins = np.flatnonzero(np.concatenate((np.ones(1, np.bool_), number[1:] != number[:-1])))
    numbers = number[begins]
    stops = np.append(begins[1:], len(times))
    inside = numbers >= 0
    begins, stops, numbers = begins[inside], stops[inside], numbers[inside]
    # Rows after the end of a window are excluded, because they are in the gap before the next window.
    if len(numbers):
        stops = np.minimum(stops, np.searchsorted(times, sequence.ends_of(numbers)))
    filled = begins < stops
    return numbers[filled], RowRanges(begins[filled], stops[filled])


def spans_inside(sequence: WindowSequence, starts: Int64Array, ends: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the indexes of the spans that are inside a window, and the numbers of those windows.

    Each span must be inside one window or in a gap between windows. A span whose start is greater than its end is empty
    and is skipped.
    """
    numbers = sequence.index_of(starts)
    spans = np.flatnonzero((numbers >= 0) & (starts <= ends))
    if len(spans):
        spans = spans[ends[spans] < sequence.ends_of(numbers[spans])]
    return spans, numbers[spans]


# ---------------------------------------------------------------------------------------------- calendar


@lru_cache(_CACHED_SEQUENCES)
def _calendar_sequence(windows: TimeWindows, unit: TimeUnit) -> WindowSequence:
    # A left-open range was shifted by one tick to make it right-open, but calendar steps count from the start that the
    # user wrote.
    shift = 1 if windows.label_end else 0
    origin = Calendar(windows.start - shift, unit, windows.zone)
    starts: list[int] = []
    ends: list[int] = []
    while True:
        steps = len(starts)
        behind = steps * windows.step_ticks + shift
        start = origin.plus(steps * windows.step_months, steps * windows.step_days) + behind
        if start >= windows.end:
            break
        if steps == WINDOWS_MAX:
            raise _too_many(f"more than {WINDOWS_MAX:,} calendar")
        months = steps * windows.step_months + windows.interval_months
        days = steps * windows.step_days + windows.interval_days
        end = origin.plus(months, days) + windows.interval_ticks + behind
        starts.append(start)
        ends.append(min(end, windows.end))
    return ListedSequence(np.array(starts, np.int64), np.array(ends, np.int64))


@lru_cache(_CACHED_SEQUENCES)
def _calendar_step(windows: TimeWindows, unit: TimeUnit) -> int | None:
    """Return the greatest common divisor of all distances between borders, or None if there is only one border."""
    sequence = window_sequence(windows, unit)
    borders = np.concatenate((sequence.starts(0, sequence.count), sequence.ends(0, sequence.count)))
    # No rows are read after the end of the range, so borders there do not matter.
    borders = np.sort(borders[borders < windows.end])
    return int(np.gcd.reduce(np.diff(borders))) or None
