"""Who is in a group, and what counts as its majority.

    simple {1,2,3}  --propose {1,2,4}-->  joint {1,2,3}+{1,2,4}  --as soon as that is committed-->  simple {1,2,4}

A membership is an entry of the group's own log and takes effect when it is appended; if that entry is truncated, the
previous membership is in effect again. So the membership at any index is a function of the log up to that index and of
nothing else, neither another group's log nor a table. While it is joint, votes, commits and reads need a majority of
both halves (Raft dissertation, 4.3). Learners receive the log but do not count towards any majority.

`version` is the fencing token of a change: the index in the meta log of the entry that ordered it. It only rises.

Pure values: any thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import Enum

from saros_cluster.placement.ring import NodeId

#: More nodes in one group than this are a mistake, and an entry that says so is refused. Most of them are learners of
#: the meta group, whose members are all nodes.
MEMBERS_MAX = 10_000
#: A leader sends learners one heartbeat in so many: one more for each so many learners, up to the maximum. So the
#: heartbeats of a group of a thousand are a few hundred a second, and a small group's learners get all.
_LEARNERS_PER_BEAT, _LEARNER_BEATS_MAX = 50, 10


class VoteResult(Enum):
    """How a vote stands."""

    PENDING = "pending"
    WON = "won"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Membership:
    """Explicit members, each tuple sorted. `outgoing` is the old half while joint, else empty."""

    version: int
    voters: tuple[NodeId, ...]
    learners: tuple[NodeId, ...] = ()
    outgoing: tuple[NodeId, ...] = ()

    def __post_init__(self) -> None:
        for half in (self.voters, self.learners, self.outgoing):
            if list(half) != sorted(set(half)):
                raise ValueError("members are distinct and sorted")
        if set(self.voters) & set(self.learners):
            raise ValueError("a node is a voter or a learner, not both")
        if len(self.voters) + len(self.learners) + len(self.outgoing) > MEMBERS_MAX:
            raise ValueError("too many members")

    @property
    def is_joint(self) -> bool:
        """Whether a change is half way."""
        return bool(self.outgoing)

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """All that get the log, sorted."""
        return tuple(sorted({*self.voters, *self.learners, *self.outgoing}))

    @property
    def learner_beats(self) -> int:
        """The number of heartbeats of which a learner gets one; its time-outs are as many times longer."""
        return min(1 + len(self.learners) // _LEARNERS_PER_BEAT, _LEARNER_BEATS_MAX)

    def is_voter(self, node: NodeId) -> bool:
        """Whether the node counts in either half."""
        return node in self.voters or node in self.outgoing

    def entering(self, target: Membership) -> Membership:
        """The first entry that leads to `target`: joint if the voters change, else the target itself."""
        assert not self.is_joint
        assert not target.is_joint
        return target if self.voters == target.voters else replace(target, outgoing=self.voters)

    def leaving(self) -> Membership:
        """The second entry."""
        assert self.is_joint
        return replace(self, outgoing=())

    def has_quorum(self, nodes: Collection[NodeId]) -> bool:
        """Whether those are a majority (of both halves while joint). Nobody is no majority."""
        return self.vote_result(nodes, ()) is VoteResult.WON

    def vote_result(self, yes: Collection[NodeId], no: Collection[NodeId]) -> VoteResult:
        """How the vote stands; votes of others than voters do not count."""
        results = {_vote_result(half, yes, no) for half in self._majority_sets()}
        if VoteResult.LOST in results:
            return VoteResult.LOST
        return VoteResult.PENDING if VoteResult.PENDING in results else VoteResult.WON

    def committed(self, match: Callable[[NodeId], int]) -> int:
        """The highest index that a majority (of both halves) has, given what each node has."""
        return min(sorted(map(match, half))[(len(half) - 1) // 2] if half else 0 for half in self._majority_sets())

    def _majority_sets(self) -> tuple[tuple[NodeId, ...], ...]:
        return (self.voters, self.outgoing) if self.outgoing else (self.voters,)

    def encode(self) -> bytes:
        """The bytes of an entry."""
        return json.dumps([self.version, self.voters, self.learners, self.outgoing], separators=(",", ":")).encode()

    @staticmethod
    def decode(data: bytes) -> Membership:
        """The inverse. Raises ValueError if the bytes are no membership."""
        try:
            version, *halves = json.loads(data)
            voters, learners, outgoing = (tuple(NodeId(_checked_int(n)) for n in half) for half in halves)
            return Membership(_checked_int(version), voters, learners, outgoing)
        except (TypeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"not a membership: {error}") from error


def membership(
    version: int, voters: Collection[int], learners: Collection[int] = (), outgoing: Collection[int] = ()
) -> Membership:
    """A membership of nodes in any order."""
    halves = (tuple(sorted({NodeId(n) for n in half})) for half in (voters, learners, outgoing))
    return Membership(version, *halves)


def _vote_result(half: Collection[NodeId], yes: Collection[NodeId], no: Collection[NodeId]) -> VoteResult:
    needed = len(half) // 2 + 1
    if sum(node in yes for node in half) >= needed:
        return VoteResult.WON
    return VoteResult.LOST if len(half) - sum(node in no for node in half) < needed else VoteResult.PENDING


def _checked_int(value: object) -> int:
    if type(value) is not int:
        raise TypeError("not a whole number")
    return value
