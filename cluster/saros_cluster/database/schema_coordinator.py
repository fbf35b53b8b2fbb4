"""Changes of the cluster's schema: databases, series, and settings that all groups have.

    databases          meta group, with the partitions that have points
    series             the group that keeps their database's schema; rows for that group go into the same entry
    TTL, catalogue     an entry in every group

Nothing is created at or below a pending drop. If a drop or a move of slots overtakes a request, the request is prepared
again (`drop_coordinator`). Thread-safe.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from saros_cluster.data.command import Request
from saros_cluster.database.drop_coordinator import DropCoordinator
from saros_cluster.database.read_index import ReadBarrier, databases_matching
from saros_cluster.database.write_coordinator import WriteCoordinator
from saros_cluster.meta.state import AddPartitions, BeginDeletion, CreateDatabase
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader, OutcomeUnknown
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.routing import Routing
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.topology import META
from saros_storage import schema as changes_of
from saros_storage.base.errors import UserMistake
from saros_storage.base.write_request import WriteRequest
from saros_storage.mutation.mutation import Mutation, PlacedTablet
from saros_storage.schema import SchemaChange, SchemaTree

_EXISTS, _SERIES_EXISTS = 501, 503


class SchemaCoordinator:
    """Proposes schema changes from this node."""

    def __init__(
        self,
        schema: ClusterSchema,
        routes: Routes,
        entries: WriteCoordinator,
        drop_coordinator: DropCoordinator,
        read_barrier: ReadBarrier,
        meta_entry_of: Callable[[Request], int | None],
    ) -> None:
        """`meta_entry_of`: see `MetaMachine.entry_of`."""
        self._meta_entry_of = meta_entry_of
        self._schema = schema
        self._routes = routes
        self._entries = entries
        self._drop_coordinator = drop_coordinator
        self._read_barrier = read_barrier

    def change(self, changes: Sequence[SchemaChange], given: WriteRequest) -> None:
        """Implement `Database.change_schema`. Raises PartialFailure if the changes go to all groups."""
        request, deadline_ns = self._entries.numbered(given), given.deadline_ns
        if any(isinstance(change, changes_of.OF_ALL_GROUPS) for change in changes):
            self._change_all(request, changes)
            return
        devices = devices_of(changes)
        self._entries.wait_visible([META], deadline_ns)
        self._entries.wait_visible(self._drop_coordinator.schema_groups(devices), deadline_ns)
        if len(changes) > 1:  # a database that this request creates along with series may exist by now
            changes = [change for change in changes if not self._is_known_database(change)]

        asked_before = itertools.chain([given.is_numbered], itertools.repeat(True))

        def make() -> None:
            drops = self._schema.visible_drops
            tree = self._dry_run(changes, asked_before=next(asked_before))
            self.create(request, changes, {}, tree, drops, self._routes.now)

        self._drop_coordinator.retry_overtaken(make, devices, deadline_ns)

    def _change_all(self, request: WriteRequest, changes: Sequence[SchemaChange]) -> None:
        """Change TTL rules or the catalogue, which all groups have. Raises PartialFailure."""
        self._entries.wait_visible(self._routes.now.groups, request.deadline_ns)
        numbered = self._schema.tree.numbered(changes)
        self._schema.tree.dry_run(numbered)
        with self._entries.showing(self._routes.now.groups, request.deadline_ns):
            self.broadcast(Mutation(numbered), request)

    def broadcast(self, mutation: Mutation, request: WriteRequest) -> None:
        """Propose an entry in each group.

        If a move of slots overtakes one of the entries, all entries are sent again. This is necessary because an entry
        does not affect slots that arrive at a group after the entry was applied, or that have left the group before.
        """
        requests = itertools.chain([request], iter(partial(self._entries.renumbered, request), None))
        self._propose_until_open(mutation, requests, lambda routing: routing.groups, request)

    def delete(self, mutation: Mutation, request: WriteRequest) -> None:
        """Propose a deletion in each group that may have matching points. Repeat it if slots move meanwhile.

        The repetition has no second effect in a group: rows that were written there after the first attempt remain.
        """
        self._entries.change_meta(BeginDeletion(), request)
        entry = self._meta_entry_of(Request(*request.key))
        if entry is None:
            raise OutcomeUnknown(META, "too many entries followed the deletion, and its own is no longer known")

        def groups_of(routing: Routing) -> set[GroupId]:
            tree, partitions = self._schema.tree, self._schema.partitions
            found: set[GroupId] = set()
            for deletion in mutation.deletions:
                for database in {name for text in deletion.patterns for name in databases_matching(text, tree)}:
                    registered = partitions.get(database)
                    before = registered and {slice_: at for slice_, at in registered.items() if at < entry}
                    found.update(routing.groups_for(database, deletion.time, before))
            return found

        self._propose_until_open(mutation, itertools.repeat(request), groups_of, request)

    def _propose_until_open(
        self,
        mutation: Mutation,
        requests: Iterator[WriteRequest],
        groups_of: Callable[[Routing], Collection[GroupId]],
        request: WriteRequest,
    ) -> None:
        def attempt() -> None:
            routing = self._routes.now
            self._entries.propose_all(dict.fromkeys(groups_of(routing), mutation), next(requests), routing)

        self._drop_coordinator.retry_overtaken(attempt, (), request.deadline_ns)

    # ------------------------------------------------------------------ partitions

    def unregistered(self, partitions: Mapping[str, Collection[int]]) -> dict[str, tuple[int, ...]]:
        """Return, for each database, the slices that the meta group has not registered yet."""
        missing: dict[str, tuple[int, ...]] = {}
        for database, slices in partitions.items():
            known = self._schema.partitions.get(database, {})
            if known is not None and not known.keys() >= set(slices):
                missing[database] = tuple(sorted(set(slices) - known.keys()))
        return missing

    def register(self, partitions: Mapping[str, Collection[int]], request: WriteRequest) -> None:
        """Register slices before rows are written to them, so that reads look there. Raises UserMistake (2021)."""
        missing = self.unregistered(partitions)
        if missing:
            self._entries.change_meta(AddPartitions(missing), request.unnumbered)

    def wait_remote_schema(self, creates: Sequence[SchemaChange], deadline_ns: int | None) -> None:
        """Wait until series that other coordinators created in remote groups are visible in this node's schema.

        Do nothing if `creates` has a new database, which has no series yet.
        """
        if not any(isinstance(change, changes_of.CreateDatabase) for change in creates):
            groups = self._drop_coordinator.schema_groups(devices_of(creates))
            remote = {group for group in groups if not self._read_barrier.is_local(group)}
            try:
                self._entries.wait_visible(remote, deadline_ns)
            except NoLeader as error:
                found = map(self._schema.tree.database_of, devices_of(creates))
                databases = {path for path in found if path is not None}
                raise error.named(self._routes.now.schemas_of(error.group, databases)) from error

    def create(
        self,
        request: WriteRequest,
        changes: Sequence[SchemaChange],
        rows: dict[GroupId, list[PlacedTablet]],
        tree: SchemaTree,
        drops: Mapping[GroupId, int],
        routing: Routing,
        written: dict[GroupId, Mutation] | None = None,
        partitions: Mapping[str, Collection[int]] = MappingProxyType({}),
    ) -> None:
        """Create databases, then series.

        Rows for a group that gets new series go into the same entry as these series, and are removed from `rows`.
        `tree` is the schema after the changes. The schema reflects the drops in `drops`. `routing` assigns series and
        rows to groups. `written` is passed to `WriteCoordinator.propose_all`. `partitions` has the slices of each
        database's rows.
        """
        made_databases = [c for c in changes if isinstance(c, changes_of.CreateDatabase)]
        devices = devices_of(changes)
        paths = [*(c.path for c in made_databases), *devices]
        self._drop_coordinator.finish_overlapping(paths, request.deadline_ns)
        for created in made_databases:
            first = partitions.get(created.path, ())
            self._create_database(created.path, first, request, wanted=not devices)
        self.register(partitions, request)
        by_group: dict[GroupId, list[SchemaChange]] = {}
        for change in changes:
            if isinstance(change, changes_of.OF_ONE_DEVICE):
                database = tree.database_of(change.device)
                assert database is not None
                known = by_group.setdefault(routing.schema_group(database), [])
                made = changes_of.CreateDatabase(database)
                known += [change] if made in known else [made, change]
        mutations = {group: Mutation(found, (), rows.pop(group, ())) for group, found in by_group.items()}
        seen = min((drops.get(group, 0) for group in mutations), default=0)
        with self._entries.showing(mutations, request.deadline_ns):
            self._entries.propose_all(mutations, request, routing, seen, written)

    def _create_database(self, path: str, partitions: Collection[int], request: WriteRequest, *, wanted: bool) -> None:
        """Create a database. The database may exist already, unless it is one that the request asked for (`wanted`)."""
        create = CreateDatabase(path, tuple(sorted(partitions)))
        try:
            self._entries.change_meta(create, request if wanted else self._entries.renumbered(request))
        except UserMistake as error:
            if wanted or error.code != _EXISTS or not self._schema.tree.is_database(path):
                raise

    def _is_known_database(self, change: SchemaChange) -> bool:
        return isinstance(change, changes_of.CreateDatabase) and self._schema.tree.is_database(change.path)

    def _dry_run(self, changes: Sequence[SchemaChange], *, asked_before: bool) -> SchemaTree:
        """Return the schema after the changes.

        If the request may be a repetition (`asked_before`), its series may exist already, and their group decides
        whether that is an error.
        """
        try:
            return self._schema.tree.dry_run(changes)
        except UserMistake as error:
            if error.code not in (_EXISTS, _SERIES_EXISTS) or not asked_before:
                raise
            return self._schema.tree


def devices_of(changes: Sequence[SchemaChange]) -> list[str]:
    """Return the devices whose series are created or altered."""
    return [c.device for c in changes if isinstance(c, changes_of.OF_ONE_DEVICE)]
