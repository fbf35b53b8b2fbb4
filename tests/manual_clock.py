"""Clocks for tests, which advance when a test sets them or when they are read."""

from __future__ import annotations

from saros_storage.base.clock import SystemClock

_SECOND_NS = 1_000_000_000


class ManualClock:
    """A clock that stands still until `ns` is set. Its wall clock and its monotonic clock show the same time."""

    def __init__(self, ns: int = 1_700_000_000 * _SECOND_NS) -> None:
        self.ns = ns

    def now_ns(self) -> int:
        return self.ns

    def monotonic_ns(self) -> int:
        return self.ns

    def advance(self, seconds: float) -> None:
        self.ns += int(seconds * _SECOND_NS)


class CountingClock(ManualClock):
    """A clock that advances by a nanosecond at each reading: all times are distinct, and usually in the same tick."""

    def now_ns(self) -> int:
        self.ns += 1
        return self.ns

    def monotonic_ns(self) -> int:
        return self.now_ns()


class LateClock(SystemClock):
    """A clock whose monotonic time is ahead of the machine's by `later_ns`."""

    later_ns = 0

    def monotonic_ns(self) -> int:
        return super().monotonic_ns() + self.later_ns
