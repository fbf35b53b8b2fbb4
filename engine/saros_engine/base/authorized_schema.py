"""The schema as one user sees it, without anything that the user may not read.

    SchemaTree --READ_DATA of ann----> ReadableSchema --> planner
    SchemaTree --READ_SCHEMA of ann--> ReadableSchema --> SHOW and COUNT

Wildcards expand only to readable series, and an unreadable series looks as if it did not exist. A database, an inner
node or a device is visible if the user has the privilege on a path below it.

The functions are pure, except that every call reads the current tree. Calls may come from any thread that may use the
tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec.structs import replace

from saros_cluster.users.effective_privileges import Rights
from saros_cluster.users.privileges import Privilege
from saros_storage.base.paths import PathPattern, join_nodes, parse_pattern, split_path
from saros_storage.schema import Catalogue, DeviceSchema, SchemaTree, SeriesSchema, TtlRules


class SchemaReader(Protocol):
    """The part of `SchemaTree` that planning and SHOW use."""

    @property
    def ttl(self) -> TtlRules:
        """See `SchemaTree.ttl`."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """See `SchemaTree.catalogue`."""
        ...

    def databases(self) -> list[str]:
        """See `SchemaTree.databases`."""
        ...

    def device(self, path: str) -> DeviceSchema | None:
        """See `SchemaTree.device`."""
        ...

    def match_databases(self, pattern: PathPattern) -> list[str]:
        """See `SchemaTree.match_databases`."""
        ...

    def match_devices(self, pattern: PathPattern) -> list[DeviceSchema]:
        """See `SchemaTree.match_devices`."""
        ...

    def match_series(self, pattern: PathPattern) -> list[tuple[DeviceSchema, SeriesSchema]]:
        """See `SchemaTree.match_series`."""
        ...

    def walk_devices(self, pattern: PathPattern) -> Iterator[DeviceSchema]:
        """See `SchemaTree.walk_devices`."""
        ...

    def walk_series(self, pattern: PathPattern) -> Iterator[tuple[DeviceSchema, list[str]]]:
        """See `SchemaTree.walk_series`."""
        ...

    def child_paths(self, pattern: PathPattern) -> list[str]:
        """See `SchemaTree.child_paths`."""
        ...

    def child_nodes(self, pattern: PathPattern) -> list[str]:
        """See `SchemaTree.child_nodes`."""
        ...

    def nodes_at_level(self, pattern: PathPattern, level: int) -> list[str]:
        """See `SchemaTree.nodes_at_level`."""
        ...


class ReadableSchema:
    """The part of a schema tree on which a user has a certain privilege. Implements `SchemaReader`."""

    def __init__(self, tree: SchemaTree, rights: Rights, privilege: Privilege) -> None:
        self._tree = tree
        self._rights = rights
        self._privilege = privilege

    @property
    def ttl(self) -> TtlRules:
        """All TTL rules. Showing them to a user requires a separate privilege."""
        return self._tree.ttl

    @property
    def catalogue(self) -> Catalogue:
        """The whole catalogue, because templates are not protected by path."""
        return self._tree.catalogue

    def databases(self) -> list[str]:
        """Return the visible databases."""
        return [path for path in self._tree.databases() if self._sees(path)]

    def device(self, path: str) -> DeviceSchema | None:
        """Return a device with its readable series, or None if it has no readable series."""
        found = self._tree.device(path)
        return None if found is None else self._readable(found)

    def match_databases(self, pattern: PathPattern) -> list[str]:
        """Return the matching visible databases."""
        return [path for path in self._tree.match_databases(pattern) if self._sees(path)]

    def match_devices(self, pattern: PathPattern) -> list[DeviceSchema]:
        """Return the matching devices that have a readable series."""
        return [*self.walk_devices(pattern)]

    def walk_devices(self, pattern: PathPattern) -> Iterator[DeviceSchema]:
        """Yield the matching devices that have a readable series, in path order."""
        return (kept for device in self._tree.walk_devices(pattern) if (kept := self._readable(device)) is not None)

    def match_series(self, pattern: PathPattern) -> list[tuple[DeviceSchema, SeriesSchema]]:
        """Return the matching readable series, each with its device. The device has only its readable series."""
        return [(device, device.series[name]) for device, names in self.walk_series(pattern) for name in names]

    def walk_series(self, pattern: PathPattern) -> Iterator[tuple[DeviceSchema, list[str]]]:
        """Yield the devices with matching readable series, in path order, and the sorted names of these series.

        The devices have only their readable series.
        """
        for device, names in self._tree.walk_series(pattern):
            kept = self._readable(device)
            readable = [] if kept is None else [name for name in names if name in kept.series]
            if kept is not None and readable:
                yield kept, readable

    def child_paths(self, pattern: PathPattern) -> list[str]:
        """Return the matching visible child paths."""
        return [path for path in self._tree.child_paths(pattern) if self._sees(path)]

    def child_nodes(self, pattern: PathPattern) -> list[str]:
        """Return the last node of each path in `child_paths`, sorted."""
        return sorted({split_path(path)[-1] for path in self.child_paths(pattern)})

    def nodes_at_level(self, pattern: PathPattern, level: int) -> list[str]:
        """Return the nodes at `level` that are above (or equal to) a visible path that matches the pattern.

        The call reads the whole readable schema.
        """
        found = set()
        paths = [(*split_path(d.path), s.measurement) for d, s in self.match_series(parse_pattern("root.**"))]
        for nodes in [*paths, *(split_path(path) for path in self.databases())]:
            if any(pattern.matches(nodes[:count]) for count in range(level + 1, len(nodes) + 1)):
                found.add(join_nodes(nodes[: level + 1]))
        return sorted(found)

    def _sees(self, path: str) -> bool:
        return self._rights.sees(self._privilege, path)

    def _readable(self, device: DeviceSchema) -> DeviceSchema | None:
        may, privilege = self._rights.may, self._privilege
        kept = {name: s for name, s in device.series.items() if may(privilege, f"{device.path}.{name}")}
        if len(kept) == len(device.series):
            return device
        return replace(device, series=kept) if kept else None
