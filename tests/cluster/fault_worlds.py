"""Simulated clusters with one particular fault each.

The worlds:

    OneWayCutWorld     slots move while a node gets no messages from another node, which still gets its messages
    ClockWorld         the wall clock of a node jumps an hour forward, and back; points have a TTL; slots move
    FullJoinerWorld    a node whose disk is full joins
    LostRackWorld      five nodes are in two racks, and one rack is down for a while
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cluster.cluster_world import SECOND, SLOTS, Life
from cluster.directed_world import DEVICE, START_NS, DirectedWorld
from cluster.raft_checkers import Violation
from cluster.world_clients import PASSING, asked, read_points, view_of, write

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader, OutcomeUnknown
from saros_cluster.topology.commands import Admit, Begin
from saros_cluster.topology.topology import META, NodeState
from saros_storage.base.write_request import UNNUMBERED
from saros_storage.schema import SetTtl

#: The time within which a change of the topology must end if no fault delays it.
_CHANGE_NS = 120 * SECOND
#: The duration of a fault.
_FAULT_NS = 15 * SECOND
HOUR_NS = 3_600 * SECOND


class _ChangingWorld(DirectedWorld):
    """A directed world whose topology changes."""

    def begin_move(self) -> None:
        """Give some slots to another group."""
        head = self.random.choice(self.ids)
        slots = tuple(sorted(self.random.sample(range(SLOTS), 4)))
        self.tell(Begin(owners={head: slots}), self.ids[0])

    def has_changed(self) -> bool:
        """Return whether no change is in progress."""
        return self.topology().change is None

    def await_change(self) -> None:
        """Wait until the change ends. Raises Violation if it does not end in time."""
        self.wait_until("a change does not end", self.has_changed, _CHANGE_NS)


class OneWayCutWorld(_ChangingWorld):
    """A world in which slots move while one node does not hear another node."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, replicas=3, nodes=(4, 5))
        #: True if the change ended while the link was still cut.
        self.ended_meanwhile = False

    def befall(self) -> None:
        """See the module."""
        self.begin_move()
        deaf, heard = self._ends()
        self.pass_time(self.random.randrange(2 * SECOND))
        self.network.cuts.add((heard, deaf))
        self.suffer("one-way cut", f"node {deaf} does not hear node {heard} any more, which hears it")
        self.keep_writing(_FAULT_NS, [id_ for id_ in self.ids if id_ not in (deaf, heard)])
        self.ended_meanwhile = self.has_changed()
        self.network.cuts.clear()
        self.await_change()

    def _ends(self) -> tuple[NodeId, NodeId]:
        """Return two nodes; the link from the second node to the first will be cut.

        In half of the worlds, the second node is the leader of the meta group.
        """
        leader = self.leaders().get(META)
        heard = leader if leader is not None and self.random.random() < 0.5 else self.random.choice(self.ids)
        return self.random.choice([id_ for id_ in self.ids if id_ != heard]), heard


class ClockWorld(_ChangingWorld):
    """A world in which a node's wall clock jumps.

    Its points are 50 minutes old, and expire when they are 90 minutes old.
    """

    _AGES_MS = tuple(range(3_000_000, 3_003_200, 100))
    _TTL_MS = 5_400_000

    def befall(self) -> None:
        """See the module."""
        member = self.members[self.random.choice(self.ids)]
        now_ms = member.clock.now_ns() // 1_000_000
        self._times = sorted(now_ms - age for age in self._AGES_MS)
        self._ask(self.ids[0], lambda life: write(life, "root.young.d", self._times, 7, UNNUMBERED))
        self._ask(self.ids[0], self._set_ttl)
        for skew_ns in (HOUR_NS, 0, -HOUR_NS, 0):
            member.clock.skew_ns = skew_ns
            self.suffer("clock", f"the clock of node {member.id} jumps to {skew_ns / 1e9:.0f} s")
            self.begin_move()
            self._work_through(member.id)
            self.await_change()
        for node in self.ids:
            found = self._ask(node, lambda life: self._read(life, "root.young.d"))
            if found != dict.fromkeys(self._times, 7):
                raise Violation(f"node {node} lacks {sorted(set(self._times) - set(found))} after its clock jumped")

    def _work_through(self, node: NodeId) -> None:
        """Do all kinds of work on the node with the wrong clock, so that it meets points that it considers expired."""
        self.keep_writing(3 * SECOND, [node])
        for maintain in (self._flush, self._expire, self._merge):
            self._ask(node, maintain)
        self.keep_writing(3 * SECOND)

    def _ask(self, node: NodeId, work: Callable[[Life], object]):
        """Ask a node until it answers, and return its reply."""
        until = self.threads.now_ns + START_NS
        while True:
            try:
                return asked(self, node, "work", work, 20.0)
            except PASSING as error:
                if self.threads.now_ns > until:
                    raise Violation(f"node {node}: {error!r}") from error
                self.pass_time(SECOND)

    def _set_ttl(self, life: Life) -> None:
        life.node.database.change_schema([SetTtl("root.young.**", self._TTL_MS)])

    def _read(self, life: Life, device: str) -> dict[int, object]:
        view = view_of(life, "strong")[0]
        try:
            return read_points(view, device)
        finally:
            view.close()

    def _flush(self, life: Life) -> None:
        life.node.database.flush()

    def _merge(self, life: Life) -> None:
        life.node.database.merge()

    def _expire(self, life: Life) -> None:
        for machine in life.machines.values():
            machine.region.expire()


class FullJoinerWorld(_ChangingWorld):
    """A world in which the disk of a joining node is full."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, replicas=3, nodes=(3,))

    def befall(self) -> None:
        """See the module."""
        joiner = NodeId(len(self.ids) + 1)
        self.tell(Admit(*self.addresses(joiner), "joiner"), self.ids[0])
        self.welcome(joiner)
        member = self.members[joiner]
        member.disk.sync_ns = 1_000_000
        if self.random.random() < 0.5:
            self._fill(joiner)  # before the node has made any file
        else:
            self.wait_until("a node does not come up", lambda: member.is_up, START_NS)
        self.tell_begin(joiner)
        self.pass_time(self.random.randrange(2 * SECOND))
        self._fill(joiner)
        self.keep_writing(_FAULT_NS, tuple(self.ids))
        if joiner in self.topology().in_state(NodeState.IN) and self.has_changed():
            self.note("the joining node had everything before its disk was full")
        member.disk.is_full = False
        self.note(f"the disk of node {joiner} has room again")
        self.await_change()
        self.ids = self.topology().in_state(NodeState.IN)
        if joiner not in self.ids:
            raise Violation(f"node {joiner} did not join")
        self.await_write(joiner, START_NS)

    def _fill(self, node: NodeId) -> None:
        self.members[node].disk.is_full = True
        self.suffer("full disk", f"the disk of node {node} is full")

    def tell_begin(self, joiner: NodeId) -> None:
        """Let the node join."""
        self.tell(Begin((joiner,)), self.ids[0])


class LostRackWorld(DirectedWorld):
    """A world in which a rack is down for a while.

    Nodes 1 and 2 are in this rack, and nodes 3 to 5 are in another rack.
    """

    _RACKS = ("a", "a", "b", "b", "b")

    def __init__(self, seed: int) -> None:
        super().__init__(seed, replicas=3, nodes=(5,))

    def rack(self, node: NodeId) -> str:
        """Return the rack of a node."""
        return self._RACKS[node - 1]

    def befall(self) -> None:
        """See the module."""
        for group, members in self._members().items():
            if len({self.rack(node) for node in members}) < 2:
                raise Violation(f"group {group} is in one rack: {members}")
        lost = self.random.choice("ab")
        self._lose_rack(lost)
        left = [id_ for id_ in self.ids if self.rack(id_) != lost]
        self.pass_time(10 * SECOND)
        for node in left:
            for group, time in self.times().items():
                self._check_group(node, group, time)
        self._bring_back()
        self.wait_until("a node does not come up", self._are_up, START_NS)
        for node in self.ids:
            self.await_write(node, START_NS)

    def _members(self) -> dict[GroupId, tuple[NodeId, ...]]:
        groups = self.topology().table.groups
        return {GroupId(head): group.members for head, group in groups.items()}

    def _lose_rack(self, rack: str) -> None:
        self.note(f"rack {rack} is lost")
        self.faults["rack"] += 1
        self._rack_down = [member for id_, member in self.members.items() if self.rack(id_) == rack]
        for member in self._rack_down:
            member.crash(power=True)

    def _bring_back(self) -> None:
        for member in self._rack_down:
            self._rise(member)

    def _check_group(self, node: NodeId, group: GroupId, time: int) -> None:
        """Check that a group with a quorum accepts a write, and that a group without a quorum reports a missing leader.

        The outcome may be unknown if the last attempt had too little time to detect that the leader is missing.
        """
        alive = [member for member in self._members()[group] if member in self.up()]
        serves = 2 * len(alive) > len(self._members()[group])
        try:
            asked(self, node, "write", partial(_write_point, time=time), 30.0)
        except (NoLeader, OutcomeUnknown) as error:
            if serves:
                raise Violation(f"node {node}: {error}, although nodes {alive} are up") from error
            if error.group != group:
                raise Violation(f"node {node}: {error}, of a write to group {group}") from error
        else:
            if not serves:
                raise Violation(f"group {group} takes a write, although only nodes {alive} are up")


def _write_point(life: Life, time: int) -> int:
    return write(life, DEVICE, (time,), 1, UNNUMBERED)
