"""A simulated cluster: complete nodes, built as in production, run in one process and are determined by one seed.

    World(seed).run()     a time with faults, then healing, then a time without; raises Violation with seed and story

    nodes      `ClusterNode.open`: threads, log, regions, chores       threads   world_threads: the seed schedules them
    disks      world_disk: a crash loses unsynced writes               network   world_network: delay, loss, duplicates
    clients    world_clients: requests with retries at other nodes     watch     world_watch: checks invariants
    operator   world_growth: nodes join and leave, in a `growing` world
    voters     world_voters: more nodes than voters of the meta group, on racks

The faults are late, lost, duplicated and reordered messages; one-way partitions, isolated nodes, and networks split in
halves; crashes of the process and power cuts at any moment, including during start; orderly stops; pauses; full and
slow disks; clocks that are wrong or jump. In some worlds with a growing cluster (see `beset`), faults also occur just
after a node has taken a step of a cluster change, and the messages that announce steps arrive late.

After the faults have ended, every cluster change must end, every group must accept a write, all replicas must be equal,
and no node may keep data, queries or calls that should have ended. If a run fails, the message contains its story,
which is the list of its last events.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import logging
import os
import pkgutil
import random
import secrets
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial

from cluster import history
from cluster.raft_checkers import Violation
from cluster.world_clients import TIMES, Client, Registers
from cluster.world_disk import WorldDisk
from cluster.world_growth import Operator
from cluster.world_hunt import Figures
from cluster.world_network import WorldNetwork, WorldPeers
from cluster.world_threads import Place, Threads, replaced
from cluster.world_voters import SETTLED_SECONDS, SILENCE_MS, Voters
from cluster.world_watch import Watch
from log_cutting import cut_log

from saros_cluster.data import region_apply
from saros_cluster.meta import machine as meta_machine
from saros_cluster.node.cluster_file import ClusterFile, NodeAddress
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.ready import RaftOptions, Role
from saros_cluster.remote import reader_service
from saros_cluster.remote.remote_reader import RemoteSeriesReader
from saros_cluster.remote.routed_view import RoutedView
from saros_cluster.routing import proposer
from saros_cluster.topology.topology import Node, Topology
from saros_engine.extensions.triggers import Triggers
from saros_engine.writes.automatic_schema import AutomaticSchema
from saros_engine.writes.writer import Writer
from saros_server.cluster import background, leader_balancing
from saros_server.cluster.node import ClusterNode, Environment
from saros_server.node.request_dedup_runner import Requests
from saros_storage import kernels
from saros_storage.base.errors import DiskFull, StoreClosed
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import FULL_ERRNOS
from saros_storage.kernels.jit import Kernel
from saros_storage.log import segmented_log

SECOND = 1_000_000_000
#: The number of ticks (time units) in a partition.
INTERVAL = 100
SLOTS = 16
#: After the faults have ended, every group must accept a write within this time.
LIVELY_SECONDS = 40
#: After the faults have ended, all changes must end within this time. It includes the three seconds that the source of
#: a move waits before it releases the slots.
CHANGES_SECONDS = 120
#: A growing world is called beset if faults also occur just after steps of a change. The constants are the fraction of
#: growing worlds that are beset, the probability of a fault after a step, and the maximum delay of this fault.
_BESET_SHARE, _BESET_OFTEN, _BESET_NS = 0.4, 0.06, 100_000_000
#: In a world, virtual time passes only while threads wait. The processor clock of a thread counts the waiting time,
#: multiplied by this factor, so that throttled flushes pause.
_WORK_FACTOR = 20
_CLUSTER = "123e4567-e89b-12d3-a456-426614174000"
_TOLD = ("group", "why", "chore", "to", "index", "node")
_STORY = int(os.environ.get("STORY", "60"))


class WorldClock:
    """A node's clocks.

    The wall clock may jump. The monotonic clock never jumps, but runs slightly too fast or too slow.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._began_ns = threads.random.randrange(10**15)
        self._millionths = threads.random.choice((0, 200, -200))
        self.skew_ns = 0

    def now_ns(self) -> int:
        return 1_700_000_000 * SECOND + self._threads.now_ns + self.skew_ns

    def monotonic_ns(self) -> int:
        now = self._threads.now_ns
        return self._began_ns + now + now * self._millionths // 1_000_000


class Life:
    """One life of a node, from its start to its crash or stop. A life owns the tasks that the node starts."""

    def __init__(self, member: Member, number: int) -> None:
        self.member = member
        self.name = f"node {member.id}.{number}"
        self.node: ClusterNode | None = None
        self.writer: Writer | None = None
        self.requests = Requests()
        self.stopping = False

    def __repr__(self) -> str:
        return self.name

    @property
    def host(self):
        assert self.node is not None
        return self.node.chores.host

    @property
    def machines(self):
        assert self.node is not None
        return self.node.database._parts.replicas.machines


class Member:
    """A node in the world: its disk, its clock, and its current life."""

    def __init__(self, world: World, id_: NodeId) -> None:
        self.world = world
        self.id = id_
        self.disk = WorldDisk(world.threads)
        self.clock = WorldClock(world.threads)
        self.lives = 0
        self.life: Life | None = None

    def start(self) -> None:
        self.lives += 1
        life = self.life = Life(self, self.lives)
        self.world.threads.spawn("open", life, lambda: self._open(life))

    def _open(self, life: Life) -> None:
        world = self.world
        outside = Environment(
            peers=lambda identity, *_: WorldPeers(world.network, identity.node, life),
            own=lambda _: lambda: None,
            randomness=random.Random(world.random.getrandbits(64)),
            thread_time_ns=lambda: world.threads.now_ns * _WORK_FACTOR,
        )
        while True:
            try:
                node = ClusterNode.open(
                    "/node",
                    world.file(self.id),
                    world.options,
                    self.disk,
                    self.clock,
                    world.raft,
                    outside,
                    meta_voter_timeout_ms=SILENCE_MS,
                )
            except (DiskFull, OSError) as error:
                if isinstance(error, OSError) and error.errno not in FULL_ERRNOS:
                    raise
                world.threads.sleep(0.5)
            else:
                break
        life.node = node
        triggers = Triggers(lambda: node.database.schema.catalogue)
        life.writer = Writer(node.database, AutomaticSchema(), self.clock, triggers)
        world.note(f"{life} is open")

    def crash(self, *, power: bool) -> None:
        life = self.life
        assert life is not None
        self.life = None
        disk = self.disk.crash(power=power)
        self.world.network.leave(self.id)
        self.world.threads.kill(life)
        self.disk = disk

    def stop(self) -> None:
        """Stop the node in an orderly way, and wait until it is down."""
        life = self.life
        assert life is not None
        assert life.node is not None
        node = life.node
        life.stopping = True

        def close() -> None:
            node.close()
            if self.life is life:
                self.life = None
                self.world.note(f"{life} has stopped")

        self.world.threads.spawn("close", life, close)

    @property
    def is_up(self) -> bool:
        return self.life is not None and self.life.node is not None and not self.life.stopping


@contextmanager
def _on_one_core() -> Iterator[None]:
    """Pin the process to one core: only one thread runs at a time, and switching threads is fastest on one core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(cores)[os.getpid() % len(cores)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@cache
def _warm_up() -> None:
    """Compile the kernels before a world runs.

    The compiler takes locks. Without this call, the first world of a process would be scheduled differently from later
    worlds.
    """
    for module in pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Kernel):
                value.compile()


class World:
    """A simulated cluster with its clients and faults."""

    def __init__(
        self,
        seed: int,
        *,
        seconds: int = 20,
        places: Sequence[Place] = (),
        growing: bool = False,
        few_voters: bool = False,
        nodes: Sequence[int] = (3, 3, 3, 4, 5),
    ) -> None:
        """Make a world whose number of nodes is chosen from `nodes`."""
        self.seed = seed
        self.voters = Voters(seed) if few_voters else None
        self.seconds = seconds
        self.threads = Threads(seed)
        self.random = chance = self.threads.random
        self.network = WorldNetwork(self.threads)
        self.trace = hashlib.blake2b(digest_size=16)
        self.story: list[str] = []
        count = chance.choice(nodes)
        if self.voters is not None:
            count = self.voters.count
        self.replicas = chance.choice((1, 2, 3, 3, 3))
        self.ids = [NodeId(n) for n in range(1, count + 1)]
        self.options = StoreOptions(
            time_partition_interval=INTERVAL,
            memtable_bytes_max=chance.choice((2_000, 20_000, 1 << 20)),
            memtables_total_bytes_max=count << 20,
            segment_bytes=chance.choice((2_000, 20_000)),
            log_bytes_max=chance.choice((10_000, 100_000)),
            page_rows=8,
            cache_bytes=1 << 16,
            migration_cpu_percent=(1, 10, 0)[seed // 2 % 3],
        )
        self.raft = RaftOptions(retained_bytes=chance.choice((0, 0, 1_000, 1 << 20)))
        #: The longest time until a crashed node restarts. After a long absence, a node needs snapshots.
        self.absence_ns = chance.choice((2, 4, 12)) * SECOND
        if self.voters is not None:
            self.absence_ns = self.voters.absence_ns
        self.places = [*places, *self._settings(seed)]
        self.watch = Watch(self)
        self.registers = Registers(self)
        self.members = {id_: Member(self, id_) for id_ in self.ids}
        self.clients = [Client(self, number) for number in range(1, chance.choice((2, 3, 4)) + 1)]
        #: The longest time between two faults. If faults are frequent, clients make little progress.
        self.peace_ns = chance.choice((1_500_000_000, 4_000_000_000))
        self.faults: Counter[str] = Counter()
        self.healed = False
        #: Members that the main thread will kill, wherever their tasks are at that moment.
        self._dying: list[Member] = []
        self.lost: set[NodeId] = set()
        #: Weights of the clients' operations: write, read, delete, flush, drop series, drop databases.
        self.work = (40, 40, 8, 3, *chance.choice(((2, 1), (2, 1), (12, 4))))
        #: The timestamps of each device's points.
        self.timestamps: Sequence[int] = TIMES
        self._founders = tuple(self.ids)
        self.replicas = min(self.replicas, len(self.ids))
        #: The generator for the faults of `beset`. It is separate from the world's generator, so these faults do not
        #: change the world's other random numbers.
        self.besetting = random.Random(f"steps {seed}")
        self.is_beset = growing and self.besetting.random() < _BESET_SHARE
        if self.is_beset:
            self.peace_ns = 8 * SECOND  # longer than in other worlds: changes need time without faults
        self.operator = Operator(self) if growing else None
        #: The last topology that the operator saw.
        self.last_topology = self.first_topology()
        self.watch.begins(self.last_topology)

    def _settings(self, seed: int) -> list[Place]:
        """Return the module attributes to replace while the world runs, with their values."""

        def numbered(thing: object) -> int:
            """Return a hash for elements of sets that does not depend on memory addresses.

            It makes the order of the elements reproducible.
            """
            if "number_in_world" not in thing.__dict__:
                thing.__dict__["number_in_world"] = next(self.threads.made)
            return thing.__dict__["number_in_world"]

        #: A seeded generator for tokens. They must be reproducible, since some collections are ordered by tokens.
        tokens = random.Random(f"tokens {seed}")
        salts = random.Random(f"salts {seed}")
        return [
            *(() if self.voters is None else self.voters.places),
            (secrets, "token_bytes", tokens.randbytes),
            (secrets, "randbits", tokens.getrandbits),
            (segmented_log, "_RESERVED_BYTES", 256),
            (segmented_log, "new_salt", lambda: salts.randrange(1, 1 << 32)),
            (proposer, "DEADLINE_SECONDS", self.random.choice((2.0, proposer.DEADLINE_SECONDS))),
            (region_apply, "_RELEASE_ENTRIES", self.random.choice((1, 3, 30))),
            (meta_machine, "_SAVED_EVERY", self.random.choice((2, 20))),
            (reader_service, "LEASE_NS", 6 * SECOND),
            (background, "_RENEW_EVERY", 1),
            (leader_balancing, "AGAIN_ROUNDS", 1),
            (RoutedView, "__hash__", numbered),
            (RemoteSeriesReader, "__hash__", numbered),
        ]

    def first_topology(self) -> Topology:
        """Return the initial topology."""
        file = self.file(self.ids[0])
        nodes = {id_: Node(at.peer, at.client, rack=at.rack) for id_, at in file.nodes.items()}
        return Topology.first(nodes, self.replicas, SLOTS, file.meta_voters)

    def rack(self, node: NodeId) -> str:
        """Return the rack of a node; "" if unknown."""
        return "" if self.voters is None else self.voters.rack(node)

    def addresses(self, node: NodeId) -> tuple[str, str]:
        """Return the addresses of a node for other nodes and for clients."""
        return f"127.0.0.1:{2 * node}", f"127.0.0.1:{2 * node + 1}"

    def file(self, node: NodeId) -> ClusterFile:
        nodes = {id_: self._address(id_) for id_ in self._founders}
        joined = None if node in nodes else self._address(node)
        bound = None if self.voters is None else self.voters.bound
        return ClusterFile(_CLUSTER, node, self.replicas, SLOTS, nodes, joined=joined, meta_voters=bound)

    def _address(self, node: NodeId) -> NodeAddress:
        return NodeAddress(*self.addresses(node), self.rack(node))

    def topology(self) -> Topology:
        """Return the newest topology that any node has."""
        databases = [m.life.node.database for m in self.members.values() if m.is_up]
        found = max(databases, key=lambda database: database._parts.schema.version, default=None)
        return self.last_topology if found is None else found.routing.topology

    def welcome(self, node: NodeId) -> None:
        """Start an admitted node."""
        member = self.members[node] = Member(self, node)
        member.start()
        self.note(f"{member.life} starts: it is to join")

    def lose(self, node: NodeId) -> None:
        """Kill a node permanently."""
        self.lost.add(node)
        member = self.members.get(node)
        if member is not None:
            self._die(member)

    # ------------------------------------------------------------------ running

    def run(self) -> World:
        _warm_up()
        gc.disable()
        try:
            with (
                _on_one_core(),
                self.threads.installed(),
                replaced(self.places),
                self.watch.looking_on(),
                self._logged(),
            ):
                try:
                    self._live()
                finally:
                    self.threads.close()
        except Exception as error:
            raise Violation(self.told(error)) from error
        finally:
            gc.enable()
        return self

    @property
    def figures(self) -> Figures:
        """Return the figures of the run."""
        operations = sum(client.operations for client in self.clients)
        return Figures(1, self.threads.now_ns / SECOND, operations, self.watch.led, self.faults)

    def told(self, error: BaseException) -> str:
        return "\n".join(
            [
                f"seed {self.seed}, at {self.threads.now_ns / 1e9:.3f} s: {type(error).__name__}: {error}",
                *self.story[-_STORY:],
            ]
        )

    def _live(self) -> None:
        self.note(f"{len(self.ids)} nodes, {self.replicas} replicas")
        for member in self.members.values():
            member.start()
        for client in self.clients:
            client.start()
        if self.operator is not None:
            self.operator.start()
        until = self.seconds * SECOND
        while self.threads.now_ns < until:
            self.pass_time(self.random.randrange(self.peace_ns))
            self.misfortune()
        self.heal()
        self.settle()

    def pass_time(self, ns: int) -> None:
        until = self.threads.now_ns + ns
        while self.threads.now_ns < until:
            self.threads.park(until)
            while self._dying:
                self.crash_now(self._dying.pop())
            self.check()

    def check(self) -> None:
        for who, error in self.threads.failures:
            text = "".join(traceback.format_exception(error))
            raise Violation(f"{who} ended with {error!r}\n{text}")
        for member in self.members.values():
            if member.is_up:
                assert member.life is not None
                self.watch.check(member.life)

    def note(self, text: str) -> None:
        line = f"{self.threads.now_ns / 1e9:10.4f} {text}"
        self.trace.update(line.encode())
        self.story.append(line)

    # ------------------------------------------------------------------ faults

    def suffer(self, fault: str, text: str) -> None:
        """Record a fault."""
        self.faults[fault] += 1
        self.note(text)

    def misfortune(self) -> None:
        if self.voters is not None and self.voters.misfortune(self):
            return
        member = self.random.choice(list(self.members.values()))
        kind = self.random.choice(
            ("crash", "crash", "cut", "cut", "mend", "pause", "full", "slow", "clock", "stop", "transfer", "compact")
        )
        getattr(self, f"_{kind}")(member)

    def beset(self, member: Member) -> None:
        """With some probability, schedule a fault of a member that has taken a step of a change."""

        def befall() -> None:
            if not self.healed:
                getattr(self, self.besetting.choice(("_doom_soon", "_doom_soon", "_pause", "_full", "_cut_off")))(
                    member
                )

        if self.is_beset and not self.healed and self.besetting.random() < _BESET_OFTEN:
            self.threads.after(self.besetting.randrange(_BESET_NS), befall)

    def _doom_soon(self, member: Member) -> None:
        self._doom(member, 12)

    def _cut_off(self, member: Member) -> None:
        self._cut(member)
        self.threads.after(self.besetting.randrange(4 * SECOND), lambda: self._mend(member))

    def _crash(self, member: Member) -> None:
        """Crash a member now, or after one of its next disk operations."""
        if self.random.random() < 0.5:
            self.crash_now(member)
        else:
            self._doom(member, 40)

    def be_envied(self, member: Member) -> None:
        """With some probability, crash a member that is about to install a snapshot."""
        if not self.healed and self.random.random() < 0.3:
            self._doom(member, 12)

    def _doom(self, member: Member, operations: int) -> None:
        member.disk.die_after(self.random.randrange(1, operations), lambda: self._die(member))

    def _die(self, member: Member) -> None:
        self._dying.append(member)
        self.threads.wake(self.threads.main)

    def crash_now(self, member: Member) -> None:
        """Crash the process or cut the power. The node restarts later, unless it is in `lost`."""
        if member.id in self.lost:
            self.members.pop(member.id, None)
        if member.life is None:
            return
        power = self.random.random() < 0.6
        how = "power cut" if power else "kill"
        self.suffer(how, f"{member.life} dies: {how}")
        member.crash(power=power)
        self.threads.after(self.random.randrange(self.absence_ns), lambda: self._rise(member))

    def _rise(self, member: Member) -> None:
        if member.life is None and member.id in self.members:
            member.start()
            self.note(f"{member.life} starts")

    def _stop(self, member: Member) -> None:
        if member.is_up:
            self.suffer("stop", f"{member.life} is told to stop")
            member.stop()
            self._rise_later(member)

    def _rise_later(self, member: Member) -> None:
        def look() -> None:
            if member.life is None:
                self._rise(member)
            else:
                self.threads.after(SECOND, look)

        self.threads.after(SECOND, look)

    def _cut(self, member: Member) -> None:
        ids = self.ids
        kind = self.random.randrange(3)
        if kind == 0:
            cuts = {(member.id, other) for other in ids} | {(other, member.id) for other in ids}
        elif kind == 1:
            half = set(self.random.sample(ids, len(ids) // 2))
            cuts = {(a, b) for a in ids for b in ids if (a in half) != (b in half)}
        else:
            cuts = {(member.id, self.random.choice(ids))}
        self.network.cuts |= {(a, b) for a, b in cuts if a != b}
        self.suffer("cut", f"cut {sorted(self.network.cuts)}")

    def _mend(self, _: Member) -> None:
        self.network.cuts.clear()
        self.note("cuts are mended")

    def _pause(self, member: Member) -> None:
        if member.life is not None:
            ns = self.random.choice((300_000_000, 2 * SECOND, 5 * SECOND))
            self.suffer("pause", f"{member.life} pauses for {ns / 1e9} s")
            self.threads.pause(member.life, self.threads.now_ns + ns)

    def _full(self, member: Member) -> None:
        member.disk.is_full = True
        self.suffer("full disk", f"the disk of node {member.id} is full")
        self.threads.after(self.random.randrange(3 * SECOND), lambda: self._room(member))

    def _room(self, member: Member) -> None:
        member.disk.is_full = False

    def _slow(self, member: Member) -> None:
        kind = self.random.randrange(4)
        if kind == 3:
            self.slow_down(member)
            self.threads.after(self.random.randrange(4, 20) * SECOND, lambda: self.speed_up(member))
            return
        member.disk.sync_ns, member.disk.sync_min_ns = (200_000, 2_000_000, 300_000_000)[kind], 0
        self.suffer("slow disk", f"syncs of node {member.id} take up to {member.disk.sync_ns / 1e6} ms")

    def slow_down(self, member: Member) -> None:
        """Slow down the disk of a node: each sync takes seconds."""
        member.disk.sync_ns, member.disk.sync_min_ns = 3 * SECOND, SECOND
        self.suffer("very slow disk", f"syncs of node {member.id} take 1 to 3 s")

    def speed_up(self, member: Member) -> None:
        """Restore the normal speed of a node's disk."""
        member.disk.sync_ns, member.disk.sync_min_ns = 1_000_000, 0
        self.note(f"syncs of node {member.id} take up to 1 ms")

    def _clock(self, member: Member) -> None:
        member.clock.skew_ns = self.random.choice((0, 1, -1)) * self.random.randrange(3_600 * SECOND)
        self.suffer("clock", f"the clock of node {member.id} jumps to {member.clock.skew_ns / 1e9} s")

    def _transfer(self, member: Member) -> None:
        if member.is_up:
            assert member.life is not None
            host = member.life.host
            led = [group for group, status in host.statuses().items() if status.role is Role.LEADER]
            if led:
                group, to = self.random.choice(led), self.random.choice(self.ids)
                self.suffer("transfer", f"{member.life} hands group {group} to node {to}")
                host.transfer(group, to)

    def _compact(self, member: Member) -> None:
        """Flush one node or all running nodes, and truncate their logs.

        A node that was absent must then fetch files.
        """
        for each in [member] if self.random.random() < 0.5 else list(self.members.values()):
            if each.is_up:
                assert each.life is not None
                assert each.life.node is not None
                self.note(f"{each.life} puts everything into files")
                self.threads.spawn("compact", each.life, partial(self._compact_all, each.life.node))

    def _compact_all(self, node: ClusterNode) -> None:
        try:
            cut_log(node)
        except (DiskFull, OSError, StoreClosed):
            return

    # ------------------------------------------------------------------ after the faults

    def heal(self) -> None:
        self.note("healed")
        self.healed = True
        self.network.heal()
        for member in self.members.values():
            member.disk.is_full = False
            member.disk.sync_ns, member.disk.sync_min_ns = 1_000_000, 0
            member.disk.live_on()
        for client in self.clients:
            client.stopping = True
        if self.operator is not None:
            self.operator.stopping = True

    def settle(self) -> None:
        """Wait until clients have ended, every group accepts a write, replicas are equal, and no leftovers remain."""
        until = self.threads.now_ns + LIVELY_SECONDS * SECOND
        waits = [
            ("a node does not come up", lambda: all(member.is_up for member in self.members.values())),
            ("a client's operation does not end", lambda: all(client.done for client in self.clients)),
        ]
        for why, holds in waits:
            self._await(why, holds, until)
        if self.operator is not None:
            self._see_changes_through(self.operator)
            until = self.threads.now_ns + LIVELY_SECONDS * SECOND
        if self.voters is not None:
            self._settle_voters(self.voters)
            until = self.threads.now_ns + LIVELY_SECONDS * SECOND
        probes = [self.registers.probe(id_) for id_ in self.ids]
        self._await("a probe does not end", lambda: all(probe.done for probe in probes), until)
        for probe in probes:
            if probe.error is not None:
                raise Violation(f"after healing {probe.name} fails: {probe.error!r}; {self._states()}")
        self._await("replicas do not become equal", self.watch.is_quiet, until)
        self.watch.check_equal()
        self.note("replicas are equal")
        self.check_histories()
        self._await("something is left open", lambda: not self.watch.left_open(), self.threads.now_ns + 45 * SECOND)

    def _settle_voters(self, voters: Voters) -> None:
        until = self.threads.now_ns + SETTLED_SECONDS * SECOND
        while (problem := voters.problem(self)) is not None:
            if self.threads.now_ns > until:
                raise Violation(f"{problem}: {self._states()}")
            self.pass_time(100_000_000)
        self.note("the voters are as they should be")

    def _see_changes_through(self, operator: Operator) -> None:
        """Wait until every change has ended and the removed nodes have dropped their groups.

        Then shut the removed nodes down.
        """
        until = self.threads.now_ns + CHANGES_SECONDS * SECOND
        self._await("a change does not end", lambda: operator.done, until)
        gone = [member for id_, member in self.members.items() if id_ not in self.ids]
        self._await(
            "who was removed keeps its groups",
            lambda: all(member.is_up and member.life is not None and not member.life.machines for member in gone),
            until,
        )
        for member in gone:
            del self.members[member.id]
            member.crash(power=False)
        self.note("no change is under way")

    def _await(self, why: str, holds, until: int) -> None:
        while not holds():
            if self.threads.now_ns > until:
                raise Violation(f"{why}: {self._states()}")
            self.pass_time(100_000_000)

    def _states(self) -> str:
        lines = [""]
        for member in self.members.values():
            if not member.is_up:
                lines.append(f"  node {member.id} is not up; {self.threads.tasks_of(member.life)}")
                continue
            assert member.life is not None
            for group, status in member.life.host.statuses().items():
                lines.append(
                    f"  node {member.id} group {group}: {status.role.value} of {status.leader}, term {status.term}, "
                    f"commit {status.commit}, applied {status.applied}, last {status.last_index}"
                )
        lines.append(f"  left open: {self.watch.left_open()}")
        return "\n".join(lines)

    def check_histories(self) -> None:
        operations = self.registers.history
        wrong = [
            *history.linearizable(operations),
            *history.never_goes_back(operations),
            *history.weak_reads_invent_nothing(operations),
        ]
        if wrong:
            raise Violation("\n".join(violation.text() for violation in wrong[:3]))

    # ------------------------------------------------------------------ logs

    @contextmanager
    def _logged(self) -> Iterator[None]:
        """Add the nodes' log records to the story within this context."""
        handler = _Story(self)
        loggers = [logging.getLogger(name) for name in ("saros_cluster", "saros_server", "saros_storage", "concurrent")]
        before = [(logger.propagate, logger.level) for logger in loggers]
        for logger in loggers:
            logger.addHandler(handler)
            logger.propagate = False
            logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            for logger, (propagate, level) in zip(loggers, before, strict=True):
                logger.removeHandler(handler)
                logger.propagate = propagate
                logger.setLevel(level)


class _Story(logging.Handler):
    """A log handler that writes to the story. It takes no lock, since a lock would be another scheduling point."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def handle(self, record: logging.LogRecord) -> bool:
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        task = self._world.threads.current
        if not self._world.threads.is_here or task is None or task.killed:
            return
        more = {key: record.__dict__[key] for key in _TOLD if key in record.__dict__}
        self._world.note(f"{task}: {record.getMessage()} {more}")
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            self._world.note("".join(traceback.format_exception(error)))
            if record.levelno >= logging.ERROR and not _is_of_full_disk(error):
                self._world.threads.failures.append((f"{task}: {record.getMessage()}", error))


def _is_of_full_disk(error: BaseException) -> bool:
    return isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in FULL_ERRNOS)
