"""The partition table: nodes, groups with their members, the owner of each slot, and previous owners of some slots.

    version 12    groups  9: (9, 4, 7)   4: (4, 7, 2) ...     owners  slot 0: 9   slot 1: 4 ...
                  previous  slot 17: 4        still being moved: reads merge its old and its new holder

The name of a group is the id of its first member, its head. Members are listed explicitly: `placement.members` is the
policy that chooses the members. `version` is the index of the meta log entry that made the table: every node sees
versions in ascending order.

The table is a value: a change returns a new table. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from saros_cluster.placement.balancer import Owners
from saros_cluster.placement.members import first_members
from saros_cluster.placement.ring import NodeId, Ring
from saros_cluster.placement.slots import SLOTS, slot_of

_FORMAT = 2


class Group(msgspec.Struct, frozen=True):
    """A data group, named by the id of its head, `members[0]`."""

    members: tuple[NodeId, ...]

    @property
    def head(self) -> NodeId:
        """The node whose id names the group."""
        return self.members[0]


class PartitionTable(msgspec.Struct, frozen=True, eq=False):
    """One version of the assignment of slots to groups, and of groups to nodes."""

    version: int
    replicas: int
    #: The groups, keyed by their heads.
    groups: Mapping[NodeId, Group]
    #: int64[slots]: the head of the group that owns each slot. Never changed in place.
    owners: Owners
    #: Slots that are being moved, each with the head that owned it before.
    previous: Mapping[int, NodeId] = msgspec.field(default_factory=dict)
    #: The number of moves of slots to another group since the cluster was created. Each move begins a new epoch.
    epoch: int = 0
    #: For each group, named by its head, the last move that gave slots to the group. A node that does not know of this
    #: move does not know all slots of the group.
    inbound: Mapping[NodeId, int] = msgspec.field(default_factory=dict)
    #: For each group, named by its head, the last move that took slots from the group. A node that does not know of
    #: this move returns data that the group no longer owns.
    outbound: Mapping[NodeId, int] = msgspec.field(default_factory=dict)

    @staticmethod
    def first(
        nodes: list[NodeId], replicas: int, slots: int = SLOTS, racks: Mapping[NodeId, str] | None = None
    ) -> PartitionTable:
        """Return the table of a new cluster, with the groups of the ring, and with slots dealt out evenly in runs.

        `nodes` has at least one node.
        """
        ring = Ring(nodes)
        groups = {head: Group(members) for head, members in first_members(nodes, replicas, racks or {}).items()}
        turns = np.arange(slots) * len(ring.nodes) // slots
        return PartitionTable(0, replicas, groups, np.array(ring.nodes, np.int64)[turns])

    # ------------------------------------------------------------------ queries

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """All nodes, in ring order."""
        return Ring(self.groups).nodes

    def slot(self, database: str, slice_: int) -> int:
        """Return the slot of a database's slice."""
        return slot_of(database, slice_, len(self.owners))

    def route(self, database: str, slice_: int) -> Group:
        """Return the group that owns a database's slice."""
        return self.owner(self.slot(database, slice_))

    def owner(self, slot: int) -> Group:
        """Return the group that owns a slot."""
        return self.groups[NodeId(int(self.owners[slot]))]

    def groups_of(self, node: NodeId) -> list[Group]:
        """Return the groups that a node is a member of, in order of their heads."""
        return [self.groups[head] for head in sorted(self.groups) if node in self.groups[head].members]

    def slots_of(self, head: NodeId) -> list[int]:
        """Return the slots that a group owns."""
        found: list[int] = np.flatnonzero(self.owners == head).tolist()
        return found

    # ------------------------------------------------------------------ changes

    def with_groups(self, groups: Iterable[Group], version: int) -> PartitionTable:
        """Return a table to which the given groups are added, or in which they replace those with the same heads."""
        assert version > self.version
        return replace(self, version=version, groups={**self.groups, **{group.head: group for group in groups}})

    def moved(self, slots: Sequence[int], target: NodeId, version: int) -> PartitionTable:
        """Return a table in which `target` owns the slots, in a new epoch.

        The slots' data is still at the old owners.
        """
        assert version > self.version
        assert target in self.groups
        assert not self.previous.keys() & set(slots)
        owners = self.owners.copy()
        owners[list(slots)] = target
        previous = {slot: NodeId(int(self.owners[slot])) for slot in slots}
        return replace(
            self,
            version=version,
            owners=owners,
            previous={**self.previous, **previous},
            epoch=self.epoch + 1,
            inbound={**self.inbound, target: self.epoch + 1},
            outbound={**self.outbound, **dict.fromkeys(previous.values(), self.epoch + 1)},
        )

    def arrived(self, slots: Sequence[int], version: int) -> PartitionTable:
        """Return a table in which the slots have no previous owner, since all their data is at the current owner."""
        assert version > self.version
        gone = set(slots)
        left = {slot: head for slot, head in self.previous.items() if slot not in gone}
        return replace(self, version=version, previous=left)

    def without_groups(self, heads: Collection[NodeId], version: int) -> PartitionTable:
        """Return a table without the groups `heads`, which are neither owners nor previous owners of any slot."""
        assert not set(self.owners.tolist()) & set(heads)
        assert not set(self.previous.values()) & set(heads)
        groups = {known: group for known, group in self.groups.items() if known not in heads}
        inbound = {known: epoch for known, epoch in self.inbound.items() if known not in heads}
        outbound = {known: epoch for known, epoch in self.outbound.items() if known not in heads}
        return replace(self, version=version, groups=groups, inbound=inbound, outbound=outbound)

    # ------------------------------------------------------------------ encoding

    def to_json(self) -> dict[str, object]:
        """Return JSON values. The owners are runs of slots, each as [head, count]."""
        places = np.flatnonzero(np.diff(self.owners, prepend=self.owners[0] - 1))
        counts = np.diff(places, append=len(self.owners)).tolist()
        return {
            "format": _FORMAT,
            "version": self.version,
            "replicas": self.replicas,
            "groups": [list(self.groups[head].members) for head in sorted(self.groups)],
            "owners": [[head, count] for head, count in zip(self.owners[places].tolist(), counts, strict=True)],
            "previous": [[slot, self.previous[slot]] for slot in sorted(self.previous)],
            "epoch": self.epoch,
            "inbound": sorted(self.inbound.items()),
            "outbound": sorted(self.outbound.items()),
        }

    @staticmethod
    def from_json(words: Mapping[str, Any]) -> PartitionTable:
        """Parse the values of `to_json`. Raises ValueError, TypeError, KeyError if the values are not a valid table."""
        if words["format"] != _FORMAT:
            raise ValueError("unknown format")
        groups = {NodeId(m[0]): Group(tuple(NodeId(int(i)) for i in m)) for m in words["groups"]}
        heads, counts = zip(*words["owners"], strict=True)
        owners = np.repeat(np.array(heads, np.int64), counts)
        previous = {int(slot): NodeId(int(head)) for slot, head in words["previous"]}
        if not set(heads) <= set(groups) or not set(previous.values()) <= set(groups):
            raise ValueError("a slot's group is missing")
        # Tables of older versions do not contain these values.
        inbound, outbound = (
            {NodeId(int(head)): int(epoch) for head, epoch in words.get(name, ())} for name in ("inbound", "outbound")
        )
        version, replicas, epoch = (int(words[key]) for key in ("version", "replicas", "epoch"))
        return PartitionTable(version, replicas, groups, owners, previous, epoch, inbound, outbound)
