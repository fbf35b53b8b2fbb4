"""The read point of a statement: the log entries that it must see, and whether it may return old data.

    session   ReadHorizon  for each group, the log index up to which the session was shown entries; grows with each read
    statement ReadPoint    created when the statement begins; grows as its scope becomes known; `stale` may become true

The schema of a group is tracked separately from the group's data, since the data changes all the time: see `schema_of`.
A database without a cluster has only one replica, which is always current. The read point of such a database is `HERE`.
Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from saros_storage.scan.reading import ReadView, TimeRange

#: Added to a group's number to denote the group's schema; all numbers of groups are smaller than this.
_SCHEMA = 1 << 31


def schema_of(group: int) -> int:
    """Return the key of a group's schema in mappings by group, such as `ReadHorizon.shown`."""
    return _SCHEMA + group


def split(shown: Mapping[int, int]) -> tuple[dict[int, int], dict[int, int]]:
    """Split a mapping into one for the data of groups and one for their schemas; both results have groups as keys."""
    data = {group: index for group, index in shown.items() if group < _SCHEMA}
    return data, {group - _SCHEMA: index for group, index in shown.items() if group >= _SCHEMA}


class ReadHorizon:
    """For each group, the log index of the latest entry that a session was shown. It only grows; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Never changed in place.
        self._shown: Mapping[int, int] = {}

    @property
    def shown(self) -> Mapping[int, int]:
        """The current indexes by group."""
        return self._shown

    def note(self, shown: Mapping[int, int]) -> None:
        """Record that the session was also shown each group's entries up to the group's index in `shown`."""
        with self._lock:
            newer = {group: index for group, index in shown.items() if index > self._shown.get(group, 0)}
            if newer:
                self._shown = {**self._shown, **newer}


#: Devices, each with the time range in which its points are read; None stands for all points of all devices.
Sources = Collection[tuple[str, TimeRange]] | None


class ReadScope(msgspec.Struct, frozen=True):
    """The scope of a read: the schema at and below some path patterns, and the points of some sources."""

    patterns: Collection[str]
    sources: Sources = ()


#: The scope that contains the entire schema and all points.
EVERYTHING = ReadScope(("root",), None)


class ReadPoint(msgspec.Struct):
    """The log index of each group up to which entries must be applied before a read. Each statement has its own."""

    #: True if the read may lack acknowledged writes or data that the session was shown before. This may become true
    #: while replicas are asked.
    stale: bool = False
    #: True at consistency level `strong`: existing data that this read does not return will not appear in later reads
    #: either.
    strong: bool = False
    #: True if data can be read without asking another node first (see `Database.catch_up`).
    settled: bool = True
    #: True if each group is asked for its newest entry before any of the group's data is read.
    current: bool = False
    #: True if data of unavailable groups is left out; `missing` lists these groups.
    partial: bool = False
    #: For each group whose data is left out, the reason. The mapping is never changed in place, but replaced by a new
    #: one; new groups come last.
    missing: Mapping[int, str] = msgspec.field(default_factory=dict)
    #: The time on the monotonic clock at which all waiting ends; None if each step has a separate limit.
    deadline_ns: int | None = None
    #: Path patterns of the part of the schema on which the statement depends, as far as that part is determined yet.
    patterns: frozenset[str] = frozenset()
    #: For each group, the log index up to which the read must see entries. A read that need not be current has 0 for
    #: each group whose schema is known.
    applied: Mapping[int, int] = msgspec.field(default_factory=dict)
    #: For each group, the log index up to which the session has seen entries; a read that shows fewer entries is stale.
    wanted: Mapping[int, int] = msgspec.field(default_factory=dict)
    #: The object that records which entries the read shows; None if nothing is recorded.
    horizon: ReadHorizon | None = None
    #: Returns the snapshot to read from; None if the read creates a new view.
    picture: Callable[[], ReadView] | None = None

    def leave_out(self, errors: Iterable[tuple[int, Exception]]) -> None:
        """Record, with the reasons, that the data of these groups is left out. One thread at a time."""
        self.missing = {**self.missing, **{group: str(error) for group, error in errors}}

    def show(self, group: int, index: int) -> None:
        """Record that the read shows entries of a group up to `index`."""
        if index < self.wanted.get(group, 0):
            self.stale = True
        if self.horizon is not None:
            self.horizon.note({group: index})


#: The read point of a database without a cluster: everything that has been applied.
HERE = ReadPoint()
