"""A RaftLog with a model of its content in plain dictionaries.

Each queued record adds a new state of the dictionaries. After a crash, the log must have exactly the content of one of
these states, from the last durable state to the last queued state. Released entries may differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from storage.crash_disk import CrashDisk

from saros_cluster.multiraft.raft_log import LogContents, RaftLog, Ticket
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import membership
from saros_cluster.raft.messages import Entry, EntryKind, GroupId, HardState, Position
from saros_cluster.raft.ready import Persist
from saros_storage.base.errors import DiskFull
from saros_storage.log import Durability, LogOptions, SegmentName, list_segments
from saros_storage.log.record import scan

FOLDER = "log"


def position(index: int, term: int) -> Position:
    return Position(index, term, membership(index, (1, 2, 3)))


def entries_of(first: int, term: int, count: int, mark: int = 0) -> tuple[Entry, ...]:
    return tuple(
        Entry(index, term, EntryKind.DATA, b"%d.%d.%d" % (index, term, mark) * (1 + index % 3))
        for index in range(first, first + count)
    )


@dataclass(frozen=True, slots=True)
class GroupState:
    """The state of a group in the model.

    `base` is the position at which the group's log begins; `entries` also contains released entries.
    """

    base: Position
    hard_state: HardState = field(default_factory=HardState)
    entries: tuple[Entry, ...] = ()

    @property
    def last(self) -> tuple[int, int]:
        """Return (index, term) of the last entry."""
        return (self.entries[-1].index, self.entries[-1].term) if self.entries else (self.base.index, self.base.term)

    def term_at(self, index: int) -> int:
        return self.base.term if index == self.base.index else self.entries[index - self.base.index - 1].term


State = dict[GroupId, GroupState]


@dataclass(frozen=True, slots=True)
class Note:
    """A snapshot of the model's states."""

    states: tuple[State, ...]
    released: dict[GroupId, Position]
    #: The number of written states.
    written: int = 1

    def allows(self, found: dict[GroupId, LogContents], how: str) -> State | None:
        """Return the state that equals `found`, or None if a crash of the kind `how` cannot lead to it."""
        for state in self.states[self.written - 1 if how == "process" else 0 :]:
            if state.keys() == found.keys() and all(self._fits(g, state[g], found[g]) for g in found):
                return state
        return None

    def _fits(self, group: GroupId, state: GroupState, found: LogContents) -> bool:
        low = state.base.index
        high = max(low, self.released[group].index if group in self.released else 0)
        index = found.base.index
        if not low <= index <= high or index > state.last[0]:
            return False
        return found == LogContents(
            state.base if index == low else position(index, state.term_at(index)),
            state.hard_state,
            tuple(entry for entry in state.entries if entry.index > index),
        )


class ModelledLog:
    """A log with its model. Only one thread may call it."""

    def __init__(self, disk: CrashDisk, options: LogOptions) -> None:
        self.disk = disk
        self.options = options
        self.log, found = RaftLog.open(FOLDER, disk, options)
        self.found = found
        #: The possible states after a crash; the first is the newest durable state.
        self.states: list[State] = [{group: GroupState(c.base, c.hard_state, c.entries) for group, c in found.items()}]
        self.released: dict[GroupId, Position] = {}
        #: The number of written states. If the log fsyncs, they are durable after `wait`.
        self._written = 1
        self._ticket: Ticket | None = None
        #: Groups whose drop is queued; `released` has their positions until the drop is written.
        self._dropped: set[GroupId] = set()
        disk.note = self.note

    def note(self) -> Note:
        return Note(tuple(self.states), dict(self.released), self._written)

    @property
    def now(self) -> State:
        return self.states[-1]

    @property
    def is_settled(self) -> bool:
        """Return whether no records are queued."""
        return len(self.states) == self._written

    def create(self, group: int, base: Position) -> None:
        self._push(group, GroupState(base))
        self._ticket = self.log.create(GroupId(group), base)

    def drop(self, group: int) -> None:
        self._push(group, None)
        self._dropped.add(GroupId(group))
        self._ticket = self.log.drop(GroupId(group))

    def append(
        self,
        group: int,
        hard_state: HardState | None = None,
        base: Position | None = None,
        entries: tuple[Entry, ...] = (),
    ) -> None:
        state = self.now[GroupId(group)]
        if hard_state is not None:
            state = replace(state, hard_state=hard_state)
            self._push(group, state)
        if base is not None:
            state = replace(state, base=base, entries=())
            self._push(group, state)
        if entries:
            kept = tuple(entry for entry in state.entries if entry.index < entries[0].index)
            self._push(group, replace(state, entries=kept + entries))
        index = entries[-1].index if entries else 0
        self._ticket = self.log.append(GroupId(group), Persist(index, hard_state, None, base, entries))

    def _push(self, group: int, state: GroupState | None) -> None:
        states = {g: s for g, s in self.now.items() if g != group}
        if state is not None:
            states[GroupId(group)] = state
        self.states.append(states)

    def wait(self) -> bool:
        """Wait for queued records and return True; if the disk is full, discard the records and return False."""
        if self._ticket is None:
            return True
        ticket, self._ticket = self._ticket, None
        try:
            self.log.wait(ticket)
        except DiskFull:
            assert self.log.is_lost(ticket)
            del self.states[self._written :]
            self._dropped.clear()
            return False
        assert not self.log.is_lost(ticket)
        self._settle(is_synced=self.options.durability is Durability.FSYNC)
        return True

    def _settle(self, *, is_synced: bool) -> None:
        if is_synced:
            del self.states[:-1]
        self._written = len(self.states)
        for group in self._dropped:
            self.released.pop(group, None)
        self._dropped.clear()

    def release(self, group: int, index: int) -> None:
        """Release entries of a group that has no queued records."""
        base = position(index, self.now[GroupId(group)].term_at(index))
        self.released[GroupId(group)] = base
        self.log.release(GroupId(group), base)

    def released_index(self, group: int) -> int:
        """Return the index of the last entry that a group has released; 0 if the drop of the group is queued."""
        base = self.released.get(GroupId(group))
        return 0 if base is None or group in self._dropped else base.index

    def cut(self) -> int:
        """Truncate the log; return the number of deleted segments, or -1 if the disk is full."""
        try:
            gone = self.log.cut()
        except DiskFull:
            self.wait()
            return -1
        if gone:
            self._settle(is_synced=True)
        return gone

    def needed_segments(self) -> dict[GroupId, int]:
        """Read all segments; return the number of the first segment that each group needs."""
        found: dict[GroupId, int] = {}
        spans: dict[GroupId, list[tuple[int, int, int]]] = {}
        for number, path in enumerate(list_segments(self.disk, FOLDER)):
            name = SegmentName.of(path)
            for record in scan(self.disk.map(path), name.first_index, name.salt).records:
                if record.kind == 4:
                    first = int.from_bytes(record.payload[:8], "little")
                    last = first + int.from_bytes(record.payload[8:12], "little") - 1
                    spans.setdefault(GroupId(record.group), []).append((number, first, last))
                elif record.kind in (2, 5):
                    spans.pop(GroupId(record.group), None)
        for group, written in spans.items():
            end = self.released[group].index if group in self.released else self.now[group].base.index
            for place, (number, first, last) in enumerate(written):
                replaced = min((later for _, later, _ in written[place + 1 :]), default=last + 1)
                if max(first, end + 1) <= min(last, replaced - 1):
                    found[group] = number
                    break
        return found


def vote(term: int, node: int | None = None) -> HardState:
    return HardState(term, None if node is None else NodeId(node))
