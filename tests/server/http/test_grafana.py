"""The requests of Grafana's data source for IoTDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from server.http.http_node import HttpNode, http_server


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    folder = tmp_path_factory.mktemp("grafana") / "data"
    folder.mkdir()
    (folder / "saros.toml").write_text('time_unit = "us"\n')
    with http_server(folder) as made:
        made.written(
            "insert into root.a.d1(time, x, name) values (1000, 1.5, 'on'), (2000, null, null), (3999, 3.5, 'off')",
            "insert into root.a.d2(time, x) values (9000, 9)",
        )
        yield made


def ask(node: HttpNode, call: str, body: Any, version: str = "v1") -> Any:
    answer = node.client.post(f"/grafana/{version}/{call}", json=body)
    assert 200 == answer.status_code, answer.text
    return answer.json()


PANEL = {
    "expression": ["x", "name"],
    "prefixPath": ["root.a.d1"],
    "startTime": 1,
    "endTime": 3,
    "condition": "",
    "control": "",
}


def test_login(node: HttpNode) -> None:
    assert {"code": 200, "message": "SUCCESS_STATUS"} == node.client.get("/grafana/v1/login").json()


def test_a_panel(node: HttpNode) -> None:
    answer = ask(node, "query/expression", PANEL)
    assert {
        "expressions": ["root.a.d1.x", "root.a.d1.name"],
        "timestamps": [1, 3],
        "values": [[1.5, 3.5], ["on", "off"]],
        "columnNames": None,
        "code": None,
        "message": None,
    } == answer


def test_condition_and_control(node: HttpNode) -> None:
    body = {**PANEL, "expression": ["count(x)"], "condition": "x > 2 or x < 0", "control": "group by ([0, 4000), 2ms)"}
    answer = ask(node, "query/expression", body)
    assert ([0, 2], [[0, 1]]) == (answer["timestamps"], answer["values"])


def test_texts_have_no_null(node: HttpNode) -> None:
    node.written("insert into root.a.d3(time, x, name) values (1000, 1, 'a'), (2000, 2, null)")
    assert [[1.0, 2.0], ["a", ""]] == ask(node, "query/expression", {**PANEL, "prefixPath": ["root.a.d3"]})["values"]


def test_version_2_has_other_names(node: HttpNode) -> None:
    body = {"expression": ["x"], "prefix_path": ["root.a.*"], "start_time": 0, "end_time": 10}
    answer = ask(node, "query/expression", body, "v2")
    assert {"root.a.d1.x", "root.a.d2.x"} <= set(answer["expressions"])
    assert answer["column_names"] is None


def test_variables_and_nodes(node: HttpNode) -> None:
    assert ["root.a.d1", "root.a.d2"] == ask(node, "variable", {"sql": "show child paths root.a"})[:2]
    assert ["a"] == ask(node, "node", ["root"])
    assert ["d1", "d2"] == ask(node, "node", ["root", "a"])[:2]


@pytest.mark.parametrize(
    ("call", "body", "code"),
    [
        ("variable", {"sql": "create database root.b"}, 301),
        ("query/expression", {**PANEL, "control": "into root.b.d(x)"}, 700),
        ("query/expression", {**PANEL, "expression": ["x into root.b.d(x)"]}, 301),
        ("query/expression", {**PANEL, "startTime": "now"}, 303),
        ("query/expression", {**PANEL, "prefixPath": []}, 303),
        ("node", {"a": 1}, 303),
        ("node", ["root", "a; drop"], None),
    ],
)
def test_bad_requests(node: HttpNode, call: str, body: Any, code: int | None) -> None:
    answer = ask(node, call, body)
    assert (code, True) == ((answer["code"], bool(answer["message"])) if code else (None, answer == []))
