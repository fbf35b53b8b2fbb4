"""The driver on real nodes that stop, lose answers, restart, and list the addresses of other nodes.

A `Node` is a database that is served on a port in this process. A test can change its replies. A test can also lose an
answer after the call was executed, as happens when a connection breaks.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from free_ports import HOST, free_ports
from self_signed import self_signed
from waiting import PATIENCE_S, wait_until

import saros
from saros.base.statement_kind import Kind
from saros.transport import call_window, node_connection, retry_policy
from saros.transport.call_window import CallWindow
from saros.transport.remote import BlockingEvent
from saros.transport.remote_calls import run
from saros.transport.sequences import Sequences
from saros_cluster.database.partial_failure import PartialFailure, RowRange, RowsLeft
from saros_server.api import executions
from saros_server.api.client_api import ClientApi
from saros_server.api.session import EmbeddedSession
from saros_server.frames.calls import Reply
from saros_server.frames.frame_handler import FrameHandler
from saros_server.frames.frame_protocol import FrameProtocol
from saros_server.node.request_dedup_runner import Requests
from saros_server.pki.certificate_files import WatchedFiles
from saros_server.port.connection import Connection, ConnectionClosed
from saros_server.port.listener import PortListener
from saros_server.server import Server
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import StorageError
from saros_storage.base.types import Int64Array
from saros_wire import protocol
from saros_wire.frames import Call, Header
from saros_wire.generated import client_pb2

#: The message types of the replies that tests change. An item of a stream is passed to a test as bytes.
_REPLIES = {
    Call.OPEN: client_pb2.OpenReply,
    Call.EXECUTE: client_pb2.Answer,
    Call.INSERT: client_pb2.InsertReply,
}
ITEM = "item"


class Node:
    """A node whose replies can be changed or lost."""

    def __init__(self, folder: Path, port: int | None = None, certificate: WatchedFiles | None = None) -> None:
        self.api = ClientApi(str(folder), SystemClock())
        self.calls: Counter[Call] = Counter()
        #: Functions that are called with a reply or an item of a stream. Their result is sent in its place. They may
        #: raise `Lost`.
        self.change: dict[Call | str, Callable] = {}
        self._port = PortListener(HOST, port or free_ports(1)[0], certificate, [_Protocol(self)])
        self.address = self._port.address
        self._port.start()
        self._is_up = True

    def lose(self, name: Call | str, times: int = 1, then: Callable[[], object] = lambda: None, code: int = 0) -> None:
        """Lose `times` answers, and call `then` for each. With a `code`, reply with this error instead."""

        def change(reply):
            nonlocal times
            times -= 1
            if times == 0:
                del self.change[name]
            then()
            raise Lost(code)

        self.change[name] = change

    @property
    def points(self) -> int:
        """The number of points written, including repeated writes of the same point."""
        return self.api.node.engine.counters().points_written

    def kill(self) -> None:
        """Stop the node at once. Idempotent."""
        if self._is_up:
            self._is_up = False
            self._port.stop(0)

    @property
    def connections(self) -> int:
        """The number of open connections of clients."""
        return self._port.counters()[FrameProtocol.name].connections


class _Protocol(FrameProtocol):
    """A protocol whose handlers can change replies."""

    def __init__(self, node: Node) -> None:
        super().__init__(node.api)
        self._node = node

    def open(self, connection: Connection) -> FrameHandler:
        return _Handler(self._node, connection)


class _Handler(FrameHandler):
    """A handler that can change replies."""

    def __init__(self, node: Node, connection: Connection) -> None:
        super().__init__(node.api, connection)
        self._node = node
        self._call = Call.PING

    def _run(self, header: Header) -> None:
        self._call = Call(header.call)
        self._node.calls[self._call] += 1
        super()._run(header)

    def _answer(self, running: Any, reply: Reply, watch: Any) -> None:
        if self._call in self._node.change:
            message = self._changed(self._call, _REPLIES[self._call].FromString(reply.head))
            reply = reply._replace(head=message.SerializeToString())
        if reply.items is not None:
            items = (self._changed(ITEM, item) for item in reply.items)
            reply = reply._replace(items=items)
        super()._answer(running, reply, watch)

    def _changed(self, name: Call | str, reply: Any) -> Any:
        try:
            return self._node.change[name](reply) if name in self._node.change else reply
        except Lost as lost:
            if lost.code:
                raise StorageError("words", code=lost.code) from None
            self._connection.abort()
            raise ConnectionClosed("the answer is lost") from None


class Lost(Exception):
    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    """Yield three independent nodes. Each has the device root.a.d, but with a different value."""
    made = [Node(tmp_path / f"n{i}") for i in range(3)]
    for number, node in enumerate(made):
        node.api._own.insert("root.a.d", [1], {"x": [float(number)]}, aligned=None)
    yield made
    for node in made:
        node.kill()


def connect(*nodes: Node, **options) -> saros.Connection:
    return saros.connect(
        "saros://" + ",".join(node.address for node in nodes),
        **{"timestamps": "epoch", "failover_s": PATIENCE_S, **options},
    )


def which(connection: saros.Connection) -> int:
    """Return the number of the node that answers reads."""
    return int(connection.execute("select x from root.a.d").fetchall()[0][1])


# ---------------------------------------------------------------------------------------------- reads


def test_the_first_address_that_answers_is_taken_and_reads_go_elsewhere_when_it_dies(nodes: list[Node]) -> None:
    nodes[1].kill()
    with connect(*nodes) as connection:
        first = which(connection)
        assert first in (0, 2)
        assert {first} == {which(connection) for _ in range(5)}
        nodes[first].kill()
        assert {2 - first} == {which(connection) for _ in range(5)}


def test_clients_are_spread_over_the_addresses(nodes: list[Node]) -> None:
    found = set()
    for _ in range(60):
        with connect(*nodes) as connection:
            found.add(which(connection))
    assert {0, 1, 2} == found  # fails by chance once in 10 ** 10 runs


def test_addresses_that_a_node_names_are_used(nodes: list[Node]) -> None:
    def name_all(reply: client_pb2.OpenReply) -> client_pb2.OpenReply:
        reply.addresses.extend(node.address for node in nodes[:2])
        return reply

    nodes[0].change[Call.OPEN] = name_all
    with connect(nodes[0]) as connection:
        assert 0 == which(connection)
        nodes[0].kill()
        assert 1 == which(connection)


def test_weak_reads_go_to_all_nodes_in_turn(nodes: list[Node]) -> None:
    with connect(*nodes, consistency="weak") as connection:
        assert {0: 3, 1: 3, 2: 3} == Counter(which(connection) for _ in range(9))
        nodes[0].kill()
        assert {1, 2} == {which(connection) for _ in range(9)}


def test_a_query_is_asked_elsewhere_until_its_first_rows_came(nodes: list[Node]) -> None:
    with connect(*nodes[:2]) as connection:
        home = which(connection)
        nodes[home].lose(Call.EXECUTE)
        assert 1 - home == which(connection)


def test_a_query_whose_rows_are_a_rest_is_asked_elsewhere_until_the_first_came(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "_ANSWER_BYTES", 0)
    with connect(*nodes[:2]) as connection:
        home = which(connection)
        nodes[home].lose(ITEM)
        assert 1 - home == which(connection)


def test_a_query_that_breaks_after_its_first_rows_is_an_error_not_a_short_result(nodes: list[Node]) -> None:
    nodes[0].api._own.insert("root.a.e", np.arange(400_000), {"x": np.arange(400_000.0)}, aligned=None)
    messages = []

    def lose_third(message: bytes) -> bytes:
        messages.append(message)
        if len(messages) == 3:
            raise Lost(0)
        return message

    with connect(nodes[0]) as connection:
        nodes[0].change[ITEM] = lose_third
        cursor = connection.execute("select x from root.a.e")
        with pytest.raises(saros.OperationalError, match="connection closed"):
            cursor.fetchall()


def test_a_query_that_breaks_every_node_is_given_up(nodes: list[Node]) -> None:
    with connect(*nodes) as connection:
        which(connection)
        before = sum(node.calls[Call.EXECUTE] for node in nodes)
        for node in nodes:
            node.lose(Call.EXECUTE, times=100)
        with pytest.raises(saros.OperationalError, match="connection closed") as caught:
            which(connection)
        assert 2016 == caught.value.code
        assert 3 == sum(node.calls[Call.EXECUTE] for node in nodes) - before


def test_a_node_that_has_no_leader_is_asked_again_and_other_errors_are_not(nodes: list[Node]) -> None:
    with connect(nodes[0]) as connection:
        nodes[0].lose(Call.EXECUTE, times=3, code=2017)
        assert 0 == which(connection)
        before = nodes[0].calls[Call.EXECUTE]
        nodes[0].lose(Call.EXECUTE, code=611)
        with pytest.raises(saros.OperationalError):
            which(connection)
        assert 1 == nodes[0].calls[Call.EXECUTE] - before


def test_when_all_are_dead_the_call_ends_in_time_and_works_when_one_is_back(nodes: list[Node], tmp_path: Path) -> None:
    with connect(nodes[0], failover_s=0.3) as connection:
        nodes[0].kill()
        started = time.monotonic()
        with pytest.raises(saros.OperationalError, match="no Saros node answers") as caught:
            which(connection)
        assert 2016 == caught.value.code
        assert 0.25 < time.monotonic() - started < 20  # with the default fail-over time, it would take 30 s
    with connect(nodes[1], failover_s=PATIENCE_S) as connection:
        nodes[1].kill()
        back = threading.Timer(0.2, lambda: nodes.append(Node(tmp_path / "n1", int(nodes[1].address[10:]))))
        back.start()
        assert 1 == which(connection)
        back.join()


def test_a_new_connection_does_not_wait_for_an_old_one_that_cannot_connect(nodes: list[Node], tmp_path: Path) -> None:
    port = int(nodes[0].address[10:])
    with connect(nodes[0], failover_s=0.3) as old:
        nodes[0].kill()
        with pytest.raises(saros.OperationalError, match="no Saros node answers"):
            which(old)
        nodes[0] = Node(tmp_path / "n0", port)
        with connect(nodes[0]) as new:
            assert 0 == which(new)


def test_the_time_zone_survives(nodes: list[Node]) -> None:
    with connect(*nodes[:2]) as connection:
        connection.execute("set time zone 'Asia/Tokyo'")
        for _ in range(2):
            assert [("Asia/Tokyo",)] == connection.execute("show time zone").fetchall()
            nodes[which(connection)].api._services.sessions._clients.clear()  # the session is lost
        nodes[which(connection)].kill()
        assert [("Asia/Tokyo",)] == connection.execute("show time zone").fetchall()


def test_the_time_zone_holds_at_nodes_that_were_used_before_it_was_set(nodes: list[Node]) -> None:
    with connect(*nodes, consistency="weak") as connection:
        assert {0, 1, 2} == {which(connection) for _ in range(3)}
        connection.execute("set time zone 'Asia/Tokyo'")
        assert [[("Asia/Tokyo",)]] * 3 == [connection.execute("show time zone").fetchall() for _ in range(3)]


def test_rows_of_a_read_come_after_its_fail_over_time(nodes: list[Node], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "_ANSWER_BYTES", 0)
    with connect(nodes[0], failover_s=0) as connection:
        assert [1] == [row[0] for row in connection.execute("select x from root.a.d").fetchall()]


def test_that_partial_results_are_allowed_survives(nodes: list[Node]) -> None:
    def allowed(connection: saros.Connection) -> bool:
        opened = connection._session._calls._opened  # type: ignore[attr-defined]
        address = nodes[which(connection)].address
        sessions = next(node for node in nodes if node.address == address).api._services.sessions._clients
        return sessions[opened[address].token].session._context.partial

    for option, statement, expected in ((None, "true", True), (True, "false", False)):
        with connect(*nodes[:2], partial_results=option) as connection:
            assert bool(option) is allowed(connection)
            connection.execute(f"set allow partial results {statement}")
            connection.execute("set time zone 'Asia/Tokyo'")
            assert expected is allowed(connection)
            for node in nodes[:2]:
                node.api._services.sessions._clients.clear()  # the sessions are lost
            assert expected is allowed(connection)
            assert [("Asia/Tokyo",)] == connection.execute("show time zone").fetchall()


def test_data_that_was_left_out_is_listed(nodes: list[Node]) -> None:
    def lacking(answer: client_pb2.Answer) -> client_pb2.Answer:
        del nodes[0].change[Call.EXECUTE]
        answer.head.missing.append("root.b")
        answer.end.missing.append("root.c")
        return answer

    with connect(nodes[0]) as connection:
        cursor = connection.cursor()
        assert () == cursor.missing
        assert () == cursor.execute("select x from root.a.d").missing
        nodes[0].change[Call.EXECUTE] = lacking
        assert ("root.b",) == cursor.execute("select x from root.a.d").missing
        cursor.fetchall()
        assert ("root.b", "root.c") == cursor.missing


def test_stale_rows_are_marked(nodes: list[Node]) -> None:
    def stale(answer: client_pb2.Answer) -> client_pb2.Answer:
        del nodes[0].change[Call.EXECUTE]
        answer.head.stale = True
        return answer

    with connect(nodes[0]) as connection:
        cursor = connection.cursor()
        assert cursor.stale is False
        assert cursor.execute("select x from root.a.d").stale is False
        cursor.fetchall()
        nodes[0].change[Call.EXECUTE] = stale
        assert cursor.execute("select x from root.a.d").stale is True


# ---------------------------------------------------------------------------------------------- writes


def test_a_lost_answer_of_an_insert_is_asked_for_again_and_the_points_are_written_once(nodes: list[Node]) -> None:
    with connect(nodes[0]) as connection:
        before = nodes[0].points
        nodes[0].lose(Call.INSERT, times=2)
        assert 4 == connection.insert("root.a.e", [1, 2], {"x": [1.0, 2.0], "y": [3, 4]})
        assert (3, 4) == (nodes[0].calls[Call.INSERT], nodes[0].points - before)


def test_a_retried_write_does_not_undo_a_newer_one(nodes: list[Node]) -> None:
    def newer() -> None:
        nodes[0].api._own.insert("root.a.e", [1], {"x": [2.0]}, aligned=None)

    with connect(nodes[0]) as connection:
        nodes[0].lose(Call.INSERT, then=newer)
        connection.insert("root.a.e", [1], {"x": [1.0]})
        assert [(1, 2.0)] == connection.execute("select x from root.a.e").fetchall()


def test_a_lost_answer_of_a_statement_is_asked_for_again(nodes: list[Node]) -> None:
    with connect(nodes[0]) as connection:
        for statement, count in (
            ("create database root.b", 1),
            ("create timeseries root.b.d.x with datatype=double", 1),
            ("insert into root.b.d(time, x) values (1, 1.0), (2, 2.0)", 2),
            ("drop timeseries root.b.d.x", 1),
        ):
            nodes[0].lose(Call.EXECUTE)
            assert count == connection.execute(statement).rowcount


def test_a_write_whose_session_is_lost_was_not_carried_out_and_is_sent_again(nodes: list[Node]) -> None:
    with connect(nodes[0]) as connection:
        nodes[0].api._services.sessions._clients.clear()
        nodes[0].api.node.requests = Requests()
        assert 1 == connection.insert("root.a.e", [1], {"x": [1.0]})
        nodes[0].api._services.sessions._clients.clear()
        assert 1 == connection.execute("insert into root.a.e(time, x) values (2, 2.0)").rowcount


def test_a_lost_write_is_unknown_when_the_node_forgot(nodes: list[Node]) -> None:
    def restart() -> None:
        nodes[0].api._services.sessions._clients.clear()
        nodes[0].api.node.requests = Requests()

    with connect(nodes[0]) as connection:
        nodes[0].lose(Call.INSERT, then=restart)
        with pytest.raises(saros.OperationalError) as caught:
            connection.insert("root.a.e", [1], {"x": [1.0]})
        assert (2018, 1) == (caught.value.code, nodes[0].calls[Call.INSERT] - 1)  # the repeated call was refused


def test_a_lost_write_does_not_go_to_a_node_with_another_memory(nodes: list[Node]) -> None:
    with connect(*nodes[:2]) as connection:
        home = which(connection)
        before = nodes[1 - home].points
        nodes[home].lose(Call.INSERT, times=100)
        with pytest.raises(saros.OperationalError) as caught:
            connection.insert("root.a.e", [1], {"x": [1.0]})
        assert (2018, 0) == (caught.value.code, nodes[1 - home].points - before)


def test_a_write_that_was_not_sent_goes_elsewhere(nodes: list[Node]) -> None:
    with connect(*nodes[:2]) as connection:
        home = which(connection)
        nodes[home].kill()
        assert 1 == connection.insert("root.a.e", [1], {"x": [1.0]})
        assert 1 == connection.execute("insert into root.a.e(time, x) values (2, 2.0)").rowcount


def test_inserts_follow_the_leader_that_a_node_names(nodes: list[Node]) -> None:
    def name_third(reply: client_pb2.InsertReply) -> client_pb2.InsertReply:
        reply.leader = nodes[2].address
        return reply

    for node in nodes[:2]:
        node.change[Call.INSERT] = name_third
    with connect(*nodes[:2]) as connection:
        for time_ in range(4):
            connection.insert("root.a.e", [time_], {"x": [1.0]})
        assert (1, 3) == (sum(node.calls[Call.INSERT] for node in nodes[:2]), nodes[2].calls[Call.INSERT])
        nodes[2].kill()
        for time_ in range(4):
            connection.insert("root.a.e", [time_], {"x": [1.0]})


@pytest.mark.slow
def test_a_node_that_hangs_holds_a_write_up_for_a_little_while(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_a_cluster(reply: client_pb2.OpenReply) -> client_pb2.OpenReply:
        reply.memory = 0
        return reply

    released = threading.Event()

    def hang(reply: client_pb2.InsertReply) -> client_pb2.InsertReply:
        released.wait(PATIENCE_S)
        return reply

    monkeypatch.setattr(call_window, "_HANGS_SECONDS", 0.3)
    for node in nodes[:2]:
        node.change[Call.OPEN] = of_a_cluster
    nodes[0].change[Call.INSERT] = hang
    started = time.monotonic()
    with connect(*nodes[:2]) as connection:
        for time_ in range(2):
            connection.insert("root.a.e", [time_], {"x": [1.0]})
    assert 2 == nodes[1].points - 1
    nodes[1].change[Call.INSERT] = hang
    with (
        connect(*nodes[:2], failover_s=1.0) as connection,
        pytest.raises(saros.OperationalError, match="it is unknown whether"),
    ):
        connection.insert("root.a.e", [9], {"x": [1.0]})
    assert time.monotonic() - started < PATIENCE_S / 2  # the hanging node would answer only after `PATIENCE_S`
    released.set()


@pytest.mark.parametrize(
    ("kind", "failover_s", "timeout_s", "expected"),
    [
        (Kind.READ, 30.0, 2.0, (2.0, 3.0, None, 3.0)),
        (Kind.JOB, 30.0, None, (None, None, None, None)),
        (Kind.JOB, 30.0, 60.0, (60.0, 61.0, None, 61.0)),
        (Kind.WRITE, 30.0, None, (30.0, None, None, None)),
        (Kind.WRITE, 0.0, None, (5.0, None, None, None)),
        (Kind.WRITE, 30.0, 2.0, (2.0, 3.0, None, 3.0)),
        (Kind.INSERT, 30.0, None, (3.0, 4.0, 30.0, None)),
        (Kind.INSERT, 2.0, None, (2.0, 3.0, 5.0, None)),
        (Kind.INSERT, 0.0, None, (1.0, 2.0, 5.0, None)),
        (Kind.INSERT, 30.0, 0.5, (0.5, 1.5, 1.5, 1.5)),
    ],
)
def test_an_attempt_has_no_more_time_than_its_call(
    monkeypatch: pytest.MonkeyPatch,
    kind: Kind,
    failover_s: float,
    timeout_s: float | None,
    expected: tuple[float | None, ...],
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    window = CallWindow(kind, failover_s, timeout_s)
    first = window.begin(window.deadline)
    assert expected == (first.wait_s, first.shared_s, first.columns_s, first.statement_s)
    if window.deadline is not None:
        now = window.deadline - 0.25
        later = window.begin(window.deadline)
        assert pytest.approx(0.25) == later.wait_s
        assert later.shared_s is None or later.shared_s <= 1.25


@pytest.mark.parametrize(
    ("failures", "code", "written", "missing"),
    [
        ({1: 2017}, 2017, [], []),
        ({2: 2017}, 2020, [(0, 9)], [(10, 19), (20, 29)]),
        ({2: 2018}, 2018, [], []),
        ({1: 2020}, 2020, [(0, 3)], [(4, 9), (10, 19), (20, 29)]),
        ({3: 2020}, 2020, [(0, 9), (10, 19), (20, 23)], [(24, 29)]),
    ],
)
def test_an_insert_of_several_messages_that_fails_names_all_missing_rows(
    nodes: list[Node],
    monkeypatch: pytest.MonkeyPatch,
    failures: dict[int, int],
    code: int,
    written: list[tuple[int, int]],
    missing: list[tuple[int, int]],
) -> None:
    """The client sends three messages of ten rows. Of a message that is written only in part, four rows are written."""
    sent = 0

    def insert(_: EmbeddedSession, __: str, times: Int64Array, *___: object, **____: object) -> int:
        nonlocal sent
        sent += 1
        start = int(times[0])
        rows = RowsLeft([RowRange("root.a.e", start, start + 3)], [RowRange("root.a.e", start + 4, start + 9)])
        match failures.get(sent):
            case 2020:
                raise PartialFailure({}, {}, "gone", rows=rows)
            case 2017 | 2018 as number:
                raise StorageError("gone", code=number)
        return 10

    monkeypatch.setattr(EmbeddedSession, "insert", insert)
    monkeypatch.setattr(protocol, "INSERT_BYTES", 160)
    with connect(nodes[0], failover_s=0) as connection, pytest.raises(saros.OperationalError) as caught:
        connection.insert("root.a.e", list(range(30)), {"x": [float(n) for n in range(30)]})
    error = caught.value
    assert code == error.code
    found = error if isinstance(error, saros.PartialWriteError) else saros.PartialWriteError("")
    assert (written, missing) == tuple([(r.start, r.end) for r in rows] for rows in (found.written, found.missing))


def test_numbers_do_not_run_ahead_of_the_oldest_write() -> None:
    sequences = Sequences(BlockingEvent)
    first = run(sequences.take())
    for _ in range(protocol.SEQUENCES_KEPT - 1):
        number = run(sequences.take())
        sequences.finish(number)
    assert (1, protocol.SEQUENCES_KEPT) == (first, number)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: run(sequences.take()))
        wait_until(lambda: sequences._waiting)
        assert not waiting.done()
        sequences.finish(first)
        assert protocol.SEQUENCES_KEPT + 1 == waiting.result(PATIENCE_S)


def test_many_threads_write_while_answers_are_lost_and_sessions_end(nodes: list[Node], monkeypatch) -> None:
    monkeypatch.setattr(retry_policy, "LOST_MAX", 1_000)
    node = nodes[0]
    numbers = iter(range(1, 1_000_000))

    def trouble(reply: client_pb2.InsertReply) -> client_pb2.InsertReply:
        number = next(numbers)
        if number % 31 == 0:
            node.api._services.sessions._clients.clear()
        if number % 7 == 0:
            raise Lost(0)
        return reply

    before = node.points
    with connect(node) as connection:
        node.change[Call.INSERT] = trouble

        def write(thread: int) -> int:
            return sum(connection.insert(f"root.t.d{thread}", [i], {"x": [float(i)]}) for i in range(50))

        with ThreadPoolExecutor(8) as pool:
            assert 400 == sum(pool.map(write, range(8)))
        assert 400 == node.points - before
        node.change.clear()
        assert [(50,) * 8] == connection.execute("select count(x) from root.t.*").fetchall()


# ---------------------------------------------------------------------------------------------- bulk


def test_a_bulk_writer_under_a_dying_server_loses_nothing(tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    server = Server(folder, "127.0.0.1", 0)
    server.start()
    devices, rows = [f"root.b.d{i}" for i in range(4)], np.arange(50)

    def stop_once(_: object) -> None:
        server.stop()

    with saros.connect(f"saros://{server.address}", failover_s=0.3) as connection:
        writer = connection.bulk_writer(batch_rows=100, max_in_flight=3, progress=stop_once)
        for turn in range(20):
            for device in devices:
                writer.add(device, rows + turn * 50, {"x": (rows + turn * 50).astype(float)})
            if turn == 1:
                wait_until(lambda: writer.progress.rows > 0)  # the next `add` stops the server
        with pytest.raises(saros.BulkError, match=r"rows of root\.b\.d") as caught:
            writer.close()
    failures = caught.value.failures
    assert 4_000 == writer.progress.rows + writer.progress.failed_rows
    assert writer.progress.failed_rows == sum(failure.rows for failure in failures) > 0
    with saros.connect(folder) as connection:
        for failure in failures:
            assert failure.error.code in (2016, 2018)
            connection.insert(failure.device, failure.times, failure.columns)
        for device in devices:
            found = connection.execute(f"select x from {device}").fetch_arrow().column(1).to_numpy()
            assert np.array_equal(np.arange(1_000.0), found)


# ---------------------------------------------------------------------------------------------- connections


def test_sessions_share_connections_which_close_with_the_last(nodes: list[Node]) -> None:
    before = dict(node_connection._pools)  # pools of other tests
    first, second = connect(nodes[0]), connect(nodes[0])
    assert [2] == [pool.leases for key, pool in node_connection._pools.items() if key not in before]
    first.close()
    assert 0 == which(second)
    assert 1 == nodes[0].connections
    second.close()
    wait_until(lambda: nodes[0].connections == 0)
    assert before == node_connection._pools
    with pytest.raises(saros.OperationalError, match="no Saros node answers"):
        saros.connect("saros://127.0.0.1:1,127.0.0.1:2")
    assert before == node_connection._pools


def test_a_refusal_at_connecting_is_told_at_once(nodes: list[Node]) -> None:
    for node in nodes:
        node.lose(Call.OPEN, times=10, code=801)
    with pytest.raises(saros.OperationalError) as caught:
        connect(*nodes, user="u", password="SECRET")
    assert (801, 1) == (caught.value.code, sum(node.calls[Call.OPEN] for node in nodes))
    assert "SECRET" not in str(caught.value)


def test_a_closed_connection_says_so(nodes: list[Node]) -> None:
    connection = connect(nodes[0])
    session = connection._session
    connection.close()
    for call in (
        lambda: session.execute("show databases", (), None),
        lambda: session.insert("root.a.d", [1], {"x": [1.0]}, aligned=None),
        connection.bulk_writer,
    ):
        with pytest.raises(saros.InterfaceError, match="closed"):
            call()


def test_tls(tmp_path: Path) -> None:
    key, certificate = self_signed(tmp_path)
    node = Node(tmp_path / "data", certificate=WatchedFiles((str(certificate), str(key))))
    target = f"saros://{node.address}/?tls={certificate}"
    with saros.connect(target) as connection:
        assert 1 == connection.insert("root.a.d", [1], {"x": [1.0]})
        assert [1.0] == [row[1] for row in connection.execute("select x from root.a.d")]
    with pytest.raises(saros.OperationalError, match=r"takes TLS only.*; add /\?tls=ca\.pem"):
        saros.connect(f"saros://{node.address}")
    node.kill()
