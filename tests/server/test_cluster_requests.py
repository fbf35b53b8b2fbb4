"""Any node shows information about all nodes: the contents of their disks, and their running queries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from system.cluster_fixture import Nodes
from waiting import wait_equal, wait_until

from saros_cluster.multiraft.peers import BadRequest, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.users.effective_privileges import Granted, Rights
from saros_cluster.users.privileges import Privilege
from saros_engine.base.access import UNRESTRICTED, Access
from saros_engine.base.errors import QueryKilled, QueryNotFound
from saros_engine.base.query_registry import QueryRegistry
from saros_engine.base.session_context import SessionContext
from saros_engine.base.slow_queries import SlowQueries
from saros_engine.base.system_mode import SystemMode
from saros_engine.execution.result import Result
from saros_engine.show.cluster_requests import ClusterRequests
from saros_engine.show.configuration_requests import ConfigurationRequests
from saros_grammar.syntax.ast import Show, ShowKind
from saros_server.cluster.peer_requests import ask_each
from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import StorageError
from saros_storage.base.types import DataType

POINTS = 1_000_000
NOW_MS = 1_700_000_000_000


class FixedClock(SystemClock):
    """A clock whose wall time does not advance."""

    def now_ns(self) -> int:
        return NOW_MS * 1_000_000


def access(user: str) -> Access:
    """Return the access of a user that may read all data, but may see and end only its own queries."""
    return Access(user, Rights([Granted(Privilege.READ_DATA, "root.**")]), f"{user} 1")


def show_queries(cluster: Nodes, user: str) -> list[tuple[object, ...]]:
    """Return the queries that the first node lists for a user."""
    result = cluster.node(0).engine.execute("show queries", SessionContext(access=access(user)))
    block = result.next_block()
    assert block is None or block.times is not None
    return (
        []
        if block is None
        else list(zip(block.times.tolist(), *(column.to_list() for column in block.columns), strict=True))
    )


def read_all(result: Result) -> None:
    while result.next_block() is not None:
        pass


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Yield three nodes, each of which has a replica of all data."""
    nodes = Nodes(tmp_path_factory.mktemp("cluster"), 3, 3)
    for times in np.array_split(np.arange(POINTS), 20):
        nodes.node(0).engine.insert_columns("root.a.d", times, {"x": Column(DataType.DOUBLE, times.astype(np.float64))})
    nodes.run(0, "insert into root.b.d(time, x) values (1, 1)")
    for number in range(3):
        nodes.run(number, "select count(x) from root.*.d")  # then this node has all data
    nodes.run(0, "flush")
    yield nodes
    nodes.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_any_node_shows_what_lies_on_every_disk(cluster: Nodes, number: int) -> None:
    """On a busy machine, a node may at first be considered silent."""

    def partitions() -> list[tuple[object, ...]]:
        found = [(row[0], row[1], row[-1]) for row in cluster.run(number, "show partitions")]
        return sorted(found, key=str)

    def files() -> list[tuple[object, ...]]:
        return [(row[0], row[5]) for row in cluster.run(number, "show files of database root.b")]

    wait_equal([(database, 0, node) for database in ("root.a", "root.b") for node in (1, 2, 3)], partitions)
    wait_equal([("root.b", 1)] * 3, files)


@pytest.mark.parametrize("number", range(3))
def test_any_node_tells_how_much_lies_on_every_disk(cluster: Nodes, number: int) -> None:
    def partitions() -> list[tuple[object, ...]]:
        return [(row[0], row[1], row[3]) for row in cluster.run(number, "show disk_usage from root.b.**")]

    wait_equal([("root.b", node, 0) for node in (1, 2, 3)], partitions)
    rows = cluster.run(number, "show disk_usage from root.** order by sizeinbytes")
    assert all(isinstance(row[4], int) and row[4] > 0 for row in rows)
    ((_, _, region, *_),) = cluster.run(number, "show disk_usage from root.b where datanodeid = 1")
    assert region in {row[0] for row in cluster.run(number, "show data regions")}


def ends(cluster: Nodes, statement: str) -> bool:
    """Return whether all nodes have answered the statement. On a busy machine, a node may count as silent."""
    try:
        cluster.run(1, statement)
    except (StorageError, QueryNotFound):
        return False
    return True


@pytest.mark.parametrize("end", ["kill query '{}'", "kill all queries"])
def test_any_node_shows_and_ends_what_runs_on_another(cluster: Nodes, end: str) -> None:
    statement = "select x + 1 from root.a.d"
    running = cluster.node(2).engine.execute(statement, SessionContext())
    try:
        assert running.next_block() is not None
        ((_, query, node, _, text, *_),) = cluster.run(0, "show queries")
        assert (3, statement) == (node, text)
        assert str(query).endswith("_3")
        assert [(query,)] == cluster.run(1, "select query_id from information_schema.queries where datanode_id = 3")
        wait_until(lambda: ends(cluster, end.format(query)))
        with pytest.raises(QueryKilled):
            read_all(running)
    finally:
        running.close()
    assert [] == cluster.run(0, "show queries")


def test_any_node_shows_the_slow_queries_of_all(cluster: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        monkeypatch.setattr(cluster.node(number).engine.slow_queries, "threshold_ms", 0)
    for number, name in ((2, "one"), (1, "two")):
        access_of_user = SessionContext(access=access(name))
        read_all(cluster.node(number).engine.execute(f"select x + {number} from root.b.d", access_of_user))
    monkeypatch.undo()
    shown = [row for row in cluster.run(0, "show slow queries") if row[5] is not None]
    assert [(2, "select x + ? from root.b.d", "two"), (3, "select x + ? from root.b.d", "one")] == [
        (node, statement, user) for _, _, node, _, statement, user, _ in shown
    ]
    assert [row[1] for row in shown] == [row[1] for row in cluster.run(2, "show slow queries") if row[5] is not None]


def test_a_user_sees_and_ends_no_query_of_another_user_on_another_node(cluster: Nodes) -> None:
    running = cluster.node(2).engine.execute("select x + 1 from root.a.d", SessionContext(access=access("one")))
    try:
        ((_, query, *_),) = show_queries(cluster, "one")
        assert [] == show_queries(cluster, "two")
        with pytest.raises(QueryNotFound):
            cluster.node(0).engine.execute(f"kill query '{query}'", SessionContext(access=access("two")))
        assert (
            0 == cluster.node(0).engine.execute("kill all queries", SessionContext(access=access("two"))).update_count
        )
        assert running.next_block() is not None
        assert (
            1
            == cluster.node(0)
            .engine.execute(f"kill query '{query}'", SessionContext(access=access("one")))
            .update_count
        )
    finally:
        running.close()


@pytest.mark.parametrize(("scope", "cleared"), [("", [0, 1, 2]), (" on cluster", [0, 1, 2]), (" on local", [1])])
def test_caches_are_cleared_on_all_nodes_or_on_the_one_that_is_asked(
    cluster: Nodes, scope: str, cleared: list[int]
) -> None:
    last = "select last x from root.a.d"
    for number in (0, 1, 2) * 2:  # so that each node reuses a cached plan
        cluster.run(number, last)
    assert all(cluster.database(number).latest.bytes for number in range(3))
    result = cluster.node(1).engine.execute("clear cache" + scope, SessionContext())
    assert len(cleared) == result.update_count
    assert cleared == [number for number in range(3) if not cluster.database(number).latest.bytes]
    plans = [cluster.node(number).engine.counters().plans_made for number in range(3)]
    for number in range(3):
        assert (POINTS - 1, "root.a.d.x") == cluster.run(number, last)[0][:2]
    made = [cluster.node(number).engine.counters().plans_made - plans[number] for number in range(3)]
    assert cleared == [number for number in range(3) if made[number]]


@pytest.mark.parametrize("newer", [[], [7, 0.5, "10.0.0.7", 60_000]])
def test_the_queries_of_a_node_of_an_older_version_are_shown(cluster: Nodes, newer: list[object]) -> None:
    class Older:
        def ask_each(self, _: bytes, __: NodeId | None = None) -> list[tuple[NodeId, bytes | str]]:
            row = ["2024-01-02T03:04:05.006Z", "20240102_030405_00001_2", "2", "0.125", "select *", *newer]
            return [(NodeId(2), json.dumps([row]).encode())]

    here, clock = NodeId(1), FixedClock()
    nodes = ClusterRequests(
        QueryRegistry(clock, here),
        SlowQueries(clock, 1),
        cluster.database(0),
        clock,
        here,
        Older(),
        lambda: None,
        SystemMode(),
        ConfigurationRequests(None, here, None),
    )
    shown = nodes.show(Show(ShowKind.QUERIES), "UTC", UNRESTRICTED)
    ticks, *others = newer or [NOW_MS, None, None, None]
    assert [(ticks, "20240102_030405_00001_2", 2, 0.125, "select *", *others, None)] == shown.rows


def test_junk_from_another_node_is_refused(cluster: Nodes) -> None:
    for junk in (b"", b"\xff", b"[]", b'["sideways", [], "UTC", null, null]', b"[" * 100_000):
        with pytest.raises(BadRequest):
            cluster.node(0).engine.every_node.answer(junk)


def test_all_nodes_are_asked_at_the_same_time() -> None:
    """No node answers before all nodes have been asked."""
    asked = Barrier(3, timeout=60)

    def ask(node: NodeId, name: str, question: bytes, seconds: float) -> bytes:
        asked.wait()
        if node == 3:
            raise Unreachable(node, "it sleeps")
        return name.encode() + question

    nodes = [NodeId(number) for number in (1, 2, 3)]
    assert [(1, b"tell?"), (2, b"tell?"), (3, str(Unreachable(NodeId(3), "it sleeps")))] == ask_each(
        nodes, ask, "tell", b"?"
    )
    assert [] == ask_each([], ask, "tell", b"?")


@pytest.mark.slow
def test_a_node_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with closing(Nodes(tmp_path, 3, 3)) as cluster:
        cluster.run(0, "insert into root.b.d(time, x) values (1, 1)")
        for number in range(3):
            cluster.run(number, "select count(x) from root.*.d")  # then this node has all data
        cluster.run(0, "flush")
        cluster.stop(2)
        check_node_3_is_named(cluster)


def check_node_3_is_named(cluster: Nodes) -> None:
    for text in ("show partitions of database root.b", "show files of database root.b", "show queries"):
        *others, silent = cluster.run(0, text)
        told = [value for value in silent if value is not None]
        assert 3 in told or "3" in told
        assert any("node 3 does not answer" in str(value) for value in told)
        assert all(3 != row[-1] for row in others)
    assert (None, 3, None, None, None) == cluster.run(0, "show disk_usage from root.b")[-1]
    ((name, state, *_, why),) = cluster.run(0, "show receivers")
    assert ("node 3", "unknown", True) == (name, state, "node 3 does not answer" in str(why))
    with pytest.raises(QueryNotFound, match=r"no query nothing is running.*node 3 does not answer"):
        cluster.run(0, "kill query 'nothing'")
    with pytest.raises(StorageError, match=r"0 queries were ended on the other nodes; node 3 does not answer"):
        cluster.run(0, "kill all queries")
