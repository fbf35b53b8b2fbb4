"""The partition table: nodes, groups with their members, the owner of every slot, and who held a slot before (R-3.5).

    version 12    groups  9: (9, 4, 7)   4: (4, 7, 2) ...     owners  slot 0: 9   slot 1: 4 ...
                  previous  slot 17: 4        still being moved: reads merge its old and its new holder

A group is named by its head. Members are listed explicitly: the ring is only the policy that fills the list at first.
`version` is the index of the meta log entry that made the table; an older table never replaces a newer one (`newer`).

A value: changes give a new table. Pure: any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from saros_cluster.placement.balancer import Owners, moves_to_new, moves_when_leaving
from saros_cluster.placement.ring import NodeId, Ring
from saros_cluster.placement.slots import SLOTS, slot_of

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Group:
    """A data group: `members[0]` is its head, whose id names it."""

    members: tuple[NodeId, ...]

    @property
    def head(self) -> NodeId:
        """The node that the group is named by."""
        return self.members[0]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionTable:
    """See the module."""

    version: int
    replicas: int
    #: By head.
    groups: Mapping[NodeId, Group]
    #: int64[slots]: head of the group that owns each slot. Never changed in place.
    owners: Owners
    #: Slots that are being moved: the head that held them before.
    previous: Mapping[int, NodeId] = field(default_factory=dict)

    @staticmethod
    def first(nodes: list[NodeId], replicas: int, slots: int = SLOTS) -> PartitionTable:
        """The table of a new cluster: groups by the ring, slots dealt out evenly in runs. At least one node."""
        ring = Ring(nodes)
        groups = {node: Group(ring.group(node, replicas)) for node in ring.nodes}
        turns = np.arange(slots) * len(ring.nodes) // slots
        return PartitionTable(0, replicas, groups, np.array(ring.nodes, np.int64)[turns])

    # ------------------------------------------------------------------ looking

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """All nodes, in ring order."""
        return Ring(self.groups).nodes

    def slot(self, database: str, slice_: int) -> int:
        """The slot of a database's slice."""
        return slot_of(database, slice_, len(self.owners))

    def route(self, database: str, slice_: int) -> Group:
        """The group that owns a database's slice."""
        return self.owner(self.slot(database, slice_))

    def owner(self, slot: int) -> Group:
        """The group that owns a slot."""
        return self.groups[NodeId(int(self.owners[slot]))]

    def previous_owner(self, slot: int) -> Group | None:
        """The group whose data of the slot has not all arrived at its owner yet; None if it has."""
        head = self.previous.get(slot)
        return None if head is None else self.groups[head]

    def holds_slot(self, node: NodeId, slot: int) -> bool:
        """Whether a node is a member of the group that owns the slot."""
        return node in self.owner(slot).members

    def groups_of(self, node: NodeId) -> list[Group]:
        """The groups that a node is a member of, in order of their heads."""
        return [self.groups[head] for head in sorted(self.groups) if node in self.groups[head].members]

    def slots_of(self, head: NodeId) -> list[int]:
        """The slots that a group owns."""
        found: list[int] = np.flatnonzero(self.owners == head).tolist()
        return found

    # ------------------------------------------------------------------ changing

    def add_node(self, node: NodeId, version: int) -> PartitionTable:
        """With one node more: it heads a group with an even share of the slots, which are on the move to it."""
        assert node not in self.groups
        self._check_quiet(version)
        moves = moves_to_new(self.owners, list(self.groups), node)
        owners = self.owners.copy()
        owners[list(moves)] = node
        groups = self._ring_groups([*self.groups, node])
        return replace(self, version=version, groups=groups, owners=owners, previous=moves)

    def remove_node(self, node: NodeId, version: int) -> PartitionTable:
        """With one node less as an owner: its slots are on the move to the others.

        Its group stays until the slots have arrived (`arrived`, then `drop_group`), since they are read there.
        """
        assert node in self.groups
        assert len(self.groups) > 1
        self._check_quiet(version)
        moves = moves_when_leaving(self.owners, list(self.groups), node)
        owners = self.owners.copy()
        owners[list(moves)] = list(moves.values())
        return replace(self, version=version, owners=owners, previous=dict.fromkeys(moves, node))

    def arrived(self, slots: list[int], version: int) -> PartitionTable:
        """Slots whose data is all at their owner."""
        assert version > self.version
        left = {slot: head for slot, head in self.previous.items() if slot not in set(slots)}
        return replace(self, version=version, previous=left)

    def drop_group(self, head: NodeId, version: int) -> PartitionTable:
        """Without a group that owns nothing and holds nothing; the other groups lose the node as a member."""
        assert version > self.version
        assert not self.slots_of(head)
        assert head not in self.previous.values()
        groups = self._ring_groups([node for node in self.groups if node != head])
        return replace(self, version=version, groups=groups)

    def _ring_groups(self, nodes: list[NodeId]) -> dict[NodeId, Group]:
        ring = Ring(nodes)
        return {node: Group(ring.group(node, self.replicas)) for node in ring.nodes}

    def _check_quiet(self, version: int) -> None:
        """One change at a time: the one before has moved all its slots."""
        assert version > self.version
        assert not self.previous

    # ------------------------------------------------------------------ bytes

    def serialize(self) -> bytes:
        """The table's bytes: one line of JSON, then the owners."""
        words = {
            "format": _FORMAT,
            "version": self.version,
            "replicas": self.replicas,
            "groups": [list(self.groups[head].members) for head in sorted(self.groups)],
            "previous": [[slot, self.previous[slot]] for slot in sorted(self.previous)],
            "slots": len(self.owners),
        }
        return json.dumps(words, separators=(",", ":")).encode() + b"\n" + self.owners.astype("<i8").tobytes()

    @staticmethod
    def deserialize(data: bytes) -> PartitionTable:
        """The inverse. Raises ValueError if the bytes are no table."""
        line, _, rest = data.partition(b"\n")
        try:
            words = json.loads(line)
            if words["format"] != _FORMAT or len(rest) != 8 * words["slots"]:
                raise ValueError("other format or length")
            groups = {NodeId(m[0]): Group(tuple(NodeId(int(i)) for i in m)) for m in words["groups"]}
            previous = {int(slot): NodeId(int(head)) for slot, head in words["previous"]}
            owners = np.frombuffer(rest, "<i8").astype(np.int64)
            table = PartitionTable(int(words["version"]), int(words["replicas"]), groups, owners, previous)
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"not a partition table: {error}") from error
        known = set(groups)
        if not set(owners.tolist()) <= known or not set(previous.values()) <= known:
            raise ValueError("not a partition table: a slot's group is missing")
        return table


def newer(current: PartitionTable | None, offered: PartitionTable) -> PartitionTable:
    """The one to keep."""
    return offered if current is None or offered.version > current.version else current
