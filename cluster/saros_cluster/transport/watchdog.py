"""Actions that are taken when a time limit is exceeded. One thread serves all limits.

    with watchdog.limit(seconds, act) as limit:    act() from the watchdog's thread if the block takes longer
        ...
    limit.passed                                   whether the limit was exceeded

Thread-safe. `act` must not block.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from saros_storage.base.clock import Clock


class Limit:
    """The time limit of one block."""

    __slots__ = ("act", "deadline_ns", "passed")

    def __init__(self, deadline_ns: int, act: Callable[[], object]) -> None:
        self.deadline_ns = deadline_ns
        self.act = act
        #: Set before `act` is called.
        self.passed = False


class Watchdog:
    """A set of time limits, and the thread that acts on them. The thread starts with the first limit."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._limits: set[Limit] = set()
        #: The time at which the thread wakes up, or None if it waits for a notification.
        self._looks_ns: int | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    @contextmanager
    def limit(self, seconds: float, act: Callable[[], object]) -> Iterator[Limit]:
        """Call `act` from the watchdog's thread if the `with` block takes longer than `seconds`."""
        limit = Limit(self._clock.monotonic_ns() + int(seconds * 1e9), act)
        with self._changed:
            self._limits.add(limit)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="saros-watchdog", daemon=True)
                self._thread.start()
            elif self._looks_ns is None or limit.deadline_ns < self._looks_ns:
                self._changed.notify()
        try:
            yield limit
        finally:
            with self._changed:
                self._limits.discard(limit)

    def close(self) -> None:
        """Stop the thread. Time limits have no effect afterwards."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while (passed := self._wait()) is not None:
            for limit in passed:
                limit.act()

    def _wait(self) -> list[Limit] | None:
        """Wait until at least one time limit is exceeded, and return all exceeded limits.

        Return None if the watchdog is closed.
        """
        with self._changed:
            while not self._closed:
                now_ns = self._clock.monotonic_ns()
                passed = [limit for limit in self._limits if limit.deadline_ns <= now_ns]
                self._limits.difference_update(passed)
                for limit in passed:
                    limit.passed = True
                if passed:
                    return passed
                self._looks_ns = min((limit.deadline_ns for limit in self._limits), default=None)
                self._changed.wait(None if self._looks_ns is None else (self._looks_ns - now_ns) / 1e9)
        return None
