from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from manual_clock import ManualClock
from msgspec.structs import astuple
from system.cluster_fixture import Nodes
from waiting import wait_until

from saros_cluster.multiraft.log_latency import LogHealth
from saros_cluster.multiraft.peers import Unreachable
from saros_cluster.node.receive_throttle import ReceiveThrottle
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.replicas import Replicas
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.topology import META, Node, NodeState, Topology
from saros_cluster.transport.handshake import Identity
from saros_server.cluster.status import ClusterStatus
from saros_server.http.metrics import Figures, NodeCollector
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.read.latest_cache import LatestCache

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
WEEK_MS = 604_800_000
SECOND = 1_000_000_000


@dataclass
class FakeReplica:
    """The status of a replica, as reported by its host."""

    leads: bool = False
    leader: int | None = 2
    term: int = 1
    commit: int = 10
    applied: int = 10


@dataclass
class FakeHost:
    groups: dict[GroupId, FakeReplica]
    log_health: LogHealth = field(default_factory=LogHealth)

    def statuses(self) -> dict[GroupId, FakeReplica]:
        return self.groups

    def leader_of(self, group: GroupId) -> int | None:
        return self.groups[group].leader


@dataclass
class FakePeers:
    """The other nodes. Each has a clock, and reports on its groups; a node whose report is None does not answer."""

    clock: ManualClock
    told: dict[NodeId, dict[int, FakeReplica] | None]
    ahead_ns: dict[NodeId, int] = field(default_factory=dict)
    answer_s: float = 0.0
    logs: dict[NodeId, LogHealth] = field(default_factory=dict)
    asked: list[NodeId] = field(default_factory=list)

    def call(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> bytes:
        assert ("status", b"") == (name, request)
        self.asked.append(node)
        found = self.told[node]
        if found is None:
            raise Unreachable(node, "nobody is there")
        now_ns = self.clock.now_ns() + self.ahead_ns.get(node, 0)
        self.clock.advance(self.answer_s)
        groups = {group: [*vars(replica).values(), 0, []] for group, replica in found.items()}
        words = {"version": "1", "groups": groups, "came": [0, 0, 0, 0.0], "clock_ns": now_ns}
        if node in self.logs:
            words["log"] = astuple(self.logs[node])
        return json.dumps(words).encode()


class Three:
    """Node 1 of three nodes, and the information that it has about the others."""

    def __init__(self, nodes: Sequence[NodeId] = (ONE, TWO, THREE)) -> None:
        self.clock = ManualClock()
        topology = Topology.first({node: Node(f"host{node}:1", f"host{node}:2") for node in nodes}, 3, 60, 5)
        self.routes = Routes(topology, WEEK_MS)
        self.host = FakeHost({GroupId(group): FakeReplica() for group in range(4)})
        leads = {group: FakeReplica(leads=True) for group in range(4)}
        self.peers = FakePeers(self.clock, {TWO: leads, THREE: {group: FakeReplica() for group in range(4)}})
        self.status = ClusterStatus(
            Identity("c", ONE),
            self.routes,
            self.host,  # type: ignore[arg-type]
            Replicas(ChunkCache(0), LatestCache(0)),
            self.peers,  # type: ignore[arg-type]
            ClusterSchema(),
            ReceiveThrottle(0, self.clock),
            self.clock,
        )

    def lags(self, group: int) -> dict[int, int | None]:
        return {row.node: row.lag for row in self.status.regions() if row.region == group}


def test_a_replica_that_was_sent_less_lags_though_it_does_not_know(three: Three) -> None:
    """Node 3 has applied all entries that it knows to be committed. The leader has committed more entries."""
    leads, behind = three.peers.told[TWO], three.peers.told[THREE]
    assert leads is not None
    assert behind is not None
    leads[1] = FakeReplica(leads=True, commit=1_000, applied=998)
    behind[1] = FakeReplica(commit=400, applied=400)
    three.host.groups[GroupId(1)] = FakeReplica(commit=990, applied=990)
    three.status.refresh()
    assert {1: 10, 2: 2, 3: 600} == three.lags(1)
    assert 10 == three.status.local_groups()[GroupId(1)].lag
    # This node has committed more entries since the other nodes answered, so their lag does not grow.
    three.host.groups[GroupId(1)] = FakeReplica(commit=5_000, applied=5_000)
    assert {1: 0, 2: 2, 3: 600} == three.lags(1)


def test_a_node_of_many_asks_those_near_it_each_time_and_the_others_in_turn() -> None:
    nodes = [NodeId(node) for node in range(1, 61)]
    many = Three(nodes)
    many.peers.told = {node: {} for node in nodes}
    asked: list[set[NodeId]] = []
    for _ in range(4):
        many.peers.asked.clear()
        many.status.refresh()
        asked.append({*many.peers.asked})
    routing = many.routes.now
    near = {node for group in routing.groups_of(ONE) for node in routing.members(group)} - {ONE}
    assert near <= set.intersection(*asked)
    assert max(map(len, asked)) <= len(near) + 4 + 16
    assert {*nodes} - {ONE} == set.union(*asked)


def test_what_is_wrong_with_the_cluster_is_a_problem(three: Three) -> None:
    three.status.refresh()
    assert [] == three.status.problems()
    three.peers.ahead_ns[THREE] = 86_400 * SECOND
    leads = three.peers.told[TWO]
    assert leads is not None
    leads[3] = FakeReplica()
    three.status.refresh()
    assert ["group 3 has no leader", "the clock of node 3 is 86400 s ahead of this one's"] == three.status.problems()
    three.peers.told[TWO], three.peers.ahead_ns[THREE] = None, -10 * SECOND
    three.status.refresh()
    assert "node 2 (host2:1) does not answer" in three.status.problems()
    assert "the clock of node 3 is 10 s behind this one's" in three.status.problems()
    assert 1 == three.status.unreachable_count()


def test_a_slow_log_is_a_problem_and_its_node_comes_last(three: Three) -> None:
    three.peers.logs[TWO] = LogHealth(True, 1_200_000_000, 5_000_000)
    three.status.refresh()
    two = "node 2 writes its log slowly (1.200 s, usually 0.005 s), so other nodes lead its groups: check its disk"
    assert [two] == three.status.problems()
    assert [[THREE, TWO]] * 2 == [three.status.current_members(GroupId(group)) for group in (1, 2)]
    three.host.log_health = LogHealth(True, 2_000_000_000, 1_000_000)
    one = "node 1 writes its log slowly (2.000 s, usually 0.001 s), so other nodes lead its groups: check its disk"
    assert [one, two] == three.status.problems()
    assert {ONE: 2_000_000_000, TWO: 1_200_000_000, THREE: 0} == {
        node: log.write_ns for node, log in three.status.log_health().items()
    }


def test_nodes_that_are_slow_or_silent_are_not_fast(three: Three) -> None:
    assert {TWO, THREE} == three.status.find_fast_nodes()
    three.peers.logs[TWO] = LogHealth(True, 1_200_000_000, 5_000_000)
    assert {THREE} == three.status.find_fast_nodes()
    three.peers.told[THREE] = None
    assert set() == three.status.find_fast_nodes()


def test_an_answer_that_takes_long_is_no_clock_that_is_wrong(three: Three) -> None:
    three.peers.answer_s = 5.0
    three.status.refresh()
    assert [] == three.status.problems()
    assert {TWO: 5.0, THREE: 5.0} == three.status.answer_seconds()


def test_a_node_that_can_take_no_write_says_why(three: Three) -> None:
    assert three.status.blocked_by() is None
    three.host.groups[META].leader = None
    three.peers.told[THREE] = None
    three.status.refresh()
    assert "no leader of the meta group is known" in str(three.status.blocked_by())
    assert [three.status.blocked_by(), "node 3 (host3:1) does not answer"] == three.status.problems()
    three.routes.is_removed = True
    assert ["this node was removed from the cluster: stop it, and delete its folder"] == three.status.problems()


def test_a_node_that_was_only_admitted_says_what_lets_it_join(three: Three) -> None:
    nodes = three.routes.now.topology.nodes
    waiting = {**nodes, ONE: Node("host1:1", "host1:2", state=NodeState.WAITING)}
    three.routes.learn(Topology(waiting, three.routes.now.table, three.routes.now.topology.wanted))
    assert ["this node has not joined the cluster: run ADD NODE 1"] == three.status.problems()


@pytest.mark.slow
def test_a_node_tells_of_its_groups_and_of_nodes_that_are_down(tmp_path: Path) -> None:
    cluster = Nodes(tmp_path, 3, 3)
    try:
        node = cluster.node(0)
        collector = NodeCollector(node, Figures(lambda: 0, lambda: 0.0, dict), str(tmp_path))
        wait_until(lambda: not node.problems())
        assert node.blocked_by() is None
        figures = {metric.name: metric.samples for metric in collector.collect()}
        groups = {str(group) for group in range(4)}
        for name in ("saros_group_leads", "saros_group_has_leader", "saros_group_lag", "saros_group_applied"):
            assert groups == {sample.labels["group"] for sample in figures[name]}
        assert 4 == sum(sample.value for sample in figures["saros_group_has_leader"])
        answers = figures["saros_cluster_answer_seconds"]
        assert {"2", "3"} == {sample.labels["node"] for sample in answers}
        assert all(sample.value > 0 for sample in answers)
        for name in ("saros_peer_messages_sent", "saros_peer_received_bytes"):
            spoken_with = {sample.labels["node"] for sample in figures[name] if sample.value > 0}
            assert spoken_with  # at least the node's leader, or a node that it leads
            assert spoken_with <= {"2", "3"}
        assert [3.0, 0.0, 0.0] == [
            figures[f"saros_cluster_{name}"][0].value for name in ("nodes", "silent_nodes", "changing")
        ]
        cluster.stop(1)
        wait_until(lambda: any(problem.startswith("node 2 (127.0.0.1:") for problem in node.problems()))
        cluster.stop(2)
        wait_until(lambda: "no leader of the meta group" in str(node.blocked_by()))
    finally:
        cluster.close()


@pytest.fixture
def three() -> Three:
    return Three()
