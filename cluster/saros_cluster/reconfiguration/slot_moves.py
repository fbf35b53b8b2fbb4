"""Moves slots between groups.

This module contains the work of the meta group's leader, and the calls that members of the source group answer.

    source   Fence                                                           Release
    target          schema, requests: Prepare ..., Open    members fetch    Complete

Moves are opened one after the other. The source releases a move's slots once all reads that began before the move have
opened their readers. The only state outside the logs is the time at which this node first saw that all slots had
arrived. One thread calls `step`. The handlers run on any thread.
"""

from __future__ import annotations

import bisect
import itertools
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from saros_cluster.data.command import encode_transfer
from saros_cluster.data.drops import Drops
from saros_cluster.data.ownership import (
    Arrival,
    Complete,
    Fence,
    Open,
    Prepare,
    Release,
    transfer_from_json,
    transfer_to_json,
)
from saros_cluster.data.region_apply import RegionMachine
from saros_cluster.data.schema_transfer import changes_to_transfer
from saros_cluster.multiraft.host import GroupHost, NotHere
from saros_cluster.multiraft.peers import BadRequest, CallHandler
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.reconfiguration.peer_requests import first_answer
from saros_cluster.routing.replicas import Replicas
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.change import Change, Move, Stage
from saros_cluster.topology.commands import Dropped, Fenced, GrowthCommand, Opened, Proceed
from saros_cluster.topology.topology import META, Topology
from saros_storage.base.clock import Clock
from saros_storage.schema import SchemaChange, decode_change, encode_change

DESCRIBE = "growth.describe"
#: The longest time from the moment when a read looks at the table until its readers are open. A slower read fails with
#: the error that slots have moved.
_READ_NS = 3_000_000_000
#: Size of a piece of the schema that moves with slots: far below the limits of an entry and of an answer.
_PIECE_BYTES = 4 << 20
#: The number of schema changes in a piece if the group that had the slots is lost.
_PIECE_CHANGES = 100


class SlotMoves:
    """Drives the moves of the change in progress, on the meta group's leader."""

    def __init__(
        self,
        routes: Routes,
        host: GroupHost,
        schema: ClusterSchema,
        replicas: Replicas,
        clock: Clock,
        ask: Callable[[NodeId, str, bytes], bytes],
        propose: Callable[[GroupId, bytes], object],
        propose_command: Callable[[GrowthCommand], None],
    ) -> None:
        self._routes = routes
        self._host = host
        self._schema = schema
        self._replicas = replicas
        self._clock = clock
        self._ask = ask
        self._propose = propose
        self._propose_command = propose_command
        #: For each move's epoch, the time (monotonic) at which this node first saw that all slots had arrived.
        self._arrived_ns: dict[int, int] = {}

    @property
    def _topology(self) -> Topology:
        return self._routes.now.topology

    def step(self) -> None:
        """Continue the moves of a change, if this node leads the meta group.

        Raises the errors of calls to nodes and of proposals.
        """
        change = self._topology.change
        if change is None or not self._host.leads(META):
            return
        if change.stage is Stage.PREPARING and change.is_prepared and not self._schema.pending:
            self._propose_command(Proceed(change.id))
            change = self._topology.change or change
        if not change.going:
            return
        for number, move in enumerate(change.moves):
            if not move.opened:
                self._open(change, number, move)
                return  # the next step opens the next move
        for number, move in enumerate(change.moves):
            if move.arrived and not move.dropped and self._is_forgotten(move.epoch):
                self._propose(move.target, encode_transfer(Complete(move.epoch)))
                if not move.lost:
                    self._propose(move.source, encode_transfer(Release(move.epoch)))
                self._propose_command(Dropped(change.id, number))

    def _is_forgotten(self, epoch: int) -> bool:
        """Return whether all reads that began before the move have opened their readers."""
        now = self._clock.monotonic_ns()
        return now - self._arrived_ns.setdefault(epoch, now) >= _READ_NS

    def _open(self, change: Change, number: int, move: Move) -> None:
        version = self._topology.wanted[move.target].version
        if not move.lost:
            self._propose(move.source, encode_transfer(Fence(move.epoch, move.slots)))
            fence, found, schema = first_answer(move.holders, partial(self._describe, move))
        else:
            fence, found, schema = self._describe_lost(move)
        if move.fence is None:
            self._propose_command(Fenced(change.id, number, fence))
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
            self._propose(move.target, encode_transfer(Prepare(move.epoch), piece))
        self._propose(move.target, encode_transfer(Open(arrival, found.requests, found.drops), last))
        self._propose_command(Opened(change.id, number, version))

    def _describe_lost(self, move: Move) -> tuple[int, Open, list[list[SchemaChange]]]:
        """Return the same as `_describe`, for slots of a lost group: no points, and the series that this node knows."""
        arrival = Arrival(move.epoch, 0, 0, move.source, 0, (), move.slots, ())
        tree, table = self._schema.tree, self._topology.table
        changes = [decode_change(line) for line in tree.dump().splitlines()]
        known = changes_to_transfer(tree, changes, lambda database: table.slot(database, 0) in set(move.slots))
        pieces = [known[at : at + _PIECE_CHANGES] for at in range(0, len(known), _PIECE_CHANGES)]
        return 0, Open(arrival, (), Drops().to_json()), pieces or [[]]

    def _describe(self, move: Move, node: NodeId) -> tuple[int, Open, list[list[SchemaChange]]]:
        """Ask `node` for the fencing entry of a move, the state for the new group, and the schema in pieces."""
        pieces: list[list[SchemaChange]] = []
        while True:
            known = sum(map(len, pieces))
            answer = json.loads(self._ask(node, DESCRIBE, json.dumps([move.source, move.epoch, known]).encode()))
            pieces.append([decode_change(text.encode()) for text in answer["schema"]])
            if not answer["more"]:
                break
        found = transfer_from_json(answer["open"])
        assert isinstance(found, Open)
        return int(answer["index"]), found, pieces

    # ------------------------------------------------------------------ calls of other nodes

    def handlers(self) -> Mapping[str, CallHandler]:
        """Return the handlers of calls from other nodes, keyed by the names of the calls."""
        return {DESCRIBE: self._serve_describe}

    def _serve_describe(self, _: NodeId, request: bytes) -> bytes:
        machine, (epoch, known) = fenced(self._replicas, DESCRIBE, request, 2)
        index, found, schema = machine.replica.describe(epoch)
        texts = [encode_change(change).decode() for change in schema[known:]]
        sizes = list(itertools.accumulate(map(len, texts)))
        count = max(bisect.bisect_right(sizes, _PIECE_BYTES), 1)
        words: dict[str, Any] = {
            "index": index,
            "open": transfer_to_json(found),
            "schema": texts[:count],
            "more": count < len(texts),
        }
        return json.dumps(words).encode()


def fenced(replicas: Replicas, name: str, request: bytes, count: int) -> tuple[RegionMachine, list[int]]:
    """Decode a request about a move.

    Return the local replica of the move's source, and `count` numbers, the first of which is the move's epoch.

    Raises BadRequest, NotHere.
    """
    try:
        group, *numbers = map(int, json.loads(request))
        if len(numbers) != count or min(numbers) < 0:
            raise ValueError(f"invalid list of {len(numbers)} numbers")
    except (ValueError, TypeError) as error:
        raise BadRequest(name, error) from error
    machine = replicas.machines.get(GroupId(group))
    if machine is None:
        raise NotHere(GroupId(group), "this node has no replica of it")
    return machine, numbers
