"""The times that tombstones hide from one series in one source.

    tombstones   root.a.**  [10, 20) rank 3      root.a.d1.s [15, 30) rank 5      root.b.** ...
    series root.a.d1.s in a source of rank 2:    DeletedTimes [10, 30)            of rank 4: [15, 30)

A tombstone hides points in every source of equal or lower rank, whether the source is a file or a MemTable.

A scan considers only the tombstones that match its series. Tombstones without wildcards are indexed by series, and
tombstones with wildcards are indexed by pattern. Thousands of tombstones for other series thus add almost nothing to
the cost of a scan.

Pure, except that pattern matches and the tombstones of each series are cached. Any thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

import numpy as np

from saros_storage.base.lru import LruCache
from saros_storage.base.paths import PathPattern, parse_pattern, split_path
from saros_storage.base.types import BoolArray, Int64Array
from saros_storage.scan.reading import TimeRange
from saros_storage.scan.snapshot import FileSource, Rank, Tombstone

_CACHED_MATCHES = 65_536
#: Maximum number of partitions whose tombstone index is cached.
_CACHED_INDEXES = 256


class DeletedTimes:
    """A set of times, as disjoint ranges [starts[i], ends[i]) in increasing order."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, ranges: Sequence[TimeRange]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for part in sorted((r for r in ranges if not r.empty), key=lambda r: r.start):
            if self._ends and part.start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], part.end)
            else:
                self._starts.append(part.start)
                self._ends.append(part.end)

    def touch(self, first: int, last: int) -> bool:
        """Return whether any time from `first` to `last` (inclusive) is deleted."""
        position = bisect_right(self._starts, last) - 1
        return position >= 0 and self._ends[position] > first

    def cover(self, first: int, last: int) -> bool:
        """Return whether all times from `first` to `last` (inclusive) are deleted."""
        position = bisect_right(self._starts, first) - 1
        return position >= 0 and self._ends[position] > last

    def live_span(self, first: int, last: int) -> tuple[int, int] | None:
        """Return the first and last time in [`first`, `last`] that are not deleted; None if all are deleted."""
        position = bisect_right(self._starts, first) - 1
        if position >= 0:
            first = max(first, self._ends[position])
        position = bisect_right(self._starts, last) - 1
        if position >= 0 and self._ends[position] > last:
            last = self._starts[position] - 1
        return (first, last) if first <= last else None

    def live_mask(self, times: Int64Array) -> BoolArray:
        """Return a mask that is true for the times that are not deleted; `times` is sorted and not empty."""
        mask = np.ones(len(times), np.bool_)
        low = bisect_right(self._ends, int(times[0]))
        high = bisect_right(self._starts, int(times[-1]))
        starts = np.searchsorted(times, np.array(self._starts[low:high], np.int64)).tolist()
        ends = np.searchsorted(times, np.array(self._ends[low:high], np.int64)).tolist()
        for start, end in zip(starts, ends, strict=True):
            mask[start:end] = False
        return mask


class _BySeries:
    """A partition's tombstones, indexed by series path and by pattern."""

    def __init__(self, tombstones: tuple[Tombstone, ...]) -> None:
        self.tombstones = tombstones
        #: For each series path, the tombstones of this series alone.
        self._exact: dict[str, list[Tombstone]] = {}
        #: For each pattern with wildcards, its tombstones and the literal prefix that all matching paths share.
        self._wild: dict[str, tuple[str, list[Tombstone]]] = {}
        for tombstone in tombstones:
            pattern = parse_pattern(tombstone.pattern)
            if not pattern.has_wildcard:
                self._exact.setdefault(pattern.text, []).append(tombstone)
                continue
            _, same = self._wild.setdefault(tombstone.pattern, (_literal_start(pattern), []))
            same.append(tombstone)

    def of(self, device: str, measurements: Sequence[str]) -> list[Tombstone]:
        """Return the tombstones that match at least one of the series."""
        found: list[Tombstone] = []
        if self._exact:
            for measurement in measurements:
                found += self._exact.get(f"{device}.{measurement}", ())
        below = device + "."
        for pattern, (start, same) in self._wild.items():
            near = below.startswith(start) or start.startswith(below)
            if near and any(hides(pattern, device, m) for m in measurements):
                found += same
        return found


def _literal_start(pattern: PathPattern) -> str:
    """Return those nodes of a pattern that precede its first possible wildcard, each followed by a dot."""
    nodes = takewhile(lambda node: "*" not in node, pattern.nodes)
    return "".join(f"{node}." for node in nodes)


_indexes: LruCache[int, _BySeries] = LruCache(_CACHED_INDEXES)


def _by_series(tombstones: tuple[Tombstone, ...]) -> _BySeries:
    """Return the index of the tombstones, which is built only once for each tuple.

    Until the next deletion, all snapshots of a partition share one tuple of tombstones.
    """
    key = id(tombstones)
    index = _indexes.get(key)
    if index is None:
        # The index references the tuple, so its id cannot be reused while the entry exists.
        index = _BySeries(tombstones)
        _indexes.put(key, index, 1)
    return index


def relevant(
    tombstones: tuple[Tombstone, ...], device: str, measurements: Sequence[str], time: TimeRange
) -> tuple[Tombstone, ...]:
    """Return those tombstones that may hide points of a scan."""
    return tuple(
        t
        for t in _by_series(tombstones).of(device, measurements)
        if t.time.start < time.end and time.start < t.time.end and not t.time.empty
    )


def deleted_times(tombstones: Sequence[Tombstone], device: str, measurement: str, rank: Rank) -> DeletedTimes | None:
    """Return the deleted times of a series in a source of the given rank; None if there are none."""
    ranges = [t.time for t in tombstones if rank <= t.rank and hides(t.pattern, device, measurement)]
    return DeletedTimes(ranges) if ranges else None


@lru_cache(_CACHED_MATCHES)
def hides(pattern: str, device: str, measurement: str) -> bool:
    """Return whether a tombstone's pattern matches a series."""
    return parse_pattern(pattern).matches((*split_path(device), measurement))


def may_hold(file: FileSource, pattern: str, time: TimeRange) -> bool:
    """Return whether a file may hold points in `time` of series that the pattern matches."""
    return any(time.touches(s.start, s.end) and reaches(pattern, d) for d, s in file.devices.items())


@lru_cache(_CACHED_MATCHES)
def reaches(pattern: str, device: str) -> bool:
    """Return whether a tombstone's pattern may match a series of the device."""
    parsed = parse_pattern(pattern)
    reached = parsed.start()
    for node in split_path(device):
        reached = parsed.advance(reached, node)
    return bool(reached)
