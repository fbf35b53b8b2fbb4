"""Calls of IoTDB's session protocol by clients without the necessary right: each is refused and changes nothing."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from server.thrift_client import ANN, ROOT, ThriftClient, ThriftServer, decode_block, message, request_bytes

from saros_cluster.users.commands import CreateUser, SetPassword
from saros_server.auth.passwords import Cost, hash_password
from saros_server.thrift import structs
from saros_server.thrift.methods import METHODS

#: Calls that need no login: they reveal no data and change nothing.
OPEN_TO_ALL = {
    *("openSession", "closeSession", "requestStatementId", "getProperties", "testConnectionEmptyRPC"),
    *("cancelOperation", "closeOperation"),
    "pruneSchemaTemplate",  # refused in all cases
}
#: Calls that any user may make: they concern only the user's own session, or query a template.
ANY_USER = {"getTimeZone", "setTimeZone", "fetchResults", "fetchResultsV2", "querySchemaTemplate"}
#: Calls that only test the connection.
TESTS = {name for name in METHODS if name.startswith("testInsert")}
#: A call that is never refused, because it returns only the data that the user may see.
OF_ALL_THAT_IS_SEEN = "executeFastLastDataQueryForOnePrefixPath"
NOT_LOGGED_IN, DENIED = 802, 803
DEVICE, SERIES, INT32, PLAIN, LZ4 = "root.a.d", ["root.a.d.s"], 1, 0, 7
TIME, INT = struct.pack(">q", 5), struct.pack(">i", 8)
RECORD = struct.pack(">bi", INT32, 8)

#: For each call, a request that the server executes if the client has the right to the call.
REQUESTS: dict[str, Any] = {
    "setTimeZone": structs.SetTimeZone(1, "UTC"),
    "getTimeZone": structs.SessionArguments(1),
    **dict.fromkeys(
        ("executeStatement", "executeStatementV2", "executeQueryStatement", "executeQueryStatementV2"),
        structs.ExecuteStatement(1, "select s from root.a.d"),
    ),
    **dict.fromkeys(
        ("executeUpdateStatement", "executeUpdateStatementV2"),
        structs.ExecuteStatement(1, "insert into root.a.d(time, s) values (5, 8)"),
    ),
    "executeBatchStatement": structs.ExecuteBatch(1, ["create database root.b"]),
    **dict.fromkeys(("executeRawDataQuery", "executeRawDataQueryV2"), structs.RawDataQuery(1, SERIES, 100, 0, 9)),
    **dict.fromkeys(("executeLastDataQuery", "executeLastDataQueryV2"), structs.LastDataQuery(1, SERIES, 100)),
    "executeFastLastDataQueryForOneDeviceV2": structs.FastLastOfDevice(1, "root.a", DEVICE, ["s"]),
    "executeFastLastDataQueryForOnePrefixPath": structs.FastLastOfPrefix(1, ["root", "a", "d"]),
    **dict.fromkeys(
        ("executeAggregationQuery", "executeAggregationQueryV2"),
        structs.AggregationQuery(1, 0, SERIES, [0], 0, 9),
    ),
    **dict.fromkeys(("fetchResults", "fetchResultsV2"), structs.FetchResults(1, "", 100, 1, True)),
    "setStorageGroup": structs.SetStorageGroup(1, "root.b"),
    "deleteStorageGroups": structs.Paths(1, ["root.a"]),
    "createTimeseries": structs.CreateTimeseries(1, "root.a.d.t", INT32, PLAIN, LZ4),
    "createAlignedTimeseries": structs.CreateAlignedTimeseries(1, "root.a.e", ["s"], [INT32], [PLAIN], [LZ4]),
    "createMultiTimeseries": structs.CreateMultiTimeseries(1, ["root.a.d.t"], [INT32], [PLAIN], [LZ4]),
    "deleteTimeseries": structs.Paths(1, SERIES),
    "deleteData": structs.DeleteData(1, SERIES, 0, 9),
    "createSchemaTemplate": structs.CreateTemplate(
        1, "u", b"".join(struct.pack(">i", len(text)) + text for text in (b"u",)) + b"\0"
    ),
    "appendSchemaTemplate": structs.AppendTemplate(1, "t", False, ["w"], [INT32], [PLAIN], [LZ4]),
    "querySchemaTemplate": structs.QueryTemplate(1, "t", 0, ""),
    "setSchemaTemplate": structs.SetTemplate(1, "t", "root.a"),
    "unsetSchemaTemplate": structs.UnsetTemplate(1, "root.c", "t"),
    "dropSchemaTemplate": structs.DropTemplate(1, "unused"),
    "createTimeseriesUsingSchemaTemplate": structs.ActivateTemplate(1, ["root.c.d"]),
    **dict.fromkeys(
        ("insertTablet", "testInsertTablet"), structs.InsertTablet(1, DEVICE, ["s"], INT + b"\0", TIME, [INT32], 1)
    ),
    **dict.fromkeys(
        ("insertTablets", "testInsertTablets"),
        structs.InsertTablets(1, [DEVICE], [["s"]], [INT + b"\0"], [TIME], [[INT32]], [1]),
    ),
    **dict.fromkeys(("insertRecord", "testInsertRecord"), structs.InsertRecord(1, DEVICE, ["s"], RECORD, 5)),
    **dict.fromkeys(("insertRecords", "testInsertRecords"), structs.InsertRecords(1, [DEVICE], [["s"]], [RECORD], [5])),
    **dict.fromkeys(
        ("insertRecordsOfOneDevice", "testInsertRecordsOfOneDevice"),
        structs.InsertRecordsOfOneDevice(1, DEVICE, [["s"]], [RECORD], [5]),
    ),
    **dict.fromkeys(
        ("insertStringRecord", "testInsertStringRecord"), structs.InsertStringRecord(1, DEVICE, ["s"], ["8"], 5)
    ),
    **dict.fromkeys(
        ("insertStringRecords", "testInsertStringRecords"),
        structs.InsertStringRecords(1, [DEVICE], [["s"]], [["8"]], [5]),
    ),
    **dict.fromkeys(
        ("insertStringRecordsOfOneDevice", "testInsertStringRecordsOfOneDevice"),
        structs.InsertStringRecordsOfOneDevice(1, DEVICE, [["s"]], [["8"]], [5]),
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThriftServer]:
    """Yield a server that has a point, a template set on a path, and a template that is not set."""
    made = ThriftServer(tmp_path_factory.mktemp("matrix"))
    directory = made.api.node.directory
    assert directory is not None
    directory.change(CreateUser("boss", hash_password(ROOT, Cost(10)), administrator=True))
    with made.connect() as root:
        root.open()
        root.execute("create database root.c")
        root.execute("insert into root.a.d(time, s) values (1, 7)")
        root.execute("create device template t (s INT32)")
        root.execute("create device template unused (s INT32)")
        root.execute("set device template t to root.c")
    yield made
    made.close()


def state(server: ThriftServer) -> list[list[tuple[Any, ...]]]:
    """Return all the data and settings that the calls could change."""
    statements = ("show databases", "show timeseries", "select * from root.**", "show device templates")
    with server.connect() as boss:
        boss.open("boss", ROOT)
        return [boss.execute(statement).all() for statement in statements]


def request_of(client: ThriftClient, name: str) -> Any:
    """Return the request for a call, with the id of the client's statement if the request needs one."""
    request = REQUESTS[name]
    if isinstance(request, structs.AggregationQuery):
        return dataclasses.replace(request, statement_id=client.statement_id)
    return request


def answer_of(client: ThriftClient, name: str) -> Any:
    method = METHODS[name]
    assert method.answer is not None
    kind = type(method.answer(structs.Status(200)))
    return client.call(name, request_of(client, name), kind, bare=method.bare)


def code_of(answer: Any) -> int:
    """Return the code of an answer. If the answer has several parts, they must all have the same code."""
    status = answer if isinstance(answer, structs.Status) else answer.status
    (code,) = {part.code for part in status.parts or [status]}
    return code


def test_each_call_is_in_the_matrix() -> None:
    assert sorted(METHODS.keys() - OPEN_TO_ALL) == sorted(REQUESTS)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_without_a_login_nothing_is_done(server: ThriftServer, name: str) -> None:
    before = state(server)
    with server.connect() as client:
        assert NOT_LOGGED_IN == code_of(answer_of(client, name))
    assert before == state(server)


def test_after_a_login_that_failed_nothing_is_done(server: ThriftServer) -> None:
    before = state(server)
    with server.connect() as client:
        request = structs.OpenSession(2, "UTC", "root", "wrong")
        assert 801 == client.call("openSession", request, structs.OpenSessionAnswer).status.code
        assert {NOT_LOGGED_IN} == {code_of(answer_of(client, name)) for name in REQUESTS}
    assert before == state(server)


@pytest.mark.parametrize("name", sorted(REQUESTS.keys() - ANY_USER - TESTS))
def test_a_user_without_privileges_changes_and_sees_nothing(server: ThriftServer, name: str) -> None:
    before = state(server)
    with server.connect() as client:
        client.open("ann", ANN)
        answer = answer_of(client, name)
        if name == OF_ALL_THAT_IS_SEEN:
            assert (200, []) == (code_of(answer), [row for block in answer.blocks for row in decode_block(block)])
        else:
            assert DENIED == code_of(answer)
    assert before == state(server)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_a_session_whose_password_was_changed_is_over(server: ThriftServer, name: str) -> None:
    before = state(server)
    with server.connect() as client:
        client.open()
        directory = server.api.node.directory
        assert directory is not None
        directory.change(SetPassword("root", hash_password(ROOT, Cost(10))))
        client.send_frame(message(name, request_bytes(request_of(client, name), bare=METHODS[name].bare)))
        assert client.is_closed()
    assert before == state(server)
