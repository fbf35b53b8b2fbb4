"""Inserts of a process that gather while a call is under way, and go to the node as one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from driver.test_failover import Node
from driver.test_failover import connect as connect_to
from waiting import wait_until

import saros
from saros.transport import insert_batching
from saros_cluster.database.partial_failure import PartialFailure, RowRange, RowsLeft
from saros_engine.statements.insert_statement import ColumnBatch
from saros_server.api import insert_batching as at_the_node
from saros_server.api.session import EmbeddedSession
from saros_wire import protocol
from saros_wire.generated import client_pb2

MANY = 6


def connect(node: Node, failover_s: float = 60.0) -> saros.Connection:
    return connect_to(node, failover_s=failover_s)


class Held:
    """The first Insert at a node is answered when `release` is called."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._arrived, self._released = threading.Event(), threading.Event()
        node.change[protocol.INSERT] = self._hold

    def _hold(self, reply: client_pb2.InsertReply) -> client_pb2.InsertReply:
        del self._node.change[protocol.INSERT]
        self._arrived.set()
        assert self._released.wait(60)
        return reply

    def wait(self) -> None:
        assert self._arrived.wait(60)

    def release(self) -> None:
        self._released.set()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path / "data")
    yield made
    made.kill()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(MANY + 1) as made:
        yield made


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, what these tests hold up stays where it is."""
    monkeypatch.setattr(insert_batching, "HOLD_SECONDS", 60.0)
    monkeypatch.setattr(at_the_node, "PATIENCE_SECONDS", 60.0)


def insert(connection: saros.Connection, number: int, value: object = 1.0) -> int:
    return connection.insert(f"root.t.d{number}", [1, 2], {"x": [value, value]})


def gathered(node: Node, pool: ThreadPoolExecutor, *calls: Callable[[], int]) -> list[Future[int]]:
    """Begin these inserts while another one is under way, and let them go together."""
    with connect(node) as other:
        held = Held(node)
        first = pool.submit(insert, other, 99)
        held.wait()
        found = []
        for count, call in enumerate(calls, 1):
            found.append(pool.submit(call))
            until_waiting(other, node, count)
        held.release()
        assert 2 == first.result(60)
    return found


def until_waiting(connection: saros.Connection, node: Node, count: int) -> None:
    waiting = connection._session._leases[node.address].together._waiting
    wait_until(lambda: len(waiting) >= count)


def counts(node: Node) -> tuple[int, int]:
    """Calls of inserts that went alone, and together."""
    return node.calls[protocol.INSERT], node.calls[protocol.INSERT_TOGETHER]


def test_one_writer_never_waits_for_others(node: Node) -> None:
    with connect(node) as connection:
        assert [2] * 5 == [insert(connection, number) for number in range(5)]
    assert (5, 0) == counts(node)


@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
def test_what_gathers_goes_in_one_call_whatever_connection_it_is_of(
    node: Node, pool: ThreadPoolExecutor, *, known: bool
) -> None:
    with connect(node) as one, connect(node) as other:
        if known:
            assert [2] * MANY == [insert(one, number, 0.0) for number in range(MANY)]
        before = counts(node)
        calls = [lambda number=number: insert((one, other)[number % 2], number) for number in range(MANY)]
        assert [2] * MANY == [done.result(60) for done in gathered(node, pool, *calls)]
        assert (1, 1) == tuple(b - a for a, b in zip(before, counts(node), strict=True))
        for number in range(MANY):
            assert [(1, 1.0), (2, 1.0)] == one.execute(f"select x from root.t.d{number}").fetchall()


@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
def test_columns_of_nulls_are_absent_in_what_goes_together(
    node: Node, pool: ThreadPoolExecutor, *, known: bool
) -> None:
    with connect(node) as connection:
        connection.execute("create timeseries root.t.d0.flag BOOLEAN")
        if known:
            assert 2 == insert(connection, 0)
        columns: list[dict[str, object]] = [
            {"x": [2.0, None], "flag": [None, None], "fresh": [None, None]},
            {"x": [None, None], "flag": [None, None]},
            {"flag": [None, True]},
        ]
        calls = [lambda some=some: connection.insert("root.t.d0", [1, 2], some) for some in columns]
        assert [1, 0, 1] == [done.result(60) for done in gathered(node, pool, *calls)]
        assert [(1, 2.0, None), (2, 1.0 if known else None, True)] == connection.execute(
            "select x, flag from root.t.d0"
        ).fetchall()
        shown = connection.execute("show timeseries root.t.d0.*").fetchall()
        assert ["root.t.d0.flag", "root.t.d0.x"] == [row[0] for row in shown]


def test_those_that_went_together_are_waited_for_and_go_together_again(
    node: Node, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(node) as connection:
        _waits_for(60.0, monkeypatch)
        calls = [lambda number=number: insert(connection, number) for number in range(MANY)]
        assert [2] * MANY == [done.result(60) for done in gathered(node, pool, *calls)]
        before = counts(node)
        again = [pool.submit(call) for call in calls[1:]]
        until_waiting(connection, node, MANY - 1)
        assert before == counts(node)
        assert [2] * MANY == [calls[0](), *(done.result(60) for done in again)]
        assert (0, 1) == tuple(b - a for a, b in zip(before, counts(node), strict=True))


def test_those_that_did_not_come_again_are_not_waited_for_the_next_time(
    node: Node, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(node) as connection:
        calls = [lambda number=number: insert(connection, number) for number in range(MANY)]
        for seconds in (0.0, 60.0):
            _waits_for(seconds, monkeypatch)
            assert [2] * MANY == [done.result(60) for done in gathered(node, pool, *calls)]
            lease = connection._session._leases[node.address]
            wait_until(lambda lease=lease: lease.together._calls == 0)


def _waits_for(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insert_batching, "AGAIN_SHARE", 1e9)
    monkeypatch.setattr(insert_batching, "AGAIN_SECONDS_MAX", seconds)


def test_one_that_is_refused_does_not_touch_the_others(node: Node, pool: ThreadPoolExecutor) -> None:
    with connect(node) as connection:
        insert(connection, 1)
        calls = [lambda: insert(connection, 0), lambda: insert(connection, 1, "text"), lambda: insert(connection, 2)]
        first, refused, last = gathered(node, pool, *calls)
        assert (2, 2) == (first.result(60), last.result(60))
        with pytest.raises(saros.DataError, match=r"root.t.d1.x is DOUBLE") as caught:
            refused.result(60)
        assert 507 == caught.value.code
        assert [(1, 1.0), (2, 1.0)] == connection.execute("select x from root.t.d1").fetchall()


def test_one_whose_session_has_ended_opens_another_and_the_others_do_not_notice(
    node: Node, pool: ThreadPoolExecutor
) -> None:
    with connect(node) as ended, connect(node) as connection:
        insert(ended, 0)
        insert(connection, 1)
        before = node.points
        token = ended._session._opened[node.address]._token
        node.api._services.sessions._clients.pop(token).session.close()
        opens = node.calls[protocol.OPEN]
        both = gathered(node, pool, lambda: insert(ended, 0), lambda: insert(connection, 1))
        assert [2, 2] == [done.result(60) for done in both]
        # ... of these, one is that of what holds the others up
        assert (6, 2) == (node.points - before, node.calls[protocol.OPEN] - opens)


def test_an_answer_that_is_lost_is_asked_for_by_each_alone_and_each_is_written_once(
    node: Node, pool: ThreadPoolExecutor
) -> None:
    with connect(node) as connection:
        for number in range(MANY):
            insert(connection, number, 0.0)
        before = node.points
        node.lose(protocol.INSERT_TOGETHER)
        node.calls.clear()
        calls = [lambda number=number: insert(connection, number) for number in range(MANY)]
        assert [2] * MANY == [done.result(60) for done in gathered(node, pool, *calls)]
        assert 2 * (MANY + 1) == node.points - before
        assert (1 + MANY, 1) == counts(node)  # whichever of them broke the connection does so alone


def test_one_that_is_written_in_part_names_its_missing_rows(
    node: Node, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = EmbeddedSession.write

    def in_part(session: EmbeddedSession, batch: ColumnBatch) -> int:
        if batch.device.endswith("d2"):
            rows = RowsLeft([RowRange("root.t.d2", 1, 1)], [RowRange("root.t.d2", 2, 2)])
            raise PartialFailure({}, {}, "gone", rows=rows)
        return write(session, batch)

    monkeypatch.setattr(EmbeddedSession, "write", in_part)
    with connect(node) as connection:
        calls = [lambda: insert(connection, 1), lambda: insert(connection, 2)]
        whole, partly = gathered(node, pool, *calls)
        assert 2 == whole.result(60)
        with pytest.raises(saros.PartialWriteError) as caught:
            partly.result(60)
    assert (
        (saros.RowRange("root.t.d2", 1, 1),),
        (saros.RowRange("root.t.d2", 2, 2),),
    ) == (caught.value.written, caught.value.missing)


def test_what_a_node_has_not_finished_is_asked_for_by_itself(
    node: Node, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(node) as connection:
        insert(connection, 0)
        insert(connection, 1)
        before = node.points
        released, write = threading.Event(), EmbeddedSession.write

        def slow(session: EmbeddedSession, batch: ColumnBatch) -> int:
            assert not batch.device.endswith("d2") or released.wait(60)
            return write(session, batch)

        monkeypatch.setattr(EmbeddedSession, "write", slow)
        monkeypatch.setattr(at_the_node, "PATIENCE_SECONDS", 0.05)
        calls = [lambda: insert(connection, 0), lambda: insert(connection, 2), lambda: insert(connection, 1)]
        first, new, last = gathered(node, pool, *calls)  # what is new cannot be handed over
        assert (2, 2, False) == (first.result(60), last.result(60), new.done())
        released.set()
        assert 2 == new.result(60)
        assert 8 == node.points - before


def test_what_waits_long_goes_past_a_call_that_hangs(
    node: Node, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(insert_batching, "HOLD_SECONDS", 0.05)
    with connect(node) as connection:
        held = Held(node)
        hung = pool.submit(insert, connection, 0)
        held.wait()
        assert [2] * MANY == list(pool.map(lambda number: insert(connection, number), range(1, MANY + 1)))
        assert not hung.done()
        held.release()
        assert 2 == hung.result(60)


@pytest.mark.slow
def test_nobody_waits_beyond_its_own_time(node: Node, pool: ThreadPoolExecutor) -> None:
    with connect(node) as patient, connect(node, failover_s=0.2) as hasty:
        held = Held(node)
        first = pool.submit(insert, patient, 0)
        held.wait()
        with pytest.raises(saros.OperationalError, match="nobody knows") as caught:
            insert(hasty, 1)
        assert (2018, False) == (caught.value.code, first.done())
        held.release()
        assert 2 == first.result(60)


def test_a_node_of_before_gets_each_by_itself(node: Node, pool: ThreadPoolExecutor) -> None:
    def of_before(reply: client_pb2.OpenReply) -> client_pb2.OpenReply:
        reply.protocol = protocol.PROTOCOL_TOGETHER - 1
        return reply

    node.change[protocol.OPEN] = of_before
    with connect(node) as connection:
        assert [2] * 20 == list(pool.map(lambda number: insert(connection, number), range(20)))
    assert (20, 0) == counts(node)


@pytest.mark.slow
def test_many_threads_write_while_answers_are_lost_and_nothing_is_lost_or_written_twice(node: Node) -> None:
    numbers = iter(range(1, 1_000_000))

    def trouble(reply: client_pb2.InsertReply) -> client_pb2.InsertReply:
        if next(numbers) % 5 == 0:
            node.lose(protocol.INSERT_TOGETHER, then=lambda: node.change.update({protocol.INSERT_TOGETHER: trouble}))
        return reply

    with connect(node) as connection, ThreadPoolExecutor(8) as pool:
        node.change[protocol.INSERT_TOGETHER] = trouble
        before = node.points

        def write(thread: int) -> int:
            return sum(connection.insert(f"root.t.d{thread}", [i], {"x": [float(i)]}) for i in range(60))

        assert 480 == sum(pool.map(write, range(8)))
        assert 480 == node.points - before
        node.change.clear()
        assert [(60,) * 8] == connection.execute("select count(x) from root.t.*").fetchall()
