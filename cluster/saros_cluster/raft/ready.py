"""The work that a `RaftNode` hands out, the node's options, and its replies to proposals. Frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Protocol

import msgspec

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import Entry, GroupId, HardState, Message, Position, Snapshot
from saros_cluster.raft.reads import ReadResult

NOBODY_SILENT: Mapping[NodeId, int] = MappingProxyType({})


class Randomness(Protocol):
    """The source of random numbers. `random.Random` fits."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to `stop` - 1."""
        ...

    def getrandbits(self, count: int, /) -> int:
        """Return a number from 0 to 2 ** `count` - 1."""
        ...


class Role(Enum):
    """The role of a node in its group."""

    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


class Refusal(Enum):
    """The reason why a proposal was refused.

    The proposal had no effect, and may be proposed again, here or at the leader.
    """

    NOT_LEADER = "not the leader"
    #: Too many bytes are uncommitted, or a leadership transfer is in progress: the caller must retry later.
    BUSY = "busy"
    #: The command exceeds the size limit, so a retry does not help.
    TOO_LARGE = "too large"
    #: A new leader has not committed its first entry yet: the caller must retry later.
    TOO_EARLY = "too early"
    #: Another membership change is in progress.
    CHANGING = "changing"
    #: The version is lower than that of the current membership, or equal with the same voters: the change was made
    #: already, or was superseded.
    OLD_VERSION = "old version"
    #: A new voter is not a learner yet, or lacks too much of the log, or the target membership has no voter.
    NOT_CAUGHT_UP = "not caught up"


class Accepted(msgspec.Struct, frozen=True):
    """The entry's place.

    The proposal is committed if the entry that is applied at `index` has this term. Otherwise it is lost.
    """

    index: int
    term: int


class Refused(msgspec.Struct, frozen=True):
    """The proposal was refused. `leader` is the node to ask instead, if it is known."""

    reason: Refusal
    leader: NodeId | None


class RaftOptions(msgspec.Struct, frozen=True):
    """The options of a node, fixed for its lifetime."""

    heartbeat_ticks: int = 4
    #: A follower campaigns if it hears from no leader for a random number of ticks between this and twice this.
    election_ticks: int = 20
    #: The bytes of applied entries that a log retains for members that lag, since a snapshot costs more.
    retained_bytes: int = 32 << 20

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_ticks < self.election_ticks:
            raise ValueError("heartbeats come more often than elections")


class Restored(msgspec.Struct, frozen=True):
    """The state that a node finds on its disk.

    `base` is where the log begins. `applied` is the position up to which the state machine is durable. This position is
    after the base if the log is complete, and after the log's end if a crash came between the installation of a
    snapshot and the restart of the log. A new member of a group begins at position 0 with an empty membership.
    """

    base: Position
    hard_state: HardState = msgspec.field(default_factory=HardState)
    entries: tuple[Entry, ...] = ()
    applied: Position | None = None


class Persist(msgspec.Struct, frozen=True):
    """State that must be made durable, in the order given below. A crash may leave any prefix of it.

    Call `persisted(index)` afterwards.

    1. hard_state, if not None.
    2. snapshot, if not None: the staged snapshot replaces the state machine, after all entries that were handed out are
       applied or discarded.
    3. base, if not None: the log restarts after this position, without its previous entries.
    4. entries: they replace the log's entries from the index of the first one on.
    """

    index: int
    hard_state: HardState | None
    snapshot: Snapshot | None
    base: Position | None
    entries: tuple[Entry, ...]


class Ready(msgspec.Struct, frozen=True):
    """The work to do now. The parts of this work need not wait for each other."""

    #: The state to write. It is handed out once. The next `Persist` comes only after `persisted`.
    persist: Persist | None
    #: The messages to send, in any order. They may be lost.
    messages: tuple[Message, ...]
    #: The entries to apply in order, after which the runner calls `applied(index)`.
    committed: tuple[Entry, ...]
    reads: tuple[ReadResult, ...]
    #: The snapshot to fetch without touching the live state, after which the runner calls `staged` or `staging_failed`.
    #: No other fetch is requested before a staged snapshot is installed.
    fetch: Snapshot | None
    #: The members for which the runner must make a snapshot of the applied state. The runner then calls
    #: `offer_snapshot` or `no_snapshot` for each of these members.
    snapshots_wanted: tuple[NodeId, ...]

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to do."""
        return not (
            self.persist or self.messages or self.committed or self.reads or self.fetch or self.snapshots_wanted
        )


class Status(msgspec.Struct, frozen=True):
    """The state of a node, for metrics and errors."""

    group: GroupId
    node: NodeId
    role: Role
    term: int
    leader: NodeId | None
    commit: int
    applied: int
    last_index: int
    #: The number of messages that `step` has refused since the start.
    rejected: int
    #: The most recent changes of role, oldest first.
    story: tuple[str, ...]
    #: The membership in effect, and whether its entry is committed.
    membership: Membership
    is_membership_committed: bool
    #: The term of the last entry. Of two logs, the one with the greater (last_term, last_index) is newer.
    last_term: int
    #: On a leader: the members that have been silent for an election time-out or longer, and for how many ticks.
    #: Learners that get fewer heartbeats are allowed more time (`Membership.learner_beats`). Updated once per election
    #: time-out.
    silent: Mapping[NodeId, int] = msgspec.field(default_factory=lambda: NOBODY_SILENT)

    @property
    def leads(self) -> bool:
        """True if the node leads the group, as far as it knows."""
        return self.role is Role.LEADER
