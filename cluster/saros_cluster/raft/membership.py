"""The members of a group, and the rule for its majority.

    simple {1,2,3}  --propose {1,2,4}-->  joint {1,2,3}+{1,2,4}  --as soon as that is committed-->  simple {1,2,4}

A membership is an entry of the group's own log and takes effect when the entry is appended. If the entry is truncated,
the previous membership is in effect again. So the membership at any index depends only on the log up to that index, not
on another group's log or a table. While a membership is joint, votes, commits and reads need a majority of both halves
(Raft dissertation, 4.3). Learners receive the log but do not count towards any majority.

`version` is the fencing token of a membership change: the index of the entry of the meta group's log that requested the
change. It only rises.

Pure values: any thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from enum import Enum

import msgspec
from msgspec.structs import replace

from saros_cluster.placement.ring import NodeId

#: A membership with more nodes than this is refused as a mistake. Most of the nodes of a large group are learners of
#: the meta group, whose members are all nodes of the cluster.
MEMBERS_MAX = 10_000
#: A leader sends learners only every n-th heartbeat: n starts at 1 and grows by 1 for each 50 learners, up to 10. A
#: group of a thousand nodes therefore sends a few hundred heartbeats a second, and the learners of a small group get
#: all heartbeats.
_LEARNERS_PER_BEAT, _LEARNER_BEATS_MAX = 50, 10


class VoteResult(Enum):
    """The state of a vote."""

    PENDING = "pending"
    WON = "won"
    LOST = "lost"


class Membership(msgspec.Struct, frozen=True):
    """The members of a group, each tuple sorted.

    `outgoing` has the old voters while the membership is joint. Otherwise it is empty.
    """

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
        """True while a change of the voters is in progress."""
        return bool(self.outgoing)

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """All nodes that receive the log, sorted."""
        return tuple(sorted({*self.voters, *self.learners, *self.outgoing}))

    @property
    def learner_beats(self) -> int:
        """The number n for which a leader sends learners only every n-th heartbeat.

        A learner's time-outs are n times as long as a voter's.
        """
        return min(1 + len(self.learners) // _LEARNERS_PER_BEAT, _LEARNER_BEATS_MAX)

    def is_voter(self, node: NodeId) -> bool:
        """Return whether the node is a voter of either half."""
        return node in self.voters or node in self.outgoing

    def entering(self, target: Membership) -> Membership:
        """Return the first entry on the way to `target`: a joint one if voters change, otherwise `target` itself."""
        assert not self.is_joint
        assert not target.is_joint
        return target if self.voters == target.voters else replace(target, outgoing=self.voters)

    def leaving(self) -> Membership:
        """Return the second entry of a joint change, which contains only the new half of the membership."""
        assert self.is_joint
        return replace(self, outgoing=())

    def has_quorum(self, nodes: Collection[NodeId]) -> bool:
        """Return whether the nodes are a majority (of both halves while joint).

        An empty set of nodes is never a majority.
        """
        return self.vote_result(nodes, ()) is VoteResult.WON

    def vote_result(self, yes: Collection[NodeId], no: Collection[NodeId]) -> VoteResult:
        """Return the state of a vote: won, lost or pending. Only the votes of voters count."""
        results = {_vote_result(half, yes, no) for half in self._majority_sets()}
        if VoteResult.LOST in results:
            return VoteResult.LOST
        return VoteResult.PENDING if VoteResult.PENDING in results else VoteResult.WON

    def committed(self, match: Callable[[NodeId], int]) -> int:
        """Return the highest index that a majority (of both halves while joint) has, given the index of each node."""
        return min(sorted(map(match, half))[(len(half) - 1) // 2] if half else 0 for half in self._majority_sets())

    def _majority_sets(self) -> tuple[tuple[NodeId, ...], ...]:
        return (self.voters, self.outgoing) if self.outgoing else (self.voters,)

    def encode(self) -> bytes:
        """Return the bytes of a membership entry."""
        return json.dumps([self.version, self.voters, self.learners, self.outgoing], separators=(",", ":")).encode()

    @staticmethod
    def decode(data: bytes) -> Membership:
        """Parse the bytes of a membership entry. Raises ValueError if they are not a valid membership."""
        try:
            version, *halves = json.loads(data)
            voters, learners, outgoing = (tuple(NodeId(_checked_int(n)) for n in half) for half in halves)
            return Membership(_checked_int(version), voters, learners, outgoing)
        except (TypeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"not a membership: {error}") from error


def membership(
    version: int, voters: Collection[int], learners: Collection[int] = (), outgoing: Collection[int] = ()
) -> Membership:
    """Return a membership of the given nodes, which may be in any order."""
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
