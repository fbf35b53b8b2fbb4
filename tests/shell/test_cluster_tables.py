"""The tables of `saros cluster status`, from rows of SHOW CLUSTER and SHOW REGIONS."""

from __future__ import annotations

from saros_cluster.placement.ring import NodeId
from saros_shell.output.cluster_tables import (
    ClusterReport,
    Row,
    change_line,
    group_rows,
    leaderless,
    node_rows,
    node_rows_elsewhere,
    table,
    unreachable,
    waits_for,
)

ADDRESSES = {NodeId(1): "h:1", NodeId(2): "h:2", NodeId(3): "h:3"}


def node(id_: int, status: str = "Running", version: str | None = "1.0") -> Row:
    return {"NodeID": id_, "Status": status, "Version": version}


def replica(group: int, node: int, role: str, term: int | None = 1, lag: int | None = 0) -> Row:
    return {
        "RegionId": group,
        "Type": "DataRegion" if group else "ConfigRegion",
        "DataNodeId": node,
        "Role": role,
        "Term": term,
        "Applied": 40 + node,
        "Lag": lag,
        "SeriesSlotNum": 5_000,
        "Database": "root.a, root.b" if group else "",
    }


REGIONS = [
    replica(0, 1, "Follower"),
    replica(0, 3, "Leader"),
    replica(0, 2, "Unknown", None, None),
    replica(3, 3, "Follower", lag=5),
    replica(3, 1, "Leader", 2),
    replica(2, 2, "Unknown", None, None),
    replica(2, 3, "Follower"),
]


def test_a_group_without_a_leader_is_found() -> None:
    assert ["2"] == leaderless(REGIONS)
    assert ["meta"] == leaderless([replica(0, 1, "Follower"), replica(1, 1, "Leader")])
    assert [] == leaderless([])


def test_silent_nodes_are_named_as_the_reason_why_groups_have_no_leader() -> None:
    nodes, led = [node(1), node(2, "Unknown"), node(3, "Unknown")], [replica(3, 1, "Leader")]
    assert "group 2 without a leader (nodes 2, 3 not answering h:1)" == waits_for("h:1", ClusterReport(nodes, REGIONS))
    assert "group 2 without a leader (as seen by h:1)" == waits_for("h:1", ClusterReport(nodes[:1], REGIONS))
    assert "nodes 2, 3 not answering h:1" == waits_for("h:1", ClusterReport(nodes, led))
    assert waits_for("h:1", ClusterReport(nodes[:1], led)) is None


def test_groups_keep_the_order_of_their_members() -> None:
    rows = [tuple(row.values()) for row in group_rows(REGIONS)]
    assert [
        ("meta", "1, 3, 2", "3", "1", "43", "1: 0, 2: ?", 5_000, "-"),
        ("3", "3, 1", "1", "2", "41", "3: 5", 5_000, "root.a, root.b"),
        ("2", "2, 3", "none", "-", "-", "2: ?, 3: 0", 5_000, "root.a, root.b"),
    ] == rows


def test_of_two_that_think_they_lead_the_one_with_the_higher_term_does() -> None:
    (row,) = group_rows([replica(3, 3, "Leader", 4), replica(3, 1, "Leader", 6), replica(3, 2, "Leader", 5)])
    assert ("1", "6") == (row["leader"], row["term"])


def test_a_node_is_up_unreachable_or_down() -> None:
    told = ClusterReport([node(1), node(2, "Unknown", None), node(3)], REGIONS)
    rows = [tuple(row.values()) for row in node_rows(ADDRESSES, {NodeId(1): 11, NodeId(2): 12}, told)]
    assert [
        (1, "h:1", "11", "up", "1.0", "leads 3"),
        (2, "h:2", "12", "unreachable", "-", "follows"),
        (3, "h:3", "-", "down", "1.0", "-"),
    ] == rows
    assert ["2"] == unreachable(told.nodes)


def test_of_several_machines_nodes_are_shown_as_they_tell() -> None:
    where = {"RpcAddress": "h", "RpcPort": 7, "Rack": ""}
    nodes = [node(1) | where, node(2, "Unknown", None) | where, node(3, "Joining", None) | where | {"Rack": "b"}]
    rows = [tuple(row.values()) for row in node_rows_elsewhere(ClusterReport(nodes, REGIONS))]
    assert [
        (1, "h:7", "-", "up", "1.0", "leads 3"),
        (2, "h:7", "-", "unreachable", "-", "-"),
        (3, "h:7", "b", "joining", "-", "leads meta"),
    ] == rows


def test_without_an_answer_only_processes_are_known() -> None:
    rows = node_rows(ADDRESSES, {NodeId(2): 12}, None)
    assert ["down", "up", "down"] == [row["state"] for row in rows]
    assert {"-"} == {row["role"] for row in rows} | {row["version"] for row in rows}


def test_a_table_is_aligned_and_does_not_count() -> None:
    assert "a  | b\n---+--\nxy | 1\n" == table([{"a": "xy", "b": 1}])


def test_a_change_is_told_in_one_line() -> None:
    row: dict[str, object] = {"Change": 17, "Stage": "moving", "Joining": "4, 5", "Leaving": "2"}
    row |= {"Moves": 6, "Opened": 3, "Arrived": 2, "Dropped": 1, "Slots": 2_500, "SlotsArrived": 1_200}
    row |= {"Regroups": 4, "Regrouped": 1}
    nothing_yet = row | {"Bytes": 0, "BytesArrived": 0, "BytesPerSecond": 0.0}
    known = "adding node 4, 5, removing node 2: moving data, 1,200 of 2,500 slots,"
    assert f"{known} 1 of 4 groups done" == change_line([nothing_yet])
    coming = row | {"Bytes": 9_000_000, "BytesArrived": 6_000_000, "BytesPerSecond": 1.5e6}
    assert f"{known} 6.0 of 9.0 MB (1.5 MB/s, 2 s left), 1 of 4 groups done" == change_line([coming])
    spread = nothing_yet | {"Joining": "", "Leaving": "", "Stage": "preparing", "Slots": 0, "Regroups": 0}
    assert "rebalancing: preparing" == change_line([spread])


def test_a_node_that_waits_is_joining_and_missed_by_nobody() -> None:
    rows: list[dict[str, object]] = [{"NodeID": 4, "Status": "Joining", "Version": None}]
    assert [] == unreachable(rows)
    (row,) = node_rows({NodeId(4): "a:1"}, {NodeId(4): 7}, ClusterReport(rows, []))
    assert "joining" == row["state"]
