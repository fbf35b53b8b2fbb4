"""Mistakes about slow disks, planted one at a time; `SlowDiskWorld` must detect each."""

from __future__ import annotations

from cluster.world_hunt import Mutant, Plant, planting

from saros_cluster.multiraft.log_latency import LogHealth, LogLatency
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft import node as node_module
from saros_cluster.raft.leadership import Leadership
from saros_server.cluster.leader_eviction import LeaderEviction
from saros_server.cluster.status import ClusterStatus

MUTANTS: list[Mutant] = []
mutant = planting(MUTANTS)


@mutant
def never_hands_over(plant: Plant):
    plant(LeaderEviction, "step", lambda self: None)


@mutant
def takes_no_disk_for_slow(plant: Plant):
    plant(LogLatency, "check", lambda self, *times: LogHealth())


@mutant
def hands_over_to_a_slow_node(plant: Plant):
    """A group is handed over to the node that lags most, even if the disk of that node is slow."""

    def successor(self, among):
        others = [node for node in among if node in self._progress]
        return min(others, key=lambda node: (self._progress[node].match, node), default=None)

    plant(ClusterStatus, "find_fast_nodes", lambda self: {NodeId(n) for n in self._routes.now.nodes if n != self._node})
    plant(Leadership, "successor", successor)


@mutant
def gives_votes_no_time_to_become_durable(plant: Plant):
    plant(node_module, "_PATIENCE", (1,))


@mutant
def never_takes_a_disk_for_healthy_again(plant: Plant):
    check = LogLatency.check

    def once_slow(self, *times):
        found = check(self, *times)
        self._score = max(self._score, 1.0) if found.slow else self._score
        return found

    plant(LogLatency, "check", once_slow)
