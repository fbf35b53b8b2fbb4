"""The watchdog acts for those whose time is up, and for nobody else."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from saros_cluster.transport.watchdog import Watchdog
from saros_storage.clock import SystemClock

LONG, SHORT = 20.0, 0.02


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    watchdog = Watchdog(SystemClock())
    yield watchdog
    watchdog.close()


def passes(watchdog: Watchdog) -> bool:
    """Whether a short limit acts."""
    acted = threading.Event()
    with watchdog.limit(SHORT, acted.set) as limit:
        return acted.wait(LONG / 4) and limit.passed


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


def test_it_does_nothing_for_those_who_are_done(watchdog: Watchdog) -> None:
    acted = threading.Event()
    with watchdog.limit(SHORT, acted.set) as limit:
        pass
    assert passes(watchdog)  # later than the first would have been
    assert not limit.passed
    assert not acted.is_set()


def test_a_closed_one_no_longer_acts() -> None:
    watchdog = Watchdog(SystemClock())
    acted = threading.Event()
    with watchdog.limit(LONG, acted.set):
        watchdog.close()
    with watchdog.limit(SHORT, acted.set):
        assert not acted.wait(5 * SHORT)
