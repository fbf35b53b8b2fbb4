"""The messages between the members of a group, and the entries of its log. Frozen values. Encoding is elsewhere.

    PreVote, Vote      -> ...Response          may I lead?
    Append             -> AppendResponse       entries after (prev_index, prev_term), and the commit index
    Heartbeat          -> HeartbeatResponse    I lead; `round` is the newest of the leader's read rounds
    SnapshotOffer      -> SnapshotResponse     you are too far back for the log: fetch this
    TransferNow                                start an election at once
    ReadIndex          -> ReadIndexResponse    how far must I have applied for a linearizable read?

Sender and receiver identify incarnations of nodes: a node that lost its disk comes back under another id. `step`
refuses a message of another group or for another node. It also refuses messages of an earlier or later group that has
the same number (`TERMS_OF_A_GROUP`), since a node that left one group and joined the other has forgotten its promises
to the first.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NewType

import msgspec

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership

GroupId = NewType("GroupId", int)

#: The terms and indices of a group start at a multiple of this number, above those of all earlier groups with the same
#: group number. So a term tells which of these groups it belongs to. No group ever uses up this many terms.
TERMS_OF_A_GROUP = 1 << 24

#: Size of an entry in addition to its data, for limits in bytes.
ENTRY_OVERHEAD_BYTES = 32


class EntryKind(IntEnum):
    """The kind of an entry's data. The numbers are stored on disk."""

    #: No data: the first entry of each term.
    NOOP = 0
    #: A command for the state machine.
    DATA = 1
    #: An encoded membership.
    MEMBERSHIP = 2


class Entry(msgspec.Struct, frozen=True):
    """One entry of a group's log. Indices begin at 1 and are consecutive. Terms never decrease."""

    index: int
    term: int
    kind: EntryKind
    data: bytes = b""

    @property
    def size_bytes(self) -> int:
        """The entry's size for limits in bytes."""
        return len(self.data) + ENTRY_OVERHEAD_BYTES


class HardState(msgspec.Struct, frozen=True):
    """The part of a node's state that must survive a crash: its term, and its vote in that term."""

    term: int = 0
    vote: NodeId | None = None


class Position(msgspec.Struct, frozen=True):
    """A place in the log: the last entry before it, and the membership as of that entry."""

    index: int
    term: int
    membership: Membership


class Snapshot(msgspec.Struct, frozen=True):
    """The state as of a position.

    The code that runs the receiver can fetch the state with `token`. The code of Raft itself does not interpret the
    token.
    """

    position: Position
    token: bytes = b""


class Message(msgspec.Struct, frozen=True):
    """The fields that all messages have."""

    group: GroupId
    sender: NodeId
    receiver: NodeId
    #: The sender's term. In a request for a pre-vote, `term` is the term that the sender would begin. An answer that
    #: grants the pre-vote repeats this term.
    term: int


class PreVote(Message, frozen=True):
    """A request for a pre-vote, which asks whether the receiver would vote for the sender in `term`."""

    last_index: int
    last_term: int


class PreVoteResponse(Message, frozen=True):
    """The answer to a `PreVote`."""

    granted: bool


class Vote(Message, frozen=True):
    """A request for a vote in `term`. During a leadership transfer, the vote may depose a leader that is alive."""

    last_index: int
    last_term: int
    transfer: bool = False


class VoteResponse(Message, frozen=True):
    """The answer to a `Vote`."""

    granted: bool


class Append(Message, frozen=True):
    """Entries that follow (prev_index, prev_term). An append without entries is a probe, or announces a commit."""

    prev_index: int
    prev_term: int
    entries: tuple[Entry, ...]
    commit: int


class AppendResponse(Message, frozen=True):
    """The answer to an `Append`.

    If the append is accepted, the follower's log is durable up to `index`, and equal to the leader's log up to there.
    If the append is rejected, `index` is its prev_index, at which the logs differ. The logs can only match at or before
    `hint_index`, up to an entry whose term is at most `hint_term`.
    """

    accepted: bool
    index: int
    hint_index: int = 0
    hint_term: int = 0


class Heartbeat(Message, frozen=True):
    """The announcement of the term's leader, a commit index within the receiver's log, and the newest read round."""

    commit: int
    round: int


class HeartbeatResponse(Message, frozen=True):
    """The answer to a heartbeat.

    The answer confirms the leader and its `round`, or informs an old leader about a later term.
    """

    round: int


class SnapshotOffer(Message, frozen=True):
    """An offer of a snapshot to fetch: the leader's log no longer has the entries that the receiver lacks."""

    snapshot: Snapshot


class SnapshotResponse(Message, frozen=True):
    """The outcome of the offer of a snapshot: installed or not available.

    Even if the snapshot was not needed, the log matches up to `index`.
    """

    installed: bool
    index: int


class TransferNow(Message, frozen=True):
    """A request to start an election at once, because the leader hands over its leadership."""


class ReadIndex(Message, frozen=True):
    """A follower's request for the index of a linearizable read.

    The number `read` is unique for its sender, even across restarts.
    """

    read: int


class ReadIndexResponse(Message, frozen=True):
    """The index that must be applied before the read, or None if the sender cannot tell: the reader must ask again."""

    read: int
    index: int | None
