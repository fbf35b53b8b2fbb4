"""Validate the measurement names and the DATE values of inserts in columnar form. Pure: any thread."""

from __future__ import annotations

from functools import lru_cache

from saros_storage.base.block import Column
from saros_storage.base.dates import dates_of, days_of
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, split_path

#: The maximum number of lists of measurements whose canonical names are cached.
_SHAPES_CACHED = 4_096
_FIRST_DAY, _LAST_DAY = 1_01_01, 9999_12_31


def check_days(name: str, column: Column) -> None:
    """Raise UserMistake 2008 if a value of a DATE column is not a valid date."""
    days = column.numbers if column.valid is None else column.numbers[column.valid]
    wrong = (days < _FIRST_DAY) | (days > _LAST_DAY) | (dates_of(days_of(days)) != days)
    if wrong.any():
        raise UserMistake(f"{name}: {days[wrong][0]} is not a date; DATE takes the number yyyymmdd", code=2008)


@lru_cache(_SHAPES_CACHED)
def measurements_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return measurements in canonical form. Raises UserMistake: 509 for an illegal name, 701 for a duplicate."""
    found = tuple(_measurement(name) for name in names)
    if len(set(found)) < len(found):
        raise UserMistake(f"the insert names a measurement twice: {', '.join(names)}", code=701)
    return found


def _measurement(name: str) -> str:
    nodes = split_path(f"root.{name}")
    if len(nodes) != 2:
        raise UserMistake(f"{name} is not a legal measurement: {join_nodes(nodes[1:])} has several nodes", code=509)
    return nodes[1]
