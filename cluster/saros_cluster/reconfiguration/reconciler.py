"""A node's part in a cluster change: step by step, it does whatever the topology shows is missing.

    every node           joins and leaves groups; fetches the slots that moved to its groups; if it hears nothing from
                         the meta group, which does not contact removed nodes, asks whether it is still a member, and
                         reports it if nobody answers
    a group's leader     gives the group its target members, and reports when that is done
    meta group's leader  moves slots between groups (`slot_moves`); recovers groups that have lost most of their members
                         (`unsafe_recovery`); replaces voters of the meta group (`meta_voters`)

Between two steps only the logs hold state, so a step may be done by another node, again, or late. One thread calls
`step` repeatedly; what fails is tried again.
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
#: Then it is said that nobody answers.
_SILENCE_NS = 3_000_000_000
#: A node that hears nothing asks so many others in a step: all of them in turn, and not each all the time.
_ASKED_MAX = 8


class Reconciler:
    """See the module."""

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
        """`folder`: where files lie that are on their way; it is emptied. `voter_silence_ns`: see `MetaVoters`.

        `remember_removed` writes to disk that this node was removed, which the meta group's log here does not tell:
        started again, it must not join its former groups.

        Guests are what lies with slots and is not the groups': `guests_arrived`, whether this node has all that it is
        to have; `have_sender_data`, whether each of these nodes has all that lies with a group's slots.
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
        #: When another node was heard last, and whether it was said that none is.
        self._heard_ns = clock.monotonic_ns()
        self._is_isolated = False
        calls_here = dict(call_handlers(shelf))
        self._asking = PeerRequests(node, peers, calls_here)
        ask = self._asking.ask
        self._ask_paced = inflow.paced(ask)
        self._moves = SlotMoves(routes, host, schema, replicas, clock, ask, self._propose, self._propose_command)
        #: For groups that have lost most of their members.
        self.rescue = UnsafeRecovery(node, host, routes, ask, self._propose_command)
        ask_support = partial(self._asking.ask, name=KNOWS_VOTERS, question=b"")
        self._voters = MetaVoters(node, host, routes, clock, voter_silence_ns, ask_support, self._propose_command)
        #: The nodes to ask next if none is heard.
        self._turn: RoundRobin[NodeId] = RoundRobin(_ASKED_MAX)
        calls_here.update(self.handlers())
        disk.remove_tree(folder)

    def stop(self) -> None:
        """The node stops: nothing is asked any more, and no answer is waited for."""
        self._asking.stop()

    @property
    def _topology(self) -> Topology:
        return self._routes.now.topology

    @property
    def is_wanted(self) -> bool:
        """Whether something is to be done soon. A node that has fetched its files waits for those of others."""
        change = self._topology.change
        return change is not None and (change.stage is not Stage.LOADING or any(self._arrivals()))

    def step(self) -> None:
        """Do what can be done now, and log what cannot: it is tried again in the next step."""
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
                logger.info("a step of a change is tried again", extra={"why": str(error)})

    def _check_removed(self) -> None:
        """Whether this node was removed, if nobody of the meta group speaks to it any more."""
        if self._routes.is_removed:
            return
        if self._host.leader_of(META) is not None:
            self._note_contact()
            return
        # Those that it knows may be gone too, and not know of this; who joined since may still seem to wait.
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
            logger.warning("no other node answers: trying again until one does", extra={"nodes": addresses})

    def _note_contact(self) -> None:
        self._heard_ns = self._clock.monotonic_ns()
        if self._is_isolated:
            self._is_isolated = False
            logger.info("another node answers again")

    def _reconcile_groups(self) -> None:
        topology = self._routes.own_topology
        if not self._groups.is_reconciled(topology):
            self._save_meta()  # what is done because of it must not be forgotten before it
            self._groups.reconcile(topology)

    def _propose_command(self, step: GrowthCommand) -> None:
        """A step into the meta group's log."""
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
            self._host.campaign(group)  # until the others have joined it, too
        if not status.leads or status.membership.is_joint:
            return
        known = status.membership
        if known.version < wanted.version or (known.version == wanted.version and known.voters != wanted.voters):
            # Another one leads, or a learner lags.
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
            if self._guests_at(group, staying):  # who leaves may be the only one that has them
                self._propose_command(Regrouped(change.id, group, wanted.version, status.term))

    # ------------------------------------------------------------------ what came to groups that are here

    def _arrivals(self) -> list[tuple[RegionMachine, Arrival]]:
        change = self._topology.change
        if change is None or change.stage is not Stage.LOADING:
            return []  # first all slots are to be open
        return [
            (machine, arrival)
            for machine in self._replicas.machines.values()
            for arrival in machine.replica.arrivals()
            if arrival.change == change.id
            # A snapshot may come, of a member that is behind, in which something is on its way that was here.
            and (self._node not in change.moves[arrival.move].loaded or machine.replica.is_arriving(arrival))
        ]

    def _fetch(self, machine: RegionMachine, arrival: Arrival) -> None:
        """Fetch what is not here yet; say so when all is."""
        if machine.replica.is_arriving(arrival):
            members = self._routes.now.members(machine.group)
            place = members.index(self._node) if self._node in members else 0
            holders = [*arrival.holders[place:], *arrival.holders[:place]]
            if self._node in holders:
                holders = [self._node, *(node for node in holders if node != self._node)]
            first_answer(holders, lambda node: self._fetch_from(node, machine, arrival))
        if not self._guests_arrived():
            return  # the next step
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
        finally:  # what fails is tried again with another capture, if it has not come by a snapshot meanwhile
            with suppress(Unreachable, RemoteError):  # its lease will end
                self._asking.ask(node, DONE, id_)
            self._disk.remove_tree(folder)

    # ------------------------------------------------------------------ being asked

    def handlers(self) -> Mapping[str, CallHandler]:
        """What other nodes ask this one, by name."""
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
    """The next step to the membership that a group is to have: who is to vote, and is not there yet, learns first."""
    if set(wanted.voters) <= set(known.nodes):
        return wanted
    return membership(wanted.version, known.voters, set(wanted.nodes) - set(known.voters))
