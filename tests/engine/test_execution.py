"""The execution of queries: fragments, time-outs, back-pressure, and the release of all resources at the end."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine.embedded_engine import Engine
from msgspec.structs import replace
from waiting import wait_until

from saros_engine.base.errors import QueryKilled
from saros_engine.execution.driver import PipelineDriver
from saros_engine.execution.exchange import BYTES_MAX, DeviceExchangeOperator, ExchangeBuffer
from saros_engine.execution.execution import QueryExecution
from saros_engine.memory.options import EngineOptions
from saros_engine.operators.operator import OperatorContext
from saros_engine.plan.plan import DeviceMerge, ExchangeSource, Field, Rows, Scan, TimeJoin
from saros_engine.planning.distribution import distribute
from saros_scheduler import DriverScheduler, QueryTimedOut
from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType
from saros_storage.scan.reading import ScanRequest, rows_per_block

DEVICES, ROWS = 10, 200_000
HEAVY = "select avg(s) from root.g.** where sin(s) < 2 group by ([0, 200000000), 1s)"
HEAVIER = "select count(s) from root.g.** where " + " and ".join(f"sin(s + {i}) < 2" for i in range(150))
QUANTUM_SECONDS = 0.1


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = Engine(tmp_path_factory.mktemp("engine"))
    values = np.random.default_rng(1).random(ROWS)
    for device in range(DEVICES):
        column = Column(DataType.DOUBLE, values)
        opened.engine.insert_columns(f"root.g.d{device}", np.arange(ROWS) * 1_000, {"s": column})
    opened.ask("flush")
    yield opened
    opened.close()


def execution_of(engine: Engine, text: str, timeout_ms: int | None = None) -> QueryExecution:
    result = engine.engine.execute(text, engine.session, timeout_ms=timeout_ms)
    assert isinstance(result._rows, QueryExecution)
    return result._rows


def drain(execution: QueryExecution) -> int:
    rows = 0
    while (block := execution.next_block()) is not None:
        rows += block.rows
    return rows


def assert_nothing_is_left(engine: Engine, execution: QueryExecution) -> None:
    execution.close()
    assert 0 == engine.engine.open_queries
    assert 0 == engine.store.status().views
    assert 0 == execution.memory.reserved
    assert all(driver.root.finished for driver in execution.drivers)


@pytest.mark.slow
def test_a_finished_query_leaves_nothing(engine: Engine) -> None:
    execution = execution_of(engine, HEAVY)
    assert 200_000 == drain(execution)
    assert_nothing_is_left(engine, execution)


@pytest.mark.speed
def test_a_query_past_its_time_out_ends_within_two_quanta_with_its_cause(engine: Engine) -> None:
    engine.ask(HEAVY)  # compiles the kernels that the statement needs
    started = time.perf_counter()
    execution = execution_of(engine, HEAVY, timeout_ms=30)
    with pytest.raises(QueryTimedOut):
        drain(execution)
    assert time.perf_counter() - started < 0.03 + 2 * QUANTUM_SECONDS + 0.2
    assert isinstance(execution.cause, QueryTimedOut)
    assert_nothing_is_left(engine, execution)


def test_a_client_that_does_not_read_holds_the_query_back(engine: Engine) -> None:
    execution = execution_of(engine, "select s, s + 1, s + 2, s + 3 from root.g.**")  # four times the buffer
    time.sleep(0.3)
    produced = sum(driver.root.statistics.bytes for driver in execution.drivers)
    assert produced < ROWS * DEVICES * 8 * 2
    assert_nothing_is_left(engine, execution)


def test_a_heavy_device_whose_turn_has_not_come_is_made_all_the_same(engine: Engine) -> None:
    execution = execution_of(engine, "select s, s + 1, s + 2, s + 3 from root.g.** align by device")
    first, second = execution.drivers[1:]
    wait_until(lambda: min(d.root.statistics.bytes for d in (first, second)) > 2 * BYTES_MAX)
    assert ROWS * DEVICES == drain(execution)
    assert_nothing_is_left(engine, execution)


def test_limit_stops_the_scans_early(engine: Engine) -> None:
    text = "\n".join(str(line[0]) for line in engine.ask("explain analyze select s from root.g.d1 limit 10")[1])
    assert "rows 10 " in text
    assert "Scan [root.g.d1.(s)]  rows 200000" not in text


def test_many_series_are_scanned_by_several_drivers(engine: Engine) -> None:
    lines = [str(line[0]) for line in engine.ask("explain select count(s) from root.g.**")[1]]
    assert ["Fragment 0.0", "Fragment 1.0", "Fragment 2.0"] == [line for line in lines if line.startswith("Fragment")]
    assert [1, 2] == [sum(f"AggregateScans  {count} scans" in line for line in lines) for count in (10, 5)]
    header, rows = engine.ask("select count(s) from root.g.**")
    assert [f"count(root.g.d{i}.s)" for i in range(DEVICES)] == header
    assert [[ROWS] * DEVICES] == rows


def test_devices_come_in_order_from_several_drivers(engine: Engine) -> None:
    _, rows = engine.ask("select count(s) from root.g.** align by device")
    assert [[f"root.g.d{i}", ROWS] for i in range(DEVICES)] == rows


def test_memory_is_bounded_per_query(tmp_path: Path) -> None:
    small = Engine(tmp_path, EngineOptions(query_memory_bytes_max=1 << 20))
    values = np.random.default_rng(1).random(ROWS)
    small.engine.insert_columns("root.g.d", np.arange(ROWS), {"s": Column(DataType.DOUBLE, values)})
    execution = execution_of(small, "select s from root.g.d order by s")
    with pytest.raises(Exception, match="query_memory_bytes") as caught:
        execution.next_block()
    assert 709 == caught.value.code  # type: ignore[attr-defined]
    assert_nothing_is_left(small, execution)
    small.close()


@pytest.mark.slow
def test_very_many_series_side_by_side_are_read_in_small_parts(tmp_path: Path) -> None:
    """All series together take several times as much memory as the query may use."""
    series, rows = 300, 20_000
    small = Engine(tmp_path, EngineOptions(query_memory_bytes_max=64 << 20))
    times = np.arange(rows) * 1_000
    for number in range(series):
        values = np.arange(rows, dtype=np.float64) + number
        small.engine.insert_columns(f"root.g.d{number:03}", times, {"s": Column(DataType.DOUBLE, values)})
    small.ask("flush")
    execution = execution_of(small, "select * from root.g.**")
    seen, last = 0, list[object]()
    while (block := execution.next_block()) is not None:
        assert times[seen] == block.times[0]
        seen, last = seen + block.rows, [column.to_list()[-1] for column in block.columns]
    assert rows == seen
    assert [rows - 1 + number for number in range(series)] == last
    assert 0 < execution.memory.peak < series * rows * 16 / 1.5
    assert_nothing_is_left(small, execution)
    small.close()


@pytest.mark.speed
def test_short_queries_stay_quick_beside_a_heavy_one(engine: Engine) -> None:
    def p95(count: int) -> float:
        seconds = []
        for number in range(count):
            started = time.perf_counter()
            engine.ask(f"select s from root.g.d1 where time = {number * 1_000}")
            seconds.append(time.perf_counter() - started)
        return float(np.percentile(seconds, 95))

    p95(50)
    idle = p95(200)
    stopping = threading.Event()

    def scan() -> None:
        while not stopping.is_set():
            engine.ask(HEAVIER)

    heavy = threading.Thread(target=scan)
    before = engine.scheduler.metrics()
    heavy.start()
    loaded = min(p95(200) for _ in range(3))
    stopping.set()
    heavy.join()
    assert loaded < 5 * max(idle, 0.001)
    quanta = [after - earlier for after, earlier in zip(engine.scheduler.metrics().quanta, before.quanta, strict=True)]
    assert quanta[0] >= 600  # the short queries ran only on the highest level
    assert sum(quanta[1:]) > 0  # the heavy query sank to a lower level


# ---------------------------------------------------------------------------------------------- exchange


def one(value: int) -> Block:
    return Block.untimed([Column.of(DataType.INT64, [value])])


def test_a_full_buffer_stops_the_writer_until_the_reader_takes() -> None:
    buffer = ExchangeBuffer(bytes_max=8)
    assert buffer.writable() is None
    buffer.put(one(1))
    future = buffer.writable()
    assert isinstance(future, Future)
    assert not future.done()
    assert buffer.take() is not None
    assert future.done()
    assert buffer.writable() is None


def test_a_reader_waits_for_a_block_for_the_end_and_for_a_failure() -> None:
    for wake in (lambda b: b.put(one(1)), lambda b: b.finish(), lambda b: b.fail(ValueError("no"))):
        buffer = ExchangeBuffer()
        future = buffer.readable()
        assert isinstance(future, Future)
        wake(buffer)
        assert future.done()


def test_what_lies_in_the_buffer_is_read_before_the_end_and_not_after_a_failure() -> None:
    buffer = ExchangeBuffer()
    buffer.put(one(1))
    buffer.finish()
    assert buffer.wait_take() is not None
    assert buffer.wait_take() is None
    failed = ExchangeBuffer()
    failed.put(one(1))
    failed.fail(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        failed.wait_take()


def test_small_blocks_that_lie_there_go_to_the_client_together() -> None:
    buffer = ExchangeBuffer()

    def put(first: int, rows: int) -> None:
        numbers = np.arange(first, first + rows)
        buffer.put(Block.timed(numbers, [Column(DataType.INT64, numbers)]))

    for first in range(0, 9_000, 3_000):
        put(first, 3_000)
    put(9_000, 20_000)
    put(29_000, 1)
    buffer.finish()
    taken: list[Block] = []
    while (block := buffer.wait_take()) is not None:
        taken.append(block)
    assert [6_000, 3_000, 20_000, 1] == [block.rows for block in taken]
    assert list(range(29_001)) == [time for block in taken for time in block.times]
    assert list(range(29_001)) == [value for block in taken for value in block.columns[0].to_list()]
    assert buffer.drained


def test_a_reader_that_leaves_frees_the_writer() -> None:
    buffer = ExchangeBuffer(bytes_max=8)
    buffer.put(one(1))
    future = buffer.writable()
    assert future is not None
    buffer.leave()
    assert future.done()
    assert buffer.abandoned


def of_device(device: str, value: int) -> Block:
    return Block.untimed([Column.of(DataType.TEXT, [device]), Column.of(DataType.INT64, [value])])


def dealt(devices: int, buffers: list[ExchangeBuffer]) -> DeviceExchangeOperator:
    node = ExchangeSource(1, (), tuple(f"d{number}" for number in range(devices)))
    return DeviceExchangeOperator(node, buffers, OperatorContext())


def received(exchange: DeviceExchangeOperator) -> list[tuple[str, int]]:
    """Return the rows that the exchange returns before it has to wait."""
    rows: list[tuple[str, int]] = []
    while not exchange.finished and exchange.blocked() is None:
        block = exchange.next()
        if block is not None:
            device, value = (column.to_list()[0] for column in block.columns)
            rows.append((str(device), int(str(value))))
    return rows


@pytest.mark.parametrize("instances", [1, 2, 3])
@pytest.mark.parametrize("rows", [(1, 1, 1, 1, 1), (2, 0, 0, 3, 0), (0, 0, 2, 0, 1), (0, 0, 0, 0, 0)])
def test_devices_that_were_dealt_out_come_in_their_order(instances: int, rows: tuple[int, ...]) -> None:
    buffers = [ExchangeBuffer() for _ in range(instances)]
    for number, count in enumerate(rows):
        for value in range(count):
            buffers[number % instances].put(of_device(f"d{number}", value))
    for buffer in buffers:
        buffer.finish()
    exchange = dealt(len(rows), buffers)
    assert [(f"d{n}", v) for n, count in enumerate(rows) for v in range(count)] == received(exchange)
    assert exchange.finished


def test_a_device_is_over_when_a_later_one_shows_or_its_buffer_ends() -> None:
    first, second = ExchangeBuffer(), ExchangeBuffer()
    exchange = dealt(4, [first, second])
    second.put(of_device("d1", 10))
    first.put(of_device("d0", 0))
    assert [("d0", 0)] == received(exchange)
    first.put(of_device("d0", 1))
    assert [("d0", 1)] == received(exchange)
    first.put(of_device("d2", 20))
    assert [("d1", 10)] == received(exchange)
    second.finish()
    assert [("d2", 20)] == received(exchange)
    first.finish()
    assert [] == received(exchange)
    assert exchange.finished


def test_instances_of_an_export_wait_for_no_more_than_a_device_of_the_other() -> None:
    """Each instance has a buffer for two rows, and continues when the buffer has room.

    Neither waits until the other ends.
    """
    buffers = [ExchangeBuffer(bytes_max=2 * of_device("d0", 0).nbytes) for _ in range(2)]
    exchange = dealt(40, buffers)
    put, rows = [0, 0], 0
    while not exchange.finished:
        for place, buffer in enumerate(buffers):
            if put[place] < 20 and buffer.writable() is None:
                buffer.put(of_device(f"d{2 * put[place] + place}", 0))
                put[place] += 1
                if put[place] == 20:
                    buffer.finish()
        rows += len(received(exchange))
        assert abs(put[0] - put[1]) <= 2
    assert 40 == rows


def test_devices_are_dealt_to_the_instances_in_turn() -> None:
    children = tuple(Rows(Block.untimed([Column.of(DataType.INT64, [n])]), ()) for n in range(9))
    node = DeviceMerge(children, tuple(f"d{number}" for number in range(9)), ())
    top, *parts = distribute(node, 2)
    assert ExchangeSource(1, (), node.devices) == top.fragment.root
    roots = [part.fragment.root for part in parts]
    assert [DeviceMerge(children[at::2], node.devices[at::2], ()) for at in (0, 1)] == roots


def test_scans_of_a_wide_join_that_is_cut_give_as_many_rows_as_their_part_of_it_can_take() -> None:
    def scan(number: int) -> Scan:
        name = f"s{number}"
        request = ScanRequest("root.d", (name,), (DataType.DOUBLE,), aligned=False, block_rows=rows_per_block(100))
        return Scan(request, (Field(name, DataType.DOUBLE),))

    scans = tuple(scan(number) for number in range(100))
    fields = tuple(field for one in scans for field in one.fields)
    for parts, rows in ((1, rows_per_block(100)), (2, rows_per_block(50)), (4, rows_per_block(25))):
        instances = distribute(TimeJoin(scans, fields), parts)
        joins = [instance.fragment.root for instance in (instances[1:] or instances)]
        found = [child for join in joins if isinstance(join, TimeJoin) for child in join.children]
        expected = [replace(one, request=replace(one.request, block_rows=rows)) for one in scans]
        assert expected == found


def test_a_small_query_runs_on_the_thread_that_asks(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.ask("insert into root.g.d(time, a) values (1, 1)")
    drivers = []
    run = PipelineDriver.process_for

    def noted(driver: PipelineDriver, quantum_ns: int) -> object:
        drivers.append(threading.current_thread().name)
        return run(driver, quantum_ns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PipelineDriver, "process_for", noted)
        assert 1 == len(engine.ask("select a from root.g.d")[1])
        asking = threading.Thread(target=engine.ask, args=("select a from root.g.d",), name="asking")
        asking.start()
        asking.join()
    assert [threading.main_thread().name, "asking"] == drivers
    engine.close()


def test_an_interrupt_cancels_what_its_thread_is_starting_and_nothing_else(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.ask("insert into root.g.d(time, a) values (1, 1)")
    run, main = PipelineDriver.process_for, threading.get_ident()

    def interrupted(driver: PipelineDriver, quantum_ns: int) -> object:
        engine.engine.interrupt(main + 1)
        assert not driver.is_finished()
        engine.engine.interrupt(main)
        return run(driver, quantum_ns)

    before = engine.engine.execute("select a from root.g.d", engine.session)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PipelineDriver, "process_for", interrupted)
        result = engine.engine.execute("select a from root.g.d", engine.session)
        with pytest.raises(QueryKilled):
            result.next_block()
    engine.engine.interrupt(main)
    assert before.next_block() is not None
    assert 0 == engine.engine.open_queries
    engine.close()


def test_an_interrupt_while_a_query_is_handed_over_ends_it_once(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.ask("insert into root.g.d(time, a) values (1, 1)")
    submit = DriverScheduler.submit

    def interrupted(scheduler: DriverScheduler, *args: Any, **kwargs: Any) -> None:
        submit(scheduler, *args, **kwargs)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DriverScheduler, "submit", interrupted)
        for _ in range(20):
            with pytest.raises(KeyboardInterrupt):
                engine.ask("select a from root.g.d")
    wait_until(lambda: engine.scheduler.metrics().running_queries == 0)
    assert 0 == engine.engine.open_queries
    engine.close()


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_small_limit_reads_a_page_of_each_series_by_one_driver(tmp_path: Path, order: str) -> None:
    engine = Engine(tmp_path)
    times = np.arange(50_000)
    engine.engine.insert_columns(
        "root.g.d", times, {f"s{n}": Column(DataType.INT64, times * (n + 1)) for n in range(10)}
    )
    engine.ask("flush")
    first = times[:5] if order == "asc" else times[: -5 - 1 : -1]
    expected = [(int(time), *[int(time) * (n + 1) for n in range(10)]) for time in first[2:]]
    text = f"select * from root.g.d order by time {order} limit 3 offset 2"
    assert expected == [tuple(row) for row in engine.ask(text)[1]]
    lines = [str(line[0]) for line in engine.ask(f"explain analyze {text}")[1]]
    assert "drivers 1" in lines[0]
    pages = sum(int(found) for line in lines for found in re.findall(r"pages (\d+)", line))
    assert pages <= 10


def _outcome(engine: Engine, text: str) -> object:
    """Return the rows of a statement, or the type and the message of its error."""
    try:
        return engine.ask(text)
    except Exception as error:  # noqa: BLE001 - any error is compared
        return type(error), str(error)


def _on_a_thread(call: Callable[[], object]) -> object:
    """Return the result of a call on a worker thread, which may run small queries itself, unlike the main thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_a_small_query_gives_the_same_on_the_asking_thread_and_on_a_worker(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    times = np.arange(30_000)
    values = {"a": Column(DataType.INT64, times % 7), "b": Column(DataType.DOUBLE, times / 3)}
    engine.engine.insert_columns("root.g.d", times, values)
    engine.ask("flush")
    engine.ask("insert into root.g.d(time, a) values (5, 100), (40000, 1)")
    texts = [
        "select a, b from root.g.d where time = 77",
        "select b from root.g.d where time >= 100 and time < 160",
        "select * from root.g.d where a > 3 and time < 500 order by time desc limit 10",
        "select * from root.g.d order by time desc limit 10",
        "select a from root.g.d limit 3 offset 4",
        "select last a, b from root.g.d",
        "select avg(b), max_value(a) from root.g.d where time >= 10 and time < 6000",
        "select a % 0 from root.g.d limit 9",
    ]
    by_worker = [_outcome(engine, text) for text in texts]
    assert by_worker == _on_a_thread(lambda: [_outcome(engine, text) for text in texts])
    assert [[77, 0, 77 / 3]] == by_worker[0][1]  # type: ignore[index]
    assert "integer division by zero at time 0" == by_worker[-1][1]  # type: ignore[index]
    assert 0 == engine.engine.open_queries
    engine.close()


@pytest.mark.parametrize("lent", [False, True])
def test_a_small_query_is_listed_and_can_be_killed_while_it_runs(tmp_path: Path, lent: bool) -> None:
    engine = Engine(tmp_path)
    engine.ask("insert into root.g.d(time, a) values (1, 1)")
    text = "select a from root.g.d"
    listed: list[str] = []
    run = PipelineDriver.process_for

    def killed(driver: PipelineDriver, quantum_ns: int) -> object:
        for running in engine.engine._queries.registry.running():
            listed.append(running.statement)
            assert running.execution.cancel("killed by the test")
        return run(driver, quantum_ns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PipelineDriver, "process_for", killed)
        outcome = _on_a_thread(lambda: _outcome(engine, text)) if lent else _outcome(engine, text)
    assert [text] == listed
    assert QueryKilled is outcome[0]  # type: ignore[index]
    assert 0 == engine.engine.open_queries
    engine.close()
