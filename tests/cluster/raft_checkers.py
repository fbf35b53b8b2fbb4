"""What must hold of a Raft group, whatever happens: watched from outside, and apart from what makes it happen.

    election safety         a term has one leader
    leader completeness     who begins to lead has all that was committed in earlier terms
    log matching            an index and a term say what the entry is, and what is before it
    state machine safety    what is committed at an index never changes; states after the same entries are the same
    durability              what is committed lies on the disks of a majority (of both halves, while joint), and stays;
                            a snapshot takes nothing from a log that agrees with it
    reads                   a linearizable read sees all that was committed anywhere when it began
    memberships             follow each other: joint and then simple, versions rise
    nothing is refused      correct nodes never send what cannot be

A checker knows one group, and keeps what it has seen. `check` raises Violation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import Entry, EntryKind, GroupId, Position
from saros_cluster.raft.node import RaftNode


class Violation(AssertionError):
    """Something happened that must not."""


class GroupChecker:
    """See the module."""

    def __init__(self, group: GroupId, first: Position) -> None:
        self.group = group
        #: By term.
        self.leaders: dict[int, NodeId] = {}
        #: By index and term: the term before, and the entry.
        self._entries: dict[tuple[int, int], tuple[int | None, Entry]] = {}
        #: Terms of the committed entries, by index; up to where the log begins there are none.
        self.committed = [0] * (first.index + 1)
        #: In which term each was committed.
        self._committed_in = [0] * (first.index + 1)
        #: The state after each index that was applied somewhere.
        self._states: dict[int, int] = {}
        self._memberships = [(first.index, first.membership)]

    @property
    def membership(self) -> Membership:
        """The newest that was applied anywhere."""
        return self._memberships[-1][1]

    @property
    def membership_term(self) -> int:
        """In which that was committed."""
        return self._committed_in[self._memberships[-1][0]]

    def check(self, holds: bool, what: str) -> None:
        if not holds:
            raise Violation(f"group {self.group}: {what}")

    # ------------------------------------------------------------------ elections

    def leads(self, node: RaftNode, id_: NodeId) -> None:
        """A node leads; the first time in a term is its election."""
        known = self.leaders.setdefault(node.term, id_)
        self.check(known == id_, f"nodes {known} and {id_} both lead term {node.term}")

    def elected(self, node: RaftNode, id_: NodeId) -> None:
        """Entries before the last committed one need no look: logs match."""
        index, log = bisect_left(self._committed_in, node.term) - 1, node._log
        if index > log.base_index:
            found = log.term_at(index)
            self.check(found == self.committed[index], f"leader {id_} lacks entry {index}, which is committed")

    # ------------------------------------------------------------------ logs

    def log(self, before: int | None, entries: Iterable[Entry]) -> None:
        """Entries that follow each other, in a message or on a disk."""
        for entry in entries:
            found = self._entries.setdefault((entry.index, entry.term), (before, entry))
            if found[0] is None:
                self._entries[entry.index, entry.term] = (before, entry)
            same = found[1] == entry and (before is None or found[0] in (None, before))
            self.check(same, f"{entry} after term {before} is also {found}")
            before = entry.term

    def commits(self, node: RaftNode, id_: NodeId, on_disk: Callable[[NodeId, int, int], bool]) -> None:
        """A node's commit rose."""
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
        """The last committed entry of a log, given where the log ends; 0 if there is none."""
        index = min(last, len(self.committed) - 1)
        while index and term_at(index) != self.committed[index]:
            index -= 1
        return index

    def keeps(self, id_: NodeId, before: int, now: int) -> None:
        """The last committed entry on a disk before and after something was written."""
        self.check(before <= now, f"node {id_} had committed entries up to {before}, and now up to {now}")

    def replaces(self, id_: NodeId, position: Position, last: int, term_at: Callable[[int], int | None]) -> None:
        """A snapshot comes in the place of a disk's log, which ends at `last`: the node may have promised all of it."""
        agrees = last > position.index and term_at(position.index) == position.term
        what = f"node {id_} drops {position.index + 1} to {last} for a snapshot up to {position.index}, which it has"
        self.check(not agrees, what)

    # ------------------------------------------------------------------ states

    def applies(self, id_: NodeId, entry: Entry, state: int) -> None:
        """A node applied an entry and has that state."""
        ok = entry.index < len(self.committed) and self.committed[entry.index] == entry.term
        self.check(ok, f"node {id_} applies {entry}, which is not committed")
        known = self._states.setdefault(entry.index, state)
        self.check(known == state, f"node {id_} has another state after {entry}")
        if entry.kind is EntryKind.MEMBERSHIP and entry.index > self._memberships[-1][0]:
            self._follows(Membership.decode(entry.data), self._memberships[-1][1])
            self._memberships.append((entry.index, Membership.decode(entry.data)))

    def places(self, id_: NodeId, position: Position) -> None:
        """A place that was applied, with the membership as of it; who joins later knows of none at first."""
        if position.membership == Membership(0, ()):
            return
        found = self._memberships[bisect_right(self._memberships, position.index, key=lambda pair: pair[0]) - 1][1]
        same = (position.term, position.membership) == (self.committed[position.index], found)
        self.check(same, f"node {id_} takes {found} at {position.index} for {position}")

    def _follows(self, new: Membership, old: Membership) -> None:
        """One version may have two: who is to vote is a learner before."""
        if old.is_joint:
            self.check(new == old.leaving(), f"{new} follows {old}")
        else:
            same = new.outgoing == old.voters if new.is_joint else new.voters == old.voters
            later = (new.version, new.voters != old.voters) > (old.version, False)
            self.check(same and later, f"{new} follows {old}")

    # ------------------------------------------------------------------ reads

    def newest(self) -> int:
        """What a read that begins now must see."""
        return len(self.committed) - 1

    def reads(self, id_: NodeId, began_newest: int, applied: int) -> None:
        """A linearizable read is done."""
        self.check(applied >= began_newest, f"a read at node {id_} sees {applied}; {began_newest} was committed before")

    def refuses_nothing(self, id_: NodeId, node: RaftNode, expected: int) -> None:
        """Only what was sent astray was refused."""
        refused = node.status.rejected
        self.check(refused == expected, f"node {id_} refused {refused} messages of correct nodes")
