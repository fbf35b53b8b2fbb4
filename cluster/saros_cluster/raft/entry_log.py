"""A group's log in memory: which entries exist, and which of them are durable, committed and applied.

    base        applied      applying    commit               last
    |-----------|------------|-----------|--------------------|
    compacted    with the     committed   not yet
                 runner

    base <= durable <= taken <= last         taken: given to the runner to be made durable

Invariants: base <= applied <= applying <= min(commit, durable); the indices after base are consecutive; terms never
decrease; committed entries are never truncated. Entries are handed out for applying only when they are durable on this
node, so that the state machine on disk is never ahead of the log on disk.

The memberships in the log are stored with their indices, so that the earlier membership is in effect again when the log
is truncated.

Pure; one thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import Entry, EntryKind, Position


class EntryLog:
    """The entries of one member's log after `base`, and how far they are durable, committed and applied."""

    def __init__(self, base: Position, entries: Sequence[Entry], applied: int) -> None:
        """Start with a log that was read from disk, so its entries are durable.

        All entries up to `applied` are committed and applied.
        """
        self._base = base
        self._entries = list(entries)
        #: (index, membership) of the base and of each membership entry, in ascending order.
        self._memberships = [(base.index, base.membership)]
        self._note_memberships(entries)
        self.commit = max(base.index, applied)
        self.applying = self.commit
        self.applied = self.commit
        self.taken = self.last_index
        self.durable = self.last_index
        #: The size of all entries in the log.
        self.size_bytes = sum(e.size_bytes for e in self._entries)
        #: The size of the entries that were handed out and not applied yet.
        self.applying_bytes = 0

    # ------------------------------------------------------------------ contents

    @property
    def base_index(self) -> int:
        """The index of the last compacted entry."""
        return self._base.index

    @property
    def last_index(self) -> int:
        """The index of the newest entry, durable or not."""
        return self._base.index + len(self._entries)

    @property
    def last_term(self) -> int:
        """The term of the newest entry."""
        return self._entries[-1].term if self._entries else self._base.term

    @property
    def membership(self) -> Membership:
        """The membership in effect: the newest one in the log, whether it is committed or not."""
        return self._memberships[-1][1]

    @property
    def membership_index(self) -> int:
        """The index of the entry that holds the membership in effect."""
        return self._memberships[-1][0]

    def may_need(self, node: NodeId) -> bool:
        """Return whether the node is a voter of the last committed membership or of a later one.

        A voter that is being removed must still be able to lead: it may be the only one that has the entry which
        removes it (Raft dissertation, 4.2.2).
        """
        place = bisect_right(self._memberships, self.commit, key=lambda pair: pair[0]) - 1
        return any(found.is_voter(node) for _, found in self._memberships[max(place, 0) :])

    def term_at(self, index: int) -> int | None:
        """Return the term of an entry, or None if the entry is compacted or after the end of the log."""
        if index == self._base.index:
            return self._base.term
        place = index - self._base.index - 1
        return self._entries[place].term if 0 <= place < len(self._entries) else None

    def position(self, index: int) -> Position:
        """Return the position after an entry of the log, or after the base."""
        term = self.term_at(index)
        assert term is not None
        place = bisect_right(self._memberships, index, key=lambda pair: pair[0]) - 1
        return Position(index, term, self._memberships[place][1])

    def entries(self, first: int, last: int, bytes_max: int | None = None) -> tuple[Entry, ...]:
        """Return the entries from `first` to `last`. With `bytes_max`, return as many as fit, but at least one."""
        assert self._base.index < first
        assert last <= self.last_index
        offset = self._base.index + 1
        found = self._entries[first - offset : max(last + 1 - offset, 0)]
        if bytes_max is None:
            return tuple(found)
        size = 0
        for count, entry in enumerate(found):
            size += entry.size_bytes
            if size > bytes_max and count:
                return tuple(found[:count])
        return tuple(found)

    def bytes_between(self, first: int, last: int) -> int:
        """Return the size of the entries from `first` to `last`."""
        return sum(e.size_bytes for e in self.entries(first, last))

    def conflict_hint(self, index: int, term: int) -> tuple[int, int]:
        """Return the last entry up to `index` whose term is at most `term`: two logs cannot agree after this entry."""
        place = min(index, self.last_index)
        while place > self._base.index and (self.term_at(place) or 0) > term:
            place -= 1
        return place, self.term_at(place) or 0

    def is_current(self, last_index: int, last_term: int) -> bool:
        """Return whether a log with this last entry is at least as new as this one (Raft paper, 5.4.1)."""
        return (last_term, last_index) >= (self.last_term, self.last_index)

    # ------------------------------------------------------------------ append and truncate

    def append(self, entry: Entry) -> None:
        """Append the next entry: either a leader's own entry, or the entry that forces a single voter."""
        assert entry.index == self.last_index + 1
        assert entry.term >= self.last_term
        self._entries.append(entry)
        self.size_bytes += entry.size_bytes
        self._note_memberships((entry,))

    def merge(self, entries: Sequence[Entry]) -> bool:
        """Add a leader's entries, the first of which follows an entry that both logs have.

        Return whether the log changed. Entries that the log already has are not replaced, and those after them are not
        truncated, since the message may be an old one. Only an entry whose term differs from that of the existing entry
        truncates the log. Raises ValueError if a committed entry would be truncated.
        """
        for place, entry in enumerate(entries):
            if entry.index > self._base.index and self.term_at(entry.index) != entry.term:
                if entry.index <= self.commit:
                    raise ValueError("the message contradicts committed entries")
                self._cut(entry.index)
                new = entries[place:]
                self._entries += new
                self.size_bytes += sum(e.size_bytes for e in new)
                self._note_memberships(new)
                return True
        return False

    def _cut(self, index: int) -> None:
        assert index > self.commit
        self.size_bytes -= self.bytes_between(index, self.last_index)
        del self._entries[index - self._base.index - 1 :]
        while self._memberships[-1][0] >= index:
            self._memberships.pop()
        self.taken = min(self.taken, index - 1)
        self.durable = min(self.durable, index - 1)

    def compactable_index(self, index: int, needed: int, keep_bytes: int) -> int:
        """Return the index up to which entries may be compacted, at most `index`.

        All entries before `needed` may be removed, then also the oldest of the other entries, while more than
        `keep_bytes` remain.
        """
        spare, size = self._base.index, self.size_bytes
        while spare < index and (spare + 1 < needed or size > keep_bytes):
            size -= self._entries[spare - self._base.index].size_bytes
            spare += 1
        return spare

    def compact(self, index: int) -> None:
        """Remove the entries up to `index` from memory.

        These entries are applied, and the state machine has stored their effects durably.
        """
        assert index <= self.applied
        if index <= self._base.index:
            return
        base = self.position(index)
        self.size_bytes -= self.bytes_between(self._base.index + 1, index)
        del self._entries[: index - self._base.index]
        later = [pair for pair in self._memberships if pair[0] > index]
        self._memberships = [(index, base.membership), *later]
        self._base = base

    def restart(self, base: Position) -> None:
        """Restart the log after a snapshot that is not durable yet."""
        assert base.index > self.commit
        self._base = base
        self._entries.clear()
        self._memberships = [(base.index, base.membership)]
        self.commit = self.applying = self.applied = base.index
        self.taken = self.durable = base.index
        self.size_bytes = self.applying_bytes = 0

    def _note_memberships(self, entries: Sequence[Entry]) -> None:
        self._memberships += [(e.index, Membership.decode(e.data)) for e in entries if e.kind is EntryKind.MEMBERSHIP]

    # ------------------------------------------------------------------ durable, committed, applied

    def take(self) -> tuple[Entry, ...]:
        """Return the entries that are neither durable nor being written. The runner must write them."""
        last = self.last_index
        if self.taken == last:
            return ()
        entries = self.entries(self.taken + 1, last)
        self.taken = last
        return entries

    def mark_durable(self) -> None:
        """Record that all entries that `take` returned, and that were not truncated since, are durable."""
        self.durable = self.taken

    def next_committed_entries(self, bytes_max: int) -> tuple[Entry, ...]:
        """Return the next committed and durable entries to apply: at most `bytes_max`, but at least one entry."""
        last = min(self.commit, self.durable)
        if self.applying >= last:
            return ()
        entries = self.entries(self.applying + 1, last, bytes_max)
        self.applying = entries[-1].index
        self.applying_bytes += sum(e.size_bytes for e in entries)
        return entries

    def mark_applied(self, index: int) -> None:
        """Record that the entries up to `index`, which were handed out before, are applied."""
        assert self.applied <= index <= self.applying
        self.applying_bytes -= self.bytes_between(self.applied + 1, index)
        self.applied = index

    def validate(self) -> None:
        """Assert the module's invariants."""
        assert self._base.index <= self.applied <= self.applying <= self.commit <= self.last_index
        assert self.applying <= self.durable <= self.taken <= self.last_index
        previous = (self._base.index, self._base.term)
        for entry in self._entries:
            assert entry.index == previous[0] + 1
            assert entry.term >= previous[1]
            previous = (entry.index, entry.term)
        assert self.size_bytes == sum(e.size_bytes for e in self._entries)
        assert self.applying_bytes == self.bytes_between(self.applied + 1, self.applying)
        indices = [self._base.index] + [e.index for e in self._entries if e.kind is EntryKind.MEMBERSHIP]
        assert [index for index, _ in self._memberships] == indices
