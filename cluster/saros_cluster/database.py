"""The cluster as one database, seen from one node (R-3.1): any node takes any request.

    write         new databases -> meta group; new series -> their schema's group; rows -> the groups of their slices
    load          pieces of files -> the groups of their slices, whose entries take them in      (`loading`)
    drop          meta group numbers it -> all groups carry it out -> meta group ends it        (`data.drops`)
    catch_up      strong  all groups confirm how far one must have applied; wait for it       fails if they cannot
                  mid     the same if it is quick, else what is here, and the result is called stale
                  weak    what is here, and what its session was shown before, here or elsewhere: else it is stale
    view          the regions of this node, and readers at the holders of the others

Each entry carries the client's request, so a repetition has no second effect (`data.requests`). A write that spans
groups is one entry in each: each is all or nothing, the write as a whole may be done in part if a group fails, and then
says so (`partly`). Thread-safe.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from weakref import WeakSet

from saros_cluster.catching_up import CatchingUp
from saros_cluster.cluster_schema import ClusterSchema
from saros_cluster.data.command import NO_REQUEST, Known, Request, check_command, current_request, encode_command
from saros_cluster.data.drops import OVERTAKEN, Drop, effect_of, reaches
from saros_cluster.data.ownership import MOVED
from saros_cluster.growth.commands import GrowthCommand
from saros_cluster.growth.topology import META
from saros_cluster.host import Busy, GroupHost, NotHere, NotLeader
from saros_cluster.loading import Here, abandon, load_file
from saros_cluster.machine import Lost, Outcome
from saros_cluster.merges import MergeHere, Stopped
from saros_cluster.meta.machine import decode_meta_entry, encode_meta_entry
from saros_cluster.meta.state import BeginDrop, BeginDropSeries, ChangeUsers, CreateDatabase, EndDrop, Grow, MetaCommand
from saros_cluster.partly import raise_failures
from saros_cluster.peers import CallHandler, Peers
from saros_cluster.placement.ring import NodeId
from saros_cluster.proposer import DEADLINE_SECONDS, PROPOSE, NoLeader, OutcomeUnknown, Proposer
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.questions import ReadTarget
from saros_cluster.remote.remote_reader import Holder
from saros_cluster.remote.routed_view import RoutedView
from saros_cluster.replicas import Replicas
from saros_cluster.routing import Routes, Routing
from saros_cluster.users.commands import Command as UsersCommand
from saros_scheduler.task import QueryId
from saros_storage import schema as changes_of
from saros_storage.capture.frozen import Frozen
from saros_storage.capture.shelf import Shelf
from saros_storage.clock import Clock
from saros_storage.compaction.compactor import CompactionCounters, Compactor
from saros_storage.disk import Disk
from saros_storage.errors import StorageError, StoreClosed, UserMistake
from saros_storage.latest_cache import LatestCache
from saros_storage.loading.loader import LoadOptions
from saros_storage.loading.staging import Staging
from saros_storage.mutation import Deletion, Mutation, Placed
from saros_storage.partition_status import PartitionStatus
from saros_storage.paths import join_nodes, parse_pattern, split_path
from saros_storage.placing import Fitting, frames_of
from saros_storage.read_point import Horizon, ReadPoint
from saros_storage.reading import ReadView, TimeRange
from saros_storage.region import StoreStatus
from saros_storage.schema import SchemaChange, SchemaTree
from saros_storage.store_options import StoreOptions
from saros_storage.tablet import Tablet
from saros_storage.tablet_codec import TabletFrame
from saros_storage.view import LocalReadView

STRONG_SECONDS = 10.0
MID_SECONDS = 0.5
#: A replica gets so long until it has what a session was shown elsewhere; a healthy one has it at the next heartbeat.
SHOWN_SECONDS = 0.3
#: To be told of series elsewhere: for a read, once after a start; and in the background.
KNOW_SECONDS, REFRESH_SECONDS = 5.0, 1.0
#: Groups that one request talks to at a time, for all requests of the node.
_THREADS = 16
_EXISTS, _SERIES_EXISTS = 501, 503
#: A file of which nothing more has come for so long is given up.
_SHIPMENT_LEASE_NS = 600_000_000_000
#: How often something is prepared anew because drops overtake it, or slots move.
_RENEWALS_MAX = 100
#: A move of slots takes a few trips from node to node.
_MOVE_SECONDS = 0.02
#: Devices of which it is known where they were written last.
_WRITTEN_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Parts:
    """What the cluster is made of, as this node has it."""

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
    #: Whether a node has not answered lately.
    is_down: Callable[[NodeId], bool]
    #: Asks all nodes to flush some databases.
    flush_all: Callable[[Sequence[str] | None], None]
    #: Asks all nodes to merge files of some databases: (databases, full, stopped).
    merge_all: MergeHere
    compactor: Compactor
    shelf: Shelf
    disk: Disk
    #: Of files that are loaded at this node, until their groups have them.
    staging: Staging


class HandedOver:
    """A batch that was proposed to a group here, with its client's request."""

    def __init__(self, outcome: Future[Outcome]) -> None:
        self._outcome = outcome

    def wait(self, seconds: float) -> bool | None:
        """Whether it has had its effect. False: it has not, or nobody knows; None: not yet."""
        try:
            self._outcome.result(seconds)
        except FutureTimeoutError:
            return None
        except (StorageError, NotLeader, Busy, NotHere, Lost):
            return False
        return True


class ClusterDatabase:
    """See the module. Implements the engine's `Database`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._sequence = itertools.count(1)
        self._fitting = Fitting()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="saros-groups")
        self._queries = itertools.count(1)
        #: By device: the group of its newest rows.
        self._written: dict[str, GroupId] = {}
        self._lock = threading.Lock()
        self._views: WeakSet[RoutedView] = WeakSet()
        self._catching_up = CatchingUp(
            parts.host,
            parts.peers,
            parts.clock,
            parts.routes,
            parts.replicas,
            parts.schema,
            self._pool,
            parts.is_down,
            parts.node,
        )

    @property
    def _routing(self) -> Routing:
        """As of now: it may be another one the next time."""
        return self._parts.routes.now

    @property
    def schema(self) -> SchemaTree:
        """The schema as this node knows it."""
        return self._parts.schema.tree

    @property
    def options(self) -> StoreOptions:
        """Those of this node's regions."""
        return self._parts.options

    # ------------------------------------------------------------------ writing

    def write(self, tablets: Sequence[Tablet], creates: Sequence[SchemaChange] = ()) -> None:
        """See `Database.write`. Raises PartlyDone."""
        request = self._request()
        frames = frames_of(tablets)
        for _ in range(_RENEWALS_MAX):
            try:
                self._write(request, frames, creates)
            except UserMistake as error:
                overtaken = error
                self.prepare_anew(error, [*(f.head.device for f in frames), *_devices(creates)])
            else:
                return
        raise overtaken

    def hand_over(self, writes: Sequence[tuple[Tablet, tuple[int, int]]]) -> list[HandedOver | None]:
        """See `Database.hand_over`: those that are one entry of a group which is led here."""
        drops = self._parts.schema.drops  # before the tree is looked at: what it says must show there
        tree, routing = self.schema, self._routing
        ready = [self._ready(tablet, Request(*request), drops, tree, routing) for tablet, request in writes]
        futures = iter(self._parts.host.propose_all([command for command in ready if command is not None]))
        return [None if command is None else HandedOver(next(futures)) for command in ready]

    def _ready(
        self, tablet: Tablet, request: Request, drops: Mapping[GroupId, int], tree: SchemaTree, routing: Routing
    ) -> tuple[GroupId, bytes] | None:
        """The entry that a batch is; None if it is another number of entries, or not for this node to say."""
        try:
            placed = [Placed(self._fitting.depth(f.head, tree), f.frame, f) for f in frames_of([tablet])]
        except UserMistake:
            return None
        parts = [part for whole in placed for part in routing.hand_out(whole)]
        if len(parts) != 1 or request == NO_REQUEST:
            return None
        ((group, part),) = parts
        if self._parts.proposer.leader_of(group) != self._parts.node:
            return None
        self._note_written(tablet.device, group)
        seen = self._seen(drops, placed) if drops else 0
        return group, encode_command(request, Mutation(tablets=[part]), seen)

    def prepare_anew(self, error: UserMistake, devices: Sequence[str]) -> None:
        """Learn why groups refused what was prepared for them; raises the error if it is another mistake."""
        if error.code == MOVED:
            self._catching_up.pause(_MOVE_SECONDS)
            self._see([META])
        elif error.code == OVERTAKEN:
            self._see_drops(devices)
        else:
            raise error

    def _write(self, request: Request, frames: Sequence[TabletFrame], creates: Sequence[SchemaChange]) -> None:
        if creates:
            self._look(creates)
        drops = self._parts.schema.drops  # before the tree is looked at: what it says must show there
        tree = self.schema
        if creates:
            tree = tree.rehearse(creates, [frame.head.device for frame in frames])
        placed = [Placed(self._fitting.depth(frame.head, tree), frame.frame, frame) for frame in frames]
        seen = self._seen(drops, placed) if drops else 0
        rows: dict[GroupId, list[Placed]] = {}
        routing = self._routing
        for frame, tablet in zip(frames, placed, strict=True):
            for group, part in routing.hand_out(tablet):
                rows.setdefault(group, []).append(part)
                self._note_written(frame.head.device, group)
        if creates:
            self._create(request, creates, rows, tree, drops)
            for frame in frames:  # what was created may have been dropped since
                self._fitting.depth(frame.head, self.schema)
        self._propose_all({group: Mutation(tablets=parts) for group, parts in rows.items()}, request, seen)

    def _look(self, creates: Sequence[SchemaChange]) -> None:
        """Learn what others have made, where nothing tells this node; a database that is new has no series yet."""
        if not any(isinstance(change, changes_of.CreateDatabase) for change in creates):
            self._see({g for g in self._schema_groups(_devices(creates)) if not self._catching_up.is_here(g)})

    def _schema_groups(self, devices: Sequence[str]) -> set[GroupId]:
        databases = {found for device in devices if (found := self.schema.database_of(device)) is not None}
        return {self._routing.schema_group(database) for database in databases}

    def _seen(self, drops: Mapping[GroupId, int], placed: Sequence[Placed]) -> int:
        """The newest drop that shows in what is known of all these tablets' series."""
        databases = {join_nodes(split_path(p.known.head.device)[: p.depth]) for p in placed if p.known is not None}
        return min((drops.get(self._routing.schema_group(d), 0) for d in databases), default=0)

    def _see_drops(self, devices: Sequence[str]) -> None:
        """Learn what was dropped of these devices' databases; help, if somebody did not get to the end of it."""
        groups = self._schema_groups(devices)
        before = self._parts.schema.drops
        self._see(groups)
        if before == self._parts.schema.drops:
            self._see([META])
            self.finish_drops()
            self._see(groups)

    def _note_written(self, device: str, group: GroupId) -> None:
        if len(self._written) >= _WRITTEN_MAX:
            self._written.clear()
        self._written[device] = group

    def last_leader(self, device: str) -> NodeId | None:
        """Who led the group that a device was last written to here, as far as this node knows."""
        group = self._written.get(device)
        return None if group is None else self._parts.proposer.leader_of(group)

    def change_schema(self, changes: Sequence[SchemaChange]) -> None:
        """See `Database.change_schema`."""
        request = self._request()
        if any(isinstance(change, changes_of.OF_ALL_GROUPS) for change in changes):
            self._change_all(request, changes)
            return
        self._see([META])
        self._see(self._schema_groups(_devices(changes)))
        if len(changes) > 1:  # a database that is made on the way may be there by now
            changes = [change for change in changes if not self._is_known_database(change)]
        for _ in range(_RENEWALS_MAX):
            drops = self._parts.schema.drops
            tree = self._rehearse(changes)
            try:
                self._create(request, changes, {}, tree, drops)
            except UserMistake as error:
                overtaken = error
                self.prepare_anew(error, _devices(changes))
            else:
                return
        raise overtaken

    def _change_all(self, request: Request, changes: Sequence[SchemaChange]) -> None:
        """Rules of TTL and the catalogue are known to all groups. Raises PartlyDone."""
        self._see(self._routing.groups)
        numbered = self.schema.numbered(changes)
        self.schema.rehearse(numbered)
        try:
            self._tell_all(Mutation(numbered), request)
        finally:
            self._see(self._routing.groups)

    def _tell_all(self, mutation: Mutation, request: Request) -> None:
        """An entry in each group. One that meets a move of slots is sent to all again.

        What came too early for slots that were about to come, or too late for some that were gone, missed them.
        """
        for _ in range(_RENEWALS_MAX):
            routing = self._routing
            try:
                self._propose_all(dict.fromkeys(routing.groups, mutation), request, routing=routing)
            except UserMistake as error:
                moved = error
                self.prepare_anew(error, ())
                request = self.own_request()
            else:
                return
        raise moved

    def load(self, path: str, options: LoadOptions) -> int:
        """See `Database.load`, and `loading`. Raises LoadedInPart too."""
        parts = self._parts
        here = Here(parts.staging, parts.disk, parts.clock, parts.options, parts.proposer)
        return load_file(path, options, self._request(), self, here)

    def abandon_loads(self, led: Iterable[GroupId]) -> None:
        """In the groups that this node leads, give up files that nobody has continued to send for long."""
        before_ns = self._parts.clock.monotonic_ns() - _SHIPMENT_LEASE_NS
        for group in led:
            machine = self._parts.replicas.machines.get(group)
            for name in () if machine is None else machine.stale_shipments(before_ns):
                abandon(self._parts.proposer, group, name)

    def drops_seen(self) -> Mapping[GroupId, int]:
        """By group, the newest drop that shows in the schema."""
        return self._parts.schema.drops

    def owner(self, database: str, slice_: int) -> GroupId:
        """The group that owns a slice."""
        return self._routing.group_at(database, slice_)

    def _is_known_database(self, change: SchemaChange) -> bool:
        return isinstance(change, changes_of.CreateDatabase) and self.schema.is_database(change.path)

    def _rehearse(self, changes: Sequence[SchemaChange]) -> SchemaTree:
        """The schema afterwards. What a client asks for again may be there: its group knows if that is a mistake."""
        try:
            return self.schema.rehearse(changes)
        except UserMistake as error:
            if error.code not in (_EXISTS, _SERIES_EXISTS) or current_request.get() == NO_REQUEST:
                raise
            return self.schema

    def _create(
        self,
        request: Request,
        changes: Sequence[SchemaChange],
        rows: dict[GroupId, list[Placed]],
        tree: SchemaTree,
        drops: Mapping[GroupId, int],
    ) -> None:
        """Make databases, then series. Rows of a group that gets series go into the same entry, and leave `rows`."""
        self._await_drops(changes, drops)
        for change in changes:
            if isinstance(change, changes_of.CreateDatabase):
                self._create_database(change.path, None if _devices(changes) else request)
        by_group: dict[GroupId, list[SchemaChange]] = {}
        for change in changes:
            if isinstance(change, changes_of.CreateSeries | changes_of.AlterSeries):
                database = tree.database_of(change.device)
                assert database is not None
                known = by_group.setdefault(self._routing.schema_group(database), [])
                made = changes_of.CreateDatabase(database)
                known += [change] if made in known else [made, change]
        mutations = {group: Mutation(found, (), rows.pop(group, ())) for group, found in by_group.items()}
        try:
            self._propose_all(mutations, request, min((drops.get(group, 0) for group in mutations), default=0))
        finally:
            self._see(mutations)

    def _await_drops(self, changes: Sequence[SchemaChange], drops: Mapping[GroupId, int]) -> None:
        """Nothing is made under a drop that is not over: end it."""
        schema = self._parts.schema
        if max(drops.values(), default=0) > schema.version:
            self._see([META])
        paths = [change.path for change in changes if isinstance(change, changes_of.CreateDatabase)]
        paths += _devices(changes)
        if any(reaches(drop, path) for drop in schema.pending.values() for path in paths):
            self.finish_drops()

    def _create_database(self, path: str, wanted: Request | None) -> None:
        """Make a database; unless a request asked for it (`wanted`), it does not matter who made it."""
        try:
            self._change_meta(CreateDatabase(path), wanted)
        except UserMistake as error:
            if wanted or error.code != _EXISTS or not self.schema.is_database(path):
                raise

    def _change_meta(self, command: MetaCommand, request: Request | None = None) -> None:
        """By default a command has a number of its own: one request may need several."""
        try:
            self._parts.proposer.propose(META, encode_meta_entry(request or self.own_request(), command))
        finally:
            self._see([META])

    def change_users(self, change: UsersCommand, seconds: float) -> None:
        """Change users; it shows here when this returns. Raises UserMistake, NoLeader, OutcomeUnknown."""
        entry = encode_meta_entry(self.own_request(), ChangeUsers(change))
        self._parts.proposer.propose(META, entry, seconds)
        try:
            self.see_users(seconds)
        except NoLeader as error:
            raise OutcomeUnknown(META, error.message) from error

    def grow(self, step: GrowthCommand) -> None:
        """Take a step of a change of the cluster; it shows here when this returns.

        Raises UserMistake, NoLeader, OutcomeUnknown.
        """
        self._parts.proposer.propose(META, encode_meta_entry(self.own_request(), Grow(step)))
        self._see([META])

    def see_users(self, seconds: float) -> None:
        """Wait until all changes of users that were acknowledged show here. Raises NoLeader."""
        self._catch_up([META], seconds)

    def _see(self, groups: Iterable[GroupId]) -> None:
        """Wait until what was just written to these groups shows in this node's schema."""
        self._catch_up(groups, STRONG_SECONDS)

    # ------------------------------------------------------------------ deleting

    def delete(self, patterns: Sequence[str], time: TimeRange) -> None:
        """See `Database.delete`."""
        for pattern in patterns:
            parse_pattern(pattern)
        if patterns and not time.empty:
            self._tell_all(Mutation(deletions=[Deletion(tuple(patterns), time)]), self._request())

    def delete_series(self, pattern: str) -> int:
        """See `Database.delete_series`. Raises PartlyDone; what is begun will be ended."""
        found = self.schema.match_series(parse_pattern(pattern))
        if found:
            self._drop(BeginDropSeries(pattern))
            self._see({self._routing.schema_group(device.database) for device, _ in found})
        return len(found)

    def delete_database(self, path: str) -> None:
        """See `Database.delete_database`. Raises PartlyDone; what is begun will be ended."""
        self._drop(BeginDrop(path))

    def _drop(self, command: BeginDrop | BeginDropSeries) -> None:
        """Begin it, as soon as no slots move, and carry it out; groups may end meanwhile."""
        deadline_ns = self._parts.clock.monotonic_ns() + int(DEADLINE_SECONDS * 1e9)
        steps: list[Callable[[], None]] = [lambda: self._change_meta(command), self.finish_drops]
        while steps:
            try:
                steps[0]()
            except UserMistake as error:
                if self._parts.clock.monotonic_ns() > deadline_ns:
                    raise
                self.prepare_anew(error, ())
            else:
                del steps[0]

    def finish_drops(self, seconds: float | None = None) -> None:
        """Carry out all drops that are begun, in their order in each group. May be repeated, and done by several nodes.

        The meta group's leader does so now and then, for those who could not.
        """
        pending = sorted(self._parts.schema.pending.items())
        if not pending:
            return
        self._in_all_groups(
            {group: effect_of(pending[-1][1]) for group in self._routing.groups},
            lambda group: self._carry_out(group, pending, seconds),
        )
        for number, _ in pending:
            self._change_meta(EndDrop(number))

    def _carry_out(self, group: GroupId, pending: Sequence[tuple[int, Drop]], seconds: float | None) -> None:
        for number, drop in pending:
            self._parts.proposer.propose(group, encode_command(NO_REQUEST, effect_of(drop), number), seconds)

    # ------------------------------------------------------------------ entries

    def _request(self) -> Request:
        """The client's request, or one of this node's own."""
        request = current_request.get()
        return self.own_request() if request == NO_REQUEST else request

    def own_request(self) -> Request:
        """A new one of this node's."""
        return Request(self._parts.client, next(self._sequence))

    def _propose_all(
        self, mutations: Mapping[GroupId, Mutation], request: Request, seen: int = 0, routing: Routing | None = None
    ) -> None:
        """An entry in each group, at once; `seen`: the newest drop that they take into account.

        `routing`: that which says which groups there are, of what concerns all.
        """

        def propose(group: GroupId) -> None:
            known = None if routing is None else routing.known(group)
            self._parts.proposer.propose(group, encode_command(request, mutations[group], seen, known))

        self._in_all_groups(mutations, propose)

    def _in_all_groups(self, mutations: Mapping[GroupId, Mutation], act: Callable[[GroupId], None]) -> None:
        """Carry out something in each group, at once. Raises what `raise_failures` does, after all are over."""
        if len(mutations) == 1:
            act(next(iter(mutations)))
            return
        running = {group: self._pool.submit(act, group) for group in mutations}
        wait(running.values())
        failures: dict[GroupId, StorageError] = {}
        for group, future in running.items():
            try:
                future.result()
            except StorageError as error:
                failures[group] = error
        raise_failures(mutations, failures)

    # ------------------------------------------------------------------ reading

    def catch_up(self, consistency: str, horizon: Horizon | None = None) -> ReadPoint:
        """See `Database.catch_up`. Raises NoLeader (strong), SchemaUnknown (others)."""
        everything = (META, *self._routing.groups)
        wanted = {} if horizon is None else horizon.shown
        match consistency:
            case "weak":
                self._catching_up.know(everything, KNOW_SECONDS)
                complete = self._catching_up.await_shown(wanted, SHOWN_SECONDS)
                return ReadPoint(stale=not complete, wanted=wanted, horizon=horizon)
            case "mid":
                try:
                    return ReadPoint(False, self._catch_up(everything, MID_SECONDS), horizon=horizon)
                except NoLeader:
                    self._catching_up.know(everything, KNOW_SECONDS)
                    return ReadPoint(stale=True, wanted=wanted, horizon=horizon)
            case "strong":
                return ReadPoint(False, self._catch_up(everything, STRONG_SECONDS))
            case _:
                raise AssertionError(consistency)

    def looked_at_schema(self, point: ReadPoint) -> None:
        """See `Database.looked_at_schema`."""
        if point.horizon is not None:
            point.horizon.note(self._catching_up.schema_shown(self._routing.groups))

    def refresh_schema(self) -> None:
        """Learn what is new in the schema of groups that are elsewhere. Raises SchemaUnknown."""
        self._catching_up.refresh(self._routing.groups, REFRESH_SECONDS)

    def _catch_up(self, groups: Iterable[GroupId], seconds: float) -> dict[int, int]:
        return self._catching_up.catch_up(groups, seconds)

    def view(self, point: ReadPoint) -> ReadView:
        """See `Database.view`."""
        routing, here, local = self._view_here(point)
        if len(here) == len(routing.groups) and point.horizon is None:
            return local
        query = QueryId(f"{self._parts.client:016x}-{next(self._queries)}")

        def routes(device: str, time: TimeRange) -> Sequence[GroupId]:
            database = self.schema.database_of(device)
            return () if database is None else routing.groups_for(database, time)

        def holders(group: GroupId) -> list[Holder]:
            return [] if group in here else self._holders(point, routing, group)

        view = RoutedView(query, local, routes, holders, self._parts.peers, point)
        with self._lock:
            self._views.add(view)
        return view

    def renew_views(self) -> None:
        """Tell the holders that queries still run; well within their lease."""
        with self._lock:
            views = list(self._views)
        for view in views:
            view.renew()

    def _view_here(self, point: ReadPoint) -> tuple[Routing, Mapping[GroupId, Known], LocalReadView]:
        """The routing of now, what is here by it, and a picture of that.

        A replica that lacks what must show, or has not heard of slots that came to its group, is none; nor is what was
        seen by a table of before slots went for good. And a node joins and leaves groups.
        """
        for _ in range(_RENEWALS_MAX):
            routing = self._routing
            if point.applied:
                missing = [group for group in routing.groups if group not in point.applied]
                point.applied = {**point.applied, **self._catch_up(missing, STRONG_SECONDS)}
            machines = self._parts.replicas.machines
            mine = [g for g in routing.groups if g in machines and self._catching_up.has(g, point.applied.get(g, 0))]
            known = {group: routing.known(group) for group in mine}
            here = {group: found for group, found in known.items() if machines[group].has_heard(found)}
            try:
                return routing, here, self._parts.replicas.view(here)
            except (UserMistake, NotHere) as error:
                moved: Exception = error
                self._catching_up.pause(_MOVE_SECONDS)
        raise moved

    def _holders(self, point: ReadPoint, routing: Routing, group: GroupId) -> list[Holder]:
        """Whom to ask for what, one after the other: who has what the session was shown, then anyone."""
        nodes = [node for node in self._catching_up.holders(group) if node != self._parts.node]
        if not nodes:
            raise UserMistake("slots have moved: run the query again", code=MOVED)
        known, shown = routing.known(group), point.wanted.get(group)
        targets = [ReadTarget(group, point.applied.get(group), *known)]
        if shown is not None:
            targets.insert(0, ReadTarget(group, shown, *known, int(SHOWN_SECONDS * 1e3)))
        return [Holder(node, target) for target in targets for node in nodes]

    # ------------------------------------------------------------------ the rest

    def flush(self, databases: Sequence[str] | None = None) -> None:
        """See `Database.flush`: on all nodes that answer."""
        self._parts.flush_all(databases)

    def call_handlers(self) -> Mapping[str, CallHandler]:
        """What other nodes ask this one, by name."""
        return {PROPOSE: self._parts.proposer.handler(_check_entry), **self._catching_up.handlers()}

    def flush_here(self, databases: Sequence[str] | None) -> None:
        """This node's part of it."""
        for machine in self._parts.replicas.machines.values():
            machine.region.flush(databases)

    def merge(
        self, databases: Sequence[str] | None = None, *, full: bool = False, stopped: Stopped = lambda: False
    ) -> None:
        """See `Database.merge`: on all nodes that answer."""
        self._parts.merge_all(databases, full, stopped)

    def merge_here(self, databases: Sequence[str] | None, full: bool, stopped: Stopped) -> None:
        """This node's part of it; a `MergeHere`."""
        for machine in self._parts.replicas.machines.values():
            while not stopped():
                region = machine.region
                try:
                    region.merge(databases, full=full, stopped=stopped)
                except StoreClosed:
                    if machine.region is region:  # else a snapshot took its place
                        raise
                else:
                    break

    @property
    def compaction(self) -> CompactionCounters:
        """See `Database.compaction`: of this node."""
        return self._parts.compactor.counters

    @property
    def latest(self) -> LatestCache:
        """See `Database.latest`."""
        return self._parts.replicas.latest

    def status(self) -> StoreStatus:
        """Figures of this node's regions; databases and devices of the cluster."""
        parts = [machine.region.status(0) for machine in self._parts.replicas.machines.values()]
        return StoreStatus(
            databases=len(self.schema.databases()),
            devices=self.schema.device_count,
            partitions=sum(p.partitions for p in parts),
            files=sum(p.files for p in parts),
            file_bytes=sum(p.file_bytes for p in parts),
            memtable_bytes=sum(p.memtable_bytes for p in parts),
            log_bytes=0,
            views=sum(p.views for p in parts),
            problems=tuple(problem for p in parts for problem in p.problems),
            unsequence_files=sum(p.unsequence_files for p in parts),
            unsequence_file_bytes=sum(p.unsequence_file_bytes for p in parts),
            partition_files_max=max((p.partition_files_max for p in parts), default=0),
            flushed_bytes=sum(p.flushed_bytes for p in parts),
        )

    @property
    def shelf(self) -> Shelf:
        """See `Database.shelf`."""
        return self._parts.shelf

    def freeze(self, since: int | None = None) -> Frozen:  # noqa: ARG002 (a group's log stays in its group)
        """See `Database.freeze`: what this node has, each group as of one entry; then the schema of the cluster."""
        ids: list[bytes] = []
        try:
            ids.extend(machine.capture() for machine in self._parts.replicas.machines.values())
            captures = tuple(map(self.shelf.capture, ids))
        except BaseException:
            for id_ in ids:
                self.shelf.release(id_)
            raise
        self._see(self._routing.groups)
        options = self.options
        unit = options.time_unit.suffix
        return Frozen(unit, options.time_partition_interval, False, self.schema.dump(), tuple(ids), captures)

    def partitions(self) -> list[PartitionStatus]:
        """See `Database.partitions`."""
        return [p for machine in self._parts.replicas.machines.values() for p in machine.region.partition_status()]

    def blocked_by(self) -> str | None:
        """See `Database.blocked_by`."""
        failures = self._parts.host.failures
        if failures:
            group, why = next(iter(failures.items()))
            return f"group {group} was stopped: {why}"
        blocked = [machine.region.blocked_by() for machine in self._parts.replicas.machines.values()]
        return next((why for why in blocked if why is not None), None)

    def close(self) -> None:
        """Wait for what is under way."""
        self._pool.shutdown()


def _check_entry(group: GroupId, data: bytes) -> None:
    """Raise StorageError if the bytes are no entry: every member of the group would stumble over them."""
    if group == META:
        decode_meta_entry(data)
    else:
        check_command(data)


def _devices(changes: Sequence[SchemaChange]) -> list[str]:
    return [c.device for c in changes if isinstance(c, changes_of.CreateSeries | changes_of.AlterSeries)]
