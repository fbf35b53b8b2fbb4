"""Recovery of groups that have lost most of their members for good (`GiveUp`).

    some members left  the one with the newest log continues alone, and the others learn from it (`ForceSingleMember`)
                       of two members, one lost: the other has all acknowledged entries
                       of three members, two lost: entries that only these two had acknowledged are lost
    no member left     a group that is new in this change is created again, and data that is still at the old
                       holders moves there (`RecreateGroup`); the data of any other group is lost, and REMOVE
                       NODE gives its slots to other groups, empty

No quorum votes on the recovery, which relies on the operator's word that the nodes are lost. Therefore all remaining
nodes are asked first, and messages from lost nodes are ignored from then on (`Topology.lost`). The meta group must
agree on the recovery. If the meta group has lost most of its own members, it is recovered first, by the node that
receives the command to give up the others. The reconciler calls `step`, and any thread may call the other methods.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from saros_cluster.multiraft.host import GroupHost
from saros_cluster.multiraft.peers import BadRequest, CallHandler, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership, membership
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.routes import Routes
from saros_cluster.topology.commands import ForceSingleMember, GrowthCommand, RecreateGroup
from saros_cluster.topology.topology import META, Topology
from saros_cluster.topology.transitions import NOT_NOW
from saros_storage.base.errors import UserMistake

logger = logging.getLogger(__name__)

HOLDING, GO_ON = "growth.holding", "growth.go on"


class Holding(msgspec.Struct, frozen=True):
    """The state of a group's log on a node: the last entry, and the membership as of that entry."""

    node: NodeId
    last_term: int
    last_index: int
    membership: Membership

    def to_json(self) -> list[object]:
        """Return the value in a form that JSON can encode."""
        return [self.node, self.last_term, self.last_index, self.membership.encode().decode()]

    @staticmethod
    def from_json(words: Any) -> Holding:
        """Return the value that `to_json` encoded. Raises ValueError, TypeError."""
        node, term, index, membership = words
        return Holding(NodeId(int(node)), int(term), int(index), Membership.decode(str(membership).encode()))


class UnsafeRecovery:
    """Recovers groups without a quorum, on the operator's word."""

    def __init__(
        self,
        node: NodeId,
        host: GroupHost,
        routes: Routes,
        ask: Callable[[NodeId, str, bytes], bytes],
        propose_command: Callable[[GrowthCommand], None],
    ) -> None:
        self._node = node
        self._host = host
        self._routes = routes
        self._ask = ask
        self._propose_command = propose_command

    def step(self, group: GroupId) -> None:
        """Recover a group, if this node leads the meta group. Raises the errors of calls to nodes and of proposals."""
        topology = self._routes.now.topology
        if group == META or group not in topology.wanted or not self._host.leads(META):
            return  # the group may have ended since the caller looked
        if not topology.is_broken(group):
            return
        best = self._best(group, topology.members_of(group) - topology.lost)
        if best is not None:
            self._force_single_member(topology, group, best)
        else:
            self._recreate_group(topology, group)

    def _best(self, group: GroupId, left: Collection[NodeId]) -> Holding | None:
        """Return the newest log of the remaining members.

        Raises the error of a call that fails, since no member may be skipped.
        """
        told = [json.loads(self._ask(node, HOLDING, json.dumps(group).encode())) for node in sorted(left)]
        holding = [Holding.from_json(words) for words in told if words is not None]
        return max(holding, key=lambda found: (found.last_term, found.last_index, found.node), default=None)

    def _force_single_member(self, topology: Topology, group: GroupId, best: Holding) -> None:
        if not best.membership.has_quorum(set(best.membership.nodes) - topology.lost):
            logger.warning(
                "a group lost its majority: one member continues alone", extra={"group": group, "node": best.node}
            )
            self._propose_command(ForceSingleMember(group, best.node, topology.wanted[group].version))

    def _recreate_group(self, topology: Topology, group: GroupId) -> None:
        change = topology.change
        if change is None or not change.going or group not in change.new_groups:
            return
        staying = set(self._routes.now.nodes) - topology.lost - set(change.leaving)
        if staying:
            node = min(staying)
            logger.warning("all members of a new group are lost: recreating it", extra={"group": group, "node": node})
            self._propose_command(RecreateGroup(change.id, group, node, topology.wanted[group].version))

    # ------------------------------------------------------------------ the meta group

    def recover_meta(self, lost: Collection[NodeId]) -> None:
        """Let the meta group continue without the lost nodes, which are its majority.

        Shortly afterwards, the meta group elects a leader.

        Raises UserMistake if one of the other members does not answer.
        """
        lost = {*lost, *self._routes.now.topology.lost}
        left = self._routes.now.topology.members_of(META) - lost
        try:
            best = self._best(META, left)
            if best is not None and not best.membership.has_quorum(set(best.membership.nodes) - lost):
                self._ask(best.node, GO_ON, json.dumps(sorted(lost)).encode())
        except (Unreachable, RemoteError) as error:
            raise UserMistake(
                f"the meta group would lose its majority, and a remaining member does not respond ({error});"
                " start it or give it up too",
                code=NOT_NOW,
            ) from error

    def _serve_force_meta(self, _: NodeId, request: bytes) -> bytes:
        try:
            lost = {NodeId(int(node)) for node in json.loads(request)}
        except (ValueError, TypeError) as error:
            raise BadRequest(GO_ON, error) from error
        status = self._host.status(META)
        if status is not None and not status.membership.has_quorum(set(status.membership.nodes) - lost):
            left = self._routes.now.topology.members_of(META) - lost - {self._node}
            logger.warning("the meta group lost its majority: this node continues alone", extra={"node": self._node})
            self._host.force_single_voter(META, membership(status.last_index + 1, [self._node], left))
        return b""

    # ------------------------------------------------------------------ calls of other nodes

    def handlers(self) -> Mapping[str, CallHandler]:
        """Return the handlers of calls from other nodes, keyed by the names of the calls."""
        return {HOLDING: self._serve_holding, GO_ON: self._serve_force_meta}

    def _serve_holding(self, _: NodeId, request: bytes) -> bytes:
        try:
            group = GroupId(int(json.loads(request)))
        except (ValueError, TypeError) as error:
            raise BadRequest(HOLDING, error) from error
        status = self._host.status(group)
        if status is None or not status.membership.nodes:  # a node that is still joining has no log
            return json.dumps(None).encode()
        return json.dumps(
            Holding(status.node, status.last_term, status.last_index, status.membership).to_json()
        ).encode()
