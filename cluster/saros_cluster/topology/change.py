"""A cluster change in progress: slots that move between groups, and groups whose members change.

    PREPARING     new groups elect a leader; joining nodes receive the group's log as learners
                                                                            after this, no abort is possible
    MOVING        each move: the source's log closes the slots (fence), the table names their new owner, the target's
                  log opens them (open)                                     end of stage one
    LOADING       each node that takes over slots fetches their files, and reports it; then the source drops them
    REGROUPING    learners become voters; leaving members leave their groups
    ABORTING      instead of the above, while it is still PREPARING: learners leave again

Values that the meta group agrees on (`topology`). Each step is an entry of its log, so any node may drive the change,
and two may do so at once. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId


class Stage(Enum):
    """See the module."""

    PREPARING = "preparing"
    MOVING = "moving"
    LOADING = "loading"
    REGROUPING = "regrouping"
    ABORTING = "aborting"


@dataclass(frozen=True, slots=True)
class Move:
    """Slots on their way from one group to another."""

    source: GroupId
    target: GroupId
    #: Rising.
    slots: tuple[int, ...]
    #: The source's members when the change began: they have the data, whatever becomes of the group.
    holders: tuple[NodeId, ...]
    #: The table's once the slots are the target's: the generation of what is written there.
    epoch: int
    #: The entry of the source's log behind which it takes nothing for the slots; moves are fenced in their order.
    fence: int | None = None
    #: The target's log says so too.
    opened: bool = False
    #: Who has all files of the slots, durably.
    loaded: frozenset[NodeId] = frozenset()
    #: All who need them have them: nobody reads the slots at the source any more.
    arrived: bool = False
    #: The source's log says that it lets go of them.
    dropped: bool = False
    #: Nobody has what the source had: the slots begin with nothing.
    lost: bool = False


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """A group that gets other members."""

    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]
    done: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """See the module. `id` is the entry of the meta group's log that began it."""

    id: int
    joining: tuple[NodeId, ...]
    leaving: tuple[NodeId, ...]
    #: Groups that are new: whether they have a leader.
    new_groups: Mapping[GroupId, bool]
    regroups: Mapping[GroupId, MembershipChange]
    #: A move's number is its place.
    moves: tuple[Move, ...]
    #: There is no way back.
    going: bool = False
    aborting: bool = False
    #: Nodes that join and are not waited for.
    given_up: frozenset[NodeId] = frozenset()
    #: New groups that began once more, since all their members were lost: the entry that said so.
    anew: Mapping[GroupId, int] = field(default_factory=dict)

    @property
    def stage(self) -> Stage:
        """How far it is."""
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
        """Whether it may go."""
        return not self.aborting and all(self.new_groups.values())

    @property
    def blocks_drops(self) -> bool:
        """Whether slots move, or may at any moment: a drop could reach them where they were only, or nowhere."""
        return self.is_prepared and self.stage in (Stage.PREPARING, Stage.MOVING)

    @property
    def is_quiescent(self) -> bool:
        """Whether no move is half way: fenced, and not opened. Only then the next one is fenced."""
        return all(move.opened for move in self.moves if move.fence is not None)

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to be done."""
        return self.stage in (Stage.REGROUPING, Stage.ABORTING) and all(r.done for r in self.regroups.values())

    def has_arrived_at(self, node: NodeId, group: GroupId) -> bool:
        """Whether a node has all that has arrived in a group, and that its source may let go of."""
        return all(node in m.loaded for m in self.moves if m.target == group and m.arrived and not m.lost)

    def with_move(self, number: int, move: Move) -> Change:
        """With a move that is further."""
        return replace(self, moves=(*self.moves[:number], move, *self.moves[number + 1 :]))

    def with_regroup(self, group: GroupId, regroup: MembershipChange) -> Change:
        """With a group that is further, or is to have other members."""
        return replace(self, regroups={**self.regroups, group: regroup})

    # ------------------------------------------------------------------ words

    def to_json(self) -> dict[str, object]:
        """As values that JSON knows."""
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
        """The inverse. Raises ValueError, TypeError, KeyError."""
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
    """Ids as JSON gives them."""
    return tuple(NodeId(int(word)) for word in words)


def runs(slots: Sequence[int]) -> list[list[int]]:
    """Rising slots as [first, count] of those in a row."""
    found: list[list[int]] = []
    for slot in slots:
        if found and sum(found[-1]) == slot:
            found[-1][1] += 1
        else:
            found.append([slot, 1])
    return found


def slots_of_runs(words: Sequence[Any]) -> tuple[int, ...]:
    """The inverse."""
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
