"""Deadline queue: finds the queries that are overdue.

A bounded heap of (deadline, item). The caller supplies all times: nanoseconds of any monotonic clock.

Pure and not thread-safe: the sentinel (`driver_scheduler.py`) adds the lock and the waiting.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class DeadlineQueueFull(Exception):
    """The queue is full: it has as many items as its capacity allows."""

    code = 2031

    def __init__(self, capacity: int) -> None:
        super().__init__(f"{capacity} queries are already running, the maximum; try again when some have ended")
        self.capacity = capacity


class DeadlineQueue(Generic[T]):
    """A queue of at most `capacity` items, each with one deadline."""

    def __init__(self, capacity: int) -> None:
        assert capacity > 0
        self._capacity = capacity
        self._deadlines: dict[T, int] = {}
        #: Entries are (deadline, order of arrival, item). An entry is outdated unless `_deadlines` has the same
        #: deadline for its item.
        self._heap: list[tuple[int, int, T]] = []
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def add(self, item: T, deadline_ns: int) -> None:
        """Add an item. Raises DeadlineQueueFull if the queue is at its capacity."""
        assert item not in self._deadlines
        if len(self._deadlines) >= self._capacity:
            raise DeadlineQueueFull(self._capacity)
        self._deadlines[item] = deadline_ns
        self._arrivals += 1
        heapq.heappush(self._heap, (deadline_ns, self._arrivals, item))

    def discard(self, item: T) -> None:
        """Remove an item. Do nothing if it is not in the queue."""
        self._deadlines.pop(item, None)
        if len(self._heap) > 2 * self._capacity:
            self._heap = [entry for entry in self._heap if self._alive(entry)]
            heapq.heapify(self._heap)

    def next_deadline_ns(self) -> int | None:
        """Return the earliest deadline, or None if the queue is empty."""
        while self._heap and not self._alive(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ns: int) -> list[T]:
        """Remove and return all items whose deadline is `now_ns` or earlier, the earliest first."""
        due = []
        while (deadline := self.next_deadline_ns()) is not None and deadline <= now_ns:
            item = heapq.heappop(self._heap)[2]
            del self._deadlines[item]
            due.append(item)
        return due

    def _alive(self, entry: tuple[int, int, T]) -> bool:
        deadline, _, item = entry
        return self._deadlines.get(item) == deadline
