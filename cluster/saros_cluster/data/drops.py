"""Drops of series and databases: numbered by the meta group, carried out by every data group, each once and in order.

    meta group    begin  -> number n, its place in the meta group's log                      end
    every group           entry "drop n": series and points go, and n is the newest    ...
    every write           carries the newest drop that its coordinator's schema reflects: `seen`

A group that has carried out drop n refuses (2021) a write to devices that n reaches if the write has not seen n: its
coordinator may still have the series' old definition. Any node can complete an unfinished drop. So drops are sent to
each group in the order of their numbers, and a group ignores a drop that is not newer than its newest: late and
repeated drops cannot harm what was created since. Nothing that a drop reaches is created again before all groups have
carried it out.

Pure; one thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from saros_storage.base.paths import parse_pattern, split_path
from saros_storage.mutation.mutation import Deletion, Mutation
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import DeleteDatabase, DeleteSeries, SchemaChange, decode_change, encode_change

#: What a drop takes away.
Drop = DeleteDatabase | DeleteSeries
#: Code of the refusal.
OVERTAKEN = 2021
#: Drops whose reach is known: a write that has seen none of them is refused, whatever it is about.
KEPT = 1_000


def reaches(drop: Drop, path: str) -> bool:
    """Whether a drop may take something of a database or a device."""
    nodes = split_path(path)
    if isinstance(drop, DeleteDatabase):
        taken = split_path(drop.path)
        return nodes[: len(taken)] == taken
    return parse_pattern(drop.pattern).reaches(nodes)


def overlaps(drop: Drop, patterns: Iterable[str]) -> bool:
    """Whether a drop may remove something at or below one of the path patterns."""
    path = split_path(drop.path) if isinstance(drop, DeleteDatabase) else parse_pattern(drop.pattern).fixed_nodes
    return any(parse_pattern(pattern).overlaps(path) for pattern in patterns)


def drop_of(changes: Iterable[SchemaChange]) -> Drop | None:
    """What an entry drops; it then does nothing else."""
    return next((c for c in changes if isinstance(c, DeleteDatabase | DeleteSeries)), None)


def effect_of(drop: Drop) -> Mutation:
    """What a group does for it."""
    if isinstance(drop, DeleteDatabase):
        return Mutation([drop])
    return Mutation([drop], [Deletion((drop.pattern,), TimeRange())])


class Drops:
    """What a group has carried out."""

    def __init__(self, known: Iterable[tuple[int, Drop]] = (), forgotten: int = 0) -> None:
        """`known`: by rising number. `forgotten`: the newest whose reach is not known any more."""
        self._known = dict(known)
        self._forgotten = forgotten

    @property
    def newest(self) -> int:
        """0: none."""
        return max(self._known, default=self._forgotten)

    def record(self, number: int, drop: Drop) -> None:
        """It is carried out."""
        assert number > self.newest
        self._known[number] = drop
        if len(self._known) > KEPT:
            self._forgotten = next(iter(self._known))
            del self._known[self._forgotten]

    def merge(self, others: Drops) -> None:
        """Add the drops of a group that slots come from: a new group has not carried out all of them."""
        self._forgotten = max(self._forgotten, others._forgotten)
        known = sorted({**others._known, **self._known}.items())
        self._known = {number: drop for number, drop in known[-KEPT:] if number > self._forgotten}
        if len(known) > KEPT:
            self._forgotten = max(self._forgotten, known[-KEPT - 1][0])

    def overtake(self, seen: int, devices: Iterable[str]) -> bool:
        """Whether a write of these devices is to be refused."""
        if seen >= self.newest:
            return False
        unseen = [drop for number, drop in self._known.items() if number > seen]
        return seen < self._forgotten or any(reaches(drop, device) for device in devices for drop in unseen)

    def to_json(self) -> tuple[object, ...]:
        """As values that JSON knows."""
        return (self._forgotten, *((number, encode_change(drop).decode()) for number, drop in self._known.items()))

    @staticmethod
    def from_json(words: Sequence[Any]) -> Drops:
        """The inverse. Raises CorruptFile, ValueError."""
        forgotten, *known = words
        changes = [(int(number), decode_change(str(text).encode())) for number, text in known]
        return Drops([(n, c) for n, c in changes if isinstance(c, DeleteDatabase | DeleteSeries)], int(forgotten))
