"""A sender's replicas: the members of the group that owns its slot, now and after a change of the topology.

    slot of (sender, 0) -> group -> members          as for a database's first slice; slots spread senders over groups

A commit needs a majority of each replica set. During a change of the topology, there are several sets:

    slots move A -> B       A's members, and B's members; once the table assigns the slots to B, only B's members
    A gets other members    its present members, and its future members; after the change, only the new members

Therefore, a round that is committed during a change survives the change: a majority of the remaining nodes have it.
Nodes that are lost permanently do not count, unless a set has no other nodes. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.topology import Topology

#: Sets of nodes. A majority of each set has every committed round.
ReplicaSets = Sequence[tuple[NodeId, ...]]


def replica_sets(topology: Topology, sender: str) -> ReplicaSets:
    """Return a sender's replica sets as of a topology."""
    slot, found = topology.table.slot(sender, 0), []
    for group in _groups(topology, slot):
        for nodes in _members(topology, group):
            alive = tuple(node for node in nodes if node not in topology.lost)
            found.append(alive or tuple(nodes))
    return tuple(dict.fromkeys(found))


def all_replicas(found: ReplicaSets) -> frozenset[NodeId]:
    """Return all nodes of the replica sets."""
    return frozenset(node for half in found for node in half)


def has_quorum(found: ReplicaSets, nodes: Collection[NodeId]) -> bool:
    """Return whether these nodes are a majority of each replica set."""
    return all(2 * len(set(half) & set(nodes)) > len(half) for half in found)


def _groups(topology: Topology, slot: int) -> Iterator[GroupId]:
    """Yield the group that owns a slot, and the groups that it moves to."""
    owner, change = GroupId(topology.table.owner(slot).head), topology.change
    yield owner
    if change is not None and not change.aborting:
        yield from (move.target for move in change.moves if slot in move.slots and move.target != owner)


def _members(topology: Topology, group: GroupId) -> Iterable[Sequence[NodeId]]:
    """Yield a group's present members, and its future members if the membership is changing."""
    yield topology.table.groups[NodeId(group)].members
    change = topology.change
    regroup = None if change is None or change.aborting else change.regroups.get(group)
    if regroup is not None and not regroup.done:
        yield regroup.after
