"""Views of the cluster for queries: regions of this node, and remote readers at the holders of other groups.

    catch_up      strong  each group that is read confirms a log index; the read waits until it is applied, or fails;
                          before the result is returned, all groups apply the visible drops
                  mid     as strong if that is quick; otherwise the local state, with the result marked stale
                  weak    the local state, marked stale unless it includes everything that the session has seen
    view          one snapshot if all data is on this node; otherwise also readers, by the current routing (`remote`)

A read depends on the meta group, on the groups with the schema of databases that its patterns may match, and on the
groups of the partitions that may have points of its sources.

While a view is open, its leases on other nodes are renewed. Without a renewal, the holders would release the views.
Thread-safe.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from weakref import WeakSet

from saros_cluster.data.command import TableVersion
from saros_cluster.database.drop_coordinator import TRIPS_SECONDS, DropCoordinator
from saros_cluster.database.read_index import MID_SECONDS, SHOWN_SECONDS, STRONG_SECONDS, Extent, ReadBarrier
from saros_cluster.multiraft.host import NotHere
from saros_cluster.multiraft.peers import Peers
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.messages import ReadTarget
from saros_cluster.remote.remote_reader import RemoteTarget
from saros_cluster.remote.routed_view import RoutedView
from saros_cluster.routing.no_leader import DataMoving, NoLeader
from saros_cluster.routing.replicas import Replicas
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.routing import Routing
from saros_cluster.routing.schema_view import ClusterSchema
from saros_scheduler.task import QueryId
from saros_storage.base.clock import Clock
from saros_storage.base.errors import UserMistake
from saros_storage.read.view import LocalReadView
from saros_storage.scan.read_point import EVERYTHING, ReadHorizon, ReadPoint, ReadScope, Sources
from saros_storage.scan.reading import TimeRange


class ReadViews:
    """Opens the read views of this node."""

    def __init__(
        self,
        node: NodeId,
        client: int,
        clock: Clock,
        routes: Routes,
        replicas: Replicas,
        schema: ClusterSchema,
        peers: Peers,
        read_barrier: ReadBarrier,
        drop_coordinator: DropCoordinator,
    ) -> None:
        """`client` is the prefix of the ids of this node's queries."""
        self._node = node
        self._client = client
        self._clock = clock
        self._routes = routes
        self._replicas = replicas
        self._schema = schema
        self._peers = peers
        self._read_barrier = read_barrier
        self._drop_coordinator = drop_coordinator
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._open: WeakSet[RoutedView] = WeakSet()

    def read_point(
        self, consistency: str, horizon: ReadHorizon | None = None, deadline_ns: int | None = None
    ) -> ReadPoint:
        """Implement `Database.read_point`."""
        point = ReadPoint(settled=False, current=consistency != "weak", deadline_ns=deadline_ns)
        if consistency == "strong":
            point.strong = True
        elif horizon is not None:
            point.wanted, point.horizon = horizon.shown, horizon
        return point

    def catch_up(self, point: ReadPoint, scope: ReadScope) -> bool:
        """Implement `Database.catch_up`. Raises NoLeader if the read is strong, SchemaUnknown at other levels."""
        extent = self._read_barrier.resolve(scope)
        point.patterns = point.patterns.union(scope.patterns, extent.databases)
        if point.current:
            try:
                return self._read_barrier.catch_up_with(point, extent, STRONG_SECONDS if point.strong else MID_SECONDS)
            except NoLeader as error:
                _stop_being_current(point, error)
        return self._read_barrier.learn_for(point, extent)

    def finish_schema_read(self, point: ReadPoint) -> None:
        """Implement `Database.finish_schema_read`. Raises StorageError (2017)."""
        if point.horizon is not None:
            point.horizon.note(self._read_barrier.schema_shown(self._routes.now.groups))
        if point.strong:
            deadline_ns = self._read_barrier.deadline_ns(point, STRONG_SECONDS)
            self._drop_coordinator.wait_drops_applied(point.patterns, STRONG_SECONDS, deadline_ns)

    # ------------------------------------------------------------------ views

    def view(self, point: ReadPoint, sources: Sources = None) -> LocalReadView | RoutedView:
        """Implement `Database.view`."""
        extent = self._read_barrier.resolve(ReadScope((), sources))
        routing, needed, here, local = self._local_view(point, extent)
        if len(here) == len(needed) and point.horizon is None:
            return local
        partitions = self._schema.partitions

        def routes(device: str, time: TimeRange) -> Sequence[GroupId]:
            database = self._schema.tree.database_of(device)
            groups = () if database is None else routing.groups_for(database, time, partitions.get(database))
            return [group for group in groups if group not in point.missing]

        def holders(group: GroupId) -> list[RemoteTarget]:
            return [] if group in here else self._holders(point, routing, group, extent)

        return self._opened(local, routes, holders, point, extent)

    def hold(self, point: ReadPoint) -> LocalReadView | RoutedView:
        """Implement `Database.hold`: this also pins views at the holders of remote groups."""
        self.catch_up(point, EVERYTHING)
        view = self.view(point)
        if isinstance(view, RoutedView):
            try:
                for group in self._routes.now.groups:
                    view.pin(group)
            except BaseException:
                view.close()
                raise
        return view

    def open_named(self, name: str, group: GroupId, nodes: Sequence[NodeId]) -> RoutedView:
        """Open a view that other nodes store under a name, at the first of these nodes that has it."""
        if not nodes:
            raise NotHere(group, f"no other node has {name}")
        target = ReadTarget(group, None, 0, view_name=name)
        nothing = LocalReadView({}, self._replicas.cache, lambda: None)
        holders = [RemoteTarget(node, target) for node in nodes]
        return self._opened(
            nothing, lambda *_: (group,), lambda _: holders, None, self._read_barrier.resolve(ReadScope(()))
        )

    def _opened(
        self,
        local: LocalReadView,
        routes: Callable[[str, TimeRange], Sequence[GroupId]],
        holders: Callable[[GroupId], list[RemoteTarget]],
        point: ReadPoint | None,
        extent: Extent,
    ) -> RoutedView:
        query = QueryId(f"{self._client:016x}-{next(self._numbers)}")
        error_of = partial(self._read_barrier.read_error, extent=extent)
        view = RoutedView(query, local, routes, holders, self._peers, point, error_of, self._clock)
        with self._lock:
            self._open.add(view)
        return view

    def renew(self) -> None:
        """Renew the leases of open views at their holders. The caller renews well before the lease ends."""
        with self._lock:
            views = list(self._open)
        for view in views:
            view.renew()

    def _local_view(
        self, point: ReadPoint, extent: Extent
    ) -> tuple[Routing, Sequence[GroupId], Mapping[GroupId, TableVersion], LocalReadView]:
        """Return the current routing, the groups to read, the table versions and a view of the local groups.

        Skip replicas that have not applied the required index, or do not know about slots assigned to their group. If a
        completed move has made the routing obsolete, or if this node has just joined or left a group, try again until
        the point's deadline. Raises DataMoving, NoLeader.
        """
        deadline_ns = self._read_barrier.deadline_ns(point, STRONG_SECONDS)
        while True:
            routing, extent = self._routes.now, self._read_barrier.renewed(extent)
            needed = self._read_barrier.groups_read(extent, routing)
            try:
                self._read_barrier.confirm(point, extent, needed)
            except NoLeader as error:
                _stop_being_current(point, error)
            needed = [group for group in needed if group not in point.missing]
            machines = self._replicas.machines
            mine = [g for g in needed if g in machines and self._read_barrier.has(g, point.applied.get(g, 0))]
            known = {group: routing.table_version(group) for group in mine}
            here = {group: found for group, found in known.items() if machines[group].replica.knows_table(found)}
            moved: Exception | None = None
            try:
                if all(group in here or self._others(group) for group in needed):
                    return routing, needed, here, self._replicas.view(here)
            except (UserMistake, NotHere) as error:
                moved = error
            if self._clock.monotonic_ns() >= deadline_ns:
                raise DataMoving(extent.databases) from moved
            self._read_barrier.pause(TRIPS_SECONDS)

    def _others(self, group: GroupId) -> list[NodeId]:
        """Return the other nodes that may have a replica of a group. The most promising nodes come first."""
        return [node for node in self._read_barrier.holders(group) if node != self._node]

    def _holders(self, point: ReadPoint, routing: Routing, group: GroupId, extent: Extent) -> list[RemoteTarget]:
        """Return the targets in the order to try: holders that show all that the session has seen, then the others."""
        nodes = self._others(group)
        if not nodes:
            raise DataMoving(extent.databases)
        known, shown = routing.table_version(group), point.wanted.get(group)
        targets = [ReadTarget(group, point.applied.get(group) or None, *known)]
        if shown is not None:
            targets.insert(0, ReadTarget(group, shown, *known, int(SHOWN_SECONDS * 1e3)))
        return [RemoteTarget(node, target) for target in targets for node in nodes]


def _stop_being_current(point: ReadPoint, error: NoLeader) -> None:
    """Give up waiting for a leader's confirmation. Raise the error, or mark a `mid` read as stale."""
    if point.strong:
        raise error
    point.current, point.stale = False, True
