"""A partition at one moment: its files, MemTables and tombstones, each with its rank.

    PartitionSnapshot(version 7)
      files       rank (0,1) seq/..   rank (0,2) seq/..   rank (0,3) unseq/..
      memtables   rank (0,4) immutable, being flushed     rank (0,5) active (its content at this moment)
      tombstones  rank (0,4): root.a.d1.** [10, 20)       hides data of rank <= (0,4) only

Files, MemTables and tombstones are ordered by rank: the higher rank wins. The rank of a MemTable is assigned when the
MemTable is created; the files written from the MemTable get the same rank. A tombstone ranks directly below the active
MemTable, from which the deleted rows are removed immediately. A tombstone therefore does not hide rows that arrive
after the deletion.

Snapshots are immutable values; the partition keeps the files of a pinned snapshot on disk. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from saros_storage.base.block import Block
from saros_storage.base.types import DataType, Scalar
from saros_storage.scan.activity import Activity
from saros_storage.scan.reading import ScanRequest, TimeRange
from saros_storage.scan.tsfile_access import TsFileAccess

#: A function that takes (database, slice) and returns True if that partition is chosen.
Chosen = Callable[[str, int], bool]


def everything(_: str, __: int) -> bool:
    """Choose all partitions."""
    return True


def nothing(_: str, __: int) -> bool:
    """Choose no partition."""
    return False


class Rank(NamedTuple):
    """The order of sources: `generation`, the partition-table version at which the slot moved here, then `version`."""

    generation: int
    version: int


class Tombstone(msgspec.Struct, frozen=True):
    """Hides points of rank <= `rank` in `time` of all series that `pattern` (text, may contain wildcards) matches."""

    pattern: str
    time: TimeRange
    rank: Rank


class DeviceSpan(msgspec.Struct, frozen=True):
    """First and last time (inclusive) of a device in a file: the content of `.resource`."""

    start: int
    end: int


class FileSource(msgspec.Struct, frozen=True):
    """A sealed file.

    `devices` are the devices that the file may contain; `access` reads the file, which it opens when it is first used.
    """

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
    """The interface of a MemTable for readers.

    It shows the MemTable's content at the moment when the snapshot was taken.
    """

    @property
    def rank(self) -> Rank:
        """The rank of its points."""
        ...

    def span(self, device: str) -> DeviceSpan | None:
        """Return first and last time of the device, or None if the MemTable has no points of the device."""
        ...

    def newer(self, request: ScanRequest) -> Mapping[str, DataType]:
        """Return the request's series whose type here may be newer than requested: see `type_conversion.is_newer`."""
        ...

    def latest(self, request: ScanRequest) -> list[tuple[int, Scalar] | None]:
        """Return time and value of the latest point of each requested series, regardless of the time range."""
        ...

    def read(self, request: ScanRequest) -> Block | None:
        """Return the requested rows: ascending, de-duplicated (last write wins), filtered by time; None without rows.

        Columns come in the request's order and types; a column that the MemTable lacks is all null. Raises
        TimestampsDiffer for several non-aligned series that do not have the same times here.
        """
        ...


class PartitionSnapshot(msgspec.Struct, frozen=True):
    """One partition at one version. Each list is ordered by rank, lowest first."""

    database: str
    slice: int
    files: tuple[FileSource, ...]
    memtables: tuple[MemorySource, ...]
    tombstones: tuple[Tombstone, ...]
    #: An object that is replaced at each change, except when rows are written to the active MemTable. None means that
    #: changes are not tracked.
    basis: object | None = None
    #: True if the last of `memtables` is the active MemTable, which no tombstone affects.
    has_active: bool = False
    #: The activity of the partition, in which scans count the points that they deliver.
    activity: Activity = msgspec.field(default_factory=Activity)

    @property
    def sources(self) -> Sequence[FileSource | MemorySource]:
        """Files and MemTables together, in order of rank."""
        sources: tuple[FileSource | MemorySource, ...] = (*self.files, *self.memtables)
        if self.files and self.memtables and self.files[-1].rank > self.memtables[0].rank:
            return sorted(sources, key=lambda source: source.rank)  # a loaded file among MemTables
        return sources
