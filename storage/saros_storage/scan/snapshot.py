"""A partition at one moment: its files, MemTables and tombstones, each with its rank.

    PartitionSnapshot(version 7)
      files       rank (0,1) seq/..   rank (0,2) seq/..   rank (0,3) unseq/..
      memtables   rank (0,4) immutable, being flushed     rank (0,5) active (a frozen prefix of it)
      tombstones  rank (0,4): root.a.d1.** [10, 20)       hides data of rank <= (0,4) only

Ranks order everything: the higher one wins. A MemTable's rank is the version that its file will get, taken when the
MemTable is made. A tombstone's rank is the newest one below the active MemTable, from which the deleted rows are
removed at once: so rows that arrive later are not hidden.

Snapshots are immutable values; the partition keeps the files of a pinned snapshot on disk. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from saros_storage.base.block import Block
from saros_storage.base.types import DataType, Scalar
from saros_storage.scan.activity import Activity
from saros_storage.scan.reading import ScanRequest, TimeRange
from saros_storage.scan.tsfile_access import TsFileAccess

#: A predicate over partitions, given by database and slice.
Chosen = Callable[[str, int], bool]


def everything(_: str, __: int) -> bool:
    """Choose all partitions."""
    return True


def nothing(_: str, __: int) -> bool:
    """Choose no partition."""
    return False


class Rank(NamedTuple):
    """Order of sources: `generation`, the partition-table version at which the slot was opened here, then `version`."""

    generation: int
    version: int


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Hides points of rank <= `rank` in `time` of the series that `pattern` (text, may hold `*` and `**`) matches."""

    pattern: str
    time: TimeRange
    rank: Rank


@dataclass(frozen=True, slots=True)
class DeviceSpan:
    """First and last time (inclusive) of a device in a file: the content of `.resource`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FileSource:
    """A sealed file: `devices` says what it may hold, `access` reads it (opened when first used)."""

    rank: Rank
    sequence: bool
    path: str
    size: int
    devices: dict[str, DeviceSpan]
    access: TsFileAccess


def overlap(a: FileSource, b: FileSource) -> bool:
    """Return whether the files may have points of one device within the same times."""
    few, many = (a, b) if len(a.devices) <= len(b.devices) else (b, a)
    for device, span in few.devices.items():
        other = many.devices.get(device)
        if other is not None and span.start <= other.end and other.start <= span.end:
            return True
    return False


class MemorySource(Protocol):
    """A MemTable as a reader sees it: what it held when the snapshot was taken."""

    @property
    def rank(self) -> Rank:
        """Rank of its points."""
        ...

    def span(self, device: str) -> DeviceSpan | None:
        """First and last time of the device, or None if it holds nothing of it."""
        ...

    def newer(self, request: ScanRequest) -> Mapping[str, DataType]:
        """Return those of the request's series whose type here may be newer: see `type_conversion.is_newer`."""
        ...

    def latest(self, request: ScanRequest) -> list[tuple[int, Scalar] | None]:
        """Time and value of the latest point of each of the request's series, whatever its range of time."""
        ...

    def read(self, request: ScanRequest) -> Block | None:
        """The request's rows: ascending, de-duplicated (last write won), filtered by time; None if there are none.

        Columns come in the request's order and types; one that the MemTable lacks is all null. Raises TimestampsDiffer
        for several series that are not aligned and do not have the same times here.
        """
        ...


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """One partition at one version. Lists are ordered by rank, lowest first."""

    database: str
    slice: int
    files: tuple[FileSource, ...]
    memtables: tuple[MemorySource, ...]
    tombstones: tuple[Tombstone, ...]
    #: Another object after each change but rows that are written into the active MemTable; None: it does not tell.
    basis: object | None = None
    #: Whether the last of `memtables` is the active one, which no tombstone touches.
    has_active: bool = False
    #: The partition's, where scans count what they deliver.
    activity: Activity = field(default_factory=Activity, compare=False)

    @property
    def sources(self) -> Sequence[FileSource | MemorySource]:
        """Files and MemTables together, by rank."""
        sources: tuple[FileSource | MemorySource, ...] = (*self.files, *self.memtables)
        if self.files and self.memtables and self.files[-1].rank > self.memtables[0].rank:
            return sorted(sources, key=lambda source: source.rank)  # a loaded file among MemTables
        return sources
