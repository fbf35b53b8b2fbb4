"""The messages between the nodes of a group, and the entries of its log. Frozen values; encoding is elsewhere.

    PreVote, Vote      -> ...Response      may I lead?
    Append             -> AppendResponse   entries after (prev_index, prev_term), and the commit index
    Heartbeat          -> HeartbeatResponse   I lead; `round` is the newest of the leader's read rounds
    SnapshotOffer      -> SnapshotResponse    you are too far behind: fetch this
    TransferNow                            start an election at once
    ReadIndex          -> ReadIndexResponse   how far must I have applied to read what is current?

Sender and receiver are incarnations: a node that lost its disk comes back under another id. `step` refuses a message of
another group or for another node. It also refuses one from an earlier or later group with the same number
(`TERMS_OF_A_GROUP`): a node that leaves the one and joins the other forgets what it promised to the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership

GroupId = NewType("GroupId", int)

#: Terms and indices of a group begin at a multiple of this, above those of groups that had its number before. So a term
#: tells of which of them it is; no group ever has as many.
TERMS_OF_A_GROUP = 1 << 24

#: What an entry takes beside its data, for the limits in bytes.
ENTRY_OVERHEAD_BYTES = 32


class EntryKind(IntEnum):
    """What an entry's data is; the numbers are stored."""

    #: Nothing: the first entry of each term.
    NOOP = 0
    #: The state machine's.
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
        """What it counts for in limits."""
        return len(self.data) + ENTRY_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class HardState:
    """What a node must never forget: its term, and whom it voted for in it."""

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
    """The state as of a position. `token` tells the receiver's runner how to fetch it; the core does not look."""

    position: Position
    token: bytes = b""


@dataclass(frozen=True, slots=True)
class Message:
    """What every message carries."""

    group: GroupId
    sender: NodeId
    receiver: NodeId
    #: The sender's term; in a pre-vote, the term it would begin, and in the answer that grants it, the same.
    term: int


@dataclass(frozen=True, slots=True)
class PreVote(Message):
    """Would you vote for me? Changes nothing at the receiver."""

    last_index: int
    last_term: int


@dataclass(frozen=True, slots=True)
class PreVoteResponse(Message):
    """The answer."""

    granted: bool


@dataclass(frozen=True, slots=True)
class Vote(Message):
    """Vote for me. A transfer may depose a leader that is alive."""

    last_index: int
    last_term: int
    transfer: bool = False


@dataclass(frozen=True, slots=True)
class VoteResponse(Message):
    """The answer."""

    granted: bool


@dataclass(frozen=True, slots=True)
class Append(Message):
    """Entries that follow (prev_index, prev_term); none is a probe, or the news of a commit."""

    prev_index: int
    prev_term: int
    entries: tuple[Entry, ...]
    commit: int


@dataclass(frozen=True, slots=True)
class AppendResponse(Message):
    """If accepted, the log is durable and the same as the leader's up to `index`.

    Else `index` is the prev_index that did not match, and at `hint_index` and before may be a match of term at most
    `hint_term`.
    """

    accepted: bool
    index: int
    hint_index: int = 0
    hint_term: int = 0


@dataclass(frozen=True, slots=True)
class Heartbeat(Message):
    """I lead."""

    commit: int
    round: int


@dataclass(frozen=True, slots=True)
class HeartbeatResponse(Message):
    """You do, as far as I know; this answers `round`."""

    round: int


@dataclass(frozen=True, slots=True)
class SnapshotOffer(Message):
    """My log no longer has what you lack: fetch this."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotResponse(Message):
    """Whether it is installed (or was not needed: `index` is matched then)."""

    installed: bool
    index: int


@dataclass(frozen=True, slots=True)
class TransferNow(Message):
    """Begin an election at once: the leader hands over."""


@dataclass(frozen=True, slots=True)
class ReadIndex(Message):
    """A follower's linearizable read; `read` is unique for its sender over restarts too."""

    read: int


@dataclass(frozen=True, slots=True)
class ReadIndexResponse(Message):
    """What must be applied before that read; None: I cannot tell, ask again."""

    read: int
    index: int | None
