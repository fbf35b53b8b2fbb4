"""Mistakes about the voters of the meta group, planted one at a time; the simulated cluster must detect each.

See `raft_mutants`.
"""

from __future__ import annotations

from cluster.world_hunt import Mutant, Plant, planting
from msgspec.structs import replace

from saros_cluster.raft.leadership import Leadership
from saros_cluster.raft.membership import Membership
from saros_cluster.reconfiguration import meta_voters
from saros_cluster.reconfiguration.meta_voters import MetaVoters
from saros_cluster.topology.topology import Topology

MUTANTS: list[Mutant] = []
mutant = planting(MUTANTS)


@mutant
def counts_learners_for_the_quorum(plant: Plant):
    def committed(self, match):
        found = sorted(map(match, self.nodes))
        return found[(len(found) - 1) // 2]

    plant(Membership, "committed", committed)


@mutant
def replaces_voters_without_a_joint_membership(plant: Plant):
    """Voters are replaced, possibly several at once, without a joint membership."""
    plant(Membership, "entering", lambda self, target: target)


@mutant
def replaces_a_voter_by_one_that_is_behind(plant: Plant):
    """A node may become a voter although it lags or does not answer."""
    decide = meta_voters.next_voters

    def next_voters(topology, status, silence_ticks):
        dead = {node: ticks for node, ticks in status.silent.items() if status.membership.is_voter(node)}
        return decide(topology, replace(status, silent=dead), silence_ticks)

    plant(meta_voters, "next_voters", next_voters)
    plant(Leadership, "_is_caught_up", lambda self, node: node in self._progress)


@mutant
def never_replaces_a_voter(plant: Plant):
    plant(MetaVoters, "step", lambda self: None)


@mutant
def forgets_the_bound_in_a_snapshot(plant: Plant):
    """A node that installs a snapshot no longer knows the maximum number of voters."""

    def to_json(self, to_json=Topology.to_json):
        return {**to_json(self), "meta_voters": None}

    plant(Topology, "to_json", to_json)
