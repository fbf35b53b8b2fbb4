"""The pauses of a compaction job: their times and their lengths."""

from __future__ import annotations

from saros_storage.compaction.throttle import Throttle

MS = 1_000_000


def test_it_rests_three_times_as_long_as_it_worked_but_not_after_every_step() -> None:
    pace = Throttle(1 << 40)
    pace.resume(0)
    assert 0 == pace.pause_ns(10, 3 * MS)
    assert 15 * MS == pace.pause_ns(10, 5 * MS)
    pace.resume(20 * MS)
    assert 0 == pace.pause_ns(10, 21 * MS)


def test_it_rests_until_the_bytes_are_due() -> None:
    pace = Throttle(1_000)
    pace.resume(0)
    assert 499 * MS == pace.pause_ns(500, 1 * MS)
    pace.resume(500 * MS)
    assert 0 == pace.pause_ns(1, 501 * MS)
    assert 8 * MS == pace.pause_ns(9, 502 * MS)


def test_without_a_limit_it_never_rests() -> None:
    pace = Throttle(0)
    pace.resume(0)
    assert 0 == pace.pause_ns(1 << 40, 1_000 * MS)
