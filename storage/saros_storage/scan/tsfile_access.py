"""Reading a TsFile: the interface between the format and the series readers.

    TsFileAccess.device("root.a.d1") -> DeviceIndex
        series["temp"] -> SeriesIndex(type, statistics, chunks=(ChunkMeta, ...))        non-aligned: chunks per series
        aligned: DeviceIndex.time is the time column's index; chunk i of every series pairs with chunk i of the time's

    chunk -> pages(...) -> PageSpan(start, end, count, statistics per column) -> read(...) -> Block

Within one file the chunks of a series are in time order and do not overlap. All offsets and sizes are checked against
the file before use: malformed data raises CorruptFile, and a feature that Saros does not read raises UnsupportedFile.

Thread-safe: the index is cached under a lock; pages are read from a mapped file without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from saros_storage.base.block import Block
from saros_storage.base.types import DataType
from saros_storage.scan.reading import Statistics


@dataclass(frozen=True, slots=True)
class ChunkMeta:
    """Where a chunk starts (its marker byte) and what it holds; `statistics` is None for a chunk without points."""

    offset: int
    statistics: Statistics | None


@dataclass(frozen=True, slots=True)
class SeriesIndex:
    """One series of a device in one file."""

    measurement: str
    type: DataType
    statistics: Statistics | None
    chunks: tuple[ChunkMeta, ...]


@dataclass(frozen=True, slots=True)
class DeviceIndex:
    """All series of a device in one file. `time` is the time column's index of an aligned device, else None.

    The time column's statistics carry only count, start and end (first/last 0, the rest None), its type is TIMESTAMP.
    """

    device: str
    time: SeriesIndex | None
    series: dict[str, SeriesIndex]

    @property
    def aligned(self) -> bool:
        """Whether the series share one time column."""
        return self.time is not None


@dataclass(frozen=True, slots=True)
class PageSpan:
    """One page (of an aligned device: the pages of all asked columns that share its time page).

    `statistics[i]` is None where column i has no point in the page. In a single-page chunk they are the chunk's.
    """

    start: int
    end: int
    count: int
    statistics: tuple[Statistics | None, ...]


class TsFileAccess(Protocol):
    """A TsFile opened for reading (see `tsfile.reader`)."""

    @property
    def path(self) -> str:
        """The file's path, for errors."""
        ...

    @property
    def serial(self) -> int:
        """Another one for each file that this process has opened: what is kept of a file is kept under it.

        A path may come again, when a database is dropped and made anew.
        """
        ...

    def devices(self) -> Iterator[str]:
        """Canonical device paths in the file's order."""
        ...

    def device(self, device: str) -> DeviceIndex | None:
        """Index of a device, or None if the file has none of it; cached."""
        ...

    def pages(self, device: DeviceIndex, measurements: Sequence[str], chunk: int) -> Sequence[PageSpan]:
        """Pages of chunk number `chunk`; reads headers only. Several series that are not aligned: see `same_pages`."""
        ...

    def same_pages(self, device: DeviceIndex, measurements: Sequence[str], chunk: int) -> bool:
        """Whether series that are not aligned have, in chunk number `chunk`, pages of the same counts and spans."""
        ...

    def read_together(
        self, device: DeviceIndex, measurements: Sequence[str], chunk: int, first: int, stop: int
    ) -> tuple[Block, int] | None:
        """`read`, of series of a device that is not aligned whose chunks have the same pages.

        None if their times differ within the pages. Columns may lie in one piece of memory.
        """
        ...

    def read(
        self, device: DeviceIndex, measurements: Sequence[str], chunk: int, first: int, stop: int
    ) -> tuple[Block, int]:
        """Rows of pages [first, stop) of a chunk, decoded in one go, and how many bytes were decompressed.

        One column per measurement, in that order; those that the file lacks are not to be asked for
        (nobody gives a type for them). Rows whose asked columns are all null stay in: the caller drops them.
        """
        ...
