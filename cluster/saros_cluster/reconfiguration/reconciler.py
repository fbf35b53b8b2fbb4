"""A node's part in a cluster change.

In each step, the node carries out the actions that the topology requires and that are not done yet.

    every node           joins and leaves groups; fetches the slots that moved to its groups; checks that it is still a
                         member: the meta group does not contact removed nodes, so a node that hears nothing from it
                         asks other nodes, and logs a warning if none of them answers
    a group's leader     gives the group its target members, and reports when that is done
    meta group's leader  moves slots between groups (`slot_moves`); recovers groups that have lost most of their members
                         (`unsafe_recovery`); replaces voters of the meta group (`meta_voters`)

Between two steps, all state is in the logs, so a step may be done by another node, or again, or late. One thread calls
`step` repeatedly, and an action that fails is repeated by the next step.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from functools import partial

from saros_cluster.data.command import Request
from saros_cluster.data.ownership import Arrival
from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.data.snapshots import DONE, call_handlers, pull_capture
from saros_cluster.meta.machine import encode_meta_entry
from saros_cluster.meta.state import Grow
from saros_cluster.multiraft.host import Busy, GroupHost, NotHere, NotLeader
from saros_cluster.multiraft.peers import CallHandler, Peers, RemoteError, Unreachable
from saros_cluster.multiraft.state_machine import ProposalLost, ReplacedBySnapshot
from saros_cluster.node.groups import Groups
from saros_cluster.node.receive_throttle import ReceiveThrottle
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.membership import Membership, membership
from saros_cluster.raft.messages import GroupId
from saros_cluster.reconfiguration.meta_voters import MetaVoters
from saros_cluster.reconfiguration.peer_requests import TROUBLE, PeerRequests, first_answer
from saros_cluster.reconfiguration.slot_moves import SlotMoves, fenced
from saros_cluster.reconfiguration.unsafe_recovery import UnsafeRecovery
from saros_cluster.routing.proposer import Proposer
from saros_cluster.routing.replicas import Replicas
from saros_cluster.routing.round_robin import RoundRobin
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.change import Stage
from saros_cluster.topology.commands import (
    GrowthCommand,
    Loaded,
    Ready,
    Regrouped,
)
from saros_cluster.topology.topology import META, NodeState, Topology
from saros_storage.base.clock import Clock
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.io.disk import Disk

logger = logging.getLogger(__name__)

CAPTURE, NODE_STATE, KNOWS_VOTERS = "growth.capture", "growth.standing", "growth.knows voters"
_PROPOSE_SECONDS = 5.0
_CHANGE_SECONDS = 2.0
#: The time of silence after which the node logs that no other node answers.
_SILENCE_NS = 3_000_000_000
#: The number of nodes that an isolated node asks in one step. The next step asks other nodes.
_ASKED_MAX = 8


class Reconciler:
    """Carries out this node's part in changes of the topology."""

    def __init__(
        self,
        node: NodeId,
        folder: str,
        disk: Disk,
        clock: Clock,
        routes: Routes,
        groups: Groups,
        replicas: Replicas,
        host: GroupHost,
        peers: Peers,
        proposer: Proposer,
        own_request: Callable[[], Request],
        save_meta: Callable[[], None],
        remember_removed: Callable[[], None],
        schema: ClusterSchema,
        shelf: CheckpointRegistry,
        inflow: ReceiveThrottle,
        guests_arrived: Callable[[], bool],
        have_sender_data: Callable[[GroupId, Collection[NodeId]], bool],
        voter_silence_ns: int,
    ) -> None:
        """`folder` holds files during their transfer, and is emptied at the start.

        `voter_silence_ns` is described in `MetaVoters`. `remember_removed` writes to disk that this node was removed
        from the cluster. The node's copy of the meta group's log may not contain the removal, and the node must not
        join its former groups after a restart.

        Guests are data outside the groups that is stored along with slots. `guests_arrived` tells whether this node has
        all guests that it should have. `have_sender_data` tells whether the given nodes have all guests of a group's
        slots.
        """
        self._node = node
        self._folder = folder
        self._disk = disk
        self._clock = clock
        self._routes = routes
        self._groups = groups
        self._replicas = replicas
        self._host = host
        self._proposer = proposer
        self._own_request = own_request
        self._save_meta = save_meta
        self._remember_removed = remember_removed
        self._shelf = shelf
        self._inflow = inflow
        self._guests_arrived = guests_arrived
        self._guests_at = have_sender_data
        #: The time at which the last message from another node arrived. `_is_isolated` is True if the silence was
        #: logged.
        self._heard_ns = clock.monotonic_ns()
        self._is_isolated = False
        calls_here = dict(call_handlers(shelf))
        self._asking = PeerRequests(node, peers, calls_here)
        ask = self._asking.ask
        self._ask_paced = inflow.paced(ask)
        self._moves = SlotMoves(routes, host, schema, replicas, clock, ask, self._propose, self._propose_command)
        #: Recovers groups that have lost most of their members.
        self.rescue = UnsafeRecovery(node, host, routes, ask, self._propose_command)
        ask_support = partial(self._asking.ask, name=KNOWS_VOTERS, question=b"")
        self._voters = MetaVoters(node, host, routes, clock, voter_silence_ns, ask_support, self._propose_command)
        #: Picks the nodes to ask if this node hears from no other node.
        self._turn: RoundRobin[NodeId] = RoundRobin(_ASKED_MAX)
        calls_here.update(self.handlers())
        disk.remove_tree(folder)

    def stop(self) -> None:
        """Refuse further calls to other nodes and stop waiting for answers, because this node stops."""
        self._asking.stop()

    @property
    def _topology(self) -> Topology:
        return self._routes.now.topology

    @property
    def is_wanted(self) -> bool:
        """True if the next step is due soon. A node that has fetched its files only waits for other nodes."""
        change = self._topology.change
        return change is not None and (change.stage is not Stage.LOADING or any(self._arrivals()))

    def step(self) -> None:
        """Do what can be done now. Log the actions that fail, which the next step tries again."""
        change = self._topology.change
        if change is not None:
            self._inflow.begin(change.id)
        parts: list[Callable[[], None]] = [self._check_removed, self._reconcile_groups]
        parts += [partial(self._regroup, group) for group in (META, *self._replicas.machines)]
        parts += [self._moves.step, self._voters.step]
        if self._topology.lost:
            parts += [partial(self.rescue.step, group) for group in self._topology.wanted]
        parts += [partial(self._fetch, machine, arrival) for machine, arrival in self._arrivals()]
        for part in parts:
            try:
                part()
            except (*TROUBLE, OSError) as error:
                logger.info("retrying a step of a cluster change", extra={"why": str(error)})

    def _check_removed(self) -> None:
        """Find out whether this node was removed, if it no longer hears from the leader of the meta group."""
        if self._routes.is_removed:
            return
        if self._host.leader_of(META) is not None:
            self._note_contact()
            return
        # Ask nodes in all states but GONE. Members may have been removed, too, and not know that this node was removed;
        # nodes that have joined since may still be WAITING in this node's topology.
        known = {*self._topology.nodes} - {*self._topology.in_state(NodeState.GONE), self._node}
        asked = self._turn.pick(sorted(known))
        for other in asked:
            with suppress(*TROUBLE):
                state = json.loads(self._asking.ask(other, NODE_STATE, b""))
                self._note_contact()
                if state == NodeState.GONE.value:
                    logger.warning("this node was removed from the cluster: stop it, and delete its folder")
                    self._remember_removed()
                    self._routes.is_removed = True
                    return
        if not self._is_isolated and known and self._clock.monotonic_ns() - self._heard_ns >= _SILENCE_NS:
            self._is_isolated = True
            addresses = ", ".join(self._topology.nodes[node].peer for node in asked)
            logger.warning("no other node responds; retrying until one does", extra={"nodes": addresses})

    def _note_contact(self) -> None:
        self._heard_ns = self._clock.monotonic_ns()
        if self._is_isolated:
            self._is_isolated = False
            logger.info("another node responds again")

    def _reconcile_groups(self) -> None:
        topology = self._routes.own_topology
        if not self._groups.is_reconciled(topology):
            self._save_meta()  # the topology must be durable before the actions that follow from it
            self._groups.reconcile(topology)

    def _propose_command(self, step: GrowthCommand) -> None:
        """Propose a step of the change to the meta group."""
        self._propose(META, encode_meta_entry(self._own_request(), Grow(step)))

    def _propose(self, group: GroupId, data: bytes) -> None:
        self._proposer.propose(group, data, _PROPOSE_SECONDS)

    # ------------------------------------------------------------------ a group's leader: its members

    def _regroup(self, group: GroupId) -> None:
        topology, status = self._topology, self._host.status(group)
        wanted = topology.wanted.get(group)
        if wanted is None or status is None:
            return
        if topology.is_forced_single(group) and self._node in wanted.voters:
            self._host.force_single_voter(group, wanted)
        change = topology.change
        is_awaited = change is not None and not change.new_groups.get(group, True)
        if is_awaited and status.leader is None and NodeId(group) == self._node:
            self._host.campaign(group)  # `step` repeats this until enough of the other nodes have joined
        if not status.leads or status.membership.is_joint:
            return
        known = status.membership
        if known.version < wanted.version or (known.version == wanted.version and known.voters != wanted.voters):
            # This fails if another node leads by now, or if a learner lags.
            with suppress(NotLeader, Busy, NotHere, ProposalLost, ReplacedBySnapshot, FutureTimeoutError):
                self._host.change_membership(group, _next(known, wanted)).result(_CHANGE_SECONDS)
            return
        if change is None or known.version != wanted.version or not status.is_membership_committed:
            return
        if is_awaited:
            self._propose_command(Ready(change.id, group))
        regroup = change.regroups.get(group)
        if regroup is not None and not regroup.done and change.stage in (Stage.REGROUPING, Stage.ABORTING):
            staying = set(wanted.voters) - change.given_up - topology.lost
            if self._guests_at(group, staying):  # a leaving node may be the only one that has the files
                self._propose_command(Regrouped(change.id, group, wanted.version, status.term))

    # ------------------------------------------------------------------ slots that moved to local groups

    def _arrivals(self) -> list[tuple[RegionMachine, Arrival]]:
        change = self._topology.change
        if change is None or change.stage is not Stage.LOADING:
            return []  # files are fetched once all slots are open
        return [
            (machine, arrival)
            for machine in self._replicas.machines.values()
            for arrival in machine.replica.arrivals()
            if arrival.change == change.id
            # A snapshot from a member that lags may have replaced data that had arrived here. Fetch this data again.
            and (self._node not in change.moves[arrival.move].loaded or machine.replica.is_arriving(arrival))
        ]

    def _fetch(self, machine: RegionMachine, arrival: Arrival) -> None:
        """Fetch the data of arriving slots that is not on this node yet.

        Report to the meta group when all of the data has been fetched.
        """
        if machine.replica.is_arriving(arrival):
            members = self._routes.now.members(machine.group)
            place = members.index(self._node) if self._node in members else 0
            holders = [*arrival.holders[place:], *arrival.holders[:place]]
            if self._node in holders:
                holders = [self._node, *(node for node in holders if node != self._node)]
            first_answer(holders, lambda node: self._fetch_from(node, machine, arrival))
        if not self._guests_arrived():
            return  # the next step checks this again
        self._propose_command(Loaded(arrival.change, arrival.move, self._node))

    def _fetch_from(self, node: NodeId, machine: RegionMachine, arrival: Arrival) -> None:
        question = json.dumps([arrival.source, arrival.epoch]).encode()
        id_ = self._asking.ask_work(node, CAPTURE, question)
        folder = os.path.join(self._folder, str(arrival.epoch))
        try:
            if node == self._node:
                capture, place = self._shelf.capture(id_), self._shelf.folder_of(id_)
            else:
                capture, place = pull_capture(partial(self._ask_paced, node), id_, folder, self._disk), folder
            machine.region.arrive(set(arrival.partitions), capture, place)
        finally:  # a failed fetch is repeated with another capture, unless a snapshot has brought the data by then
            with suppress(Unreachable, RemoteError):  # the lease ends by itself
                self._asking.ask(node, DONE, id_)
            self._disk.remove_tree(folder)

    # ------------------------------------------------------------------ calls of other nodes

    def handlers(self) -> Mapping[str, CallHandler]:
        """Return the handlers of calls from other nodes, keyed by the names of the calls."""
        return {
            CAPTURE: self._capture,
            NODE_STATE: self._serve_state,
            KNOWS_VOTERS: lambda _, __: b"",
            **self._moves.handlers(),
            **self.rescue.handlers(),
        }

    def _serve_state(self, node: NodeId, _: bytes) -> bytes:
        found = self._topology.nodes.get(node)
        return json.dumps(None if found is None else found.state.value).encode()

    def _capture(self, _: NodeId, request: bytes) -> bytes:
        machine, (epoch,) = fenced(self._replicas, CAPTURE, request, 1)
        return machine.capture_left(epoch)


def _next(known: Membership, wanted: Membership) -> Membership:
    """Return the next step towards a group's target membership: a future voter first joins as a learner."""
    if set(wanted.voters) <= set(known.nodes):
        return wanted
    return membership(wanted.version, known.voters, set(wanted.nodes) - set(known.voters))
