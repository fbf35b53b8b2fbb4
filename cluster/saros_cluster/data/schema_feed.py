"""How a data group announces its schema: each change when its entry is applied; on request, what is new or all.

    entry i changes the schema    announced at once, and kept among the recent changes
    "what since entry k?"         the kept changes after k; or, if k is too long ago, the whole schema

A group announces only series of databases whose schema it keeps. While slots move, two groups keep it for a while, so a
database is announced with the move that brought it here (`SchemaDelta`). Under the region's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from saros_cluster.data.drops import Drops
from saros_cluster.data.ownership import Ownership
from saros_cluster.data.schema_delta import SchemaDelta
from saros_storage.base.paths import parse_pattern
from saros_storage.schema import CreateDatabase, DeleteDatabase, DeleteSeries, SchemaChange, SchemaTree

#: Entries that changed the schema and are kept for nodes that ask what is new.
_KEPT = 2_000
Told = Callable[[SchemaDelta], object]


class SchemaFeed:
    """See the module."""

    def __init__(self, index: int, ownership: Ownership, drops: Drops, on_schema_delta: Told) -> None:
        """Keep changes after entry `index`; `on_schema_delta` gets each of them."""
        self._ownership = ownership
        self._drops = drops
        self._on_schema_delta = on_schema_delta
        #: (index, changes) of the last entries that changed the schema, and the entry behind which all are there.
        self._kept: deque[tuple[int, Sequence[SchemaChange]]] = deque()
        self._kept_from = index

    def resolve(self, change: SchemaChange, schema: SchemaTree) -> list[SchemaChange]:
        """Return a change as other nodes get it: a pattern is resolved to the series that it matches here.

        Nor those that have left the group: whoever has them now tells of their end, and of what is made anew.
        """
        owns = self._ownership.owns_schema
        if isinstance(change, DeleteDatabase):
            return [change] if owns(change.path) else []
        if not isinstance(change, DeleteSeries):
            return [change] if self._announces(change) else []
        found = schema.match_series(parse_pattern(change.pattern))
        return [DeleteSeries(f"{d.path}.{series.measurement}") for d, series in found if owns(d.database)]

    def record(self, index: int, changes: Sequence[SchemaChange]) -> None:
        """Entry `index` has made these changes."""
        self._kept.append((index, changes))
        if len(self._kept) > _KEPT:
            self._kept_from = self._kept.popleft()[0]
        self._on_schema_delta(self._delta(index, changes, whole=False))

    def forget(self, index: int) -> None:
        """What was told up to entry `index` is not the group's to tell any more."""
        self._kept.clear()
        self._kept_from = index

    def since(self, known: int, index: int, everything: Callable[[], Sequence[SchemaChange]]) -> SchemaDelta:
        """What became of the schema behind entry `known`, up to `index`; `everything` makes the schema as it is."""
        if known >= self._kept_from:
            return self._delta(index, [c for at, found in self._kept if at > known for c in found], whole=False)
        # A region knows every database that it has points of; of their series only some groups may speak.
        return self._delta(index, [c for c in everything() if self._announces(c)], whole=True)

    def _delta(self, index: int, changes: Sequence[SchemaChange], *, whole: bool) -> SchemaDelta:
        ownership = self._ownership
        made = [change.path for change in changes if isinstance(change, CreateDatabase)]
        since = {database: ownership.since(ownership.slot(database, 0)) for database in made}
        return SchemaDelta(index, whole, tuple(changes), self._drops.newest, since, ownership.released)

    def _announces(self, change: SchemaChange) -> bool:
        return not isinstance(change, CreateDatabase) or self._ownership.has_schema(change.path)
