"""Linearizable reads without a log entry (Raft dissertation, 6.4).

    at the leader     read -> round (commit noted) -> a quorum answers the round -> index known -> applied -> done
    at a follower     read -> asks the leader ------------------------------------> index known -> applied -> done

A round is a heartbeat with a number, and is shared by all reads that arrived before the round began. A response to a
round also answers all earlier rounds. Leases are not used: they need bounded pauses and bounded clock drift, and a
process that can be stopped guarantees neither.

Pure; one thread.
"""

from __future__ import annotations

from collections import deque

import msgspec

from saros_cluster.placement.ring import NodeId

#: The limit of the number of this node's own pending reads and, on a leader, of the number of all reads that wait for
#: it. Further reads fail.
READS_MAX = 10_000


class ReadResult(msgspec.Struct, frozen=True):
    """The outcome of `read_index`.

    If there is an index, the caller may read now. If the index is None, the caller must ask again or accept stale data.
    """

    read: int
    index: int | None


class PendingRead(msgspec.Struct, frozen=True):
    """A read that `node` has begun."""

    read: int
    node: NodeId


class _Round(msgspec.Struct):
    number: int
    index: int
    reads: list[PendingRead]


class LeaderReads:
    """A leader's reads, which wait for the next round, or for a quorum to answer their round."""

    def __init__(self) -> None:
        self._waiting: list[PendingRead] = []
        #: The unconfirmed rounds in ascending order of their numbers. Each round has its reads and their index.
        self._rounds: deque[_Round] = deque()
        self._count = 0
        #: The number of the newest round.
        self.round = 0
        #: The newest round that each node has answered.
        self._answered: dict[NodeId, int] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def is_waiting(self) -> bool:
        """True if reads wait for the next round."""
        return bool(self._waiting)

    def add(self, read: PendingRead) -> None:
        """Add a read, which then waits for the next round."""
        self._waiting.append(read)
        self._count += 1

    def begin_round(self, commit: int) -> frozenset[NodeId]:
        """Begin a round for all waiting reads.

        Return the nodes that requested these reads. Entry `commit` must be of the leader's term.
        """
        self.round += 1
        self._rounds.append(_Round(self.round, commit, self._waiting))
        waiting, self._waiting = self._waiting, []
        return frozenset(read.node for read in waiting)

    def answered(self, node: NodeId, number: int) -> None:
        """Record that a node has answered a round, and therefore still followed this leader."""
        if number <= self.round:
            self._answered[node] = max(self._answered.get(node, 0), number)

    def answered_by(self, node: NodeId) -> int:
        """Return the newest round that the node has answered."""
        return self._answered.get(node, 0)

    def confirmed(self, number: int) -> list[tuple[PendingRead, int]]:
        """Remove and return the reads of all rounds up to `number`, which a quorum has answered, and their indices."""
        confirmed = []
        while self._rounds and self._rounds[0].number <= number:
            done = self._rounds.popleft()
            # A read of an earlier round gets the index of that round, which is lower and sufficient.
            confirmed += [(read, done.index) for read in done.reads]
        self._count -= len(confirmed)
        return confirmed

    def drain(self) -> list[PendingRead]:
        """Remove and return all reads, which this node can no longer answer."""
        reads = [read for r in self._rounds for read in r.reads] + self._waiting
        self._rounds.clear()
        self._waiting = []
        self._count = 0
        return reads


class LocalReads:
    """The reads of this node. The reads wait for an index from the leader, then until this index is applied.

    A request to the leader contains the number of the newest read, and the answer serves all reads up to that number.
    """

    def __init__(self) -> None:
        #: Reads that wait for the leader's answer, oldest first, with the tick at which they began.
        self._pending: dict[int, int] = {}
        #: The newest read, if the leader has not been asked for it yet.
        self._question: int | None = None
        #: (index, read)
        self._unapplied: list[tuple[int, int]] = []
        self._results: list[ReadResult] = []

    def __len__(self) -> int:
        return len(self._pending) + len(self._unapplied)

    def ask(self, read: int, now: int) -> None:
        """Add a read for which the leader must be asked for an index."""
        self._pending[read] = now
        self._question = read

    def take_question(self) -> int | None:
        """Return the number with which to ask the leader, or None if there is nothing to ask."""
        question, self._question = self._question, None
        return question

    def answered(self, question: int, index: int | None) -> None:
        """Handle the leader's answer to a question. Drop the answer if no read waits for it."""
        if question not in self._pending:
            return
        for read in [read for read in self._pending if read <= question]:
            del self._pending[read]
            if index is None:
                self.fail(read)
            else:
                self.confirm(read, index)

    def confirm(self, read: int, index: int) -> None:
        """Record the index of a read. The read is done once this index is applied."""
        self._unapplied.append((index, read))

    def fail(self, read: int) -> None:
        """Finish a read for which no index is available."""
        self._results.append(ReadResult(read, None))

    def fail_pending(self, before: int | None = None) -> None:
        """Fail the reads that began before tick `before`, or by default all reads, since the leader has changed."""
        while self._pending:
            read, began = next(iter(self._pending.items()))
            if before is not None and began >= before:
                return
            del self._pending[read]
            self.fail(read)
        self._question = None

    def applied(self, index: int) -> None:
        """Finish the reads whose index is applied now."""
        ready = [r for r in self._unapplied if r[0] <= index]
        if not ready:
            return
        self._unapplied = [r for r in self._unapplied if r[0] > index]
        self._results += [ReadResult(read, needed) for needed, read in ready]

    def take_results(self) -> tuple[ReadResult, ...]:
        """Return the reads that are done or have failed, and remove them."""
        results, self._results = tuple(self._results), []
        return results
