"""A budget of processor time for flushes that can wait; all flushers of a node share it.

    work  |###|            |####|               after each slice of work a pause, so that all flushers together use the
    pause     |...........|     |.............  given percentage of one core

A percentage of 0 means no limit. No pause is longer than `REST_NS_MAX`. Thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

#: The processor time between two pauses; while other threads wait, the interpreter lets a thread run longer than this.
SLICE_NS = 4_000_000
#: The longest pause, so that a flush always ends in a bounded time.
REST_NS_MAX = 5_000_000_000


class Pacer:
    """A shared budget that turns processor time into pauses."""

    def __init__(self, percent: int, thread_time_ns: Callable[[], int] = time.thread_time_ns) -> None:
        """Create a budget of `percent` of one core. `thread_time_ns` returns the calling thread's processor time."""
        self._percent = percent
        self.thread_time_ns = thread_time_ns
        self._lock = threading.Lock()
        #: The time up to which past work has used up the budget.
        self._spent_until_ns = 0

    def set_percent(self, percent: int) -> None:
        """Change the budget; 0 means no limit."""
        with self._lock:
            self._percent = percent

    def rest_ns(self, worked_ns: int, now_ns: int) -> int:
        """Return how long to pause after `worked_ns` of work (0: no pause)."""
        if worked_ns < SLICE_NS:
            return 0
        with self._lock:
            if not self._percent:
                return 0
            began_ns = max(self._spent_until_ns, now_ns - worked_ns)
            self._spent_until_ns = min(began_ns + worked_ns * 100 // self._percent, now_ns + REST_NS_MAX)
            return max(0, self._spent_until_ns - now_ns)
