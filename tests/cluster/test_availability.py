"""The time that a group has had no leader, and the time that a request still waits for a leader."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.availability import Availability, patience_s

GROUP, OTHER = GroupId(3), GroupId(4)
SECOND = 1_000_000_000
START = datetime(2026, 11, 26, 12, 3, 5, tzinfo=UTC)


class Clock:
    """A wall clock and a monotonic clock, which begin at different times."""

    def __init__(self) -> None:
        self.seconds = 0

    def now_ns(self) -> int:
        return (int(START.timestamp()) + self.seconds) * SECOND

    def monotonic_ns(self) -> int:
        return (3_600 + self.seconds) * SECOND


@pytest.mark.parametrize(
    ("wanted_s", "unavailable_s", "unheard_s", "expected_s"),
    [
        (20.0, 0.0, 0.0, 20.0),
        (20.0, 10.0, 0.0, 20.0),
        (20.0, 10.1, 0.0, 1.0),
        (0.5, 10.1, 0.0, 0.5),
        (20.0, 3_600.0, 60.0, 1.0),
        (20.0, 3_600.0, 61.0, 20.0),
    ],
)
def test_patience_ends_with_an_outage_that_is_long_and_was_met_lately(
    wanted_s: float, unavailable_s: float, unheard_s: float, expected_s: float
) -> None:
    assert expected_s == patience_s(wanted_s, unavailable_s, unheard_s)


def test_an_outage_begins_with_the_first_failure_and_ends_with_a_success() -> None:
    clock = Clock()
    availability = Availability(clock)
    assert (None, 20.0) == (availability.since(GROUP), availability.patience_s(GROUP, 20.0))
    availability.note_failure(GROUP)
    clock.seconds = 11
    availability.note_failure(GROUP)
    assert (START, 1.0) == (availability.since(GROUP), availability.patience_s(GROUP, 20.0))
    assert (None, 20.0) == (availability.since(OTHER), availability.patience_s(OTHER, 20.0))
    availability.note_success(GROUP)
    assert (None, 20.0) == (availability.since(GROUP), availability.patience_s(GROUP, 20.0))


def test_a_failure_of_long_ago_does_not_shorten_the_wait_but_the_outage_is_told() -> None:
    clock = Clock()
    availability = Availability(clock)
    availability.note_failure(GROUP)
    clock.seconds = 90
    assert (START, 20.0) == (availability.since(GROUP), availability.patience_s(GROUP, 20.0))
