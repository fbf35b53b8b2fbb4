"""SET, LOAD and SHOW CONFIGURATION, and the options that take effect while a node runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from server.stock_clients.stock_server import stock_server
from waiting import wait_until

import saros
from saros_cluster.placement.ring import NodeId
from saros_engine.base.errors import NotSupportedError
from saros_engine.show.configuration_requests import ConfigurationRequests
from saros_server.config.configuration import Configuration, Effect


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[saros.Connection]:
    with saros.connect(tmp_path) as opened:
        yield opened


def rows(connection: saros.Connection, statement: str = "show configuration") -> dict[str, tuple[object, ...]]:
    """Return the rows of SHOW CONFIGURATION by option."""
    return {str(name): tuple(more) for name, *more in connection.execute(statement).fetchall()}


def test_an_option_takes_effect_at_once_and_is_kept(connection: saros.Connection, tmp_path: Path) -> None:
    assert ("1000", "1000", "1000", "default", "now") == rows(connection)["slow_query_ms"]
    connection.execute("SET CONFIGURATION 'slow_query_ms'='2s'")
    file = tmp_path / "saros.toml"
    assert ("2000", "1000", "2000", str(file), "now") == rows(connection)["slow_query_ms"]
    assert [("2000",)] == connection.execute(
        "select value from information_schema.variables where variable = 'SlowQueryMs'"
    ).fetchall()
    connection.close()
    with saros.connect(tmp_path) as again:
        assert "2000" == rows(again)["slow_query_ms"][0]


def test_the_file_keeps_its_comments_and_other_lines(connection: saros.Connection, tmp_path: Path) -> None:
    file = tmp_path / "saros.toml"
    file.write_text('# the line of gateways\nslow_query_ms = "5s" # generous\n\ndurability = "os"\n')
    connection.execute("set configuration slow_query_ms = 700, 'compaction'='off' 'query_spill_bytes'='1GiB'")
    assert file.read_text() == (
        '# the line of gateways\nslow_query_ms = 700 # generous\n\ndurability = "os"\ncompaction = "off"\n'
        'query_spill_bytes = "1GiB"\n'
    )


def test_an_option_for_the_next_start_shows_both_values(connection: saros.Connection, tmp_path: Path) -> None:
    connection.execute("set configuration 'worker_threads'='3'")
    assert ("2", "2", "3", str(tmp_path / "saros.toml"), "restart") == rows(connection)["worker_threads"]
    connection.close()
    with saros.connect(tmp_path) as again:
        assert ("3", "2", "3") == rows(again)["worker_threads"][:3]


def test_an_edited_file_is_loaded(connection: saros.Connection, tmp_path: Path) -> None:
    (tmp_path / "saros.toml").write_text("query_timeout_ms = 1234\n")
    assert "60000" == rows(connection)["query_timeout_ms"][0]
    connection.execute("LOAD CONFIGURATION ON LOCAL")
    assert "1234" == rows(connection)["query_timeout_ms"][0]
    (tmp_path / "saros.toml").unlink()
    connection.execute("load configuration")
    assert ("60000", "60000", "60000", "default") == rows(connection)["query_timeout_ms"][:4]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ("'slow_query_mss'='1'", "unknown option slow_query_mss; did you mean slow_query_ms"),
        ("'slow_query_ms'='soon'", "option slow_query_ms is 'soon': expected milliseconds"),
        ("'slow_query_ms'='5', 'compaction'='maybe'", "option compaction is 'maybe': expected one of on, off"),
        ("'time_unit'='us'", "fixed when a folder is created"),
        ("'load_folders'='/'", "statements cannot change option load_folders: edit .*saros.toml"),
        ("'authentication'='off'", "statements cannot change option authentication"),
        ("'compaction'='off' on 4", "the cluster has no node 4: SHOW CLUSTER lists its nodes"),
        ("'compaction'='off', 'compaction'='on'", "the option compaction is given twice"),
    ],
)
def test_a_wrong_option_changes_nothing(connection: saros.Connection, tmp_path: Path, settings: str, why: str) -> None:
    before = rows(connection)
    with pytest.raises(saros.ProgrammingError, match=why):
        connection.execute(f"set configuration {settings}")
    assert before == rows(connection)
    assert not (tmp_path / "saros.toml").exists()


def test_a_broken_file_changes_nothing(connection: saros.Connection, tmp_path: Path) -> None:
    file = tmp_path / "saros.toml"
    file.write_text("slow_query_ms = 3\ncompaction = 'off\n")
    for statement in ("load configuration", "set configuration 'slow_query_ms'='5'"):
        with pytest.raises(saros.ProgrammingError, match=r"saros\.toml is not TOML"):
            connection.execute(statement)
    assert "1000" == rows(connection)["slow_query_ms"][0]
    assert file.read_text() == "slow_query_ms = 3\ncompaction = 'off\n"


def test_a_stronger_source_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAROS_QUERY_TIMEOUT_MS", "5000")
    with saros.connect(tmp_path, options={"slow_query_ms": 10}) as connection:
        for key, source in (("query_timeout_ms", "environment"), ("slow_query_ms", "option")):
            with pytest.raises(saros.ProgrammingError, match=rf"stronger source than the file \({source}\)"):
                connection.execute(f"set configuration '{key}'='1'")


def test_descriptions_and_effects_are_those_of_the_table(connection: saros.Connection) -> None:
    shown = rows(connection, "SHOW CONFIGURATION ON 1 WITH DESC")
    assert [f.name for f in fields(Configuration)] == list(shown)
    for option in fields(Configuration):
        assert (option.metadata["effect"].value, option.metadata["doc"]) == shown[option.name][-2:]


def test_a_snapshot_shows_options_and_refuses_changes(tmp_path: Path) -> None:
    saros.connect(tmp_path).close()
    with saros.connect(tmp_path, read_only=True) as connection:
        assert "1000" == rows(connection)["slow_query_ms"][0]
        with pytest.raises(saros.OperationalError, match="opened read-only"):
            connection.execute("set configuration 'slow_query_ms'='5'")


# ------------------------------------------------------------------ options in force


def test_slow_statements_are_those_of_the_new_threshold(connection: saros.Connection) -> None:
    connection.execute("set configuration 'slow_query_ms'='1d'")
    connection.execute("show version").fetchall()
    assert [] == connection.execute("show slow queries").fetchall()


def test_databases_are_created_at_the_new_level(connection: saros.Connection) -> None:
    connection.execute("set configuration 'default_database_level'='2'")
    connection.execute("insert into root.plant.line1.pump(time, speed) values (1, 2)")
    assert ["root.plant.line1"] == [row[0] for row in connection.execute("show databases")]


def test_literals_create_series_of_the_new_types(connection: saros.Connection) -> None:
    connection.execute("set configuration 'integer_literal_type'='INT64', 'decimal_literal_type'='FLOAT'")
    connection.execute("insert into root.a.d(time, i, f, t) values (1, 9007199254740993, 1.5, 'x')")
    types = {row[0]: row[3] for row in connection.execute("show timeseries root.a.d.*")}
    assert {"root.a.d.i": "INT64", "root.a.d.f": "FLOAT", "root.a.d.t": "TEXT"} == types
    assert [9007199254740993, 1.5, "x"] == list(connection.execute("select i, f, t from root.a.d").fetchone() or ())[1:]


def test_background_merges_stop_and_start(tmp_path: Path) -> None:
    with saros.connect(tmp_path) as connection:
        connection.execute("set configuration 'compaction'='off'")
        for time in range(8):
            connection.execute(f"insert into root.a.d(time, x) values ({time}, {time})")
            connection.execute("flush")
        assert 8 == len(connection.execute("show files").fetchall())
        connection.execute("set configuration 'compaction'='on'")
        wait_until(lambda: len(connection.execute("show files").fetchall()) == 1)
        assert 8 == len(connection.execute("select x from root.a.d").fetchall())


@pytest.mark.slow
def test_a_server_logs_from_the_new_level_on(tmp_path: Path) -> None:
    """Options of the command line are shown, and take precedence over the file."""
    with stock_server(tmp_path, "--http-port", "0") as port, saros.connect(f"saros://127.0.0.1:{port}") as connection:
        assert ("0", "option") == (rows(connection)["http_port"][0], rows(connection)["http_port"][3])
        connection.execute("set configuration 'slow_query_ms'='2s'")
        connection.execute("set configuration 'log_level'='WARNING'")
        connection.execute("set configuration 'slow_query_ms'='3s'")
    events = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    changed = [event["options"] for event in events if event["event"] == "options changed"]
    assert [{"slow_query_ms": "2000"}, {"log_level": "WARNING"}] == changed


# ------------------------------------------------------------------ automatic schema


@pytest.fixture
def closed(connection: saros.Connection) -> saros.Connection:
    """Return a connection to a database with one series, in which writes create nothing."""
    connection.execute("create timeseries root.a.d.x INT64")
    connection.execute("set configuration 'auto_create_schema'='off'")
    return connection


def test_values_without_a_series_are_refused_and_others_written(closed: saros.Connection) -> None:
    missing = (
        r"1 of 2 points of root\.a\.d were written; left out: root\.a\.d\.y does not exist, and auto_create_schema"
    )
    with pytest.raises(saros.DataError, match=missing) as caught:
        closed.execute("insert into root.a.d(time, x, y) values (1, 1, 1)")
    assert 507 == caught.value.code
    with pytest.raises(saros.DataError, match=r"0 of 1 points .* root\.a\.e\.x does not exist") as caught:
        closed.execute("insert into root.a.e(time, x) values (1, 1)")
    with pytest.raises(saros.DataError, match=r"root\.new\.e\.x does not exist"):
        closed.execute("insert into root.new.e(time, x) values (1, 1)")
    closed.execute("insert into root.a.d(time, x, y) values (2, 2, null)")
    assert [(1, 1), (2, 2)] == [
        (row[0].microsecond // 1_000, row[1]) for row in closed.execute("select x from root.a.d")
    ]
    assert 1 == len(closed.execute("show timeseries").fetchall())
    assert ["root.a"] == [row[0] for row in closed.execute("show databases")]


def test_a_batch_with_a_column_without_a_series_is_refused_as_a_whole(closed: saros.Connection) -> None:
    with pytest.raises(saros.DataError, match=r"root\.a\.d\.y does not exist"):
        closed.insert("root.a.d", [1, 2], {"x": np.array([1, 2]), "y": np.array([1.0, 2.0])})
    with pytest.raises(saros.DataError, match=r"root\.a\.f\.y does not exist"):
        closed.insert("root.a.f", [1, 2], {"y": np.array([1.0, 2.0])})
    assert 2 == closed.insert("root.a.d", [1, 2], {"x": np.array([1, 2])})


def test_a_template_creates_series_only_on_request(closed: saros.Connection) -> None:
    closed.execute("create device template pump (speed DOUBLE)")
    closed.execute("set device template pump to root.a.pumps")
    insert = "insert into root.a.pumps.p1(time, speed) values (1, 1)"
    with pytest.raises(saros.DataError, match=r"root\.a\.pumps\.p1\.speed does not exist"):
        closed.execute(insert)
    closed.execute("create timeseries using device template on root.a.pumps.p1")
    closed.execute(insert)


def test_statements_still_create_series(closed: saros.Connection) -> None:
    closed.execute("create timeseries root.b.d.x INT32")
    assert ["root.a", "root.b"] == [row[0] for row in closed.execute("show databases")]
    closed.execute("insert into root.a.d(time, x) values (1, 1)")
    with pytest.raises(saros.Error, match=r"root\.a\.n\.x does not exist"):
        closed.execute("select x into root.a.n(x) from root.a.d")


def test_every_option_says_when_it_takes_effect() -> None:
    fixed = {f.name for f in fields(Configuration) if f.metadata["effect"] is Effect.NEVER}
    assert {"time_unit", "time_partition_interval_ms"} == fixed


def test_a_database_without_a_server_has_no_options_to_change() -> None:
    requests = ConfigurationRequests(None, NodeId(1), None)
    for change in (lambda: requests.load(local=True), lambda: requests.set({"compaction": "off"}, None)):
        with pytest.raises(NotSupportedError, match="opened without a server"):
            change()
