"""The durable log of all Raft groups of a node: one segmented log, so that one fsync serves all groups.

    segments    [ record 1 ............... ][ 71 ............. ][ 140 ........
    group 1       restart  e1-9               e10-12  hard state  e11-30          entries 11 and 12 were replaced
    group 2       restart  hard state  e1-3                                       idle: base and hard state are far back

Appending only queues. `wait` makes the queue durable in order: a crash keeps a prefix of it. `log_records` defines the
records.

`release` informs the log which entries have durably reached the state machine. `cut` then removes the oldest segments
that no group needs (above, the first two, once group 1 has released entry 12 and group 2 entry 3), in three steps:

    1. write each group's base and hard state again if only those segments have them, and a base for released entries
    2. fsync once, whatever durability is configured, so that everything that the removal relies on is on the disk
    3. remove the segments, the oldest first, each durably before the next

A crash in between leaves duplicate records, or a log that begins earlier. A crash never leaves a gap, which could not
be distinguished from a lost segment. This is why the oldest segment is removed first.

Memory contains no entries, only positions in the log: for each group, the records of its newest base and hard state,
and for each segment the group's last entry. These positions reflect only records that are written. A queued record may
be taken back if the disk is full. If a cut relied on such a record, it could remove records that are still needed.

Invariants
- a group's newest hard state is on the disk from the moment `wait` returned for it until the group is dropped
- the entries after a group's durable base have no gap
- no segment before the first one that a group needs has a record that recovery would miss

Thread-safe. `append` and `release` never wait for the disk, `wait` and `cut` do. The calls for each group come one
after another: `create`, then appends, then `drop`, and nothing after it.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

import msgspec

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

#: Identifies a queued record that `wait` can wait for.
Ticket = tuple[int, int]
#: A ticket that is always durable.
_NOTHING: Ticket = (0, 0)
_UNKNOWN = Position(0, 0, Membership(0, ()))


class RaftLog:
    """The log of all groups of a node. Created by `open`."""

    def __init__(self, log: SegmentedLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        #: For each group, the part of the log that it needs, as of the last written record (`_known`).
        self._groups: dict[GroupId, _Group] = {}
        #: The ticket of the last record that `_groups` reflects.
        self._known: Ticket = _NOTHING
        #: The queued records that `_groups` does not reflect yet, in the order of the queue.
        self._queued: deque[tuple[Ticket, GroupId, Change]] = deque()
        #: The groups that exist once all queued records are written.
        self._present: set[GroupId] = set()

    @staticmethod
    def open(folder: str, disk: Disk, options: LogOptions) -> tuple[RaftLog, dict[GroupId, LogContents]]:
        """Open the log in `folder`, or create it there. Return the log and the contents of each group.

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
        """Queue the creation of a group that is new on this node. The group's log begins after `base`."""
        with self._lock:
            assert group not in self._present
            return self._queue(group, Restart(base))

    def append(self, group: GroupId, persist: Persist) -> Ticket:
        """Queue hard state, base and entries of an existing group, in that order. Does not install the snapshot.

        The caller may repeat this after DiskFull, even if part of the state was written.
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
        """Queue a record that repeats some group's current hard state, so that waiting for the record measures a write.

        While no group has a hard state, nothing is queued, and the returned ticket counts as durable.
        """
        with self._lock:
            self._catch_up()
            changing = {group for _, group, change in self._queued if isinstance(change, HardState | Drop)}
            for group, found in self._groups.items():
                if found.hard_state is not None and group not in changing:
                    return self._queue(group, found.hard_state)
            return _NOTHING

    def drop(self, group: GroupId) -> Ticket:
        """Queue the removal of a group from this node."""
        with self._lock:
            assert group in self._present
            return self._queue(group, Drop())

    def wait(self, ticket: Ticket) -> None:
        """Wait until all records up to the ticket are as durable as the options require.

        Raises DiskFull if the queued records were taken back (some of them may still have been written if another
        thread waited in between), and LogFailed if the log can no longer be used.
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
        """Fsync all appended records, whatever durability is configured. Raises LogFailed."""
        self._log.sync_due()

    def is_lost(self, ticket: Ticket) -> bool:
        """Return whether the record was taken back because the disk was full."""
        return self._log.is_lost(ticket)

    # ------------------------------------------------------------------ truncation

    def release(self, group: GroupId, base: Position) -> None:
        """Record that the state machine has durably stored the effects of the entries up to `base`.

        The next `cut` writes this to disk.
        """
        with self._lock:
            self._catch_up()
            found = self._groups.get(group)
            if found is not None:
                found.release(base)

    def cut(self) -> int:
        """Remove the segments that no group needs. Return their number.

        Raises LogFailed, and DiskFull if the few bytes that must be written first do not fit; then no segment is
        removed.
        """
        with self._lock:
            self._catch_up()
            firsts = [first for _, first in self._log.segments()] or [0]
            needed = min((found.runs[0].segment for found in self._groups.values() if found.runs), default=firsts[-1])
            if needed <= firsts[0]:
                return 0
            # This does not repeat a base or hard state if a newer one is queued, so wait for all queued records.
            tickets = [self._known, *[ticket for ticket, _, _ in self._queued], *self._repeat(needed)]
        self._wait(tickets, fsync=True)
        return self._log.cut(needed)

    def _repeat(self, needed: int) -> list[Ticket]:
        """Queue again the bases and hard states that precede record `needed`, unless newer ones are queued."""
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
        """Return the group whose needed entries begin in the earliest segment, or None if no group needs any."""
        with self._lock:
            self._catch_up()
            holding = [(found.runs[0].segment, group) for group, found in self._groups.items() if found.runs]
        return min(holding)[1] if holding else None

    @property
    def bytes(self) -> int:
        """The size of the log on disk in bytes."""
        return self._log.size_bytes

    # ------------------------------------------------------------------ failure and close

    @property
    def failure(self) -> BaseException | None:
        """The error that made the log unusable, if any."""
        return self._log.failure

    def blocked_by(self) -> str | None:
        """Return the reason why nothing can be written at the moment, or None if writing is possible."""
        return self._log.blocked_by()

    def close(self) -> None:
        """Write and fsync the queued records, then close. Idempotent."""
        self._log.close()

    # ------------------------------------------------------------------ bookkeeping, with the lock held

    def _queue(self, group: GroupId, change: Change) -> Ticket:
        ticket = self._log.append(group, *encode_change(change))
        self._queued.append((ticket, group, change))
        self._note_presence(group, change)
        return ticket

    def _catch_up(self) -> None:
        """Take over the records written since the last call, and drop the records that were taken back."""
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


class _Run(msgspec.Struct):
    """Entries of one group, up to entry `last`, in the segment that begins with record `segment`."""

    segment: int
    last: int


class _Group(msgspec.Struct):
    """The part of the log that one group needs."""

    #: The newest base in the log, and the index of the record that contains it.
    base: Position = _UNKNOWN
    base_at: int = 0
    #: The newest hard state (None if there was none yet), and the index of the record that contains it.
    hard_state: HardState | None = None
    hard_state_at: int = 0
    #: The group needs the entries after this position, which is the base or a later position.
    released: Position = _UNKNOWN
    #: The runs of needed entries. Invariant: from one run to the next, segment and last entry increase, and all runs
    #: end after `released`.
    runs: list[_Run] = msgspec.field(default_factory=list)

    def note(self, change: HardState | Restart | Base | Entries, index: int, segment: int) -> None:
        """Update the positions for the group's next written record."""
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
        """Record that the group no longer needs the entries up to `base`."""
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
    """Return the index of the first record in the segment that contains record `index`."""
    return segments[bisect_right(segments, index, key=lambda segment: segment[1]) - 1][1]


def _corrupt(
    records: Sequence[Record], bad: Record, segments: Sequence[tuple[str, int]], error: ValueError
) -> CorruptFile:
    first = _segment_of(bad.index, segments)
    offset = sum(record.size_bytes for record in records if first <= record.index < bad.index)
    path = next(path for path, first_index in segments if first_index == first)
    return CorruptFile(path, offset, f"group {bad.group}: {error}")
