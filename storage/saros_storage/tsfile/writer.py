"""Write a TsFile: the writer takes any number of chunks and produces a finished file of version 4.

    writer = TsFileWriter(disk.create(path))
    writer.write_series("root.a.d1", "temp", type, encoding, compressor, times, values)     a chunk of one series
    writer.write_aligned("root.a.d2", times, columns)                                       a chunk group of a device
    writer.write_devices(batches)                                                           chunk groups of many devices
    writer.copy_series(...), writer.copy_aligned(...)                                       unchanged from other files
    summary = writer.finish()                                                               index and tail

The caller must observe two rules, which are asserted. A device is either aligned or not. Times rise strictly, both
within a call and from one call to the next call for the same series (or the same aligned device). The chunks of a
device should be written one after another.

In an aligned device, chunk i of each column belongs to chunk i of the time column, so each column must have as many
chunks as the time column. A column that a call omits gets an empty chunk. If a column first appears in a later call,
empty chunks for the earlier calls are written as a separate chunk group, before the chunk group of this call. If every
call provides all columns, no empty chunks are needed.

If a series declares GORILLA, the writer may choose PLAIN or TS_2DIFF (see `encoding_selection`); the header of each
chunk names its encoding.

Encoded data is written to the file in batches of about 1 MiB; only the statistics and the offset of each chunk stay in
memory. The caller syncs and closes the file. A writer belongs to one thread.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise, repeat
from typing import NamedTuple

import msgspec
import numpy as np

from saros_storage.base.block import Column, TextArray, Values
from saros_storage.base.types import BoolArray, Compressor, DataType, Encoding, Int64Array
from saros_storage.encoding import encode, encode_times
from saros_storage.encoding.compression import compress
from saros_storage.io.disk import File
from saros_storage.scan.reading import Statistics
from saros_storage.scan.snapshot import DeviceSpan
from saros_storage.tsfile.chunk import RawChunk
from saros_storage.tsfile.device_batch import DeviceBatch, EncodedDevices, Stored, encode_devices
from saros_storage.tsfile.encoding_selection import Choose, choose_by_trial
from saros_storage.tsfile.pages import full_bitmap
from saros_storage.tsfile.series import encode_series
from saros_storage.tsfile.structure import statistics as stats
from saros_storage.tsfile.structure.bloom import BloomFilter
from saros_storage.tsfile.structure.device_id import (
    Segments,
    bloom_key,
    encode_segments,
    name_key,
    segments_key,
    segments_of_path,
)
from saros_storage.tsfile.structure.format import (
    CHUNK_BYTES_MAX,
    MAGIC,
    MANY_PAGES,
    ONE_PAGE,
    TIME_MASK,
    VALUE_MASK,
    VECTOR_TYPE,
    VERSION_4,
    Marker,
    i32,
    uvar,
    vstr,
)
from saros_storage.tsfile.structure.index import DEGREE, Run, build_index, runs_of
from saros_storage.tsfile.structure.metadata import encode_metadata
from saros_storage.tsfile.structure.statistics import NOTHING, StoredStatistics

DEFAULT_PAGE_ROWS = 10_000
#: Maximum number of bytes of text in a page. A longer text has a page to itself.
PAGE_TEXT_BYTES_MAX = 1 << 20
#: Number of encoded bytes that are buffered before they are written to the file.
_BATCH_BYTES = 1 << 20
_TIME_NAME = ""
#: Maximum number of cached chunk headers. Devices of one kind often have equal series, whose chunk headers are then
#: equal, too.
_HEADERS_MAX = 4_096


class AlignedColumn(msgspec.Struct, frozen=True, eq=False):
    """One column of an aligned chunk group; `column.type` equals `type`."""

    measurement: str
    type: DataType
    encoding: Encoding
    compressor: Compressor
    column: Column


class TsFileSummary(msgspec.Struct, frozen=True):
    """A finished file: its size in bytes, its CRC-32, and the time span of each device."""

    size: int
    crc32: int
    devices: dict[str, DeviceSpan]


class TsFileWriter:
    """Writes the chunks of one TsFile, then its index and tail."""

    def __init__(self, file: File, *, page_rows: int = DEFAULT_PAGE_ROWS, choose: Choose = choose_by_trial) -> None:
        """Start a file.

        `choose` selects the encoding of each chunk, unless the caller passes the chunk in encoded form.
        """
        assert page_rows > 0
        self._choose = choose
        self._out = _Output(file)
        self._page_rows = page_rows
        self._devices: dict[str, _Device | _ClosedDevice] = {}
        #: The device of the chunk group being written.
        self._group: _Device | None = None
        #: The measurements that already have a chunk in this chunk group, if the device is non-aligned.
        self._in_group: set[str] = set()
        #: The `times` of the last call of `write_series`, and the encoded times of its pages by (start, stop) row.
        self._times: Int64Array | None = None
        self._encoded_times: dict[tuple[int, int], bytes] = {}
        self._out.add(MAGIC, bytes((VERSION_4,)))

    @property
    def position(self) -> int:
        """Number of bytes written, including buffered bytes. Callers use it to limit the size of a file."""
        return self._out.position

    def write_series(
        self,
        device: str,
        measurement: str,
        type_: DataType,
        encoding: Encoding,
        compressor: Compressor,
        times: Int64Array,
        values: Values,
    ) -> Statistics:
        """Write one chunk of a non-aligned device, with at least one point and no nulls. Return the chunk's statistics.

        If `times` is the same array as in the previous call, its encoded form is reused; therefore the caller must not
        modify the array.
        """
        assert len(times) == len(values) > 0
        if times is not self._times:
            assert _rises(times)
            self._times = times
            self._encoded_times.clear()
        entry = self._begin(device, measurement)
        encoding = self._choose(device, measurement, encoding, compressor, type_, values, None)
        pages = []
        for start, stop in _cut(len(times), self._page_rows, (values,)):
            part_times, part = _slice(times, values, start, stop)
            body = self._times_of_page(part_times, start, stop) + encode(encoding, type_, part)
            pages.append(_Page(stats.of_points(type_, part_times, part), len(body), compress(compressor, body)))
        chunk = self._write_chunk(entry, _header(measurement, type_, compressor, encoding, 0), pages)
        seen = stats.reader_statistics(type_, chunk)
        assert seen is not None
        return seen

    def write_page(
        self,
        device: str,
        measurement: str,
        type_: DataType,
        encoding: Encoding,
        compressor: Compressor,
        times: bytes,
        values: bytes,
        statistics: StoredStatistics,
    ) -> None:
        """Write one chunk of a non-aligned device as a single page, given its encoded times and values.

        The chunk must have at most `page_rows` points.
        """
        assert 0 < statistics.count <= self._page_rows
        entry = self._begin(device, measurement)
        body = b"".join((uvar(len(times)), times, values))
        stored = compress(compressor, body)
        sizes = uvar(len(body)) + uvar(len(stored))
        assert len(stored) <= CHUNK_BYTES_MAX - len(sizes)
        header = _header(measurement, type_, compressor, encoding, 0)
        entry.add(header, self._out.position, statistics)
        self._out.add(header.encode(len(sizes) + len(stored), many=False), sizes, stored)

    def _begin(self, device: str, measurement: str) -> _Device:
        """Begin a chunk of a non-aligned device, and a chunk group if necessary."""
        entry = self._device(device, aligned=False)
        if self._group is not entry or measurement in self._in_group:
            self._start_group(entry)
        self._in_group.add(measurement)
        return entry

    def _times_of_page(self, times: Int64Array, start: int, stop: int) -> bytes:
        """Return the first part of a page: the encoded size and times of rows [start, stop) of the chunk."""
        head = self._encoded_times.get((start, stop))
        if head is None:
            encoded = encode_times(times)
            head = self._encoded_times[start, stop] = uvar(len(encoded)) + encoded
        return head

    def write_aligned(self, device: str, times: Int64Array, columns: Sequence[AlignedColumn]) -> None:
        """Write one chunk group of an aligned device, with at least one row and one column."""
        assert len(times) > 0
        assert columns
        assert len({c.measurement for c in columns}) == len(columns)
        assert _rises(times)
        entry = self._device(device, aligned=True)
        self._add_missing(entry, map(_value_header, columns))
        self._start_group(entry)
        bounds = _cut(len(times), self._page_rows, [c.column.values for c in columns])
        pages = []
        compressor = columns[0].compressor
        for start, stop in bounds:
            part = times[start:stop]
            body = encode_times(part)
            pages.append(_Page(stats.of_times(part), len(body), compress(compressor, body)))
        self._write_chunk(entry, _header(_TIME_NAME, None, compressor, Encoding.TS_2DIFF, TIME_MASK), pages)
        for column in columns:
            assert len(column.column) == len(times)
            assert column.column.type is column.type
            self._write_column(entry, device, times, column, bounds)
        for series in entry.missing():
            self._write_chunk(entry, series.header, [])

    def write_devices(self, batches: Iterable[tuple[DeviceBatch, Stored]]) -> None:
        """Write the chunk groups of devices with few rows, in the order of the devices' `places`.

        The file must not contain other chunks of these devices, neither before nor afterwards.
        """
        encoded = [encode_devices(batch, stored) for batch, stored in batches]
        groups = list(chain.from_iterable(one.groups for one in encoded))
        order = np.argsort(np.concatenate([one.batch.places for one in encoded]))
        sizes = np.array(list(map(len, groups)))[order]
        positions = np.empty(len(groups), np.int64)
        positions[order] = self._out.position + np.cumsum(sizes) - sizes
        stops = np.cumsum([len(one.groups) for one in encoded])[:-1]
        closed: list[tuple[str, _ClosedDevice]] = []
        for one, found in zip(encoded, np.split(positions, stops), strict=True):
            closed += _closed_devices(one, found)
        known = len(self._devices)
        self._devices.update(closed[at] for at in order.tolist())
        assert len(self._devices) == known + len(groups), "a device is written twice"
        self._out.add(*[groups[at] for at in order.tolist()])
        self._group = None

    def copy_series(self, device: str, measurement: str, chunk: RawChunk) -> None:
        """Append a chunk of a non-aligned device unchanged.

        The chunk must have points, all of them later than the last point written for the series.
        """
        entry = self._device(device, aligned=False)
        if self._group is not entry or measurement in self._in_group:
            self._start_group(entry)
        self._in_group.add(measurement)
        self._copy_chunk(entry, measurement, 0, chunk)

    def copy_aligned(self, device: str, time: RawChunk, columns: Sequence[tuple[str, RawChunk]]) -> None:
        """Append a chunk group of an aligned device unchanged: chunks of the time column and of the named columns."""
        entry = self._device(device, aligned=True)
        self._add_missing(entry, (_raw_header(name, chunk, VALUE_MASK) for name, chunk in columns))
        self._start_group(entry)
        self._copy_chunk(entry, _TIME_NAME, TIME_MASK, time)
        for name, chunk in columns:
            self._copy_chunk(entry, name, VALUE_MASK, chunk)
        for series in entry.missing():
            self._write_chunk(entry, series.header, [])

    def _copy_chunk(self, device: _Device, name: str, mask: int, chunk: RawChunk) -> None:
        header = _raw_header(name, chunk, mask)
        device.add(header, self._out.position, chunk.statistics)
        self._out.add(header.encode(len(chunk.body), many=chunk.many), chunk.body)

    def finish(self) -> TsFileSummary:
        """Write index and tail. No other method may be called afterwards; the file is neither synced nor closed."""
        out = self._out
        separator = out.position
        out.add(bytes((Marker.SEPARATOR,)))
        devices = sorted(self._devices.values(), key=lambda d: segments_key(d.segments))
        area, tables = build_index(out.position, [(d.segments, d.encode_series()) for d in devices])
        out.add(*area)
        prefixes = [(bloom_key(d.segments, ""), d.names) for d in devices]
        bloom = BloomFilter.of([prefix + name for prefix, series in prefixes for name in series])
        out.add(encode_metadata(tables, separator, bloom))
        out.flush()
        return TsFileSummary(out.position, out.crc32, {path: d.span() for path, d in self._devices.items()})

    def _device(self, path: str, *, aligned: bool) -> _Device:
        device = self._devices.get(path)
        if device is None:
            device = self._devices[path] = _Device(segments_of_path(path), aligned=aligned)
        assert isinstance(device, _Device), f"{path} is written twice"
        assert device.aligned == aligned, f"{path} is both aligned and not aligned"
        return device

    def _start_group(self, device: _Device) -> None:
        self._out.add(bytes((Marker.CHUNK_GROUP,)), encode_segments(device.segments))
        self._group = device
        self._in_group.clear()

    def _add_missing(self, device: _Device, columns: Iterable[_Header]) -> None:
        """Write empty chunks for each new column of the device, one for each existing chunk of the time column."""
        groups = device.groups
        if not groups:
            return
        late = [header for header in columns if header.measurement not in device.series]
        if late:
            self._start_group(device)
        for header in late:
            for _ in range(groups):
                self._write_chunk(device, header, [])

    def _write_column(
        self, device: _Device, path: str, times: Int64Array, column: AlignedColumn, bounds: list[tuple[int, int]]
    ) -> None:
        valid = column.column.valid
        if valid is not None and valid.all():
            valid = None
        encoding = self._choose(
            path, column.measurement, column.encoding, column.compressor, column.type, column.column.values, valid
        )
        pages = [self._value_page(times, column, encoding, valid, start, stop) for start, stop in bounds]
        empty = not any(page.statistics.count for page in pages)
        header = _header(column.measurement, column.type, column.compressor, encoding, VALUE_MASK)
        self._write_chunk(device, header, [] if empty else pages)

    @staticmethod
    def _value_page(
        times: Int64Array, column: AlignedColumn, encoding: Encoding, valid: BoolArray | None, start: int, stop: int
    ) -> _Page:
        rows = stop - start
        part_times, part = _slice(times, column.column.values, start, stop)
        bitmap = full_bitmap(rows)
        if valid is not None:
            mask = valid[start:stop]
            places = np.flatnonzero(mask)
            if not len(places):
                return _Page(NOTHING, 0, b"")
            bitmap = np.packbits(mask).tobytes()
            part_times = part_times[places]
            part = part.take(places) if isinstance(part, TextArray) else part[places]
        body = b"".join((i32(rows), bitmap, encode(encoding, column.type, part)))
        return _Page(stats.of_points(column.type, part_times, part), len(body), compress(column.compressor, body))

    def _write_chunk(self, device: _Device, header: _Header, pages: Sequence[_Page]) -> StoredStatistics:
        many = len(pages) > 1
        parts: list[bytes] = []
        for page in pages:
            parts.append(uvar(page.size))
            if page.size:
                parts.append(uvar(len(page.stored)))
                if many:
                    parts.append(stats.encode(header.type, page.statistics))
                parts.append(page.stored)
        size = sum(map(len, parts))
        assert size <= CHUNK_BYTES_MAX
        chunk = stats.merge([page.statistics for page in pages])
        device.add(header, self._out.position, chunk)
        self._out.add(header.encode(size, many=many), *parts)
        return chunk


class _Page(NamedTuple):
    """An encoded page. The uncompressed `size` of a page without points is 0."""

    statistics: StoredStatistics
    size: int
    stored: bytes


class _Header(msgspec.Struct, frozen=True):
    """The header of a chunk, created by `_header`. `type` is None for the time column."""

    measurement: str
    type: DataType | None
    mask: int
    #: The measurement, encoded.
    name: bytes
    #: Type, compressor and encoding, encoded.
    ids: bytes

    def encode(self, size: int, *, many: bool) -> bytes:
        """Return the header's bytes, for `size` bytes of pages."""
        marker = self.mask | (MANY_PAGES if many else ONE_PAGE)
        return b"".join((bytes((marker,)), self.name, uvar(size), self.ids))


@lru_cache(_HEADERS_MAX)
def _header(measurement: str, type_: DataType | None, compressor: Compressor, encoding: Encoding, mask: int) -> _Header:
    ids = bytes((VECTOR_TYPE if type_ is None else type_, compressor, encoding))
    return _Header(measurement, type_, mask, vstr(measurement), ids)


def _value_header(column: AlignedColumn) -> _Header:
    return _header(column.measurement, column.type, column.compressor, column.encoding, VALUE_MASK)


def _raw_header(name: str, chunk: RawChunk, mask: int) -> _Header:
    return _header(name, chunk.type, chunk.compressor, chunk.encoding, mask)


class _Series:
    """The index entry of one series, while the file is being written."""

    __slots__ = ("chunks", "header", "last")

    def __init__(self, header: _Header) -> None:
        #: Header of the last chunk.
        self.header = header
        #: Offset and statistics of each chunk.
        self.chunks: list[tuple[int, StoredStatistics]] = []
        #: Last time written; None before the first point.
        self.last: int | None = None

    def add(self, header: _Header, offset: int, chunk: StoredStatistics) -> None:
        assert header.type == self.header.type
        if chunk.count:
            assert self.last is None or chunk.start > self.last, "chunks of a series must be in ascending order of time"
            self.last = chunk.end
        self.header = header
        self.chunks.append((offset, chunk))

    def encode(self) -> bytes:
        header = self.header
        whole = stats.merge([chunk for _, chunk in self.chunks])
        return encode_series(header.mask, header.name, header.type, whole, self.chunks)


class _Device:
    """The index entries of one device, while the file is being written."""

    __slots__ = ("aligned", "segments", "series")

    def __init__(self, segments: Segments, *, aligned: bool) -> None:
        self.segments = segments
        self.aligned = aligned
        self.series: dict[str, _Series] = {}

    @property
    def groups(self) -> int:
        """Number of chunks of the time column."""
        time = self.series.get(_TIME_NAME)
        return len(time.chunks) if time else 0

    def add(self, header: _Header, offset: int, chunk: StoredStatistics) -> None:
        series = self.series.get(header.measurement)
        if series is None:
            series = self.series[header.measurement] = _Series(header)
        series.add(header, offset, chunk)

    def missing(self) -> list[_Series]:
        """Return the columns that have fewer chunks than the time column."""
        return [s for s in self.series.values() if len(s.chunks) < self.groups]

    def span(self) -> DeviceSpan:
        """Return the first and last time of the device."""
        chunks = [c for s in self.series.values() for _, c in s.chunks if c.count]
        return DeviceSpan(min(c.start for c in chunks), max(c.end for c in chunks))

    @property
    def names(self) -> Iterable[str]:
        """The names of the series."""
        return self.series

    def encode_series(self) -> list[Run]:
        """Return the encoded TimeseriesMetadata of the series in the file's order; the time column comes first."""
        return runs_of([(name, self.series[name].encode()) for name in sorted(self.series, key=name_key)])


class _ClosedDevice(NamedTuple):
    """The index entries of a device whose chunks are all written: the TimeseriesMetadata of all series."""

    segments: Segments
    #: The names are in the file's order; all devices of a batch share this list.
    names: list[str]
    metadata: bytes
    start: int
    end: int

    def span(self) -> DeviceSpan:
        """Return the first and last time of the device."""
        return DeviceSpan(self.start, self.end)

    def encode_series(self) -> list[Run]:
        """Return the encoded TimeseriesMetadata of the series in the file's order."""
        return [(self.names[0], self.metadata)]


def _closed_devices(encoded: EncodedDevices, positions: Int64Array) -> Iterator[tuple[str, _ClosedDevice]]:
    """Yield the path and the index entries of each device, given the positions of the chunk groups."""
    batch, names = encoded.batch, encoded.names
    assert len(names) <= DEGREE
    bounds = batch.times[:, 0].tolist(), batch.times[:, -1].tolist()
    closed = map(_ClosedDevice, encoded.segments, repeat(names), encoded.index_of(positions), *bounds)
    return zip(batch.devices, closed, strict=True)


def _cut(rows: int, page_rows: int, values: Iterable[Values]) -> list[tuple[int, int]]:
    """Return the bounds of pages of at most `page_rows` rows and `PAGE_TEXT_BYTES_MAX` bytes of each text column."""
    texts = [v.offsets for v in values if isinstance(v, TextArray)]
    texts = [t for t in texts if int(t[-1]) - int(t[0]) > PAGE_TEXT_BYTES_MAX]
    if not texts:
        return list(pairwise([*range(0, rows, page_rows), rows]))
    bounds: list[tuple[int, int]] = []
    start = 0
    while start < rows:
        reach = [int(np.searchsorted(t, int(t[start]) + PAGE_TEXT_BYTES_MAX, "right")) - 1 for t in texts]
        stop = max(start + 1, min(start + page_rows, rows, *reach))
        bounds.append((start, stop))
        start = stop
    return bounds


def _rises(times: Int64Array) -> bool:
    return bool((times[1:] > times[:-1]).all())


def _slice(times: Int64Array, values: Values, start: int, stop: int) -> tuple[Int64Array, Values]:
    if start == 0 and stop == len(times):
        return times, values
    part = values.slice(start, stop) if isinstance(values, TextArray) else values[start:stop]
    return times[start:stop], part


class _Output:
    """Buffers parts for the file and keeps track of position and checksum."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._parts: list[bytes | memoryview] = []
        self._waiting_bytes = 0
        self.position = 0
        #: CRC-32 of all bytes that were written to the file.
        self.crc32 = 0

    def add(self, *parts: bytes | memoryview) -> None:
        """Append the parts; the caller must not change them before the next batch is written."""
        size = sum(map(len, parts))
        self._parts += parts
        self.position += size
        self._waiting_bytes += size
        if self._waiting_bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered parts to the file."""
        batch = b"".join(self._parts)
        self._parts.clear()
        self._waiting_bytes = 0
        self.crc32 = zlib.crc32(batch, self.crc32)
        self._file.write([batch])
