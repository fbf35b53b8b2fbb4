"""A simulation of Raft nodes: a seed decides every delay, loss, crash and step; `raft_checkers` checks the invariants.

    World(seed).run()    a time with faults, then healing; raises Violation, with the seed and the story

There are one to three groups on three to five nodes, and a spare node. After a crash, each node has on its disk a
prefix of the writes that were in progress, and the last saved states of its state machines. The network delays, loses,
duplicates and reorders messages, delivers some of them very late, and is cut between nodes in one or both directions.

In some worlds, as in production, a node that is no longer a member of a group loses the data of the group. The node
then returns without the data, while its earlier replies are in transit.

Finally all faults stop; only one node or one link may stay cut off, if the other nodes are a connected majority. Then,
within a few election timeouts, each group must commit a command, complete a change of members, and bring its members to
the same state, without repeatedly deposing leaders.

A tick takes TICK units of time; some nodes tick a little faster than other nodes.
"""

from __future__ import annotations

import heapq
import random
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cluster.raft_checkers import GroupChecker, Violation
from cluster.world_hunt import Figures
from cluster.world_threads import Place, replaced

from saros_cluster.multiraft.host import TICK_NS
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft import leadership, progress
from saros_cluster.raft import membership as membership_module
from saros_cluster.raft import node as raft_node
from saros_cluster.raft.membership import Membership, membership
from saros_cluster.raft.messages import (
    Append,
    AppendResponse,
    Entry,
    GroupId,
    HardState,
    Message,
    Position,
    ReadIndexResponse,
    Snapshot,
    SnapshotOffer,
    Vote,
    VoteResponse,
)
from saros_cluster.raft.node import RaftNode
from saros_cluster.raft.ready import Accepted, Persist, RaftOptions, Ready, Restored

TICK = 10
ELECTION_TICKS = 4
#: The duration of the faults, the time limit for healing, and the time without elections that proves the healing.
FAULTS = 150 * TICK
HEALING = 40 * ELECTION_TICKS * TICK
QUIET = 4 * ELECTION_TICKS * TICK


#: Limits of messages, windows and queues. They are so low that the world reaches them: a message contains one or two
#: entries.
_SMALL: Sequence[Place] = (
    (leadership, "APPEND_BYTES_MAX", 40),
    (leadership, "UNCOMMITTED_BYTES_MAX", 2_000),
    (leadership, "_CAUGHT_UP_BYTES", 500),
    (progress, "IN_FLIGHT_BYTES_MAX", 300),
    (progress, "IN_FLIGHT_MESSAGES_MAX", 4),
    (raft_node, "APPEND_BYTES_MAX", 200),
    (raft_node, "UNAPPLIED_BYTES_MAX", 400),
)


@dataclass
class Disk:
    """The state that survives a crash: the log, and the last saved state of the state machine."""

    base: Position
    hard_state: HardState = field(default_factory=HardState)
    entries: list[Entry] = field(default_factory=list)
    saved: tuple[Position, int] | None = None

    @property
    def has_something(self) -> bool:
        return bool(self.entries) or self.base != _NOTHING

    def write(self, persist: Persist, parts: int = 1 << 30) -> None:
        """Write the first `parts` parts of this sequence: the hard state, the snapshot, the base, and each entry."""
        if parts >= 1 and persist.hard_state is not None:
            self.hard_state = persist.hard_state
        if parts >= 2 and persist.snapshot is not None:
            self.saved = (persist.snapshot.position, int(persist.snapshot.token))
        if parts >= 3 and persist.base is not None:
            self.base, self.entries = persist.base, []
        entries = persist.entries[: max(parts - 3, 0)]
        if entries:
            place = entries[0].index - self.base.index - 1
            assert 0 <= place <= len(self.entries), "a gap in the log"
            del self.entries[place:]
            self.entries += entries

    def term_at(self, index: int) -> int | None:
        if index == self.base.index:
            return self.base.term
        place = index - self.base.index - 1
        return self.entries[place].term if 0 <= place < len(self.entries) else None

    def has(self, index: int, term: int) -> bool:
        saved = self.saved is not None and self.saved[0].index >= index
        return saved or index <= self.base.index or self.term_at(index) == term


#: The position at which a node's log begins if the node has no data of the group.
_NOTHING = Position(0, 0, Membership(0, ()))
#: The kinds of messages that do the most harm if they arrive very late.
_OFTEN_LATE = (SnapshotOffer, ReadIndexResponse, Vote, VoteResponse)


class Replica:
    """A group on a node: its Raft node, disk and state machine.

    The machine's state is a number that depends on all applied entries.
    """

    def __init__(self, host: Host, group: GroupId, base: Position) -> None:
        self.host = host
        self.world = host.world
        self.id = host.id
        self.group = group
        self.checker = self.world.checkers[group]
        self.disk = Disk(base)
        #: The number of times that the node left the group.
        self.departures = 0
        #: The version of the last membership with which the node removed itself from the group.
        self.let_go = 0

    def start(self) -> None:
        disk = self.disk
        saved = disk.saved[0] if disk.saved else None
        restored = Restored(disk.base, disk.hard_state, tuple(disk.entries), saved)
        self.node = RaftNode(self.group, self.id, restored, self.host.options, self.world.random)
        self.state = disk.saved[1] if disk.saved else 0
        self.applied = saved.index if saved else disk.base.index
        self.persisting: Persist | None = None
        self.applying: list[Entry] = []
        self.is_applying = False
        #: The index up to which each read must see all entries, by read number.
        self.reads: dict[int, int] = {}
        #: The term of each command that was proposed on this node, by index.
        self.proposals: dict[int, int] = {}
        self.astray = 0
        self.commit = self.node.commit
        self.led = self.committed_in = 0
        self.pump()
        self.later(self.world.random.randrange(1, 4 * TICK), self.read)

    def crash(self) -> None:
        if self.persisting is not None:
            self.disk.write(self.persisting, self.world.random.randrange(len(self.persisting.entries) + 4))
        self.persisting = None

    def leave(self) -> None:
        """Start again without data if the group has removed the node, and the node's log does not add it again."""
        known, own = self.checker.membership, self.node.membership
        is_back = self.id in own.nodes and own.version > known.version
        if known.is_joint or self.id in known.nodes or is_back or not self.disk.has_something:
            return
        self.world.suffer("departure", f"group {self.group}: {self.id} leaves, and forgets")
        self.departures += 1
        self.disk = Disk(_NOTHING, HardState(self.checker.membership_term))
        self.start()

    # ------------------------------------------------------------------ output of the node

    def pump(self) -> None:
        """Handle the node's output. A single call of `ready` must return all of this output."""
        node = self.node
        ready = node.ready()
        if self.world.random.random() < 0.1:
            node.validate()
        self.look()
        if not ready.is_empty:
            self.do(ready)

    def look(self) -> None:
        node = self.node
        if node.is_leader:
            self.checker.leads(node, self.id)
            if node.term != self.led:
                self.led = node.term
                self.world.elections += 1
                self.world.note(f"group {self.group}: {self.id} leads term {node.term}")
                self.checker.elected(node, self.id)
                self.be_envied(self.world.random.choice((self.world.delay, 6 * TICK)))
            members = node.membership
            if not members.is_voter(self.id) and members.version != self.let_go:
                self.let_go = members.version
                self.world.hush(self)
        if node.commit > self.commit:
            self.commit = node.commit
            self.checker.commits(node, self.id, self.on_disk)
            if node.is_leader and node.term != self.committed_in:
                self.committed_in = node.term
                self.be_envied(4)

    def be_envied(self, soon: int) -> None:
        world = self.world
        if world.happens(world.envy):
            self.later(world.random.randrange(1, soon), world.strike, self.host)

    def on_disk(self, node: NodeId, index: int, term: int) -> bool:
        return self.world.hosts[node].replicas[self.group].disk.has(index, term)

    def do(self, ready: Ready) -> None:
        world = self.world
        if ready.persist is not None:
            assert self.persisting is None
            self.persisting = ready.persist
            if ready.persist.entries and ready.persist.base is None:
                first = ready.persist.entries[0].index
                self.checker.log(self.disk.term_at(first - 1), ready.persist.entries)
            self.later(world.disk_delay(self.id), self.sync)
        for message in ready.messages:
            if isinstance(message, Append):
                self.checker.log(message.prev_term, message.entries)
            world.send(message)
        if ready.committed:
            self.applying += ready.committed
            if not self.is_applying:
                self.is_applying = True
                self.later(world.random.randrange(1, TICK), self.apply)
        for result in ready.reads:
            newest = self.reads.pop(result.read)
            if result.index is not None:
                world.reads += 1
                self.checker.reads(self.id, newest, self.applied)
        if ready.fetch is not None:
            ticks = 60 if not world.is_storm and world.happens(0.5) else 8
            self.later(world.random.randrange(2, ticks * TICK), self.stage, ready.fetch)
        for to in ready.snapshots_wanted:
            self.later(world.random.randrange(2, 4 if world.is_forgetful else 4 * TICK), self.offer, to)

    def later(self, delay: int, do: Callable[..., None], *args: object) -> None:
        """Schedule a call; skip it if the node crashes or leaves the group before that time."""
        host, life = self.host, (self.host.life, self.departures)

        def event() -> None:
            pause = host.resumes_at - self.world.now
            if (host.life, self.departures) == life and pause > 0:
                self.world.at(pause, event)
            elif (host.life, self.departures) == life:
                do(*args)
                if (host.life, self.departures) == life:
                    self.pump()

        self.world.at(delay, event)

    def sync(self) -> None:
        persist = self.persisting
        assert persist is not None
        is_grave = persist.hard_state is not None or persist.snapshot is not None
        if is_grave and self.world.happens(0.04):
            self.host.stumble()
            return
        if is_grave and self.world.happens(0.12):
            self.later(self.world.random.randrange(1, TICK), self.host.stumble)
        self.persisting = None
        before, disk = self.kept(), self.disk
        if persist.snapshot is not None:
            last = disk.base.index + len(disk.entries)
            self.checker.replaces(self.id, persist.snapshot.position, last, disk.term_at)
        disk.write(persist)
        self.checker.keeps(self.id, before, self.kept())
        if persist.snapshot is not None:
            self.world.installs += 1
            self.state, self.applied = int(persist.snapshot.token), persist.snapshot.position.index
            self.applying = [e for e in self.applying if e.index > self.applied]
        self.node.persisted(persist.index)

    def kept(self) -> int:
        disk = self.disk
        saved = disk.saved[0].index if disk.saved else 0
        return max(self.checker.kept(disk.base.index + len(disk.entries), disk.term_at), saved)

    def apply(self) -> None:
        entries, self.applying, self.is_applying = self.applying, [], False
        for entry in entries:
            assert entry.index == self.applied + 1, f"{entry} is applied behind {self.applied}"
            self.applied = entry.index
            self.state = zlib.crc32(b"%d %d %b" % (entry.index, entry.kind, entry.data), self.state)
            self.checker.applies(self.id, entry, self.state)
            if self.proposals.pop(entry.index, None) == entry.term:
                self.world.acknowledged += 1
        if entries:
            self.node.applied(entries[-1].index)
            if self.world.is_forgetful:
                self.save()

    # ------------------------------------------------------------------ snapshots

    def save(self) -> Position | None:
        """Save the state of the state machine. After that, the log may be truncated."""
        position = self.node.position(self.applied)
        if position is None or position.index == 0:
            return None
        self.checker.places(self.id, position)
        self.disk.saved = (position, self.state)
        base = self.node.compact(self.applied)
        if base is not None:
            disk = self.disk
            del disk.entries[: base.index - disk.base.index]
            disk.base = base
        return position

    def offer(self, to: NodeId) -> None:
        position = None if self.world.happens(0.1) else self.save()
        if position is None:
            self.node.no_snapshot(to)
        else:
            self.node.offer_snapshot(to, Snapshot(position, b"%d" % self.state))
            if not self.world.is_storm and self.world.happens(0.4):
                self.later(self.world.random.randrange(1, self.world.delay), self.world.strike, self.host)

    def stage(self, snapshot: Snapshot) -> None:
        if self.world.happens(0.15):
            self.node.staging_failed(snapshot)
        else:
            self.node.staged(snapshot)

    # ------------------------------------------------------------------ clients

    def propose(self, data: bytes) -> bool:
        answer = self.node.propose(data)
        if isinstance(answer, Accepted):
            self.proposals[answer.index] = answer.term
        return isinstance(answer, Accepted)

    def read(self) -> None:
        newest = self.checker.newest()
        self.reads[self.node.read_index()] = newest

    def change(self, version: int, kind: float) -> None:
        """Propose a new membership.

        The number `kind`, below 1, decides whether the membership promotes, adds, removes or demotes nodes.
        """
        chance, current = self.world.random, self.node.membership
        voters, learners = set(current.voters), set(current.learners)
        others = [n for n in self.world.hosts if n not in voters | learners]
        if learners and kind < 0.5:
            voters, learners = voters | learners, set()
        elif others and kind < 0.8:
            learners.add(chance.choice(others))
        elif kind < 0.9:
            voters -= set(chance.sample(sorted(voters), chance.randrange(1, len(voters) + 1)))
        else:
            node = chance.choice(sorted(voters))
            voters.discard(node)
            learners.add(node)
        if not voters or self.node.membership.is_joint:
            return
        answer = self.node.propose_membership(membership(version, voters, learners))
        if isinstance(answer, Accepted):
            self.world.changes += 1
            self.world.note(f"group {self.group}: {self.id} begins {sorted(voters)} learners {sorted(learners)}")
            self.be_envied(3 * TICK)


class Host:
    """A node and its replicas of all groups.

    `life` is the number of the host's latest start, or 0 if the host is down.
    """

    def __init__(self, world: World, id_: NodeId) -> None:
        self.world = world
        self.id = id_
        self.replicas: dict[GroupId, Replica] = {}
        self.life = 0
        self.lives = 0
        # The number of entries that stay in the log when it is truncated: many on some hosts, none on other hosts.
        kept = 0 if world.is_forgetful else world.random.choice((0, 500, 1 << 20))
        self.options = RaftOptions(2, ELECTION_TICKS, kept)
        #: The number of units of time between the host's ticks.
        self.pace = TICK + world.random.choice((-1, 0, 0, 1))
        #: The host is paused until this time.
        self.resumes_at = 0

    def start(self) -> None:
        if self.life:
            return
        self.lives += 1
        self.life = self.lives
        for replica in self.replicas.values():
            replica.start()
        self.world.at(self.world.random.randrange(self.pace), lambda life=self.life: self.tick(life))

    def crash(self) -> None:
        self.life = self.resumes_at = 0
        for replica in self.replicas.values():
            replica.crash()

    def stumble(self) -> None:
        """Crash the host, and restart it soon."""
        if self.world.now >= FAULTS:
            return
        self.world.suffer("crash", f"{self.id} stumbles")
        self.crash()
        self.world.at(self.world.random.randrange(1, 2 * TICK), self.start)

    def tick(self, life: int) -> None:
        if self.life != life:
            return
        if self.resumes_at > self.world.now:
            self.world.at(self.resumes_at - self.world.now, lambda: self.tick(life))
            return
        for replica in self.replicas.values():
            replica.node.tick()
            replica.pump()
        self.world.at(self.pace, lambda: self.tick(life))


class World:
    """A simulated network of hosts, with its clients and faults."""

    def __init__(self, seed: int, places: Sequence[Place] = ()) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now = 0
        self._places = [*_SMALL, *places]
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._queued = 0
        self.trace = 0
        self.story: list[str] = []
        self.elections = self.reads = self.acknowledged = self.changes = self.installs = 0
        self.loss = self.random.choice((0.0, 0.02, 0.1, 0.25))
        self.delay = self.random.choice((4, 8, 20))
        self.slow_disks = {NodeId(self.random.randrange(1, 6))} if self.random.random() < 0.4 else set()
        #: Pairs (sender, receiver) whose messages are lost.
        self.cuts: set[tuple[NodeId, NodeId]] = set()
        #: True for a world with one group of three nodes, in which most leaders fail while they send their first
        #: messages.
        self.is_storm = self.random.random() < 0.4
        #: The probability of a fault soon after a node becomes leader, commits its first entry, or changes the members.
        self.envy = 0.6 if self.is_storm else self.random.choice((0.05, 0.2, 0.5))
        #: True if applied entries are saved and removed from the log at once. A slow follower is then offered a
        #: snapshot, even if it already has these entries and later entries. In a forgetful world, messages carry
        #: several entries.
        self.is_forgetful = self.random.random() < 0.3
        if self.is_forgetful:
            self._places.append((leadership, "APPEND_BYTES_MAX", 200))
        #: The random numbers that decide which nodes leave groups, and at what time; None if no node leaves.
        leaving = random.Random(f"{seed} leaving")
        self.leaving = leaving if leaving.random() < 0.4 and not self.is_storm else None
        #: In some worlds a learner receives only every second or third heartbeat.
        if random.Random(f"{seed} beats").random() < 0.3:
            self._places.append((membership_module, "_LEARNERS_PER_BEAT", 1))
        #: The random numbers that decide whether a leader that removes itself is cut off.
        self.going = random.Random(f"{seed} going")
        #: The kinds of messages that are often very late. If nodes leave groups, these kinds include replies, since a
        #: node may have sent a reply before it left.
        self.often_late = _OFTEN_LATE if self.leaving is None else (*_OFTEN_LATE, AppendResponse)
        count = 1 if self.is_storm else self.random.choice((1, 1, 1, 2, 3))
        self.groups = [GroupId(g) for g in range(1, count + 1)]
        self.faults: Counter[str] = Counter()

    def _found(self) -> None:
        """Create the groups and the nodes. One node belongs to no group."""
        count = 3 if self.is_storm else self.random.choice((3, 4, 5))
        nodes = [NodeId(n) for n in range(1, count + (1 if self.is_storm else 2))]
        self.checkers: dict[GroupId, GroupChecker] = {}
        self.hosts = {node: Host(self, node) for node in nodes}
        for group in self.groups:
            voters = self.random.sample(nodes[:count], 3 if self.is_storm else self.random.choice((1, 3, count, count)))
            # The log begins after an entry that no node has, so that a node that leaves and returns must start from a
            # snapshot.
            first = Position(0 if self.leaving is None else 1, 0, membership(1, voters))
            self.checkers[group] = GroupChecker(group, first)
            for node, host in self.hosts.items():
                host.replicas[group] = Replica(host, group, first if node in voters else _NOTHING)
        for host in self.hosts.values():
            host.start()

    # ------------------------------------------------------------------ time

    def at(self, delay: int, event: Callable[[], None]) -> None:
        self._queued += 1
        heapq.heappush(self._queue, (self.now + delay, self._queued, event))

    def note(self, text: str) -> None:
        self.trace = zlib.crc32(f"{self.now} {text}".encode(), self.trace)
        self.story.append(f"{self.now}: {text}")

    def suffer(self, fault: str, text: str) -> None:
        """Record a fault."""
        self.faults[fault] += 1
        self.note(text)

    def run(self) -> World:
        """Run the world. Raises Violation."""
        try:
            with replaced(self._places):
                self._live()
        except Exception as error:
            tail = "\n".join(self.story[-60:])
            raise Violation(f"seed {self.seed} at {self.now}: {error!r}\n{tail}") from error
        return self

    def _live(self) -> None:
        self._found()
        self._at_random(TICK, FAULTS, self._work)
        # In a storm (`is_storm`), a node with a fault stays away until another node leads, so faults are rarer.
        self._at_random((20 if self.is_storm else 5) * TICK, FAULTS, self._misfortune)
        if self.leaving is not None:
            self.at(1, self._leave)
        self._run_until(FAULTS)
        self._heal()
        self._run_until(FAULTS + HEALING, self._is_quiet)
        self._check_end()

    @property
    def figures(self) -> Figures:
        """Return the figures of the run, in which each tick takes as long as in production."""
        operations = self.acknowledged + self.reads + self.changes
        return Figures(1, self.now / TICK * TICK_NS / 1e9, operations, self.elections, self.faults)

    def _at_random(self, pause: int, end: int, do: Callable[[], None]) -> None:
        def event() -> None:
            if self.now < end:
                do()
                self.at(self.random.randrange(1, pause), event)

        self.at(1, event)

    def _run_until(self, end: int, is_done: Callable[[], bool] | None = None) -> None:
        check = self.now
        while self._queue and self._queue[0][0] <= end:
            self.now, _, event = heapq.heappop(self._queue)
            event()
            if is_done is not None and self.now > check:
                if is_done():
                    return
                check = self.now + 2 * TICK
        self.now = end

    def happens(self, chance: float) -> bool:
        """Return whether a fault of this probability occurs. No fault occurs after faults have stopped."""
        return self.now < FAULTS and self.random.random() < chance

    # ------------------------------------------------------------------ network and disks

    def send(self, message: Message) -> None:
        chance = self.random.random()
        if chance < self.loss:
            return
        delay = self.random.randrange(1, self.delay)
        if self.happens(0.15 if isinstance(message, self.often_late) else 0.02):
            delay += self.random.randrange(self.random.choice((3, 40)) * TICK)
        self.at(delay, lambda: self._arrive(message))
        if chance > 0.97:
            self.at(delay + self.random.randrange(self.delay), lambda: self._arrive(message))

    def _arrive(self, message: Message) -> None:
        host = self.hosts[message.receiver]
        if not host.life or (message.sender, message.receiver) in self.cuts:
            return
        if host.resumes_at > self.now:
            self.at(host.resumes_at - self.now + self.random.randrange(self.delay), lambda: self._arrive(message))
            return
        text = f"{message.group} {message.sender} {message.receiver} {type(message).__name__} {message.term}"
        self.trace = zlib.crc32(text.encode(), self.trace)
        replica = host.replicas[message.group]
        replica.node.step(message)
        replica.pump()
        if self.random.random() < 0.002:
            self._mislead(message)

    def _mislead(self, message: Message) -> None:
        """Deliver a message to a wrong group or a wrong node."""
        host = self.random.choice(list(self.hosts.values()))
        replica = host.replicas[self.random.choice(self.groups)]
        if host.life and (replica.group, replica.id) != (message.group, message.receiver):
            replica.astray += 1
            replica.node.step(message)
            replica.pump()

    def disk_delay(self, node: NodeId) -> int:
        return self.random.randrange(1, 12 * TICK if node in self.slow_disks else TICK)

    # ------------------------------------------------------------------ events

    def _running(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.life and host.resumes_at <= self.now]

    def _replica(self, *, leading: bool) -> Replica | None:
        group = self.random.choice(self.groups)
        found = [host.replicas[group] for host in self._running()]
        found = [r for r in found if r.node.is_leader] if leading else found
        return self.random.choice(found) if found else None

    def _work(self) -> None:
        kind = self.random.random()
        replica = self._replica(leading=kind < 0.6)
        if replica is None:
            return
        if kind < 0.5:
            for number in range(self.random.choice((1, 1, 3))):
                replica.propose(b"%d.%d" % (self.now, number))
        elif kind < 0.56 and not self.is_storm:
            version = self.now + 2 if self.random.random() < 0.9 else self.random.randrange(self.now + 2)
            replica.change(version, self.random.random())
        elif kind < 0.59:
            replica.node.transfer(self.random.choice(list(self.hosts)))
        elif kind < 0.6:
            replica.node.step_down()
        elif kind < 0.92:
            replica.read()
        else:
            replica.save()
        replica.pump()

    def _leave(self) -> None:
        """In a random group, propose a change of members, let removed nodes leave, or pause a node; then repeat."""
        assert self.leaving is not None
        if self.now >= FAULTS:
            return
        group, chance = self.leaving.choice(self.groups), self.leaving.random()
        running = [host.replicas[group] for host in self._running()]
        if chance < 0.04 and running:
            self._pause([replica.host for replica in running])
        for replica in running:
            if chance < 0.7 and replica.node.is_leader:
                few = len(replica.node.membership.voters) < 3
                kind = self.leaving.choice((0.0, 0.7) if few else (0.0, 0.85))
                replica.change(self.now + 2, 0.85 if few and self.going.random() < 0.3 else kind)
                replica.pump()
            elif chance > 0.7 and self.leaving.random() < 0.5:
                replica.leave()
        self.at(self.leaving.randrange(1, TICK), self._leave)

    def _misfortune(self) -> None:
        kind = self.random.random()
        nodes, running = list(self.hosts), self._running()
        down = [host for host in self.hosts.values() if not host.life]
        if self.is_storm and kind < 0.9:
            # In a storm, only leaders have faults, so this only starts nodes or restores links for the next election.
            kind = self.random.choice((0.4, 0.9))
        if kind < 0.12 and running:
            self.strike(self.random.choice(running))
        elif kind < 0.13:
            self.suffer("crash of all", "all crash")
            for host in running:
                host.crash()
        elif kind < 0.45 and down:
            self.note(f"{down[0].id} starts")
            down[0].start()
        elif 0.45 < kind < 0.58:
            self._cut(self.random.sample(nodes, self.random.randrange(1, len(nodes))))
        elif 0.58 < kind < 0.66 and running:
            self._pause(running)
        elif kind > 0.75:
            self.cuts = set()

    def strike(self, host: Host) -> None:
        """Restart, crash, or cut off a node."""
        kind = self.random.random()
        if self.now >= FAULTS:
            return
        if kind < 0.4:
            host.stumble()
        elif kind < 0.7:
            self.suffer("crash", f"{host.id} crashes")
            host.crash()
        else:
            self._cut([host.id])

    def hush(self, replica: Replica) -> None:
        """With some probability, cut off a leader that has just proposed its own removal, and crash it later.

        The other nodes do not yet know of the removal at this time.
        """
        if self.now < FAULTS and self.going.random() < 0.9:
            self.suffer("cut", f"{replica.id}, which lets itself go, is not heard")
            self.cuts = {(replica.id, other) for other in self.hosts}
            replica.later(self.going.randrange(TICK, 3 * TICK), replica.host.stumble)

    def _pause(self, running: list[Host]) -> None:
        """Pause a node, preferably a leader; the first request after the pause is a read."""
        leading = [host for host in running for r in host.replicas.values() if r.node.is_leader]
        host, ticks = self.random.choice(leading or running), self.random.randrange(4, 5 * ELECTION_TICKS)
        self.suffer("pause", f"{host.id} stands still for {ticks} ticks")
        for replica in host.replicas.values():
            replica.later(ticks * TICK, replica.read)
        host.resumes_at = self.now + ticks * TICK

    def _cut(self, some: list[NodeId]) -> None:
        nodes = list(self.hosts)
        kind = self.random.random()
        self.cuts = set()
        for a in some:
            for b in nodes:
                if b not in some:
                    self.cuts |= {(a, b)} if kind < 0.3 else {(b, a)} if kind < 0.4 else {(a, b), (b, a)}
        self.suffer("cut", f"cut off {some}, {kind:.1f}")

    # ------------------------------------------------------------------ the end

    def _heal(self) -> None:
        self.note("faults end")
        self.loss, self.delay, self.slow_disks = 0.0, 4, set()
        for host in self.hosts.values():
            host.resumes_at = 0
            host.start()
        self.cuts = self._lasting_cut()
        for replica in [r for host in self.hosts.values() for r in host.replicas.values()]:
            replica.node.transfer(self.random.choice(sorted(self._without or self.hosts)))
            replica.pump()
        self._probes = dict.fromkeys(self.groups, False)
        self._quiet_since, self._quiet_elections = self.now, self.elections

    def _lasting_cut(self) -> set[tuple[NodeId, NodeId]]:
        """Return the links to cut: none, all links to and from one node, or both links between two nodes."""
        replicas = [r for host in self.hosts.values() for r in host.replicas.values()]
        halves = [h for r in replicas for h in (r.node.membership.voters, r.node.membership.outgoing) if h]
        leaders = [r.id for r in replicas if r.node.is_leader]
        alone = self.random.choice(leaders or list(self.hosts))
        kind = self.random.random()
        self._without: set[NodeId] = set()
        if kind < 0.3 or min(map(len, halves)) < 3:
            return set()
        others = [node for node in self.hosts if node != alone]
        if kind < 0.65:
            self.note(f"{alone} hears nobody from now on")
            self._without = {alone}
            return {(other, alone) for other in others}
        other = self.random.choice(others)
        self.note(f"{alone} and {other} do not hear each other from now on")
        self._without = {alone, other}
        return {(alone, other), (other, alone)}

    def _is_quiet(self) -> bool:
        """Return whether each group has committed a probe, and all its members have long had the same state."""
        done = [self._probe(group) for group in self.groups]
        if not all(done) or self.elections != self._quiet_elections:
            self._quiet_since, self._quiet_elections = self.now, self.elections
        return self.now - self._quiet_since >= QUIET

    def _probe(self, group: GroupId) -> bool:
        leaders = [h.replicas[group] for h in self.hosts.values() if h.replicas[group].node.is_leader]
        leader = max(leaders, key=lambda r: r.node.term, default=None)
        if leader is None:
            return False
        if not self._probes[group]:
            self._probes[group] = leader.propose(b"probe") and leader.node.commit > 0
            leader.pump()
            return False
        members = [n for n in leader.node.membership.nodes if n not in self._without]
        replicas = [self.hosts[n].replicas[group] for n in members]
        last = leader.node.status.last_index
        if leader.node.membership.is_joint:
            return False
        return all(r.applied == last and r.state == leader.state for r in replicas)

    def _check_end(self) -> None:
        for group in self.groups:
            states = [host.replicas[group].node.status for host in self.hosts.values()]
            is_quiet = self.now - self._quiet_since >= QUIET
            shown = "\n".join(map(str, states))
            self.checkers[group].check(is_quiet, f"the group does not recover\n{shown}")
            for host in self.hosts.values():
                replica = host.replicas[group]
                replica.node.validate()
                if self.leaving is None:  # a returned node refuses messages for its earlier replica
                    self.checkers[group].refuses_nothing(host.id, replica.node, replica.astray)
