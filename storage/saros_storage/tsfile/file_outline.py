"""Read the structure of a TsFile: its devices, their series, chunks and pages. No page is decoded.

    DeviceSurvey  root.a.d1, aligned
      SeriesOutline  temp DOUBLE, statistics
        ChunkOutline   at byte 7, GORILLA, LZ4, statistics
          PageSurvey    at byte 30, 4 100 bytes that decompress to 8 000; 1 000 points from 0 to 999

The time column of an aligned device is a series without a type. Pure functions over a mapped file, for any thread.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.scan.reading import Statistics
from saros_storage.scan.tsfile_access import DeviceIndex, SeriesIndex
from saros_storage.tsfile.reader import TsFileReader


class PageSurvey(msgspec.Struct, frozen=True):
    """A page: its offset, stored size and decompressed size.

    `statistics` is None if all values of the page are null.
    """

    offset: int
    stored: int
    size: int
    statistics: Statistics | None


class ChunkOutline(msgspec.Struct, frozen=True):
    """A chunk. The chunk of a column of an aligned device may have no pages and no points."""

    offset: int
    encoding: Encoding
    compressor: Compressor
    statistics: Statistics | None
    pages: tuple[PageSurvey, ...]

    @property
    def stored(self) -> int:
        """The size of the chunk's pages in the file, in bytes."""
        return sum(page.stored for page in self.pages)

    @property
    def size(self) -> int:
        """The decompressed size of the chunk's pages, in bytes."""
        return sum(page.size for page in self.pages)


class SeriesOutline(msgspec.Struct, frozen=True):
    """A series of a device. For the time column, `type` is None and `measurement` is empty."""

    measurement: str
    type: DataType | None
    statistics: Statistics | None
    chunks: tuple[ChunkOutline, ...]


class DeviceSurvey(msgspec.Struct, frozen=True):
    """A device and its series; the time column comes first, and the other series follow in the file's order."""

    path: str
    aligned: bool
    series: tuple[SeriesOutline, ...]


def outline(reader: TsFileReader) -> Iterator[DeviceSurvey]:
    """Yield the outline of each device, in the file's order. Raises CorruptFile, UnsupportedFile."""
    for path in reader.devices():
        device = reader.device(path)
        assert device is not None
        columns = [] if device.time is None else [device.time]
        series = [_series(reader, device, found) for found in (*columns, *device.series.values())]
        yield DeviceSurvey(path, device.aligned, tuple(series))


def _series(reader: TsFileReader, device: DeviceIndex, series: SeriesIndex) -> SeriesOutline:
    chunks = []
    for number, chunk in enumerate(series.chunks):
        layout = reader.layout(device, series, number)
        pages = tuple(PageSurvey(p.offset, p.stored, p.size, p.statistics) for p in layout.pages)
        chunks.append(ChunkOutline(chunk.offset, layout.encoding, layout.compressor, chunk.statistics, pages))
    type_ = None if series is device.time else series.type
    return SeriesOutline(series.measurement, type_, series.statistics, tuple(chunks))
