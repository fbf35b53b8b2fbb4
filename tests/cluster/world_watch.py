"""The observer of a simulated cluster: invariants that are checked at every entry, independently of clients.

one leader          a group has at most one leader per term, among all lives of all nodes
one log             the entry applied at an index is the same on all nodes, at all times
in order            a replica applies entries without gaps
one verdict         an entry has the same effect and outcome on all replicas, even in a replay
one effect          a request has an effect on a slot at only one index
no trouble          no group stops, no flusher gives up, no thread ends with an exception
equal               in a quiet cluster, replicas at the same entry have the same schema, points and known requests
voters              the voters of the meta group change by the rules (`world_voters`)
closed              in a quiet cluster, no queries, reads, proposals or calls are open
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from cluster.world_clients import DEVICES, read_points
from cluster.world_threads import Task, replaced
from cluster.world_voters import Rules

from saros_cluster.data.command import NO_REQUEST, Command, Request, decode_command
from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.meta.machine import MetaMachine, decode_meta_entry
from saros_cluster.meta.state import Grow
from saros_cluster.multiraft.host import GroupHost
from saros_cluster.multiraft.state_machine import Outcome, StateMachine
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership
from saros_cluster.raft.messages import TERMS_OF_A_GROUP, Entry, EntryKind, GroupId, Snapshot
from saros_cluster.raft.ready import Restored, Role
from saros_cluster.topology.topology import META, Topology
from saros_storage.io.disk import FULL_ERRNOS
from saros_storage.region import Region

if TYPE_CHECKING:
    from cluster.cluster_world import Life, World

#: Prefixes of the names of threads that run as long as their node.
_LASTING = (
    "receive",
    "saros-raft",
    "saros-flush",
    "saros-chores",
    "saros-groups",
    "saros-growing",
    "saros-eviction",
    "saros-sync",
)


class Broken(AssertionError):
    """A violated invariant."""


class Watch:
    """The observer of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._leaders: dict[tuple[GroupId, int], NodeId] = {}
        #: The term, kind and data of each entry, by group and index.
        self._entries: dict[tuple[GroupId, int], tuple[int, EntryKind, bytes]] = {}
        #: For each entry, by group and index: True if it had an effect, and the code of its error.
        self._verdicts: dict[tuple[GroupId, int], tuple[bool, int | None]] = {}
        #: The index of the entry with each request's effect. The key contains the group, the request, and a slot with
        #: the move that brought the slot, or None if the request has no slots.
        self._effects: dict[tuple[GroupId, int, Request, tuple[int, int] | None], int] = {}
        #: The group and the node's life of each machine.
        self._places: WeakKeyDictionary[StateMachine, tuple[GroupId, Life]] = WeakKeyDictionary()
        self._last: WeakKeyDictionary[StateMachine, int] = WeakKeyDictionary()
        #: The last entry that each machine's installed snapshot contains. Queued entries up to this entry may still be
        #: applied, but have no effect.
        self._overtaken: WeakKeyDictionary[StateMachine, int] = WeakKeyDictionary()
        #: The tasks that are applying an entry; True if the entry has already had an effect.
        self._applying: dict[Task, bool] = {}
        self._rules = Rules()

    @contextmanager
    def looking_on(self) -> Iterator[None]:
        """Observe all nodes within the context."""
        watch = self
        add, turn = GroupHost.add, GroupHost.turn
        apply_region, apply_meta, take_effect = RegionMachine._apply, MetaMachine._apply, Region.take_effect
        install_region, install_meta = RegionMachine.install, MetaMachine.install

        def added(host: GroupHost, group: GroupId, restored: Restored, machine: StateMachine, *rest) -> None:
            task = watch._world.threads.current
            assert task is not None
            watch._places[machine] = (group, task.owner)
            add(host, group, restored, machine, *rest)
            status = host.status(group)
            assert status is not None
            watch._last[machine] = status.applied

        def turned(host: GroupHost) -> None:
            turn(host)
            watch.turned(host)

        def applied_region(machine: RegionMachine, entry: Entry) -> Outcome:
            return watch.applied(machine, entry, apply_region)

        def applied_meta(machine: MetaMachine, entry: Entry) -> Outcome:
            return watch.applied(machine, entry, apply_meta)

        def effected(region: Region, index: int, mutation: object, *rest) -> None:
            task = watch._world.threads.current
            assert task is not None
            watch._applying[task] = True
            take_effect(region, index, mutation, *rest)

        def installed_region(machine: RegionMachine, snapshot: Snapshot) -> None:
            watch.installing(machine)
            install_region(machine, snapshot)
            watch.installed(machine, snapshot)

        def installed_meta(machine: MetaMachine, snapshot: Snapshot) -> None:
            watch.installing(machine)
            install_meta(machine, snapshot)
            watch.installed(machine, snapshot)

        with replaced(
            [
                (GroupHost, "add", added),
                (GroupHost, "turn", turned),
                (RegionMachine, "_apply", applied_region),
                (MetaMachine, "_apply", applied_meta),
                (Region, "take_effect", effected),
                (RegionMachine, "install", installed_region),
                (MetaMachine, "install", installed_meta),
            ]
        ):
            yield

    def begins(self, topology: Topology) -> None:
        """Record the initial topology."""
        self._obey(self._rules.applied(0, topology.wanted[META]))

    # ------------------------------------------------------------------ at every step

    def turned(self, host: GroupHost) -> None:
        """Check a host after it has handled its input."""
        for group, status in host.statuses().items():
            if group == META:
                self._obey(self._rules.turned(status))
            if status.role is Role.LEADER:
                known = self._leaders.setdefault((group, status.term), status.node)
                if known != status.node:
                    raise Broken(f"nodes {known} and {status.node} both lead group {group} in term {status.term}")

    def _obey(self, problem: str | None) -> None:
        if problem is not None:
            raise Broken(problem)

    @property
    def led(self) -> int:
        """Return the number of terms that had a leader, added over all groups."""
        return len(self._leaders)

    def installing(self, machine: StateMachine) -> None:
        """Record that a replica is about to be replaced."""
        self._world.be_envied(self._places[machine][1].member)

    def installed(self, machine: StateMachine, snapshot: Snapshot) -> None:
        """Record that a replica has been replaced."""
        group, life = self._places[machine]
        self._overtaken[machine] = snapshot.position.index
        self._last[machine] = max(self._last[machine], snapshot.position.index)
        self._world.note(f"{life} has a snapshot of group {group} at {snapshot.position.index}")

    def applied(self, machine, entry: Entry, apply) -> Outcome:
        """Let a machine apply an entry, and check it."""
        group, _ = self._places[machine]
        self._check_entry(machine, group, entry)
        task = self._world.threads.current
        assert task is not None
        self._applying[task] = False
        known = machine._applied if isinstance(machine, MetaMachine) else machine.replica.validated_index
        try:
            outcome = apply(machine, entry)
            effect = self._applying[task]
        finally:
            del self._applying[task]
        if entry.kind is EntryKind.DATA:
            is_new = entry.index > known
            if isinstance(machine, RegionMachine):
                self._check_region(machine, group, entry, outcome, effect=effect, is_new=is_new)
            elif is_new:
                self._check_verdict(group, entry.index, (outcome is None, getattr(outcome, "code", None)))
                if isinstance(decode_meta_entry(entry.data)[1], Grow):
                    self._world.beset(self._places[machine][1].member)
        return outcome

    def _check_entry(self, machine: StateMachine, group: GroupId, entry: Entry) -> None:
        _, life = self._places[machine]
        last = self._last[machine]
        if entry.index > self._overtaken.get(machine, 0):
            if entry.index != last + 1:
                raise Broken(f"{life} applies entry {entry.index} of group {group} behind {last}")
            self._last[machine] = entry.index
        if group == META and entry.kind is EntryKind.MEMBERSHIP:
            self._obey(self._rules.applied(entry.index, Membership.decode(entry.data)))
        found = (entry.term, entry.kind, entry.data)
        known = self._entries.setdefault((group, entry.index), found)
        if known != found:
            raise Broken(f"entry {entry.index} of group {group} is {known}, and for {life} {found}")

    def _check_region(
        self, machine: RegionMachine, group: GroupId, entry: Entry, outcome: Outcome, *, effect: bool, is_new: bool
    ) -> None:
        if entry.index <= machine.replica.released:
            return  # the files contain the entry's effect
        code = getattr(outcome, "code", None)
        command = decode_command(entry.data)
        if is_new:
            self._check_verdict(group, entry.index, (effect, code))
            if command.transfer is not None:
                self._world.beset(self._places[machine][1].member)
        elif command.transfer is not None:
            return  # a replayed transfer has no effect, since the state file already has its effect
        elif self._verdicts.get((group, entry.index), (effect, None))[0] != effect:
            raise Broken(f"entry {entry.index} of group {group} was judged otherwise before it was replayed")
        if effect and is_new and command.request != NO_REQUEST:
            self._check_request(machine, group, entry.index, command)

    def _check_request(self, machine: RegionMachine, group: GroupId, at: int, command: Command) -> None:
        """Check that a request takes effect on a slot only once.

        The request may take effect again on slots that arrived later, or in a group that reuses the number of an
        abandoned group.
        """
        which, replica = at // TERMS_OF_A_GROUP, machine.replica
        tablets = [placed._replace(content=placed.tablet) for placed in command.mutation.tablets]
        places = replica.partly.get(at, range(len(tablets)))
        slots = {slot for place in places for slot in machine._validator.slots_of(tablets[place])}
        if command.mutation.deletions:
            here = {replica.ownership.slot(*partition.key) for partition in replica.region.partitions}
            slots |= {slot for slot in here if replica.ownership.owns(slot)} - replica.spared.get(at, frozenset())
        on_slots = tablets or command.mutation.deletions
        for touched in [(slot, replica.ownership.since(slot)) for slot in sorted(slots)] if on_slots else [None]:
            index = self._effects.setdefault((group, which, command.request, touched), at)
            if index != at:
                raise Broken(f"request {command.request} has its effect in group {group} at {index} and at {at}")

    def _check_verdict(self, group: GroupId, index: int, verdict: tuple[bool, int | None]) -> None:
        known = self._verdicts.setdefault((group, index), verdict)
        if known != verdict:
            raise Broken(f"entry {index} of group {group} comes to {known} on one node, {verdict} on another")

    def check(self, life: Life) -> None:
        """Check a running node. The world calls this from time to time."""
        host = life.host
        if host.failures and not host.closed:
            raise Broken(f"{life} has stopped groups: {dict(host.failures)}")
        for group, machine in life.machines.items():
            problem = machine.region.flusher.problem
            if problem is not None and not (isinstance(problem, OSError) and problem.errno in FULL_ERRNOS):
                raise Broken(f"{life} flushes group {group} no more: {problem!r}")

    # ------------------------------------------------------------------ in a quiet cluster

    def _lives(self) -> list[Life]:
        return [member.life for member in self._world.members.values() if member.is_up and member.life is not None]

    def is_quiet(self) -> bool:
        """Return whether all replicas have applied the same entries."""
        lives = self._lives()
        groups = {group for life in lives for group in life.host.statuses()}
        for group in groups:
            found = [life.host.status(group) for life in lives if life.host.status(group) is not None]
            if len({s.applied for s in found} | {s.last_index for s in found}) > 1:
                return False
        return True

    def check_equal(self) -> None:
        """Check that replicas of a group that have applied the same entries are equal."""
        found: dict[tuple[GroupId, int], tuple[Life, dict[str, object]]] = {}
        for life in self._lives():
            for group, machine in life.machines.items():
                status = life.host.status(group)
                picture = self._picture(machine)
                other, known = found.setdefault((group, status.applied), (life, picture))
                for what in picture:
                    if known[what] != picture[what]:
                        raise Broken(
                            f"group {group} at {status.applied}: {what} differ\n{other}: {known[what]}\n"
                            f"{life}: {picture[what]}"
                        )

    def _picture(self, machine: RegionMachine) -> dict[str, object]:
        region = machine.region
        return {
            "schemas": region.schema.dump(),
            "requests": machine.replica.requests.dump(),
            "points": points_of(region),
        }

    def left_open(self) -> list[str]:
        """Return queries, reads, proposals and calls that are still open."""
        found = []
        for life in self._lives():
            node = life.node
            assert node is not None
            for group, machine in life.machines.items():
                if machine.region._views:
                    found.append(f"{life}: {machine.region._views} views of group {group}")
            found += self._left_over(life)
            readers = node.chores._readers
            if readers.open_queries or readers.open_readers or readers.open_views or readers.streams:
                found.append(f"{life}: readers of other nodes' queries")
            for group, waiting in life.host._groups.items():
                if waiting.proposals or waiting.reads:
                    found.append(f"{life}: proposals or reads of group {group}")
            tasks = [t.name for t in self._world.threads.tasks_of(life) if not t.name.startswith(_LASTING)]
            if tasks:
                found.append(f"{life}: {tasks}")
        return found

    def _left_over(self, life: Life) -> list[str]:
        """Return the data that a node should not have: groups, slots, and files in transit."""
        node, disk = life.node, life.member.disk
        topology = node.database.routing.topology
        mine = {str(group) for group in topology.groups_of(life.member.id) if group != META}
        found = [f"{life}: group {name}" for name in disk.list("/node/groups") if name not in mine]
        found += [f"{life}: {name} that arrives" for name in disk.list("/node/arriving")]
        for group, machine in life.machines.items():
            found += [
                f"{life}: {partition.key} in group {group}"
                for partition in machine.region.partitions
                if topology.table.route(*partition.key).head != group or partition.underlay is not None
            ]
        return found


def points_of(region: Region) -> dict[str, dict[int, object]]:
    """Return all points of a region that clients may have written, by device."""
    view = region.view()
    try:
        return {device: points for device in DEVICES if (points := read_points(view, device))}
    finally:
        view.close()
