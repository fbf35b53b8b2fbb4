"""What tombstones take from one series in one source.

    tombstones   root.a.**  [10, 20) rank 3      root.a.d1.s [15, 30) rank 5      root.b.** ...
    series root.a.d1.s in a source of rank 2:    DeletedTimes [10, 30)            of rank 4: [15, 30)

A tombstone hides the points of files of its rank or a lower one. In the MemTable of its own rank it was carried out
when it was made, and rows that came later stay; there, and only there, an equal rank does not count (`snapshot.py`).

Pure, except for a cache of pattern matches. Any thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from saros_storage.paths import parse_pattern, split_path
from saros_storage.reading import TimeRange
from saros_storage.snapshot import Rank, Tombstone
from saros_storage.types import BoolArray, Int64Array

_CACHED_MATCHES = 65_536


class DeletedTimes:
    """A set of times: disjoint ranges [starts[i], ends[i]) in order, at least one."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, ranges: Sequence[TimeRange]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for part in sorted(ranges, key=lambda r: r.start):
            if self._ends and part.start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], part.end)
            else:
                self._starts.append(part.start)
                self._ends.append(part.end)

    def touch(self, first: int, last: int) -> bool:
        """Whether any time from `first` to `last` (inclusive) is deleted."""
        position = bisect_right(self._starts, last) - 1
        return position >= 0 and self._ends[position] > first

    def cover(self, first: int, last: int) -> bool:
        """Whether all times from `first` to `last` (inclusive) are deleted."""
        position = bisect_right(self._starts, first) - 1
        return position >= 0 and self._ends[position] > last

    def kept(self, times: Int64Array) -> BoolArray:
        """Which of the (sorted) times are not deleted."""
        mask = np.ones(len(times), np.bool_)
        low = bisect_right(self._ends, int(times[0]))
        high = bisect_right(self._starts, int(times[-1]))
        starts = np.searchsorted(times, np.array(self._starts[low:high], np.int64)).tolist()
        ends = np.searchsorted(times, np.array(self._ends[low:high], np.int64)).tolist()
        for start, end in zip(starts, ends, strict=True):
            mask[start:end] = False
        return mask


def relevant(
    tombstones: Sequence[Tombstone], device: str, measurements: Sequence[str], time: TimeRange
) -> list[Tombstone]:
    """Those tombstones that may take something from a scan."""
    return [
        t
        for t in tombstones
        if t.time.start < time.end
        and time.start < t.time.end
        and not t.time.empty
        and any(hides(t.pattern, device, m) for m in measurements)
    ]


def deleted_times(
    tombstones: Sequence[Tombstone], device: str, measurement: str, rank: Rank, *, memory: bool
) -> DeletedTimes | None:
    """What is deleted of a series in a source of this rank; None: nothing. `memory`: the source is a MemTable."""
    ranges = [
        t.time
        for t in tombstones
        if (rank < t.rank or (rank == t.rank and not memory)) and hides(t.pattern, device, measurement)
    ]
    return DeletedTimes(ranges) if ranges else None


@lru_cache(_CACHED_MATCHES)
def hides(pattern: str, device: str, measurement: str) -> bool:
    """Whether a tombstone's pattern matches a series."""
    return parse_pattern(pattern).matches((*split_path(device), measurement))
