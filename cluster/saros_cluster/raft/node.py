"""One member of one Raft group (Ongaro and Ousterhout 2014; Ongaro's dissertation). Events go in, a `Ready` comes out.

    follower --nothing heard--> pre-candidate --a majority would--> candidate --a majority does--> leader
        ^-------------- a newer term, a leader of this term, a majority against it, lost contact with the majority --'

    tick, step, propose, read_index ...      change the state in memory
    ready                                    returns the messages to send and the data to persist, apply, fetch
    persisted, applied, staged ...           report that it was done

This module owns the roles and the follower's duties. `Leadership` exists while the node leads. `Outbox` delays a
message until the state that the message promises is durable. `EntryLog` is the log, from which the membership follows.

Invariants
- a node votes once per term, and every vote, its own included, counts only once it is durable; following a leader is a
  vote for it
- a leader hears from a majority or steps down; a node that hears from a leader votes for no other node, except in a
  leadership transfer
- a pre-vote comes before every election: a node that was partitioned does not raise the term
- a membership takes effect when it is appended, and is revoked when it is truncated; any other entry takes effect only
  once it is committed
- a snapshot never replaces entries that it agrees with

Messages from peers are checked, never asserted: impossible ones are counted in `Status.rejected` and dropped.
Assertions check the calls by this node's own runner.

Time is counted in ticks. Randomness is passed in. One thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.entry_log import EntryLog
from saros_cluster.raft.leadership import APPEND_BYTES_MAX, Leadership
from saros_cluster.raft.membership import Membership, VoteResult
from saros_cluster.raft.message_validation import is_possible
from saros_cluster.raft.messages import (
    TERMS_OF_A_GROUP,
    Append,
    AppendResponse,
    Entry,
    EntryKind,
    GroupId,
    HardState,
    Heartbeat,
    HeartbeatResponse,
    Message,
    Position,
    PreVote,
    PreVoteResponse,
    ReadIndex,
    ReadIndexResponse,
    Snapshot,
    SnapshotOffer,
    SnapshotResponse,
    TransferNow,
    Vote,
    VoteResponse,
)
from saros_cluster.raft.outbox import Outbox
from saros_cluster.raft.reads import READS_MAX, LocalReads, PendingRead
from saros_cluster.raft.ready import (
    NOBODY_SILENT,
    Accepted,
    RaftOptions,
    Randomness,
    Ready,
    Refusal,
    Refused,
    Restored,
    Role,
    Status,
)

#: The limit of the size of a command: a larger command would not fit into one message.
ENTRY_BYTES_MAX = 12 << 20
#: The limit of the total size of entries that are handed out and not applied: more entries would only wait for the
#: state machine.
UNAPPLIED_BYTES_MAX = 16 << 20
#: The factors by which the election timer is multiplied after 0, 1, 2 ... terms without a leader. See
#: `RaftNode._restart_timer`.
_PATIENCE = (1, 1, 2, 4, 8)
#: The number of additional election time-outs for which a node that defers elections waits, so that other nodes are
#: elected sooner.
_DEFERRED_ELECTIONS = 2
_STORY_LENGTH = 16


class RaftNode:
    """One member of one group, driven by its runner."""

    def __init__(
        self, group: GroupId, node: NodeId, restored: Restored, options: RaftOptions, randomness: Randomness
    ) -> None:
        self._group = group
        self._id = node
        self._options = options
        self._randomness = randomness
        self._log, is_begun_anew = _log_of(restored)
        state, first_term = restored.hard_state, restored.base.term  # the base's term is the first of a new group
        self._outbox = Outbox(group, node, state if state.term >= first_term else HardState(first_term), self._log)
        if is_begun_anew:
            self._outbox.restart_log(self._log.position(self._log.base_index), None)
        #: The last index whose entry the state machine reflects. The log is ahead of the state machine while a snapshot
        #: is being installed.
        self._applied = self._log.applied
        self._role = Role.FOLLOWER
        #: The leader of this term, if known.
        self._leader: NodeId | None = None
        #: Set while this node leads.
        self._leadership: Leadership | None = None
        #: The votes received as a candidate or pre-candidate.
        self._votes: dict[NodeId, bool] = {}
        #: The ticks since the start; the ticks since a leader was last heard from or the role changed; and the value
        #: of the latter at which this node starts an election.
        self._now = 0
        self._elapsed = 0
        self._timeout = 0
        #: The number of terms that this node or others started since this node last knew a leader.
        self._fruitless_terms = 0
        #: True if this node leaves elections to other voters at first.
        self._defers = False
        self._reads = LocalReads()
        #: The number of the last read. The first number after each start of the node is random, so that a late answer
        #: to a read from before a restart is not taken for the answer to a new read.
        self._last_read = randomness.getrandbits(40) << 20
        #: The snapshot that the runner fetches, and whether the runner must still be told to fetch it.
        self._fetching: Snapshot | None = None
        self._is_fetch_due = False
        self._rejected = 0
        self._story: deque[str] = deque(maxlen=_STORY_LENGTH)
        self._restart_timer()

    # ------------------------------------------------------------------ state

    @property
    def is_leader(self) -> bool:
        """True if this node is the leader, as far as it knows."""
        return self._leadership is not None

    @property
    def leader(self) -> NodeId | None:
        """The leader, as far as this node knows."""
        return self._leader

    @property
    def term(self) -> int:
        """The current term, durable or not."""
        return self._outbox.hard_state.term

    @property
    def commit(self) -> int:
        """The commit index, as far as this node knows."""
        return self._log.commit

    @property
    def membership(self) -> Membership:
        """The membership in effect, committed or not."""
        return self._log.membership

    @property
    def status(self) -> Status:
        """The state for metrics and errors."""
        return Status(
            self._group,
            self._id,
            self._role,
            self.term,
            self._leader,
            self._log.commit,
            self._applied,
            self._log.last_index,
            self._rejected,
            tuple(self._story),
            self._log.membership,
            self._log.membership_index <= self._log.commit,
            self._log.last_term,
            NOBODY_SILENT if self._leadership is None else self._leadership.silent,
        )

    # ------------------------------------------------------------------ time

    def tick(self) -> None:
        """Advance by one tick."""
        self._now += 1
        self._elapsed += 1
        self._reads.fail_pending(self._now - self._options.election_ticks)
        if self._leadership is not None:
            if not self._leadership.tick():
                self._follow(None, "lost contact with the majority")
        elif self._log.may_need(self._id) and not (self._defers and self._leader is not None):
            is_alone = self._is_single_voter() and self._role is Role.FOLLOWER
            deferral = _DEFERRED_ELECTIONS * self._options.election_ticks if self._defers else 0
            if self._elapsed >= self._timeout + deferral or is_alone:
                self._ask_for_pre_votes()
        elif self._elapsed >= self._timeout * self._log.membership.learner_beats and self._leader is not None:
            self._follow(None, "no heartbeat from a leader")

    def _is_single_voter(self) -> bool:
        """Return whether this node is the only voter, in which case an election needs no other node."""
        membership = self._log.membership
        return membership.voters == (self._id,) and not membership.is_joint

    def _restart_timer(self) -> None:
        """Restart the election timer, which runs longer after terms that brought no leader.

        A vote counts only once it is durable, which takes seconds on a slow disk. If every voter began another term
        before that, a group whose majority includes a node with a slow disk would never elect a leader.
        """
        self._elapsed = 0
        patience = _PATIENCE[min(self._fruitless_terms, len(_PATIENCE) - 1)]
        election_ticks = self._options.election_ticks
        self._timeout = patience * (election_ticks + self._randomness.randrange(election_ticks))

    # ------------------------------------------------------------------ roles

    def _become(self, role: Role, leader: NodeId | None, why: str) -> None:
        self._end_leadership()
        if leader is not None:
            self._fruitless_terms = 0
        if leader is None or leader != self._leader:
            self._reads.fail_pending()
        if (role, leader) != (self._role, self._leader):
            whose = f" of {leader}" if role is Role.FOLLOWER and leader is not None else ""
            self._story.append(f"term {self.term}: {role.value}{whose}: {why}")
        self._role, self._leader = role, leader
        self._votes = {}
        self._restart_timer()

    def _end_leadership(self) -> None:
        if self._leadership is None:
            return
        leadership, self._leadership = self._leadership, None
        for read in leadership.reads.drain():
            self._answer_read(read, None)

    def _follow(self, leader: NodeId | None, why: str) -> None:
        """Become a follower of this term's leader, or of no node if `leader` is None."""
        self._become(Role.FOLLOWER, leader, why)

    def step_down(self) -> None:
        """Give up the leadership and follow no leader in this term. The node may be elected again."""
        if self._leadership is not None:
            self._follow(None, "asked to step down")

    def _ask_for_pre_votes(self) -> None:
        self._become(Role.PRE_CANDIDATE, None, "no heartbeat from a leader")
        log, term = self._log, self.term + 1
        for node in self._other_voters():
            self._outbox.send(PreVote(self._group, self._id, node, term, log.last_index, log.last_term))
        self._count_vote(self._id, granted=True)

    def _ask_for_votes(self, why: str, *, transfer: bool = False) -> None:
        self._outbox.enter_term(self.term + 1, self._id)
        self._fruitless_terms += 1
        self._become(Role.CANDIDATE, None, why)
        log = self._log
        for node in self._other_voters():
            last = (log.last_index, log.last_term)
            self._outbox.promise(Vote(self._group, self._id, node, self.term, *last, transfer))

    def _other_voters(self) -> list[NodeId]:
        membership = self._log.membership
        return [node for node in membership.nodes if node != self._id and membership.is_voter(node)]

    def _count_vote(self, node: NodeId, *, granted: bool) -> None:
        """Count a vote for this candidate or pre-candidate. Only the first vote of a node counts."""
        self._votes.setdefault(node, granted)
        yes = [node for node, is_yes in self._votes.items() if is_yes]
        no = [node for node, is_yes in self._votes.items() if not is_yes]
        tally = self._log.membership.vote_result(yes, no)
        if tally is VoteResult.LOST:
            self._follow(None, "rejected by a majority")
        elif tally is VoteResult.WON and self._role is Role.PRE_CANDIDATE:
            self._ask_for_votes("won the pre-vote")
        elif tally is VoteResult.WON:
            self._lead()

    def _lead(self) -> None:
        self._become(Role.LEADER, self._id, "elected")
        self._leadership = Leadership(self._outbox, self._log, self._options)

    # ------------------------------------------------------------------ requests

    def propose(self, data: bytes) -> Accepted | Refused:
        """Append a command to the log, if this node leads."""
        if self._leadership is None:
            return Refused(Refusal.NOT_LEADER, self._leader)
        objection = Refusal.TOO_LARGE if len(data) > ENTRY_BYTES_MAX else self._leadership.objection_to_data()
        if objection is not None:
            return Refused(objection, self._id)
        return self._leadership.append(EntryKind.DATA, data)

    def propose_membership(self, target: Membership) -> Accepted | Refused:
        """Begin a membership change, if this node leads and nothing prevents it.

        If the voters change, the accepted entry is the joint membership. The entry of the target membership follows
        automatically.
        """
        assert not target.is_joint
        if self._leadership is None:
            return Refused(Refusal.NOT_LEADER, self._leader)
        objection = self._leadership.objection_to(target)
        if objection is not None:
            return Refused(objection, self._id)
        return self._leadership.append(EntryKind.MEMBERSHIP, self._log.membership.entering(target).encode())

    def force_single_voter(self, target: Membership) -> None:
        """Make this node the only voter, after a majority was lost for good.

        Do nothing if this node is the only voter already. The entry takes effect without a vote. Entries that the
        majority had and that this node lacks are lost. The lost nodes must never return: they would form a second group
        with the same number.
        """
        assert target.voters == (self._id,)
        assert not target.is_joint
        if target.version <= self._log.membership.version:
            return
        self._outbox.enter_term(self.term + 1, None)
        self._follow(None, "forced to be the only voter")
        self._fetching = None
        self._log.append(Entry(self._log.last_index + 1, self.term, EntryKind.MEMBERSHIP, target.encode()))

    def transfer(self, to: NodeId) -> bool:
        """Hand the leadership over once `to` has all entries. Return False if that is impossible.

        The transfer is given up after an election time-out. Until then proposals are refused.
        """
        return self._leadership is not None and self._leadership.transfer(to)

    def transfer_among(self, nodes: Collection[NodeId]) -> bool:
        """Hand the leadership over to the node in `nodes` that can take it soonest.

        Return False if none of these nodes can take it.
        """
        successor = None if self._leadership is None else self._leadership.successor(nodes)
        return successor is not None and self.transfer(successor)

    def defer_elections(self, defers: bool) -> None:
        """Let other voters campaign first, until this is called with False: this node can lead, but is not preferred.

        This node still votes. If no other node leads after the deferral, this node campaigns.
        """
        self._defers = defers

    def campaign(self) -> None:
        """Campaign without waiting for the timer, if no leader is known. Do nothing if a campaign has just begun."""
        is_asked = self._role is not Role.FOLLOWER and self._elapsed < self._options.heartbeat_ticks
        if self._leader is None and not is_asked and self._log.may_need(self._id):
            self._ask_for_pre_votes()

    def read_index(self) -> int:
        """Begin a linearizable read and return the read's number, with which `Ready.reads` reports the result."""
        self._last_read += 1
        read = self._last_read
        if self._leadership is not None:
            self._read_as_leader(PendingRead(read, self._id))
        elif self._leader is None or len(self._reads) >= READS_MAX:
            self._reads.fail(read)
        else:
            self._reads.ask(read, self._now)
        return read

    def _read_as_leader(self, read: PendingRead) -> None:
        is_full = read.node == self._id and len(self._reads) >= READS_MAX
        if self._leadership is None or is_full or not self._leadership.read(read):
            self._answer_read(read, None)

    def _answer_read(self, read: PendingRead, index: int | None) -> None:
        if read.node != self._id:
            self._outbox.send(ReadIndexResponse(self._group, self._id, read.node, self.term, read.read, index))
        elif index is None:
            self._reads.fail(read.read)
        else:
            self._reads.confirm(read.read, index)

    def offer_snapshot(self, to: NodeId, snapshot: Snapshot) -> None:
        """Accept a snapshot that was requested for a member, in order to offer it."""
        if self._leadership is not None:
            self._leadership.offer_snapshot(to, snapshot)

    @property
    def offered(self) -> frozenset[bytes]:
        """The tokens of the snapshots that members are told to fetch."""
        return frozenset() if self._leadership is None else self._leadership.offered

    def no_snapshot(self, to: NodeId) -> None:
        """Record that a snapshot requested for a member cannot be made. It is requested again later."""
        if self._leadership is not None:
            self._leadership.offer_snapshot(to, None)

    def position(self, index: int) -> Position | None:
        """Return the position after an entry, or None if the log does not contain the entry."""
        return None if self._log.term_at(index) is None else self._log.position(index)

    def compact(self, index: int) -> Position | None:
        """Compact the log up to `index`, which the state machine has durably.

        Return the new base, or None if the base is unchanged. Some entries are retained for members that lag. This also
        applies to a follower, which does not know which members lag but may have to lead later.
        """
        log = self._log
        needed = log.base_index + 1 if self._leadership is None else self._leadership.needed_from()
        spare = log.compactable_index(min(index, self._applied), needed, self._options.retained_bytes)
        if spare <= log.base_index:
            return None
        log.compact(spare)
        return log.position(spare)

    # ------------------------------------------------------------------ messages

    def step(self, message: Message) -> None:
        """Handle a message."""
        is_for_me = message.group == self._group and message.receiver == self._id and message.sender != self._id
        if not is_for_me or not self._is_of_this_group(message) or not is_possible(message):
            self._rejected += 1
            return
        if message.term > self.term and not self._enter_term_of(message):
            return
        if message.term < self.term:
            self._answer_old(message)
        elif not self._handle(message):
            self._rejected += 1

    def _is_of_this_group(self, message: Message) -> bool:
        """Return whether the message is of this group, not of an earlier or later group with the same number."""
        return self.term == 0 or message.term // TERMS_OF_A_GROUP == self.term // TERMS_OF_A_GROUP

    def _enter_term_of(self, message: Message) -> bool:
        """Enter the later term of a message. Return False if the message must be ignored."""
        match message:
            case PreVote() | PreVoteResponse(granted=True):
                return True  # the term of a pre-vote has not begun
            case Vote(transfer=False) if self._has_recent_leader():
                return False  # the election is unnecessary, so do not enter its sender's term
        self._outbox.enter_term(message.term, None)
        self._fruitless_terms += 1
        self._follow(None, f"{message.sender} has a later term")
        return True

    def _has_recent_leader(self) -> bool:
        if self._leadership is not None:
            return True
        return self._leader is not None and self._elapsed < self._options.election_ticks

    def _answer_old(self, message: Message) -> None:
        """Answer a message of an earlier term by telling its sender, a leader or candidate, about the later term."""
        to, term = message.sender, self.term
        match message:
            case Append() | Heartbeat() | SnapshotOffer():
                self._outbox.promise(HeartbeatResponse(self._group, self._id, to, term, 0))
            case PreVote():
                self._outbox.send(PreVoteResponse(self._group, self._id, to, term, granted=False))
            case Vote():
                self._outbox.promise(VoteResponse(self._group, self._id, to, term, granted=False))
            case ReadIndex():
                self._outbox.send(ReadIndexResponse(self._group, self._id, to, term, message.read, None))

    def _handle(self, message: Message) -> bool:
        """Handle a message of this term, or a pre-vote of a later one.

        Return False if it contradicts the node's state.
        """
        match message:
            case Append() | Heartbeat() | SnapshotOffer():
                return self._on_leader_message(message)
            case AppendResponse():
                return self._leadership is None or self._leadership.on_append_response(message)
            case HeartbeatResponse():
                return self._leadership is None or self._leadership.on_heartbeat_response(message)
            case SnapshotResponse():
                return self._leadership is None or self._leadership.on_snapshot_response(message)
            case ReadIndex():
                self._read_as_leader(PendingRead(message.read, message.sender))
            case ReadIndexResponse():
                self._reads.answered(message.read, message.index)
            case _:
                return self._handle_election(message)
        return True

    def _handle_election(self, message: Message) -> bool:
        match message:
            case PreVote():
                self._answer_pre_vote(message)
            case PreVoteResponse():
                if self._role is Role.PRE_CANDIDATE and message.term == self.term + message.granted:
                    self._count_vote(message.sender, granted=message.granted)
            case Vote():
                self._answer_vote(message)
            case VoteResponse():
                if self._role is Role.CANDIDATE:
                    self._count_vote(message.sender, granted=message.granted)
            case TransferNow():
                return self._on_transfer_now(message)
            case _:
                return False
        return True

    # ------------------------------------------------------------------ votes

    def _may_vote(self) -> bool:
        """Return whether the node knows any members.

        A node that knows no members may have left the group and rejoined it, and may have voted in this term before.
        """
        return bool(self._log.membership.nodes)

    def _answer_pre_vote(self, message: PreVote) -> None:
        is_new = message.term > self.term and not self._has_recent_leader()
        granted = is_new and self._may_vote() and self._log.is_current(message.last_index, message.last_term)
        term = message.term if granted else self.term
        self._outbox.send(PreVoteResponse(self._group, self._id, message.sender, term, granted))

    def _answer_vote(self, message: Vote) -> None:
        is_free = self._outbox.hard_state.vote in (None, message.sender)
        granted = is_free and self._may_vote() and self._log.is_current(message.last_index, message.last_term)
        if granted:
            self._outbox.vote(message.sender)
            self._elapsed = 0
        self._outbox.promise(VoteResponse(self._group, self._id, message.sender, self.term, granted))

    def _on_transfer_now(self, message: TransferNow) -> bool:
        if self._leader not in (None, message.sender):
            return False
        if self._log.membership.is_voter(self._id):
            self._ask_for_votes(f"{message.sender} transfers the leadership", transfer=True)
        return True

    # ------------------------------------------------------------------ follower

    def _on_leader_message(self, message: Append | Heartbeat | SnapshotOffer) -> bool:
        if self._leader is None:
            self._follow(message.sender, "heard from the leader")
        elif self._leader != message.sender:
            return False  # a term has one leader
        if self._outbox.hard_state.vote is None:
            self._outbox.vote(message.sender)
        self._elapsed = 0
        match message:
            case Append():
                return self._on_append(message)
            case Heartbeat():
                return self._on_heartbeat(message)
            case SnapshotOffer():
                self._on_offer(message)
        return True

    def _on_append(self, message: Append) -> bool:
        log, previous, entries = self._log, message.prev_index, message.entries
        known_term = log.term_at(previous)
        if previous < log.commit:
            # Either the message is old, or the leader probes at an index far back. Up to the commit index, both logs
            # are the same.
            if not self._agrees_with_committed(message):
                return False
            entries = entries[log.commit - previous :]
            previous = log.commit
        elif known_term != message.prev_term:
            hint = log.conflict_hint(previous, message.prev_term)
            response = AppendResponse(self._group, self._id, message.sender, self.term, False, previous, *hint)
            self._outbox.promise(response)
            return True
        log.merge(entries)
        last = previous + len(entries)
        log.commit = max(log.commit, min(message.commit, last))
        self._outbox.promise(AppendResponse(self._group, self._id, message.sender, self.term, True, last), last)
        return True

    def _agrees_with_committed(self, message: Append) -> bool:
        log = self._log
        count = log.commit - message.prev_index
        is_same_end = len(message.entries) < count or message.entries[count - 1].term == log.term_at(log.commit)
        return is_same_end and log.term_at(message.prev_index) in (None, message.prev_term)

    def _on_heartbeat(self, message: Heartbeat) -> bool:
        log = self._log
        if message.commit > log.last_index:
            if log.membership.nodes:
                return False
            # This node has left the group and joined again, so the leader does not know that this node has lost its
            # entries.
            hint = log.conflict_hint(message.commit, message.term)
            to, term = message.sender, self.term
            self._outbox.promise(AppendResponse(self._group, self._id, to, term, False, message.commit, *hint))
            return True
        log.commit = max(log.commit, message.commit)
        self._outbox.promise(HeartbeatResponse(self._group, self._id, message.sender, self.term, message.round))
        return True

    # ------------------------------------------------------------------ snapshots

    def _on_offer(self, message: SnapshotOffer) -> None:
        snapshot = message.snapshot
        if self._has(snapshot):
            self._answer_offer(installed=True, index=self._log.commit)
            return
        if self._fetching is None and not self._outbox.is_restarting_log:
            # Fetch only one snapshot at a time. The leader repeats the offer.
            self._fetching = snapshot
            self._is_fetch_due = True

    def _has(self, snapshot: Snapshot) -> bool:
        """Return whether the log has all entries that the snapshot covers.

        If it has all of them, commit these entries. Entries after the snapshot must remain in the log.
        """
        log, index = self._log, snapshot.position.index
        if log.term_at(index) == snapshot.position.term:
            log.commit = max(log.commit, index)
        return index <= log.commit

    def staged(self, snapshot: Snapshot) -> None:
        """Record that the snapshot was fetched and is staged. The snapshot is installed with the next `Persist`."""
        if snapshot != self._fetching:
            return
        self._fetching = None
        if not self._has(snapshot):
            self._log.restart(snapshot.position)
            self._outbox.restart_log(snapshot.position, snapshot)
        self._answer_offer(installed=True, index=self._log.commit)

    def staging_failed(self, snapshot: Snapshot) -> None:
        """Record that the snapshot cannot be fetched."""
        if snapshot == self._fetching:
            self._fetching = None
            self._answer_offer(installed=False, index=snapshot.position.index)

    def _answer_offer(self, *, installed: bool, index: int) -> None:
        leader = self._leader
        if leader is None or self._leadership is not None:
            return
        response = SnapshotResponse(self._group, self._id, leader, self.term, installed, index)
        self._outbox.promise(response, index if installed else None)

    # ------------------------------------------------------------------ ready

    def ready(self) -> Ready:
        """Return the work to do now. Call this method again after each batch of events."""
        wanted: tuple[NodeId, ...] = ()
        if self._leadership is not None:
            wanted = self._advance_leadership(self._leadership)
        question = self._reads.take_question()
        if question is not None and self._leader is not None:
            self._outbox.send(ReadIndex(self._group, self._id, self._leader, self.term, question))
        self._reads.applied(self._applied)
        fetch, self._is_fetch_due = self._fetching if self._is_fetch_due else None, False
        persist = self._outbox.take_persist()
        messages = self._outbox.take_messages()
        return Ready(persist, messages, self._next_committed_entries(), self._reads.take_results(), fetch, wanted)

    def _advance_leadership(self, leadership: Leadership) -> tuple[NodeId, ...]:
        """Process the followers' answers and the entries made durable. Return the members that need a snapshot."""
        leadership.advance()
        if leadership.is_removed:
            leadership.retire()
            self._follow(None, "no longer a voter")
            return ()
        leadership.flush()
        for read, index in leadership.take_confirmed():
            self._answer_read(read, index)
        return leadership.take_snapshots_wanted()

    def _next_committed_entries(self) -> tuple[Entry, ...]:
        if self._log.applying_bytes >= UNAPPLIED_BYTES_MAX:
            return ()
        return self._log.next_committed_entries(APPEND_BYTES_MAX)

    def persisted(self, index: int) -> None:
        """Record that the `Persist` with that index is durable."""
        snapshot = self._outbox.persisted(index)
        if snapshot is not None:
            self._applied = max(self._applied, snapshot.position.index)
        if self._role is Role.CANDIDATE and self._outbox.is_vote_durable:
            self._count_vote(self._id, granted=True)

    def applied(self, index: int) -> None:
        """Record that the entries up to `index`, which were handed out before, are applied."""
        if index <= self._applied:
            return
        self._applied = index
        if index > self._log.applied:  # otherwise, a snapshot has replaced the effects of these entries
            self._log.mark_applied(index)

    def validate(self) -> None:
        """Assert the invariants between the fields."""
        self._log.validate()
        self._outbox.validate()
        assert self.term >= self._log.last_term
        assert (self._role is Role.LEADER) == (self._leadership is not None) == (self._leader == self._id)
        assert self._applied <= self._log.applied
        if self._role in (Role.CANDIDATE, Role.LEADER):
            assert self._outbox.hard_state.vote == self._id
        if self._leadership is not None:
            assert self._outbox.is_vote_durable
            self._leadership.validate()


def _log_of(restored: Restored) -> tuple[EntryLog, bool]:
    """Return the log, and whether it must restart because a crash came after a snapshot was installed."""
    base, applied = restored.base, restored.applied
    log = EntryLog(base, restored.entries, base.index)
    if applied is None or applied.index <= base.index:
        return log, False
    if log.term_at(applied.index) == applied.term:
        return EntryLog(base, restored.entries, applied.index), False
    assert restored.hard_state.term >= applied.term
    return EntryLog(applied, (), applied.index), True
