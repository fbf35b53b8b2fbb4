"""The thread on which a node of a cluster runs its periodic tasks.

every second      expire leases of remote readers and checkpoints;  finish interrupted drops;  abandon loads of files
                  that are no longer sent;  truncate the log;  refresh the reports of other nodes;  transfer groups to
                  their heads (`leader_balancing`);  learn new series of remote groups;  move slots from busy groups
                  to others (`rebalancing`), if that is configured
every 20 s        renew leases;  update the load of slots

If the log is too large, the group that retains most of it is flushed, and then the log is truncated.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from saros_cluster.database.database import ClusterDatabase
from saros_cluster.meta.machine import MetaMachine
from saros_cluster.multiraft.host import GroupHost
from saros_cluster.multiraft.raft_log import RaftLog
from saros_cluster.node.slot_load import LoadMeter
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.reader_service import ReaderService
from saros_cluster.routing.no_leader import SchemaUnknown
from saros_cluster.routing.replicas import Replicas
from saros_cluster.topology.topology import META
from saros_server.cluster.leader_balancing import LeaderBalancing
from saros_server.cluster.rebalancing import Balancing
from saros_server.cluster.status import ClusterStatus
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.folder.store_options import StoreOptions

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS = 1.0
#: The number of rounds between two renewals of the leases. A lease lasts for three times as many rounds.
_RENEW_EVERY = 20
_HAND_OVER_NS = 2_000_000_000
_POLL_SECONDS = 0.01
#: The time limit for finishing dropped objects in one round. Drops that are not finished by then are retried in the
#: next round.
_DROPS_SECONDS = 1.0


class BackgroundTasks:
    """The thread that runs the periodic tasks."""

    def __init__(
        self,
        clock: Clock,
        log: RaftLog,
        host: GroupHost,
        meta: MetaMachine,
        replicas: Replicas,
        readers: ReaderService,
        database: ClusterDatabase,
        status: ClusterStatus,
        shelf: CheckpointRegistry,
        options: StoreOptions,
        meter: LoadMeter,
        balancing: Balancing,
    ) -> None:
        self._clock = clock
        self._log = log
        self.host = host
        self._meta = meta
        self._replicas = replicas
        self._readers = readers
        self._database = database
        self._status = status
        self._shelf = shelf
        self._options = options
        self._meter = meter
        self._balancing = balancing
        self._spread = LeaderBalancing()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saros-chores", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Transfer leadership to other nodes, and stop after the current task."""
        self.transfer_leadership()
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        rounds = 0
        while not self._stopped.wait(_INTERVAL_SECONDS):
            rounds += 1
            if rounds % _RENEW_EVERY == 0:
                self._do(self._database.views.renew)
                self._do(self._meter.update)
            for chore in (
                self._expire,
                self._finish_drops,
                self._abandon_loads,
                self._tidy_log,
                self._status.refresh,
                self._spread_leaders,
                self._refresh_schema,
                self._balance,
            ):
                self._do(chore)

    def _do(self, chore: Callable[[], object]) -> None:
        try:
            chore()
        except StorageError as error:
            logger.warning("a background task was postponed", extra={"chore": chore.__name__, "why": str(error)})
        except Exception:
            logger.exception("a background task failed", extra={"chore": chore.__name__})

    def _expire(self) -> None:
        self._readers.expire(self._clock.monotonic_ns())
        self._shelf.expire()

    def leads_meta(self) -> bool:
        """Return whether this node leads the meta group.

        The leader of this group runs the tasks that run on one node only.
        """
        return self.host.leads(META)

    def _finish_drops(self) -> None:
        if self.leads_meta():
            self._database.drop_coordinator.finish(_DROPS_SECONDS)

    def _abandon_loads(self) -> None:
        self._database.abandon_loads(self._led())

    def _balance(self) -> None:
        if self.leads_meta():
            self._balancing.step()
        else:
            self._balancing.rest()

    def _refresh_schema(self) -> None:
        with suppress(SchemaUnknown):  # a read that needs the schema reports it
            self._database.refresh_schema()

    def _spread_leaders(self) -> None:
        led = [group for group in self._led() if group != META]
        for group in self._spread.due(g for g in led if self._can_lead(NodeId(g), g)):
            self.host.transfer(group, NodeId(group))

    def _can_lead(self, node: NodeId, group: GroupId) -> bool:
        return node in self._status.current_members(group) and not self._status.is_slow(node)

    def _led(self) -> list[GroupId]:
        return [group for group, status in self.host.statuses().items() if status.leads]

    def transfer_leadership(self) -> None:
        """Before the node stops, transfer each group that it leads to an up-to-date member, if there is one."""
        deadline_ns = self._clock.monotonic_ns() + _HAND_OVER_NS
        for group in self._led():
            for node in self._status.current_members(group)[:1]:
                self.host.transfer(group, node)
        while any(self._status.current_members(g) for g in self._led()) and self._clock.monotonic_ns() < deadline_ns:
            self._stopped.wait(_POLL_SECONDS)

    def _tidy_log(self) -> None:
        """Truncate the log. Truncate the log. If it is too large, first flush the group that retains most of it."""
        if self._log.bytes > self._options.log_bytes_max:
            held = self._log.held_by()
            machine = None if held is None else self._replicas.machines.get(held)
            if held == META:
                self._meta.save()
            elif machine is not None:
                machine.region.flush()
                machine.save()
        self._log.cut()
