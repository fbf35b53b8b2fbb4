"""How much a read sees: what it must see, what its session has seen before, and whether it may be stale.

    session   ReadHorizon  by group, up to where it was shown the log      grows with every read
    statement ReadPoint    made when it begins; grows with the scope that turns out to be read; `stale` may become true

A group's schema is tracked apart from its data, which changes all the time: `schema_of`. A database without a cluster
has one replica, which is always current: `HERE`. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from saros_storage.scan.reading import ReadView, TimeRange

#: Numbers of groups are below.
_SCHEMA = 1 << 31


def schema_of(group: int) -> int:
    """What stands for the schema of a group where groups are listed that were shown."""
    return _SCHEMA + group


def split(shown: Mapping[int, int]) -> tuple[dict[int, int], dict[int, int]]:
    """By group: what was shown of its data, and of its schema."""
    data = {group: index for group, index in shown.items() if group < _SCHEMA}
    return data, {group - _SCHEMA: index for group, index in shown.items() if group >= _SCHEMA}


class ReadHorizon:
    """What a session was shown: by group, the log entry up to which. It only grows; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Never changed in place.
        self._shown: Mapping[int, int] = {}

    @property
    def shown(self) -> Mapping[int, int]:
        """As of now."""
        return self._shown

    def note(self, shown: Mapping[int, int]) -> None:
        """The session was shown this, too."""
        with self._lock:
            newer = {group: index for group, index in shown.items() if index > self._shown.get(group, 0)}
            if newer:
                self._shown = {**self._shown, **newer}


#: Devices, and the ranges of time in which points of them are read; None: all points of all.
Sources = Collection[tuple[str, TimeRange]] | None


@dataclass(frozen=True, slots=True)
class ReadScope:
    """The scope of a read: the schema at and below path patterns, and the points of some sources."""

    patterns: Collection[str]
    sources: Sources = ()


#: All of the schema, and all points.
EVERYTHING = ReadScope(("root",), None)


@dataclass(slots=True)
class ReadPoint:
    """What a reader sees at least: by group, the log entry up to which all is applied. One for each statement."""

    #: It may be old: older than what was acknowledged, or than what the session was shown. While holders are asked,
    #: it may become so.
    stale: bool = False
    #: What it does not show will not show to anybody again.
    strong: bool = False
    #: Nothing has to be asked before something is read (`Database.catch_up`).
    settled: bool = True
    #: Groups are asked for their newest entry before anything of them is read.
    current: bool = False
    #: Data of groups that are not available is left out, and listed in `missing`.
    partial: bool = False
    #: By group: why its data is left out. Replaced, never changed in place; new groups come last.
    missing: Mapping[int, str] = field(default_factory=dict)
    #: End of all waiting, on the monotonic clock; None: after the longest time that there is for each step.
    deadline_ns: int | None = None
    #: The schema that the statement depends on, as far as is known yet.
    patterns: frozenset[str] = frozenset()
    #: What must be seen. A read that need not be current has an entry for each group whose schema is known: 0.
    applied: Mapping[int, int] = field(default_factory=dict)
    #: What the session was shown before: to be seen, or else the read is stale.
    wanted: Mapping[int, int] = field(default_factory=dict)
    #: Who is told what the reader shows; None: nobody wants to know.
    horizon: ReadHorizon | None = None
    #: Gives the picture that is read, of a moment that is kept; None: a new one is made.
    picture: Callable[[], ReadView] | None = None

    def leave_out(self, errors: Iterable[tuple[int, Exception]]) -> None:
        """Leave out the data of groups, for these reasons. One thread at a time."""
        self.missing = {**self.missing, **{group: str(error) for group, error in errors}}

    def show(self, group: int, index: int) -> None:
        """The reader shows a group up to an entry."""
        if index < self.wanted.get(group, 0):
            self.stale = True
        if self.horizon is not None:
            self.horizon.note({group: index})


#: Whatever is here.
HERE = ReadPoint()
