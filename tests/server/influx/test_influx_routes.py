"""Writes of InfluxDB's clients over HTTP: devices, problems, credentials; PyPI's influxdb-client and influxdb."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from influxdb import InfluxDBClient as InfluxClient1
from influxdb_client import InfluxDBClient as InfluxClient2
from influxdb_client import Point
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException
from server.http.http_node import HttpNode, http_server, make_users
from server.secured import ANN, ROOT

from saros_engine.base.session_context import SessionContext
from saros_engine.catalog.tag_keys import tag_keys
from saros_server.api.session import SessionLines
from saros_server.config.device_template import DEFAULT_TEMPLATE, DeviceTemplate
from saros_server.influx.routes import _failure_1, _written
from saros_server.line_protocol.devices import DeviceMap
from saros_server.line_protocol.lines import SeriesKey
from saros_storage.base.write_request import UNNUMBERED
from saros_wire.line_writes import LinesWritten


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    with http_server(tmp_path_factory.mktemp("influx") / "data") as made:
        yield made


def rows(node: HttpNode, statement: str) -> list[dict[str, Any]]:
    """Return the rows of a query, with the nulls removed from each row."""
    answer = node.client.get("/query.json", params={"sql": statement})
    assert 200 == answer.status_code, answer.text
    found = [json.loads(line) for line in answer.text.splitlines()]
    return [{name: value for name, value in row.items() if value is not None} for row in found]


def write(node: HttpNode, body: bytes | str, **parameters: str) -> httpx.Response:
    return node.client.post("/write", params=parameters, content=body)


def test_lines_become_points_of_devices(node: HttpNode) -> None:
    body = 'cpu,host=h1,region=eu load=1.5,n=3i,ok=t,s="a \\"b\\"" 1700000000123456789\ncpu,region=us,host=h2 load=2 0'
    answer = write(node, body, db="plant")
    assert (204, b"", "1.8.10") == (answer.status_code, answer.content, answer.headers["x-influxdb-version"])
    assert [
        {"Time": "1970-01-01T00:00:00.000Z", "Device": "root.plant.cpu.h2.us", "load": 2},
        {
            "Time": "2023-11-14T22:13:20.123Z",
            "Device": "root.plant.cpu.h1.eu",
            "load": 1.5,
            "n": 3,
            "ok": True,
            "s": 'a "b"',
        },
    ] == rows(node, "select load, n, ok, s from root.plant.cpu.*.* order by time align by device")


def test_a_new_device_is_aligned(node: HttpNode) -> None:
    assert 204 == write(node, "m a=1,b=2 0", db="aligned").status_code
    (device,) = rows(node, "show devices root.aligned.**")
    assert ("root.aligned.m", "true") == (device["Device"], str(device["IsAligned"]).lower())


@pytest.mark.parametrize(
    ("precision", "time", "expected"),
    [
        *(("", 1_999_999, 1), ("ns", -1, -1), ("u", 1_500, 1), ("us", 1_500, 1), ("ms", 5, 5), ("s", 5, 5_000)),
        *(("m", 5, 300_000), ("h", 5, 18_000_000)),
    ],
)
def test_precisions(node: HttpNode, precision: str, time: int, expected: int) -> None:
    name = precision or "none"
    parameters = {"precision": precision} if precision else {}
    assert 204 == write(node, f"p_{name} f=1 {time}", db="precisions", **parameters).status_code
    (row,) = rows(node, f"select max_time(f) from root.precisions.p_{name}")
    assert [expected] == list(row.values())


def test_a_line_without_a_time_is_of_now(node: HttpNode) -> None:
    before = node.api.now_ns // 1_000_000
    assert 204 == write(node, "m f=1", db="now").status_code
    (row,) = rows(node, "select max_time(f) from root.now.m")
    assert before <= next(iter(row.values())) <= node.api.now_ns // 1_000_000


def test_wrong_lines_are_named_and_the_others_written(node: HttpNode) -> None:
    body = "m f=1 1000000\nbad\n# comment\nm f=x\nm f=2 2000000\n"
    first = write(node, body, db="partial")
    expected = (
        "partial write: line 2: the fields are missing: 'bad'; line 4: the value of a field is not a number, a boolean "
        "or a quoted text: 'm f=x'"
    )
    assert (400, {"error": expected}) == (first.status_code, first.json())
    second = node.client.post("/api/v2/write", params={"bucket": "partial", "org": "o"}, content=body)
    assert (400, {"code": "invalid", "message": expected}) == (second.status_code, second.json())
    assert [1, 2] == [row["root.partial.m.f"] for row in rows(node, "select f from root.partial.m")]


def test_many_wrong_lines_are_counted(node: HttpNode) -> None:
    answer = write(node, "bad\n" * 100_000, db="many")
    assert 400 == answer.status_code
    assert "line 20: " in answer.text
    assert "line 21" not in answer.text
    assert "and 99980 more" in answer.text


def test_points_of_another_type_are_refused_alone(node: HttpNode) -> None:
    assert 204 == write(node, "m a=1,b=1i 1000000", db="types").status_code
    answer = write(node, 'm a="x",b=2i 2000000\nm a=3i,b=3i 3000000\nn a="y" 1000000', db="types")
    expected = (
        "partial write: 2 of 3 points of root.types.m were written; left out: root.types.m.a is DOUBLE: a column of "
        "TEXT does not fit; insert corrected values for these (code 507)"
    )
    assert (400, {"error": expected}) == (answer.status_code, answer.json())
    assert [(1, 1), (None, 2), (3, 3)] == [
        (row.get("root.types.m.a"), row["root.types.m.b"]) for row in rows(node, "select a, b from root.types.m")
    ]
    assert ["y"] == [row["root.types.n.a"] for row in rows(node, "select a from root.types.n")]


def test_odd_names_are_quoted(node: HttpNode) -> None:
    body = "a\\ b,t\\=1=x.y\\,z,u=a'b,v=c`d f\\ g=1,2=2 0"
    assert 204 == write(node, body, db="my db").status_code
    assert ["root.`my db`.`a b`.`x.y,z`.`a'b`.`c``d`.`2`", "root.`my db`.`a b`.`x.y,z`.`a'b`.`c``d`.`f g`"] == sorted(
        row["Timeseries"] for row in rows(node, "show timeseries root.`my db`.`a b`.*.*.*.*")
    )


def devices(node: HttpNode, database: str) -> list[str]:
    return sorted(row["Device"] for row in rows(node, f"show devices root.{database}.**"))


def test_missing_tags_and_tags_that_come_later(node: HttpNode) -> None:
    for body in ("m,b=1 f=1 0", "m,a=2,b=1 f=1 0", "m,a=3 f=1 0", "m f=1 0", "m,b=_,a=_ f=1 0"):
        assert 204 == write(node, body, db="missing").status_code
    expected = ["m", "m.`1`", "m.`1`.`2`", "m._.`3`", "m.__.__"]
    assert sorted(f"root.missing.{path}" for path in expected) == devices(node, "missing")
    assert ["b", "a"] == tag_keys(node.api.node.store.schema, "root.missing.m")


def test_gzip_and_errors_of_the_whole_request(node: HttpNode) -> None:
    headers = {"content-encoding": "gzip"}
    answer = node.client.post("/write?db=zipped", content=gzip.compress(b"m f=1 0"), headers=headers)
    assert 204 == answer.status_code
    assert ["root.zipped.m"] == devices(node, "zipped")
    for parameters, word in (
        ({}, "the name of the database is missing"),
        ({"db": "x", "precision": "y"}, "'y' is unknown"),
    ):
        refused = write(node, b"m f=1", **parameters)
        assert 400 == refused.status_code
        assert word in refused.json()["error"]


class StaleLines(SessionLines):
    """A session whose first look-up finds no tag keys, as on a lagging node."""

    looked = False

    def tag_keys(self, prefix: str) -> Sequence[str]:
        if not StaleLines.looked:
            StaleLines.looked = True
            return []
        return SessionLines.tag_keys(self, prefix)


def test_writers_that_append_tags_at_the_same_time_agree(node: HttpNode) -> None:
    template, whole = DeviceTemplate.of(DEFAULT_TEMPLATE), (node.api.node, SessionContext(), UNNUMBERED)
    first = DeviceMap(template, "race", SessionLines(*whole))
    assert "root.race.m.x.y" == first.device(SeriesKey("m", (("a", "x"), ("b", "y"))))
    late = DeviceMap(template, "race", StaleLines(*whole))
    assert "root.race.m.x.y.z" == late.device(SeriesKey("m", (("c", "z"), ("b", "y"), ("a", "x"))))
    assert ["a", "b", "c"] == tag_keys(node.api.node.store.schema, "root.race.m")


def test_devices_by_a_template(tmp_path: Path) -> None:
    tmp_path.joinpath("saros.toml").write_text('line_protocol_device = "root.{db}.{host}.{measurement}"\n')
    with http_server(tmp_path) as node:
        body = "cpu,host=h1,cpu=0 f=1 0\nmem,host=h1 f=1 0\nmem f=1 0"
        assert 204 == write(node, body, db="plant").status_code
        expected = ["root.plant._.mem", "root.plant.h1.cpu.`0`", "root.plant.h1.mem"]
        assert expected == devices(node, "plant")


@pytest.mark.parametrize(
    "text", ["root.x.{measurement}", "root.{db}", "root.{db}.{measurement}.{a}.{a}", "root.{db}.a b.{measurement}"]
)
def test_templates_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"a path such as|is neither"):
        DeviceTemplate.of(text)


def test_credentials(tmp_path: Path) -> None:
    make_users(tmp_path / "data")
    with http_server(tmp_path / "data") as node:
        assert 401 == write(node, "m f=1 0", db="d").status_code
        assert 204 == write(node, "m f=1 0", db="d", u="root", p=ROOT).status_code
        token = {"authorization": f"Token root:{ROOT}"}
        second = "/api/v2/write?bucket=d"
        assert 204 == node.client.post(second, content=b"m f=1 0", headers=token).status_code
        assert 204 == node.client.post("/write?db=d", content=b"m f=1 0", auth=("root", ROOT)).status_code
        wrong = node.client.post(second, content=b"m f=1 0", headers={"authorization": "Token root:wrong"})
        assert (401, "unauthorized") == (wrong.status_code, wrong.json()["code"])
        refused = node.client.post("/write?db=d", content=b"m,a=b f=1 0\nm f=1 0", auth=("ann", ANN))
        assert 400 <= refused.status_code < 500
        assert "(code 803)" in refused.json()["error"]


@pytest.mark.parametrize("authorization", ["Token abc", "Token", "Bearer abc", "Basic %", "Digest x", "Token a:b"])
def test_credentials_are_ignored_where_no_login_is_needed(node: HttpNode, authorization: str) -> None:
    headers = {"authorization": authorization}
    for path in ("/write?db=open&u=a&p=b", "/api/v2/write?bucket=open"):
        assert 204 == node.client.post(path, content=b"m f=1 0", headers=headers).status_code
    assert 200 == node.client.get("/query?sql=show+databases", headers=headers).status_code


def test_only_a_write_that_is_not_to_be_sent_again_is_called_partial() -> None:
    def answer(*codes: int) -> tuple[int, str]:
        response = _written(LinesWritten(0, ["line 1: bad", "..."], 3, codes), _failure_1)
        assert isinstance(response.body, bytes)
        return response.status, json.loads(response.body)["error"]

    assert (400, "partial write: line 1: bad; ...; and 1 more") == answer(2044, 507)
    assert (503, "send all again: line 1: bad; ...; and 1 more") == answer(2044, 2017, 507)


def test_the_client_of_2(node: HttpNode) -> None:
    with InfluxClient2(url=node.url, token="any", org="o", enable_gzip=True) as client:
        assert client.ping()
        with pytest.deprecated_call():
            assert "pass" == client.health().status
        with client.write_api(write_options=SYNCHRONOUS) as writer:
            point = (
                Point("weather")
                .tag("place", "Berlin, Mitte")
                .field("t", 1.25)
                .field("n", 2)
                .field("w", "sun")
                .time(10**15)
            )
            writer.write("client2", record=[point, Point("weather").field("ok", True).time(10**15)])
            with pytest.raises(ApiException, match="does not fit"):
                writer.write("client2", record=Point("weather").field("ok", "x").time(0))
    assert [{"root.client2.weather.`Berlin, Mitte`.n": 2, "root.client2.weather.`Berlin, Mitte`.t": 1.25}] == [
        {name: value for name, value in row.items() if name.endswith((".n", ".t"))}
        for row in rows(node, "select n, t from root.client2.weather.*")
    ]


def test_the_client_of_1(node: HttpNode) -> None:
    client = InfluxClient1("127.0.0.1", node.service.port, database="client1", gzip=True)
    try:
        assert client.ping() == "1.8.10"
        client.create_database("client1")
        client.create_database("client1")
        point = {"measurement": "m", "tags": {"host": "a b"}, "time": 10**9, "fields": {"f": 0.5, "i": 3, "s": 'x"y'}}
        assert client.write_points([point])
        assert client.write_points([{**point, "time": 2}], time_precision="s")
    finally:
        client.close()
    assert [0.5, 0.5] == [row["root.client1.m.`a b`.f"] for row in rows(node, "select f from root.client1.m.`a b`")]


def test_ping_and_health_and_queries(node: HttpNode) -> None:
    telegraf = {"user-agent": "Telegraf/1.30"}
    for method in ("GET", "HEAD"):
        answer = node.client.request(method, "/ping", headers=telegraf)
        assert (204, "1.8.10") == (answer.status_code, answer.headers["x-influxdb-version"])
    assert 200 == node.client.get("/ping").json()["code"]
    created = node.client.post("/query", data={"q": 'CREATE DATABASE "tele graf"'}, headers=telegraf)
    assert {"results": [{"statement_id": 0}]} == created.json()
    assert "root.`tele graf`" in [row["Database"] for row in rows(node, "show databases")]
    assert 400 == node.client.post("/query", params={"q": "SELECT * FROM m"}).status_code


def test_the_order_of_tags_is_neither_shown_nor_deleted(tmp_path: Path) -> None:
    with http_server(tmp_path / "data") as node:
        assert 204 == write(node, "m,b=1,a=2 f=1 0", db="d").status_code
        assert [{"Time": "1970-01-01T00:00:00.000Z", "root.d.m.`1`.`2`.f": 1}] == rows(node, "select * from root.d.**")
        assert ["root.d.m.`1`.`2`.f"] == [row["Timeseries"] for row in rows(node, "show timeseries root.**")]
        assert [1, 1] == [
            next(iter(row.values()))
            for text in ("count timeseries root.**", "count devices root.**")
            for row in rows(node, text)
        ]
        assert ["root.d.m.`1`"] == [row["ChildPaths"] for row in rows(node, "show child paths root.d.m")]
        node.written("delete timeseries root.d.**")
    with http_server(tmp_path / "data") as node:
        assert 204 == write(node, "m,a=3,b=4 f=1 0", db="d").status_code
        assert ["root.d.m.`4`.`3`"] == devices(node, "d")
        node.written("delete database root.d")
        assert 204 == write(node, "m,a=3,b=4 f=1 0", db="d").status_code
        assert ["root.d.m.`3`.`4`"] == devices(node, "d")


@pytest.mark.parametrize(
    "statement",
    ["create timeseries root.d._saros.s int32", "insert into root.d.x._saros.y(time, s) values (1, 1)"],
)
def test_series_below_a_reserved_node_are_refused(node: HttpNode, statement: str) -> None:
    answer = node.sql(statement)
    assert 400 == answer.status_code
    assert 509 == answer.json()["code"]
    assert "has the node _saros, which is reserved" in answer.json()["message"]
    assert "is reserved" in write(node, "_saros f=1 0", db="d").json()["error"]
