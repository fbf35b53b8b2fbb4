"""The work that a `RaftNode` hands out, the node's options, and its replies to proposals. Frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Protocol

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import Entry, GroupId, HardState, Message, Position, Snapshot
from saros_cluster.raft.reads import ReadResult

NOBODY_SILENT: Mapping[NodeId, int] = MappingProxyType({})


class Randomness(Protocol):
    """Where chance comes from; `random.Random` fits."""

    def randrange(self, stop: int, /) -> int:
        """Below `stop`."""
        ...

    def getrandbits(self, count: int, /) -> int:
        """Below 2 ** count."""
        ...


class Role(Enum):
    """What a node is in its group at the moment."""

    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


class Refusal(Enum):
    """Why a proposal was not taken. Nothing happened: it may be proposed again, here or where the leader is."""

    NOT_LEADER = "not the leader"
    #: Too much is not committed yet, or leadership is being handed over: wait.
    BUSY = "busy"
    #: No size of patience helps.
    TOO_LARGE = "too large"
    #: A new leader has not committed its first entry yet: wait.
    TOO_EARLY = "too early"
    #: Another change of the membership is on its way.
    CHANGING = "changing"
    #: The version is below the one in effect, or has these voters already: the change has been made, or overtaken.
    OLD_VERSION = "old version"
    #: A voter to be is no learner yet, or lacks too much of the log; or there would be no voter.
    NOT_CAUGHT_UP = "not caught up"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The entry's place. It is committed if what is applied at `index` has that term, and lost if it has another."""

    index: int
    term: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Not taken."""

    reason: Refusal
    leader: NodeId | None


@dataclass(frozen=True, slots=True)
class RaftOptions:
    """Fixed while the node lives."""

    heartbeat_ticks: int = 4
    #: A follower that has heard nothing for between this and twice this would lead.
    election_ticks: int = 20
    #: What a log keeps, although the state machine has it, for members that lag: a snapshot costs more.
    retained_bytes: int = 32 << 20

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_ticks < self.election_ticks:
            raise ValueError("heartbeats come more often than elections")


@dataclass(frozen=True, slots=True)
class Restored:
    """What a node finds on its disk.

    `base` is where the log begins, `applied` is what the state machine holds durably: ahead of the base, if the log is
    there; ahead of the log's end, if a crash came between the installation of a snapshot and the new beginning of the
    log. A new member of a group begins at position 0 with nobody in it.
    """

    base: Position
    hard_state: HardState = field(default_factory=HardState)
    entries: tuple[Entry, ...] = ()
    applied: Position | None = None


@dataclass(frozen=True, slots=True)
class Persist:
    """To be made durable, in this order; a crash may keep any first part of it. Then: `persisted(index)`.

    1. hard_state, if not None.
    2. snapshot, if not None: what was staged replaces the state machine, after all that is handed out is applied or
       given up.
    3. base, if not None: the log begins anew behind it, and forgets what it had.
    4. entries: they replace what the log has from the first one's index on.
    """

    index: int
    hard_state: HardState | None
    snapshot: Snapshot | None
    base: Position | None
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Ready:
    """What to do now; the parts need not wait for each other."""

    #: Never asked for again; no other comes before `persisted`.
    persist: Persist | None
    #: Send them in any order, or lose them.
    messages: tuple[Message, ...]
    #: Apply them in order, then: `applied(index)`.
    committed: tuple[Entry, ...]
    reads: tuple[ReadResult, ...]
    #: Fetch it beside the live state, then: `staged` or `staging_failed`. No other comes before one that was staged is
    #: installed.
    fetch: Snapshot | None
    #: Make a snapshot of what is applied, then for each: `offer_snapshot` or `no_snapshot`.
    snapshots_wanted: tuple[NodeId, ...]

    @property
    def is_empty(self) -> bool:
        """Nothing to do."""
        return not (
            self.persist or self.messages or self.committed or self.reads or self.fetch or self.snapshots_wanted
        )


@dataclass(frozen=True, slots=True)
class Status:
    """For metrics and errors."""

    group: GroupId
    node: NodeId
    role: Role
    term: int
    leader: NodeId | None
    commit: int
    applied: int
    last_index: int
    #: Messages that `step` refused since the start.
    rejected: int
    #: The last changes of role, oldest first.
    story: tuple[str, ...]
    #: The one in effect, committed or not; and whether its entry is committed.
    membership: Membership
    is_membership_committed: bool
    #: The term of the last entry: of two logs, the newer one is that whose (last_term, last_index) is greater.
    last_term: int
    #: Of a leader: the members that it has not heard for an election's time, and for how many ticks; learners that get
    #: few heartbeats have longer (`Membership.learner_beats`). Brought up to date once in an election's time.
    silent: Mapping[NodeId, int] = field(default_factory=lambda: NOBODY_SILENT)

    @property
    def leads(self) -> bool:
        """Whether the node leads the group, as far as it knows."""
        return self.role is Role.LEADER
