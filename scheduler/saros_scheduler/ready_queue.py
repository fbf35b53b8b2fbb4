"""The ready queue: a `MultilevelPriorityQueue` under a lock, with a blocking `take`.

Urgent items (system queries such as SHOW QUERIES) are taken before all other items. If an item would be taken next,
`offer_or_take` leaves the item to its caller instead of adding it. Thread-safe.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

from saros_scheduler.multilevel_queue import MultilevelPriorityQueue

T = TypeVar("T")


class ReadyQueue(Generic[T]):
    """A thread-safe multilevel queue with urgent items. Takers wait until an item is offered."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        #: Notified when an item was offered or the queue is closed.
        self._offered = threading.Condition(self._lock)
        self._queue: MultilevelPriorityQueue[T] = MultilevelPriorityQueue()
        self._urgent: deque[T] = deque()
        self._closed = False

    def __len__(self) -> int:
        with self._lock:
            return len(self._queue) + len(self._urgent)

    def offer(self, item: T, scheduled_ns: int, *, urgent: bool = False) -> None:
        """Add an item and wake one taker."""
        with self._lock:
            if urgent:
                self._urgent.append(item)
            else:
                self._queue.offer(item, scheduled_ns)
            self._offered.notify()

    def offer_or_take(self, item: T, scheduled_ns: int) -> bool:
        """Return True if the item, which is not urgent, would be taken next. Otherwise, add it and wake one taker."""
        with self._lock:
            if not self._urgent and not len(self._queue):
                return True  # this counts as an offer and a take; the level's time is updated at the next offer
            self._queue.offer(item, scheduled_ns)
            if not self._urgent and self._queue.poll_only(item):
                return True
            self._offered.notify()
            return False

    def take(self) -> T | None:
        """Remove and return the next item, waiting for one if necessary. Return None once the queue is closed."""
        with self._lock:
            while not self._closed:
                if self._urgent:
                    return self._urgent.popleft()
                item = self._queue.poll()
                if item is not None:
                    return item
                self._offered.wait()
            return None

    def charge(self, level: int, used_ns: int) -> None:
        """Charge `level` for a quantum, as `MultilevelPriorityQueue.charge` does."""
        with self._lock:
            self._queue.charge(level, used_ns)

    def level_times_ns(self) -> tuple[int, ...]:
        """Return the time charged to each level, as `MultilevelPriorityQueue.level_times_ns` does."""
        with self._lock:
            return self._queue.level_times_ns()

    def close(self) -> None:
        """Close the queue: wake all takers, whose `take` returns None."""
        with self._lock:
            self._closed = True
            self._offered.notify_all()
