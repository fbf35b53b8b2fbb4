"""Statements and queries of IoTDB's session protocol.

The tests cover results in pages, queries given as paths and times instead of SQL, batches of statements, and errors.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from server.thrift_client import Failed, Result, ThriftClient, ThriftServer, checked, decode_block
from waiting import wait_equal

from saros_server.process.version import RELEASE
from saros_server.thrift import results, structs
from saros_server.thrift.structs import DataSet, ExecuteAnswer, FetchAnswer, Status

INSERT = "insert into root.a.d(time, i, t) values (1, 1, 'one'), (2, 2, 'two'), (3, null, 'three'), (4, 4, null)"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ThriftServer]:
    made = ThriftServer(tmp_path)
    yield made
    made.close()


@pytest.fixture
def client(server: ThriftServer) -> Iterator[ThriftClient]:
    with server.connect() as made:
        made.open()
        made.execute("create timeseries root.a.d.i INT32")
        made.execute(INSERT)
        yield made


def asked(client: ThriftClient, name: str, request: object) -> Result:
    return Result(client, checked(client.call(name, request, ExecuteAnswer)), 1_000)


def fill(server: ThriftServer, rows: int) -> None:
    server.api._own.insert("root.big.d", np.arange(rows), {"x": np.arange(float(rows))}, aligned=None)


# ---------------------------------------------------------------------------------------------- results


def test_a_query_is_described_without_its_time_column(client: ThriftClient) -> None:
    answer = client.execute("select i, t from root.a.d").answer
    assert ["root.a.d.i", "root.a.d.t"] == answer.columns
    assert (["INT32", "TEXT"], False, False, False) == (
        answer.types,
        answer.ignore_time,
        answer.more,
        answer.table_model,
    )
    assert ({"root.a.d.i": 0, "root.a.d.t": 1}, [0, 1]) == (answer.column_places, answer.column_blocks)


def test_rows_come_with_times_and_nulls(client: ThriftClient) -> None:
    rows = client.execute("select i, t from root.a.d").all()
    assert [(1, 1, b"one"), (2, 2, b"two"), (3, None, b"three"), (4, 4, None)] == rows


@pytest.mark.parametrize("name", ["executeStatementV2", "executeQueryStatementV2"])
def test_results_without_times_say_so(client: ThriftClient, name: str) -> None:
    result = client.execute("select count(i), max_time(t) from root.a.d", name=name)
    assert (True, [(3, 3)]) == (result.answer.ignore_time, result.all())
    result = client.execute("select 1", name=name)  # session pools use this statement to check a connection
    assert (True, ["1"], ["INT64"], [(1,)]) == (
        result.answer.ignore_time,
        result.answer.columns,
        result.answer.types,
        result.all(),
    )
    result = client.execute("show databases ", name=name)  # as JDBC sends it
    assert (True, "Database", "TEXT") == (result.answer.ignore_time, result.answer.columns[0], result.answer.types[0])
    assert [b"root.a"] == [row[0] for row in result.all()]


def test_last_points_have_the_shape_that_clients_know(client: ThriftClient) -> None:
    result = client.execute("select last i, t from root.a.d")
    assert (["Timeseries", "Value", "DataType"], ["TEXT"] * 3) == (result.answer.columns, result.answer.types)
    assert [(3, b"root.a.d.t", b"three", b"TEXT"), (4, b"root.a.d.i", b"4", b"INT32")] == sorted(result.all())


def test_an_empty_result_has_columns_and_no_rows(client: ThriftClient) -> None:
    result = client.execute("select i from root.a.d where time > 100")
    assert (["root.a.d.i"], [[]]) == (result.answer.columns, result.pages())


def test_statements_without_rows_answer_a_status_only(client: ThriftClient) -> None:
    for name in ("executeStatementV2", "executeQueryStatementV2", "executeUpdateStatement", "executeUpdateStatementV2"):
        answer = client.execute(f"insert into root.a.d(time, i) values ({len(name)}, 1)", name=name).answer
        assert ExecuteAnswer(Status()) == answer
    answer = client.execute("select i from root.a.d", name="executeUpdateStatement").answer
    assert ExecuteAnswer(Status()) == answer


def test_pages_have_as_many_rows_as_the_client_asks_for(client: ThriftClient, server: ThriftServer) -> None:
    fill(server, 1_000)
    pages = client.execute("select x from root.big.d", rows=300).pages()
    assert [300, 300, 300, 100] == [len(page) for page in pages]
    assert [(time, float(time)) for time in range(1_000)] == [row for page in pages for row in page]


def test_a_small_page_is_one_block(client: ThriftClient, server: ThriftServer) -> None:
    for device in range(5):
        server.api._own.insert(f"root.b.d{device}", np.arange(6_000), {"x": np.arange(6_000.0)}, aligned=None)
    answer = client.execute("select x from root.b.* align by device", rows=20_000).answer
    assert [20_000] == [rows_of(block) for block in answer.blocks]
    assert [10_000] == [rows_of(block) for block in client.fetch(answer.query_id, 20_000).blocks]


def test_without_a_fetch_size_pages_have_the_usual_one(client: ThriftClient, server: ThriftServer) -> None:
    fill(server, results.PAGE_ROWS + 1)
    result = client.execute("select x from root.big.d", rows=0)  # as DB-API sends it
    assert [results.PAGE_ROWS, 1] == [len(page) for page in result.pages()]


def test_a_result_of_exactly_one_page_ends_with_it(client: ThriftClient) -> None:
    result = client.execute("select i, t from root.a.d", rows=4)
    assert (False, [4]) == (result.answer.more, [len(page) for page in result.pages()])


def test_a_large_page_is_divided_by_its_bytes(client: ThriftClient, server: ThriftServer) -> None:
    rows, page_bytes = 400_000, 16 << 20
    fill(server, rows)
    columns = ", ".join(f"x + {number}" for number in range(10))
    answer = client.execute(f"select {columns} from root.big.d", rows=rows).answer
    pages, more = [answer.blocks], answer.more
    while more:
        page = client.fetch(answer.query_id, rows)
        pages, more = [*pages, page.blocks], page.more
    assert rows == sum(rows_of(block) for blocks in pages for block in blocks)
    sizes = [sum(map(len, blocks)) for blocks in pages]
    assert (True, True) == (len(sizes) > 1, max(sizes) < 2 * page_bytes)
    wait_equal(0, lambda: server.api.node.engine.open_queries)


def rows_of(block: bytes) -> int:
    return struct.unpack_from(">i", block, 4 + struct.unpack_from(">i", block)[0])[0]


def test_an_operation_that_is_canceled_ends_its_query(client: ThriftClient, server: ThriftServer) -> None:
    fill(server, 400_000)
    columns = ", ".join(f"x + {number}" for number in range(24))
    result = client.execute(f"select {columns} from root.big.d", rows=10)
    assert 1 == server.api.node.engine.open_queries
    client.done("cancelOperation", structs.CancelOperation(client.session_id, result.answer.query_id))
    wait_equal(0, lambda: server.api.node.engine.open_queries)
    with pytest.raises(Failed, match="not open on this connection"):
        client.fetch(result.answer.query_id, 10)


def test_a_connection_keeps_a_limited_number_of_results(client: ThriftClient, server: ThriftServer) -> None:
    found = [client.execute("select t from root.a.d", rows=1) for _ in range(results.RESULTS_MAX + 1)]
    with pytest.raises(Failed, match="not open"):
        found[0].pages()
    assert [3, 3] == [len(result.all()) for result in (found[1], found[-1])]


def test_a_timeout_ends_a_query_with_its_code(client: ThriftClient, server: ThriftServer) -> None:
    fill(server, 3_000_000)
    columns = ", ".join(f"sin(x + {number})" for number in range(24))
    with pytest.raises(Failed) as failed:
        client.execute(f"select {columns} from root.big.d", rows=1, timeout_ms=1).pages()
    assert 720 == failed.value.code
    wait_equal(0, lambda: server.api.node.engine.open_queries)


# ---------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("selec 1", 700),
        ("select sinus(i) from root.a.d", 701),
        ("create database root.a", 501),
        ("delete database root.nothing", 508),
        ("create timeseries root.a.d.i FLOAT", 503),
        ("create aligned timeseries root.a.d(k FLOAT)", 609),
        ("create pipe p with sink ('a'='b')", 300),
    ],
)
def test_errors_have_the_codes_of_iotdb(client: ThriftClient, text: str, code: int) -> None:
    with pytest.raises(Failed) as failed:
        client.execute(text)
    assert code == failed.value.code
    assert str(failed.value)


def test_a_batch_runs_every_statement_and_reports_each(client: ThriftClient) -> None:
    statements = [f"insert into root.a.d(time, i) values ({time}, 7)" for time in (11, 12)]
    client.done("executeBatchStatement", structs.ExecuteBatch(client.session_id, statements))
    statements.insert(1, "insert into")
    status = client.call("executeBatchStatement", structs.ExecuteBatch(client.session_id, statements), Status)
    assert (302, [200, 700, 200]) == (status.code, [part.code for part in status.parts])
    assert [(11, 7), (12, 7)] == client.execute("select i from root.a.d where i = 7").all()


# ---------------------------------------------------------------------------------------------- older clients


def old_rows(found: DataSet, forms: str) -> list[tuple[object, ...]]:
    """Return the rows of a data set, with times; `forms` has a `struct` format for each column, or `t` for texts."""
    times = struct.unpack(f">{len(found.times) // 8}q", found.times)
    columns = []
    for values, bits, form in zip(found.values, found.present, forms, strict=True):
        at, column = 0, []
        for row in range(len(times)):
            if not bits[row // 8] >> (7 - row % 8) & 1:
                column.append(None)
                continue
            if form == "t":
                (size,) = struct.unpack_from(">i", values, at)
                column.append(values[at + 4 : at + 4 + size])
                at += 4 + size
            else:
                column += struct.unpack_from(f">{form}", values, at)
                at += struct.calcsize(f">{form}")
        assert at == len(values)
        columns.append(column)
    return list(zip(times, *columns, strict=True))


def test_old_clients_fetch_rows_of_every_type_until_nothing_comes(client: ThriftClient) -> None:
    for name, type_ in (
        ("b", "BOOLEAN"),
        ("l", "INT64"),
        ("f", "FLOAT"),
        ("x", "DOUBLE"),
        ("y", "DATE"),
        ("z", "BLOB"),
    ):
        client.execute(f"create timeseries root.a.d.{name} {type_}")
    client.execute("insert into root.a.d(time, b, l, f, x, y, z) values (1, true, 5, 1.5, 2.5, '2024-02-29', X'00ff')")
    client.execute("insert into root.a.d(time, b) values (10, false)")
    request = structs.ExecuteStatement(1, "select b, i, l, f, x, t, y, z from root.a.d", client.statement_id, 3)
    answer = checked(client.call("executeQueryStatement", request, ExecuteAnswer))
    assert (None, 3) == (answer.blocks, len(answer.data_set.times) // 8)
    forms, found = "?iqfdtit", old_rows(answer.data_set, "?iqfdtit")
    while True:
        fetch = structs.FetchResults(client.statement_id, "", 3, answer.query_id, True)  # with swapped ids
        page = checked(client.call("fetchResults", fetch, FetchAnswer))
        found += old_rows(page.data_set, forms)
        if not page.has_result:
            break
    nothing = (None,) * 8
    assert [
        (1, True, 1, 5, 1.5, 2.5, b"one", 20240229, b"\0\xff"),
        (2, None, 2, None, None, None, b"two", None, None),
        (3, *nothing[:5], b"three", None, None),
        (4, None, 4, *nothing[:6]),
        (10, False, *nothing[:7]),
    ] == found


def test_old_clients_get_statuses_results_without_times_and_empty_ones(client: ThriftClient) -> None:
    def ask(text: str) -> ExecuteAnswer:
        request = structs.ExecuteStatement(1, text, client.statement_id, 10)
        return checked(client.call("executeStatement", request, ExecuteAnswer))

    assert ExecuteAnswer(Status()) == ask("insert into root.a.d(time, i) values (9, 9)")
    answer = ask("select count(i) from root.a.d")
    assert (True, [(0, 4)]) == (answer.ignore_time, old_rows(answer.data_set, "q"))
    answer = ask("select i, t from root.a.d where time > 100")
    assert DataSet(b"", [b"", b""], [b"", b""]) == answer.data_set
    answer = checked(
        client.call("executeRawDataQuery", structs.RawDataQuery(1, ["root.a.d.i"], 10, 2, 4), ExecuteAnswer)
    )
    assert [(2, 2)] == old_rows(answer.data_set, "i")
    answer = checked(client.call("executeLastDataQuery", structs.LastDataQuery(1, ["root.a.d.t"], 10), ExecuteAnswer))
    assert [(3, b"root.a.d.t", b"three", b"TEXT")] == old_rows(answer.data_set, "ttt")


def test_columns_of_one_name_come_after_the_others(client: ThriftClient) -> None:
    """Clients of IoTDB 1.3 find a column by its name among the distinct names; clients of 2.0 use its position."""
    text = "select i, i, t from root.a.d where time = 1"
    answer = client.execute(text).answer
    assert ({"root.a.d.i": 0, "root.a.d.t": 1}, [0, 2, 1]) == (answer.column_places, answer.column_blocks)
    assert (["INT32", "INT32", "TEXT"], [(1, 1, b"one", 1)]) == (answer.types, decode_block(answer.blocks[0]))
    old = checked(client.call("executeQueryStatement", structs.ExecuteStatement(1, text), ExecuteAnswer))
    assert [(1, 1, b"one")] == old_rows(old.data_set, "it")


# ---------------------------------------------------------------------------------------------- queries by their parts


def test_raw_data_is_from_start_to_before_end(client: ThriftClient) -> None:
    result = asked(client, "executeRawDataQueryV2", structs.RawDataQuery(1, ["root.a.d.i", "root.`a`.d.t"], 10, 2, 4))
    assert (["root.a.d.i", "root.a.d.t"], [(2, 2, b"two"), (3, None, b"three")]) == (
        result.answer.columns,
        result.all(),
    )


def test_last_data_is_not_before_its_time(client: ThriftClient) -> None:
    result = asked(client, "executeLastDataQueryV2", structs.LastDataQuery(1, ["root.a.d.*"], 10, 4))
    assert [(4, b"root.a.d.i", b"4", b"INT32")] == result.all()


def test_last_data_of_a_device_and_of_a_prefix(client: ThriftClient) -> None:
    request = structs.FastLastOfDevice(1, "root.a", "root.a.d", ["i", "nothing"])
    result = asked(client, "executeFastLastDataQueryForOneDeviceV2", request)
    assert [(4, b"root.a.d.i", b"4", b"INT32")] == result.all()
    for prefix in (["root", "a"], ["root.a"]):
        result = asked(client, "executeFastLastDataQueryForOnePrefixPath", structs.FastLastOfPrefix(1, prefix))
        assert [b"root.a.d.i", b"root.a.d.t"] == sorted(row[1] for row in result.all())


def test_aggregations_over_all_a_range_and_windows(client: ThriftClient) -> None:
    paths, functions = ["root.a.d.i", "root.a.d.i"], [0, 7]
    request = structs.AggregationQuery(1, client.statement_id, paths, functions)
    result = asked(client, "executeAggregationQueryV2", request)
    assert ["COUNT(root.a.d.i)", "MAX_VALUE(root.a.d.i)"] == result.answer.columns
    assert (True, [(3, 4)]) == (result.answer.ignore_time, result.all())
    request = structs.AggregationQuery(1, client.statement_id, paths, functions, 1, 3)
    assert [(2, 2)] == asked(client, "executeAggregationQueryV2", request).all()
    request = structs.AggregationQuery(1, client.statement_id, paths, functions, 1, 5, 2)
    assert [(1, 2, 2), (3, 1, 4)] == asked(client, "executeAggregationQueryV2", request).all()
    request = structs.AggregationQuery(1, client.statement_id, paths, functions, 1, 5, 1, 2)
    assert [(1, 1, 1), (3, 0, None)] == asked(client, "executeAggregationQueryV2", request).all()


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_are_in_the_unit_of_the_database(tmp_path: Path, unit: str) -> None:
    server = ThriftServer(tmp_path, options=f'time_unit = "{unit}"\n')
    try:
        with server.connect() as client:
            assert {"timestamp_precision": unit} == client.open().configuration
            client.execute("insert into root.a.d(time, x) values (1, 1), (2, 2), (3, 3)")
            raw = asked(client, "executeRawDataQueryV2", structs.RawDataQuery(1, ["root.a.d.x"], 10, 2, 4))
            assert [(2, 2.0), (3, 3.0)] == raw.all()
            request = structs.AggregationQuery(1, client.statement_id, ["root.a.d.x"], [0], 1, 5, 2)
            assert [(1, 2), (3, 1)] == asked(client, "executeAggregationQueryV2", request).all()
            properties = client.call("getProperties", structs.NoArguments(), structs.ServerProperties, bare=True)
            assert unit == properties.time_unit
    finally:
        server.close()


def test_aggregations_of_more_than_a_series_are_refused(client: ThriftClient) -> None:
    for functions in ([22], [99], [-1], [0, 1]):
        request = structs.AggregationQuery(1, client.statement_id, ["root.a.d.i"], functions)
        with pytest.raises(Failed, match=r"write the query in SQL|give one for each path"):
            asked(client, "executeAggregationQueryV2", request)


@pytest.mark.parametrize(
    "path",
    ["root.a.d.i from root; drop database root.a", "root.a.d.i, t", "root.a.d.i)", "root", "", "x.y", "root..i", "i"],
)
def test_paths_are_no_sql(client: ThriftClient, path: str) -> None:
    for name, request in (
        ("executeRawDataQueryV2", structs.RawDataQuery(1, [path], 10, 2, 4)),
        ("executeLastDataQueryV2", structs.LastDataQuery(1, [path])),
        ("executeAggregationQueryV2", structs.AggregationQuery(1, client.statement_id, [path], [0])),
    ):
        with pytest.raises(Failed) as failed:
            asked(client, name, request)
        assert 509 == failed.value.code


def test_a_measurement_with_any_characters_is_a_name(client: ThriftClient) -> None:
    client.execute("insert into root.a.d(time, `a.b\"'`) values (9, 9)")
    for name in ("a.b\"'", "`a.b\"'`"):
        request = structs.FastLastOfDevice(1, "root.a", "root.a.d", [name])
        (row,) = asked(client, "executeFastLastDataQueryForOneDeviceV2", request).all()
        assert (9, b"root.a.d.`a.b\"'`") == row[:2]


def test_queries_of_nothing_are_refused(client: ThriftClient) -> None:
    with pytest.raises(Failed, match="the call names no paths"):
        asked(client, "executeRawDataQueryV2", structs.RawDataQuery(1, [], 10, 2, 4))


def test_running_queries_have_their_times_as_those_of_rows(client: ThriftClient) -> None:
    """Clients of IoTDB 1.3 can read the times of rows, but no values of type TIMESTAMP."""
    result = client.execute("show queries")
    assert ("QueryId", "TEXT", False) == (result.answer.columns[0], result.answer.types[0], result.answer.ignore_time)


def test_the_version_names_the_protocol_that_is_spoken(server: ThriftServer) -> None:
    with server.connect() as client:
        spoken = f"V_{client.open().server_protocol + 1}"
        assert [(RELEASE.encode(), f"Saros, IoTDB protocol {spoken}".encode())] == client.execute("show version").all()


def test_statements_that_stock_clients_send_by_themselves_work(client: ThriftClient) -> None:
    for text, column in (
        ("SHOW VERSION", "Version"),
        ("SHOW DATANODES", "NodeID"),
        ("SHOW CURRENT_TIMESTAMP", "CurrentTimestamp"),
        ("SHOW VARIABLES", "Variable"),
    ):
        result = client.execute(text)
        assert (column, True) == (result.answer.columns[0], len(result.all()) > 0)
    client.execute("SET TIME_ZONE = '+08:00'")
