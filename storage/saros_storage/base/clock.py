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
    """The machine's clocks."""

    def now_ns(self) -> int:
        """See `Clock.now_ns`."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """See `Clock.monotonic_ns`."""
        return time.monotonic_ns()
