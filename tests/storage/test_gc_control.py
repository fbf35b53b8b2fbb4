"""Python's garbage collector runs rarely while plans of many series are made and run.

The settings of the host process are restored afterwards.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import saros
from saros_storage.base.gc_control import WIDE_MIN, YOUNG_MAX, reduced_gc

#: The third threshold; 0 in versions of Python that have only two.
LAST = gc.get_threshold()[2] and 12
HOST = (701, 11, LAST)


@pytest.fixture(autouse=True)
def host() -> Iterator[None]:
    """Set thresholds like those that a host process may have set."""
    before = gc.get_threshold()
    gc.set_threshold(*HOST)
    yield
    gc.set_threshold(*before)


def test_it_looks_seldom_within_and_as_before_afterwards() -> None:
    with reduced_gc():
        assert gc.get_threshold() == (YOUNG_MAX, 11, LAST)
        assert gc.isenabled()
    assert gc.get_threshold() == HOST


def test_narrow_plans_leave_it_alone() -> None:
    with reduced_gc(WIDE_MIN - 1):
        assert gc.get_threshold() == HOST


def test_an_error_puts_it_back() -> None:
    with pytest.raises(KeyError), reduced_gc():
        raise KeyError
    assert gc.get_threshold() == HOST


def test_the_last_of_several_threads_to_leave_puts_it_back() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with reduced_gc(), reduced_gc():
            inside.set()
            leave.wait()

    with reduced_gc():
        thread = threading.Thread(target=other)
        thread.start()
        inside.wait()
    assert gc.get_threshold()[0] == YOUNG_MAX
    leave.set()
    thread.join()
    assert gc.get_threshold() == HOST


def test_what_the_process_sets_meanwhile_stays() -> None:
    with reduced_gc():
        gc.set_threshold(5, 6, LAST)
    assert gc.get_threshold() == (5, 6, LAST)


@pytest.mark.parametrize("chosen", [(0, 11, LAST), (YOUNG_MAX + 1, 11, LAST)])
def test_a_process_that_wants_it_off_or_more_seldom_is_left_alone(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    with reduced_gc():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


@pytest.mark.slow
def test_a_flush_of_many_series_is_hardly_looked_at(tmp_path: Path) -> None:
    looks: list[str] = []

    def look(phase: str, _: dict[str, int]) -> None:
        if phase == "start" and threading.current_thread().name == "saros-flush":
            looks.append(phase)

    with saros.connect(str(tmp_path)) as db:
        for device in range(5):
            db.insert(f"root.m.d{device}", np.array([1]), {f"s{n}": np.array([1.0]) for n in range(WIDE_MIN)})
        gc.callbacks.append(look)
        try:
            db.execute("flush")
        finally:
            gc.callbacks.remove(look)
    # With the host's threshold of 701 objects, the collector would run some 50 times.
    assert len(looks) < 10
    assert gc.get_threshold() == HOST


@pytest.mark.slow
def test_a_wide_query_is_hardly_looked_at_and_leaves_the_collector_as_it_was(tmp_path: Path) -> None:
    looks: list[str] = []

    def look(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            looks.append(phase)

    with saros.connect(str(tmp_path)) as db:
        for device in range(20):
            columns = {f"s{n}": np.array([1.0, 2.0]) for n in range(WIDE_MIN // 10)}
            db.insert(f"root.m.d{device}", np.array([1, 2]), columns)
        db.execute("flush")
        gc.callbacks.append(look)
        try:
            for text in ("select count(*) from root.m.**", "select * from root.m.** where time > 1"):
                for _ in range(2):
                    assert len(db.execute(text).fetch_arrow()) == 1
                    assert gc.get_threshold() == HOST
        finally:
            gc.callbacks.remove(look)
    # With the host's threshold of 701 objects, the collector would run some 450 times to plan, open and read 2,000
    # series.
    assert len(looks) < 150
