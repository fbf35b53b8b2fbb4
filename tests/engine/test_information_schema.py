"""information_schema: SELECT over the rows of SHOW."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from engine.embedded_engine import Engine
from msgspec.structs import replace

from saros_engine.base.errors import SemanticError
from saros_engine.execution.result import Result
from saros_engine.security.information_schema import TABLES, column_name
from saros_grammar.parser import ParseError
from saros_storage.base.block import Column
from saros_storage.base.types import DataType

SHOWS = {
    "databases": "show databases",
    "devices": "show devices with database",
    "timeseries": "show timeseries",
    "views": "show view",
    "functions": "show functions",
    "variables": "show variables",
    "nodes": "show cluster details",
    "regions": "show regions",
    "partitions": "show partitions",
    "files": "show files",
    "queries": "show queries",
    "slow_queries": "show slow queries",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = Engine(tmp_path_factory.mktemp("schema"))
    for text in (
        "insert into root.g.d(time, a, b) values (1, 1, 'x')",
        "create timeseries root.g.d.c(nick) with datatype=INT32, encoding=PLAIN tags(unit=bar)",
        "insert into root.h.`odd name`(time, z) aligned values (1, true)",
        "create view root.v.a as root.g.d.a",
        "flush",
    ):
        opened.ask(text)
    yield opened
    opened.close()


def test_every_table_has_its_test() -> None:
    assert SHOWS.keys() == TABLES.keys()


@pytest.mark.parametrize("table", SHOWS)
def test_a_table_is_what_its_show_shows(engine: Engine, table: str) -> None:
    header, rows = engine.ask(f"select * from information_schema.{table}")
    shown_header, shown = engine.ask(SHOWS[table])
    assert [column_name(name) for name in shown_header] == header
    assert shown == rows
    assert rows or table in ("queries", "slow_queries")
    for name in header:  # no column name needs quotes
        column = [[row[header.index(name)]] for row in rows]
        assert column == engine.ask(f"select {name} from information_schema.{table}")[1]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("IsAligned", "is_aligned"),
        ("TTL(ms)", "ttl_ms"),
        ("NodeID", "node_id"),
        ("RpcPort", "rpc_port"),
        ("SeriesSlotNum", "series_slot_num"),
        ("DataNodeId", "datanode_id"),
    ],
)
def test_columns_are_named_after_those_of_show(header: str, name: str) -> None:
    assert name == column_name(header)


@pytest.mark.parametrize(
    ("text", "header", "rows"),
    [
        (
            "select timeseries, tags from TABLE where data_type = 'INT32'",
            ["timeseries", "tags"],
            [["root.g.d.c", '{"unit":"bar"}']],
        ),
        (
            "select timeseries as s from TABLE where view_type = 'VIEW' or alias = 'nick'",
            ["s"],
            [["root.g.d.c"], ["root.v.a"]],
        ),
        ("select alias from TABLE where alias is not null", ["alias"], [["nick"]]),
        (
            "select timeseries from TABLE where timeseries like 'root.g.%' and not data_type in ('TEXT', 'INT32')",
            ["timeseries"],
            [["root.g.d.a"]],
        ),
        (
            "select data_type from TABLE order by data_type desc, timeseries limit 2",
            ["data_type"],
            [["TEXT"], ["INT32"]],
        ),
        (
            "select timeseries from TABLE order by data_type, timeseries limit 2 offset 1",
            ["timeseries"],
            [["root.g.d.a"], ["root.v.a"]],
        ),
        ("select upper(timeseries) as p from TABLE order by p desc limit 1", ["p"], [["ROOT.V.A"]]),
        (
            "select count(*), count(alias), count(alias) + 1 as more from TABLE",
            ["count(*)", "count(alias)", "more"],
            [[5, 1, 2.0]],
        ),
        ("select count(*) from TABLE where timeseries = 'none'", ["count(*)"], [[0]]),
        ("select timeseries from TABLE where timeseries = 'none'", ["timeseries"], []),
        ("select timeseries from TABLE limit 0", ["timeseries"], []),
        ("select Count(*) from INFORMATION_SCHEMA.TimeSeries", ["Count(*)"], [[5]]),
    ],
)
def test_select_chooses(engine: Engine, text: str, header: list[str], rows: list[list[object]]) -> None:
    assert (header, rows) == engine.ask(text.replace("TABLE", "information_schema.timeseries"))


def test_numbers_are_numbers(engine: Engine) -> None:
    chosen = "sum(bytes), max_value(bytes), avg(devices)"
    text = f"select {chosen} from information_schema.files where bytes > 1 and devices = 1"
    (total, largest, devices), sizes = engine.ask(text)[1][0], [row[8] for row in engine.ask("show files")[1]]
    assert (float(sum(sizes)), max(sizes), 1.0) == (total, largest, devices)


def test_values_may_be_bound(engine: Engine) -> None:
    text = "select timeseries from information_schema.timeseries where data_type = ? limit ?"
    for value, expected in (("INT32", ["root.g.d.c"]), ("TEXT", ["root.g.d.b"]), ("x' or 'a' = 'a", [])):
        result = engine.engine.execute(text, engine.session, (value, 9))
        block = result.next_block()
        assert expected == ([] if block is None else block.columns[0].to_list())
        result.close()


def test_it_is_as_it_is_now(engine: Engine) -> None:
    text = "select count(*) from information_schema.databases"
    before = engine.ask(text)[1][0][0]
    engine.ask("create database root.more")
    assert [[before + 1]] == engine.ask(text)[1]
    engine.ask("delete database root.more")
    assert [[before]] == engine.ask(text)[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select x from information_schema.devices", "no column x: its columns are device, database"),
        ("select device from information_schema.devices where y = 1", "no column y"),
        ("select device as y from information_schema.devices where y = 'x'", "no column y"),
        ("select device from information_schema.devices order by y", "no column y"),
        ("select root.g.d.a from information_schema.devices", "no column root.g.d.a"),
        ("select * from information_schema.nothing", "no table nothing: use one of databases"),
        ("select time from information_schema.devices", "has no time"),
        ("select device from information_schema.devices where time > 1", "has no time"),
        ("select device from information_schema.devices order by time", "has no time"),
        ("select diff(bytes) from information_schema.files", "points of series"),
        ("select first_value(bytes) from information_schema.files", "points of series"),
        ("select last device from information_schema.devices", "LAST cannot be used"),
        ("select count(device) from information_schema.devices group by level = 1", "GROUP BY cannot be used"),
        ("select device from information_schema.devices fill(previous)", "FILL cannot be used"),
        ("select device from information_schema.devices align by device", "ALIGN BY DEVICE cannot be used"),
        ("select device from information_schema.devices slimit 1", "SLIMIT cannot be used"),
        ("select device into root.g.e(d) from information_schema.devices", "INTO"),
        ("explain select device from information_schema.devices", "not by EXPLAIN"),
        ("create view root.v.x as select device from information_schema.devices", "view"),
        ("select device, count(*) from information_schema.devices", "hybrid"),
        ("select sum(*) from information_schema.files", "name a column"),
        ("select sum(file) from information_schema.files", "sum"),
        ("select device from information_schema.devices where is_aligned = 1", "data type"),
        ("select device from information_schema.devices limit -1", "expected"),
        ("select * as x from information_schema.devices", "alias 'x'"),
        ("select count(*) from information_schema.devices order by device", "ORDER BY cannot be used"),
    ],
)
def test_what_does_not_go_is_said(engine: Engine, text: str, message: str) -> None:
    with pytest.raises(Exception, match=message) as caught:
        engine.ask(text)
    assert getattr(caught.value, "code", 0) in (700, 701, 2002), repr(caught.value)


def test_only_one_table_and_no_path_beside_it(engine: Engine) -> None:
    for text in (
        "select * from information_schema.devices, root.g",
        "select * from information_schema",
        "select * from other.devices",
    ):
        with pytest.raises(ParseError):
            engine.ask(text)


def test_a_series_may_still_be_called_so(engine: Engine) -> None:
    engine.ask("insert into root.g.information_schema(time, information_schema) values (1, 5)")
    assert [[1, 5.0]] == engine.ask("select information_schema from root.g.information_schema")[1]
    engine.ask("delete timeseries root.g.information_schema.**")


@pytest.fixture
def running(engine: Engine) -> Iterator[tuple[Result, Result]]:
    """Start two queries with more rows than fit into their buffers; no rows of the second query are read."""
    engine.engine.insert_columns("root.g.big", np.arange(1_000_000), {"s": Column(DataType.DOUBLE, np.ones(1_000_000))})
    session = replace(engine.session, host="10.0.0.7")
    first = engine.engine.execute("select s, s + 1, s + 2, s + 3 from root.g.big", session)
    second = engine.engine.execute("select s, s + 4, s + 5, s + 6 from root.g.big", engine.session, timeout_ms=123_456)
    assert first.next_block() is not None
    yield first, second
    first.close()
    second.close()
    engine.ask("delete timeseries root.g.big.s")


def test_queries_say_for_whom_they_run_and_how_long(engine: Engine, running: tuple[Result, Result]) -> None:
    header, rows = engine.ask("show queries")
    assert header[4:] == ["Statement", "WaitTimeInServer", "ClientIp", "Timeout", "MemoryBytes"]
    first, second = (dict(zip(header, row, strict=True)) for row in rows)
    assert ("10.0.0.7", engine.options.query_timeout_ms) == (first["ClientIp"], first["Timeout"])
    assert (None, 123_456) == (second["ClientIp"], second["Timeout"])
    assert "0.0" == second["WaitTimeInServer"]
    assert 0.0 <= float(str(first["WaitTimeInServer"])) <= float(str(first["ElapsedTime"]))


@pytest.mark.parametrize(
    ("clauses", "shown"),
    [
        ("where Timeout > 100000 and waitTimeInServer < 1000", [1]),
        ("where clientip = '10.0.0.7'", [0]),
        ("where statement like '%, s + _ from%' order by TIMEOUT desc", [1, 0]),
        ("order by timeout limit 1", [0]),
        ("order by timeout limit 1 offset 1", [1]),
        ("where time > 2020-01-01 and time <= now() order by QueryId desc", [1, 0]),
        ("where time < 2020-01-01", []),
        ("limit 0", []),
    ],
)
def test_show_queries_chooses(engine: Engine, running: tuple[Result, Result], clauses: str, shown: list[int]) -> None:
    header, rows = engine.ask("show queries " + clauses)
    assert header == engine.ask("show queries")[0]
    assert [running[number].query_id for number in shown] == [row[1] for row in rows]


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("where duration > 1", r"SHOW QUERIES has no column duration: its columns are time, queryid"),
        ("where elapsedtime", "expected data type"),
        ("order by diff(timeout)", "needs points of series"),
    ],
)
def test_show_queries_says_what_does_not_go(engine: Engine, clause: str, message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        engine.ask("show queries " + clause)
