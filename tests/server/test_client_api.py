"""The operations of the client API: each has a policy, and runs only in a session that satisfies this policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from saros_engine.base.errors import QueryKilled, QueryNotFound
from saros_server.api import executions, operations
from saros_server.api.calls import Call, Operation, Peer, Policy
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_api import ClientApi
from saros_server.api.client_sessions import NoSession, SessionHolder
from saros_server.api.executions import ResultHead, Statement
from saros_server.api.insert_request import InsertRequest
from saros_server.api.operations import InsertOutcome, Login
from saros_server.api.result_cursors import CursorGone
from saros_storage.base.clock import SystemClock
from saros_storage.base.tablet import MultiTablet, Tablet, tablets_of
from saros_storage.base.write_request import WriteRequest

SECOND = 1_000_000_000
HERE = Peer.at("127.0.0.1")
SELECT = Statement("select x from root.a.d")
NEED_A_SESSION = sorted(set(operations.OPERATIONS) - {"open", "ping"})


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ClientApi]:
    made = ClientApi(str(tmp_path / "data"), SystemClock())
    yield made
    made.close()


def ask(api: ClientApi, operation: Operation[Any, Any], token: bytes, request: object, **more: Any) -> Any:
    """Call an operation on a new connection, which is not closed afterwards."""
    return api.connect(HERE).call(operation, token, request, **more)


@pytest.fixture
def token(api: ClientApi) -> bytes:
    opened: bytes = ask(api, operations.OPEN, b"", Login()).token
    return opened


def rows_of(device: str, *times: int) -> InsertRequest:
    return InsertRequest(device, None, 0, list(times), {"x": [time / 2 for time in times]})


def count(call: Call, _: None) -> int:
    return len(call.services.sessions)


def test_an_operation_without_a_policy_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="Missing required argument 'policy'"):
        Operation(name="count", function=count)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="operation count has no policy"):
        Operation("count", None, count)  # type: ignore[arg-type]


def test_an_operation_that_is_not_in_the_table_is_not_called(api: ClientApi) -> None:
    for name in ("count", "open"):
        with pytest.raises(TypeError, match=f"operation {name} is not registered"):
            ask(api, Operation(name, Policy.ANYONE, count), b"", None)


@pytest.mark.parametrize("name", NEED_A_SESSION)
def test_operations_need_a_session_of_the_same_host(api: ClientApi, token: bytes, name: str) -> None:
    operation = operations.OPERATIONS[name]
    for peer, tried in ((HERE, b""), (HERE, b"x" * 32), (Peer.at("192.0.2.1"), token)):
        with pytest.raises(NoSession):
            api.connect(peer).call(operation, tried, None)


class StoppedClock(SystemClock):
    """A clock that always shows second 100."""

    def monotonic_ns(self) -> int:
        return 100 * SECOND


@pytest.mark.parametrize(
    ("wait_ms", "timeout_ms", "expected_ms"),
    [
        (None, 0, None),
        (3_000, 0, 3_000),
        (None, 2_000, 1_850),  # the wait fails before the time limit of the statement ends
        (None, 100, 75),
        (3_000, 2_000, 1_850),
        (1_000, 2_000, 1_000),
    ],
)
def test_the_deadline_of_a_write_is_the_earlier_of_its_limits(
    tmp_path: Path, wait_ms: int | None, timeout_ms: int, expected_ms: int | None
) -> None:
    api = ClientApi(str(tmp_path / "data"), StoppedClock())
    session = api._own
    deadline_ns = api.connect(HERE)._deadline_ns(wait_ms)
    call = Call(api._services, HERE, SessionHolder(HERE.host), CancelToken(), b"", session, deadline_ns)
    expected_ns = None if expected_ms is None else 100 * SECOND + expected_ms * 1_000_000
    assert WriteRequest(0, 0, expected_ns) == call.numbered(7, timeout_ms)
    api.close()


def test_a_result_consists_of_its_head_its_messages_and_a_cursor(
    api: ClientApi, token: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert InsertOutcome(points=3) == ask(api, operations.INSERT, token, rows_of("root.a.d", 1, 2, 3))
    small = ask(api, operations.EXECUTE, token, SELECT)
    schema = pa.ipc.read_schema(pa.py_buffer(small.head.schema))
    assert ResultHead(small.head.query_id, small.head.schema, ("TIMESTAMP", "DOUBLE"), -1, stale=False) == small.head
    assert (0, None) == (small.cursor, small.end)
    monkeypatch.setattr(executions, "_ANSWER_BYTES", 0)
    large = ask(api, operations.EXECUTE, token, SELECT)
    assert [] == large.messages
    rest = list(ask(api, operations.FETCH, token, large.cursor))
    for messages in (small.messages, rest):
        batches = [message.batch(schema) for message in messages]
        assert [0.5, 1.0, 1.5] == pa.Table.from_batches(batches, schema).column(1).to_pylist()


def test_the_end_of_a_result_that_is_not_read_strongly_says_what_was_shown(api: ClientApi) -> None:
    token = ask(api, operations.OPEN, b"", Login(consistency="weak")).token
    ask(api, operations.INSERT, token, rows_of("root.a.d", 1))
    stream = ask(api, operations.STREAM, token, SELECT)
    assert stream.end is None
    assert 1 == len(list(stream))
    assert stream.end == ask(api, operations.EXECUTE, token, SELECT).end is not None


def test_a_cancelled_call_ends_its_query(api: ClientApi, token: bytes) -> None:
    ask(api, operations.INSERT, token, rows_of("root.a.d", 1))
    for before in (False, True):
        cancel = CancelToken()
        if before:
            cancel.cancel()
        stream = ask(api, operations.STREAM, token, SELECT, cancel=cancel)
        cancel.cancel()
        assert 0 == api.node.engine.open_queries
        with pytest.raises(QueryKilled):
            list(stream)


def test_a_discarded_result_ends_its_query(api: ClientApi, token: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "_ANSWER_BYTES", 0)
    ask(api, operations.INSERT, token, rows_of("root.a.d", 1))
    cursor = ask(api, operations.EXECUTE, token, SELECT).cursor
    ask(api, operations.DISCARD, token, cursor)
    assert 0 == api.node.engine.open_queries
    with pytest.raises(CursorGone):
        ask(api, operations.FETCH, token, cursor)


def test_a_query_can_be_cancelled_by_its_id(api: ClientApi, token: bytes) -> None:
    with pytest.raises(QueryNotFound, match="no query it's mine is running"):
        ask(api, operations.CANCEL, token, "it's mine")


def test_inserts_of_several_devices_have_outcomes_of_their_own(api: ClientApi, token: bytes) -> None:
    for _ in range(2):  # the first time, the server's cache does not have the shapes of the statements
        inserts = [
            rows_of("root.a.d1", 1, 2),
            InsertRequest("root.a.d2", None, 0, [1, 2], {"x": [True, False, True]}),
            InsertRequest("root.a.d3", None, 0, [1], {"x": object()}),
            rows_of("root.a.d4", 3),
        ]
        first, second, third, fourth = ask(api, operations.INSERT_MANY, token, inserts)
        assert (first, fourth) == (InsertOutcome(2), InsertOutcome(1))
        assert [getattr(error, "code", None) for error in (second, third)] == [2003, 507]
    head = ask(api, operations.EXECUTE, token, Statement("select count(x) from root.a.** align by device"))
    batch = head.messages[0].batch(pa.ipc.read_schema(pa.py_buffer(head.head.schema)))
    assert batch.to_pydict() == {"Device": ["root.a.d1", "root.a.d4"], "count(x)": [2, 1]}


def test_inserts_that_create_nothing_are_one_write(
    api: ClientApi, token: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = [f"root.a.d{number}" for number in range(5)]
    ask(api, operations.INSERT_MANY, token, [rows_of(device, 1) for device in devices])
    store, written = api.node.store, list[list[str]]()
    write = store.write

    def counted(tablets: Sequence[Tablet | MultiTablet], *arguments: object, **named: object) -> None:
        written.append([one.device for tablet in tablets for one in tablets_of(tablet)])
        write(tablets, *arguments, **named)

    monkeypatch.setattr(store, "write", counted)
    outcomes = ask(api, operations.INSERT_MANY, token, [rows_of(device, 2, 3) for device in devices])
    assert outcomes == [InsertOutcome(2)] * 5
    assert written == [devices]


def test_an_insert_that_the_store_refuses_does_not_keep_others_from_being_written(api: ClientApi, token: bytes) -> None:
    ask(api, operations.INSERT_MANY, token, [rows_of("root.a.d1", 1), rows_of("root.a.d2", 1)])
    late = InsertRequest("root.a.d2", None, 0, np.array([np.iinfo(np.int64).max]), {"x": [0.5]})
    good, bad = ask(api, operations.INSERT_MANY, token, [rows_of("root.a.d1", 2), late])
    assert good == InsertOutcome(1)
    assert getattr(bad, "code", None) == 2007


def test_peers_have_one_name_for_each_address() -> None:
    assert ("ipv4:127.0.0.1", True, "127.0.0.1") == described("127.0.0.1") == described("::ffff:127.0.0.1")
    assert ("ipv4:192.0.2.1", False, "192.0.2.1") == described("192.0.2.1")
    assert ("ipv6:[::1]", True, "::1") == described("::1")
    assert ("ipv6:[fe80::1]", False, "fe80::1") == described("fe80::1%eth0")


def described(address: str) -> tuple[str, bool, str]:
    peer = Peer.at(address)
    return peer.host, peer.is_local, peer.address


def test_callbacks_are_called_once_and_not_after_the_cancellation() -> None:
    token, called = CancelToken(), []
    assert not token.cancelled
    assert token.on_cancel(lambda: called.append("first"))
    token.cancel()
    token.cancel()
    assert (["first"], True) == (called, token.cancelled)
    assert not token.on_cancel(lambda: called.append("second"))
    assert ["first"] == called
