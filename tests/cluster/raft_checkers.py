"""The invariants of a Raft group, checked from outside the nodes and independently of the workload.

    election safety         a term has at most one leader
    leader completeness     a new leader has all entries committed in earlier terms
    log matching            index and term determine the entry and all entries before it
    state machine safety    the entry committed at an index never changes; equal entries give equal states
    durability              committed entries are on the disks of a majority (of both halves, while joint), and remain
                            there; a snapshot removes no entries from a log that agrees with it
    reads                   a linearizable read sees all entries that were committed on any node when the read began
    memberships             joint and simple memberships alternate, with increasing versions
    no refusals             correct nodes never send invalid messages

A checker checks one group and records its observations. Its methods raise Violation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import Entry, EntryKind, GroupId, Position
from saros_cluster.raft.node import RaftNode


class Violation(AssertionError):
    """A violated invariant."""


class GroupChecker:
    """A checker of one group's invariants."""

    def __init__(self, group: GroupId, first: Position) -> None:
        self.group = group
        #: Leaders by term.
        self.leaders: dict[int, NodeId] = {}
        #: The entry at each (index, term), with the term of the entry before it.
        self._entries: dict[tuple[int, int], tuple[int | None, Entry]] = {}
        #: The terms of the committed entries, by index; 0 before the beginning of the log.
        self.committed = [0] * (first.index + 1)
        #: The term in which each committed entry was committed, by index.
        self._committed_in = [0] * (first.index + 1)
        #: The state of the machine after each entry that any node has applied, by the entry's index.
        self._states: dict[int, int] = {}
        self._memberships = [(first.index, first.membership)]

    @property
    def membership(self) -> Membership:
        """The newest membership that was applied on any node."""
        return self._memberships[-1][1]

    @property
    def membership_term(self) -> int:
        """The term in which `membership` was committed."""
        return self._committed_in[self._memberships[-1][0]]

    def check(self, holds: bool, what: str) -> None:
        if not holds:
            raise Violation(f"group {self.group}: {what}")

    # ------------------------------------------------------------------ elections

    def leads(self, node: RaftNode, id_: NodeId) -> None:
        """Record that a node leads its current term.

        The first such record of a term means that the node was elected.
        """
        known = self.leaders.setdefault(node.term, id_)
        self.check(known == id_, f"nodes {known} and {id_} both lead term {node.term}")

    def elected(self, node: RaftNode, id_: NodeId) -> None:
        """Check that a new leader's log has the last committed entry.

        If the log has that entry, it also has all earlier committed entries (the log matching property).
        """
        index, log = bisect_left(self._committed_in, node.term) - 1, node._log
        if index > log.base_index:
            found = log.term_at(index)
            self.check(found == self.committed[index], f"leader {id_} lacks entry {index}, which is committed")

    # ------------------------------------------------------------------ logs

    def log(self, before: int | None, entries: Iterable[Entry]) -> None:
        """Check some consecutive entries, from a message or from a disk."""
        for entry in entries:
            found = self._entries.setdefault((entry.index, entry.term), (before, entry))
            if found[0] is None:
                self._entries[entry.index, entry.term] = (before, entry)
            same = found[1] == entry and (before is None or found[0] in (None, before))
            self.check(same, f"{entry} after term {before} is also {found}")
            before = entry.term

    def commits(self, node: RaftNode, id_: NodeId, on_disk: Callable[[NodeId, int, int], bool]) -> None:
        """Check the entries between a node's previous and new commit index."""
        log, index = node._log, node.commit
        term = log.term_at(index)
        if index < len(self.committed):
            known = self.committed[index]
            self.check(term == known, f"node {id_} commits {index}/{term}; {index}/{known} is committed")
            return
        for place in range(len(self.committed), index + 1):
            found = log.term_at(place)
            self.check(found is not None, f"node {id_} has {place} compacted before it is committed")
            self.committed.append(found or 0)
            self._committed_in.append(max(node.term, self._committed_in[-1]))
        members = log.membership
        having = [n for n in members.nodes if on_disk(n, index, term or 0)]
        enough = all(
            2 * len(set(half) & set(having)) > len(half) for half in (members.voters, members.outgoing) if half
        )
        self.check(enough, f"node {id_} commits {index}/{term}, which only {having} have, in {members}")

    def kept(self, last: int, term_at: Callable[[int], int | None]) -> int:
        """Return the index of the last committed entry of a log that ends at `last`; 0 if it has no such entry."""
        index = min(last, len(self.committed) - 1)
        while index and term_at(index) != self.committed[index]:
            index -= 1
        return index

    def keeps(self, id_: NodeId, before: int, now: int) -> None:
        """Check that a write to a disk removed no committed entries.

        `before` and `now` are the indices of the last committed entry on the disk before and after the write.
        """
        self.check(before <= now, f"node {id_} had committed entries up to {before}, and now up to {now}")

    def replaces(self, id_: NodeId, position: Position, last: int, term_at: Callable[[int], int | None]) -> None:
        """Check that a snapshot does not replace a log that agrees with the snapshot.

        Such a log may have later entries that are acknowledged.
        """
        agrees = last > position.index and term_at(position.index) == position.term
        what = f"node {id_} drops {position.index + 1} to {last} for a snapshot up to {position.index}, which it has"
        self.check(not agrees, what)

    # ------------------------------------------------------------------ states

    def applies(self, id_: NodeId, entry: Entry, state: int) -> None:
        """Check the state of a node after it applied an entry."""
        ok = entry.index < len(self.committed) and self.committed[entry.index] == entry.term
        self.check(ok, f"node {id_} applies {entry}, which is not committed")
        known = self._states.setdefault(entry.index, state)
        self.check(known == state, f"node {id_} has another state after {entry}")
        if entry.kind is EntryKind.MEMBERSHIP and entry.index > self._memberships[-1][0]:
            self._follows(Membership.decode(entry.data), self._memberships[-1][1])
            self._memberships.append((entry.index, Membership.decode(entry.data)))

    def places(self, id_: NodeId, position: Position) -> None:
        """Check the term and membership of an applied position, unless the node has just joined, without membership."""
        if position.membership == Membership(0, ()):
            return
        found = self._memberships[bisect_right(self._memberships, position.index, key=lambda pair: pair[0]) - 1][1]
        same = (position.term, position.membership) == (self.committed[position.index], found)
        self.check(same, f"node {id_} takes {found} at {position.index} for {position}")

    def _follows(self, new: Membership, old: Membership) -> None:
        """Check that membership `new` may follow `old`.

        Memberships with the same voters may have the same version, since a node is a learner before it becomes a voter.
        """
        if old.is_joint:
            self.check(new == old.leaving(), f"{new} follows {old}")
        else:
            same = new.outgoing == old.voters if new.is_joint else new.voters == old.voters
            later = (new.version, new.voters != old.voters) > (old.version, False)
            self.check(same and later, f"{new} follows {old}")

    # ------------------------------------------------------------------ reads

    def newest(self) -> int:
        """Return the index of the last entry that a read which begins now must see."""
        return len(self.committed) - 1

    def reads(self, id_: NodeId, began_newest: int, applied: int) -> None:
        """Check a completed linearizable read."""
        self.check(applied >= began_newest, f"a read at node {id_} sees {applied}; {began_newest} was committed before")

    def refuses_nothing(self, id_: NodeId, node: RaftNode, expected: int) -> None:
        """Check that a node refused only the `expected` number of misrouted messages."""
        refused = node.status.rejected
        self.check(refused == expected, f"node {id_} refused {refused} messages of correct nodes")
