"""Fake files and MemTables, which are made of Python values, for tests of readers.

    FakeTsFile   chunks of pages of rows, exactly as a test gives them; statistics are computed in plain Python
    FakeMemory   rows
    write_real   writes the same rows as a TsFile, whose writer chooses the pages

Each measurement of a non-aligned device has separate chunks; the chunks of an aligned device have rows of all columns.
The fields `reads` and `openings` of a fake record its calls.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from saros_storage.base.block import Block, Column
from saros_storage.base.types import Compressor, DataType, Encoding, Scalar
from saros_storage.io.disk import LocalFile
from saros_storage.scan.reading import ScanRequest, Statistics, TimestampsDiffer
from saros_storage.scan.snapshot import DeviceSpan, FileSource, Rank
from saros_storage.scan.tsfile_access import ChunkMeta, DeviceIndex, PageSpan, SeriesIndex, TsFileAccess
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

#: The key under which an aligned device has its chunks.
ROWS = ""


@dataclass(frozen=True)
class Rows:
    """Rows in order of time; None is null."""

    times: tuple[int, ...]
    columns: Mapping[str, tuple[DataType, tuple[Scalar, ...]]]

    def column(self, name: str) -> Column:
        type_, values = self.columns[name]
        return Column.of(type_, values)

    def statistics(self, name: str) -> Statistics | None:
        type_, values = self.columns[name]
        return statistics_of(type_, [(t, v) for t, v in zip(self.times, values, strict=True) if v is not None])

    def time_statistics(self) -> Statistics:
        return Statistics(len(self.times), self.times[0], self.times[-1], 0, 0, None, None, None)


def statistics_of(type_: DataType, points: Sequence[tuple[int, Scalar]]) -> Statistics | None:
    """Return the statistics that a file stores for these points, or None if there are no points."""
    if not points:
        return None
    values = [value for _, value in points]
    minimum = maximum = total = None
    if type_.is_numeric:
        minimum, maximum, total = min(values), max(values), sum(values)
    return Statistics(len(points), points[0][0], points[-1][0], values[0], values[-1], minimum, maximum, total)


def joined(parts: Sequence[Rows]) -> Rows:
    """Concatenate parts, all of which have the same columns."""
    columns = {
        name: (type_, tuple(v for part in parts for v in part.columns[name][1]))
        for name, (type_, _) in parts[0].columns.items()
    }
    return Rows(tuple(t for part in parts for t in part.times), columns)


Chunks = Sequence[Sequence[Rows]]


class FakeTsFile:
    """Implements `TsFileAccess` for one device.

    The keys of `chunks` are measurements, or only `ROWS` if the device is aligned.
    """

    def __init__(self, path: str, device: str, chunks: Mapping[str, Chunks]) -> None:
        self._path = path
        self._device = device
        self._chunks = chunks
        self.aligned = ROWS in chunks
        #: The arguments of each call of `read`: the measurements, the chunk, its first page, and the page after its
        #: last one.
        self.reads: list[tuple[tuple[str, ...], int, int, int]] = []
        #: The number of calls of `pages`.
        self.openings = 0

    @property
    def path(self) -> str:
        return self._path

    @property
    def serial(self) -> int:
        return id(self)

    def devices(self) -> Iterator[str]:
        return iter([self._device])

    def device(self, device: str) -> DeviceIndex | None:
        if device != self._device:
            return None
        if not self.aligned:
            series = {name: _index(name, [joined(c) for c in chunks]) for name, chunks in self._chunks.items()}
            return DeviceIndex(device, None, series)
        rows = [joined(chunk) for chunk in self._chunks[ROWS]]
        known = [r.time_statistics() for r in rows]
        time = SeriesIndex("", DataType.TIMESTAMP, None, tuple(ChunkMeta(n, s) for n, s in enumerate(known)))
        return DeviceIndex(device, time, {name: _index(name, rows) for name in rows[0].columns})

    def pages(self, device: DeviceIndex, measurements: Sequence[str], chunk: int) -> list[PageSpan]:
        self.openings += 1
        assert self.aligned or self.same_pages(device, measurements, chunk)
        pages = zip(*[self._pages([m], chunk) for m in measurements], strict=True)
        return [
            PageSpan(
                same[0].times[0],
                same[0].times[-1],
                len(same[0].times),
                tuple(page.statistics(m) for page, m in zip(same, measurements, strict=True)),
            )
            for same in pages
        ]

    def read(
        self, device: DeviceIndex, measurements: Sequence[str], chunk: int, first: int, stop: int
    ) -> tuple[Block, int]:
        self.reads.append((tuple(measurements), chunk, first, stop))
        pages = self._pages(measurements, chunk)[first:stop]
        assert len(pages) == stop - first > 0
        rows = joined(pages)
        block = Block.timed(np.array(rows.times, np.int64), [rows.column(m) for m in measurements])
        return block, 10 * (stop - first)

    def same_pages(self, device: DeviceIndex, measurements: Sequence[str], chunk: int) -> bool:
        shapes = [[(len(p.times), p.times[0], p.times[-1]) for p in self._pages([m], chunk)] for m in measurements]
        return all(shape == shapes[0] for shape in shapes)

    def read_together(
        self, device: DeviceIndex, measurements: Sequence[str], chunk: int, first: int, stop: int
    ) -> tuple[Block, int] | None:
        self.reads.append((tuple(measurements), chunk, first, stop))
        parts = [joined(self._pages([m], chunk)[first:stop]) for m in measurements]
        if any(part.times != parts[0].times for part in parts):
            return None
        columns = [part.column(m) for part, m in zip(parts, measurements, strict=True)]
        return Block.timed(np.array(parts[0].times, np.int64), columns), 10 * (stop - first) * len(parts)

    def _pages(self, measurements: Sequence[str], chunk: int) -> Sequence[Rows]:
        if self.aligned:
            return self._chunks[ROWS][chunk]
        (measurement,) = measurements
        return self._chunks[measurement][chunk]

    def source(self, version: int) -> FileSource:
        """Return this file as one of the sources of a partition."""
        return source_of(self, self._chunks, self._device, version)


def source_of(access: TsFileAccess, chunks: Mapping[str, Chunks], device: str, version: int) -> FileSource:
    times = [t for parts in chunks.values() for chunk in parts for page in chunk for t in page.times]
    span = DeviceSpan(min(times), max(times))
    return FileSource(Rank(0, version), True, access.path, 1, {device: span}, access)


def _index(name: str, chunks: Sequence[Rows]) -> SeriesIndex:
    metas = tuple(ChunkMeta(number, rows.statistics(name)) for number, rows in enumerate(chunks))
    return SeriesIndex(name, chunks[0].columns[name][0], joined(chunks).statistics(name), metas)


def write_real(path: str, device: str, chunks: Mapping[str, Chunks], page_rows: int) -> TsFileReader:
    """Write the chunks as a TsFile with `page_rows` rows in each page, whatever the sizes of the pages in `chunks`."""
    file = LocalFile(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    writer = TsFileWriter(file, page_rows=page_rows)
    for name, parts in sorted(chunks.items()):
        for rows in map(joined, parts):
            times = np.array(rows.times, np.int64)
            if name == ROWS:
                writer.write_aligned(device, times, [_aligned(rows, column) for column in sorted(rows.columns)])
            else:
                column = rows.column(name)
                writer.write_series(device, name, column.type, Encoding.PLAIN, Compressor.LZ4, times, column.values)
    writer.finish()
    file.close()
    with open(path, "rb") as done:
        return TsFileReader(path, memoryview(done.read()))


def _aligned(rows: Rows, name: str) -> AlignedColumn:
    return AlignedColumn(name, rows.columns[name][0], Encoding.PLAIN, Compressor.LZ4, rows.column(name))


@dataclass
class FakeMemory:
    """Implements `snapshot.MemorySource` for one device."""

    rank: Rank
    device: str
    rows: Rows
    requests: list[ScanRequest] = field(default_factory=list)

    def span(self, device: str) -> DeviceSpan | None:
        return DeviceSpan(self.rows.times[0], self.rows.times[-1]) if device == self.device else None

    def newer(self, request: ScanRequest) -> dict[str, DataType]:
        return {}

    def latest(self, request: ScanRequest) -> list[tuple[int, Scalar] | None]:
        raise AssertionError("scripted MemTables are for scans")

    def read(self, request: ScanRequest) -> Block | None:
        self.requests.append(request)
        columns = [self._column(m, t) for m, t in zip(request.measurements, request.types, strict=True)]
        wanted = [
            place
            for place, time in enumerate(self.rows.times)
            if request.time.start <= time < request.time.end and any(c[place] is not None for c in columns)
        ]
        if not wanted:
            return None
        kept = [[c[place] for place in wanted] for c in columns]
        if len(columns) > 1 and not request.aligned and any(None in values for values in kept):
            raise TimestampsDiffer
        times = np.array([self.rows.times[place] for place in wanted], np.int64)
        return Block.timed(times, [Column.of(t, c) for t, c in zip(request.types, kept, strict=True)])

    def _column(self, measurement: str, type_: DataType) -> Sequence[Scalar]:
        held, values = self.rows.columns.get(measurement, (type_, ()))
        return values if values and held is type_ else [None] * len(self.rows.times)
