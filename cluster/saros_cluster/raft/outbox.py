"""The messages that a node sends, and the state that must be durable before each one leaves.

    send(message)               leaves at once: requests, refusals, and a leader's messages (its term is durable)
    promise(message)            leaves when term and vote are durable: votes, and that the node follows a leader
    promise(message, index)     leaves when the log up to index is durable too: that the node has entries, or a snapshot

    hard state, snapshot, base, entries  --take_persist-->  the runner  --persisted-->  durable, promises are sent

The runner writes one `Persist` at a time. Changes made in the meantime go into the next one. A promise that was made in
one term is neither useful nor true in a later term, so pending promises are dropped when the term rises.

Invariant: a promise that has left this node survives a crash.

Pure; one thread.
"""

from __future__ import annotations

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.entry_log import EntryLog
from saros_cluster.raft.messages import GroupId, HardState, Message, Position, Snapshot
from saros_cluster.raft.ready import Persist

#: The limit of the number of promises that wait for a stalled disk. Further promises are lost, which can happen to any
#: message.
PROMISES_MAX = 1_000


class Outbox:
    """The outgoing messages of a node, and its state on the way to the disk.

    `hard_state` and `log` are the current state, whether durable or not.
    """

    def __init__(self, group: GroupId, node: NodeId, hard_state: HardState, log: EntryLog) -> None:
        #: The group and the node that send the messages.
        self.group = group
        self.node = node
        self.hard_state = hard_state
        self._log = log
        self._durable_state = hard_state
        #: The log restarts after this position, once the snapshot (if any) has replaced the state machine.
        self._base: Position | None = None
        self._snapshot: Snapshot | None = None
        #: The state that the runner is writing.
        self._writing: Persist | None = None
        self._persist_count = 0
        self._messages: list[Message] = []
        #: Pending promises, each with the log index that must be durable, or None if only term and vote must be
        #: durable.
        self._promises: list[tuple[Message, int | None]] = []

    # ------------------------------------------------------------------ messages

    def send(self, message: Message) -> None:
        """Send a message at once."""
        self._messages.append(message)

    def promise(self, message: Message, index: int | None = None) -> None:
        """Send a message once the state that it promises is durable."""
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
        """True if the current term and vote are durable."""
        return self.hard_state == self._durable_state

    @property
    def is_restarting_log(self) -> bool:
        """True while the log's new base (and its snapshot) is not durable."""
        return self._base is not None or (self._writing is not None and self._writing.base is not None)

    def take_messages(self) -> tuple[Message, ...]:
        """Return the messages that may leave now, and remove them from the outbox."""
        messages, self._messages = tuple(self._messages), []
        return messages

    # ------------------------------------------------------------------ state to make durable

    def enter_term(self, term: int, vote: NodeId | None) -> None:
        """Enter a later term, with this node's vote in it."""
        assert term > self.hard_state.term
        self.hard_state = HardState(term, vote)
        self._promises.clear()

    def vote(self, node: NodeId) -> None:
        """Vote for a node in the current term."""
        assert self.hard_state.vote in (None, node)
        if self.hard_state.vote is None:
            self.hard_state = HardState(self.hard_state.term, node)

    def restart_log(self, base: Position, snapshot: Snapshot | None) -> None:
        """Make the log start again at `base`, without its previous entries.

        If there is a snapshot, it is installed first.
        """
        self._base = base
        self._snapshot = snapshot

    # ------------------------------------------------------------------ the disk

    def take_persist(self) -> Persist | None:
        """Return all state that is neither durable nor being written.

        The result is None if nothing is left, or while a write is in progress.
        """
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
        """Record that the write in progress is durable. Return the snapshot that was installed with it, if any."""
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
