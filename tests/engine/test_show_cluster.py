"""SHOW CLUSTER and SHOW REGIONS, in a database without a cluster, and with the rows that a cluster would return."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from engine.embedded_engine import Engine

from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import SLOTS
from saros_engine.base.cluster_info import (
    ChangeRow,
    Endpoint,
    NodeRow,
    NodeStatus,
    RegionRow,
    RegionType,
    ReplicaRole,
)
from saros_engine.cluster import Cluster
from saros_engine.coordinator import QueryEngine
from saros_engine.memory.options import EngineOptions
from saros_storage.base.clock import SystemClock

ONE, TWO = NodeId(1), NodeId(2)
NODES = (
    NodeRow(ONE, NodeStatus.RUNNING, Endpoint("a", 6668), Endpoint("a", 6667), "1.0", "east"),
    NodeRow(TWO, NodeStatus.UNKNOWN, Endpoint("b", 6670), Endpoint("b", 6669), None),
)
UP, DOWN = NodeStatus.RUNNING, NodeStatus.UNKNOWN
LEADER, NOBODY_KNOWS = ReplicaRole.LEADER, ReplicaRole.UNKNOWN
DATA = RegionType.DATA
BOTH = ("root.a", "root.b")
REGIONS = (
    RegionRow(0, RegionType.CONFIG, ONE, UP, LEADER, (), 0, None, 3, 12, 0),
    RegionRow(1, DATA, ONE, UP, LEADER, BOTH, 5_000, 7, 4, 90, 0),
    RegionRow(1, DATA, TWO, DOWN, NOBODY_KNOWS, BOTH, 5_000, None, None, None, None),
    RegionRow(2, DATA, TWO, DOWN, NOBODY_KNOWS, ("root.b",), 5_000, None, None, None, None),
)


CHANGE = ChangeRow(17, "moving", (ONE, TWO), (), 6, 3, 2, 1, 2_500, 1_200, 9_000_000, 6_000_000, 1_500_000, 4, 0)


class TwoNodes:
    """A cluster of two nodes. Implements `ClusterInfo`."""

    node = TWO
    replicas = 2

    def nodes(self) -> Sequence[NodeRow]:
        return NODES

    def regions(self) -> Sequence[RegionRow]:
        return REGIONS

    def variables(self) -> Sequence[tuple[str, str]]:
        return (("ClusterId", "x"),)

    def change(self) -> ChangeRow | None:
        return CHANGE


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Engine]:
    opened = Engine(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def clustered(alone: Engine) -> Engine:
    cluster = Cluster(TwoNodes(), admin=None, installations=None, others=None)
    alone.engine = QueryEngine(alone.store, alone.scheduler, SystemClock(), EngineOptions(), cluster)
    return alone


def test_the_change_under_way_is_one_row_and_none_without(alone: Engine, clustered: Engine) -> None:
    header = ["Change", "Stage", "Joining", "Leaving", "Moves", "Opened", "Arrived", "Dropped", "Slots", "SlotsArrived"]
    header += ["Bytes", "BytesArrived", "BytesPerSecond", "Regroups", "Regrouped"]
    row = [17, "moving", "1, 2", "", 6, 3, 2, 1, 2_500, 1_200, 9_000_000, 6_000_000, 1_500_000, 4, 0]
    assert (header, [row]) == clustered.ask("show cluster change")


def test_without_a_cluster_nothing_changes(alone: Engine) -> None:
    assert [] == alone.ask("show cluster change")[1]


def test_one_machine_is_one_node_without_addresses(alone: Engine) -> None:
    header = ["NodeID", "NodeType", "Status", "InternalAddress", "InternalPort", "Version"]
    assert (header, [[1, "DataNode", "Running", None, None, version("saros")]]) == alone.ask("show cluster")


def test_the_version_names_the_product_the_protocol_and_the_commit(
    alone: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (["Version", "BuildInfo"], [[version("saros"), "Saros, IoTDB protocol V_3"]]) == alone.ask("show version")
    installed = tmp_path / "packages" / "saros-7.8.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: saros\nVersion: 7.8\n", encoding="utf-8")
    origin = {"url": "https://host/saros.git", "vcs_info": {"vcs": "git", "commit_id": "1ca4008d"}}
    (installed / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")
    monkeypatch.syspath_prepend(installed.parent)
    assert [["7.8", "Saros, IoTDB protocol V_3, commit 1ca4008d"]] == alone.ask("show version")[1]


def test_one_machine_is_one_region_that_it_leads(alone: Engine) -> None:
    alone.ask("insert into root.a.d(time, x) values (1, 1.0), (604800000, 2.0)")
    alone.ask("create database root.b")
    header, rows = alone.ask("show regions")
    expected = {
        "RegionId": 1,
        "Type": "DataRegion",
        "Status": "Running",
        "Database": "root.a, root.b",
        "SeriesSlotNum": SLOTS,
        "TimeSlotNum": 2,
        "DataNodeId": 1,
        "RpcAddress": None,
        "RpcPort": None,
        "InternalAddress": None,
        "Role": "Leader",
        "Term": None,
        "Applied": None,
        "Lag": 0,
    }
    assert [expected] == [dict(zip(header, row, strict=True)) for row in rows]
    assert list(expected) == header


@pytest.mark.parametrize(
    ("databases", "count"),
    [("root.a", 1), ("root.*", 1), ("root.c, root.a", 1), ("root.c", 0), ("root.a.d", 0)],
)
def test_regions_of_databases(alone: Engine, databases: str, count: int) -> None:
    alone.ask("create database root.a")
    assert count == len(alone.ask(f"show regions of database {databases}")[1])


def test_details_are_where_clients_connect(clustered: Engine) -> None:
    header, rows = clustered.ask("show cluster details")
    details = ["NodeID", "NodeType", "Status", "InternalAddress", "InternalPort", "RpcAddress", "RpcPort", "Version"]
    assert [*details, "Rack"] == header
    assert [
        [1, "DataNode", "Running", "a", 6668, "a", 6667, "1.0", "east"],
        [2, "DataNode", "Unknown", "b", 6670, "b", 6669, None, ""],
    ] == rows


def test_a_row_per_replica_with_the_addresses_of_its_node(clustered: Engine) -> None:
    _, rows = clustered.ask("show regions")
    assert [
        [0, "ConfigRegion", "Running", "", 0, None, 1, "a", 6667, "a", "Leader", 3, 12, 0],
        [1, "DataRegion", "Running", "root.a, root.b", 5_000, 7, 1, "a", 6667, "a", "Leader", 4, 90, 0],
        [1, "DataRegion", "Unknown", "root.a, root.b", 5_000, None, 2, "b", 6669, "b", "Unknown", None, None, None],
        [2, "DataRegion", "Unknown", "root.b", 5_000, None, 2, "b", 6669, "b", "Unknown", None, None, None],
    ] == rows


def test_regions_on_other_nodes_are_left_out(clustered: Engine) -> None:
    _, rows = clustered.ask("show regions")
    assert rows[2:] == clustered.ask("show regions on nodeid 2")[1]
    assert rows[2:3] == clustered.ask("show data regions of database root.a on nodeid 3, 2")[1]
    assert rows == clustered.ask("show regions on nodeid 1, 2")[1]


def test_the_id_of_the_cluster(clustered: Engine) -> None:
    assert (["ClusterId"], [["x"]]) == clustered.ask("show clusterid")


def test_where_there_is_no_cluster_it_has_no_id(alone: Engine) -> None:
    assert (["ClusterId"], []) == alone.ask("show clusterid")


def test_regions_without_the_databases_are_left_out(clustered: Engine) -> None:
    _, rows = clustered.ask("show regions of database root.a")
    assert [[1, 1], [1, 2]] == [[row[0], row[6]] for row in rows]


def test_variables_tell_of_the_cluster(alone: Engine) -> None:
    assert ["DataReplicationFactor", "1"] in alone.ask("show variables")[1]


def test_variables_are_the_clusters(clustered: Engine) -> None:
    rows = clustered.ask("show variables")[1]
    assert ["ClusterId", "x"] in rows
    assert ["DataReplicationFactor", "2"] in rows
    clustered.ask("create database root.a")
    assert ["root.a", 2, 2] == clustered.ask("show databases")[1][0][:3]


def test_data_nodes_have_the_regions_of_which_they_keep_a_replica(clustered: Engine) -> None:
    header = ["NodeID", "Status", "RpcAddress", "RpcPort", "DataRegionNum", "SchemaRegionNum"]
    rows = [[1, "Running", "a", 6667, 1, 1], [2, "Unknown", "b", 6669, 2, 2]]
    assert (header, rows) == clustered.ask("show datanodes")


def test_urls_are_those_of_the_nodes_that_answer(clustered: Engine) -> None:
    assert (["RpcAddress", "RpcPort"], [["a", 6667]]) == clustered.ask("show available urls")


def test_config_nodes_are_those_of_the_meta_group(clustered: Engine) -> None:
    header = ["NodeID", "Status", "InternalAddress", "InternalPort", "Role"]
    assert (header, [[1, "Running", "a", 6668, "Leader"]]) == clustered.ask("show confignodes")


def test_data_and_schema_regions_leave_out_the_meta_group(clustered: Engine) -> None:
    _, rows = clustered.ask("show regions")
    assert 4 == len(rows)
    for what in ("data", "schema"):
        assert rows[1:] == clustered.ask(f"show {what} regions")[1]
    assert rows[1:3] == clustered.ask("show data regions of database root.a")[1]
