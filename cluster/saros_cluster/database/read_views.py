"""What a query sees of the cluster: the regions of this node, and readers at the holders of the others.

    catch_up      strong  all groups confirm the index to apply up to; wait for that          fails if they cannot;
                          and what shows as dropped is gone in all of them, before the answer
                  mid     the same if it is quick, else what is here, and the result is marked stale
                  weak    what is here; stale unless it includes all that the session was shown, here or elsewhere
    view          all groups here: one snapshot of them; else also readers, by the current routing (`remote`)

The leases of other nodes' views are renewed while the views are open, or the holders release them. Thread-safe.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakSet

from saros_cluster.data.command import TableVersion
from saros_cluster.data.ownership import MOVED
from saros_cluster.database.drop_coordinator import RENEWALS_MAX, TRIPS_SECONDS, DropCoordinator
from saros_cluster.database.read_index import ReadBarrier
from saros_cluster.multiraft.host import NotHere
from saros_cluster.multiraft.peers import Peers
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.messages import ReadTarget
from saros_cluster.remote.remote_reader import RemoteTarget
from saros_cluster.remote.routed_view import RoutedView
from saros_cluster.routing.no_leader import NoLeader
from saros_cluster.routing.replicas import Replicas
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.routing import Routing
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.topology import META
from saros_scheduler.task import QueryId
from saros_storage.base.errors import UserMistake
from saros_storage.read.view import LocalReadView
from saros_storage.scan.read_point import ReadHorizon, ReadPoint
from saros_storage.scan.reading import TimeRange

STRONG_SECONDS = 10.0
MID_SECONDS = 0.5
#: A replica gets so long until it has what a session was shown elsewhere; a healthy one has it at the next heartbeat.
SHOWN_SECONDS = 0.3
#: To be told of series elsewhere, once after a start.
KNOW_SECONDS = 5.0


class ReadViews:
    """See the module."""

    def __init__(
        self,
        node: NodeId,
        client: int,
        routes: Routes,
        replicas: Replicas,
        schema: ClusterSchema,
        peers: Peers,
        read_barrier: ReadBarrier,
        drop_coordinator: DropCoordinator,
    ) -> None:
        """`client`: what this node's queries are named by."""
        self._node = node
        self._client = client
        self._routes = routes
        self._replicas = replicas
        self._schema = schema
        self._peers = peers
        self._read_barrier = read_barrier
        self._drop_coordinator = drop_coordinator
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._open: WeakSet[RoutedView] = WeakSet()

    def catch_up(self, consistency: str, horizon: ReadHorizon | None = None) -> ReadPoint:
        """See `Database.catch_up`. Raises NoLeader (strong), SchemaUnknown (others)."""
        everything = (META, *self._routes.now.groups)
        wanted = {} if horizon is None else horizon.shown
        match consistency:
            case "weak":
                self._read_barrier.ensure_schema_known(everything, KNOW_SECONDS)
                complete = self._read_barrier.wait_session_visible(wanted, SHOWN_SECONDS)
                return ReadPoint(stale=not complete, wanted=wanted, horizon=horizon)
            case "mid":
                try:
                    return ReadPoint(applied=self._read_barrier.catch_up_all(MID_SECONDS), horizon=horizon)
                except NoLeader:
                    self._read_barrier.ensure_schema_known(everything, KNOW_SECONDS)
                    return ReadPoint(stale=True, wanted=wanted, horizon=horizon)
            case "strong":
                return ReadPoint(strong=True, applied=self._read_barrier.catch_up_all(STRONG_SECONDS))
            case _:
                raise AssertionError(consistency)

    def finish_schema_read(self, point: ReadPoint) -> None:
        """See `Database.finish_schema_read`. Raises StorageError (2017)."""
        if point.horizon is not None:
            point.horizon.note(self._read_barrier.schema_shown(self._routes.now.groups))
        if point.strong:
            self._drop_coordinator.wait_drops_applied(STRONG_SECONDS)

    # ------------------------------------------------------------------ views

    def view(self, point: ReadPoint) -> LocalReadView | RoutedView:
        """See `Database.view`."""
        routing, here, local = self._local_view(point)
        if len(here) == len(routing.groups) and point.horizon is None:
            return local

        def routes(device: str, time: TimeRange) -> Sequence[GroupId]:
            database = self._schema.tree.database_of(device)
            return () if database is None else routing.groups_for(database, time)

        def holders(group: GroupId) -> list[RemoteTarget]:
            return [] if group in here else self._holders(point, routing, group)

        return self._opened(local, routes, holders, point)

    def hold(self, point: ReadPoint) -> LocalReadView | RoutedView:
        """See `Database.hold`: the holders of all groups are asked."""
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
        """What others of the cluster keep under a name, read at the first of these nodes that has it."""
        if not nodes:
            raise NotHere(group, f"no other node can have {name}")
        target = ReadTarget(group, None, 0, view_name=name)
        nothing = LocalReadView({}, self._replicas.cache, lambda: None)
        holders = [RemoteTarget(node, target) for node in nodes]
        return self._opened(nothing, lambda *_: (group,), lambda _: holders, None)

    def _opened(
        self,
        local: LocalReadView,
        routes: Callable[[str, TimeRange], Sequence[GroupId]],
        holders: Callable[[GroupId], list[RemoteTarget]],
        point: ReadPoint | None,
    ) -> RoutedView:
        query = QueryId(f"{self._client:016x}-{next(self._numbers)}")
        view = RoutedView(query, local, routes, holders, self._peers, point)
        with self._lock:
            self._open.add(view)
        return view

    def renew(self) -> None:
        """Tell the holders that queries still run; well within their lease."""
        with self._lock:
            views = list(self._open)
        for view in views:
            view.renew()

    def _local_view(self, point: ReadPoint) -> tuple[Routing, Mapping[GroupId, TableVersion], LocalReadView]:
        """The routing of now, what is here by it, and a picture of that.

        A replica that lacks what must show, or has not heard of slots that came to its group, is none; nor is what was
        seen by a table of before slots went for good. And a node joins and leaves groups.
        """
        for _ in range(RENEWALS_MAX):
            routing = self._routes.now
            if point.applied:
                missing = [group for group in routing.groups if group not in point.applied]
                point.applied = {**point.applied, **self._read_barrier.catch_up(missing, STRONG_SECONDS)}
            machines = self._replicas.machines
            mine = [g for g in routing.groups if g in machines and self._read_barrier.has(g, point.applied.get(g, 0))]
            known = {group: routing.table_version(group) for group in mine}
            here = {group: found for group, found in known.items() if machines[group].replica.knows_table(found)}
            try:
                return routing, here, self._replicas.view(here)
            except (UserMistake, NotHere) as error:
                moved: Exception = error
                self._read_barrier.pause(TRIPS_SECONDS)
        raise moved

    def _holders(self, point: ReadPoint, routing: Routing, group: GroupId) -> list[RemoteTarget]:
        """Whom to ask for what, one after the other: who has what the session was shown, then anyone."""
        nodes = [node for node in self._read_barrier.holders(group) if node != self._node]
        if not nodes:
            raise UserMistake("slots have moved: run the query again", code=MOVED)
        known, shown = routing.table_version(group), point.wanted.get(group)
        targets = [ReadTarget(group, point.applied.get(group), *known)]
        if shown is not None:
            targets.insert(0, ReadTarget(group, shown, *known, int(SHOWN_SECONDS * 1e3)))
        return [RemoteTarget(node, target) for target in targets for node in nodes]
