"""Read a TsFile (v3 or v4) from a mapped file. The reader implements `tsfile_access.TsFileAccess`.

Opening a file reads only its tail. A device is found by binary search through the index. The device's index and the
headers of its chunks are stored in bounded caches. If a later query reads the same series, it reads only the pages from
the file. Decoded pages are not cached here, but in `chunk_cache`.

The reader returns names in canonical form, however they are spelled in the file. Writers other than Saros may spell
names differently. In their files, a device that the search does not find is looked up by its canonical path in a table
of all devices, which is built on first use.

Thread-safe: caches have locks, everything else is immutable. The file stays mapped as long as the reader, or an object
that the reader has returned, exists.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from saros_storage.base.block import Block, Column
from saros_storage.base.errors import CorruptFile
from saros_storage.base.lru import LruCache
from saros_storage.scan.tsfile_access import ChunkMeta, DeviceIndex, PageSpan, SeriesIndex
from saros_storage.tsfile.chunk import ChunkLayout, RawChunk, read_layout
from saros_storage.tsfile.multi_series_decode import read_points_together
from saros_storage.tsfile.pages import read_column, read_points, read_times
from saros_storage.tsfile.series import read_device, read_stored
from saros_storage.tsfile.structure.device_id import path_of_segments, segments_of_path
from saros_storage.tsfile.structure.format import VERSION_3, Cursor
from saros_storage.tsfile.structure.index import Span
from saros_storage.tsfile.structure.metadata import OWN_PROPERTY, FileMetadata, read_metadata
from saros_storage.tsfile.structure.statistics import StoredStatistics

#: Maximum number of series and chunks in the cached device indexes of one file, which take some 10 MB.
_CACHED_CHUNKS_MAX = 20_000
#: Maximum number of pages in the cached chunk layouts of one file, which take some 10 MB.
_CACHED_PAGES_MAX = 20_000
_serials = itertools.count()


class TsFileReader:
    """An open TsFile. The constructor and all methods may raise CorruptFile or UnsupportedFile."""

    def __init__(self, path: str, data: memoryview) -> None:
        self._path = path
        self._data = data
        self._serial = next(_serials)
        self._metadata, self._tree = read_metadata(path, data)
        self._devices: LruCache[str, DeviceIndex] = LruCache(_CACHED_CHUNKS_MAX)
        self._layouts: LruCache[int, ChunkLayout] = LruCache(_CACHED_PAGES_MAX)
        #: For files of other writers: the root measurement node of each device, with the canonical path as key. None
        #: until the first search for a device fails.
        self._spelled: dict[str, Span] | None = None

    @property
    def path(self) -> str:
        """See `TsFileAccess.path`."""
        return self._path

    @property
    def serial(self) -> int:
        """See `TsFileAccess.serial`."""
        return self._serial

    @property
    def metadata(self) -> FileMetadata:
        """The version, the properties, and the end of the data area."""
        return self._metadata

    def devices(self) -> Iterator[str]:
        """See `TsFileAccess.devices`."""
        return (path_of_segments(segments) for segments, _ in self._tree.devices())

    def device(self, device: str) -> DeviceIndex | None:
        """See `TsFileAccess.device`."""
        found = self._devices.get(device)
        if found is None:
            span = self._find(device)
            if span is None:
                return None
            found = self._read_device(device, span)
            self._devices.put(device, found, sum(len(s.chunks) + 1 for s in found.series.values()) + 1)
        return found

    def pages(self, device: DeviceIndex, measurements: Sequence[str], chunk: int) -> Sequence[PageSpan]:
        """See `TsFileAccess.pages`."""
        if device.time is None:
            each = [layout.spans for layout in self._layouts_of(device, measurements, chunk)]
            return each[0] if len(each) == 1 else [_spans_as_one(pages) for pages in zip(*each, strict=True)]
        time = self.layout(device, device.time, chunk)
        columns = []
        for measurement in measurements:
            pages = self._value_layout(device, time, measurement, chunk).pages
            columns.append([p.statistics for p in pages] if pages else [None] * len(time.pages))
        spans = [p.statistics for p in time.pages if p.statistics]
        rows = zip(*columns, strict=True) if columns else iter([()] * len(spans))
        return [PageSpan(s.start, s.end, s.count, row) for s, row in zip(spans, rows, strict=True)]

    def read(
        self, device: DeviceIndex, measurements: Sequence[str], chunk: int, first: int, stop: int
    ) -> tuple[Block, int]:
        """See `TsFileAccess.read`."""
        if device.time is None:
            (measurement,) = measurements
            layout = self.layout(device, device.series[measurement], chunk)
            times, column, size = read_points(layout, self._data, first, min(stop, len(layout.pages)))
            return Block.timed(times, (column,)), size
        time = self.layout(device, device.time, chunk)
        stop = min(stop, len(time.pages))
        times, size = read_times(time, self._data, first, stop)
        columns: list[Column] = []
        for measurement in measurements:
            layout = self._value_layout(device, time, measurement, chunk)
            column, more = read_column(layout, device.series[measurement].type, self._data, time, first, stop)
            columns.append(column)
            size += more
        return Block.timed(times, columns), size

    def same_pages(self, device: DeviceIndex, measurements: Sequence[str], chunk: int) -> bool:
        """See `TsFileAccess.same_pages`."""
        first, *others = self._layouts_of(device, measurements, chunk)
        return all(layout.same_pages(first) for layout in others)

    def read_together(
        self, device: DeviceIndex, measurements: Sequence[str], chunk: int, first: int, stop: int
    ) -> tuple[Block, int] | None:
        """See `TsFileAccess.read_together`."""
        found = read_points_together(self._layouts_of(device, measurements, chunk), self._data, first, stop)
        if found is None:
            return None
        times, columns, size = found
        return Block.timed(times, columns), size

    def _layouts_of(self, device: DeviceIndex, measurements: Sequence[str], chunk: int) -> list[ChunkLayout]:
        return [self.layout(device, device.series[measurement], chunk) for measurement in measurements]

    def layout(self, device: DeviceIndex, series: SeriesIndex, chunk: int) -> ChunkLayout:
        """Return the layout of a chunk of `series`, which is a series or the time column of the device; cached."""
        meta = series.chunks[chunk]
        layout = self._layouts.get(meta.offset)
        if layout is None:
            layout = read_layout(self._path, self._data, self._metadata.data_end, meta)
            self._layouts.put(meta.offset, layout, len(layout.pages) + 1)
        self._check_layout(layout, meta, series, is_time=series is device.time)
        return layout

    def stored(self, device: str) -> dict[str, list[StoredStatistics]]:
        """Return, for each measurement (empty: the time column), the statistics of its chunks in the form for `raw`."""
        span = self._find(device)
        return {} if span is None else read_stored(self._cursors(span), self._metadata.data_end)

    def raw(self, device: DeviceIndex, measurement: str, chunk: int, statistics: StoredStatistics) -> RawChunk:
        """Return a chunk without decoding it; an empty `measurement` is the time column of an aligned device."""
        time = None if device.time is None else self.layout(device, device.time, chunk)
        if time is None:
            layout = self.layout(device, device.series[measurement], chunk)
        else:
            layout = self._value_layout(device, time, measurement, chunk) if measurement else time
        body = self._data[layout.start : layout.end]
        return RawChunk(layout.type, layout.encoding, layout.compressor, layout.many, body, statistics)

    def _check_layout(self, layout: ChunkLayout, meta: ChunkMeta, series: SeriesIndex, *, is_time: bool) -> None:
        if layout.measurement != series.measurement or layout.type != (None if is_time else series.type):
            raise CorruptFile(self._path, meta.offset, f"the chunk is not one of {series.measurement or 'the times'}")

    def _value_layout(self, device: DeviceIndex, time: ChunkLayout, measurement: str, chunk: int) -> ChunkLayout:
        layout = self.layout(device, device.series[measurement], chunk)
        if layout.pages and len(layout.pages) != len(time.pages):
            raise layout.corrupt(f"{len(layout.pages)} pages of {measurement} for {len(time.pages)} of times")
        return layout

    def _find(self, device: str) -> Span | None:
        version_3 = self._metadata.version == VERSION_3
        span = self._tree.find((device,) if version_3 else segments_of_path(device))
        if span is None and OWN_PROPERTY not in self._metadata.properties:
            if self._spelled is None:
                self._spelled = {path_of_segments(segments): span for segments, span in self._tree.devices()}
            span = self._spelled.get(device)
        return span

    def _read_device(self, device: str, span: Span) -> DeviceIndex:
        return read_device(device, self._cursors(span), self._metadata.data_end)

    def _cursors(self, device: Span) -> list[Cursor]:
        """Return a cursor for each run of the device's TimeseriesMetadata in the index."""
        spans = self._tree.series_spans(device)
        return [Cursor(self._path, self._data[s.start : s.end], s.start) for s in spans]


def _spans_as_one(pages: Sequence[PageSpan]) -> PageSpan:
    """Combine the pages of several series, one from each series, that have the same count and time span."""
    lead = pages[0]
    return PageSpan(lead.start, lead.end, lead.count, tuple([page.statistics[0] for page in pages]))
