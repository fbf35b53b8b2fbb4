"""The messages between the members of a group, and the entries of its log. Frozen values; encoding is elsewhere.

    PreVote, Vote      -> ...Response          may I lead?
    Append             -> AppendResponse       entries after (prev_index, prev_term), and the commit index
    Heartbeat          -> HeartbeatResponse    I lead; `round` is the newest of the leader's read rounds
    SnapshotOffer      -> SnapshotResponse     you are too far back for the log: fetch this
    TransferNow                                start an election at once
    ReadIndex          -> ReadIndexResponse    how far must I have applied for a linearizable read?

Sender and receiver are incarnations: a node that lost its disk comes back under another id. `step` refuses a message of
another group or for another node. It also refuses messages of an earlier or later group that has, or had, the same
number (`TERMS_OF_A_GROUP`): a node that left one and joined the other has forgotten its promises to the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership

GroupId = NewType("GroupId", int)

#: Terms and indices of a group start at a multiple of this, above those of all earlier groups with the same number. So
#: a term identifies one of these groups; no group ever uses up this many terms.
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


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a group's log. Indices begin at 1 and have no gaps; terms never fall."""

    index: int
    term: int
    kind: EntryKind
    data: bytes = b""

    @property
    def size_bytes(self) -> int:
        """The entry's size for limits in bytes."""
        return len(self.data) + ENTRY_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class HardState:
    """The part of a node's state that must survive a crash: its term, and its vote in that term."""

    term: int = 0
    vote: NodeId | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the log: the last entry before it, and the membership as of that entry."""

    index: int
    term: int
    membership: Membership


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state as of a position. `token` tells the receiver's runner how to fetch it; the core does not read it."""

    position: Position
    token: bytes = b""


@dataclass(frozen=True, slots=True)
class Message:
    """The fields that all messages have."""

    group: GroupId
    sender: NodeId
    receiver: NodeId
    #: The sender's term; in a pre-vote, the term it would begin, and in the answer that grants it, the same.
    term: int


@dataclass(frozen=True, slots=True)
class PreVote(Message):
    """A request for a pre-vote: would the receiver vote for the sender in `term`? Changes nothing there."""

    last_index: int
    last_term: int


@dataclass(frozen=True, slots=True)
class PreVoteResponse(Message):
    """The answer to a `PreVote`."""

    granted: bool


@dataclass(frozen=True, slots=True)
class Vote(Message):
    """A request for a vote in `term`. In a leadership transfer, it may depose a leader that is alive."""

    last_index: int
    last_term: int
    transfer: bool = False


@dataclass(frozen=True, slots=True)
class VoteResponse(Message):
    """The answer to a `Vote`."""

    granted: bool


@dataclass(frozen=True, slots=True)
class Append(Message):
    """Entries that follow (prev_index, prev_term). Without entries, a probe or the announcement of a commit."""

    prev_index: int
    prev_term: int
    entries: tuple[Entry, ...]
    commit: int


@dataclass(frozen=True, slots=True)
class AppendResponse(Message):
    """The answer to an `Append`.

    If accepted, the follower's log is durable and equal to the leader's up to `index`. Otherwise `index` is the
    prev_index that did not match; the logs can match only at `hint_index` or before, at an entry whose term is at most
    `hint_term`.
    """

    accepted: bool
    index: int
    hint_index: int = 0
    hint_term: int = 0


@dataclass(frozen=True, slots=True)
class Heartbeat(Message):
    """The announcement of the term's leader, a commit index within the receiver's log, and the newest read round."""

    commit: int
    round: int


@dataclass(frozen=True, slots=True)
class HeartbeatResponse(Message):
    """The answer to a heartbeat: confirms the leader and its `round`, or tells an old leader of a later term."""

    round: int


@dataclass(frozen=True, slots=True)
class SnapshotOffer(Message):
    """An offer of a snapshot to fetch: the leader's log no longer has the entries that the receiver lacks."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotResponse(Message):
    """The outcome of an offer: installed or not available. If it was not needed, `index` is matched, too."""

    installed: bool
    index: int


@dataclass(frozen=True, slots=True)
class TransferNow(Message):
    """A request to start an election at once: the leader hands over."""


@dataclass(frozen=True, slots=True)
class ReadIndex(Message):
    """A follower's request for the index of a linearizable read. `read` is unique for its sender, over restarts too."""

    read: int


@dataclass(frozen=True, slots=True)
class ReadIndexResponse(Message):
    """The index that must be applied before that read; None if the sender cannot tell: ask again."""

    read: int
    index: int | None
