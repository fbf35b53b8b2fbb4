"""One member of one Raft group (Ongaro and Ousterhout 2014; Ongaro's dissertation). Events go in, a `Ready` comes out.

    follower --nothing heard--> pre-candidate --a majority would--> candidate --a majority does--> leader
        ^-------------- a newer term, a leader of this term, a majority against it, no majority answers --'

    tick, step, propose, read_index ...      change the state in memory
    ready                                    returns what must now be sent, made durable, applied, fetched
    persisted, applied, staged ...           report that it was done

This module owns the roles and the follower's duties; `Leadership` exists while the node leads; `Outbox` holds messages
back until what they promise is durable; `EntryLog` is the log, and knows the membership.

Invariants
  - one vote per term, which counts once it is durable; so does the node's own vote. Following a leader is a vote for it
  - a leader hears from a majority or steps down; while a node hears a leader, it votes for no other, but for a transfer
  - a pre-vote comes before every election: a node that was partitioned does not raise the term
  - a membership takes effect when it is appended, and ceases to when it is truncated; any other entry takes effect only
    once it is committed
  - a snapshot never replaces entries that it agrees with

Messages from peers are checked, never asserted: impossible ones are counted in `Status.rejected` and dropped. What this
node's own runner does is asserted.

Time is counted in ticks; randomness is passed in. One thread.
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

#: A larger command would not fit into one message.
ENTRY_BYTES_MAX = 12 << 20
#: Handed out and not applied: more would only wait for the state machine.
UNAPPLIED_BYTES_MAX = 16 << 20
#: After this many elections without a leader, timers are so much longer; see `RaftNode._restart_timer`.
_PATIENCE = (1, 1, 2, 4, 8)
#: Election times for which a node that defers elections waits in addition: others begin, and are elected, in less.
_DEFERRED_ELECTIONS = 2
_STORY_LENGTH = 16


class RaftNode:
    """See the module."""

    def __init__(
        self, group: GroupId, node: NodeId, restored: Restored, options: RaftOptions, randomness: Randomness
    ) -> None:
        self._group = group
        self._id = node
        self._options = options
        self._randomness = randomness
        self._log, is_begun_anew = _log_of(restored)
        state, first_term = restored.hard_state, restored.base.term  # of a group that has just begun
        self._outbox = Outbox(group, node, state if state.term >= first_term else HardState(first_term), self._log)
        if is_begun_anew:
            self._outbox.restart_log(self._log.position(self._log.base_index), None)
        #: What the state machine has; the log is ahead of it while a snapshot is installed.
        self._applied = self._log.applied
        self._role = Role.FOLLOWER
        #: Who leads this term, if it is known.
        self._leader: NodeId | None = None
        #: There while this node leads.
        self._leadership: Leadership | None = None
        #: Of a candidate or pre-candidate.
        self._votes: dict[NodeId, bool] = {}
        #: Ticks since the start, since a leader was heard (or a role taken), and after how many of these to campaign.
        self._now = 0
        self._elapsed = 0
        self._timeout = 0
        #: Terms that began since a leader was known: its own elections, and those of others.
        self._fruitless_terms = 0
        #: Whether it leaves elections to others at first.
        self._defers = False
        self._reads = LocalReads()
        #: Reads are numbered from a new place in each life, so that no answer is taken for that to another question.
        self._last_read = randomness.getrandbits(40) << 20
        #: What the runner fetches, and whether it was told to.
        self._fetching: Snapshot | None = None
        self._is_fetch_due = False
        self._rejected = 0
        self._story: deque[str] = deque(maxlen=_STORY_LENGTH)
        self._restart_timer()

    # ------------------------------------------------------------------ looking

    @property
    def is_leader(self) -> bool:
        """Whether this node leads, as far as it knows."""
        return self._leadership is not None

    @property
    def leader(self) -> NodeId | None:
        """Who leads, as far as this node knows."""
        return self._leader

    @property
    def term(self) -> int:
        """The term it is in, durable or not."""
        return self._outbox.hard_state.term

    @property
    def commit(self) -> int:
        """How far the log is committed, as far as this node knows."""
        return self._log.commit

    @property
    def membership(self) -> Membership:
        """The one in effect, committed or not."""
        return self._log.membership

    @property
    def status(self) -> Status:
        """For metrics and errors."""
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
        """One tick of time passed."""
        self._now += 1
        self._elapsed += 1
        self._reads.fail_pending(self._now - self._options.election_ticks)
        if self._leadership is not None:
            if not self._leadership.tick():
                self._follow(None, "no majority answers")
        elif self._log.may_need(self._id) and not (self._defers and self._leader is not None):
            is_alone = self._is_single_voter() and self._role is Role.FOLLOWER
            deferral = _DEFERRED_ELECTIONS * self._options.election_ticks if self._defers else 0
            if self._elapsed >= self._timeout + deferral or is_alone:
                self._ask_for_pre_votes()
        elif self._elapsed >= self._timeout * self._log.membership.learner_beats and self._leader is not None:
            self._follow(None, "nothing heard of a leader")

    def _is_single_voter(self) -> bool:
        """Whether nobody else is to be asked."""
        membership = self._log.membership
        return membership.voters == (self._id,) and not membership.is_joint

    def _restart_timer(self) -> None:
        """Wait for an election's time, and longer after elections that brought no leader.

        A vote counts once it is durable, which takes seconds on a slow disk. If every voter gave up sooner and began
        another term, a majority that needs such a disk would never elect anybody.
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
        """A leader of this term, or nobody."""
        self._become(Role.FOLLOWER, leader, why)

    def step_down(self) -> None:
        """A leader becomes a follower of nobody in its term; it may be elected again."""
        if self._leadership is not None:
            self._follow(None, "told to step down")

    def _ask_for_pre_votes(self) -> None:
        self._become(Role.PRE_CANDIDATE, None, "nothing heard of a leader")
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
        """Of a candidate or pre-candidate; the first vote of a node counts."""
        self._votes.setdefault(node, granted)
        yes = [node for node, is_yes in self._votes.items() if is_yes]
        no = [node for node, is_yes in self._votes.items() if not is_yes]
        tally = self._log.membership.vote_result(yes, no)
        if tally is VoteResult.LOST:
            self._follow(None, "a majority is against it")
        elif tally is VoteResult.WON and self._role is Role.PRE_CANDIDATE:
            self._ask_for_votes("a majority would vote for it")
        elif tally is VoteResult.WON:
            self._lead()

    def _lead(self) -> None:
        self._become(Role.LEADER, self._id, "elected")
        self._leadership = Leadership(self._outbox, self._log, self._options)

    # ------------------------------------------------------------------ what is asked of it

    def propose(self, data: bytes) -> Accepted | Refused:
        """Put a command into the log, if this node leads."""
        if self._leadership is None:
            return Refused(Refusal.NOT_LEADER, self._leader)
        objection = Refusal.TOO_LARGE if len(data) > ENTRY_BYTES_MAX else self._leadership.objection_to_data()
        if objection is not None:
            return Refused(objection, self._id)
        return self._leadership.append(EntryKind.DATA, data)

    def propose_membership(self, target: Membership) -> Accepted | Refused:
        """Begin to change the members, if this node leads and nothing speaks against it.

        If the voters change, the entry accepted is the joint membership; that of the target follows by itself.
        """
        assert not target.is_joint
        if self._leadership is None:
            return Refused(Refusal.NOT_LEADER, self._leader)
        objection = self._leadership.objection_to(target)
        if objection is not None:
            return Refused(objection, self._id)
        return self._leadership.append(EntryKind.MEMBERSHIP, self._log.membership.entering(target).encode())

    def force_single_voter(self, target: Membership) -> None:
        """Let this node be the only voter: those that are lost for good were a majority. Nothing, if it has happened.

        Nobody votes for that entry. What a majority had, and not this node, is lost; and if the others are not, the
        group is two groups from here on: they must never be heard again.
        """
        assert target.voters == (self._id,)
        assert not target.is_joint
        if target.version <= self._log.membership.version:
            return
        self._outbox.enter_term(self.term + 1, None)
        self._follow(None, "goes on alone")
        self._fetching = None
        self._log.append(Entry(self._log.last_index + 1, self.term, EntryKind.MEMBERSHIP, target.encode()))

    def transfer(self, to: NodeId) -> bool:
        """Hand the leadership over once `to` has everything; False if that cannot be.

        Given up after an election's time; until then proposals are refused.
        """
        return self._leadership is not None and self._leadership.transfer(to)

    def transfer_among(self, nodes: Collection[NodeId]) -> bool:
        """Hand the leadership over to the node among these that can take it soonest; False if there is none."""
        successor = None if self._leadership is None else self._leadership.successor(nodes)
        return successor is not None and self.transfer(successor)

    def defer_elections(self, defers: bool) -> None:
        """Let other voters begin elections first, until told otherwise: this node can lead, but others are better.

        It still votes. If nobody else leads after the deferral, it campaigns.
        """
        self._defers = defers

    def campaign(self) -> None:
        """Do not wait for the election's time, if nobody leads. What was asked a moment ago is not asked again."""
        is_asked = self._role is not Role.FOLLOWER and self._elapsed < self._options.heartbeat_ticks
        if self._leader is None and not is_asked and self._log.may_need(self._id):
            self._ask_for_pre_votes()

    def read_index(self) -> int:
        """Begin a linearizable read; its number comes back in `Ready.reads`."""
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
        """A snapshot that was wanted for a member is there."""
        if self._leadership is not None:
            self._leadership.offer_snapshot(to, snapshot)

    @property
    def offered(self) -> frozenset[bytes]:
        """Tokens of the snapshots that members are told to fetch."""
        return frozenset() if self._leadership is None else self._leadership.offered

    def no_snapshot(self, to: NodeId) -> None:
        """A snapshot that was wanted for a member cannot be made; after a while it is wanted again."""
        if self._leadership is not None:
            self._leadership.offer_snapshot(to, None)

    def position(self, index: int) -> Position | None:
        """The place behind an entry, if the log still knows it."""
        return None if self._log.term_at(index) is None else self._log.position(index)

    def compact(self, index: int) -> Position | None:
        """The state machine has entries up to there durably: the log may forget them. Returns where it begins now.

        Some are kept for members that lag. A follower does not know who lags, and may have to lead tomorrow.
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
        """Whether it is of the group that this node is in, not of another one that has, or had, its number."""
        return self.term == 0 or message.term // TERMS_OF_A_GROUP == self.term // TERMS_OF_A_GROUP

    def _enter_term_of(self, message: Message) -> bool:
        """A message of a later term; False if it is to be ignored."""
        match message:
            case PreVote() | PreVoteResponse(granted=True):
                return True  # they speak of a term that nobody has begun
            case Vote(transfer=False) if self._has_recent_leader():
                return False  # whoever begins terms that nobody needs is not followed into them
        self._outbox.enter_term(message.term, None)
        self._fruitless_terms += 1
        self._follow(None, f"{message.sender} is in a later term")
        return True

    def _has_recent_leader(self) -> bool:
        if self._leadership is not None:
            return True
        return self._leader is not None and self._elapsed < self._options.election_ticks

    def _answer_old(self, message: Message) -> None:
        """A message of an earlier term: whoever leads, or would lead, is told that there is a later one."""
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
        """A message of this term, or a pre-vote of a later one; False if it contradicts what is known."""
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
        """Not while it knows of no members: it may have left the group before, and voted in a term that goes on."""
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
            self._ask_for_votes(f"{message.sender} hands over", transfer=True)
        return True

    # ------------------------------------------------------------------ as a follower

    def _on_leader_message(self, message: Append | Heartbeat | SnapshotOffer) -> bool:
        if self._leader is None:
            self._follow(message.sender, "it leads")
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
            # An old message, or a large step back: of what is committed, the leader has the same.
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
            # It was here before, and left: the leader takes it to have what it has lost.
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
            # One after the other; the leader says it again.
            self._fetching = snapshot
            self._is_fetch_due = True

    def _has(self, snapshot: Snapshot) -> bool:
        """Whether the log holds all of it; then it is committed up to there, and what is behind it must stay."""
        log, index = self._log, snapshot.position.index
        if log.term_at(index) == snapshot.position.term:
            log.commit = max(log.commit, index)
        return index <= log.commit

    def staged(self, snapshot: Snapshot) -> None:
        """The snapshot was fetched, and lies beside the live state; it is installed with the next `Persist`."""
        if snapshot != self._fetching:
            return
        self._fetching = None
        if not self._has(snapshot):
            self._log.restart(snapshot.position)
            self._outbox.restart_log(snapshot.position, snapshot)
        self._answer_offer(installed=True, index=self._log.commit)

    def staging_failed(self, snapshot: Snapshot) -> None:
        """The snapshot cannot be had."""
        if snapshot == self._fetching:
            self._fetching = None
            self._answer_offer(installed=False, index=snapshot.position.index)

    def _answer_offer(self, *, installed: bool, index: int) -> None:
        leader = self._leader
        if leader is None or self._leadership is not None:
            return
        response = SnapshotResponse(self._group, self._id, leader, self.term, installed, index)
        self._outbox.promise(response, index if installed else None)

    # ------------------------------------------------------------------ what is to be done

    def ready(self) -> Ready:
        """What to do now; ask again after each batch of events."""
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
        """Draw the conclusions of what the others answered, and of what is durable."""
        leadership.advance()
        if leadership.is_removed:
            leadership.retire()
            self._follow(None, "no voter any more")
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
        """The `Persist` of that index is durable."""
        snapshot = self._outbox.persisted(index)
        if snapshot is not None:
            self._applied = max(self._applied, snapshot.position.index)
        if self._role is Role.CANDIDATE and self._outbox.is_vote_durable:
            self._count_vote(self._id, granted=True)

    def applied(self, index: int) -> None:
        """Entries up to there, which were handed out, are applied."""
        if index <= self._applied:
            return
        self._applied = index
        if index > self._log.applied:  # else a snapshot has overtaken them
            self._log.mark_applied(index)

    def validate(self) -> None:
        """Assert what must hold between the fields."""
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
    """The log, and whether it begins anew: a snapshot was installed, and a crash came before the log was cut."""
    base, applied = restored.base, restored.applied
    log = EntryLog(base, restored.entries, base.index)
    if applied is None or applied.index <= base.index:
        return log, False
    if log.term_at(applied.index) == applied.term:
        return EntryLog(base, restored.entries, applied.index), False
    assert restored.hard_state.term >= applied.term
    return EntryLog(applied, (), applied.index), True
