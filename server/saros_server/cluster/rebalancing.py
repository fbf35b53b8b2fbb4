"""Plan and start REBALANCE CLUSTER, on request and, if configured, periodically.

    BY SLOTS                     equal numbers of slots for groups, and of replicas for nodes; needs no measurement
    BY WRITES, BYTES, QUERIES    collect the loads that all nodes measured (`slot_load`); `balanced_by_load` decides

Thread-safe; waits for other nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from saros_cluster.node.slot_load import LOADS, LoadMeter, SlotLoads, united
from saros_cluster.placement.balancer import Loads, Owners, balanced_by_load, rebalanced, totals
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.table import PartitionTable
from saros_cluster.routing.routes import Routes
from saros_cluster.topology.commands import Begin, GrowthCommand
from saros_engine.base.cluster_info import PlannedMove
from saros_grammar.syntax.ast import Measure
from saros_server.cluster.peer_requests import Ask, ask_each
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError

logger = logging.getLogger(__name__)


class BalanceOptions(msgspec.Struct, frozen=True):
    """The measure and the interval of automatic balancing; `measure` None: it is off."""

    measure: Measure | None = None
    interval_ms: int = 3_600_000


class Balancing:
    """Plans and starts the rebalancing of a cluster's slots on this node."""

    def __init__(
        self,
        meter: LoadMeter,
        routes: Routes,
        others: Callable[[], Sequence[NodeId]],
        ask: Ask,
        grow: Callable[[GrowthCommand], None],
        clock: Clock,
        options: BalanceOptions,
    ) -> None:
        self._meter = meter
        self._routes = routes
        self._others = others
        self._ask = ask
        self._grow = grow
        self._clock = clock
        self._options = options
        self._due_ns: int | None = None

    def set_options(self, options: BalanceOptions) -> None:
        """Change the measure and the interval of automatic balancing, which waits for a full interval then."""
        self._options = options
        self._due_ns = None

    def plan(self, measure: Measure) -> Sequence[PlannedMove]:
        """Return the moves that `rebalance` would start. Raises StorageError if a node does not report its loads."""
        table = self._routes.now.table
        loads = self._loads(measure, len(table.owners))
        wanted = _target_owners(table, measure, loads)
        before, after = (totals(owners, table.groups, loads) for owners in (table.owners, wanted))
        moved = np.flatnonzero(table.owners != wanted)
        pairs = sorted(set(zip(table.owners[moved].tolist(), wanted[moved].tolist(), strict=True)))
        found = []
        for source, target in pairs:
            slots = moved[(table.owners[moved] == source) & (wanted[moved] == target)]
            amounts = (before[source], after[source], before[target], after[target])
            found.append(PlannedMove(source, target, len(slots), float(loads[slots].sum()), *amounts))
        return found

    def rebalance(self, measure: Measure) -> bool:
        """Start the moves, and return whether there are any.

        If the measure is the number of slots, the result is always True.

        Raises UserMistake if another change is in progress, StorageError if a node does not report its loads.
        """
        if measure is Measure.SLOTS:
            self._grow(Begin())
            return True
        table = self._routes.now.table
        wanted = _target_owners(table, measure, self._loads(measure, len(table.owners)))
        moved = np.flatnonzero(table.owners != wanted)
        if len(moved):
            targets = {NodeId(int(head)) for head in wanted[moved]}
            self._grow(Begin(owners={head: tuple(moved[wanted[moved] == head].tolist()) for head in targets}))
        return bool(len(moved))

    def step(self) -> None:
        """Rebalance if the interval has passed and no other change is in progress.

        Called on the leader of the meta group only.
        """
        options, now_ns = self._options, self._clock.monotonic_ns()
        measure = options.measure
        if measure is None:
            return
        if self._due_ns is None or self._routes.now.topology.change is not None:
            self._due_ns = now_ns + options.interval_ms * 1_000_000
        elif now_ns >= self._due_ns:
            self._due_ns = None
            if self.rebalance(measure):
                logger.info("the cluster is balanced", extra={"by": measure.value})

    def rest(self) -> None:
        """Forget the time of the next rebalancing, so that this node waits for a full interval if it becomes leader.

        Called on every node but the leader.
        """
        self._due_ns = None

    def _loads(self, measure: Measure, slots: int) -> Loads:
        if measure is Measure.SLOTS:
            return np.ones(slots)
        told = [self._meter.local_loads()]
        for node, answer in ask_each(sorted(self._others()), self._ask, LOADS, b""):
            if isinstance(answer, str):
                raise StorageError(f"node {node} does not report the load of its slots: {answer}; try again", code=2016)
            told.append(SlotLoads.decode(answer, slots))
        found = united(told, slots)
        by: Mapping[Measure, Loads] = {
            Measure.WRITES: found.written,
            Measure.BYTES: found.stored,
            Measure.QUERIES: found.read,
        }
        return by[measure]


def _target_owners(table: PartitionTable, measure: Measure, loads: Loads) -> Owners:
    if measure is Measure.SLOTS:
        return rebalanced(table.owners, table.groups)
    return balanced_by_load(table.owners, table.groups, loads)
