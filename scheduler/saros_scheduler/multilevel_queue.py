"""Multilevel queue: picks the driver that runs next.

    level   drivers that have run     weight
      0       0 s ..   1 s              16        a level's share of time is its weight: twice the next level's
      1       1 s ..  10 s               8
      2      10 s ..  60 s               4
      3      60 s .. 300 s               2
      4     300 s ..                     1

A driver moves to higher level numbers as it uses time. Therefore, short queries overtake long queries, but long queries
also advance. `poll` takes the level that has used the least of its share (smallest `time / weight`), and from that
level the driver that has run least. Among drivers that have run equally long, it takes the driver that has waited
longest.

When an empty level gets an item, the level's time is raised to the time that the level would have used if it had not
been empty. Otherwise, only this level would be served until it had used as much of its share as the other levels. A
single charge is capped, so that a driver that hangs in one quantum does not penalise its level for minutes.

Invariants
  - an item is in at most one level, and only between `offer` and `poll` or `remove`
  - a level's time never decreases

Pure and not thread-safe: `ready_queue.py` adds the lock.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")

SECOND_NS = 1_000_000_000
LEVEL_STARTS_NS = (0, 1 * SECOND_NS, 10 * SECOND_NS, 60 * SECOND_NS, 300 * SECOND_NS)
LEVELS = len(LEVEL_STARTS_NS)
#: The maximum time that one quantum adds to its level's time.
CHARGE_NS_MAX = 30 * SECOND_NS


def level_of(scheduled_ns: int) -> int:
    """Return the level of a driver that has run `scheduled_ns` in total."""
    return bisect_right(LEVEL_STARTS_NS, scheduled_ns) - 1


def weight_of(level: int) -> int:
    """Return the level's share of time, relative to the share of the last level."""
    return 1 << (LEVELS - 1 - level)


class _Level(msgspec.Struct, Generic[T]):
    #: The time charged to this level, including the time added when the level was re-entered.
    time_ns: int = 0
    #: Each entry has the time for which the item has run, the order of its arrival, and the item. Removed items stay
    #: until they reach the top.
    heap: list[tuple[int, int, T]] = msgspec.field(default_factory=list)
    #: The number of items in the level, without removed items that are still in the heap.
    size: int = 0


class MultilevelPriorityQueue(Generic[T]):
    """A queue of five levels with fixed shares of time. Items are hashable. Each item is in the queue at most once."""

    def __init__(self) -> None:
        self._levels: list[_Level[T]] = [_Level() for _ in range(LEVELS)]
        #: Maps each item to its level and the order of its arrival. If an entry of a heap does not match, its item was
        #: removed.
        self._places: dict[T, tuple[int, int]] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._places)

    def offer(self, item: T, scheduled_ns: int) -> None:
        """Add an item that has already run `scheduled_ns`."""
        assert item not in self._places
        number = level_of(scheduled_ns)
        level = self._levels[number]
        if level.size == 0:
            level.time_ns = max(level.time_ns, self._expected_time_ns(number))
        self._arrivals += 1
        self._places[item] = (number, self._arrivals)
        heapq.heappush(level.heap, (scheduled_ns, self._arrivals, item))
        level.size += 1

    def poll(self) -> T | None:
        """Remove and return the next item, or return None if the queue is empty."""
        level = self._next_level()
        return None if level is None else self._pop(level)

    def poll_only(self, item: T) -> bool:
        """Remove `item` if it is the next item. Return whether it was removed."""
        level = self._next_level()
        if level is None or level.heap[0][2] != item:
            return False
        self._pop(level)
        return True

    def charge(self, level: int, used_ns: int) -> None:
        """Charge `level` for a quantum of `used_ns`, at most CHARGE_NS_MAX."""
        assert used_ns >= 0
        self._levels[level].time_ns += min(used_ns, CHARGE_NS_MAX)

    def remove(self, item: T) -> bool:
        """Remove an item from any level. Return False if it is not in the queue."""
        if item not in self._places:
            return False
        self._forget(item)
        return True

    def level_times_ns(self) -> tuple[int, ...]:
        """Return the time charged to each level, including the time added when the level was re-entered."""
        return tuple(level.time_ns for level in self._levels)

    def validate(self) -> None:
        """Assert the invariants across fields."""
        for number, level in enumerate(self._levels):
            alive = [item for _, arrival, item in level.heap if self._places.get(item) == (number, arrival)]
            assert len(alive) == level.size
        assert sum(level.size for level in self._levels) == len(self._places)

    def _next_level(self) -> _Level[T] | None:
        """Return the level of the next item, with that item on top of its heap, or None if the queue is empty."""
        waiting = [n for n in range(LEVELS) if self._levels[n].size]
        if not waiting:
            return None
        number = waiting[0]
        if len(waiting) > 1:
            number = min(waiting, key=lambda n: (self._levels[n].time_ns / weight_of(n), n))
        heap = self._levels[number].heap
        while self._places.get(heap[0][2]) != (number, heap[0][1]):
            heapq.heappop(heap)
        return self._levels[number]

    def _pop(self, level: _Level[T]) -> T:
        item = heapq.heappop(level.heap)[2]
        self._forget(item)
        return item

    def _forget(self, item: T) -> None:
        number, _ = self._places.pop(item)
        level = self._levels[number]
        level.size -= 1
        if level.size == 0:
            level.heap.clear()

    def _expected_time_ns(self, number: int) -> int:
        """Return the time that a level would have used if it had been served as much as the other levels.

        The reference, in `time / weight`, is the least-served level that is not empty or, if all levels are empty, the
        most-served level.
        """
        shares = [level.time_ns / weight_of(n) for n, level in enumerate(self._levels)]
        waiting = [share for share, level in zip(shares, self._levels, strict=True) if level.size]
        return int((min(waiting) if waiting else max(shares)) * weight_of(number))
