"""Time as a dependency: cores take `now`, runners take a `Clock`, tests take a fake one."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where time comes from. Implementations are thread-safe."""

    def now_ns(self) -> int:
        """Wall clock, nanoseconds since the epoch: for timestamps that people see."""
        ...

    def monotonic_ns(self) -> int:
        """Never goes back: for durations and deadlines."""
        ...


class SystemClock:
    """The machine's clocks. A query reads them dozens of times, so the functions themselves are the methods."""

    now_ns = staticmethod(time.time_ns)
    monotonic_ns = staticmethod(time.monotonic_ns)


#: A forward jump that has lasted for this long is a correction; a wrong clock is noticed and set back sooner.
JUMP_TRUSTED_NS = 24 * 3_600_000_000_000
#: Less ahead of the monotonic clock is no jump: wall clocks are slewed.
_JUMP_NS = 60_000_000_000


class JumpGuard:
    """The wall clock for what cannot be undone: a jump forward counts only after it has lasted for a day.

        wall clock      10:00  10:01  11:02 (jump)  11:03 ... 10:04 (set back)
        JumpGuard       10:00  10:01  10:02         10:03     10:04

    It never shows a later time than the wall clock. The first time is believed. Thread-safe.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: The wall clock and the monotonic clock when the former was believed last; replaced as a whole.
        self._believed_ns = clock.now_ns(), clock.monotonic_ns()
        #: When a jump was seen first, by the monotonic clock; None: the wall clock is believed.
        self._jumped_at_ns: int | None = None

    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        wall_ns, monotonic_ns = self._clock.now_ns(), self._clock.monotonic_ns()
        believed_ns, then_ns = self._believed_ns
        expected_ns = believed_ns + monotonic_ns - then_ns
        if wall_ns > expected_ns + _JUMP_NS:
            jumped_at_ns = self._jumped_at_ns = monotonic_ns if self._jumped_at_ns is None else self._jumped_at_ns
            if monotonic_ns - jumped_at_ns < JUMP_TRUSTED_NS:
                return expected_ns
        self._believed_ns, self._jumped_at_ns = (wall_ns, monotonic_ns), None
        return wall_ns
