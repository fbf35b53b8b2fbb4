"""What a node does for a change of the cluster, step by step: whatever the topology says is missing.

    every node           joins and leaves groups; fetches what came to its groups; asks whether it is still wanted if it
                         hears nothing of the meta group, which does not speak to those who have left; says so if
                         nobody answers
    a group's leader     gives the group the members that it is to have, and says when it has them
    meta group's leader  moves slots from group to group: fence, open; let go of them when all have arrived; lets groups
                         go on that have lost most of their members (`rescue`)

Nothing is remembered between two steps but what the logs say, so each may be done by another node, again, or late.
`step` is called again and again by one thread; what fails is tried again.
"""

from __future__ import annotations

import bisect
import itertools
import json
import logging
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from saros_cluster.cluster_schema import ClusterSchema
from saros_cluster.data.command import Request, encode_transfer
from saros_cluster.data.drops import Drops
from saros_cluster.data.ownership import Arrival, Bring, Fence, LetGo, Open, Settle, transfer_of, words_of
from saros_cluster.data.region_machine import RegionMachine
from saros_cluster.data.schema_along import along
from saros_cluster.data.snapshots import DONE, call_handlers, pull_capture
from saros_cluster.groups import Groups
from saros_cluster.growth.change import Change, Move, Stage
from saros_cluster.growth.commands import (
    Dropped,
    Fenced,
    Go,
    GrowthCommand,
    Loaded,
    Opened,
    Ready,
    Regrouped,
)
from saros_cluster.growth.rescue import Rescue
from saros_cluster.growth.topology import META, Standing, Topology
from saros_cluster.host import Busy, GroupHost, NotHere, NotLeader
from saros_cluster.inflow import Inflow
from saros_cluster.machine import Lost, Overtaken
from saros_cluster.meta.machine import encode_meta_entry
from saros_cluster.meta.state import Grow
from saros_cluster.peers import BadRequest, CallHandler, Peers, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.proposer import Proposer
from saros_cluster.raft.membership import Membership, membership
from saros_cluster.raft.messages import GroupId
from saros_cluster.replicas import Replicas
from saros_cluster.routes import Routes
from saros_storage.capture.shelf import Shelf
from saros_storage.clock import Clock
from saros_storage.disk import Disk
from saros_storage.errors import StorageError
from saros_storage.schema import SchemaChange, decode_change, encode_change

logger = logging.getLogger(__name__)

DESCRIBE, CAPTURE, STANDING = "growth.describe", "growth.capture", "growth.standing"
_ASK_SECONDS = 10.0
#: A capture flushes first, beside all other flushes; and to ask another node means to begin anew.
_CAPTURE_SECONDS = 120.0
_PROPOSE_SECONDS = 5.0
_CHANGE_SECONDS = 2.0
#: A read looks at the table, and asks a holder; so much later it has done so, or is told that slots have moved.
_READ_NS = 3_000_000_000
#: Then it is said that nobody answers.
_SILENCE_NS = 3_000_000_000
#: Schema that goes along with slots is brought in pieces: much less than an entry, or an answer, may be.
_PIECE_BYTES = 4 << 20
#: So many devices, of those that nobody else has any more.
_PIECE_CHANGES = 100
#: What another node may not have, or another time.
_TROUBLE = (Unreachable, RemoteError, StorageError, NotHere)
_T = TypeVar("_T")


class Worker:
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
        schema: ClusterSchema,
        shelf: Shelf,
        inflow: Inflow,
        guests_arrived: Callable[[], bool] = lambda: True,
        guests_at: Callable[[GroupId, Collection[NodeId]], bool] = lambda _, __: True,
    ) -> None:
        """`folder`: where files lie that are on their way; it is emptied.

        Guests are what lies with slots and is not the groups': `guests_arrived`, whether this node has all that it is
        to have; `guests_at`, whether each of these nodes has all that lies with a group's slots.
        """
        self._node = node
        self._folder = folder
        self._disk = disk
        self._clock = clock
        #: By epoch: when it was first seen here that all had arrived.
        self._arrived_ns: dict[int, int] = {}
        #: Done when the node stops.
        self._stopping: Future[None] = Future()
        self._routes = routes
        self._groups = groups
        self._replicas = replicas
        self._host = host
        self._peers = peers
        self._proposer = proposer
        self._own_request = own_request
        self._save_meta = save_meta
        self._schema = schema
        self._shelf = shelf
        self._inflow = inflow
        self._guests_arrived = guests_arrived
        self._guests_at = guests_at
        #: When another node was heard last, and whether it was said that none is.
        self._heard_ns = clock.monotonic_ns()
        self._is_alone = False
        #: For groups that have lost most of their members.
        self.rescue = Rescue(node, host, routes, self._ask, self._tell)
        self._calls_here = {**call_handlers(shelf), **self.handlers()}
        self._ask_paced = inflow.paced(self._ask)
        disk.remove_tree(folder)

    def stop(self) -> None:
        """The node stops: nothing is asked any more, and no answer is waited for."""
        self._stopping.set_result(None)

    @property
    def _topology(self) -> Topology:
        return self._routes.now.topology

    @property
    def is_wanted(self) -> bool:
        """Whether something is to be done soon."""
        return self._topology.change is not None or any(self._arrivals())

    def step(self) -> None:
        """Do what can be done now, and log what cannot: it is tried again in the next step."""
        change = self._topology.change
        if change is not None:
            self._inflow.begin(change.id)
        parts: list[Callable[[], None]] = [self._ask_standing, self._settle]
        parts += [partial(self._regroup, group) for group in (META, *self._replicas.machines)]
        parts += [self._drive]
        if self._topology.lost:
            parts += [partial(self.rescue.step, group) for group in self._topology.wanted]
        parts += [partial(self._fetch, machine, arrival) for machine, arrival in self._arrivals()]
        for part in parts:
            try:
                part()
            except (*_TROUBLE, OSError) as error:
                logger.info("a step of a change is tried again", extra={"why": str(error)})

    def _ask_standing(self) -> None:
        """Whether this node was removed, if nobody of the meta group speaks to it any more."""
        if self._routes.is_removed:
            return
        if self._host.leader_of(META) is not None:
            self._hear()
            return
        # Those that it knows may be gone too, and not know of this; who joined since may still seem to wait.
        known = {*self._topology.nodes} - {*self._topology.standing(Standing.GONE), self._node}
        for other in sorted(known):
            with suppress(*_TROUBLE):
                standing = json.loads(self._ask(other, STANDING, b""))
                self._hear()
                if standing == Standing.GONE.value:
                    logger.warning("this node was removed from the cluster: stop it, and delete its folder")
                    self._routes.is_removed = True
                    return
        if not self._is_alone and known and self._clock.monotonic_ns() - self._heard_ns >= _SILENCE_NS:
            self._is_alone = True
            addresses = ", ".join(self._topology.nodes[node].peer for node in sorted(known))
            logger.warning("no other node answers: trying again until one does", extra={"nodes": addresses})

    def _hear(self) -> None:
        self._heard_ns = self._clock.monotonic_ns()
        if self._is_alone:
            self._is_alone = False
            logger.info("another node answers again")

    def _settle(self) -> None:
        topology = replace(self._topology, wanted={}, change=None) if self._routes.is_removed else self._topology
        if not self._groups.is_settled(topology):
            self._save_meta()  # what is done because of it must not be forgotten before it
            self._groups.settle(topology)

    def _tell(self, step: GrowthCommand) -> None:
        """A step into the meta group's log."""
        self._proposer.propose(META, encode_meta_entry(self._own_request(), Grow(step)), _PROPOSE_SECONDS)

    # ------------------------------------------------------------------ a group's leader: its members

    def _regroup(self, group: GroupId) -> None:
        topology, status = self._topology, self._host.status(group)
        wanted = topology.wanted.get(group)
        if wanted is None or status is None:
            return
        if topology.goes_on_alone(group) and self._node in wanted.voters:
            self._host.go_on_alone(group, wanted)
        change = topology.change
        is_awaited = change is not None and not change.new_groups.get(group, True)
        if is_awaited and status.leader is None and NodeId(group) == self._node:
            self._host.campaign(group)  # until the others have joined it, too
        if not status.leads or status.membership.is_joint:
            return
        known = status.membership
        if known.version < wanted.version or (known.version == wanted.version and known.voters != wanted.voters):
            # Another one leads, or a learner lags.
            with suppress(NotLeader, Busy, NotHere, Lost, Overtaken, FutureTimeoutError):
                self._host.change_membership(group, _next(known, wanted)).result(_CHANGE_SECONDS)
            return
        if change is None or known.version != wanted.version or not status.is_membership_committed:
            return
        if is_awaited:
            self._tell(Ready(change.id, group))
        regroup = change.regroups.get(group)
        if regroup is not None and not regroup.done and change.stage in (Stage.REGROUPING, Stage.ABORTING):
            staying = set(wanted.voters) - change.given_up - topology.lost
            if self._guests_at(group, staying):  # who leaves may be the only one that has them
                self._tell(Regrouped(change.id, group, wanted.version, status.term))

    # ------------------------------------------------------------------ the meta group's leader: moves of slots

    def _drive(self) -> None:
        change = self._topology.change
        if change is None or not self._host.leads(META):
            return
        if change.stage is Stage.PREPARING and change.is_prepared and not self._schema.pending:
            self._tell(Go(change.id))
            change = self._topology.change or change
        if not change.going:
            return
        for number, move in enumerate(change.moves):
            if not move.opened:
                self._move(change, number, move)
                return  # one after the other; the next one in the next step
        for number, move in enumerate(change.moves):
            if move.arrived and not move.dropped and self._is_forgotten(move.epoch):
                self._propose(move.target, encode_transfer(Settle(move.epoch)))
                if not move.lost:
                    self._propose(move.source, encode_transfer(LetGo(move.epoch)))
                self._tell(Dropped(change.id, number))

    def _is_forgotten(self, epoch: int) -> bool:
        """Whether a read that began before the move has found its readers by now."""
        now = self._clock.monotonic_ns()
        return now - self._arrived_ns.setdefault(epoch, now) >= _READ_NS

    def _move(self, change: Change, number: int, move: Move) -> None:
        version = self._topology.wanted[move.target].version
        if not move.lost:
            self._propose(move.source, encode_transfer(Fence(move.epoch, move.slots)))
            fence, found, schema = _first(move.holders, partial(self._describe, move))
        else:
            fence, found, schema = self._nothing(move)
        if move.fence is None:
            self._tell(Fenced(change.id, number, fence))
        else:
            fence = move.fence
        arrival = replace(
            found.arrival,
            change=change.id,
            move=number,
            source=move.source,
            fence=fence,
            holders=move.holders,
            slots=move.slots,
        )
        *before, last = schema
        for piece in before:
            self._propose(move.target, encode_transfer(Bring(move.epoch), piece))
        self._propose(move.target, encode_transfer(Open(arrival, found.requests, found.drops), last))
        self._tell(Opened(change.id, number, version))

    def _nothing(self, move: Move) -> tuple[int, Open, list[list[SchemaChange]]]:
        """What `_describe` would say of slots that nobody has: no points, and the series that this node knows of."""
        arrival = Arrival(move.epoch, 0, 0, move.source, 0, (), move.slots, ())
        tree, table = self._schema.tree, self._topology.table
        changes = [decode_change(line) for line in tree.dump().splitlines()]
        known = along(tree, changes, lambda database: table.slot(database, 0) in set(move.slots))
        pieces = [known[at : at + _PIECE_CHANGES] for at in range(0, len(known), _PIECE_CHANGES)]
        return 0, Open(arrival, (), Drops().words()), pieces or [[]]

    def _propose(self, group: GroupId, data: bytes) -> None:
        self._proposer.propose(group, data, _PROPOSE_SECONDS)

    def _describe(self, move: Move, node: NodeId) -> tuple[int, Open, list[list[SchemaChange]]]:
        """Of fenced slots: as of which entry, what their new group must know, and the schema that goes, in pieces."""
        pieces: list[list[SchemaChange]] = []
        while True:
            known = sum(map(len, pieces))
            answer = json.loads(self._ask(node, DESCRIBE, json.dumps([move.source, move.epoch, known]).encode()))
            pieces.append([decode_change(text.encode()) for text in answer["schema"]])
            if not answer["more"]:
                break
        found = transfer_of(answer["open"])
        assert isinstance(found, Open)
        return int(answer["index"]), found, pieces

    def _ask(self, node: NodeId, name: str, question: bytes) -> bytes:
        if node == self._node:
            return self._calls_here[name](node, question)
        if self._stopping.done():
            raise Unreachable(node, "this node stops", sent=False)
        if name != CAPTURE:
            return self._peers.call(node, name, question, _ASK_SECONDS)
        answer: Future[bytes] = Future()
        threading.Thread(target=self._ask_for_capture, args=(node, question, answer), daemon=True).start()
        either: list[Future[Any]] = [answer, self._stopping]
        wait(either, return_when=FIRST_COMPLETED)
        if not answer.done():
            raise Unreachable(node, "this node stops")
        return answer.result()

    def _ask_for_capture(self, node: NodeId, question: bytes, answer: Future[bytes]) -> None:
        try:
            answer.set_result(self._peers.call(node, CAPTURE, question, _CAPTURE_SECONDS))
        except BaseException as error:  # noqa: BLE001 (whoever waits has it raised)
            answer.set_exception(error)

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
            _first(holders, lambda node: self._fetch_from(node, machine, arrival))
        if not self._guests_arrived():
            return  # the next step
        self._tell(Loaded(arrival.change, arrival.move, self._node))

    def _fetch_from(self, node: NodeId, machine: RegionMachine, arrival: Arrival) -> None:
        question = json.dumps([arrival.source, arrival.epoch]).encode()
        id_ = self._ask(node, CAPTURE, question)
        folder = os.path.join(self._folder, str(arrival.epoch))
        try:
            if node == self._node:
                capture, place = self._shelf.capture(id_), self._shelf.folder_of(id_)
            else:
                capture, place = pull_capture(partial(self._ask_paced, node), id_, folder, self._disk), folder
            machine.region.arrive(set(arrival.partitions), capture, place)
        finally:  # what fails is tried again with another capture, if it has not come by a snapshot meanwhile
            with suppress(Unreachable, RemoteError):  # its lease will end
                self._ask(node, DONE, id_)
            self._disk.remove_tree(folder)

    # ------------------------------------------------------------------ being asked

    def handlers(self) -> Mapping[str, CallHandler]:
        """What other nodes ask this one, by name."""
        return {
            DESCRIBE: self._tell_of,
            CAPTURE: self._capture,
            STANDING: self._tell_standing,
            **self.rescue.handlers(),
        }

    def _tell_standing(self, node: NodeId, _: bytes) -> bytes:
        found = self._topology.nodes.get(node)
        return json.dumps(None if found is None else found.standing.value).encode()

    def _tell_of(self, _: NodeId, request: bytes) -> bytes:
        machine, (epoch, known) = self._fenced(DESCRIBE, request, 2)
        index, found, schema = machine.replica.describe(epoch)
        texts = [encode_change(change).decode() for change in schema[known:]]
        sizes = list(itertools.accumulate(map(len, texts)))
        count = max(bisect.bisect_right(sizes, _PIECE_BYTES), 1)
        words: dict[str, Any] = {
            "index": index,
            "open": words_of(found),
            "schema": texts[:count],
            "more": count < len(texts),
        }
        return json.dumps(words).encode()

    def _capture(self, _: NodeId, request: bytes) -> bytes:
        machine, (epoch,) = self._fenced(CAPTURE, request, 1)
        return machine.capture_left(epoch)

    def _fenced(self, name: str, request: bytes, count: int) -> tuple[RegionMachine, list[int]]:
        """The replica of a group that has fenced slots by a move, and `count` numbers: first the move's epoch."""
        try:
            group, *numbers = map(int, json.loads(request))
            if len(numbers) != count or min(numbers) < 0:
                raise ValueError(f"{len(numbers)} numbers")
        except (ValueError, TypeError) as error:
            raise BadRequest(name, error) from error
        machine = self._replicas.machines.get(GroupId(group))
        if machine is None:
            raise NotHere(GroupId(group), "this node has no replica of it")
        return machine, numbers


def _next(known: Membership, wanted: Membership) -> Membership:
    """The next step to the membership that a group is to have: who is to vote, and is not there yet, learns first."""
    if set(wanted.voters) <= set(known.nodes):
        return wanted
    return membership(wanted.version, known.voters, set(wanted.nodes) - set(known.voters))


def _first(nodes: Sequence[NodeId], ask: Callable[[NodeId], _T]) -> _T:
    """What the first node gives that has no trouble. Raises the trouble of the last one."""
    for node in nodes[:-1]:
        try:
            return ask(node)
        except _TROUBLE as error:
            logger.info("another node is asked", extra={"node": node, "why": str(error)})
    return ask(nodes[-1])
