"""The effect of a change on clients: the longest calls during the change, and the drop in throughput."""

from __future__ import annotations

import math

import pytest
from cluster.growth_effect import effect_of
from cluster.growth_watch import Grown
from cluster.history import Outcome
from cluster.ledger import Batch

SECOND = 1_000_000_000
#: A change that begins after 100 seconds and ends after 110 seconds.
GROWN = Grown("add node 4", 100 * SECOND, 110 * SECOND, {}, 10, None)
CALM = (91 * SECOND, 95 * SECOND)


def batch(series: str, begin_s: float, end_s: float, outcome: Outcome = Outcome.OK) -> Batch:
    return Batch("w", 1, series, (1, 2), (1, 2), int(begin_s * SECOND), int(end_s * SECOND), outcome)


def steady(begin_s: int, end_s: int, every_s: float = 0.5) -> list[Batch]:
    count = int((end_s - begin_s) / every_s)
    return [batch("root.a", begin_s + i * every_s, begin_s + i * every_s + 0.1) for i in range(count)]


def test_a_gap_is_the_longest_call_of_a_series_that_was_under_way_in_the_change() -> None:
    calls = [
        batch("root.a", 90, 99.5),  # this call ends before the change
        batch("root.a", 99, 101),
        batch("root.a", 105, 105.5),
        batch("root.b", 109, 113, Outcome.UNKNOWN),
        batch("root.c", 110.5, 119),  # this call begins after the change
    ]
    assert (2.0, 4.0) == effect_of(GROWN, calls, CALM).gaps_s


def test_the_least_that_was_written_is_compared_with_what_was_written_before() -> None:
    calls = steady(90, 103) + steady(107, 120)  # four of the window's five seconds have no batch
    share = effect_of(GROWN, calls, CALM).throughput_share
    assert share == pytest.approx(0.2, abs=0.05)
    assert effect_of(GROWN, steady(90, 120), CALM).throughput_share == pytest.approx(1.0, abs=0.1)


def test_what_failed_was_not_written() -> None:
    failed = [batch("root.a", 100 + i, 100.5 + i, Outcome.FAIL) for i in range(10)]
    assert 0.0 == effect_of(GROWN, steady(90, 98) + failed, CALM).throughput_share
    assert math.isnan(effect_of(GROWN, failed, CALM).throughput_share)
