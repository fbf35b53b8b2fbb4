"""Mistakes that implementations of Raft have made, planted one at a time; the simulated world must detect each.

    @mutant
    def counts_entries_of_earlier_terms(plant): ...        plant(class, name, replacement)

Each mutant is a few lines that patch the real code. If that code changes so that a mutant has no effect any more, the
world finds no violation, and the test of the mutant fails.
"""

from __future__ import annotations

from cluster.world_hunt import Mutant, planting
from msgspec.structs import replace

from saros_cluster.raft import node as node_module
from saros_cluster.raft.entry_log import EntryLog
from saros_cluster.raft.leadership import Leadership
from saros_cluster.raft.membership import Membership, VoteResult
from saros_cluster.raft.messages import EntryKind, HardState
from saros_cluster.raft.node import RaftNode
from saros_cluster.raft.outbox import Outbox
from saros_cluster.raft.progress import Progress
from saros_cluster.raft.ready import Refusal, Role

MUTANTS: list[Mutant] = []
mutant = planting(MUTANTS)


# ---------------------------------------------------------------------- committing


@mutant
def counts_entries_of_earlier_terms(plant):
    """A leader commits entries of earlier terms by counting replicas (figure 8 of the Raft paper)."""

    def advance(self):
        log = self._log
        index = log.membership.committed(self._match)
        if index > log.commit:
            self._uncommitted_bytes -= log.bytes_between(log.commit + 1, index)
            log.commit = index
            if log.membership.is_joint and log.membership_index <= index:
                self.append(EntryKind.MEMBERSHIP, log.membership.leaving().encode())

    plant(Leadership, "advance", advance)


@mutant
def counts_itself_before_its_disk(plant):
    def match(self, node):
        return self._log.last_index if node == self._outbox.node else self._progress[node].match

    plant(Leadership, "_match", match)


@mutant
def counts_learners(plant):
    def committed(self, match):
        half = self.nodes
        return sorted(map(match, half))[(len(half) - 1) // 2]

    plant(Membership, "committed", committed)


@mutant
def commits_what_one_follower_has(plant):
    def committed(self, match):
        return max(map(match, self.voters))

    plant(Membership, "committed", committed)


@mutant
def needs_one_majority_while_joint(plant):
    """In a joint membership, a majority of the new voters is sufficient."""
    plant(Membership, "_majority_sets", lambda self: (self.voters,))


@mutant
def needs_the_old_majority_while_joint(plant):
    plant(Membership, "_majority_sets", lambda self: (self.outgoing or self.voters,))


@mutant
def leaves_a_joint_membership_at_once(plant):
    """A group leaves its joint membership before that membership is committed."""
    append = Leadership.append

    def append_both(self, kind, data):
        answer = append(self, kind, data)
        if kind is EntryKind.MEMBERSHIP and self._log.membership.is_joint:
            append(self, kind, self._log.membership.leaving().encode())
        return answer

    plant(Leadership, "append", append_both)


@mutant
def changes_members_one_by_one_before_its_first_entry(plant):
    """The first description of single-server changes had this mistake (Ongaro, raft-dev, 2015)."""
    plant(Membership, "entering", lambda self, target: target)
    plant(Leadership, "has_begun", property(lambda self: True))


@mutant
def takes_changes_that_were_overtaken(plant):
    """A change is accepted although its version is not higher than the version in effect."""

    def objection_to(self, target, objection_to=Leadership.objection_to):
        found = objection_to(self, target)
        return None if found is Refusal.OLD_VERSION else found

    plant(Leadership, "objection_to", objection_to)


@mutant
def follower_commits_what_it_was_not_found_to_share(plant):
    on_append = RaftNode._on_append

    def commit_first(self, message):
        self._log.commit = max(self._log.commit, min(message.commit, self._log.last_index))
        return on_append(self, message)

    plant(RaftNode, "_on_append", commit_first)


@mutant
def heartbeats_commit_what_may_be_something_else(plant):
    def on_heartbeat(self, message, on_heartbeat=RaftNode._on_heartbeat):
        return on_heartbeat(self, replace(message, commit=min(message.commit, self._log.last_index)))

    def send_heartbeat(self, node, progress):
        outbox = self._outbox
        outbox.send(
            node_module.Heartbeat(outbox.group, outbox.node, node, self.term, self._log.commit, self.reads.round)
        )

    plant(RaftNode, "_on_heartbeat", on_heartbeat)
    plant(Leadership, "_send_heartbeat", send_heartbeat)


# ---------------------------------------------------------------------- the disk


@mutant
def promises_before_the_disk(plant):
    plant(Outbox, "_is_durable", lambda self, index: True)


@mutant
def promises_entries_before_the_disk(plant):
    """Entries are acknowledged before they are durable, but votes are sent only when they are durable."""
    plant(Outbox, "_is_durable", lambda self, index: self.is_vote_durable)


@mutant
def promises_votes_before_the_disk(plant):
    """Votes are sent before they are durable, but entries are acknowledged only when they are durable."""

    def is_kept(self, index):
        return index is None or (not self.is_restarting_log and index <= self._log.durable)

    plant(Outbox, "_is_durable", is_kept)


@mutant
def forgets_its_vote(plant):
    take_persist = Outbox.take_persist

    def take(self):
        persist = take_persist(self)
        if persist is None or persist.hard_state is None:
            return persist
        return replace(persist, hard_state=HardState(persist.hard_state.term, None))

    plant(Outbox, "take_persist", take)


@mutant
def promises_a_snapshot_before_it_is_installed(plant):
    plant(Outbox, "is_restarting_log", property(lambda self: False))


@mutant
def does_not_begin_the_log_anew(plant):
    """After a crash between writing the snapshot and writing the log, the log is not reset to the snapshot."""

    def log_of(restored, log_of=node_module._log_of):
        return log_of(restored)[0], False

    plant(node_module, "_log_of", log_of)


# ---------------------------------------------------------------------- votes


@mutant
def votes_twice(plant):
    def vote(self, node):
        self.hard_state = HardState(self.hard_state.term, node)

    def answer_vote(self, message, answer_vote=RaftNode._answer_vote):
        if self._role is Role.FOLLOWER:
            self._outbox.hard_state = HardState(self.term, None)
        answer_vote(self, message)

    plant(Outbox, "vote", vote)
    plant(RaftNode, "_answer_vote", answer_vote)


@mutant
def votes_whatever_the_log(plant):
    plant(EntryLog, "is_current", lambda self, last_index, last_term: True)


@mutant
def votes_for_the_longer_log(plant):
    """A node votes for a candidate with a longer log, regardless of the terms of the last entries."""
    plant(EntryLog, "is_current", lambda self, last_index, last_term: last_index >= self.last_index)


@mutant
def is_elected_by_half(plant):
    def vote_result(self, yes, no):
        return (
            VoteResult.WON if 2 * sum(node in yes for node in self.voters) >= len(self.voters) else VoteResult.PENDING
        )

    plant(Membership, "vote_result", vote_result)


@mutant
def counts_votes_of_the_term_before(plant):
    def answer_old(self, message, answer_old=RaftNode._answer_old):
        if isinstance(message, node_module.VoteResponse) and self._role is Role.CANDIDATE and message.granted:
            self._count_vote(message.sender, granted=True)
        answer_old(self, message)

    plant(RaftNode, "_answer_old", answer_old)


# ---------------------------------------------------------------------- logs


@mutant
def takes_entries_without_looking_behind_them(plant):
    """A follower takes entries without comparing the term of the entry before them."""
    term_at = EntryLog.term_at

    def on_append(self, message, on_append=RaftNode._on_append):
        found = term_at(self._log, message.prev_index)
        return on_append(self, message if found is None else replace(message, prev_term=found))

    plant(RaftNode, "_on_append", on_append)


@mutant
def an_old_message_cuts_the_log(plant):
    """Entries after those of a message are assumed to be from an old leader, and are truncated."""

    def merge(self, entries, merge=EntryLog.merge):
        changed = merge(self, entries)
        if entries and entries[-1].index < self.last_index:
            self._cut(entries[-1].index + 1)
        return changed

    plant(EntryLog, "merge", merge)


@mutant
def keeps_the_membership_of_entries_that_are_cut_off(plant):
    def cut(self, index, cut=EntryLog._cut):
        memberships = list(self._memberships)
        cut(self, index)
        self._memberships = memberships

    plant(EntryLog, "_cut", cut)


# ---------------------------------------------------------------------- snapshots


@mutant
def a_snapshot_replaces_entries_that_it_agrees_with(plant):
    plant(RaftNode, "_has", lambda self, snapshot: snapshot.position.index <= self._log.commit)


@mutant
def a_snapshot_replaces_a_newer_state(plant):
    def restart(self, base, restart=EntryLog.restart):
        self.commit = min(self.commit, base.index - 1)
        restart(self, base)

    plant(RaftNode, "_has", lambda self, snapshot: False)
    plant(EntryLog, "restart", restart)


@mutant
def a_snapshot_brings_no_membership(plant):
    def restart(self, base, restart=EntryLog.restart):
        restart(self, replace(base, membership=self.membership))

    plant(EntryLog, "restart", restart)


@mutant
def a_snapshot_is_offered_once(plant):
    """The offer of a snapshot is not repeated, although it may be lost."""

    told = {}

    def send_offer(self, node, progress, send_offer=Leadership._send_offer):
        if progress.offered is None or told.get(id(progress)) != progress.offered:
            told[id(progress)] = progress.offered
            send_offer(self, node, progress)

    plant(Leadership, "_send_offer", send_offer)


# ---------------------------------------------------------------------- reads


@mutant
def reads_without_asking_anybody(plant):
    plant(Leadership, "_answered_round", lambda self, node: self.reads.round)


@mutant
def reads_when_one_follower_answers(plant):
    def take_confirmed(self):
        nodes = self._log.membership.voters
        return self.reads.confirmed(max(map(self._answered_round, nodes), default=0))

    plant(Leadership, "take_confirmed", take_confirmed)


@mutant
def reads_before_its_first_entry(plant):
    """A new leader answers reads although it does not yet know the commit index."""
    plant(Leadership, "has_begun", property(lambda self: True))


@mutant
def begins_without_an_entry_of_its_own(plant):
    def append(self, kind, data, append=Leadership.append):
        return None if kind is EntryKind.NOOP else append(self, kind, data)

    plant(Leadership, "append", append)
    plant(Leadership, "has_begun", property(lambda self: True))
    plant(Leadership, "validate", lambda self: None)


@mutant
def a_follower_reads_what_it_knows_to_be_committed(plant):
    def read_index(self, read_index=RaftNode.read_index):
        if self._leadership is not None or self._leader is None:
            return read_index(self)
        self._last_read += 1
        self._reads.confirm(self._last_read, self._log.commit, self._now)
        return self._last_read

    plant(RaftNode, "read_index", read_index)


@mutant
def reads_before_it_has_applied(plant):
    def ready(self, ready=RaftNode.ready):
        self._reads.applied(self._log.commit)
        return ready(self)

    plant(RaftNode, "ready", ready)


@mutant
def reads_while_a_snapshot_is_being_installed(plant):
    def ready(self, ready=RaftNode.ready):
        self._reads.applied(self._log.applied)
        return ready(self)

    plant(RaftNode, "ready", ready)


@mutant
def takes_an_old_answer_for_that_to_a_new_question(plant):
    """After each start, a node gives its reads the same numbers, and therefore takes late answers for new answers."""

    def init(self, *args, init=RaftNode.__init__):
        init(self, *args)
        self._last_read = 0

    plant(RaftNode, "__init__", init)


@mutant
def answers_reads_of_an_earlier_round_with_a_later_one(plant):
    """A read joins a confirmation round that has already begun."""

    def read(self, pending, read=Leadership.read):
        if self.reads._rounds:
            self.reads._rounds[-1].reads.append(pending)
            self.reads._count += 1
            return True
        return read(self, pending)

    plant(Leadership, "read", read)


# ---------------------------------------------------------------------- liveness


@mutant
def a_leader_that_hears_nobody_leads_on(plant):
    plant(Leadership, "_check_quorum", lambda self: True)


@mutant
def who_hears_nobody_begins_terms(plant):
    """There are no pre-votes, and no checks for a live leader, so two separated nodes never stop elections."""
    plant(RaftNode, "_has_recent_leader", lambda self: False)
    plant(RaftNode, "_ask_for_pre_votes", lambda self: self._ask_for_votes("no heartbeat from a leader"))


@mutant
def a_learner_does_not_vote(plant):
    """A learner refuses to vote, although it may have been promoted without knowing of its promotion."""

    def answer_vote(self, message, answer_vote=RaftNode._answer_vote):
        if self._log.membership.is_voter(self._id):
            answer_vote(self, message)

    plant(RaftNode, "_answer_vote", answer_vote)


@mutant
def who_goes_cannot_lead(plant):
    """A leaving node cannot become leader, although it may be the only node with the entry that removes it."""
    plant(EntryLog, "may_need", lambda self, node: self.membership.is_voter(node))


@mutant
def what_was_lost_is_not_sent_again(plant):
    def heartbeat_answered(self, last_index):
        self.probing = False

    plant(Progress, "heartbeat_answered", heartbeat_answered)


@mutant
def who_comes_again_begins_with_the_members_of_before(plant):
    """A node that returns starts as a member, and can form a majority with nodes that do not know that it left."""
    plant(Leadership, "_begins_at", lambda self, node: 0)


@mutant
def a_transfer_is_never_given_up(plant):
    def tick(self, tick=Leadership.tick):
        if self._transfer is not None:
            self._transfer.ticks_left = 99
        return tick(self)

    plant(Leadership, "tick", tick)


@mutant
def does_not_leave_a_joint_membership_of_another_leader(plant):
    def append(self, kind, data, append=Leadership.append):
        log = self._log
        if kind is EntryKind.MEMBERSHIP and log.membership.is_joint and log.term_at(log.membership_index) != self.term:
            return None
        return append(self, kind, data)

    plant(Leadership, "append", append)


@mutant
def believes_every_group(plant):
    """A node accepts messages that belong to another group or are for another node."""

    def step(self, message, step=RaftNode.step):
        if message.sender != self._id:
            message = replace(message, group=self._group, receiver=self._id)
        step(self, message)

    plant(RaftNode, "step", step)
