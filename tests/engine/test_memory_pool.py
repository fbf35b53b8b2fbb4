"""Memory accounts of queries and their pool, with one or many threads: no memory is lost, and every wait ends."""

from __future__ import annotations

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from waiting import PATIENCE_S, wait_equal, wait_until

from saros_engine.base.errors import MemoryExceeded, MemoryPoolExhausted
from saros_engine.memory.ledger import HolderId
from saros_engine.memory.memory import FREE_BYTES, STEP_BYTES, QueryMemory
from saros_engine.memory.pool import End, MemoryPool
from saros_scheduler.task import Blocked
from saros_storage.base.clock import SystemClock

MIB = 1 << 20
NEVER_NS = 3_600_000_000_000


class CountingPool(MemoryPool):
    """A pool that counts requests."""

    def __init__(self, bytes_max: int, wait_ns: int = NEVER_NS) -> None:
        super().__init__(bytes_max, SystemClock(), wait_ns)
        self.asked = 0

    def draw(self, holder: HolderId, count: int, end: End, *, waits: bool = True) -> Blocked | None:
        self.asked += 1
        return super().draw(holder, count, end, waits=waits)

    def give_back(self, holder: HolderId, count: int) -> None:
        self.asked += 1
        super().give_back(holder, count)

    @property
    def used(self) -> int:
        return self.status().used


def account(pool: MemoryPool, bytes_max: int = 1 << 40) -> tuple[QueryMemory, list[MemoryPoolExhausted]]:
    """Return an account and a list. If the query of the account is ended, the error is appended to the list."""
    made, told = QueryMemory(bytes_max, pool), list[MemoryPoolExhausted]()
    made.end_with(told.append)
    return made, told


def test_a_small_query_does_not_meet_the_pool() -> None:
    pool = CountingPool(64 * MIB)
    made, _ = account(pool)
    for _ in range(1_000):
        made.reserve(FREE_BYTES // 2)
        made.enqueue(FREE_BYTES // 2)
        made.release(FREE_BYTES // 2)
        made.dequeue(FREE_BYTES // 2)
    made.close()
    assert 0 == pool.asked


def test_a_large_query_meets_it_once_for_a_mebibyte() -> None:
    pool = CountingPool(1_024 * MIB)
    made, _ = account(pool)
    for _ in range(100 * MIB // 4_096):
        made.reserve(4_096)
    assert 99 == pool.asked
    assert 99 * MIB == pool.used
    for _ in range(1_000):  # crosses the border between two steps of the account in both directions
        made.reserve(8_192)
        made.release(8_192)
    assert 100 == pool.asked
    made.release(100 * MIB)
    made.close()
    assert 0 == pool.used


def test_what_is_queued_counts_until_it_is_read_though_the_query_has_ended() -> None:
    pool = CountingPool(64 * MIB)
    made, _ = account(pool)
    made.reserve(5 * MIB)
    made.enqueue(8 * MIB)
    made.release(5 * MIB)
    made.close()
    assert 8 * MIB == made.held
    assert 7 * MIB == pool.used
    made.dequeue(8 * MIB)
    assert 0 == pool.used


def test_the_querys_own_limit_is_another_one() -> None:
    pool = CountingPool(64 * MIB)
    made, _ = account(pool, 10 * MIB)
    with pytest.raises(MemoryExceeded, match="query_memory_bytes") as own:
        made.reserve(11 * MIB)
    other, _ = account(pool)
    with pytest.raises(MemoryPoolExhausted, match="raise queries_memory_bytes") as common:
        other.reserve(66 * MIB)
    assert (709, 2033) == (own.value.code, common.value.code)
    made.enqueue(11 * MIB)  # queued rows belong to no operator
    assert (0, 0) == (made.reserved, other.held)
    made.dequeue(11 * MIB)
    made.close()
    other.close()
    assert 0 == pool.used


def test_who_waits_goes_on_when_others_give_back() -> None:
    pool = CountingPool(64 * MIB)
    large, _ = account(pool)
    small, told = account(pool)
    assert large.reserve(55 * MIB) is None
    blocked = small.reserve(4 * MIB)
    assert blocked is not None
    assert not blocked.done()
    assert small.short
    large.release(10 * MIB)
    blocked.result(PATIENCE_S)
    assert [] == told
    wait_until(lambda: not any(thread.name == "saros-memory" for thread in threading.enumerate()))


def test_two_that_hold_half_each_and_want_more_do_not_wait_for_each_other() -> None:
    """One of them is ended at once, since no other account could return memory. The same holds for a second pair."""
    pool = CountingPool(64 * MIB)
    for pair in (1, 2):
        (first, told_first), (second, told_second) = account(pool), account(pool)
        for made in (first, second):
            assert made.reserve(29 * MIB) is None
        waits = first.reserve(2 * MIB)
        wait_until(lambda: pool._changed._waiters)  # type: ignore[attr-defined]  # the waiting thread has been counted
        told = second.reserve(2 * MIB)
        wait_equal(1, lambda: len(told_second))  # noqa: B023 (it is called at once)
        assert "raise queries_memory_bytes" in told_second[0].message
        assert [] == told_first
        second.release(31 * MIB)
        second.close()
        for future in (waits, told):
            assert future is not None
            future.result(PATIENCE_S)
        first.release(31 * MIB)
        first.close()
        assert (0, pair, 2 * pair) == (pool.used, pool.status().ended, pool.status().waits)
        wait_until(lambda: not any(thread.name == "saros-memory" for thread in threading.enumerate()))


def test_a_large_one_that_does_nothing_keeps_no_small_one_waiting() -> None:
    pool = CountingPool(64 * MIB, wait_ns=50_000_000)
    large, told = account(pool)
    assert large.reserve(55 * MIB) is None
    small = [account(pool) for _ in range(3)]
    blocked = [made.reserve(3 * MIB) for made, _ in small]
    wait_equal(1, lambda: len(told))
    large.release(55 * MIB)
    for future in blocked:
        assert future is None or future.result(PATIENCE_S) is None
    assert [[], [], []] == [told for _, told in small]


def test_one_that_cannot_be_ended_does_not_keep_the_others_from_it(caplog: pytest.LogCaptureFixture) -> None:
    pool = CountingPool(64 * MIB, wait_ns=20_000_000)
    large = QueryMemory(1 << 40, pool)

    def end(_: MemoryPoolExhausted) -> None:
        raise ValueError("it does not want to")

    large.end_with(end)
    assert large.reserve(35 * MIB) is None
    next_one, told = account(pool)
    assert next_one.reserve(20 * MIB) is None
    small, _ = account(pool)
    blocked = small.reserve(6 * MIB)
    wait_equal(1, lambda: len(told))
    assert ["failed to end a query whose memory others wait for"] == caplog.messages
    next_one.release(20 * MIB)
    assert blocked is not None
    blocked.result(PATIENCE_S)


@pytest.mark.slow
def test_what_a_collected_account_held_comes_back() -> None:
    pool = CountingPool(64 * MIB)
    made, _ = account(pool)
    made.enqueue(55 * MIB)
    waiting, _ = account(pool)
    blocked = waiting.reserve(5 * MIB)
    assert blocked is not None
    del made
    gc.collect()
    assert 5 * MIB - FREE_BYTES == pool.used
    assert blocked.done()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_threads_that_take_wait_and_end_leave_nothing(seed: int) -> None:
    """Each of eight concurrent queries may want half of the pool; queries told to end do so, all others succeed."""
    pool = MemoryPool(32 * MIB, SystemClock(), wait_ns=20_000_000)
    outcomes: list[str] = []

    def query(number: int) -> None:
        chance = Random(f"{seed} {number}")
        made, told = account(pool)
        reserved = queued = 0
        try:
            for _ in range(30):
                count = chance.randrange(1, 2 * STEP_BYTES)
                if chance.random() < 0.8:
                    blocked = made.reserve(count)
                    reserved += count
                    while blocked is not None and not blocked.done() and not told:
                        time.sleep(0.001)
                else:
                    made.enqueue(count)
                    queued += count
                if told:  # the pool's error itself would keep this frame alive
                    raise MemoryPoolExhausted(told[0].message)
                if chance.random() < 0.3:
                    freed = chance.randrange(reserved + 1)
                    made.release(freed)
                    reserved -= freed
            outcomes.append("done")
        except MemoryPoolExhausted:
            outcomes.append("ended")
        made.release(reserved)
        made.close()
        if chance.random() < 0.5:  # otherwise no client fetches the rows
            made.dequeue(queued)

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(query, number) for number in range(60)]:
            done.result(PATIENCE_S)
    gc.collect()
    assert 60 == len(outcomes)
    assert "done" in outcomes
    assert 0 == pool.status().used
    wait_until(lambda: not any(thread.name == "saros-memory" for thread in threading.enumerate()))
