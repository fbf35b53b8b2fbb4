"""The interface between the TsFile format and the series readers.

    TsFileAccess.device("root.a.d1") -> DeviceIndex
        series["temp"] -> SeriesIndex(type, statistics, chunks=(ChunkMeta, ...))        non-aligned: chunks per series
        aligned: DeviceIndex.time is the index of the time column, whose chunk i pairs with chunk i of every series

    chunk -> pages(...) -> PageSpan(start, end, count, statistics per column) -> read(...) -> Block

Within one file the chunks of a series are in time order and do not overlap. All offsets and sizes are checked against
the file before use: malformed data raises CorruptFile; a feature that Saros does not read raises UnsupportedFile.

Thread-safe: the index is cached under a lock; pages are read from a mapped file without a lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from saros_storage.base.block import Block
from saros_storage.base.types import DataType
from saros_storage.scan.reading import Statistics


class ChunkMeta(msgspec.Struct, frozen=True):
    """Offset of a chunk (its marker byte) and its statistics, which are None for a chunk without points."""

    offset: int
    statistics: Statistics | None


class SeriesIndex(msgspec.Struct, frozen=True):
    """One series of a device in one file."""

    measurement: str
    type: DataType
    statistics: Statistics | None
    chunks: tuple[ChunkMeta, ...]


class DeviceIndex(msgspec.Struct, frozen=True):
    """All series of a device in one file. `time` is the index of the time column of an aligned device, otherwise None.

    The time column has the type TIMESTAMP. In its statistics, only count, start and end are set; first and last are 0,
    and the others are None.
    """

    device: str
    time: SeriesIndex | None
    series: dict[str, SeriesIndex]

    @property
    def aligned(self) -> bool:
        """True if the series share one time column."""
        return self.time is not None


class PageSpan(msgspec.Struct, frozen=True):
    """One page, or for an aligned device, one time page together with the pages of all requested columns.

    `statistics[i]` is None if column i has no point in the page. If a chunk has only one page, these are the statistics
    of the chunk.
    """

    start: int
    end: int
    count: int
    statistics: tuple[Statistics | None, ...]


class TsFileAccess(Protocol):
    """A TsFile opened for reading (see `tsfile.reader`)."""

    @property
    def path(self) -> str:
        """The path of the file, for errors."""
        ...

    @property
    def serial(self) -> int:
        """A number that is unique among the files that this process has opened, for use as a cache key.

        A path is not unique: it may be used again after a database is dropped and created again.
        """
        ...

    def devices(self) -> Iterator[str]:
        """Yield canonical device paths in the file's order."""
        ...

    def device(self, device: str) -> DeviceIndex | None:
        """Return the index of a device, or None if the file does not contain it; cached."""
        ...

    def pages(self, device: DeviceIndex, measurements: Sequence[str], chunk: int) -> Sequence[PageSpan]:
        """Return the pages of a chunk; only their headers are read.

        For several non-aligned series, see `same_pages`.
        """
        ...

    def same_pages(self, device: DeviceIndex, measurements: Sequence[str], chunk: int) -> bool:
        """Return whether non-aligned series have, in chunk number `chunk`, pages of the same counts and spans."""
        ...

    def read_together(
        self, device: DeviceIndex, measurements: Sequence[str], chunk: int, first: int, stop: int
    ) -> tuple[Block, int] | None:
        """Read like `read`, for series of a non-aligned device whose chunks have the same pages.

        Returns None if the series have different times within the pages. The columns returned may share one piece of
        memory.
        """
        ...

    def read(
        self, device: DeviceIndex, measurements: Sequence[str], chunk: int, first: int, stop: int
    ) -> tuple[Block, int]:
        """Return the rows of pages [first, stop) of a chunk, decoded together, and the number of bytes decompressed.

        The block has one column per measurement, in that order. Do not request measurements that the file lacks: their
        type is unknown. Rows whose requested columns are all null are included: the caller drops them.
        """
        ...
