"""The host of a node's Raft groups, which turns input into messages, log writes and applied entries.

    messages, proposals, reads, time --> inbox --turn--> RaftNode.step ... ready
                                                           |- messages   -> peers, one batch for each
                                                           |- persist    -> log queue --sync--> one fsync for all groups
                                                           |- committed  -> apply queue --apply--> state machines
                                                           '- reads      -> their futures
    sync and apply put `persisted` and `applied` into the inbox again

    snapshots are made and fetched on threads of their own; their outcomes go into the inbox, too

The work has three steps, each for its own thread (`host_threads`), or for a simulator that calls them in any order:
`turn`, `sync_some`, `apply_some`. Each step processes everything that is pending, so a slow disk makes larger batches
rather than longer queues. Only `turn` uses the groups' `RaftNode` objects. The other steps work on values alone.
`propose`, `read` and `receive` may be called by any thread.

A group that breaks an invariant, or whose state machine fails, is stopped here, and the reason is put into `failures`.
The other groups continue. If the log fails, all groups stop, since a node must not promise anything that is not
durable.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial

import msgspec

from saros_cluster.multiraft.log_latency import LogHealth, LogLatency
from saros_cluster.multiraft.peers import Peers
from saros_cluster.multiraft.raft_log import RaftLog
from saros_cluster.multiraft.state_machine import Outcome, ProposalLost, ReplacedBySnapshot, StateMachine
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import Entry, GroupId, Message, Snapshot
from saros_cluster.raft.node import RaftNode
from saros_cluster.raft.ready import (
    Accepted,
    Persist,
    RaftOptions,
    Randomness,
    Ready,
    Refusal,
    Refused,
    Restored,
    Role,
    Status,
)
from saros_storage.base.clock import Clock
from saros_storage.base.errors import DiskFull, StorageError
from saros_storage.io.disk import FULL_ERRNOS

logger = logging.getLogger(__name__)

#: The length of a tick. A leader sends heartbeats every fourth tick, and an election begins after 20 to 40 ticks
#: without one.
TICK_NS = 50_000_000
#: The maximum number of ticks to catch up on after a pause. A longer pause counts as this number of ticks.
_TICKS_MAX = 40
#: The delay before a write that found the disk full is retried.
RETRY_SECONDS = 1.0


class NotLeader(Exception):
    """Raised because this node does not lead the group: the request had no effect.

    `leader` is the node to try instead, if known.
    """

    code = 2017

    def __init__(self, group: GroupId, leader: NodeId | None, reason: str) -> None:
        super().__init__(f"group {group}: {reason}")
        self.group = group
        self.leader = leader


class Busy(Exception):
    """Raised because the group accepts no more proposals at the moment: the request had no effect."""

    code = 606

    def __init__(self, group: GroupId) -> None:
        super().__init__(f"group {group} has too many unreplicated entries; slow down and retry")


class NotHere(Exception):
    """This node has no replica of the group, or the replica was stopped."""

    code = 2017

    def __init__(self, group: GroupId, why: str) -> None:
        super().__init__(f"group {group}: {why}")


class _Group(msgspec.Struct):
    """One group on this node. Only `turn` uses `node`, `proposals` and `reads`."""

    node: RaftNode
    machine: StateMachine
    #: The term and the future of each pending proposal, keyed by the index of its entry.
    proposals: dict[int, tuple[int, Future[Outcome]]] = msgspec.field(default_factory=dict)
    #: The futures of pending reads, keyed by number.
    reads: dict[int, Future[int | None]] = msgspec.field(default_factory=dict)
    #: The tokens of the snapshots that were made for other members.
    snapshots: set[bytes] = msgspec.field(default_factory=set)
    #: The last index of the snapshot that has replaced, or is about to replace, the applied state. Guarded by the
    #: host's lock.
    overtaken: int = 0


class Write(msgspec.Struct, frozen=True):
    """State that a group wants to write to the log."""

    group: GroupId
    persist: Persist


Event = Callable[[], None]


def _start_thread(work: Callable[[], None]) -> None:
    """Run a long operation on a separate thread."""
    threading.Thread(target=work, name="saros-snapshot", daemon=True).start()


class GroupHost:
    """The Raft groups of one node, with their queues of events, log writes and entries to apply."""

    def __init__(
        self,
        node: NodeId,
        log: RaftLog,
        peers: Peers,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._id = node
        self._log = log
        self._peers = peers
        self._clock = clock
        self._randomness = randomness
        self._groups: dict[GroupId, _Group] = {}
        self._ticked_ns = clock.monotonic_ns()
        self._dirty: dict[GroupId, None] = {}
        #: Guards the inbox, the two other queues, and `closed`.
        self._lock = threading.Lock()
        #: Each condition is notified when there is work for its step. The three conditions share one lock.
        self.turning = threading.Condition(self._lock)
        self.syncing = threading.Condition(self._lock)
        self.applying = threading.Condition(self._lock)
        self._inbox: deque[tuple[GroupId | None, Event]] = deque()
        self._to_sync: list[Write] = []
        self._to_apply: deque[tuple[GroupId, _Group, tuple[Entry, ...]]] = deque()
        self.closed = False
        #: The first lock is held while writes are in progress, the second while entries are applied.
        self._sync_at_hand = threading.Lock()
        self._apply_at_hand = threading.Lock()
        #: The groups that were stopped, each with the reason.
        self.failures: dict[GroupId, str] = {}
        #: The status of each group as of the last turn.
        self._statuses: dict[GroupId, Status] = {}
        self._log_latency = LogLatency()
        #: The verdict on the log's disk as of the last tick.
        self.log_health = LogHealth()
        #: The write that waits for the disk, if any: its start time, and its bytes.
        self._writing: tuple[int, int] | None = None
        #: True if the log should be written only to measure how long that takes.
        self._is_probe_due = False

    # ------------------------------------------------------------------ any thread

    def add(self, group: GroupId, restored: Restored, machine: StateMachine, options: RaftOptions) -> None:
        """Add a group before the first turn."""
        node = RaftNode(group, self._id, restored, options, self._randomness)
        node.defer_elections(self.log_health.slow)
        self._groups[group] = _Group(node, machine)
        self._statuses[group] = node.status
        self._dirty[group] = None

    def join(self, group: GroupId, restored: Restored, machine: StateMachine, options: RaftOptions) -> None:
        """Add a group while the host is running. Its log must exist."""
        self._put(group, lambda: self.add(group, restored, machine, options), None)

    def leave(self, group: GroupId, reason: str) -> None:
        """Remove a group. When this method returns, none of the group's writes or entries is queued or in progress."""
        gone: Future[Outcome] = Future()

        def remove() -> None:
            found = self._groups.pop(group, None)
            self._statuses.pop(group, None)
            if found is not None:
                _fail(found, NotHere(group, reason))
                self._release_snapshots(found, found.snapshots)
            gone.set_result(None)

        self._put(None, remove, gone)
        gone.result()
        with self._sync_at_hand, self._lock:
            self._to_sync = [write for write in self._to_sync if write.group != group]
        with self._apply_at_hand, self._lock:
            self._to_apply = deque(item for item in self._to_apply if item[0] != group)

    def receive(self, sender: NodeId, messages: Sequence[Message]) -> None:
        """Take messages from a peer, in order."""
        by_group: dict[GroupId, list[Message]] = {}
        for message in messages:
            if message.sender == sender:
                by_group.setdefault(message.group, []).append(message)
        self._put_all([(group, self._stepping(group, found)) for group, found in by_group.items()])

    def propose(self, group: GroupId, data: bytes) -> Future[Outcome]:
        """Propose a command, and return a future for its outcome.

        The future is resolved when this node applies the command. The future fails with NotLeader, Busy, ProposalLost,
        ReplacedBySnapshot or NotHere.
        """
        (future,) = self.propose_all([(group, data)])
        return future

    def propose_all(self, commands: Sequence[tuple[GroupId, bytes]]) -> list[Future[Outcome]]:
        """Propose several commands in one turn, each as `propose` does."""
        futures: list[Future[Outcome]] = [Future() for _ in commands]
        with self._lock:
            if not self.closed:
                for (group, data), future in zip(commands, futures, strict=True):
                    self._inbox.append((group, partial(self._propose, group, data, future)))
                self.turning.notify()
                return futures
        for (group, _), future in zip(commands, futures, strict=True):
            future.set_exception(NotHere(group, "the node is stopping"))
        return futures

    def change_membership(self, group: GroupId, target: Membership) -> Future[Outcome]:
        """Propose a membership.

        The future is resolved with None when this node applies the membership's entry. Fails as `propose` does.
        """
        future: Future[Outcome] = Future()
        self._put(group, lambda: self._change_membership(group, target, future), future)
        return future

    def read(self, group: GroupId) -> Future[int | None]:
        """Begin a linearizable read.

        The future's result is an index that this node has applied, or None if no leader answered.
        """
        future: Future[int | None] = Future()
        self._put(group, lambda: self._read(group, future), future)
        return future

    def transfer(self, group: GroupId, to: NodeId) -> None:
        """Hand the leadership over to a node, if this node leads."""
        self._put(group, lambda: self._transfer(group, to), None)

    def transfer_among(self, group: GroupId, nodes: Collection[NodeId]) -> None:
        """If this node leads, hand the leadership over to the node in `nodes` that can take it soonest."""
        self._put(group, lambda: self._transfer_among(group, nodes), None)

    def compact(self, group: GroupId, index: int) -> None:
        """Record that the state machine has entries up to `index` durably, so that the log may be compacted."""
        self._put(group, lambda: self._compact(group, index), None)

    def status(self, group: GroupId) -> Status | None:
        """Return the group's status as of the last turn, or None if this node has no replica of it."""
        return self._statuses.get(group)

    def statuses(self) -> Mapping[GroupId, Status]:
        """Return the statuses of all groups on this node, as of the last turn."""
        return dict(self._statuses)

    def blocked_by(self) -> str | None:
        """Return the reason why a group accepts no proposals on this node at the moment, or None if it accepts them."""
        for group, why in self.failures.items():
            return f"group {group} was stopped: {why}"
        return self._log.blocked_by()

    def leads(self, group: GroupId) -> bool:
        """Return whether this node leads the group, as far as this node knows."""
        status = self._statuses.get(group)
        return status is not None and status.leads

    def leader_of(self, group: GroupId) -> NodeId | None:
        """Return the leader of the group, as far as this node knows."""
        status = self._statuses.get(group)
        return None if status is None else status.leader

    def campaign(self, group: GroupId) -> None:
        """Campaign at once in a group that has no leader, such as a new group.

        If no leader is elected, the caller must call this again.
        """
        self._put(group, lambda: self._campaign(group), None)

    def force_single_voter(self, group: GroupId, target: Membership) -> None:
        """Make this node the only voter of a group. See `RaftNode.force_single_voter`."""
        self._put(group, lambda: self._force_single_voter(group, target), None)

    def _put(self, group: GroupId | None, event: Event, future: Future[Outcome] | Future[int | None] | None) -> None:
        with self._lock:
            if not self.closed:
                self._inbox.append((group, event))
                self.turning.notify()
                return
        if future is not None:
            future.set_exception(NotHere(group or GroupId(0), "the node is stopping"))

    def _put_all(self, events: Sequence[tuple[GroupId | None, Event]]) -> None:
        with self._lock:
            self._inbox.extend(events)
            self.turning.notify()

    # ------------------------------------------------------------------ turn

    def next_tick_ns(self) -> int:
        """Return the time at which the next turn is due even without events."""
        return self._ticked_ns + TICK_NS

    @property
    def has_events(self) -> bool:
        """True if a turn has something to do. The caller holds `turning`."""
        return bool(self._inbox) or bool(self._dirty)

    def turn(self) -> None:
        """Handle all pending events and the time that has passed."""
        with self._lock:
            events, self._inbox = self._inbox, deque()
        for group, event in events:
            self._run(group, event)
        self._tick()
        self._collect()

    def _run(self, group: GroupId | None, event: Event) -> None:
        try:
            event()
        except AssertionError as error:
            if group is None:
                raise
            self._stop_group(group, f"an invariant was violated: {error!r}", error)
        if group is not None:
            self._dirty[group] = None

    def _tick(self) -> None:
        now = self._clock.monotonic_ns()
        ticks = (now - self._ticked_ns) // TICK_NS
        if ticks <= 0:
            return
        self._ticked_ns += ticks * TICK_NS
        for _ in range(min(ticks, _TICKS_MAX)):
            for group, found in self._groups.items():
                self._run(group, found.node.tick)
        self._check_log(now)

    def _check_log(self, now_ns: int) -> None:
        """Update the verdict on the log's disk. While the disk is slow, other nodes should lead."""
        before, writing = self.log_health, self._writing
        if writing is None:
            self.log_health = self._log_latency.check(now_ns)
            if self._log_latency.is_probe_due(now_ns):
                with self._lock:
                    self._is_probe_due = True
                    self.syncing.notify()
        else:
            began_ns, size_bytes = writing
            self.log_health = self._log_latency.check(now_ns, now_ns - began_ns, size_bytes)
        if self.log_health.slow is not before.slow:
            _log_health_change(self.log_health)
            for found in self._groups.values():
                found.node.defer_elections(self.log_health.slow)

    def _collect(self) -> None:
        """Hand out the work of all groups that have changed, until no group has work left."""
        outgoing: dict[NodeId, list[Message]] = {}
        writes: list[Write] = []
        applies: list[tuple[GroupId, _Group, tuple[Entry, ...]]] = []
        while self._dirty:
            dirty, self._dirty = self._dirty, {}
            for group in dirty:
                found = self._groups.get(group)
                if found is None:
                    continue
                ready = found.node.ready()
                for message in ready.messages:
                    outgoing.setdefault(message.receiver, []).append(message)
                if ready.persist is not None:
                    writes.append(Write(group, ready.persist))
                if ready.committed:
                    applies.append((group, found, ready.committed))
                self._move_snapshots(group, found, ready)
                for result in ready.reads:
                    future = found.reads.pop(result.read, None)
                    if future is not None:
                        future.set_result(result.index)
                status = found.node.status
                _log_role_change(self._statuses[group], status)
                self._statuses[group] = status
        for node, messages in outgoing.items():
            self._peers.send(node, messages)
        if writes or applies:
            with self._lock:
                self._to_sync += writes
                self._to_apply.extend(applies)
                if writes:
                    self.syncing.notify()
                if applies:
                    self.applying.notify()

    # ------------------------------------------------------------------ events, within a turn

    def _stepping(self, group: GroupId, messages: Sequence[Message]) -> Event:
        def step() -> None:
            found = self._groups.get(group)
            if found is not None:
                for message in messages:
                    found.node.step(message)

        return step

    def _propose(self, group: GroupId, data: bytes, future: Future[Outcome]) -> None:
        found = self._group_for(group, future)
        if found is not None:
            self._note(group, found, found.node.propose(data), future)

    def _change_membership(self, group: GroupId, target: Membership, future: Future[Outcome]) -> None:
        found = self._group_for(group, future)
        if found is not None:
            self._note(group, found, found.node.propose_membership(target), future)

    def _group_for(self, group: GroupId, future: Future[Outcome] | Future[int | None]) -> _Group | None:
        found = self._groups.get(group)
        if found is None:
            future.set_exception(NotHere(group, self.failures.get(group, "this node has no replica of it")))
        return found

    def _note(self, group: GroupId, found: _Group, answer: Accepted | Refused, future: Future[Outcome]) -> None:
        if isinstance(answer, Accepted):
            found.proposals[answer.index] = (answer.term, future)
        elif answer.reason is Refusal.BUSY:
            future.set_exception(Busy(group))
        else:
            future.set_exception(NotLeader(group, answer.leader, answer.reason.value))

    def _read(self, group: GroupId, future: Future[int | None]) -> None:
        found = self._group_for(group, future)
        if found is not None:
            found.reads[found.node.read_index()] = future

    def _transfer(self, group: GroupId, to: NodeId) -> None:
        found = self._groups.get(group)
        if found is not None:
            found.node.transfer(to)

    def _transfer_among(self, group: GroupId, nodes: Collection[NodeId]) -> None:
        found = self._groups.get(group)
        if found is not None:
            found.node.transfer_among(nodes)

    def _campaign(self, group: GroupId) -> None:
        found = self._groups.get(group)
        if found is not None:
            found.node.campaign()

    def _force_single_voter(self, group: GroupId, target: Membership) -> None:
        found = self._groups.get(group)
        if found is not None:
            found.node.force_single_voter(target)

    def _compact(self, group: GroupId, index: int) -> None:
        found = self._groups.get(group)
        if found is not None:
            base = found.node.compact(index)
            if base is not None:
                self._log.release(group, base)

    # ------------------------------------------------------------------ sync

    @property
    def has_writes(self) -> bool:
        """True if `sync_some` has something to do. The caller holds `syncing`."""
        return bool(self._to_sync) or self._is_probe_due

    def sync_some(self) -> bool:
        """Make all pending writes durable.

        Return False if the disk is full, in which case the call should be repeated later.
        """
        with self._sync_at_hand:
            return self._sync()

    def _sync(self) -> bool:
        with self._lock:
            writes, self._to_sync = self._to_sync, []
            is_probe, self._is_probe_due = self._is_probe_due and not writes, False
        if not writes and not is_probe:
            return True
        try:
            for write in writes:
                self._install(write)
            self._put_all([(None, self._write(writes))])
        except DiskFull:
            with self._lock:
                self._to_sync = writes + self._to_sync
            self._step_down_all()
            return False
        except (StorageError, OSError) as error:
            logger.critical("the log failed", extra={"why": str(error)})
            self._put_all([(None, partial(self._stop_all, f"the log failed: {error}", error))])
            return True
        self._put_all([(w.group, self._persisting(w)) for w in writes])
        return True

    def _write(self, writes: Sequence[Write]) -> Event:
        """Write to the log, or write a test record if `writes` is empty. Return the event that records the duration."""
        size_bytes = sum(entry.size_bytes for write in writes for entry in write.persist.entries)
        began_ns = self._clock.monotonic_ns()
        self._writing = began_ns, size_bytes
        try:
            tickets = [self._log.append(write.group, write.persist) for write in writes] or [self._log.probe()]
            self._log.wait(tickets[-1])
        finally:
            self._writing = None
        ended_ns = self._clock.monotonic_ns()
        return partial(self._log_latency.record, ended_ns, ended_ns - began_ns, size_bytes)

    def _install(self, write: Write) -> None:
        """Install the snapshot of a write before the log restarts.

        A crash between installation and restart leaves a state machine that is ahead of the log, which recovery
        handles. Entries of the group that are already queued for `apply` are discarded, and no result is returned for
        their proposals. Idempotent.
        """
        snapshot = write.persist.snapshot
        found = self._groups.get(write.group)
        if snapshot is None or found is None:
            return
        with self._lock:
            self._to_apply = deque(item for item in self._to_apply if item[0] != write.group)
            found.overtaken = snapshot.position.index
        try:
            found.machine.install(snapshot)
        except OSError as error:
            if error.errno not in FULL_ERRNOS:
                raise
            raise DiskFull(f"no space left to install a snapshot of group {write.group}") from error

    def _persisting(self, write: Write) -> Event:
        def persisted() -> None:
            found = self._groups.get(write.group)
            if found is not None:
                found.node.persisted(write.persist.index)
                if write.persist.snapshot is not None:  # fail the proposals now, since a later entry may never come
                    overtaken = write.persist.snapshot.position.index
                    _give_up(found, [index for index in found.proposals if index <= overtaken], ReplacedBySnapshot)

        return persisted

    def _step_down_all(self) -> None:
        """Step down in all groups: a node that cannot write its log should not lead."""

        def step_down() -> None:
            for group, found in self._groups.items():
                found.node.step_down()
                self._dirty[group] = None

        self._put_all([(None, step_down)])

    # ------------------------------------------------------------------ apply

    @property
    def has_entries(self) -> bool:
        """True if `apply_some` has something to do. The caller holds `applying`."""
        return bool(self._to_apply)

    def apply_some(self) -> None:
        """Apply the batch of entries that has waited longest."""
        with self._apply_at_hand:
            self._apply()

    def _apply(self) -> None:
        with self._lock:
            if not self._to_apply:
                return
            group, found, entries = self._to_apply.popleft()
        try:
            outcomes = found.machine.apply(entries)
        except Exception as error:  # noqa: BLE001 (the top of a thread's work)
            text = f"applying entry {entries[0].index} failed: {error}"
            self._put_all([(None, partial(self._stop_group, group, text, error))])
            return
        with self._lock:  # the machine skips these entries if a snapshot was installed since
            overtaken = found.overtaken
        self._put_all([(group, self._applying(found, entries, outcomes, overtaken))])

    def _applying(self, found: _Group, entries: Sequence[Entry], outcomes: Sequence[Outcome], overtaken: int) -> Event:
        def applied() -> None:
            found.node.applied(entries[-1].index)
            _give_up(found, [index for index in found.proposals if index <= overtaken], ReplacedBySnapshot)
            for entry, outcome in zip(entries, outcomes, strict=True):
                term, future = found.proposals.pop(entry.index, (0, None))
                if future is not None:
                    _answer(future, outcome if term == entry.term else ProposalLost())
            # Terms in a log never decrease: an entry is never followed by an entry of an earlier term.
            older = [index for index, (term, _) in found.proposals.items() if term < entries[-1].term]
            _give_up(found, older, ProposalLost)

        return applied

    # ------------------------------------------------------------------ snapshots

    def _move_snapshots(self, group: GroupId, found: _Group, ready: Ready) -> None:
        """Start to fetch snapshots and to make snapshots, and release the snapshots that are no longer offered."""
        if ready.fetch is not None:
            _start_thread(partial(self._stage, group, found, ready.fetch))
        for node in ready.snapshots_wanted:
            _start_thread(partial(self._take_snapshot, group, found, node))
        if found.snapshots and found.node.is_leader:
            # A former leader does not release its snapshots: a member may still be fetching one, and would otherwise
            # start over after every election.
            self._release_snapshots(found, found.snapshots - found.node.offered)

    def _take_snapshot(self, group: GroupId, found: _Group, to: NodeId) -> None:
        """Make a snapshot for a member that lags."""
        try:
            index, token = found.machine.take_snapshot()
        except Exception as error:  # noqa: BLE001 (the top of a thread's work)
            logger.warning("creating a snapshot failed", extra={"group": group, "why": str(error)})
            self._put_all([(group, partial(found.node.no_snapshot, to))])
            return

        def offer() -> None:
            found.snapshots.add(token)
            position = found.node.position(index)
            if position is None:
                found.node.no_snapshot(to)
            else:
                logger.info("offering a snapshot", extra={"group": group, "to": to, "index": index})
                found.node.offer_snapshot(to, Snapshot(position, token))

        self._put_all([(group, offer)])

    def _release_snapshots(self, found: _Group, tokens: Collection[bytes]) -> None:
        """Release the snapshots that no node needs to fetch any more."""
        for token in list(tokens):
            found.snapshots.discard(token)
            _start_thread(partial(found.machine.forget_snapshot, token))

    def _stage(self, group: GroupId, found: _Group, snapshot: Snapshot) -> None:
        """Fetch a snapshot that the leader offered."""
        leader = self.leader_of(group)
        try:
            if leader is None:
                raise NotHere(group, "no leader is known")
            found.machine.stage(leader, snapshot)
        except Exception as error:  # noqa: BLE001 (the top of a thread's work)
            logger.warning("fetching a snapshot failed", extra={"group": group, "why": str(error)})
            self._put_all([(group, partial(found.node.staging_failed, snapshot))])
        else:
            logger.info("a snapshot was fetched", extra={"group": group, "index": snapshot.position.index})
            self._put_all([(group, partial(found.node.staged, snapshot))])

    # ------------------------------------------------------------------ stop

    def _stop_group(self, group: GroupId, why: str, error: BaseException) -> None:
        logger.critical("a group was stopped", extra={"group": group, "why": why}, exc_info=error)
        self.failures[group] = why
        found = self._groups.pop(group, None)
        self._statuses.pop(group, None)
        if found is not None:
            _fail(found, NotHere(group, why))

    def _stop_all(self, why: str, error: BaseException) -> None:
        for group in list(self._groups):
            self._stop_group(group, why, error)

    def close(self) -> None:
        """Refuse new requests and fail pending ones. The caller has stopped the threads."""
        with self._lock:
            self.closed = True
            events, self._inbox = self._inbox, deque()
        for group, event in events:
            self._run(group, event)
        for group, found in self._groups.items():
            _fail(found, NotHere(group, "the node is stopping"))


def _answer(future: Future[Outcome], outcome: Outcome) -> None:
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def _give_up(group: _Group, indices: Sequence[int], why: Callable[[], Exception]) -> None:
    for index in indices:
        group.proposals.pop(index)[1].set_exception(why())


def _fail(group: _Group, error: Exception) -> None:
    for _, future in group.proposals.values():
        future.set_exception(error)
    for read in group.reads.values():
        read.set_exception(error)
    group.proposals.clear()
    group.reads.clear()


def _log_health_change(now: LogHealth) -> None:
    """Log the verdict about the disk, with the measured latencies and advice for the operator."""
    if now.slow:
        text = "log writes are slow: other nodes take over this node's groups; check its disk"
        logger.warning(text, extra={"write": now.text})
    else:
        logger.info("log writes are fast again: this node may lead groups again", extra={"write": now.text})


def _log_role_change(before: Status, now: Status) -> None:
    """Log a change of role, so that the log shows which node was the leader at what time."""
    if before.role is now.role:
        return
    of_leader = Role.LEADER in (before.role, now.role)
    extra = {"group": now.group, "role": now.role.value, "was": before.role.value, "term": now.term}
    logger.log(logging.INFO if of_leader else logging.DEBUG, "the role in a group changed", extra=extra)
