"""Find the backup, and the part of the log, that lead to a point in time.

    backup 1           backup 2                 backup 3
    files up to 40     files up to 90           files up to 200
    log 40             log 40 .. 90             log 150 .. 200           (91 to 149 were already removed)
    points 40 ........................ 90       200

A backup can be restored to any point from its `floor` to the end of the log. That log consists of the backup's own
pieces, followed by the pieces of later backups as long as each backup's log continues where the previous one ended. The
newest backup that can be restored to the point is chosen. A point given as a time is found to the second, by clock
marks in the log. The exact millisecond at which a backup was taken selects that backup. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from saros_storage.backup.catalog import Catalog
from saros_storage.backup.repository import NO_BACKUP
from saros_storage.base.errors import UserMistake

_MILLISECOND = 1_000_000
#: Returns the clock marks of a catalog's log as (nanoseconds since the epoch, log index), oldest first.
Marks = Callable[[Catalog], Sequence[tuple[int, int]]]


class Point(msgspec.Struct, frozen=True):
    """The way to a point in time.

    `chain` consists of the backup whose files are restored, followed by the backups that continue its log. `index` is
    the last entry to replay.
    """

    chain: tuple[Catalog, ...]
    index: int


class AtIndex(msgspec.Struct, frozen=True):
    """The state after entry `index` was applied."""

    index: int


class AtTime(msgspec.Struct, frozen=True):
    """The state at `time_ns` since the epoch."""

    time_ns: int


def find_point(catalogs: Sequence[Catalog], at: AtIndex | AtTime | None, marks: Marks) -> Point:
    """Return the backups that lead to a point, or to the newest point if `at` is None.

    Raises UserMistake 2052 if no backup leads to the point.
    """
    assert catalogs
    if at is None:
        return Point((catalogs[-1],), catalogs[-1].reached)
    for place in range(len(catalogs) - 1, -1, -1):
        chain = _chain(catalogs, place)
        index = _index_in(chain, at, marks)
        if index is not None:
            return Point(chain, index)
    taken = (
        f"they were taken from {taken_time(catalogs[0])} to {taken_time(catalogs[-1])}; "
        if isinstance(at, AtTime)
        else ""
    )
    raise UserMistake(f"no backup reaches that point: {taken}{_ways(catalogs)}", code=NO_BACKUP)


def taken_time(catalog: Catalog) -> str:
    """Format the UTC time of a backup (`2026-11-21T18:00:00.250Z`), for which `find_point` chooses this backup."""
    taken = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=catalog.taken_ns // _MILLISECOND)
    return taken.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _chain(catalogs: Sequence[Catalog], place: int) -> tuple[Catalog, ...]:
    end = place + 1
    while end < len(catalogs) and catalogs[end].continues:
        end += 1
    return tuple(catalogs[place:end])


def _index_in(chain: Sequence[Catalog], at: AtIndex | AtTime, marks: Marks) -> int | None:
    first, last = chain[0], chain[-1]
    taken_ns = first.taken_ns // _MILLISECOND * _MILLISECOND
    if isinstance(at, AtIndex):
        return at.index if first.exact and first.floor <= at.index <= last.reached else None
    if not first.exact:
        return first.reached if taken_ns <= at.time_ns else None
    if at.time_ns > last.taken_ns:
        return None  # no backup contains later entries
    found = [mark for catalog in chain for mark in marks(catalog)]
    if at.time_ns < taken_ns and not any(time_ns <= at.time_ns for time_ns, _ in found):
        return None
    later = [index for time_ns, index in found if time_ns > at.time_ns]
    index = min(later) - 1 if later else last.reached
    if at.time_ns >= taken_ns:
        index = max(index, first.reached)
    return index if first.floor <= index <= last.reached else None


def _ways(catalogs: Sequence[Catalog]) -> str:
    exact = [catalog for catalog in catalogs if catalog.exact]
    if not exact:
        return "backups of a cluster's node can only be restored as they were taken; see saros backup list"
    spans = []
    for place, catalog in enumerate(catalogs):
        if catalog.exact:
            spans.append(f"{catalog.floor} to {_chain(catalogs, place)[-1].reached}")
    return f"the backups reach entries {', '.join(spans)} of the log; see saros backup list"
