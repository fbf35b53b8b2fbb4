"""Queries that share too little memory spill, wait, or are ended by the rules, and release all resources."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import numpy as np
import pytest
from engine.embedded_engine import Engine, engine_with_long_columns
from msgspec.structs import replace
from waiting import PATIENCE_S, wait_equal, wait_until

from saros_engine.base.errors import EngineError, MemoryPoolExhausted, QueryKilled
from saros_engine.execution.execution import QueryExecution
from saros_engine.execution.explain import explain_analysis
from saros_engine.execution.result import Result
from saros_engine.memory.memory import QueryMemory
from saros_engine.memory.options import EngineOptions
from saros_engine.memory.pool import MemoryPool
from saros_scheduler import QueryTimedOut
from saros_storage.base.block import Block
from saros_storage.base.clock import SystemClock

MIB = 1 << 20
ROWS = 400_000
#: A query that keeps some 30 MiB: a state for each value. This state cannot be spilled to files.
HEAVY = "select mode(n) from root.a.d"
#: Queries that keep 6 MiB in memory, or spill to files.
SORT = "select n from root.a.d order by n desc"
LINEAR = "select n, edges from root.a.d fill(linear)"
#: A query with some 13 MiB of rows, of which 8 MiB fit into a buffer.
LARGE = "select n, n + 1, n + 2, n + 3 from root.a.d"
POOL_BYTES = 64 * MIB


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = engine_with_long_columns(tmp_path_factory.mktemp("queries"), ROWS)
    made.ask("flush")
    yield made
    made.close()


@pytest.fixture
def engine(made: Engine, tmp_path: Path) -> Engine:
    made.set_options(EngineOptions(queries_memory_bytes_max=POOL_BYTES, spill_folder=str(tmp_path)))
    return made


def used(engine: Engine) -> int:
    return engine.engine.counters().memory.used


def taken(engine: Engine, count: int) -> QueryMemory:
    """Take memory of the pool, as other queries would, and return their account."""
    others = QueryMemory(1 << 40, engine.engine._queries.memory)
    others.enqueue(count)
    return others


def patience(engine: Engine, wait_ns: int) -> None:
    """Limit all later waits for memory to `wait_ns`."""
    engine.engine._queries.memory = MemoryPool(POOL_BYTES, SystemClock(), wait_ns)


def execution_of(engine: Engine, text: str, timeout_ms: int | None = None) -> QueryExecution:
    rows = engine.engine.execute(text, engine.session, timeout_ms=timeout_ms)._rows
    assert isinstance(rows, QueryExecution)
    return rows


def read(execution: QueryExecution | Result) -> Block:
    blocks = []
    try:
        while (block := execution.next_block()) is not None:
            blocks.append(block)
    finally:
        execution.close()
    return Block.concat(blocks)


def assert_nothing_is_left(engine: Engine) -> None:
    assert 0 == engine.engine.open_queries
    assert 0 == used(engine)
    assert 0 == engine.store.status().views


@pytest.mark.parametrize("text", [SORT, LINEAR])
def test_what_can_go_on_in_files_does_so_earlier_while_memory_is_short(engine: Engine, text: str) -> None:
    expected = read(execution_of(engine, text))
    others = taken(engine, 53 * MIB)
    execution = execution_of(engine, text)
    found = read(execution)
    assert np.array_equal(expected.times, found.times)
    assert expected.columns[0].to_list() == found.columns[0].to_list()
    assert any("in files" in line for line in explain_analysis(execution.drivers, 0, 0))
    assert 0 == engine.engine.counters().memory.ended
    others.dequeue(53 * MIB)
    others.close()
    assert_nothing_is_left(engine)


def test_what_cannot_waits_until_others_give_back(engine: Engine) -> None:
    expected = read(execution_of(engine, HEAVY)).columns[0].to_list()
    others = taken(engine, 54 * MIB)
    execution = execution_of(engine, HEAVY)
    with ThreadPoolExecutor(1) as client:
        rows = client.submit(read, execution)
        wait_equal(1, lambda: engine.engine.counters().memory.waits)
        assert not rows.done()
        _, ((*_, held),) = engine.ask("show queries")
        assert 0 < int(str(held)) < POOL_BYTES
        others.dequeue(54 * MIB)
        assert expected == rows.result(PATIENCE_S).columns[0].to_list()
    others.close()
    assert_nothing_is_left(engine)


@pytest.mark.parametrize("how", ["killed", pytest.param("late", marks=pytest.mark.slow), "closed"])
def test_a_wait_ends_with_its_query(engine: Engine, how: str) -> None:
    others = taken(engine, 54 * MIB)
    execution = execution_of(engine, HEAVY, 2_000 if how == "late" else None)
    with ThreadPoolExecutor(1) as client:
        rows = client.submit(read, execution)
        wait_equal(1, lambda: engine.engine.counters().memory.waits)
        if how == "killed":
            engine.ask(f"kill query '{execution.query}'")
        elif how == "closed":
            execution.close()
        with pytest.raises(QueryTimedOut if how == "late" else QueryKilled):
            rows.result(PATIENCE_S)
    wait_equal(53 * MIB, lambda: used(engine))
    others.dequeue(54 * MIB)
    others.close()
    assert_nothing_is_left(engine)


def test_a_query_alone_that_needs_more_than_all_may_have_is_told_so(engine: Engine) -> None:
    engine.set_options(replace(engine.options, queries_memory_bytes_max=8 * MIB))
    with pytest.raises(MemoryPoolExhausted, match="raise queries_memory_bytes") as told:
        read(execution_of(engine, HEAVY))
    assert 2033 == told.value.code
    assert_nothing_is_left(engine)


@pytest.mark.slow
def test_heavy_queries_at_once_end_with_their_rows_or_by_the_rule(engine: Engine) -> None:
    """Eight queries want 30 MiB each of the 64 MiB that they share; it is up to the machine how many run at a time."""
    expected = read(execution_of(engine, HEAVY)).columns[0].to_list()
    most, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.001):
            most[0] = max(most[0], used(engine))

    def ask(_: int) -> object:
        try:
            return read(execution_of(engine, HEAVY)).columns[0].to_list()
        except MemoryPoolExhausted:
            return None

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(ask, range(8)))
    over.set()
    watcher.join()
    assert expected in answers
    assert all(answer in (None, expected) for answer in answers)
    assert 0 < most[0] <= POOL_BYTES
    assert_nothing_is_left(engine)


def test_rows_that_wait_for_slow_clients_are_counted_and_given_up_for_others(engine: Engine) -> None:
    """The largest holder loses its rows, whether its query is still running or has ended."""
    patience(engine, 50_000_000)
    ended = execution_of(engine, "select n from root.a.d")
    wait_equal(0, lambda: engine.engine.open_queries)
    assert used(engine) > 4 * MIB
    running = execution_of(engine, LARGE)
    wait_until(lambda: running.memory.held > 8 * MIB)
    small: list[QueryMemory] = []
    for number, execution in enumerate((running, ended)):
        assert number == engine.engine.counters().memory.ended
        while not engine.engine._queries.memory.short:
            small.append(taken(engine, 3 * MIB))
        wait_equal(number + 1, lambda: engine.engine.counters().memory.ended)
        with pytest.raises(MemoryPoolExhausted, match="it used the most"):
            read(execution)
    for account in small:
        account.dequeue(account.held)
        account.close()
    assert_nothing_is_left(engine)


def test_a_writer_puts_one_block_at_a_time_while_memory_is_short(engine: Engine) -> None:
    others = taken(engine, 57 * MIB)
    slow = execution_of(engine, LARGE)
    wait_until(lambda: slow.memory.held > 0)
    block = slow.next_block()
    assert block is not None
    wait_until(lambda: slow.memory.held > block.nbytes)
    assert slow.memory.held <= 3 * block.nbytes
    assert ROWS == block.rows + read(slow).rows
    others.dequeue(57 * MIB)
    others.close()
    assert_nothing_is_left(engine)


@pytest.mark.slow
def test_rows_that_nobody_will_read_are_gone_with_their_result(engine: Engine) -> None:
    """No thread that ran the query keeps a reference to its rows."""
    execution = execution_of(engine, "select n from root.a.d")
    wait_equal(0, lambda: engine.engine.open_queries)
    assert used(engine) > 4 * MIB
    del execution
    wait_until(lambda: gc.collect() >= 0 and used(engine) == 0)
    assert_nothing_is_left(engine)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_queries_kills_and_failures_leave_nothing(engine: Engine, seed: int) -> None:
    patience(engine, 50_000_000)
    texts = (HEAVY, SORT, LINEAR, LARGE, "select count(n) from root.a.d", "select distinct(n) from root.a.d")

    def client(number: int) -> None:
        chance = Random(f"{seed} {number}")
        for _ in range(6):
            text, timeout_ms = chance.choice(texts), chance.choice((None, None, 20, 300))
            try:
                execution = execution_of(engine, text, timeout_ms)
                match chance.randrange(6):
                    case 0:
                        execution.next_block()
                        execution.close()
                    case 1:
                        execution.cancel("somebody wanted it")
                        read(execution)
                    case 2:
                        execution.next_block()  # the client reads no further blocks
                        threading.Timer(0.05, execution.cancel, ["nobody reads it"]).start()
                    case _:
                        read(execution)
            except (EngineError, QueryTimedOut):
                continue

    with ThreadPoolExecutor(6) as clients:
        for done in [clients.submit(client, number) for number in range(6)]:
            done.result(PATIENCE_S)
    wait_equal(0, lambda: engine.engine.open_queries)
    wait_until(lambda: gc.collect() >= 0 and used(engine) == 0)  # unread rows are freed with their result
    assert_nothing_is_left(engine)
