"""IoTDB's REST service: requests as in its documentation and clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server.http.http_node import HttpNode, http_server, make_users
from server.secured import ANN, ROOT

DONE = {"code": 200, "message": "SUCCESS_STATUS"}
TABLET: dict[str, Any] = {
    "timestamps": [1635232143960, 1635232153960],
    "measurements": ["s3", "s4", "s5", "s6", "s7"],
    "data_types": ["TEXT", "INT32", "BOOLEAN", "DOUBLE", "DATE"],
    "values": [["2aa", ""], [11, None], [False, True], [1, 2.5], ["2024-02-29", "2024-03-01"]],
    "is_aligned": False,
    "device": "root.sg27",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    with http_server(tmp_path_factory.mktemp("rest") / "data") as made:
        assert DONE == made.client.post("/rest/v2/insertTablet", json=TABLET).json()
        yield made


def ask(node: HttpNode, call: str, body: Any, version: str = "v2") -> Any:
    answer = node.client.post(f"/rest/{version}/{call}", json=body)
    assert 200 == answer.status_code, answer.text
    return answer.json()


def test_ping(node: HttpNode) -> None:
    assert DONE == node.client.get("/ping").json()


def test_a_select_by_column(node: HttpNode) -> None:
    expected = {
        "expressions": ["root.sg27.s3", "root.sg27.s4", "root.sg27.s5", "root.sg27.s6", "root.sg27.s7"],
        "column_names": None,
        "data_types": ["TEXT", "INT32", "BOOLEAN", "DOUBLE", "DATE"],
        "timestamps": [1635232143960, 1635232153960],
        "values": [["2aa", ""], [11, None], [False, True], [1.0, 2.5], ["2024-02-29", "2024-03-01"]],
    }
    assert expected == ask(node, "query", {"sql": "select s3, s4, s5, s6, s7 from root.sg27"})


def test_show_last_and_aggregates(node: HttpNode) -> None:
    shown = ask(node, "query", {"sql": "show child paths root"})
    assert (["root.sg27"], None, None) == (shown["values"][0], shown["expressions"], shown["timestamps"])
    assert "ChildPaths" == shown["column_names"][0]
    last = ask(node, "query", {"sql": "select last s4 from root.sg27"})
    assert (["Timeseries", "Value", "DataType"], [1635232143960]) == (last["column_names"], last["timestamps"])
    count = ask(node, "query", {"sql": "select count(s3), count(s4) from root.sg27"})
    assert (["count(root.sg27.s3)", "count(root.sg27.s4)"], [[2], [1]]) == (count["expressions"], count["values"])
    assert count["timestamps"] is None
    alive = ask(node, "query", {"sql": "select 1, 'x' as a"})
    assert (["1", "a"], [[1], ["x"]], None) == (alive["expressions"], alive["values"], alive["timestamps"])


def test_version_1_has_other_names(node: HttpNode) -> None:
    body = {"timestamps": [1], "measurements": ["s"], "dataTypes": ["INT64"], "values": [[5]]}
    assert DONE == ask(node, "insertTablet", {**body, "isAligned": True, "deviceId": "root.v1.d"}, "v1")
    answer = ask(node, "query", {"sql": "select s from root.v1.d", "rowLimit": 5}, "v1")
    assert {"columnNames": None, "dataTypes": ["INT64"], "values": [[5]]}.items() <= answer.items()


def test_records_of_several_devices(node: HttpNode) -> None:
    body = {
        "timestamps": [1, 2, 3, 4],
        "measurements_list": [["a", "b"], ["a"], ["a", "b"], ["b"]],
        "data_types_list": [["INT32", "TEXT"], ["DOUBLE"], ["INT32", "TEXT"], ["TEXT"]],
        "values_list": [[1, "x"], [2.5], [3, None], ["z"]],
        "is_aligned": False,
        "devices": ["root.r.d1", "root.r.d2", "root.r.d1", "root.r.d1"],
    }
    assert DONE == ask(node, "insertRecords", body)
    answer = ask(node, "query", {"sql": "select a, b from root.r.d1"})
    assert ([1, 3, 4], [[1, 3, None], ["x", None, "z"]]) == (answer["timestamps"], answer["values"])
    assert [[2.5]] == ask(node, "query", {"sql": "select a from root.r.d2"})["values"]


def test_non_query(node: HttpNode) -> None:
    assert DONE == ask(node, "nonQuery", {"sql": "create database root.made"})
    assert 501 == ask(node, "nonQuery", {"sql": "create database root.made"})["code"]
    assert 301 == ask(node, "nonQuery", {"sql": "show databases"})["code"]
    assert 301 == ask(node, "query", {"sql": "delete database root.made"})["code"]


def test_a_row_limit_is_an_error_and_not_a_cut(node: HttpNode) -> None:
    answer = ask(node, "query", {"sql": "select s3 from root.sg27", "row_limit": 1})
    assert (411, True) == (answer["code"], answer["message"].startswith("Dataset row size exceeded the given max row"))


def test_a_result_that_is_too_large_is_refused(node: HttpNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saros_server.rest.iotdb_rest._RESULT_BYTES", 10)
    answer = ask(node, "query", {"sql": "select * from root.sg27"})
    assert (709, True) == (answer["code"], "more than 10 bytes" in answer["message"])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"values": [["a"]]}, 303),
        ({"data_types": ["TEXT"]}, 303),
        ({"timestamps": ["now"]}, 303),
        ({"device": None}, 303),
        ({"is_aligned": "no"}, 303),
        ({"data_types": ["TEXT", "INT32", "BOOLEAN", "NUMBER", "DATE"]}, 507),
        ({"values": [["a", "b"], [1, 2.5], [False, True], [1, 2], [None, None]]}, 701),
        ({"values": [["a", "b"], [1, 2**31], [False, True], [1, 2], [None, None]]}, 701),
        ({"values": [["a", "b"], [1, 2], [False, True], [1, "2"], [None, None]]}, 701),
        ({"values": [["a", "b"], [1, 2], [False, True], [1, True], [None, None]]}, 701),
        ({"values": [["a", "b"], [1, 2], [False, 1], [1, 2], [None, None]]}, 701),
        ({"values": [["a", "b"], [1, 2], [False, True], [1, 2], [None, "2024-02-30"]]}, 701),
        (
            {
                "data_types": ["TEXT", "INT32", "BOOLEAN", "FLOAT", "DATE"],
                "values": [*TABLET["values"][:3], [1, 1e300], [None, None]],
            },
            701,
        ),
        ({"timestamps": [1, 2**70]}, 303),
        ({"timestamps": [1, 2**63]}, 701),
        ({"device": "plant.d"}, 509),
    ],
)
def test_bad_tablets_are_refused_whole(node: HttpNode, change: dict[str, Any], code: int) -> None:
    body = {**TABLET, "device": "root.bad.d"} | change
    answer = ask(node, "insertTablet", body)
    assert code == answer["code"], answer
    assert [] == ask(node, "query", {"sql": "show devices root.bad.**"})["values"][0]


def test_a_body_that_is_no_object_of_json(node: HttpNode) -> None:
    for content in (b"", b"{", b"[]", b"1", b"\xff"):
        assert 303 == node.client.post("/rest/v2/query", content=content).json()["code"]


def test_logins(tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as node:
        body = {"sql": "show databases"}
        without = node.client.post("/rest/v2/query", json=body)
        assert (401, 803) == (without.status_code, without.json()["code"])
        assert without.headers["www-authenticate"].startswith("Basic ")
        assert "values" in node.client.post("/rest/v2/query", json=body, auth=("root", ROOT)).json()
        denied = node.client.post("/rest/v2/nonQuery", json={"sql": "create database root.a"}, auth=("ann", ANN))
        assert (200, 803) == (denied.status_code, denied.json()["code"])
        assert 200 == node.client.get("/ping").status_code
        wrong = node.client.post("/rest/v2/query", json=body, auth=("root", "wrong"))
        assert (401, 801) == (wrong.status_code, wrong.json()["code"])
