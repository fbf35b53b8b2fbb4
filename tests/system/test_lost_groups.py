"""A group without a leader: statements that need its data fail and name the group, and no other statements fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from system.cluster_fixture import Nodes, run
from system.test_leaderless import kept_by
from waiting import wait_until

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader, NoReplica
from saros_cluster.topology.topology import META
from saros_engine.base.session_context import SessionContext
from saros_storage.base.write_request import WriteRequest

pytestmark = pytest.mark.slow
WEEK = 604_800_000
LOST = kept_by(3, 16)
HEALTHY = [kept_by(1, 16), kept_by(2, 16)]
NO_LEADER = f"{LOST} (group 3: node 3) has no leader: node 3 does not answer; unavailable since"
WITHOUT_MOMENT = re.compile(r" \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
#: Statements about one database, and their answers; `{}` is the name of the database.
STATEMENTS = {
    "select x from {}.d": [(1, 1.0)],
    "select x from {}.d where time < 100": [(1, 1.0)],
    "select count(x) from {}.**": [(1,)],
    "select last x from {}.d": [(1, "{}.d.x", "1.0", "DOUBLE")],
    "select x from {}.** align by device": [(1, "{}.d", 1.0)],
    "count timeseries {}.**": [(1,)],
    "show devices {}.**": [("{}.d", "false", None, "INF")],
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Yield three nodes with one replica of each group; the third node is down, and with it group 3."""
    made = Nodes(tmp_path_factory.mktemp("cluster"), 3, 1)
    for database in (*HEALTHY, LOST):
        made.run(0, f"insert into {database}.d(time, x) values (1, 1.0)")
    for number in (0, 1):
        made.database(number).refresh_schema()
    made.stop(2)
    for number in (0, 1):
        opened = made.node(number).cluster
        assert opened is not None
        wait_until(lambda status=opened.status: status.is_down(NodeId(3)))
    yield made
    made.close()


def filled(rows: list[tuple[object, ...]], database: str) -> list[tuple[object, ...]]:
    return [tuple(v.format(database) if isinstance(v, str) else v for v in row) for row in rows]


@pytest.mark.parametrize("consistency", ["strong", "mid", "weak"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_about_other_databases_answer(cluster: Nodes, statement: str, consistency: str) -> None:
    for number in (0, 1):
        for database in HEALTHY:
            found = cluster.run(number, statement.format(database), consistency)
            assert filled(STATEMENTS[statement], database) == found


def test_reads_of_its_data_fail_and_name_database_group_and_node(cluster: Nodes) -> None:
    with pytest.raises(NoLeader) as caught:
        cluster.node(0).engine.execute(f"select x from {LOST}.d", SessionContext(), timeout_ms=300)
    assert NO_LEADER == WITHOUT_MOMENT.sub("", str(caught.value))
    for consistency in ("mid", "weak"):
        with pytest.raises(NoReplica) as unread:
            cluster.run(0, f"select x from {LOST}.d", consistency)
        assert f"{LOST} (group 3: node 3) has no replica that responds: node 3 does not answer" == str(unread.value)


def test_a_time_out_bounds_the_wait_for_a_leader(cluster: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    database = cluster.database(0)
    clock, limits = database._parts.clock, []
    ask = type(database._read_barrier)._ask

    def note(self, group, deadline_ns):
        limits.append((deadline_ns - clock.monotonic_ns()) / 1e9)
        return ask(self, group, deadline_ns)

    monkeypatch.setattr(type(database._read_barrier), "_ask", note)
    engine = cluster.node(0).engine
    with pytest.raises(NoLeader):
        engine.execute(f"select x from {LOST}.d", SessionContext(), timeout_ms=400)
    until_ns = clock.monotonic_ns() + 400_000_000
    with pytest.raises(NoLeader):
        engine.execute(f"select x from {LOST}.d", SessionContext(), request=WriteRequest(deadline_ns=until_ns))
    assert len(limits) == 2
    assert all(limit <= 0.4 for limit in limits)


def test_show_tells_of_what_is_available_and_what_is_missing(cluster: Nodes) -> None:
    result = cluster.node(0).engine.execute("show timeseries", SessionContext(), timeout_ms=300)
    block = result.next_block()
    assert block is not None
    shown = {str(path) for path in block.columns[0].to_list()}
    assert {f"{database}.d.x" for database in HEALTHY} <= shown
    assert [NO_LEADER] == [WITHOUT_MOMENT.sub("", text) for text in result.missing]
    result.close()
    assert sorted([*HEALTHY, LOST]) == sorted(row[0] for row in cluster.run(0, "show databases"))


def test_partial_results_leave_out_its_data(cluster: Nodes) -> None:
    session = SessionContext(partial=True)
    engine = cluster.node(0).engine
    result = engine.execute("select count(x) from root.** align by device", session, timeout_ms=300)
    block = result.next_block()
    assert block is not None
    assert sorted(f"{database}.d" for database in HEALTHY) == sorted(
        device for device, count in zip(*(c.to_list() for c in block.columns), strict=True) if count
    )
    assert [NO_LEADER] == [WITHOUT_MOMENT.sub("", text) for text in result.missing]
    result.close()


def test_deletions_and_writes_of_other_databases_go_on(cluster: Nodes) -> None:
    for database in HEALTHY:
        cluster.run(0, f"insert into {database}.later(time, x) values (1, 1.0), (2, 2.0)")
        cluster.run(1, f"delete from {database}.later.x where time = 1")
        assert [(2, 2.0)] == cluster.run(0, f"select x from {database}.later")
        cluster.run(1, f"delete from {database}.later.x")


def test_a_read_asks_the_meta_group_and_its_own_groups_once(cluster: Nodes) -> None:
    database = cluster.database(0)
    before = dict(database.read_confirmations)
    run(cluster.node(0), f"select x from {HEALTHY[1]}.d")
    asked = {group: n - before.get(group, 0) for group, n in database.read_confirmations.items()}
    assert {META: 1, GroupId(2): 1} == {group: n for group, n in asked.items() if n}
