"""Linearizable reads without a log entry (Raft dissertation, 6.4).

    at the leader     read -> round (commit noted) -> a quorum answers the round -> index known -> applied -> done
    at a follower     read -> asks the leader ------------------------------------> index known -> applied -> done

A round is a heartbeat with a number, shared by all reads that arrived before it. A response to a round also answers all
earlier rounds. There are no leases: they need bounded pauses and clock drift, and a process that can be stopped
guarantees neither.

Pure; one thread.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from saros_cluster.placement.ring import NodeId

#: Reads that are not done yet, of this node and (at a leader) of others; more are answered with a failure.
READS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The outcome of `read_index`. Read now; or, if index is None, nothing is known: ask again, or read stale data."""

    read: int
    index: int | None


@dataclass(frozen=True, slots=True)
class PendingRead:
    """A read of `node`."""

    read: int
    node: NodeId


@dataclass(slots=True)
class _Round:
    number: int
    index: int
    reads: list[PendingRead]


class LeaderReads:
    """A leader's reads that wait for a round, or for the answers to theirs."""

    def __init__(self) -> None:
        self._waiting: list[PendingRead] = []
        #: Rising numbers; the reads in it are not confirmed.
        self._rounds: deque[_Round] = deque()
        self._count = 0
        #: The newest round that was begun.
        self.round = 0
        #: The newest round that each node answered.
        self._answered: dict[NodeId, int] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def is_waiting(self) -> bool:
        """Whether a new round is worth while."""
        return bool(self._waiting)

    def add(self, read: PendingRead) -> None:
        """Wait for the next round."""
        self._waiting.append(read)
        self._count += 1

    def begin_round(self, commit: int) -> frozenset[NodeId]:
        """All that wait share the next round; `commit` is of the leader's own term. Returns whose reads they are."""
        self.round += 1
        self._rounds.append(_Round(self.round, commit, self._waiting))
        waiting, self._waiting = self._waiting, []
        return frozenset(read.node for read in waiting)

    def answered(self, node: NodeId, number: int) -> None:
        """A node still takes us for the leader."""
        if number <= self.round:
            self._answered[node] = max(self._answered.get(node, 0), number)

    def answered_by(self, node: NodeId) -> int:
        """The newest round that it answered."""
        return self._answered.get(node, 0)

    def confirmed(self, number: int) -> list[tuple[PendingRead, int]]:
        """The reads of the rounds up to that one, which a quorum has answered, with their index; they leave."""
        confirmed = []
        while self._rounds and self._rounds[0].number <= number:
            done = self._rounds.popleft()
            # A read of an earlier round has its own, lower index, which holds as well.
            confirmed += [(read, done.index) for read in done.reads]
        self._count -= len(confirmed)
        return confirmed

    def drain(self) -> list[PendingRead]:
        """All reads; they leave without an answer."""
        reads = [read for r in self._rounds for read in r.reads] + self._waiting
        self._rounds.clear()
        self._waiting = []
        self._count = 0
        return reads


class LocalReads:
    """The reads of this node: those a leader was asked about, and those that wait to be applied.

    One question to the leader is for all reads before it; it has the number of the newest one.
    """

    def __init__(self) -> None:
        #: To be asked of the leader or asked, oldest first, with the tick at which they began.
        self._pending: dict[int, int] = {}
        #: The newest one, if nobody has asked for it.
        self._question: int | None = None
        #: (index, read)
        self._unapplied: list[tuple[int, int]] = []
        self._results: list[ReadResult] = []

    def __len__(self) -> int:
        return len(self._pending) + len(self._unapplied)

    def ask(self, read: int, now: int) -> None:
        """The leader is to be asked."""
        self._pending[read] = now
        self._question = read

    def take_question(self) -> int | None:
        """The number to ask the leader with, if there is anything to ask."""
        question, self._question = self._question, None
        return question

    def answered(self, question: int, index: int | None) -> None:
        """The leader's answer; one that nobody waits for is dropped."""
        if question not in self._pending:
            return
        for read in [read for read in self._pending if read <= question]:
            del self._pending[read]
            if index is None:
                self.fail(read)
            else:
                self.confirm(read, index)

    def confirm(self, read: int, index: int) -> None:
        """Note the index of a read: it is answered once that is applied."""
        self._unapplied.append((index, read))

    def fail(self, read: int) -> None:
        """Nothing is known."""
        self._results.append(ReadResult(read, None))

    def fail_pending(self, before: int | None = None) -> None:
        """The leader changed, or those from before that tick have waited too long."""
        while self._pending:
            read, began = next(iter(self._pending.items()))
            if before is not None and began >= before:
                return
            del self._pending[read]
            self.fail(read)
        self._question = None

    def applied(self, index: int) -> None:
        """What is readable now."""
        ready = [r for r in self._unapplied if r[0] <= index]
        if not ready:
            return
        self._unapplied = [r for r in self._unapplied if r[0] > index]
        self._results += [ReadResult(read, needed) for needed, read in ready]

    def take_results(self) -> tuple[ReadResult, ...]:
        """What is done, or failed."""
        results, self._results = tuple(self._results), []
        return results
