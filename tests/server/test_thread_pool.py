"""The port's pool of threads: it grows while tasks wait, but not beyond its limit, and shrinks afterwards."""

from __future__ import annotations

import threading

import pytest
from waiting import PATIENCE_S, wait_equal

from saros_server.port import thread_pool
from saros_server.port.thread_pool import CachedThreadPool


def threads() -> int:
    return sum(thread.name == "test-pool" for thread in threading.enumerate())


def test_tasks_run_at_a_time_up_to_the_limit_and_the_others_in_order() -> None:
    go_on, begun = threading.Event(), list[int]()

    def run(number: int) -> None:
        begun.append(number)
        go_on.wait(PATIENCE_S)

    pool = CachedThreadPool(run, 3, "test-pool")
    for number in range(6):
        pool.submit(number)
    wait_equal({0, 1, 2}, lambda: set(begun))
    assert (3, True) == (threads(), pool.is_crowded)
    go_on.set()
    pool.close()
    assert [[0, 1, 2], 3, 4, 5] == [sorted(begun[:3]), *begun[3:]]
    assert 0 == threads()


def test_a_thread_that_is_done_takes_the_next_task() -> None:
    done = list[int]()
    pool = CachedThreadPool(done.append, 100, "test-pool")
    for number in range(50):
        pool.submit(number)
        wait_equal(number + 1, lambda: len(done))
        wait_equal(threads(), lambda: pool._idle)
    assert (1, False) == (threads(), pool.is_crowded)
    pool.close()


def test_threads_without_tasks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "IDLE_SECONDS", 0.0)
    done = list[int]()
    pool = CachedThreadPool(done.append, 100, "test-pool")
    for number in range(10):
        pool.submit(number)
    wait_equal(0, threads)
    assert list(range(10)) == sorted(done)
    pool.submit(10)
    wait_equal(11, lambda: len(done))
    pool.close()
