"""The schema that moves with slots: databases whose first slice moves, and changes that concern all groups. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from saros_storage.schema import (
    OF_ALL_GROUPS,
    OF_ONE_DEVICE,
    CreateDatabase,
    CreateSeries,
    SchemaChange,
    SchemaTree,
)

#: Maximum number of series of one device in a transferred change.
_PART_SERIES = 1_000


def changes_to_transfer(
    tree: SchemaTree, changes: Iterable[SchemaChange], is_moving: Callable[[str], bool]
) -> list[SchemaChange]:
    """Return the changes that create the part of a tree that moves with slots, split into small parts.

    `is_moving` tells whether a database's first slice moves.
    """
    return [part for change in changes if belongs_to_transfer(tree, change, is_moving) for part in _parts_of(change)]


def belongs_to_transfer(tree: SchemaTree, change: SchemaChange, is_moving: Callable[[str], bool]) -> bool:
    """Return whether a group that receives slots needs a given change.

    `is_moving` tells if a database's first slice moves.
    """
    database: str | None = None
    if isinstance(change, CreateDatabase):
        database = change.path
    elif isinstance(change, OF_ONE_DEVICE):
        database = tree.database_of(change.device)
    if database is not None:
        return is_moving(database)
    return isinstance(change, OF_ALL_GROUPS)


def _parts_of(change: SchemaChange) -> list[SchemaChange]:
    """Split a change into parts that are small compared with an entry."""
    if not isinstance(change, CreateSeries):
        return [change]
    places = range(0, len(change.series), _PART_SERIES)
    return [replace(change, series=change.series[place : place + _PART_SERIES]) for place in places]
