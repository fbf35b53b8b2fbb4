"""The watchdog calls an action when the time limit is over, and not before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from manual_clock import ManualClock
from waiting import PATIENCE_S

from saros_cluster.transport.watchdog import Watchdog
from saros_storage.base.clock import SystemClock

LONG, SHORT = 10 * PATIENCE_S, 0.02


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    watchdog = Watchdog(SystemClock())
    yield watchdog
    watchdog.close()


def passes(watchdog: Watchdog) -> bool:
    """Set a short limit; return whether the watchdog calls the action."""
    acted = threading.Event()
    with watchdog.limit(SHORT, acted.set) as limit:
        return acted.wait(PATIENCE_S) and limit.passed


def test_it_acts_once_time_is_up(watchdog: Watchdog) -> None:
    assert passes(watchdog)


def test_it_acts_after_it_had_nothing_to_do(watchdog: Watchdog) -> None:
    assert passes(watchdog)
    assert passes(watchdog)


def test_a_shorter_limit_inside_a_longer_one_is_not_late(watchdog: Watchdog) -> None:
    acted = threading.Event()
    with watchdog.limit(LONG, acted.set) as outer:
        assert passes(watchdog)
        assert passes(watchdog)
    assert not outer.passed
    assert not acted.is_set()


def test_it_does_nothing_for_those_who_are_done() -> None:
    clock = ManualClock()
    with closing(Watchdog(clock)) as watchdog:
        acted, later = threading.Event(), threading.Event()
        with watchdog.limit(SHORT, acted.set) as done:
            pass
        with watchdog.limit(SHORT, later.set):
            clock.advance(SHORT)
            assert later.wait(PATIENCE_S)
    assert not done.passed
    assert not acted.is_set()


def test_a_closed_one_no_longer_acts() -> None:
    watchdog = Watchdog(SystemClock())
    acted = threading.Event()
    with watchdog.limit(LONG, acted.set):
        watchdog.close()
    with watchdog.limit(SHORT, acted.set):
        assert not acted.wait(5 * SHORT)
