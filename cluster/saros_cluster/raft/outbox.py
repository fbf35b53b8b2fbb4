"""The messages that a node sends, and what must be durable before each may leave.

    send(message)               leaves at once: requests, refusals, and a leader's messages (its term is durable)
    promise(message)            leaves when term and vote are durable: votes, and that the node follows a leader
    promise(message, index)     leaves when the log up to index is durable too: that the node has entries, or a snapshot

    hard state, snapshot, base, entries  --take_persist-->  the runner  --persisted-->  durable, promises go out

The runner writes one `Persist` at a time; what changes meanwhile goes into the next. A promise is neither useful nor
true in a later term: when the term rises, pending promises are dropped.

Invariant: a promise that has left here survives a crash.

Pure; one thread.
"""

from __future__ import annotations

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.entry_log import EntryLog
from saros_cluster.raft.messages import GroupId, HardState, Message, Position, Snapshot
from saros_cluster.raft.ready import Persist

#: Promises that wait for a disk that has stopped; more are lost, as any message may be.
PROMISES_MAX = 1_000


class Outbox:
    """See the module. `hard_state` and `log` are as of now, durable or not."""

    def __init__(self, group: GroupId, node: NodeId, hard_state: HardState, log: EntryLog) -> None:
        #: Who speaks.
        self.group = group
        self.node = node
        self.hard_state = hard_state
        self._log = log
        self._durable_state = hard_state
        #: The log is to begin anew behind it, after the snapshot (if any) has replaced the state machine.
        self._base: Position | None = None
        self._snapshot: Snapshot | None = None
        #: What the runner is writing.
        self._writing: Persist | None = None
        self._persist_count = 0
        self._messages: list[Message] = []
        #: Each with the index that must be durable; None: only term and vote must be.
        self._promises: list[tuple[Message, int | None]] = []

    # ------------------------------------------------------------------ saying

    def send(self, message: Message) -> None:
        """Say it at once."""
        self._messages.append(message)

    def promise(self, message: Message, index: int | None = None) -> None:
        """Say it when it can be kept."""
        if self._is_durable(index):
            self._messages.append(message)
        elif len(self._promises) < PROMISES_MAX:
            self._promises.append((message, index))

    def _is_durable(self, index: int | None) -> bool:
        if not self.is_vote_durable:
            return False
        return index is None or (not self.is_restarting_log and index <= self._log.durable)

    @property
    def is_vote_durable(self) -> bool:
        """Whether term and vote are, as of now."""
        return self.hard_state == self._durable_state

    @property
    def is_restarting_log(self) -> bool:
        """Whether the log's base, or a snapshot, is not durable yet."""
        return self._base is not None or (self._writing is not None and self._writing.base is not None)

    def take_messages(self) -> tuple[Message, ...]:
        """What may go now."""
        messages, self._messages = tuple(self._messages), []
        return messages

    # ------------------------------------------------------------------ what is to be kept

    def enter_term(self, term: int, vote: NodeId | None) -> None:
        """A later term, and whom this node votes for in it."""
        assert term > self.hard_state.term
        self.hard_state = HardState(term, vote)
        self._promises.clear()

    def vote(self, node: NodeId) -> None:
        """Vote for a node in this term."""
        assert self.hard_state.vote in (None, node)
        if self.hard_state.vote is None:
            self.hard_state = HardState(self.hard_state.term, node)

    def restart_log(self, base: Position, snapshot: Snapshot | None) -> None:
        """Note that the log restarts at `base`; a snapshot, if there is one, is installed first."""
        self._base = base
        self._snapshot = snapshot

    # ------------------------------------------------------------------ the disk

    def take_persist(self) -> Persist | None:
        """All that is not durable and that nobody is writing; None if there is nothing, or if something is written."""
        if self._writing is not None:
            return None
        entries = self._log.take()
        if not entries and self._base is None and self.is_vote_durable:
            return None
        self._persist_count += 1
        hard_state = None if self.is_vote_durable else self.hard_state
        self._writing = Persist(self._persist_count, hard_state, self._snapshot, self._base, entries)
        self._base = self._snapshot = None
        return self._writing

    def persisted(self, index: int) -> Snapshot | None:
        """What was being written is durable; returns the snapshot that was installed with it."""
        persist = self._writing
        assert persist is not None
        assert persist.index == index
        self._writing = None
        self._log.mark_durable()
        if persist.hard_state is not None:
            self._durable_state = persist.hard_state
        waiting, self._promises = self._promises, []
        for message, needed in waiting:
            self.promise(message, needed)
        return persist.snapshot

    def validate(self) -> None:
        """Assert the module's invariants."""
        assert self.hard_state.term >= self._durable_state.term
        assert self._snapshot is None or self._base is not None
        assert all(message.term == self.hard_state.term for message, _ in self._promises)
        if not self.is_restarting_log and self._writing is None:
            assert self._log.durable == self._log.taken
