"""Time as a parameter: pure cores receive `now`, runners receive a `Clock`, and tests pass a fake clock."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of time. Implementations are thread-safe."""

    def now_ns(self) -> int:
        """Return the wall clock in nanoseconds since the epoch, for timestamps that people see."""
        ...

    def monotonic_ns(self) -> int:
        """Return nanoseconds of a clock that never goes back, for durations and deadlines."""
        ...


class SystemClock:
    """The machine's clocks.

    A query reads the clocks dozens of times, so the methods are Python's own functions without a wrapper.
    """

    now_ns = staticmethod(time.time_ns)
    monotonic_ns = staticmethod(time.monotonic_ns)


#: A forward jump that has lasted this long is accepted as a correction: people reset a wrong clock before that.
JUMP_TRUSTED_NS = 24 * 3_600_000_000_000
#: A smaller lead over the monotonic clock is not a jump: time synchronization lets wall clocks run slightly faster.
_JUMP_NS = 60_000_000_000


class JumpGuard:
    """A wall clock for decisions that cannot be undone: it follows a forward jump only after the jump has lasted a day.

        wall clock      10:00  10:01  11:02 (jump)  11:03 ... 10:04 (set back)
        JumpGuard       10:00  10:01  10:02         10:03     10:04

    It is never ahead of the wall clock. It trusts the wall clock's time at its creation. Thread-safe.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: The wall time and monotonic time at which the wall clock was last trusted. They form one tuple so that
        #: threads read a matching pair.
        self._believed_ns = clock.now_ns(), clock.monotonic_ns()
        #: Monotonic time at which a jump was first seen, or None while the wall clock is trusted.
        self._jumped_at_ns: int | None = None

    def now_ns(self) -> int:
        """Return nanoseconds since the epoch."""
        wall_ns, monotonic_ns = self._clock.now_ns(), self._clock.monotonic_ns()
        believed_ns, then_ns = self._believed_ns
        expected_ns = believed_ns + monotonic_ns - then_ns
        if wall_ns > expected_ns + _JUMP_NS:
            jumped_at_ns = self._jumped_at_ns = monotonic_ns if self._jumped_at_ns is None else self._jumped_at_ns
            if monotonic_ns - jumped_at_ns < JUMP_TRUSTED_NS:
                return expected_ns
        self._believed_ns, self._jumped_at_ns = (wall_ns, monotonic_ns), None
        return wall_ns
