"""A cluster change in progress: slots that move between groups, and groups whose members change.

    PREPARING     new groups elect a leader; joining nodes receive the group's log as learners
                                                                            after this, no abort is possible
    MOVING        each move: the source's log closes the slots (fence), the table names their new owner, the target's
                  log opens them (open)                                     end of stage one (`docs/experiments`)
    LOADING       each node that takes over slots fetches their files, and reports it; then the source drops them
    REGROUPING    learners become voters; leaving members leave their groups
    ABORTING      instead of the above, while it is still PREPARING: learners leave again

Values that the meta group agrees on (`topology`). Each step of a change is an entry of the meta group's log. So any
node may drive the change, and two nodes may drive it at once. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec
from msgspec.structs import replace

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId


class Stage(Enum):
    """The stage of a change. The module's docstring describes each stage."""

    PREPARING = "preparing"
    MOVING = "moving"
    LOADING = "loading"
    REGROUPING = "regrouping"
    ABORTING = "aborting"


class Move(msgspec.Struct, frozen=True):
    """Slots that move from one group to another."""

    source: GroupId
    target: GroupId
    #: Ascending.
    slots: tuple[int, ...]
    #: The source's members when the change began. They have the data, even if the group's members change later.
    holders: tuple[NodeId, ...]
    #: The table's epoch from which the target owns the slots. It is also the generation of the data written there.
    epoch: int
    #: The entry of the source's log after which the source rejects entries for the slots. Moves are fenced in
    #: order.
    fence: int | None = None
    #: True once an entry of the target's log has opened the slots for reads and writes.
    opened: bool = False
    #: The nodes that have durably stored all files of the slots.
    loaded: frozenset[NodeId] = frozenset()
    #: True once all nodes that need the files have them. From then on, the slots are no longer read at the source.
    arrived: bool = False
    #: True once an entry of the source's log has dropped the slots.
    dropped: bool = False
    #: True if all copies of the source's data are lost. The slots then start empty at the target.
    lost: bool = False


class MembershipChange(msgspec.Struct, frozen=True):
    """The change of a group's members."""

    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]
    done: bool = False


class Change(msgspec.Struct, frozen=True):
    """A change of the cluster in progress. `id` is the entry of the meta group's log that began it."""

    id: int
    joining: tuple[NodeId, ...]
    leaving: tuple[NodeId, ...]
    #: The new groups, with True if the group has a leader.
    new_groups: Mapping[GroupId, bool]
    regroups: Mapping[GroupId, MembershipChange]
    #: The moves. The number of a move is its index here.
    moves: tuple[Move, ...]
    #: True once slots move. From then on, the change cannot be aborted.
    going: bool = False
    aborting: bool = False
    #: Joining nodes that are lost and that the change no longer waits for.
    given_up: frozenset[NodeId] = frozenset()
    #: New groups that were recreated because all their members were lost, each with the entry that recreated it.
    anew: Mapping[GroupId, int] = msgspec.field(default_factory=dict)

    @property
    def stage(self) -> Stage:
        """The current stage."""
        if self.aborting:
            return Stage.ABORTING
        if not self.going:
            return Stage.PREPARING
        if not all(move.opened for move in self.moves):
            return Stage.MOVING
        if not all(move.dropped for move in self.moves):
            return Stage.LOADING
        return Stage.REGROUPING

    @property
    def is_prepared(self) -> bool:
        """True if slots may start to move."""
        return not self.aborting and all(self.new_groups.values())

    @property
    def blocks_drops(self) -> bool:
        """True while slots move or are about to move.

        At that time, a drop could miss their data, or find no owner of the slots.
        """
        return self.is_prepared and self.stage in (Stage.PREPARING, Stage.MOVING)

    @property
    def is_quiescent(self) -> bool:
        """True if every fenced move has been opened. Only then may the next move be fenced."""
        return all(move.opened for move in self.moves if move.fence is not None)

    @property
    def is_finished(self) -> bool:
        """True if nothing is left to do."""
        return self.stage in (Stage.REGROUPING, Stage.ABORTING) and all(r.done for r in self.regroups.values())

    def has_arrived_at(self, node: NodeId, group: GroupId) -> bool:
        """Return whether a node has all the data that has arrived in a group and that the source group may drop."""
        return all(node in m.loaded for m in self.moves if m.target == group and m.arrived and not m.lost)

    def with_move(self, number: int, move: Move) -> Change:
        """Return the change with one move replaced."""
        return replace(self, moves=(*self.moves[:number], move, *self.moves[number + 1 :]))

    def with_regroup(self, group: GroupId, regroup: MembershipChange) -> Change:
        """Return the change with the membership change of one group replaced."""
        return replace(self, regroups={**self.regroups, group: regroup})

    # ------------------------------------------------------------------ encoding

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "id": self.id,
            "joining": self.joining,
            "leaving": self.leaving,
            "new_groups": [[group, ready] for group, ready in self.new_groups.items()],
            "regroups": [[group, r.before, r.after, r.done] for group, r in self.regroups.items()],
            "moves": [_move_to_json(move) for move in self.moves],
            "going": self.going,
            "aborting": self.aborting,
            "given_up": sorted(self.given_up),
            "anew": sorted(self.anew.items()),
        }

    @staticmethod
    def from_json(words: Mapping[str, Any]) -> Change:
        """Parse the values of `to_json`. Raises ValueError, TypeError, KeyError."""
        return Change(
            int(words["id"]),
            nodes_of(words["joining"]),
            nodes_of(words["leaving"]),
            {GroupId(int(group)): bool(ready) for group, ready in words["new_groups"]},
            {
                GroupId(int(g)): MembershipChange(nodes_of(b), nodes_of(a), bool(done))
                for g, b, a, done in words["regroups"]
            },
            tuple(_move_from_json(move) for move in words["moves"]),
            bool(words["going"]),
            bool(words["aborting"]),
            frozenset(nodes_of(words["given_up"])),
            {GroupId(int(group)): int(index) for group, index in words["anew"]},
        )


def nodes_of(words: Sequence[Any]) -> tuple[NodeId, ...]:
    """Parse node ids from JSON values."""
    return tuple(NodeId(int(word)) for word in words)


def runs(slots: Sequence[int]) -> list[list[int]]:
    """Return ascending slots as a list of runs of consecutive slots, each as [first, count]."""
    found: list[list[int]] = []
    for slot in slots:
        if found and sum(found[-1]) == slot:
            found[-1][1] += 1
        else:
            found.append([slot, 1])
    return found


def slots_of_runs(words: Sequence[Any]) -> tuple[int, ...]:
    """Return the slots of the runs that `runs` returned."""
    return tuple(slot for first, count in words for slot in range(int(first), int(first) + int(count)))


def _move_to_json(move: Move) -> list[object]:
    flags = [move.opened, move.arrived, move.dropped, move.lost]
    return [
        move.source,
        move.target,
        runs(move.slots),
        move.holders,
        move.epoch,
        move.fence,
        sorted(move.loaded),
        flags,
    ]


def _move_from_json(words: Sequence[Any]) -> Move:
    source, target, slots, holders, epoch, fence, loaded, (opened, arrived, dropped, lost) = words
    return Move(
        GroupId(int(source)),
        GroupId(int(target)),
        slots_of_runs(slots),
        nodes_of(holders),
        int(epoch),
        None if fence is None else int(fence),
        bool(opened),
        frozenset(nodes_of(loaded)),
        bool(arrived),
        bool(dropped),
        bool(lost),
    )
