"""The changes of a data group's schema, as the group announces them to other nodes.

    entry i changes the schema       announced when the entry is applied, and kept among the recent changes
    a node asks for changes since k  the kept changes after entry k; if k is too long ago, the whole schema

A group announces only databases whose schema it stores. While slots move, two groups store the schema for a time, so a
database is announced together with the move that brought it here (`SchemaDelta`). The caller holds the region's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from saros_cluster.data.drops import Drops
from saros_cluster.data.ownership import Ownership
from saros_cluster.data.schema_delta import SchemaDelta
from saros_storage.base.paths import parse_pattern
from saros_storage.schema import CreateDatabase, DeleteDatabase, DeleteSeries, SchemaChange, SchemaTree

#: Number of recent entries whose schema changes are stored for nodes that ask for them.
_KEPT = 2_000
Told = Callable[[SchemaDelta], object]


class SchemaFeed:
    """The recent changes of a group's schema."""

    def __init__(self, index: int, ownership: Ownership, drops: Drops, on_schema_delta: Told) -> None:
        """Keep changes after entry `index`, and call `on_schema_delta` with each of them."""
        self._ownership = ownership
        self._drops = drops
        self._on_schema_delta = on_schema_delta
        #: (index, changes) of the last entries that changed the schema. All such entries after `_kept_from` are here.
        self._kept: deque[tuple[int, Sequence[SchemaChange]]] = deque()
        self._kept_from = index

    def resolve(self, change: SchemaChange, schema: SchemaTree) -> list[SchemaChange]:
        """Return a change as it is announced to other nodes: a pattern is resolved to the series that it matches here.

        Skip databases that have moved away: their new group announces when they are dropped or recreated.
        """
        owns = self._ownership.owns_schema
        if isinstance(change, DeleteDatabase):
            return [change] if owns(change.path) else []
        if not isinstance(change, DeleteSeries):
            return [change] if self._announces(change) else []
        found = schema.match_series(parse_pattern(change.pattern))
        return [DeleteSeries(f"{d.path}.{series.measurement}") for d, series in found if owns(d.database)]

    def record(self, index: int, changes: Sequence[SchemaChange]) -> None:
        """Store and announce the changes that entry `index` made."""
        self._kept.append((index, changes))
        if len(self._kept) > _KEPT:
            self._kept_from = self._kept.popleft()[0]
        self._on_schema_delta(self._delta(index, changes, whole=False))

    def forget(self, index: int) -> None:
        """Discard the changes up to entry `index`, which may concern databases that have left the group."""
        self._kept.clear()
        self._kept_from = index

    def since(self, known: int, index: int, everything: Callable[[], Sequence[SchemaChange]]) -> SchemaDelta:
        """Return the changes after entry `known` up to `index`, or `everything` if `known` is too old."""
        if known >= self._kept_from:
            return self._delta(index, [c for at, found in self._kept if at > known for c in found], whole=False)
        # A region contains every database of which it has points, but announces only those whose schema it stores.
        return self._delta(index, [c for c in everything() if self._announces(c)], whole=True)

    def _delta(self, index: int, changes: Sequence[SchemaChange], *, whole: bool) -> SchemaDelta:
        ownership = self._ownership
        made = [change.path for change in changes if isinstance(change, CreateDatabase)]
        since = {database: ownership.since(ownership.slot(database, 0)) for database in made}
        return SchemaDelta(index, whole, tuple(changes), self._drops.newest, since, ownership.released)

    def _announces(self, change: SchemaChange) -> bool:
        return not isinstance(change, CreateDatabase) or self._ownership.has_schema(change.path)
