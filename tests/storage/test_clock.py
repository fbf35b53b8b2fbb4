"""The guard against clocks that jump: irreversible steps wait until a jump has lasted."""

from __future__ import annotations

from dataclasses import dataclass

from saros_storage.base.clock import JumpGuard

SECOND = 1_000_000_000
HOUR = 3_600 * SECOND


@dataclass
class TwoClocks:
    """A wall clock that can be set, and a monotonic clock."""

    wall_ns: int = 1_000 * HOUR
    monotonic: int = 5 * HOUR

    def now_ns(self) -> int:
        return self.wall_ns

    def monotonic_ns(self) -> int:
        return self.monotonic

    def pass_time(self, ns: int) -> None:
        self.wall_ns += ns
        self.monotonic += ns


def test_the_guard_follows_a_clock_that_does_not_jump() -> None:
    clock = TwoClocks()
    guard = JumpGuard(clock)
    for _ in range(100):
        clock.pass_time(HOUR)
        clock.wall_ns += SECOND  # the wall clock runs fast
        assert clock.wall_ns == guard.now_ns()


def test_a_jump_forward_does_not_count_and_is_forgotten_when_the_clock_is_set_back() -> None:
    clock = TwoClocks()
    guard = JumpGuard(clock)
    clock.wall_ns += HOUR
    clock.pass_time(SECOND)
    assert clock.wall_ns - HOUR == guard.now_ns()
    clock.wall_ns -= HOUR
    clock.pass_time(SECOND)
    assert clock.wall_ns == guard.now_ns()


def test_a_jump_that_nobody_looked_at_for_days_does_not_count_either() -> None:
    clock = TwoClocks()
    guard = JumpGuard(clock)
    clock.pass_time(100 * HOUR)
    clock.wall_ns += HOUR
    assert clock.wall_ns - HOUR == guard.now_ns()


def test_a_jump_forward_counts_after_a_day() -> None:
    clock = TwoClocks()
    guard = JumpGuard(clock)
    clock.wall_ns += HOUR
    for _ in range(24):
        assert clock.wall_ns - HOUR == guard.now_ns()
        clock.pass_time(HOUR)
    assert clock.wall_ns == guard.now_ns()
    clock.pass_time(HOUR)
    assert clock.wall_ns == guard.now_ns()


def test_a_jump_back_counts_at_once() -> None:
    clock = TwoClocks()
    guard = JumpGuard(clock)
    clock.wall_ns -= HOUR
    assert clock.wall_ns == guard.now_ns()
    clock.pass_time(HOUR)
    assert clock.wall_ns == guard.now_ns()
