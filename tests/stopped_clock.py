"""A clock that tests can stop. While the clock is stopped, no timeout expires, even on a slow machine."""

from __future__ import annotations

from saros_storage.base.clock import SystemClock


class StoppedClock(SystemClock):
    """The machine's clock, whose monotonic time can be stopped, as if the process were paused."""

    def __init__(self) -> None:
        self._stopped_ns: int | None = None

    def monotonic_ns(self) -> int:
        stopped = self._stopped_ns
        return super().monotonic_ns() if stopped is None else stopped

    def stop(self) -> None:
        self._stopped_ns = super().monotonic_ns()

    def go_on(self) -> None:
        self._stopped_ns = None
