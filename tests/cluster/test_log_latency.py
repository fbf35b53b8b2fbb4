"""The health of the log: a few slow writes make the log slow, a single slow write does not, and the log recovers."""

from __future__ import annotations

from saros_cluster.multiraft.log_latency import LogHealth, LogLatency

MS = 1_000_000
SECOND = 1_000 * MS
TICK = 50 * MS


class Log:
    """A log whose writes take the times that a test chooses.

    The health of this log is checked as often as a host checks the health of its log.
    """

    def __init__(self) -> None:
        self.latency = LogLatency()
        self.now = 100 * SECOND

    def wait(self, ns: int, *, pending: bool = False, size_bytes: int = 0) -> LogHealth:
        """Let time pass; with `pending`, a write of `size_bytes` is in progress during all of that time."""
        found, waited = self.latency.check(self.now), 0
        while waited < ns:
            step = min(TICK, ns - waited)
            waited += step
            self.now += step
            found = self.latency.check(self.now, waited if pending else 0, size_bytes if pending else 0)
        return found

    def write(self, ns: int, count: int = 1, size_bytes: int = 100) -> bool:
        """Make `count` writes, each of which takes `ns`; return whether the log is slow after them."""
        for _ in range(count):
            self.wait(ns, pending=True, size_bytes=size_bytes)
            self.latency.record(self.now, ns, size_bytes)
        return self.latency.check(self.now).slow

    def idle(self, ns: int, write_ns: int) -> bool:
        """Let time pass; the only writes are probes, each of which takes `write_ns`. Return whether the log is slow."""
        until = self.now + ns
        while self.now < until:
            self.wait(TICK)
            if self.latency.is_probe_due(self.now):
                self.write(write_ns)
        return self.latency.check(self.now).slow


def healthy() -> Log:
    log = Log()
    assert not log.write(5 * MS, 500)
    return log


def test_a_log_is_slow_after_three_slow_writes_in_a_row() -> None:
    log = healthy()
    assert [False, False, True] == [log.write(SECOND) for _ in range(3)]


def test_one_long_write_does_not_make_a_log_slow() -> None:
    log = healthy()
    for _ in range(20):
        assert not log.write(1_900 * MS)
        assert not log.write(5 * MS, 20)


def test_a_write_that_does_not_end_makes_a_log_slow_while_it_waits() -> None:
    log = healthy()
    assert not log.wait(1_950 * MS, pending=True).slow
    log = healthy()
    found = log.wait(2 * SECOND, pending=True)
    assert (True, 2 * SECOND) == (found.slow, found.write_ns)


def test_a_disk_that_is_slow_every_other_time_is_slow() -> None:
    log = healthy()
    found = False
    for _ in range(30):
        found = log.write(SECOND) or found
        log.write(5 * MS)
    assert found


def test_large_writes_may_take_longer() -> None:
    log = healthy()
    assert not log.write(SECOND, 20, size_bytes=20 << 20)
    assert log.write(3 * SECOND, 1, size_bytes=10 << 20)


def test_a_disk_that_always_took_long_may_take_longer() -> None:
    log = Log()
    assert not log.write(100 * MS, 500)
    assert not log.write(500 * MS, 20)
    assert log.write(1_500 * MS, 5)


def test_a_node_that_starts_with_a_slow_disk_notices_it() -> None:
    assert Log().write(SECOND, 5)


def test_a_log_is_healthy_again_after_half_a_minute_without_a_slow_write() -> None:
    log = healthy()
    assert log.write(SECOND, 5)
    assert log.write(5 * MS, 20)
    assert log.idle(25 * SECOND, 5 * MS)
    assert not log.idle(10 * SECOND, 5 * MS)


def test_a_slow_write_in_between_begins_the_half_minute_again() -> None:
    log = healthy()
    assert log.write(SECOND, 5)
    for _ in range(4):
        assert log.idle(20 * SECOND, 5 * MS)
        assert log.write(SECOND)


def test_a_healthy_log_is_not_tested_and_a_suspicious_one_is() -> None:
    log = healthy()
    assert not log.latency.is_probe_due(log.now + 3_600 * SECOND)
    assert not log.write(SECOND)
    assert log.idle(10 * SECOND, SECOND)
    assert not healthy().idle(10 * SECOND, SECOND)


def test_a_pause_of_the_process_is_not_a_slow_disk() -> None:
    log = healthy()
    log.wait(TICK, pending=True)
    log.now += 60 * SECOND
    assert not log.latency.check(log.now, 60 * SECOND + TICK).slow
    log.latency.record(log.now, 60 * SECOND + TICK, 100)
    assert not log.latency.check(log.now).slow
    assert 5 * MS == log.latency.check(log.now).write_ns


def test_the_durations_are_told() -> None:
    log = healthy()
    log.write(SECOND, 20)
    found = log.latency.check(log.now)
    assert "0.997 s, usually 0.005 s" == found.text
