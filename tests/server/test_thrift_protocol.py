"""Connections of IoTDB's session protocol: logins, sessions, statements, bad messages, disconnected clients."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from manual_clock import ManualClock
from receiving import receive
from server.test_executions import LARGE
from server.thrift_client import (
    ANN,
    ROOT,
    Failed,
    ProtocolRefusal,
    ThriftClient,
    ThriftServer,
    decode_block,
    message,
    request_bytes,
)
from thrift.Thrift import TApplicationException, TMessageType
from waiting import wait_equal, wait_until

from saros_cluster.users.commands import SetPassword
from saros_server.api import client_sessions
from saros_server.auth.passwords import Cost, hash_password
from saros_server.thrift import structs
from saros_server.thrift.codec import encode
from saros_server.thrift.sessions import FRAME_BYTES_MAX, LOGIN_BYTES_MAX, STATEMENTS_MAX
from saros_server.thrift.structs import ExecuteAnswer, Status

NO_ARGUMENTS = request_bytes(structs.NoArguments(), bare=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ThriftServer]:
    made = ThriftServer(tmp_path)
    yield made
    made.close()


@pytest.fixture
def client(server: ThriftServer) -> Iterator[ThriftClient]:
    with server.connect() as made:
        yield made


def fails_with(code: int, text: str, run: object, *arguments: object, **options: object) -> None:
    with pytest.raises(Failed) as failed:
        run(*arguments, **options)
    assert (code, True) == (failed.value.code, text in str(failed.value)), failed.value


# ---------------------------------------------------------------------------------------------- sessions


def test_a_client_logs_in_and_learns_the_time_unit(client: ThriftClient, server: ThriftServer) -> None:
    opened = client.open()
    assert (2, {"timestamp_precision": "ms"}) == (opened.server_protocol, opened.configuration)
    assert opened.session_id != client.statement_id
    properties = client.call("getProperties", structs.NoArguments(), structs.ServerProperties, bare=True)
    assert ("ms", FRAME_BYTES_MAX, False) == (properties.time_unit, properties.frame_bytes_max, properties.read_only)
    client.done("testConnectionEmptyRPC", structs.NoArguments(), bare=True)
    assert 1 == server.api.sessions
    client.done("closeSession", structs.CloseSession(client.session_id))
    assert 0 == server.api.sessions
    fails_with(802, "openSession", client.execute, "show version")


def test_logins_are_checked_and_audited(client: ThriftClient, server: ThriftServer) -> None:
    fails_with(801, "", client.open, "root", "wrong")
    fails_with(801, "", client.open, "nobody", ROOT)
    client.open("ann", ANN)
    fails_with(803, "", client.execute, "create database root.a")
    (trail,) = (server.folder / "audit").glob("*.jsonl")
    events = [json.loads(line) for line in trail.read_text().splitlines()]
    found = [(event["event"], event["user"], event["host"], event["code"]) for event in events]
    assert [
        ("login", "root", "127.0.0.1", 801),
        ("login", "nobody", "127.0.0.1", 801),
        ("login", "ann", "127.0.0.1", 0),
        ("denied", "ann", "127.0.0.1", 803),
    ] == [(event, user, host.removeprefix("ipv4:"), code) for event, user, host, code in found]


def test_the_table_model_is_refused_by_name(client: ThriftClient, server: ThriftServer) -> None:
    fails_with(205, "no table model", client.open, sql_dialect="table")
    assert 0 == server.api.sessions
    client.open(sql_dialect="tree", version="V_1_0")


def test_nothing_but_a_login_works_without_one(client: ThriftClient) -> None:
    fails_with(802, "openSession", client.execute, "show databases")
    request = structs.SetStorageGroup(client.session_id, "root.a")
    fails_with(802, "openSession", client.done, "setStorageGroup", request, bare=True)
    assert -1 == client.call("requestStatementId", structs.SessionArguments(0), int, bare=True)


def test_time_zones_are_set_and_kept_as_the_client_writes_them(client: ThriftClient) -> None:
    client.open()

    def zone() -> str:
        return client.call("getTimeZone", structs.SessionArguments(1), structs.TimeZoneAnswer, bare=True).zone

    assert "UTC" == zone()
    for name, shown in (
        ("Asia/Tokyo", "Asia/Tokyo"),
        ("GMT+8", "+08:00"),
        ("UTC-03:30", "-03:30"),
        ("+05:45", "+05:45"),
    ):
        client.done("setTimeZone", structs.SetTimeZone(client.session_id, name))
        assert (name, [(shown.encode(),)]) == (zone(), client.execute("show time_zone").all())
    fails_with(701, "Mars/Base", client.done, "setTimeZone", structs.SetTimeZone(client.session_id, "Mars/Base"))
    fails_with(701, "unknown", client.done, "setTimeZone", structs.SetTimeZone(client.session_id, "UTC' or '"))
    assert "+05:45" == zone()
    client.execute("set time_zone = 'Europe/Rome'")
    assert "Europe/Rome" == zone()


def test_an_unknown_time_zone_is_refused_at_login(client: ThriftClient, server: ThriftServer) -> None:
    request = structs.OpenSession(2, "Mars/Base", "root", ROOT)
    answer = client.call("openSession", request, structs.OpenSessionAnswer)
    assert (701, 0) == (answer.status.code, server.api.sessions)


def test_sessions_of_two_connections_are_apart(client: ThriftClient, server: ThriftServer) -> None:
    client.open()
    client.execute("insert into root.a.d(time, x) values (1, 1), (2, 2), (3, 3)")
    result = client.execute("select x from root.a.d", rows=1)
    with server.connect() as other:
        other.open()
        fails_with(714, "not open on this connection", other.fetch, result.answer.query_id, 10)
        other.done("closeOperation", structs.CloseOperation(other.session_id, result.answer.query_id))
        other.done("closeOperation", structs.CloseOperation(client.session_id, None, client.statement_id))
        other.done("cancelOperation", structs.CancelOperation(client.session_id, result.answer.query_id))
        other.session_id = client.session_id  # knowing the number gives no access to the session
        other.done("closeSession", structs.CloseSession(client.session_id))
    assert [(1, 1.0), (2, 2.0), (3, 3.0)] == result.all()


def test_a_closed_statement_closes_its_results_and_takes_no_more(client: ThriftClient) -> None:
    client.open()
    client.execute("insert into root.a.d(time, x) values (1, 1), (2, 2)")
    result = client.execute("select x from root.a.d", rows=1)
    # The Python client sends this request, in which the two ids are swapped.
    client.done("closeOperation", structs.CloseOperation(client.statement_id, None, client.session_id))
    fails_with(714, "", client.fetch, result.answer.query_id, 1)
    fails_with(301, "statement", client.execute, "show version")


def test_a_closed_result_cannot_be_fetched_from_and_others_can(client: ThriftClient) -> None:
    client.open()
    client.execute("insert into root.a.d(time, x) values (1, 1), (2, 2)")
    first, second = (client.execute("select x from root.a.d", rows=1) for _ in range(2))
    client.done("closeOperation", structs.CloseOperation(client.session_id, -1, client.statement_id))
    client.done("closeOperation", structs.CloseOperation(client.session_id, first.answer.query_id))
    fails_with(714, "", client.fetch, first.answer.query_id, 1)
    assert [(1, 1.0), (2, 2.0)] == second.all()


def test_statements_of_a_connection_are_limited(client: ThriftClient) -> None:
    client.open()
    arguments = structs.SessionArguments(client.session_id)
    for _ in range(STATEMENTS_MAX - 1):
        client.call("requestStatementId", arguments, int, bare=True)
    with pytest.raises(ProtocolRefusal, match=f"{STATEMENTS_MAX} statements are open"):
        client.call("requestStatementId", arguments, int, bare=True)


def test_a_session_that_is_over_ends_the_connection(tmp_path: Path) -> None:
    clock = ManualClock()
    server = ThriftServer(tmp_path, clock=clock)
    try:
        for end in ("idle", "password"):
            with server.connect() as client:
                client.open()
                if end == "idle":
                    clock.ns += (client_sessions.IDLE_SECONDS + 1) * 1_000_000_000
                else:
                    server.api.node.directory.change(SetPassword("root", hash_password(ROOT, Cost(10))))
                request = structs.ExecuteStatement(client.session_id, "create database root.a")
                client.send_frame(message("executeStatementV2", request_bytes(request)))
                assert client.is_closed(), end
        assert [] == server.api.node.store.schema.databases()
    finally:
        server.close()


def test_a_client_that_goes_away_ends_its_query_and_its_session(client: ThriftClient, server: ThriftServer) -> None:
    client.open()
    server.api._own.insert("root.a.d", np.arange(400_000), {"x": np.arange(400_000.0)}, aligned=None)
    client.execute(LARGE, rows=10)
    assert (1, 1) == (server.api.node.engine.open_queries, server.api.sessions)
    client.close()
    wait_equal((0, 0), lambda: (server.api.node.engine.open_queries, server.api.sessions))


@pytest.mark.slow
def test_a_client_that_goes_away_ends_the_statement_that_runs(tmp_path: Path) -> None:
    """The statement would run for minutes if the server did not end it."""
    server = ThriftServer(tmp_path, options="query_timeout_ms = 600000\n")
    try:
        server.api._own.insert("root.a.d", np.arange(3_000_000), {"x": np.arange(3_000_000.0)}, aligned=None)
        with server.connect() as client:
            client.open()
            columns = ", ".join(f"avg(sin(cos(tan(sin(x + {number})))))" for number in range(1_000))
            request = structs.ExecuteStatement(client.session_id, f"select {columns} from root.a.d")
            client.send_frame(message("executeStatementV2", request_bytes(request)))
            wait_equal(1, lambda: server.api.node.engine.open_queries)
        wait_equal((0, 0), lambda: (server.api.node.engine.open_queries, server.api.sessions))
    finally:
        server.close()


# ---------------------------------------------------------------------------------------------- messages


def test_an_unknown_method_is_refused_and_the_connection_goes_on(client: ThriftClient) -> None:
    for name in ("pipeTransfer", "x" * 100):
        with pytest.raises(ProtocolRefusal, match=f"Saros has no call {name}") as refused:
            client.call(name, structs.NoArguments(), Status, bare=True)
        assert TApplicationException.UNKNOWN_METHOD == refused.value.kind
    client.open()


@pytest.mark.parametrize(
    "arguments",
    [
        b"",
        b"\0",
        b"\x0c\0\2" + encode(structs.CloseSession(1)),
        b"\x0c\0\1\0\0",  # required fields are missing
        b"\x0c\0\1\x0a\0\1\0\0\0",  # ends in the middle of an integer
        b"\x0c\0\1\x0b\0\2\x7f\xff\xff\xff",  # a text of 2 GB
        b"\x0c\0\1\x0b\0\2\xff\xff\xff\xff",  # a text of -1 bytes
        b"\x0c\0\1\x63\0\2\0\0",  # an unknown type
        b"\x0c\0\1" + b"\x0f\0\x63" + b"\x0f\0\0\0\1" * 10_000 + b"\0\0",  # lists nested ten thousand deep
        b"\x0c\0\1" + b"\x0f\0\x63\x0c\x7f\xff\xff\xff",  # a list of 2 billion structs
    ],
)
def test_arguments_that_cannot_be_read_are_refused_and_the_connection_goes_on(
    client: ThriftClient, arguments: bytes
) -> None:
    client.number += 1
    client.send_frame(message("executeStatementV2", arguments, client.number))
    with pytest.raises(ProtocolRefusal, match=r"the call has no request|cannot be read") as refused:
        client.answer("executeStatementV2", ExecuteAnswer)
    assert TApplicationException.PROTOCOL_ERROR == refused.value.kind
    client.open()


def test_fields_that_are_not_known_are_skipped(client: ThriftClient) -> None:
    client.open()
    unknown = b"\x0b\0\x63\0\0\0\1x" + b"\x0d\0\x64\x0b\x08\0\0\0\1\0\0\0\1a\0\0\0\5"
    request = encode(structs.ExecuteStatement(client.session_id, "show current_user"))
    client.send_frame(message("executeStatementV2", b"\x0c\0\1" + unknown + request + b"\0", client.number))
    assert [b"root"] == [row[1] for row in decoded(client.answer("executeStatementV2", ExecuteAnswer))]


def decoded(answer: ExecuteAnswer) -> list[tuple[object, ...]]:
    return [row for block in answer.blocks or [] for row in decode_block(block)]


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", -5),
        struct.pack(">i", 0),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", LOGIN_BYTES_MAX + 1),
        struct.pack(">i", 3) + b"\x80\1\0",
        struct.pack(">i", 12) + b"\x80\1\0\2\0\0\0\0\0\0\0\0",  # a reply
        struct.pack(">i", 12) + b"\x80\1\0\1\x7f\xff\xff\xff\0\0\0\0",  # a name of 2 GB
        struct.pack(">i", 12) + b"\0\0\0\4open\0\0\0\1",  # the encoding without a version number
    ],
)
def test_bytes_that_are_no_message_close_the_connection(client: ThriftClient, data: bytes) -> None:
    client.done("testConnectionEmptyRPC", structs.NoArguments(), bare=True)
    client.send(data)
    assert client.is_closed()


def test_a_message_without_a_frame_is_refused_readably(client: ThriftClient) -> None:
    client.send(message("openSession", request_bytes(structs.OpenSession()), 7))
    expected = message("openSession", b"", 7, TMessageType.EXCEPTION)
    answer = receive(client.socket, 10_000)
    assert expected == answer[: len(expected)]
    assert b"switch the framed transport on" in answer


@pytest.mark.parametrize("is_framed", [True, False])
def test_a_message_of_the_compact_protocol_is_refused_readably(client: ThriftClient, is_framed: bool) -> None:
    call = b"\x82\x21" + b"\x87\1" + b"\x0bopenSession" + b"\x1c\0\0\0"
    (client.send_frame if is_framed else client.send)(call)
    answer = receive(client.socket, 10_000)[4 if is_framed else 0 :]
    text = b"this port takes Thrift's binary protocol in frames: switch "
    text += b"compact messages (rpc_thrift_compression_enable) off" if is_framed else b"the framed transport on"
    assert b"\x82\x61\x87\1\x0bopenSession\x18" + bytes([len(text)]) + text + b"\x15\x0e\0" == answer


def test_a_frame_that_is_too_large_is_refused_and_the_connection_goes_on(client: ThriftClient) -> None:
    client.open()
    size = FRAME_BYTES_MAX + 100_000
    call = message("executeStatementV2", b"", client.number)
    client.send(struct.pack(">i", size) + call)
    left = size - len(call)
    while left:
        left -= client.socket.send(bytes(min(left, 1 << 20)))
    with pytest.raises(ProtocolRefusal, match=f"a message of {size} bytes: more than {FRAME_BYTES_MAX}"):
        client.answer("executeStatementV2", ExecuteAnswer)
    assert [(b"root",)] == client.execute("show current_user").all()


def test_a_call_that_wants_no_answer_gets_none(client: ThriftClient) -> None:
    client.open()
    request = request_bytes(structs.ExecuteStatement(client.session_id, "create database root.a"))
    client.send_frame(message("executeStatementV2", request, kind=TMessageType.ONEWAY))
    assert [b"root.a"] == [row[0] for row in client.execute("show databases").all()]


def test_calls_sent_at_once_are_answered_in_order(client: ThriftClient) -> None:
    client.open()
    names = [f"root.d{number}" for number in range(20)]
    for name in names:
        client.send_frame(
            message("setStorageGroup", request_bytes(structs.SetStorageGroup(1, name), bare=True), client.number)
        )
    for _ in names:
        assert 200 == client.answer("setStorageGroup", Status).code
    assert sorted(names) == sorted(row[0].decode() for row in client.execute("show databases").all())


def test_a_message_in_pieces_is_read_whole(client: ThriftClient, server: ThriftServer) -> None:
    frame = message("openSession", request_bytes(structs.OpenSession(2, "UTC", "root", ROOT)), 1)
    for byte in struct.pack(">i", len(frame)) + frame:
        client.send(bytes([byte]))
    client.number = 1
    assert 200 == client.answer("openSession", structs.OpenSessionAnswer).status.code
    client.send(b"\0\0\1\0" + message("executeStatementV2", b""))
    client.close()  # in the middle of a message
    wait_until(lambda: server.api.sessions == 0)
