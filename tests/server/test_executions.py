"""Clients' statements at a real server: complete answers, rows that are fetched later, and rows that never are."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from server.secured import LARGE
from waiting import wait_until

import saros
import saros.aio
from saros_server.api import executions, operations, result_cursors
from saros_server.api.arrow import Message
from saros_server.api.calls import Operation, Peer
from saros_server.api.client_api import ApiConnection
from saros_server.api.executions import Statement
from saros_server.api.result_cursors import CursorGone, ResultCursor, ResultCursors
from saros_server.api.session import open_session
from saros_server.server import Server
from saros_storage.base.clock import SystemClock

pytestmark = pytest.mark.slow

ROWS = 100_000
HERE = Peer.at("127.0.0.1")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(str(tmp_path / "data"), "127.0.0.1", 0)
    made.start()
    with saros.connect(f"saros://{made.address}") as connection:
        times = np.arange(ROWS)
        connection.insert("root.a.d", times, {"x": times * 0.5, "y": times, "z": times[::-1]})
    yield made
    made.stop()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count clients' calls of each operation, by the operation's name."""
    counted: Counter[str] = Counter()
    call = ApiConnection.call

    def counting(connection: ApiConnection, operation: Operation[Any, Any], *words: Any, **more: Any) -> Any:
        counted[operation.name] += 1
        return call(connection, operation, *words, **more)

    monkeypatch.setattr(ApiConnection, "call", counting)
    return counted


def ask(server: Server, token: bytes, operation: Operation[Any, Any], request: object) -> Any:
    return server.api.connect(HERE).call(operation, token, request)


def opened(server: Server) -> bytes:
    token: bytes = ask(server, b"", operations.OPEN, operations.Login()).token
    return token


def table_of(schema: bytes, messages: Iterable[Message]) -> pa.Table:
    known = pa.ipc.read_schema(pa.py_buffer(schema))
    return pa.Table.from_batches([m.batch(known) for m in messages], schema=known)


def open_queries(server: Server) -> int:
    return server.api.node.engine.open_queries


def test_a_small_result_is_all_of_an_answer_and_the_rest_of_a_large_one_is_fetched(
    server: Server, calls: Counter[str]
) -> None:
    with saros.connect(f"saros://{server.address}", timestamps="epoch") as connection:
        assert [(7, 3.5)] == connection.execute("select x from root.a.d where time = 7").fetchall()
        assert [] == connection.execute("select x from root.a.d where time = -7").fetchall()
        assert 1 == connection.execute("create database root.b").rowcount
        assert {"open": 1, "execute": 3} == dict(calls)
        table = connection.execute("select x, y from root.a.d").fetch_arrow()
        assert np.array_equal(np.arange(ROWS), table.column(2).to_numpy())
        assert {"open": 1, "execute": 4, "fetch": 1} == dict(calls)


@pytest.mark.parametrize("limit", [0, 1, 10_000, 1 << 20, 3 << 20])
def test_answer_and_rest_are_what_a_stream_brings(server: Server, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "_ANSWER_BYTES", limit)
    monkeypatch.setattr(executions, "_ANSWER_SECONDS", 60.0)
    token, text = opened(server), "select y, x from root.a.d order by time desc"
    stream = ask(server, token, operations.STREAM, Statement(text))
    expected = table_of(stream.head.schema, list(stream))
    answer = ask(server, token, operations.EXECUTE, Statement(text))
    assert sum(message.nbytes for message in answer.messages) <= 2 * limit
    others = ask(server, token, operations.FETCH, answer.cursor) if answer.cursor else []
    assert (limit < ROWS * 24) == (answer.cursor > 0)
    assert expected.equals(table_of(answer.head.schema, [*answer.messages, *others]))
    assert ROWS == expected.num_rows
    wait_until(lambda: open_queries(server) == 0)


def test_a_rest_belongs_to_its_session_and_is_sent_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "_ANSWER_BYTES", 0)
    token, other = opened(server), opened(server)
    answer = ask(server, token, operations.EXECUTE, Statement("select x from root.a.d where time < 10"))
    for whose, count in ((other, None), (token, 1), (token, None)):
        if count is None:
            with pytest.raises(CursorGone, match="no longer available"):
                ask(server, whose, operations.FETCH, answer.cursor)
        else:
            assert count == len(list(ask(server, whose, operations.FETCH, answer.cursor)))


def test_a_query_whose_client_does_not_come_for_the_rest_is_ended(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_cursors, "LEASE_SECONDS", 0.05)
    monkeypatch.setattr(executions, "_ANSWER_BYTES", 0)
    token = opened(server)
    answers = [ask(server, token, operations.EXECUTE, Statement(LARGE)) for _ in range(3)]
    assert [1, 2, 3] == [answer.cursor for answer in answers]
    wait_until(lambda: open_queries(server) == 0)


def test_results_that_nobody_reads_leave_the_node_to_others(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "RESULTS_MAX", 3, raising=False)
    with saros.connect(f"saros://{server.address}") as connection:
        unread = [connection.execute(LARGE) for _ in range(3)]
        with pytest.raises(saros.OperationalError, match=r"3 results on this node .* fetch or close") as refused:
            connection.execute(LARGE)
        assert 2031 == refused.value.code
        assert 1 == connection.insert("root.a.d", [ROWS], {"y": [1]})
        assert [(ROWS,)] == connection.execute("select count(x) from root.a.d").fetchall()

        def has_room() -> bool:
            try:
                unread.append(connection.execute(LARGE))
            except saros.OperationalError:
                return False
            return True

        assert ROWS == unread.pop().fetch_arrow().num_rows
        wait_until(has_room)
        assert not has_room()
        unread.pop(0).close()
        wait_until(has_room)
        assert [ROWS] * 3 == [cursor.fetch_arrow().num_rows for cursor in unread]


def test_a_query_that_takes_longer_can_be_cancelled_after_a_moment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "_ANSWER_SECONDS", 0.0)
    monkeypatch.setattr(executions, "_ANSWER_BYTES", 1)
    with saros.connect(f"saros://{server.address}") as connection:
        cursor = connection.execute(LARGE)
        cursor.fetchone()
        cursor.cancel()
        with pytest.raises(saros.OperationalError, match="cancelled") as caught:
            cursor.fetchall()
        assert 715 == caught.value.code
    wait_until(lambda: open_queries(server) == 0)


def test_queries_of_tasks_that_are_cancelled_are_ended_at_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task cancelled right after its start may send no request at all, so the test waits before it cancels."""
    monkeypatch.setattr(result_cursors, "LEASE_SECONDS", 600.0)

    async def cancel_some() -> None:
        async with await saros.aio.connect(f"saros://{server.address}") as connection:
            tasks = [asyncio.create_task(connection.execute(LARGE)) for _ in range(30)]
            await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert any(isinstance(outcome, asyncio.CancelledError) for outcome in ended)
            for outcome in ended:
                if not isinstance(outcome, BaseException):
                    await outcome.close()
            await asyncio.to_thread(wait_until, lambda: open_queries(server) == 0)

    asyncio.run(cancel_some())


def test_large_results_that_wait_for_their_clients_keep_no_call_waiting(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are as many open results as threads for other calls. A client that waited for a thread would lose rows."""
    monkeypatch.setattr(result_cursors, "LEASE_SECONDS", 0.5)
    with saros.connect(f"saros://{server.address}") as connection:
        cursors = [connection.execute(LARGE) for _ in range(40)]
        assert connection.execute("show version").fetchone() is not None
        wait_until(lambda: not server.api._services.executions._cursors._waiting)
        assert [ROWS] * 40 == [cursor.fetch_arrow().num_rows for cursor in cursors]


def test_a_small_result_that_is_cancelled_does_not_look_as_if_it_were_empty(server: Server) -> None:
    with saros.connect(f"saros://{server.address}") as connection:
        cursor = connection.execute("select x from root.a.d where time < 10")
        cursor.cancel()
        with pytest.raises(saros.OperationalError, match="cancelled"):
            cursor.fetchall()


def test_an_error_amid_a_query_is_told_and_leaves_nothing(server: Server) -> None:
    with saros.connect(f"saros://{server.address}") as connection:
        for seconds in (0.0, 60.0):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(executions, "_ANSWER_SECONDS", seconds)
                with pytest.raises(saros.DatabaseError, match="zero") as caught:
                    connection.execute("select y % z from root.a.d").fetchall()
                assert 751 == caught.value.code
    assert 0 == open_queries(server)


# ---------------------------------------------------------------------------------------------- unfetched rests


class Outcome:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class FakeClock(SystemClock):
    ns = 0

    def monotonic_ns(self) -> int:
        return self.ns


def test_rests_are_closed_when_they_are_overdue_or_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_cursors, "RESTS_MAX", 2)
    clock, session = FakeClock(), open_session(str(tmp_path / "data"), time_zone=None, options={})
    kept = ResultCursors(clock)
    outcomes = [Outcome() for _ in range(5)]

    def put(number: int) -> int:
        return kept.put(ResultCursor(outcomes[number], session, []))  # type: ignore[arg-type]

    first, second, third = put(0), put(1), put(2)
    assert [1, 0, 0] == [outcome.closed for outcome in outcomes[:3]]
    with pytest.raises(CursorGone):
        kept.take(first, session)
    assert outcomes[1] is kept.take(second, session).outcome
    clock.ns = round(result_cursors.LEASE_SECONDS * 1e9)
    fourth = put(3)
    kept.close_overdue()
    with pytest.raises(CursorGone):
        kept.take(third, session)
    assert outcomes[3] is kept.take(fourth, session).outcome
    put(4)
    kept.close()
    assert [1, 0, 1, 0, 1] == [outcome.closed for outcome in outcomes]
    session.close()
