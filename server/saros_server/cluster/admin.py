"""Administrative statements about nodes, executed as commands in the meta group's log. Any thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from saros_cluster.database.database import ClusterDatabase
from saros_cluster.node.cluster_file import ClusterFile, NodeAddress, encode, is_address, is_rack
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.reconfiguration.unsafe_recovery import UnsafeRecovery
from saros_cluster.routing.routes import Routes
from saros_cluster.topology.commands import Abort, Admit, Begin, GiveUp, RevokeAdmission
from saros_cluster.topology.topology import META, NodeState, Topology
from saros_cluster.topology.transitions import NO_SUCH_NODE, NOT_NOW
from saros_engine.base.cluster_info import PlannedMove
from saros_grammar.syntax.ast import Measure
from saros_server.cluster.rebalancing import Balancing
from saros_storage.base.errors import StorageError, UserMistake

_SILENT = 2016


class Administration:
    """An implementation of the engine's `ClusterAdmin`."""

    def __init__(
        self,
        file: ClusterFile,
        database: ClusterDatabase,
        routes: Routes,
        rescue: UnsafeRecovery,
        balancing: Balancing,
        answers: Callable[[NodeId], bool],
    ) -> None:
        """Create the object; `answers` returns whether the node at an address responds within a few seconds."""
        self._answers = answers
        self._file = file
        self._balancing = balancing
        self._rescue = rescue
        self._database = database
        self._routes = routes

    def admit(self, peer: str, client: str, token: str, rack: str) -> tuple[NodeId, str]:
        """See `ClusterAdmin.admit`."""
        for address in (peer, client):
            if not is_address(address):
                raise UserMistake(f"{address!r} is not an address; write host:port", code=NO_SUCH_NODE)
        if peer == client:
            raise UserMistake(f"{peer} cannot serve both nodes and clients: give two addresses", code=NO_SUCH_NODE)
        if rack and not is_rack(rack):
            raise UserMistake(f"{rack!r} is not a valid rack name; use letters, digits, and ._-", code=NO_SUCH_NODE)
        self._database.grow(Admit(peer, client, token, rack))
        node = _admitted(self._routes.now.topology, peer, token)
        found = self._routes.now.topology.nodes[node]
        file = replace(self._file, node=node, joined=NodeAddress(found.peer, found.client, found.rack))
        return node, encode(file).decode()

    def begin(self, joining: Sequence[NodeId], leaving: Sequence[NodeId]) -> None:
        """See `ClusterAdmin.begin`.

        Before a joining node is admitted, it must answer, since the change cannot be aborted once slots move to the
        node.
        """
        topology = self._routes.now.topology
        for node in joining:
            if node in topology.in_state(NodeState.WAITING) and not self._answers(node):
                where = topology.nodes[node].peer
                raise StorageError(f"node {node} ({where}) does not answer: start it, then try again", code=_SILENT)
        self._database.grow(Begin(tuple(joining), tuple(leaving)))

    def plan(self, measure: Measure) -> Sequence[PlannedMove]:
        """See `ClusterAdmin.plan`."""
        return self._balancing.plan(measure)

    def rebalance(self, measure: Measure) -> None:
        """See `ClusterAdmin.rebalance`."""
        self._balancing.rebalance(measure)

    def migrate(self, region: int, leaving: NodeId, joining: NodeId) -> None:
        """See `ClusterAdmin.migrate`."""
        members = self._routes.now.members(GroupId(region)) if region != META else ()
        if leaving not in members or joining in members:
            known = f"{leaving} is not a member of region {region}, or node {joining} already is"
            raise UserMistake(f"node {known}: see SHOW REGIONS", code=NO_SUCH_NODE)
        chosen = tuple(joining if node == leaving else node for node in members)
        self._database.grow(Begin(members={NodeId(region): chosen}))

    def abort(self) -> None:
        """See `ClusterAdmin.abort`."""
        self._database.grow(Abort(self._change()))

    def give_up(self, nodes: Sequence[NodeId]) -> None:
        """See `ClusterAdmin.give_up`.

        Recover the meta group first: no change can be committed while this group has no quorum.
        """
        self._rescue.recover_meta(nodes)
        self._database.grow(GiveUp(tuple(nodes)))

    def revoke_admission(self, node: NodeId) -> None:
        """See `ClusterAdmin.revoke_admission`."""
        self._database.grow(RevokeAdmission(node))

    def _change(self) -> int:
        """Return the id of the change in progress, as far as this node knows. Raises UserMistake without a change."""
        change = self._routes.now.topology.change
        if change is None:
            raise UserMistake("no change of the cluster is in progress: see SHOW CLUSTER CHANGE", code=NOT_NOW)
        return change.id


def _admitted(topology: Topology, peer: str, token: str) -> NodeId:
    """Return the node that was admitted with a given token or at a given address. Raises UserMistake if it has left."""
    node = topology.node_of(token)
    if node is None:
        node = next((n for n in topology.in_state(NodeState.WAITING) if topology.nodes[n].peer == peer), None)
    if node is None or topology.nodes[node].state is NodeState.GONE:
        raise UserMistake(
            f"the node at {peer} has left the cluster: admit it again without AS, or with another token",
            code=NO_SUCH_NODE,
        )
    return node
