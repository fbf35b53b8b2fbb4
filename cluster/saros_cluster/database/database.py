"""The cluster as one database, seen from one node: any node accepts any request.

    write         new databases -> meta group; new series -> their schema's group; rows -> the groups of their slices
    load          pieces of files -> the logs of the groups of their slices                      (`load_coordinator`)
    schema        to the group that keeps it, or to all groups                                   (`schema_coordinator`)
    drop          numbered by the meta group, then to all groups                                 (`drop_coordinator`)
    read          three consistency levels; the regions of this node, and readers at others      (`read_views`)

Writes become entries in the logs of groups (`write_coordinator`). Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial

import msgspec
from msgspec.structs import replace

from saros_cluster.data.command import Request, check_command, encode_command
from saros_cluster.database.drop_coordinator import DropCoordinator
from saros_cluster.database.load_coordinator import LocalServices, abandon, load_file
from saros_cluster.database.read_index import STRONG_SECONDS, ReadBarrier
from saros_cluster.database.read_views import ReadViews
from saros_cluster.database.schema_coordinator import SchemaCoordinator, devices_of
from saros_cluster.database.synced_devices import refuse_synced
from saros_cluster.database.write_coordinator import WriteCoordinator
from saros_cluster.database.write_failure import write_failure
from saros_cluster.meta.machine import decode_meta_entry, encode_meta_entry
from saros_cluster.meta.metadata_kv import Notes, PutNotes
from saros_cluster.meta.state import BeginDrop, BeginDropSeries, ChangeUsers, Grow
from saros_cluster.multiraft.host import Busy, GroupHost, NotHere, NotLeader
from saros_cluster.multiraft.peers import CallHandler, Peers, Unreachable
from saros_cluster.multiraft.state_machine import Outcome, ProposalLost, ReplacedBySnapshot
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.raft.node import ENTRY_BYTES_MAX
from saros_cluster.routing.merges import MergeHere, Stopped
from saros_cluster.routing.no_leader import NoLeader, step_deadline_ns
from saros_cluster.routing.proposer import PROPOSE, Proposer
from saros_cluster.routing.replicas import Replicas
from saros_cluster.routing.round_robin import RoundRobin
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.routing import Routing
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.commands import GrowthCommand
from saros_cluster.topology.topology import META
from saros_cluster.users.commands import Command as UsersCommand
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError
from saros_storage.base.paths import parse_pattern
from saros_storage.base.tablet import MultiTablet, Tablet
from saros_storage.base.write_request import UNNUMBERED, WriteRequest
from saros_storage.checkpoint.checkpoint_set import CheckpointSet
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.compaction.compactor import CompactionCounters, Compactor
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk
from saros_storage.layers import ViewLayer, WriteGuard, change_locks, layer_problems, layered_hold, layered_view
from saros_storage.loading.loader import LoadOptions
from saros_storage.loading.staging import Staging
from saros_storage.mutation.mutation import Deletion, Mutation, PlacedTablet
from saros_storage.mutation.tablet_codec import TabletFrame
from saros_storage.mutation.tablet_validation import TabletValidator, frames_of
from saros_storage.partition.partition_status import PartitionStatus
from saros_storage.read.latest_cache import LatestCache
from saros_storage.region import StoreStatus
from saros_storage.scan.read_point import ReadHorizon, ReadPoint, ReadScope, Sources
from saros_storage.scan.reading import ReadView, TimeRange
from saros_storage.schema import SchemaChange, SchemaTree

#: Timeout of a background refresh of the schema of remote groups.
_REFRESH_SECONDS = 1.0
#: The number of remote groups that one refresh asks for new series. The next refresh asks the groups that follow these.
_GROUPS_REFRESHED = 16
#: The number of threads for requests that span several groups. All requests of the node share them. At most WAITING_MAX
#: of them may wait for a leader.
_THREADS = 32
#: If no bytes of a shipped file arrive for this long, the file is abandoned.
_SHIPMENT_LEASE_NS = 600_000_000_000
#: The number of devices for which the group of the last write is remembered.
_WRITTEN_MAX = 50_000


class Parts(msgspec.Struct, frozen=True):
    """The components of this node that the database uses."""

    node: NodeId
    client: int
    routes: Routes
    host: GroupHost
    peers: Peers
    proposer: Proposer
    replicas: Replicas
    schema: ClusterSchema
    options: StoreOptions
    clock: Clock
    #: Tells whether a node has recently failed to answer.
    is_down: Callable[[NodeId], bool]
    #: Asks all nodes to flush the given databases, or all databases if it is given None.
    flush_all: Callable[[Sequence[str] | None], None]
    #: Asks all nodes to merge files of the given databases: (databases, full, stopped).
    merge_all: MergeHere
    compactor: Compactor
    shelf: CheckpointRegistry
    disk: Disk
    #: The place for files that this node loads, until their groups have them.
    staging: Staging
    #: Returns the notes in this node's copy of the meta group's state.
    notes: Callable[[], Notes] = Notes
    #: Returns the entry of the meta group by which a request took effect, or None if it is not known.
    meta_entry_of: Callable[[Request], int | None] = lambda _: None


class ProposedWrite:
    """A write that was proposed to a group that this node leads."""

    __slots__ = ("_outcome",)

    def __init__(self, outcome: Future[Outcome]) -> None:
        self._outcome = outcome

    def wait(self, seconds: float) -> bool | None:
        """Wait at most `seconds`. Return whether the write took effect, or None if this is not yet known."""
        try:
            self._outcome.result(seconds)
        except (FutureTimeoutError, ReplacedBySnapshot):
            return None
        except (StorageError, NotLeader, Busy, NotHere, ProposalLost):
            return False
        return True


class ClusterDatabase:
    """The cluster as one database. Implements the engine's `Database`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        #: See `saros_storage.layers`.
        self.write_guards: Sequence[WriteGuard] = ()
        self.view_layers: Sequence[ViewLayer] = ()
        self._fitting = TabletValidator()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="saros-groups")
        self._refreshed: RoundRobin[GroupId] = RoundRobin(_GROUPS_REFRESHED)
        #: For each device, the group to which its last written rows went.
        self._written: dict[str, GroupId] = {}
        schema, routes, replicas, clock = parts.schema, parts.routes, parts.replicas, parts.clock
        self._read_barrier = read_barrier = ReadBarrier(
            parts.host,
            parts.peers,
            clock,
            routes,
            replicas,
            schema,
            self._pool,
            parts.is_down,
            parts.node,
            parts.proposer.availability,
        )
        self.entries = WriteCoordinator(parts.client, parts.proposer, read_barrier, self._pool, clock)
        self.drop_coordinator = DropCoordinator(schema, routes, parts.proposer, self.entries, read_barrier, clock)
        self._schema_coordinator = SchemaCoordinator(
            schema, routes, self.entries, self.drop_coordinator, read_barrier, parts.meta_entry_of
        )
        self.views = ReadViews(
            parts.node, parts.client, clock, routes, replicas, schema, parts.peers, read_barrier, self.drop_coordinator
        )

    @property
    def routing(self) -> Routing:
        """The current routing. Each access may return a newer routing than the previous access."""
        return self._parts.routes.now

    @property
    def schema(self) -> SchemaTree:
        """The schema as this node knows it."""
        return self._parts.schema.tree

    @property
    def options(self) -> StoreOptions:
        """The options of the regions on this node."""
        return self._parts.options

    # ------------------------------------------------------------------ writing

    def write(
        self,
        tablets: Sequence[Tablet | MultiTablet],
        creates: Sequence[SchemaChange] = (),
        *,
        request: WriteRequest = UNNUMBERED,
    ) -> None:
        """Implement `Database.write`. Raises PartialFailure."""
        request = self.numbered(request)
        frames = frames_of(tablets, joined=False)
        for guard in self.write_guards if creates else ():
            guard.check_changes(creates)
        devices = [*(frame.head.device for frame in frames), *devices_of(creates)]
        written: dict[GroupId, Mutation] = {}
        try:
            self.drop_coordinator.retry_overtaken(
                lambda: self._write(request, frames, creates, written), devices, request.deadline_ns
            )
        except StorageError as error:
            failure = write_failure(error, frames, written)
            if failure is error:
                raise
            raise failure from error

    def numbered(self, request: WriteRequest) -> WriteRequest:
        """Implement `Database.numbered`."""
        return self.entries.numbered(request)

    def submit_writes(self, writes: Sequence[tuple[Tablet, WriteRequest]]) -> list[ProposedWrite | None]:
        """Implement `Database.submit_writes`. Accept writes that become one entry of a group that this node leads."""
        drops = self._parts.schema.visible_drops  # read before the tree, so that the tree reflects at least these drops
        tree, routing = self.schema, self.routing
        ready = [self._entry_of(tablet, request, drops, tree, routing) for tablet, request in writes]
        futures = iter(self._parts.host.propose_all([entry for entry in ready if entry is not None]))
        return [None if entry is None else ProposedWrite(next(futures)) for entry in ready]

    def _entry_of(
        self, tablet: Tablet, request: WriteRequest, drops: Mapping[GroupId, int], tree: SchemaTree, routing: Routing
    ) -> tuple[GroupId, bytes] | None:
        """Return the write as one entry, or None if the write needs several entries or another node leads its group."""
        try:
            rows, partitions, seen = self._routed(frames_of([tablet], joined=False), drops, tree, routing)
        except StorageError:
            return None
        if len(rows) != 1 or not request.is_numbered or self._schema_coordinator.unregistered(partitions):
            return None
        ((group, parts),) = rows.items()
        if self._parts.proposer.leader_of(group) != self._parts.node:
            return None
        command = encode_command(Request(*request.key), Mutation(tablets=parts), seen, routing.table_version(group))
        return None if len(command) > ENTRY_BYTES_MAX else (group, command)

    def _routed(
        self, frames: Sequence[TabletFrame], drops: Mapping[GroupId, int], tree: SchemaTree, routing: Routing
    ) -> tuple[dict[GroupId, list[PlacedTablet]], dict[str, set[int]], int]:
        """Return the rows for each group, the slices in each database, and the newest drop that the schema reflects.

        Raises UserMistake.
        """
        for guard in self.write_guards:
            guard.check_rows([frame.head.device for frame in frames])
        refuse_synced(tree, (frame.head.device for frame in frames))
        placed = self._fitting.place(frames, tree)
        rows: dict[GroupId, list[PlacedTablet]] = {}
        partitions: dict[str, set[int]] = {}
        for frame, tablet in zip(frames, placed, strict=True):
            for group, database, slice_, part in routing.split_tablet(tablet):
                rows.setdefault(group, []).append(part)
                partitions.setdefault(database, set()).add(slice_)
                self._note_written(frame.head.device, group)
        return rows, partitions, self.drop_coordinator.newest_visible_drop(drops, placed) if drops else 0

    def _write(
        self,
        request: WriteRequest,
        frames: Sequence[TabletFrame],
        creates: Sequence[SchemaChange],
        written: dict[GroupId, Mutation],
    ) -> None:
        if creates:
            self._schema_coordinator.wait_remote_schema(creates, request.deadline_ns)
        drops = self._parts.schema.visible_drops  # read before the tree, so that the tree reflects at least these drops
        tree = self.schema
        if creates:
            tree = tree.dry_run(creates, [frame.head.device for frame in frames])
        routing = self.routing
        rows, partitions, seen = self._routed(frames, drops, tree, routing)
        if creates:
            self._schema_coordinator.create(request, creates, rows, tree, drops, routing, written, partitions)
            # A drop may have removed the new series, together with the rows of the entry that created them, so refuse
            # the other rows.
            heads = [part.tablet.head for parts in rows.values() for part in parts]
            for head in heads:
                self._fitting.depth(head, self.schema)
            refuse_synced(self.schema, (head.device for head in heads))
        else:
            self._schema_coordinator.register(partitions, request)
        mutations = {group: Mutation(tablets=parts) for group, parts in rows.items()}
        self.entries.propose_all(mutations, request, routing, seen, written)

    def _note_written(self, device: str, group: GroupId) -> None:
        if len(self._written) >= _WRITTEN_MAX:
            self._written.clear()
        self._written[device] = group

    def last_leader(self, device: str) -> NodeId | None:
        """Return the leader of the group that a device's rows were last sent to, if this node knows it."""
        group = self._written.get(device)
        return None if group is None else self._parts.proposer.leader_of(group)

    def change_schema(self, changes: Sequence[SchemaChange], *, request: WriteRequest = UNNUMBERED) -> None:
        """Implement `Database.change_schema` (see `schema_coordinator`). Raises PartialFailure."""
        with change_locks(self.write_guards):
            for guard in self.write_guards:
                guard.check_changes(changes)
            self.change_schema_unguarded(changes, request=request)

    def change_schema_unguarded(self, changes: Sequence[SchemaChange], *, request: WriteRequest = UNNUMBERED) -> None:
        """Change the schema without asking the write guards, on behalf of the component that installed them."""
        self._schema_coordinator.change(changes, request)

    def load(self, path: str, options: LoadOptions, *, request: WriteRequest = UNNUMBERED) -> int:
        """Implement `Database.load` (see `load_coordinator`). Also raises LoadedInPart."""
        parts = self._parts
        here = LocalServices(
            parts.staging, parts.disk, parts.clock, parts.options, parts.proposer, self.entries, self.drop_coordinator
        )
        with change_locks(self.write_guards):
            for guard in self.write_guards:
                guard.check_file(path)
            return load_file(path, options, self.entries.numbered(request), self, here)

    def register_partitions(self, partitions: Mapping[str, Collection[int]], request: WriteRequest) -> None:
        """Register slices before rows are written to them (see `SchemaCoordinator.register`)."""
        self._schema_coordinator.register(partitions, request)

    def abandon_loads(self, led: Iterable[GroupId]) -> None:
        """In the groups `led` by this node, abandon the shipped files that have received nothing for a long time."""
        before_ns = self._parts.clock.monotonic_ns() - _SHIPMENT_LEASE_NS
        for group in led:
            machine = self._parts.replicas.machines.get(group)
            for name in () if machine is None else machine.replica.stale_shipments(before_ns):
                abandon(self._parts.proposer, group, name)

    def visible_drops(self) -> Mapping[GroupId, int]:
        """Return the newest drop of each group that the schema reflects (`ClusterSchema.visible_drops`)."""
        return self._parts.schema.visible_drops

    # ------------------------------------------------------------------ deleting

    def delete(self, patterns: Sequence[str], time: TimeRange, *, request: WriteRequest = UNNUMBERED) -> None:
        """Implement `Database.delete`."""
        for guard in self.write_guards:
            guard.check_deletion(patterns)
        for pattern in patterns:
            parse_pattern(pattern)
        if patterns and not time.empty:
            deletion = Mutation(deletions=[Deletion(tuple(patterns), time)])
            self._schema_coordinator.delete(deletion, self.entries.numbered(request))

    def delete_series(self, pattern: str, *, request: WriteRequest = UNNUMBERED) -> int:
        """Implement `Database.delete_series`.

        Raises PartialFailure. If an error is raised, a drop that has begun is completed later.
        """
        with change_locks(self.write_guards):
            for guard in self.write_guards:
                guard.check_deletion([pattern])
            return self.delete_series_unguarded(pattern, request=request)

    def delete_series_unguarded(self, pattern: str, *, request: WriteRequest = UNNUMBERED) -> int:
        """Delete series without asking the write guards, on behalf of the component that installed them."""
        deadline_ns = request.deadline_ns
        found = self.schema.match_series(parse_pattern(pattern))
        if found:
            groups = {self.routing.schema_group(device.database) for device, _ in found}
            with self.entries.showing(groups, deadline_ns):
                self.drop_coordinator.drop(BeginDropSeries(pattern), deadline_ns)
        else:
            self.drop_coordinator.wait_drops_applied([pattern], STRONG_SECONDS, deadline_ns)
        return len(found)

    def delete_database(self, path: str, *, request: WriteRequest = UNNUMBERED) -> None:
        """Implement `Database.delete_database`.

        Raises PartialFailure. If an error is raised, a drop that has begun is completed later.
        """
        with change_locks(self.write_guards):
            for guard in self.write_guards:
                guard.check_deletion([f"{path}.**"])
            self.drop_coordinator.drop(BeginDrop(path), request.deadline_ns)

    # ------------------------------------------------------------------ the meta group

    def change_users(self, change: UsersCommand, seconds: float, deadline_ns: int | None = None) -> None:
        """Change users. The change is visible on this node when the call returns.

        Raises UserMistake, NoLeader, OutcomeUnknown.
        """
        entry = encode_meta_entry(self.entries.own_request(), ChangeUsers(change))
        until_ns = step_deadline_ns(self._parts.clock.monotonic_ns(), seconds, deadline_ns)
        self._parts.proposer.propose(META, entry, deadline_ns=until_ns)
        try:
            self.entries.wait_visible([META], until_ns)
        except NoLeader as error:
            raise error.unknown() from error

    def grow(self, step: GrowthCommand) -> None:
        """Execute one step of a change of the topology. The step is visible on this node when the call returns.

        Raises UserMistake, NoLeader, OutcomeUnknown.
        """
        self.entries.change_meta(Grow(step))

    def wait_all_visible(self) -> None:
        """Wait until all acknowledged notes and schema changes are visible here. Raises NoLeader."""
        self.entries.wait_visible([META, *self.routing.groups])

    def wait_notes_visible(self) -> Notes:
        """Return the notes, including all acknowledged ones. Raises NoLeader."""
        self.entries.wait_visible([META])
        return self._parts.notes()

    def put_notes(self, version: int, texts: Mapping[str, str]) -> None:
        """Write notes (`meta.metadata_kv`).

        Raises UserMistake 2064 (another writer was faster), NoLeader, OutcomeUnknown.
        """
        self.entries.change_meta(PutNotes(version, texts))

    def wait_users_visible(self, seconds: float) -> None:
        """Wait until all acknowledged changes of users are visible here. Raises NoLeader."""
        self._read_barrier.catch_up([META], seconds)

    # ------------------------------------------------------------------ reading

    def read_point(
        self, consistency: str, horizon: ReadHorizon | None = None, deadline_ns: int | None = None
    ) -> ReadPoint:
        """Implement `Database.read_point`."""
        return self.views.read_point(consistency, horizon, deadline_ns)

    def catch_up(self, point: ReadPoint, scope: ReadScope) -> bool:
        """Implement `Database.catch_up` (see `read_views`)."""
        return self.views.catch_up(point, scope)

    def finish_schema_read(self, point: ReadPoint) -> None:
        """Implement `Database.finish_schema_read`."""
        self.views.finish_schema_read(point)

    @property
    def read_confirmations(self) -> Mapping[GroupId, int]:
        """For each group, the number of confirmations that were requested (`ReadBarrier.confirmations`)."""
        return self._read_barrier.confirmations

    def refresh_schema(self) -> None:
        """Fetch the schema changes of some remote groups. Each call continues where the previous call ended.

        Raises SchemaUnknown.
        """
        elsewhere = [group for group in self.routing.groups if not self._read_barrier.is_local(group)]
        self._read_barrier.refresh(self._refreshed.pick(elsewhere), _REFRESH_SECONDS)

    def view(self, point: ReadPoint, sources: Sources = None) -> ReadView:
        """Implement `Database.view`."""
        return layered_view(self.view_layers, partial(self.views.view, point, sources))

    def hold(self, point: ReadPoint) -> ReadView:
        """Implement `Database.hold`: this also pins views at the holders of remote groups."""
        return layered_hold(self.view_layers, partial(self.views.hold, point))

    # ------------------------------------------------------------------ other nodes

    def others(self) -> Sequence[NodeId]:
        """Return all other nodes of the cluster."""
        return [node for node in self._parts.routes.now.nodes if node != self._parts.node]

    def ask(self, node: NodeId, name: str, request: bytes, seconds: float) -> bytes:
        """Call another node. Raises Unreachable, RemoteError."""
        if self._parts.is_down(node):
            raise Unreachable(node, "it has not responded recently", sent=False)
        return self._parts.peers.call(node, name, request, seconds)

    # ------------------------------------------------------------------ the rest

    def flush(self, databases: Sequence[str] | None = None) -> None:
        """Implement `Database.flush` by flushing all nodes that answer."""
        self._parts.flush_all(databases)

    def merge(
        self, databases: Sequence[str] | None = None, *, full: bool = False, stopped: Stopped = lambda: False
    ) -> None:
        """Implement `Database.merge` by merging on all nodes that answer."""
        self._parts.merge_all(databases, full, stopped)

    def call_handlers(self) -> Mapping[str, CallHandler]:
        """Return the handlers of calls from other nodes, keyed by the names of the calls."""
        return {PROPOSE: self._parts.proposer.handler(_check_entry), **self._read_barrier.handlers()}

    @property
    def compaction(self) -> CompactionCounters:
        """Counters of this node's compactions. Implements `Database.compaction`."""
        return self._parts.compactor.counters

    @property
    def latest(self) -> LatestCache:
        """The cache of latest points. Implements `Database.latest`."""
        return self._parts.replicas.latest

    def status(self) -> StoreStatus:
        """Return statistics of this node's regions. The counts of databases and devices refer to the whole cluster."""
        here = self._parts.replicas.status()
        problems = (*here.problems, *layer_problems(self.view_layers))
        schema = self.schema
        return replace(here, databases=len(schema.databases()), devices=schema.device_count, problems=problems)

    @property
    def shelf(self) -> CheckpointRegistry:
        """The registry of captures. Implements `Database.shelf`."""
        return self._parts.shelf

    def create_checkpoint(self, since: int | None = None) -> CheckpointSet:  # noqa: ARG002 (a group's log stays in its group)
        """Implement `Database.create_checkpoint`: this node's data, each group as of one entry, then the schema."""
        ids, captures = self._parts.replicas.capture(self.shelf)
        self.entries.wait_visible(self.routing.groups)
        options = self.options
        unit = options.time_unit.suffix
        return CheckpointSet(unit, options.time_partition_interval, False, self.schema.dump(), ids, captures)

    def clear_caches(self) -> None:
        """Implement `Database.clear_caches`."""
        self._parts.replicas.clear_caches()

    def partitions(self) -> list[PartitionStatus]:
        """Implement `Database.partitions`."""
        return self._parts.replicas.partitions()

    def blocked_by(self) -> str | None:
        """Implement `Database.blocked_by`."""
        return self._parts.host.blocked_by() or self._parts.replicas.blocked_by()

    def close(self) -> None:
        """Wait for requests in progress."""
        self._pool.shutdown()


def _check_entry(group: GroupId, data: bytes) -> None:
    """Raise StorageError unless the bytes are a valid entry: otherwise every member of the group would fail on them."""
    if group == META:
        decode_meta_entry(data)
    else:
        check_command(data)
