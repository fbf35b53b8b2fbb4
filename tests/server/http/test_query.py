"""Statements by URL: formats, methods, parameters, streams, errors."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from server.http.http_node import HttpNode, http_server
from waiting import wait_until

from saros_server.api import operations
from saros_server.api.calls import Peer
from saros_server.api.insert_request import InsertRequest

SELECT = "select x, ok, name from root.a.d"
ARROW = "application/vnd.apache.arrow.stream"
ROWS = 500_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    with http_server(tmp_path_factory.mktemp("query") / "data") as made:
        made.written(
            "insert into root.a.d(time, x, ok, name) values (1, 1.5, true, 'a,\"b\"'), (2000, 2.5, false, null)",
            "insert into root.a.d(time, raw) values (1, X'cafe')",
        )
        peer = Peer.at("127.0.0.1")
        connection = made.api.connect(peer)
        token = connection.call(operations.OPEN, b"", operations.Login()).token
        large = {f"s{number}": np.arange(ROWS) + 0.5 for number in range(4)}
        connection.call(operations.INSERT, token, InsertRequest("root.large.d", None, 0, np.arange(ROWS), large))
        yield made


def test_csv(node: HttpNode) -> None:
    answer = node.client.get("/query.csv", params={"sql": SELECT})
    assert (200, "text/csv; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
    expected = (
        '"Time","root.a.d.x","root.a.d.ok","root.a.d.name"\n'
        '"1970-01-01T00:00:00.001Z",1.5,true,"a,""b"""\n'
        '"1970-01-01T00:00:02.000Z",2.5,false,\n'
    )
    assert expected == answer.text


def test_json_lines(node: HttpNode) -> None:
    answer = node.client.get("/query.json", params={"sql": "select x, raw, name from root.a.d"})
    assert [
        {"Time": "1970-01-01T00:00:00.001Z", "root.a.d.x": 1.5, "root.a.d.raw": "0xcafe", "root.a.d.name": 'a,"b"'},
        {"Time": "1970-01-01T00:00:02.000Z", "root.a.d.x": 2.5, "root.a.d.raw": None, "root.a.d.name": None},
    ] == [json.loads(line) for line in answer.text.splitlines()]


def test_arrow_and_parquet_have_the_types_of_the_engine(node: HttpNode) -> None:
    streamed = pa.ipc.open_stream(node.client.get("/query.arrow", params={"sql": SELECT}).content).read_all()
    stored = pq.read_table(io.BytesIO(node.client.get("/query.parquet", params={"sql": SELECT}).content))
    assert [pa.timestamp("ms", "UTC"), pa.float64(), pa.bool_(), pa.string()] == streamed.schema.types
    assert streamed.to_pylist() == stored.to_pylist()
    assert [1.5, 2.5] == streamed.column(1).to_pylist()


def test_duckdb_reads_a_result_while_it_comes(node: HttpNode) -> None:
    duckdb = pytest.importorskip("duckdb")
    statement = urlencode({"sql": "select s0, s3 from root.large.d"})
    with urlopen(f"{node.url}/query.arrow?{statement}") as response:
        rows = duckdb.from_arrow(pa.ipc.open_stream(response))
        found = rows.aggregate('count(*), sum("root.large.d.s0"), max("root.large.d.s3")').fetchall()
    assert [(ROWS, ROWS * ROWS / 2, ROWS - 0.5)] == found


def test_duckdb_reads_a_file_of_parquet(node: HttpNode, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "result.parquet"
    file.write_bytes(node.client.get("/query.parquet", params={"sql": SELECT}).content)
    columns = 'epoch_ms("Time"), "root.a.d.x", "root.a.d.ok", "root.a.d.name"'
    found = duckdb.read_parquet(str(file)).project(columns).fetchall()
    assert [(1, 1.5, True, 'a,"b"'), (2000, 2.5, False, None)] == found


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("*/*", "text/csv; charset=utf-8"),
        ("application/json", "application/x-ndjson"),
        (f"text/csv;q=0.5, {ARROW}", ARROW),
        ("application/vnd.apache.parquet", "application/vnd.apache.parquet"),
    ],
)
def test_the_accept_header_chooses_a_format(node: HttpNode, accept: str, content_type: str) -> None:
    answer = node.client.get("/query", params={"sql": "show databases"}, headers={"accept": accept})
    assert (200, content_type) == (answer.status_code, answer.headers["content-type"])


def test_another_format_is_refused(node: HttpNode) -> None:
    answer = node.client.get("/query", params={"sql": "show databases"}, headers={"accept": "image/png"})
    assert (406, 2003) == (answer.status_code, answer.json()["code"])


@pytest.mark.parametrize(
    "statement",
    [
        "insert into root.a.d(time, x) values (9, 9)",
        "select x into root.b.d(x) from root.a.d",
        "explain analyze select x into root.b.d(x) from root.a.d",
        "create database root.b",
        "set time_zone = '+01:00'",
        "kill query 'x'",
        "flush",
        "create user eve 'a-long-password'",
    ],
)
def test_get_only_reads(node: HttpNode, statement: str) -> None:
    answer = node.client.get("/query", params={"sql": statement})
    assert (405, 301, "POST") == (answer.status_code, answer.json()["code"], answer.headers["allow"])
    assert '"count(root.a.d.x)"\n2\n' == node.client.get("/query", params={"sql": "select count(x) from root.a.d"}).text


def test_settings_of_the_session_cannot_be_changed(node: HttpNode) -> None:
    answer = node.sql("set time_zone = '+01:00'")
    assert (400, 301) == (answer.status_code, answer.json()["code"])


def test_post_takes_text_form_and_json(node: HttpNode) -> None:
    text = "select x from root.a.d where x > 2"
    bodies = (
        {"content": text},
        {"data": {"sql": text}},
        {"json": {"sql": "select x from root.a.d where x > ?", "parameters": [2]}},
        {"params": {"sql": text}},
    )
    expected = '"Time","root.a.d.x"\n"1970-01-01T00:00:02.000Z",2.5\n'
    assert [expected] * 4 == [node.client.post("/query.csv", **body).text for body in bodies]


def test_a_statement_without_rows_says_so(node: HttpNode) -> None:
    answer = node.sql("insert into root.c.d(time, x) values (1, 1), (2, 2)")
    assert {"code": 200, "message": "SUCCESS_STATUS", "count": 2} == answer.json()


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"params": {"sql": "selec"}}, 400, 700),
        ({"params": {}}, 400, 2003),
        ({"params": {"sql": "show databases", "timeout_ms": "soon"}}, 400, 2003),
        ({"params": {"sql": "select x from root.a.d where x = ?"}}, 400, 2003),
    ],
)
def test_errors_have_code_and_message(node: HttpNode, options: dict[str, object], status: int, code: int) -> None:
    answer = node.client.get("/query", **options)  # type: ignore[arg-type]
    assert (status, code) == (answer.status_code, answer.json()["code"]), answer.text


def test_a_large_result_is_streamed(node: HttpNode) -> None:
    with node.client.stream("GET", "/query.arrow", params={"sql": "select * from root.large.d"}) as answer:
        assert "content-length" not in answer.headers
        table = pa.ipc.open_stream(answer.read()).read_all()
    assert (ROWS, (ROWS - 1) + 0.5) == (table.num_rows, table.column(4)[-1].as_py())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["csv", "json", "parquet"])
def test_a_large_result_in_other_formats(node: HttpNode, name: str) -> None:
    body = node.client.get(f"/query.{name}", params={"sql": "select s0, s1 from root.large.d"}).content
    match name:
        case "csv":
            found = pa.csv.read_csv(io.BytesIO(body)).column(1)
        case "json":
            found = pa.chunked_array([[json.loads(line)["root.large.d.s0"] for line in body.splitlines()]])
        case _:
            found = pq.read_table(io.BytesIO(body)).column(1)
    assert np.array_equal(np.arange(ROWS) + 0.5, found.to_numpy())


def test_a_client_that_goes_away_ends_the_query(node: HttpNode) -> None:
    with node.client.stream("GET", "/query.csv", params={"sql": "select * from root.large.d"}) as answer:
        next(answer.iter_raw())
    wait_until(lambda: node.api.node.engine.open_queries == 0)


def test_head_runs_nothing(node: HttpNode) -> None:
    answer = node.client.head("/query.parquet", params={"sql": "selec"})
    assert (200, "application/vnd.apache.parquet") == (answer.status_code, answer.headers["content-type"])
    assert "content-length" not in answer.headers  # programs would take a length of 0 to mean that the file is empty


def test_times_outside_the_calendar_are_integers(node: HttpNode) -> None:
    node.written(f"insert into root.far.d(time, x) values ({2**62}, 1)")
    expected = f'"Time","root.far.d.x"\n{2**62},1\n'
    assert expected == node.client.get("/query", params={"sql": "select x from root.far.d"}).text


def test_equal_names_are_told_apart_in_json(node: HttpNode) -> None:
    row = json.loads(node.client.get("/query.json", params={"sql": "select x, x from root.a.d limit 1"}).text)
    assert {"Time": "1970-01-01T00:00:00.001Z", "root.a.d.x": 1.5, "root.a.d.x (2)": 1.5} == row
