"""The leader's state and duties, from its election until it becomes a follower again.

    append              appends an entry to its own log; `flush` sends it while the disk is still writing it
    on_..._response     learns which entries the others have, and that they are alive
    advance             commits the entries that a majority has; once a joint membership is committed, leaves it
    flush               sends the messages that are due: entries, heartbeats, read rounds, snapshot offers, transfers;
                        considers all members only if there is news for all; otherwise those that have answered

If no further entries follow, a commit is announced by a separate message only while the allowance lasts, since the
message also costs a response. So followers of a quiet group apply entries at once, whereas a busy group, whose next
entries come soon anyway, sends half as many messages. No client's write waits for the announcement, since the leader
itself answers the client.

    committed, some allowance left   announced at once, by an append without entries
    committed, no allowance left     announced with the next entries or the next heartbeat, whichever comes first
    a follower waits for a read      announced at once

Invariants
- the first entry is empty and of the leader's term; until it is committed, no read is served and no membership changed
- only entries of the leader's term are committed by counting; earlier entries commit with them (Raft paper, 5.4.2)
- the leader counts itself like any other member: only if it is a voter, and only up to the last durable entry
- at most one membership change is in progress; the log shows it, even if an earlier leader began it
- nothing is appended while leadership is being transferred

Pure; one thread.
"""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType

import msgspec

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.entry_log import EntryLog
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import (
    Append,
    AppendResponse,
    Entry,
    EntryKind,
    Heartbeat,
    HeartbeatResponse,
    Snapshot,
    SnapshotOffer,
    SnapshotResponse,
    TransferNow,
)
from saros_cluster.raft.outbox import Outbox
from saros_cluster.raft.progress import IN_FLIGHT_BYTES_MAX, Mode, Progress
from saros_cluster.raft.reads import READS_MAX, LeaderReads, PendingRead
from saros_cluster.raft.ready import NOBODY_SILENT, Accepted, RaftOptions, Refusal

#: The limit of the total size of the entries in one message. A single entry may exceed this limit.
APPEND_BYTES_MAX = 4 << 20
#: The limit of the total size of uncommitted entries: further entries would only wait for the slowest disk of a
#: majority.
UNCOMMITTED_BYTES_MAX = 64 << 20
#: The number of commits that are announced at once after a quiet period, and the number of ticks after which this
#: number grows by one.
_ALLOWANCE_MAX, _ALLOWANCE_TICKS = 8, 10
#: A learner that lacks at most this many bytes of entries (one window) may become a voter, since it will have them
#: soon.
_CAUGHT_UP_BYTES = IN_FLIGHT_BYTES_MAX


class _Transfer(msgspec.Struct):
    """A leadership transfer in progress. The transfer is given up when no ticks are left."""

    to: NodeId
    ticks_left: int
    #: True once `TransferNow` was sent. The next heartbeat resets this value, so that `TransferNow` is sent again.
    is_sent: bool = False


class _CommitBroadcast:
    """The number of messages that may still announce a commit, and the newest commit to announce at once."""

    def __init__(self) -> None:
        self._allowance = _ALLOWANCE_MAX
        self._ticks = 0
        #: The newest commit index seen, and the newest one to announce at once.
        self._seen = 0
        self._due = 0

    def tick(self) -> None:
        """Advance by one tick."""
        self._ticks += 1
        if self._ticks == _ALLOWANCE_TICKS:
            self._ticks = 0
            self._allowance = min(self._allowance + 1, _ALLOWANCE_MAX)

    def due(self, commit: int) -> int:
        """Return the commit index to announce to all followers at once, now that `commit` is committed."""
        if commit > self._seen:
            self._seen = commit
            if self._allowance:
                self._allowance -= 1
                self._due = commit
        return self._due


class Leadership:
    """The state of a node while it leads its group."""

    def __init__(self, outbox: Outbox, log: EntryLog, options: RaftOptions) -> None:
        self._outbox = outbox
        self._log = log
        self._options = options
        self.term = outbox.hard_state.term
        #: The index of the empty first entry.
        self.first_index = log.last_index + 1
        self.reads = LeaderReads()
        self._broadcast = _CommitBroadcast()
        #: All other members, keyed by id.
        self._progress: dict[NodeId, Progress] = {}
        #: Ticks since the election.
        self._now = 0
        #: `Status.silent`.
        self.silent = NOBODY_SILENT
        #: The number of heartbeats since the election. Learners get only some of the heartbeats
        #: (`Membership.learner_beats`).
        self._beats = 0
        #: Members whose progress has changed since the last flush. `_flushed` has the last index and the announced
        #: commit index at the time of that flush.
        self._changed: set[NodeId] = set()
        self._flushed = (0, 0)
        self._uncommitted_bytes = log.bytes_between(log.commit + 1, log.last_index)
        self._ticks_to_heartbeat = options.heartbeat_ticks
        self._ticks_to_check = options.election_ticks
        self._is_heartbeat_due = False
        self._transfer: _Transfer | None = None
        self._snapshots_wanted: list[NodeId] = []
        self._follow_membership()
        self.append(EntryKind.NOOP, b"")

    @property
    def has_begun(self) -> bool:
        """True if the first entry of the term is committed."""
        return self._log.commit >= self.first_index

    @property
    def is_removed(self) -> bool:
        """True if the removal of this node from the voters is committed."""
        log = self._log
        is_settled = self.has_begun and log.membership_index <= log.commit
        return is_settled and not log.membership.is_voter(self._outbox.node)

    # ------------------------------------------------------------------ time

    def tick(self) -> bool:
        """Advance by one tick. Return False if the leader heard from no majority during an election time-out."""
        self._broadcast.tick()
        self._now += 1
        self._ticks_to_heartbeat -= 1
        if self._ticks_to_heartbeat <= 0:
            self._ticks_to_heartbeat = self._options.heartbeat_ticks
            self._is_heartbeat_due = True
            self._beats += 1
            if self._transfer is not None:
                self._transfer.is_sent = False
        for progress in self._progress.values():
            progress.offer_ticks = max(progress.offer_ticks - 1, 0)
        if self._transfer is not None:
            self._transfer.ticks_left -= 1
            if self._transfer.ticks_left <= 0:
                self._transfer = None
        self._ticks_to_check -= 1
        return self._ticks_to_check > 0 or self._check_quorum()

    def _check_quorum(self) -> bool:
        self._ticks_to_check = self._options.election_ticks
        active = [self._outbox.node, *(node for node, progress in self._progress.items() if progress.active)]
        for progress in self._progress.values():
            progress.active = False
        ticks = {node: self._now - progress.heard for node, progress in self._progress.items()}
        self.silent = MappingProxyType({node: n for node, n in ticks.items() if n >= self._silence_of(node)})
        return self._log.membership.has_quorum(active)

    def _silence_of(self, node: NodeId) -> int:
        membership = self._log.membership
        return self._options.election_ticks * (1 if membership.is_voter(node) else membership.learner_beats)

    # ------------------------------------------------------------------ entries

    def append(self, kind: EntryKind, data: bytes) -> Accepted:
        """Append an entry to the log."""
        entry = Entry(self._log.last_index + 1, self.term, kind, data)
        self._log.append(entry)
        self._uncommitted_bytes += entry.size_bytes
        if kind is EntryKind.MEMBERSHIP:
            self._follow_membership()
        return Accepted(entry.index, entry.term)

    def _follow_membership(self) -> None:
        """Track the progress of all other members by the membership in effect, and stop tracking other nodes."""
        known, next_index = self._progress, self._log.last_index + 1
        others = [node for node in self._log.membership.nodes if node != self._outbox.node]
        self._progress = {
            node: known.get(node) or Progress(next_index, active=True, heard=self._now) for node in others
        }
        self._changed.update(self._progress)
        if self._transfer is not None and self._transfer.to not in self._progress:
            self._transfer = None

    def objection_to_data(self) -> Refusal | None:
        """Return the reason why no command may be appended now, or None if a command may be appended."""
        if self._transfer is not None or self._uncommitted_bytes >= UNCOMMITTED_BYTES_MAX:
            return Refusal.BUSY
        return None

    def objection_to(self, target: Membership) -> Refusal | None:
        """Return the reason why the membership must not change to `target` now, or None if it may change.

        One change may take two memberships with the same version: a new voter is added as a learner first.
        """
        log, current = self._log, self._log.membership
        if self._transfer is not None:
            return Refusal.BUSY
        if not self.has_begun:
            return Refusal.TOO_EARLY
        if current.is_joint or log.membership_index > log.commit:
            return Refusal.CHANGING
        if target.version < current.version or (target.version == current.version and target.voters == current.voters):
            return Refusal.OLD_VERSION
        new = [node for node in target.voters if node not in current.voters]
        if not target.voters or not all(self._is_caught_up(node) for node in new):
            return Refusal.NOT_CAUGHT_UP
        return None

    def _is_caught_up(self, node: NodeId) -> bool:
        log, progress = self._log, self._progress.get(node)
        if progress is None or progress.match < log.membership_index:
            return False  # the node does not vote until it knows that it is a member
        return node in log.membership.learners and self._lacks_little(progress)

    def _lacks_little(self, progress: Progress) -> bool:
        """Return whether a follower that is receiving entries lacks at most one window of entries."""
        log = self._log
        if progress.mode is not Mode.REPLICATE or progress.match < log.base_index:
            return False
        return log.bytes_between(progress.match + 1, log.last_index) <= _CAUGHT_UP_BYTES

    def needed_from(self) -> int:
        """Return the index of the first entry that some follower may not have yet."""
        return min((progress.match for progress in self._progress.values()), default=self._log.last_index) + 1

    # ------------------------------------------------------------------ responses

    def on_append_response(self, message: AppendResponse) -> bool:
        """Handle the answer to an append: either the follower has the entries, or its log differs.

        Return False if the answer is impossible.
        """
        progress = self._mark_active(message.sender)
        if progress is None:
            return True
        if message.index > self._log.last_index:
            return False
        if message.accepted:
            progress.accepted(message.index, self._log.base_index)
        else:
            place, _ = self._log.conflict_hint(message.hint_index, message.hint_term)
            is_learner = message.sender in self._log.membership.learners
            progress.rejected(message.index, place + 1, is_learner=is_learner)
        return True

    def on_heartbeat_response(self, message: HeartbeatResponse) -> bool:
        """Handle the answer to a heartbeat. Return False if the answer's round has not begun."""
        progress = self._mark_active(message.sender)
        if progress is None:
            return True
        if message.round > self.reads.round:
            return False
        progress.heartbeat_answered(self._log.last_index)
        self.reads.answered(message.sender, message.round)
        return True

    def on_snapshot_response(self, message: SnapshotResponse) -> bool:
        """Handle the answer to the offer of a snapshot: either it is installed, or it is not available.

        Return False if the answer is impossible.
        """
        progress = self._mark_active(message.sender)
        if progress is None:
            return True
        if message.index > self._log.last_index:
            return False
        if message.installed:
            progress.accepted(message.index, self._log.base_index)
        elif progress.offered is not None and progress.offered.position.index == message.index:
            progress.snapshot_failed(self._options.election_ticks)
        return True

    def _mark_active(self, node: NodeId) -> Progress | None:
        progress = self._progress.get(node)
        if progress is not None:
            progress.active = True
            progress.heard = self._now
            self._changed.add(node)
        return progress

    # ------------------------------------------------------------------ committing

    def advance(self) -> None:
        """Commit the entries that a majority has. Once a joint membership is committed, append its second half."""
        log = self._log
        index = log.membership.committed(self._match)
        if index <= log.commit or log.term_at(index) != self.term:
            return
        self._uncommitted_bytes -= log.bytes_between(log.commit + 1, index)
        log.commit = index
        if log.membership.is_joint and log.membership_index <= index:
            self.append(EntryKind.MEMBERSHIP, log.membership.leaving().encode())

    def _match(self, node: NodeId) -> int:
        return self._log.durable if node == self._outbox.node else self._progress[node].match

    # ------------------------------------------------------------------ reads

    def read(self, read: PendingRead) -> bool:
        """Add a read, which waits for the next round of heartbeats. Return False if too many reads are waiting."""
        if len(self.reads) >= READS_MAX:
            return False
        self.reads.add(read)
        return True

    def take_confirmed(self) -> list[tuple[PendingRead, int]]:
        """Remove and return the reads whose round a majority has answered, each with its index."""
        return self.reads.confirmed(self._log.membership.committed(self._answered_round))

    def _answered_round(self, node: NodeId) -> int:
        return self.reads.round if node == self._outbox.node else self.reads.answered_by(node)

    # ------------------------------------------------------------------ leadership transfer

    def transfer(self, to: NodeId) -> bool:
        """Prepare to hand the leadership over to a voter, which happens once it has all entries.

        Return False if `to` is not another voter.
        """
        if to not in self._progress or to not in self._log.membership.voters:
            return False
        if self._transfer is None or self._transfer.to != to:
            self._transfer = _Transfer(to, self._options.election_ticks)
        return True

    def successor(self, among: Collection[NodeId]) -> NodeId | None:
        """Return the voter among these nodes that lacks the fewest entries, or None if each of them lacks many."""
        voters = self._log.membership.voters
        ready = [
            (progress.match, -node)
            for node, progress in self._progress.items()
            if node in among and node in voters and self._lacks_little(progress)
        ]
        return NodeId(-max(ready)[1]) if ready else None

    def retire(self) -> None:
        """Send a removed leader's last messages: the commit index to all, `TransferNow` to a voter with all entries."""
        self.flush(is_last=True)
        voters = [node for node in self._log.membership.voters if self._progress[node].match == self._log.last_index]
        if voters:
            self._send_transfer_now(voters[0])

    def _send_transfer_now(self, node: NodeId) -> None:
        outbox = self._outbox
        outbox.send(TransferNow(outbox.group, outbox.node, node, self.term))

    # ------------------------------------------------------------------ messages

    def flush(self, *, is_last: bool = False) -> None:
        """Send all messages that are due. If `is_last`, announce the commit index to all members."""
        membership, commit = self._log.membership, self._log.commit
        is_round_due = self.reads.is_waiting and self.has_begun
        asking = self.reads.begin_round(commit) if is_round_due else frozenset()
        news = commit if is_last else self._broadcast.due(commit)
        for node in self._to_look_at(news, everyone=is_round_due or is_last):
            progress = self._progress[node]
            if self._is_heartbeat_due_to(node) or (is_round_due and membership.is_voter(node)):
                self._send_heartbeat(node, progress)
            self._send_entries(node, progress, commit if node in asking else news)
            if progress.is_offer_due:
                self._send_offer(node, progress)
        self._is_heartbeat_due = False
        transfer = self._transfer
        if transfer is not None and not transfer.is_sent and self._match(transfer.to) == self._log.last_index:
            transfer.is_sent = True
            self._send_transfer_now(transfer.to)

    def _to_look_at(self, news: int, *, everyone: bool) -> list[NodeId]:
        """Return the members to which messages may be due.

        Offers of snapshots are repeated only when a heartbeat is due.
        """
        before, self._flushed = self._flushed, (self._log.last_index, news)
        changed, self._changed = self._changed, set()
        if everyone or self._is_heartbeat_due or before != self._flushed:
            return list(self._progress)
        return sorted(node for node in changed if node in self._progress)

    def _is_heartbeat_due_to(self, node: NodeId) -> bool:
        membership = self._log.membership
        beats = 1 if membership.is_voter(node) else membership.learner_beats
        return self._is_heartbeat_due and (node + self._beats) % beats == 0

    def _send_heartbeat(self, node: NodeId, progress: Progress) -> None:
        outbox = self._outbox
        # It is only known that the follower's log matches up to `match`. Later entries may differ.
        commit = min(self._log.commit, progress.match)
        progress.sent_commit(commit)
        outbox.send(Heartbeat(outbox.group, outbox.node, node, self.term, commit, self.reads.round))

    def _send_entries(self, node: NodeId, progress: Progress, news: int) -> None:
        """Send entries as far as the window allows. `news` is a commit index to announce even without entries."""
        log, outbox = self._log, self._outbox
        while progress.may_send(log.last_index, news):
            previous = progress.next - 1
            previous_term = log.term_at(previous)
            if previous_term is None:
                progress.needs_snapshot()
                return
            room = min(progress.room_bytes(), APPEND_BYTES_MAX)
            entries = log.entries(progress.next, log.last_index, room) if room else ()
            outbox.send(
                Append(outbox.group, outbox.node, node, self.term, previous, previous_term, entries, log.commit)
            )
            progress.sent_entries(previous + len(entries), sum(e.size_bytes for e in entries), log.commit)

    def _begins_at(self, node: NodeId) -> int:
        """Return the lowest index that a snapshot for the node may have.

        A learner may be a former voter that left the group and has joined again. A snapshot must not contain an old
        membership in which this learner is still a voter: until it receives the later memberships, it would vote
        together with members that do not know of the change. A node that remains a voter until a change ends has not
        left, and its vote may be needed to commit the change.
        """
        return 0 if self._log.membership.is_voter(node) else self._log.membership_index

    def _send_offer(self, node: NodeId, progress: Progress) -> None:
        if progress.offered is None and self._begins_at(node) > self._log.commit:
            return
        progress.offer_ticks = self._options.election_ticks
        if progress.offered is None:
            progress.is_snapshot_asked = True
            self._snapshots_wanted.append(node)
        else:
            outbox = self._outbox
            outbox.send(SnapshotOffer(outbox.group, outbox.node, node, self.term, progress.offered))

    def offer_snapshot(self, to: NodeId, snapshot: Snapshot | None) -> None:
        """Offer the member the snapshot that was requested for it, or record that it cannot be made (None)."""
        progress = self._progress.get(to)
        if progress is None:
            return
        self._changed.add(to)
        if snapshot is None or not snapshot.position.membership.voters:
            # The node that made a snapshot without voters had joined the group but did not know the members yet.
            progress.snapshot_failed(self._options.election_ticks)
        elif snapshot.position.index < self._begins_at(to):
            progress.snapshot_failed(1)
        else:
            progress.offer(snapshot)

    @property
    def offered(self) -> frozenset[bytes]:
        """The tokens of the snapshots on offer, as in `RaftNode.offered`."""
        return frozenset(p.offered.token for p in self._progress.values() if p.offered is not None)

    def take_snapshots_wanted(self) -> tuple[NodeId, ...]:
        """Return the members for which a snapshot must be made, and clear the list."""
        wanted, self._snapshots_wanted = tuple(self._snapshots_wanted), []
        return wanted

    def validate(self) -> None:
        """Assert the module's invariants."""
        log = self._log
        assert [*self._progress] == [node for node in log.membership.nodes if node != self._outbox.node]
        for progress in self._progress.values():
            progress.validate()
            assert progress.match <= log.last_index
            assert progress.next <= log.last_index + 1
        assert log.last_index >= self.first_index
        assert log.last_term == self.term == self._outbox.hard_state.term
        assert self._uncommitted_bytes == log.bytes_between(log.commit + 1, log.last_index)
