"""Damaged requests: each gets an answer that is not an internal error, and the service continues to run."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from server.http.http_node import HttpNode, http_server
from server.http.json_mutations import mutated_json
from waiting import PATIENCE_S

ROUNDS = 60
TABLET = {
    "timestamps": [1, 2],
    "measurements": ["a", "b"],
    "data_types": ["INT32", "TEXT"],
    "values": [[1, 2], ["x", None]],
    "is_aligned": False,
    "device": "root.m.d",
}
RECORDS = {
    "timestamps": [1, 2],
    "measurements_list": [["a", "b"], ["a"]],
    "data_types_list": [["INT32", "TEXT"], ["INT32"]],
    "values_list": [[1, "x"], [2]],
    "is_aligned": False,
    "devices": ["root.m.d", "root.m.e"],
}
PANEL = {
    "expression": ["a"],
    "prefix_path": ["root.m.d"],
    "start_time": 0,
    "end_time": 10,
    "condition": "a > 0",
    "control": "limit 5",
}
FILE = b"time,a\n1,1\n2,NA\n3,x\n"
IMPORT = {
    "job": "b" * 32,
    "size": len(FILE),
    "name": "m.csv",
    "format": "csv",
    "device": "root.m.{file}",
    "time_columns": ["time"],
    "zone": "UTC",
    "delimiter": ",",
    "decimal": ".",
    "encoding": "utf-8",
    "skip_lines": 0,
    "nulls": ["NA"],
    "columns": ["a"],
    "names": {"a": "b"},
    "types": {"a": "DOUBLE"},
    "aligned": False,
}
REQUESTS: list[tuple[str, Any]] = [
    ("/rest/v2/query", {"sql": "select a, b from root.m.d", "row_limit": 10}),
    ("/rest/v2/nonQuery", {"sql": "insert into root.m.d(time, a) values (1, 1)"}),
    ("/rest/v2/insertTablet", TABLET),
    ("/rest/v2/insertRecords", RECORDS),
    ("/grafana/v2/query/expression", PANEL),
    ("/grafana/v2/variable", {"sql": "show child paths root.m"}),
    ("/grafana/v2/node", ["root", "m"]),
    ("/query.json", {"sql": "select a from root.m.d where a > ?", "parameters": [0], "timeout_ms": 1_000}),
    ("/query.arrow", {"sql": "select a, b from root.m.d", "parameters": []}),
    ("/query.parquet", {"sql": "show devices root.**"}),
    ("/query.csv", {"sql": "select a, b from root.m.d", "parameters": []}),
    ("/import/preview", IMPORT),
    ("/import/discard", {"job": "c" * 32}),
    ("/console/query", {"sql": "select a, b from root.m.d", "parameters": [], "timeout_ms": 1_000}),
    ("/console/chart", {"sql": "select a from root.m.d", "width": 100, "from": 0, "to": 10}),
]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    with http_server(tmp_path_factory.mktemp("mutations") / "data") as made:
        made.client.post("/import/chunk", params={"job": IMPORT["job"], "offset": 0}, content=FILE)
        yield made


@pytest.mark.slow
@pytest.mark.parametrize(("path", "body"), REQUESTS, ids=[path for path, _ in REQUESTS])
def test_values_that_do_not_belong(node: HttpNode, path: str, body: Any, caplog: pytest.LogCaptureFixture) -> None:
    randomness = random.Random(path)
    for _ in range(ROUNDS):
        sent = mutated_json(randomness, body)
        answer = node.client.post(path, json=sent)
        assert answer.status_code in {200, 400, 403, 404, 405, 413, 501}, (sent, answer.text[:500])
        if answer.headers["content-type"] == "application/json":
            assert answer.json().get("code") not in {305, 2001} if isinstance(answer.json(), dict) else True, sent
    assert [] == [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert 200 == node.client.post(path, json=body).status_code


@pytest.mark.slow
@pytest.mark.parametrize(("path", "body"), REQUESTS[:4], ids=[path for path, _ in REQUESTS[:4]])
def test_bytes_that_do_not_belong(node: HttpNode, path: str, body: Any, caplog: pytest.LogCaptureFixture) -> None:
    randomness = random.Random(path)
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(content)}\r\n\r\n"
    for _ in range(ROUNDS):
        data = bytearray(head.encode() + content)
        for _ in range(randomness.randint(1, 4)):
            data[randomness.randrange(len(data))] = randomness.randrange(256)
        with socket.create_connection(("127.0.0.1", node.service.port), PATIENCE_S) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            received = client.recv(1 << 16)
            assert b" 500 " not in received[:20], bytes(data)
    assert [] == [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert 200 == node.client.post(path, json=body).status_code
