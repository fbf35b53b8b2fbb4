"""Who keeps what a sender has sent: the members of the group that owns its slot, and those who come after them.

    slot of (sender, 0) -> group -> members          as of a database's first slice: slots spread senders over groups

    the cluster changes     the replica sets, of each of which more than half must have a round before it is committed
    slots move A -> B       A's members, B's members; from when the table says that the slots are B's: B's
    A gets other members    those that it has, those that it is to have; from when it has them: those

So a node that leaves takes nothing along that was committed while it left, whatever it was told meanwhile. Who is lost
for good counts for nothing, unless nobody else is left. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.topology import Topology

#: Of each of them more than half have what is committed.
ReplicaSets = Sequence[tuple[NodeId, ...]]


def replica_sets(topology: Topology, sender: str) -> ReplicaSets:
    """Who is to have a sender's rounds, as of a topology."""
    slot, found = topology.table.slot(sender, 0), []
    for group in _groups(topology, slot):
        for nodes in _members(topology, group):
            alive = tuple(node for node in nodes if node not in topology.lost)
            found.append(alive or tuple(nodes))
    return tuple(dict.fromkeys(found))


def all_replicas(found: ReplicaSets) -> frozenset[NodeId]:
    """All who are to have them."""
    return frozenset(node for half in found for node in half)


def has_quorum(found: ReplicaSets, nodes: Collection[NodeId]) -> bool:
    """Return whether these nodes are a majority of each half."""
    return all(2 * len(set(half) & set(nodes)) > len(half) for half in found)


def _groups(topology: Topology, slot: int) -> Iterator[GroupId]:
    """Those that own a slot, or are about to."""
    owner, change = GroupId(topology.table.owner(slot).head), topology.change
    yield owner
    if change is not None and not change.aborting:
        yield from (move.target for move in change.moves if slot in move.slots and move.target != owner)


def _members(topology: Topology, group: GroupId) -> Iterable[Sequence[NodeId]]:
    """Those that a group has, and those that it is to have."""
    yield topology.table.groups[NodeId(group)].members
    change = topology.change
    regroup = None if change is None or change.aborting else change.regroups.get(group)
    if regroup is not None and not regroup.done:
        yield regroup.after
