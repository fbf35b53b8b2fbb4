"""The pauses that throttle flushes that are not urgent."""

from __future__ import annotations

from saros_storage.flush.pacer import REST_NS_MAX, Pacer

MS = 1_000_000


def test_work_takes_its_percentage_of_the_time() -> None:
    pacer = Pacer(25)
    assert 12 * MS == pacer.rest_ns(4 * MS, 4 * MS)
    assert 24 * MS == pacer.rest_ns(8 * MS, 24 * MS)


def test_a_short_slice_goes_on_without_a_rest() -> None:
    assert 0 == Pacer(25).rest_ns(3 * MS, 3 * MS)


def test_two_threads_at_work_rest_for_both() -> None:
    pacer = Pacer(50)
    assert 4 * MS == pacer.rest_ns(4 * MS, 4 * MS)
    assert 12 * MS == pacer.rest_ns(4 * MS, 4 * MS)


def test_an_idle_time_earns_nothing_for_later() -> None:
    pacer = Pacer(50)
    pacer.rest_ns(4 * MS, 4 * MS)
    assert 4 * MS == pacer.rest_ns(4 * MS, 1_000 * MS)


def test_no_rest_is_longer_than_the_limit_however_many_threads_work() -> None:
    pacer = Pacer(1)
    assert [REST_NS_MAX] * 3 == [pacer.rest_ns(1_000 * MS, 1_000 * MS) for _ in range(3)]


def test_without_a_limit_nothing_rests() -> None:
    assert 0 == Pacer(0).rest_ns(1_000 * MS, 1_000 * MS)
