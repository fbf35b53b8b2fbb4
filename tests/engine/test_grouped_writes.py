"""Writes of several threads: a single write starts at once, later writes form a group, and no write delays another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from random import Random
from time import sleep

import numpy as np
import pytest
from waiting import PATIENCE_S, wait_equal

from saros_engine.base.database import PendingWrite
from saros_engine.writes.grouped_writes import GroupedWrites
from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DataType
from saros_storage.base.write_request import UNNUMBERED, WriteRequest

Calls = list[list[int]]


class Written:
    """A write whose outcome is known once the event `ready` is set."""

    def __init__(self, outcome: bool | None, ready: threading.Event | None = None) -> None:
        self.outcome = outcome
        self.ready = ready

    def wait(self, seconds: float) -> bool | None:
        if self.ready is not None and not self.ready.wait(seconds):
            return None
        return self.outcome


class FakeDatabase:
    """A target for writes of one row; the row's time identifies the write."""

    def __init__(self, answer: Callable[[int], PendingWrite | None]) -> None:
        self.calls: Calls = []
        self._answer = answer

    def submit(self, writes: Sequence[tuple[Tablet, WriteRequest]]) -> Sequence[PendingWrite | None]:
        times = [int(tablet.times[0]) for tablet, _ in writes]
        self.calls.append(times)
        return [self._answer(time) for time in times]


class Gate:
    """A gate that blocks the write of time 0 until it is opened."""

    def __init__(self) -> None:
        self.entered, self.open = threading.Event(), threading.Event()

    def answer(self, time: int) -> PendingWrite:
        if time == 0:
            self.entered.set()
            self.open.wait(PATIENCE_S)
        return Written(True)


def row(time: int) -> Tablet:
    return Tablet("root.a.d", ("x",), np.array([time]), (Column(DataType.INT64, np.array([time])),), False)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(20) as pool:
        yield pool


def grouped(database: FakeDatabase) -> GroupedWrites:
    return GroupedWrites(database.submit, SystemClock())


def results(futures: Sequence[Future[bool | None]]) -> list[bool | None]:
    return [future.result(PATIENCE_S) for future in futures]


def test_a_single_writer_goes_at_once() -> None:
    database = FakeDatabase(lambda _: Written(True))
    writes = grouped(database)
    assert [True] * 3 == [writes.write(row(time), UNNUMBERED) for time in (1, 2, 3)]
    assert [[1], [2], [3]] == database.calls


def test_writes_that_come_while_one_is_under_way_are_one_group(threads: ThreadPoolExecutor) -> None:
    gate = Gate()
    database = FakeDatabase(gate.answer)
    writes = grouped(database)
    first = threads.submit(writes.write, row(0), UNNUMBERED)
    assert gate.entered.wait(PATIENCE_S)
    writes._led_since_ns += 3_600 * 10**9  # no write stops waiting for the leader
    others = [threads.submit(writes.write, row(time), UNNUMBERED) for time in (2, 3, 4)]
    wait_equal(3, lambda: len(writes._waiting))
    gate.open.set()
    assert [True] * 4 == results([first, *others])
    assert [[0], [2, 3, 4]] == [sorted(call) for call in database.calls]


def test_each_write_of_a_group_has_its_own_outcome(threads: ThreadPoolExecutor) -> None:
    outcomes: dict[int, PendingWrite | None] = {0: None, 1: Written(True), 2: Written(False), 3: Written(None)}
    writes = grouped(FakeDatabase(lambda time: outcomes[time % 4]))
    futures = [threads.submit(writes.write, row(time), UNNUMBERED) for time in range(20)]
    assert [False, True, False, None] * 5 == results(futures)


def test_a_write_that_hangs_does_not_hold_up_others(threads: ThreadPoolExecutor) -> None:
    ready = threading.Event()
    writes = grouped(FakeDatabase(lambda time: Written(True, ready if time == 0 else None)))
    hanging = threads.submit(writes.write, row(0), UNNUMBERED)
    others = [threads.submit(writes.write, row(time), UNNUMBERED) for time in range(1, 10)]
    assert [True] * 9 == results(others)
    ready.set()
    assert [True] == results([hanging])


def test_a_call_that_hangs_does_not_hold_up_others(threads: ThreadPoolExecutor) -> None:
    gate = Gate()
    writes = grouped(FakeDatabase(gate.answer))
    hanging = threads.submit(writes.write, row(0), UNNUMBERED)
    assert gate.entered.wait(PATIENCE_S)
    assert [True] * 9 == results([threads.submit(writes.write, row(time), UNNUMBERED) for time in range(1, 10)])
    gate.open.set()
    assert [True] == results([hanging])


def test_a_call_that_fails_leaves_the_writes_to_their_threads(threads: ThreadPoolExecutor) -> None:
    def answer(time: int) -> PendingWrite:
        if time % 2:
            raise OSError(time)
        return Written(True)

    writes = grouped(FakeDatabase(answer))

    def write(time: int) -> bool | None:
        try:
            return writes.write(row(time), UNNUMBERED)
        except OSError:
            return False

    found = results([threads.submit(write, time) for time in range(100)])
    assert not any(found[1::2])
    assert writes.write(row(0), UNNUMBERED)


@pytest.mark.parametrize("seed", range(3))
def test_every_write_is_submitted_once_whatever_the_threads_do(threads: ThreadPoolExecutor, seed: int) -> None:
    random = Random(seed)

    def answer(_: int) -> PendingWrite:
        sleep(random.choice((0, 0, 0, 0.001, 0.06)))
        return Written(True)

    database = FakeDatabase(answer)
    writes = grouped(database)

    def many(thread: int) -> list[bool | None]:
        return [writes.write(row(20 * n + thread), UNNUMBERED) for n in range(10)]

    futures = [threads.submit(many, thread) for thread in range(20)]
    assert [[True] * 10] * 20 == [future.result(PATIENCE_S) for future in futures]
    assert list(range(200)) == sorted(time for call in database.calls for time in call)
