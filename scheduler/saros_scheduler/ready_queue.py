"""The ready queue: `MultilevelPriorityQueue` behind one lock, with the same methods, and a blocking `take`.

Urgent items (system queries such as SHOW QUERIES) are taken before all others. `offer_or_take` hands an item straight
back to its caller, if its turn is now. Thread-safe.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

from saros_scheduler.multilevel_queue import MultilevelPriorityQueue

T = TypeVar("T")


class ReadyQueue(Generic[T]):
    """See the module."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        #: Something waits, or the queue is closed.
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
        """Add an item that is not urgent, and wake one taker; or, if it would be taken next, take it: True."""
        with self._lock:
            if not self._urgent and not len(self._queue):
                return True  # as if it had been offered and taken; its level catches up at its next offer
            self._queue.offer(item, scheduled_ns)
            if not self._urgent and self._queue.poll_only(item):
                return True
            self._offered.notify()
            return False

    def take(self) -> T | None:
        """The next item, waiting for one; None once the queue is closed."""
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
        """See `MultilevelPriorityQueue.charge`."""
        with self._lock:
            self._queue.charge(level, used_ns)

    def level_times_ns(self) -> tuple[int, ...]:
        """See `MultilevelPriorityQueue.level_times_ns`."""
        with self._lock:
            return self._queue.level_times_ns()

    def close(self) -> None:
        """Wake all takers with None."""
        with self._lock:
            self._closed = True
            self._offered.notify_all()
