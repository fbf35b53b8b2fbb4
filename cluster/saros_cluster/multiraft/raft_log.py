"""The durable log of all Raft groups of a node: one segmented log, one fsync for all of them.

    segments    [ record 1 ............... ][ 71 ............. ][ 140 ........
    group 1       restart  e1-9               e10-12  hard state  e11-30          entries 11 and 12 were replaced
    group 2       restart  hard state  e1-3                                       idle: base and hard state lie far back

Appending only queues; `wait` makes durable what is queued, in the order of the queue: a crash keeps a first part of it.
What the records mean is in `log_records`.

`release` says which entries the state machine has; `cut` then removes the oldest segments that no group needs (above,
once group 1 has released entry 12 and group 2 entry 3: the first two):

    1. each group's base and hard state that lie only there are written again, and a base for all that was released
    2. one fsync, whatever the durability, so that all that the removal relies on is on the disk
    3. the segments go, the oldest first, each durably before the next

A crash between these leaves records that say twice what is so, or a log that begins earlier. It never leaves a gap,
which nobody could tell from a lost segment: that is why the oldest goes first.

What is known in memory of a group are places in the log, no entries: where its newest base and hard state lie, and for
each segment up to which entry it goes. Known is what is written. What is only queued may still be taken back, when the
disk is full; if it counted already, a cut could remove what is then needed after all.

Invariants
  - a group's newest hard state is on the disk from the moment it was waited for until the group is dropped
  - the entries behind a group's durable base have no gap
  - segments before the first one that a group needs hold nothing that reading would miss

Thread-safe. `append` and `release` never wait for the disk, `wait` and `cut` do. A group's calls come one after the
other: `create`, then appends, then `drop`, and nothing after it.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from saros_cluster.multiraft.log_records import (
    Base,
    Change,
    Drop,
    Entries,
    LogContents,
    Replay,
    Restart,
    decode_change,
    encode_change,
)
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import GroupId, HardState, Position
from saros_cluster.raft.ready import Persist
from saros_storage.base.errors import CorruptFile
from saros_storage.io.disk import Disk
from saros_storage.log import LogOptions, Record, SegmentedLog

__all__ = ["LogContents", "RaftLog", "Ticket"]

#: What to `wait` for.
Ticket = tuple[int, int]
#: Is always durable.
_NOTHING: Ticket = (0, 0)
_UNKNOWN = Position(0, 0, Membership(0, ()))


class RaftLog:
    """See the module. Made by `open`."""

    def __init__(self, log: SegmentedLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        #: What is known of each group, as of the last written record that was looked at.
        self._groups: dict[GroupId, _Group] = {}
        #: The ticket of that record.
        self._known: Ticket = _NOTHING
        #: Queued, not looked at since, in order.
        self._queued: deque[tuple[Ticket, GroupId, Change]] = deque()
        #: Groups that are here as of the end of the queue.
        self._present: set[GroupId] = set()

    @staticmethod
    def open(folder: str, disk: Disk, options: LogOptions) -> tuple[RaftLog, dict[GroupId, LogContents]]:
        """The log in `folder`, made if it is new, and what each group that is here has.

        Raises CorruptFile, StorageError 2015 (written by a newer version).
        """
        segmented, records = SegmentedLog.open(folder, disk, options)
        log = RaftLog(segmented)
        return log, log._read(records)

    def _read(self, records: Sequence[Record]) -> dict[GroupId, LogContents]:
        segments = self._log.segments()
        replays: dict[GroupId, Replay] = {}
        newest: dict[GroupId, Record] = {}
        for record in records:
            group = GroupId(record.group)
            newest[group] = record
            try:
                change = decode_change(record.kind, record.payload)
                if isinstance(change, Drop):
                    replays.pop(group, None)
                else:
                    replays.setdefault(group, Replay()).apply(change)
            except ValueError as error:
                raise _corrupt(records, record, segments, error) from error
            self._note(group, change, record.index, _segment_of(record.index, segments))
        self._present = set(replays)
        found: dict[GroupId, LogContents] = {}
        for group, replay in replays.items():
            try:
                found[group] = replay.contents()
            except ValueError as error:
                raise _corrupt(records, newest[group], segments, error) from error
        return found

    # ------------------------------------------------------------------ writing

    def create(self, group: GroupId, base: Position) -> Ticket:
        """Queue a group that is new here; its log begins behind `base`."""
        with self._lock:
            assert group not in self._present
            return self._queue(group, Restart(base))

    def append(self, group: GroupId, persist: Persist) -> Ticket:
        """Queue hard state, base and entries, in that order; the group is here. Installing a snapshot is not done here.

        Doing it again after a DiskFull is right, even if some of it was written.
        """
        with self._lock:
            assert group in self._present
            ticket = _NOTHING
            if persist.hard_state is not None:
                ticket = self._queue(group, persist.hard_state)
            if persist.base is not None:
                ticket = self._queue(group, Restart(persist.base))
            if persist.entries:
                ticket = self._queue(group, Entries(persist.entries))
            return ticket

    def probe(self) -> Ticket:
        """Queue a record that says nothing new, a group's hard state: waiting for it shows how long a write takes.

        While no group has one, the ticket is always durable.
        """
        with self._lock:
            self._catch_up()
            changing = {group for _, group, change in self._queued if isinstance(change, HardState | Drop)}
            for group, found in self._groups.items():
                if found.hard_state is not None and group not in changing:
                    return self._queue(group, found.hard_state)
            return _NOTHING

    def drop(self, group: GroupId) -> Ticket:
        """Queue that the group left this node."""
        with self._lock:
            assert group in self._present
            return self._queue(group, Drop())

    def wait(self, ticket: Ticket) -> None:
        """Return when all up to there is as durable as the options say.

        Raises DiskFull (it is as if nothing of the queue had come; what was queued together with it may be written,
        though, if another thread waited in between), LogFailed (the log is over).
        """
        self._wait([ticket], fsync=False)

    def _wait(self, tickets: Sequence[Ticket], *, fsync: bool) -> None:
        try:
            for ticket in tickets:
                self._log.wait(ticket, fsync=fsync)
        finally:
            with self._lock:
                self._catch_up()

    def sync_due(self) -> None:
        """Fsync all that was appended, whatever the durability. Raises LogFailed."""
        self._log.sync_due()

    def is_lost(self, ticket: Ticket) -> bool:
        """Whether a full disk took it back."""
        return self._log.is_lost(ticket)

    # ------------------------------------------------------------------ becoming shorter

    def release(self, group: GroupId, base: Position) -> None:
        """Entries up to `base` are in the state machine, durably. The next `cut` says so on the disk."""
        with self._lock:
            self._catch_up()
            found = self._groups.get(group)
            if found is not None:
                found.release(base)

    def cut(self) -> int:
        """Remove the segments that no group needs, see the module; returns how many went.

        Raises DiskFull (nothing went: a few bytes must be written before), LogFailed.
        """
        with self._lock:
            self._catch_up()
            firsts = [first for _, first in self._log.segments()] or [0]
            needed = min((found.runs[0].segment for found in self._groups.values() if found.runs), default=firsts[-1])
            if needed <= firsts[0]:
                return 0
            # Something queued may be why a base or hard state is not written again here: all of it must come true.
            tickets = [self._known, *[ticket for ticket, _, _ in self._queued], *self._repeat(needed)]
        self._wait(tickets, fsync=True)
        return self._log.cut(needed)

    def _repeat(self, needed: int) -> list[Ticket]:
        """Queue again what lies before the record `needed`, unless something newer is queued already."""
        queued: dict[GroupId, set[type[Change]]] = {}
        for _, group, change in self._queued:
            queued.setdefault(group, set()).add(type(change))
        tickets = []
        for group, found in self._groups.items():
            newer = queued.get(group, set())
            if Drop in newer:
                continue
            if found.hard_state_at < needed and found.hard_state is not None and HardState not in newer:
                tickets.append(self._queue(group, found.hard_state))
            is_old = found.base_at < needed or found.base.index < found.released.index
            if is_old and Restart not in newer:
                tickets.append(self._queue(group, Base(found.released)))
        return tickets

    def held_by(self) -> GroupId | None:
        """The group whose needed entries begin in the earliest segment; None if no group needs any."""
        with self._lock:
            self._catch_up()
            holding = [(found.runs[0].segment, group) for group, found in self._groups.items() if found.runs]
        return min(holding)[1] if holding else None

    @property
    def bytes(self) -> int:
        """What the log takes on the disk."""
        return self._log.size_bytes

    # ------------------------------------------------------------------ ends

    @property
    def failure(self) -> BaseException | None:
        """What ended the log, if something has."""
        return self._log.failure

    def blocked_by(self) -> str | None:
        """Why nothing can be written at the moment, or None."""
        return self._log.blocked_by()

    def close(self) -> None:
        """Write and fsync what is queued, then close. Idempotent."""
        self._log.close()

    # ------------------------------------------------------------------ what is known; the lock is held

    def _queue(self, group: GroupId, change: Change) -> Ticket:
        ticket = self._log.append(group, *encode_change(change))
        self._queued.append((ticket, group, change))
        self._note_presence(group, change)
        return ticket

    def _catch_up(self) -> None:
        """Look at what was written since the last time, and forget what was taken back."""
        if not self._queued:
            return
        written = self._log.written_index
        segments = self._log.segments()
        lost = False
        while self._queued:
            ticket, group, change = self._queued[0]
            if self._log.is_lost(ticket):
                lost = True
            elif ticket[0] <= written:
                self._note(group, change, ticket[0], _segment_of(ticket[0], segments))
                self._known = ticket
            else:
                break
            self._queued.popleft()
        if lost:
            self._present = set(self._groups)
            for _, group, change in self._queued:
                self._note_presence(group, change)

    def _note_presence(self, group: GroupId, change: Change) -> None:
        if isinstance(change, Restart):
            self._present.add(group)
        elif isinstance(change, Drop):
            self._present.discard(group)

    def _note(self, group: GroupId, change: Change, index: int, segment: int) -> None:
        if isinstance(change, Drop):
            self._groups.pop(group, None)
        else:
            self._groups.setdefault(group, _Group()).note(change, index, segment)


@dataclass(slots=True)
class _Run:
    """A group's entries in the segment that begins at record `segment`: they go up to entry `last`."""

    segment: int
    last: int


@dataclass(slots=True)
class _Group:
    """What of the log a group needs."""

    #: The newest base in the log, and which record says so.
    base: Position = _UNKNOWN
    base_at: int = 0
    #: The newest hard state, and which record says so; None if there was none yet.
    hard_state: HardState | None = None
    hard_state_at: int = 0
    #: Where the needed entries begin: at the base or ahead of it.
    released: Position = _UNKNOWN
    #: Needed entries. Invariant: segments and last entries rise; all are behind `released`.
    runs: list[_Run] = field(default_factory=list)

    def note(self, change: HardState | Restart | Base | Entries, index: int, segment: int) -> None:
        """The group's next record is there."""
        match change:
            case HardState():
                self.hard_state, self.hard_state_at = change, index
            case Restart(base=base):
                self.base, self.base_at, self.released = base, index, base
                self.runs.clear()
            case Base(base=base):
                self.base, self.base_at = base, index
                self.release(base)
            case Entries(entries=entries):
                self._extend(entries[0].index, entries[-1].index, segment)

    def release(self, base: Position) -> None:
        """Entries up to there are not needed."""
        if base.index < self.released.index:
            return
        self.released = base
        while self.runs and self.runs[0].last <= base.index:
            del self.runs[0]

    def _extend(self, first: int, last: int, segment: int) -> None:
        while self.runs and self.runs[-1].last >= first:
            below = self.runs[-2].last if len(self.runs) > 1 else self.released.index
            if below < first - 1:
                self.runs[-1].last = first - 1
            else:
                self.runs.pop()
        if self.runs and self.runs[-1].segment == segment:
            self.runs[-1].last = last
        else:
            self.runs.append(_Run(segment, last))


def _segment_of(index: int, segments: Sequence[tuple[str, int]]) -> int:
    """The first record of the segment that holds record `index`."""
    return segments[bisect_right(segments, index, key=lambda segment: segment[1]) - 1][1]


def _corrupt(
    records: Sequence[Record], bad: Record, segments: Sequence[tuple[str, int]], error: ValueError
) -> CorruptFile:
    first = _segment_of(bad.index, segments)
    offset = sum(record.size_bytes for record in records if first <= record.index < bad.index)
    path = next(path for path, first_index in segments if first_index == first)
    return CorruptFile(path, offset, f"group {bad.group}: {error}")
