"""Drops of series and databases.

The meta group numbers the drops, and every data group applies each drop once, in the order of the numbers.

    meta group    begin  -> number n, its place in the meta group's log                      end
    every group           entry "drop n": removes series and points; n is the newest   ...
    every write           carries the newest drop that its coordinator's schema reflects: `seen`

A group that has applied drop n refuses (2021) a write to devices that n may concern if the write's coordinator had not
seen drop n: the coordinator may still have the old definition of the series. Any node can complete an unfinished drop,
so a group may receive a drop several times. Coordinators send the drops in the order of their numbers, and a group
ignores a drop unless it is newer than all drops that the group has applied. Late and repeated drops therefore cannot
remove series that were created later. Series and databases that a drop removes are not created again before all groups
have applied the drop.

Pure; one thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from saros_storage.base.paths import parse_pattern, split_path
from saros_storage.mutation.mutation import Deletion, Mutation
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import DeleteDatabase, DeleteSeries, SchemaChange, decode_change, encode_change

#: A schema change that drops a database, or the series that match a pattern.
Drop = DeleteDatabase | DeleteSeries
#: Error code of a write that is refused because a drop has overtaken it.
OVERTAKEN = 2021
#: Number of drops that are remembered. A write is refused, whichever devices it writes to, if its coordinator has not
#: seen all of the forgotten drops.
KEPT = 1_000


def reaches(drop: Drop, path: str) -> bool:
    """Return whether a drop may remove parts of the database or device at `path`."""
    nodes = split_path(path)
    if isinstance(drop, DeleteDatabase):
        taken = split_path(drop.path)
        return nodes[: len(taken)] == taken
    return parse_pattern(drop.pattern).reaches(nodes)


def overlaps(drop: Drop, patterns: Iterable[str]) -> bool:
    """Return whether a drop may remove something at or below one of the path patterns."""
    path = split_path(drop.path) if isinstance(drop, DeleteDatabase) else parse_pattern(drop.pattern).fixed_nodes
    return any(parse_pattern(pattern).overlaps(path) for pattern in patterns)


def drop_of(changes: Iterable[SchemaChange]) -> Drop | None:
    """Return the drop among an entry's changes, if any. An entry with a drop does nothing else."""
    return next((c for c in changes if isinstance(c, DeleteDatabase | DeleteSeries)), None)


def effect_of(drop: Drop) -> Mutation:
    """Return the mutation by which a group applies a drop."""
    if isinstance(drop, DeleteDatabase):
        return Mutation([drop])
    return Mutation([drop], [Deletion((drop.pattern,), TimeRange())])


class Drops:
    """The drops that a group has applied, with their numbers."""

    def __init__(self, known: Iterable[tuple[int, Drop]] = (), forgotten: int = 0) -> None:
        """Start with the drops `known`, in ascending order of numbers.

        `forgotten` is the newest drop that is no longer remembered.
        """
        self._known = dict(known)
        self._forgotten = forgotten

    @property
    def newest(self) -> int:
        """The number of the newest drop, or 0."""
        return max(self._known, default=self._forgotten)

    def record(self, number: int, drop: Drop) -> None:
        """Record that a drop was applied. The drop must be newer than all recorded drops."""
        assert number > self.newest
        self._known[number] = drop
        if len(self._known) > KEPT:
            self._forgotten = next(iter(self._known))
            del self._known[self._forgotten]

    def merge(self, others: Drops) -> None:
        """Add the drops that the former group of arriving slots has applied.

        A new group has not applied all of these drops itself.
        """
        self._forgotten = max(self._forgotten, others._forgotten)
        known = sorted({**others._known, **self._known}.items())
        self._known = {number: drop for number, drop in known[-KEPT:] if number > self._forgotten}
        if len(known) > KEPT:
            self._forgotten = max(self._forgotten, known[-KEPT - 1][0])

    def overtake(self, seen: int, devices: Iterable[str]) -> bool:
        """Return whether to refuse a write because a drop that its coordinator has not seen may concern the devices.

        `seen` is the newest drop that the write's coordinator has seen.
        """
        if seen >= self.newest:
            return False
        unseen = [drop for number, drop in self._known.items() if number > seen]
        return seen < self._forgotten or any(reaches(drop, device) for device in devices for drop in unseen)

    def to_json(self) -> tuple[object, ...]:
        """Return the value in a form that JSON can encode."""
        return (self._forgotten, *((number, encode_change(drop).decode()) for number, drop in self._known.items()))

    @staticmethod
    def from_json(words: Sequence[Any]) -> Drops:
        """Return the drops that `to_json` encoded. Raises CorruptFile, ValueError."""
        forgotten, *known = words
        changes = [(int(number), decode_change(str(text).encode())) for number, text in known]
        return Drops([(n, c) for n, c in changes if isinstance(c, DeleteDatabase | DeleteSeries)], int(forgotten))
