"""The voters of the meta group: their number, their racks, and the replacement of silent ones.

    cluster of an old version  all nodes vote; once there are more than META_VOTERS_DEFAULT nodes that all know the
                               command, the number of voters is limited (`BoundMetaVoters`)
    too many voters            some become learners
    too few, or a crowded rack learners become voters, if there are any
    a voter is lost, or silent a learner that answers gets its vote, on another rack if possible; without such a learner
    for long                   it stays a voter

`next_voters` decides on new voters, and proposes none that would leave the group without a majority that answers. The
decision is an entry of the meta group's log (`ChangeMetaVoters`). The leader then changes the membership in its log in
a joint step, as in any group (`Reconciler._regroup`). A future voter that becomes silent in the meantime is replaced by
another node.

`step` does all of this on the leader of the meta group, which knows the silent nodes (`Status.silent`).
Single-threaded.
"""

from __future__ import annotations

from collections.abc import Callable

from saros_cluster.multiraft.host import TICK_NS, GroupHost
from saros_cluster.placement.members import META_VOTERS_DEFAULT, chosen_voters
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.ready import Status
from saros_cluster.routing.routes import Routes
from saros_cluster.topology.commands import BoundMetaVoters, ChangeMetaVoters, GrowthCommand
from saros_cluster.topology.topology import META, NodeState, Topology
from saros_storage.base.clock import Clock

#: Shortest time between two rounds in which the nodes are asked whether they know the commands.
_ASK_AGAIN_NS = 10_000_000_000


class MetaVoters:
    """Proposes changes of the meta group's voters."""

    def __init__(
        self,
        node: NodeId,
        host: GroupHost,
        routes: Routes,
        clock: Clock,
        silence_ns: int,
        ask_support: Callable[[NodeId], object],
        propose_command: Callable[[GrowthCommand], None],
    ) -> None:
        """After a silence of `silence_ns`, a voter is replaced. `ask_support` raises if a node lacks the commands."""
        self._node = node
        self._host = host
        self._routes = routes
        self._clock = clock
        self._silence_ticks = silence_ns // TICK_NS
        self._ask_support = ask_support
        self._propose_command = propose_command
        self._asked_ns: int | None = None

    def step(self) -> None:
        """Propose the next change, if this node leads the meta group.

        Raises the errors of calls to the nodes and of the proposal.
        """
        status, topology = self._host.status(META), self._routes.now.topology
        if status is None or not status.leads:
            return
        if topology.meta_voters is None:
            self._bound(topology, status)
            return
        voters = next_voters(topology, status, self._silence_ticks)
        if voters is not None:
            self._propose_command(ChangeMetaVoters(voters, topology.wanted[META].version))

    def _bound(self, topology: Topology, status: Status) -> None:
        nodes = {*topology.in_state(NodeState.IN), *topology.in_state(NodeState.WAITING)} - topology.lost
        if topology.change is not None or len(nodes) <= META_VOTERS_DEFAULT or status.silent.keys() & nodes:
            return
        now = self._clock.monotonic_ns()
        if self._asked_ns is not None and now - self._asked_ns < _ASK_AGAIN_NS:
            return
        self._asked_ns = now
        for node in sorted(nodes):
            self._ask_support(node)
        self._propose_command(BoundMetaVoters(META_VOTERS_DEFAULT))


def next_voters(topology: Topology, status: Status, silence_ticks: int) -> tuple[NodeId, ...] | None:
    """Return the voters that should replace the meta group's target voters, or None if the target voters are right.

    `status` is the leader's. A voter that has been silent for `silence_ticks` is replaced.
    """
    bound, wanted, known, silent = topology.meta_voters, topology.wanted[META], status.membership, status.silent
    if bound is None or known.version > wanted.version:
        return None
    members = topology.may_vote()
    dead = {node for node in members & {*wanted.voters} if silent.get(node, 0) >= silence_ticks}
    unborn = {node for node in wanted.voters if not known.is_voter(node) and node in silent}
    is_settled = known.voters == wanted.voters and not known.is_joint and status.is_membership_committed
    if not is_settled and not unborn:
        return None
    kept = [node for node in wanted.voters if node in members - dead - unborn]
    kept.sort(key=lambda node: (node != status.node, node in silent))
    leaving = set() if topology.change is None else {*topology.change.leaving}
    eligible = {node for node in members - leaving if node in known.nodes and node not in silent}
    if not kept and not eligible:
        return None
    chosen = chosen_voters(kept, {*kept, *eligible}, bound, topology.racks)
    chosen = _with_dead(chosen, dead, min(len(wanted.voters), bound))
    answering = [node for node in chosen if node not in silent]
    is_safe = 2 * len(answering) > len(chosen)
    return chosen if is_safe and chosen != wanted.voters else None


def _with_dead(chosen: tuple[NodeId, ...], dead: set[NodeId], count: int) -> tuple[NodeId, ...]:
    """Return the chosen voters, filled up with silent ones if too few: fewer voters would survive fewer failures.

    `count` is the number of voters to reach.
    """
    return tuple(sorted({*chosen, *sorted(dead)[: max(count - len(chosen), 0)]}))
