"""A simulated cluster with one chosen fault, which the method `befall` causes.

    nodes start -> `befall` -> healing -> the checks of `World.settle`      clients write and read throughout

The network delays messages, but does not lose them. The clients of `world_clients` detect lost and duplicated writes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from cluster.cluster_world import INTERVAL, SECOND, Life, Member, World
from cluster.raft_checkers import Violation
from cluster.world_clients import PASSING, asked, write
from cluster.world_threads import Place

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.commands import GrowthCommand
from saros_cluster.topology.topology import Topology
from saros_storage.base.write_request import UNNUMBERED

DATABASE = "root.meter"
DEVICE = f"{DATABASE}.d"
#: The number of slices; it is large, so that each group very likely owns at least one slice.
_SLICES = 64
START_NS, WRITE_SECONDS = 30 * SECOND, 30.0
_PAUSE_NS = 100_000_000


class DirectedWorld(World):
    """The base class of worlds with one chosen fault. The seed chooses the number of nodes from `nodes`."""

    def __init__(
        self, seed: int, *, replicas: int | None = None, nodes: Sequence[int] = (3,), places: Sequence[Place] = ()
    ) -> None:
        super().__init__(seed, places=places, nodes=nodes)
        #: The number of replicas of each group. If the argument is None, each node has a replica.
        self.replicas = len(self.ids) if replicas is None else replicas
        self.last_topology = self.first_topology()
        self._writes = 0

    @abstractmethod
    def befall(self) -> None:
        """Subject the cluster to the events of this world."""

    def _live(self) -> None:
        self.network.heal()
        for member in self.members.values():
            member.disk.sync_ns = 1_000_000
            member.start()
        self.wait_until("a node does not come up", self._are_up, START_NS)
        for client in self.clients:
            client.start()
        self.await_write(self.ids[0], START_NS)
        self.befall()
        self.heal()
        self.settle()

    def be_envied(self, member: Member) -> None:
        """Do nothing, while `World` may crash the member."""

    def _are_up(self) -> bool:
        return all(member.is_up for member in self.members.values())

    def wait_until(self, why: str, holds: Callable[[], object], ns: int) -> None:
        """Wait until a condition holds. Raises Violation if that takes too long."""
        self._await(why, holds, self.threads.now_ns + ns)

    # ------------------------------------------------------------------ inspection

    def up(self) -> dict[NodeId, Life]:
        """Return the running life of each node that is up."""
        return {id_: member.life for id_, member in self.members.items() if member.is_up and member.life is not None}

    def leaders(self) -> dict[GroupId, NodeId]:
        """Return the leader of each group; if a group has several leaders, return the one with the latest term."""
        found: dict[GroupId, tuple[int, NodeId]] = {}
        for node, life in self.up().items():
            for group, status in life.host.statuses().items():
                if status.leads:
                    found[group] = max(found.get(group, (0, node)), (status.term, node))
        return {group: node for group, (_, node) in found.items()}

    def topology(self) -> Topology:
        """Return the topology of the node that has the newest state of the meta group."""
        databases = [life.node.database for life in self.up().values() if life.node is not None]
        return max(databases, key=lambda database: database._parts.schema.version).routing.topology

    # ------------------------------------------------------------------ requests

    def write_through(self, node: NodeId) -> int:
        """Write to every group through a node; return how long this took. Raises one of PASSING."""
        began = self.threads.now_ns
        self._writes += 1
        number, times = self._writes, sorted(self.times().values())
        asked(self, node, "write", lambda life: write(life, DEVICE, times, number, UNNUMBERED), WRITE_SECONDS)
        return self.threads.now_ns - began

    def times(self) -> dict[GroupId, int]:
        """Return a timestamp for each group; points at this time belong to the group."""
        table = self.topology().table
        return {GroupId(table.route(DATABASE, slice_).head): slice_ * INTERVAL for slice_ in range(_SLICES)}

    def await_write(self, node: NodeId, ns: int) -> None:
        """Retry a write until it succeeds. Raises Violation if that takes too long."""
        until = self.threads.now_ns + ns
        while True:
            try:
                self.write_through(node)
            except PASSING as error:
                if self.threads.now_ns > until:
                    raise Violation(f"no write succeeds through node {node}: {error!r}; {self._states()}") from error
                self.pass_time(_PAUSE_NS)
            else:
                return

    def keep_writing(self, ns: int, nodes: Sequence[NodeId] | None = None) -> None:
        """Write repeatedly for some time, through each node in turn."""
        until, turn = self.threads.now_ns + ns, 0
        while self.threads.now_ns < until:
            self.pass_time(_PAUSE_NS)
            among = nodes or self.ids
            self.await_write(among[turn % len(among)], ns + START_NS)
            turn += 1

    def tell(self, step: GrowthCommand, node: NodeId) -> None:
        """Ask a node to take a step of the topology, and repeat this until it succeeds."""
        until = self.threads.now_ns + START_NS
        while True:
            try:
                asked(self, node, "grow", lambda life: life.node.database.grow(step), 8.0)
            except PASSING as error:
                if self.threads.now_ns > until:
                    raise Violation(f"{step} does not succeed: {error!r}") from error
                self.pass_time(SECOND)
            else:
                self.note(f"{step}")
                return
