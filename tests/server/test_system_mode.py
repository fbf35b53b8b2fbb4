"""SET SYSTEM TO READONLY: the refused operations, the duration of the mode, and the affected nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from system.cluster_fixture import Nodes
from waiting import wait_until

import saros
from saros_engine.base.system_mode import SystemReadOnly
from saros_engine.security.authorization import RULES, changes
from saros_grammar.syntax import ast
from saros_server.api.session import open_session
from saros_storage.base.errors import StorageError

REFUSED = (
    "insert into root.a.d(time, x) values (2, 2)",
    "select x into root.a.e(x) from root.a.d",
    "delete from root.a.d.x where time < 5",
    "create database root.b",
    "drop database root.a",
    "create timeseries root.a.d.y INT32",
    "delete timeseries root.a.d.x",
    "alter timeseries root.a.d.x add tags k=v",
    "set ttl to root.a 3600000",
    "create view root.v.x as root.a.d.x",
    "create device template t (y INT32)",
    "create continuous query c begin select count(x) into root.a.n(c) from root.a.d group by(10s) end",
    "create function to_fahrenheit as 'fahrenheit'",
    "drop trigger t",
    "load '/nowhere.tsfile'",
    "drop sender '3f5c0de1a2b34c5d8e9f0a1b2c3d4e5f'",
)
TAKEN = (
    "select x from root.a.d",
    "select count(x) from root.a.d group by ([0, 10), 5ms)",
    "explain select x from root.a.d",
    "show timeseries",
    "count devices",
    "flush",
    "merge",
    "clear cache",
    "kill all queries",
    "set time zone to '+08:00'",
    "set allow partial results true",
    "create user ann 'a long enough password'",
    "list user",
    "drop user ann",
)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[saros.Connection]:
    with saros.connect(tmp_path) as opened:
        opened.execute("insert into root.a.d(time, x) values (1, 1)")
        opened.execute("set system to readonly")
        yield opened


@pytest.mark.parametrize("text", REFUSED)
def test_what_changes_data_or_schema_is_refused(connection: saros.Connection, text: str) -> None:
    with pytest.raises(saros.OperationalError) as caught:
        connection.execute(text)
    assert 600 == caught.value.code


def test_what_reads_goes_on(connection: saros.Connection) -> None:
    for text in TAKEN:
        connection.execute(text)


def test_columns_are_refused_too(connection: saros.Connection) -> None:
    with pytest.raises(saros.OperationalError, match="read-only"):
        connection.insert("root.a.d", [2, 3], {"x": [2.0, 3.0]})
    assert 1 == len(connection.execute("select x from root.a.d").fetchall())


@pytest.mark.slow
def test_it_is_shown_kept_and_ended(tmp_path: Path) -> None:
    def status(connection: saros.Connection) -> list[object]:
        shown = connection.execute("show cluster").fetchall() + connection.execute("show regions").fetchall()
        return [row[2] for row in shown]

    with saros.connect(tmp_path) as connection:
        assert ["Running"] * 2 == status(connection)
        connection.execute("SET SYSTEM TO READONLY ON LOCAL")
    with saros.connect(tmp_path) as connection:
        assert ["ReadOnly"] * 2 == status(connection)
        with pytest.raises(saros.OperationalError, match="read-only"):
            connection.execute("insert into root.a.d(time, x) values (1, 1)")
        connection.execute("SET SYSTEM TO RUNNING ON CLUSTER")
        connection.execute("insert into root.a.d(time, x) values (1, 1)")
    with saros.connect(tmp_path) as connection:
        assert ["Running"] * 2 == status(connection)
        connection.execute("insert into root.a.d(time, x) values (2, 2)")


def test_rounds_of_senders_are_refused(tmp_path: Path) -> None:
    session = open_session(str(tmp_path), time_zone=None, options={})
    try:
        session.receive()
        session.execute("set system to readonly", (), None)
        with pytest.raises(SystemReadOnly):
            session.receive()
    finally:
        session.close()


#: Kinds of statements that change neither data nor schema. SELECT is not listed, because SELECT INTO writes.
HARMLESS = {
    "AbortChange", "AdmitNode", "AlterUser", "ChangeNodes", "ClearCache", "Count", "CreateRole", "CreateToken",
    "CreateUser", "DismissNode", "DropPrincipal", "DropToken", "Explain", "Flush", "GiveUpNodes", "Grant",
    "GrantRole", "KillQuery", "ListPrivileges", "ListRoles", "ListUsers", "LoadConfiguration", "Merge",
    "MigrateRegion", "NotSupported", "Rebalance", "Revoke", "RevokeRole", "SetConfiguration", "SetPartialResults",
    "SetSqlDialect", "SetSystem", "SetTimeZone", "Show", "ShowTokens",
}  # fmt: skip


def test_every_other_kind_of_statement_is_a_change() -> None:
    kinds = RULES.keys() - {ast.Select}
    assert HARMLESS == {kind.__name__ for kind in kinds if not changes(kind(*[None] * len(kind.__struct_fields__)))}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path_factory.mktemp("cluster"), 3, 3)
    nodes.run(0, "insert into root.a.d(time, x) values (1, 1)")
    yield nodes
    nodes.close()


def writes(cluster: Nodes, number: int) -> bool:
    """Return whether a node accepts writes."""
    try:
        cluster.run(number, "insert into root.a.d(time, x) values (2, 2)")
    except SystemReadOnly:
        return False
    return True


def test_all_nodes_or_the_one_that_is_asked_only_read(cluster: Nodes) -> None:
    cluster.run(1, "set system to readonly on local")
    assert [True, False, True] == [writes(cluster, number) for number in range(3)]
    wait_until(lambda: ["Running", "ReadOnly", "Running"] == [row[2] for row in cluster.run(0, "show cluster")])
    assert ["Running", "ReadOnly", "Running"] == [row[1] for row in cluster.run(0, "show datanodes")]
    assert 3 == len(cluster.run(0, "show available urls"))
    cluster.run(0, "set system to readonly")
    assert [False] * 3 == [writes(cluster, number) for number in range(3)]
    assert [(2, 2.0)] == cluster.run(2, "select x from root.a.d where time = 2")
    cluster.stop(2)
    cluster.start(2)
    assert not writes(cluster, 2)
    cluster.run(2, "set system to running on cluster")
    cluster.wait_ready()
    assert [True] * 3 == [writes(cluster, number) for number in range(3)]


@pytest.mark.slow
def test_a_node_that_does_not_answer_is_named(cluster: Nodes) -> None:
    cluster.stop(2)
    with pytest.raises(StorageError, match=r"set on the other nodes; node 3 does not answer") as caught:
        cluster.run(0, "set system to readonly")
    assert 2016 == caught.value.code
    assert [False] * 2 == [writes(cluster, number) for number in range(2)]
