"""Write a frozen MemTable as up to two files: rows later than all sequence files of their device, and late rows.

    device d1, flushed up to 40       rows 35 38 | 41 42 43
                                      unseq/..     seq/..

Series of a device that were written together share one array of times. They are encoded together, as the rows of a
matrix, because one call costs as much as encoding a hundred values.

For a series with a deadband, in-order rows are thinned out: only the points that the deadband keeps are written. Late
rows are all written, since a late row may replace an older value. The last point is always kept, so that the device's
time span is that of all rows.

Each file and its `.resource` are written under temporary names. `finish` syncs them (those of several MemTables
together), renames them and syncs the folders. Then the caller names them in the manifest, which makes them part of the
partition. A failure before that leaves only files that the next start removes.

Belongs to the thread that flushes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from saros_storage.base.block import Column
from saros_storage.base.types import FLOATING_TYPES, BoolArray, Compressor, DataType, Encoding, Int64Array
from saros_storage.encoding import MATRIX_TYPES, encode_plain_rows, encode_rows
from saros_storage.folder.layout import RESOURCE, TEMPORARY, FileName, kind_folder
from saros_storage.folder.manifest import FileEntry
from saros_storage.folder.resource import encode_resource
from saros_storage.io.disk import Disk, File
from saros_storage.kernels.deadband import apply_deadband
from saros_storage.partition.memtable import AlignedData, MemTableSnapshot, SeriesData
from saros_storage.scan.snapshot import DeviceSpan, Rank
from saros_storage.schema import Deadband
from saros_storage.tsfile.encoding_selection import EncodingChoices
from saros_storage.tsfile.structure.statistics import of_rows
from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

#: From this many folders on, sync the folders and their parents in one batch, instead of each with its ancestors.
_MANY = 8
#: Maximum number of series encoded together, so that a throttled flush, which pauses between steps, pauses often.
_TOGETHER_MAX = 64

#: (device, measurement, type) -> encoding and compressor of the series.
Storing = Callable[[str, str, DataType], tuple[Encoding, Compressor]]
#: (device, measurement, type) -> deadband of the series; None also where dropping points would uncover older ones.
Thinning = Callable[[str, str, DataType], Deadband | None]


@dataclass(frozen=True, slots=True)
class _Alike:
    """A series that may be encoded together with others, and its declared encoding and compressor."""

    series: SeriesData
    #: The declared encoding; `written` is the one that the page is written with.
    encoding: Encoding
    compressor: Compressor
    written: Encoding

    def goes_with(self, other: _Alike) -> bool:
        """Return whether both series can be rows of one matrix."""
        mine, others = self.series, other.series
        return mine.times is others.times and mine.column.type is others.column.type and self.written is other.written


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that is not in the manifest yet; `path` is its name once it is finished."""

    entry: FileEntry
    path: str
    devices: dict[str, DeviceSpan]


class FileFlush:
    """Writer of one MemTable, for one use."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        storing: Storing,
        flushed: Mapping[str, int],
        rank: Rank,
        name: FileName,
        page_rows: int,
        thinning: Thinning,
        choices: EncodingChoices,
        checkpoint: Callable[[], None],
    ) -> None:
        """`checkpoint` is called between two steps; it may block to throttle the flush."""
        self._disk = disk
        self._folder = folder
        self._storing = storing
        #: Last time of each device in sequence files.
        self._flushed = flushed
        self._rank = rank
        self._name = name
        self._page_rows = page_rows
        self._thinning = thinning
        self._choices = choices
        self._checkpoint = checkpoint
        #: Times of the last written series, and their parts: sequence, first row, row after the last, times.
        self._times: Int64Array | None = None
        self._parts: list[tuple[bool, int, int, Int64Array]] = []
        #: Path, open file and its writer by kind (True: sequence).
        self._open: dict[bool, tuple[str, File, TsFileWriter]] = {}

    def run(self, memtable: MemTableSnapshot) -> list[WrittenFile]:
        """Write the whole MemTable; call `finish` afterwards. Raises OSError, after removing the files begun."""
        written: list[WrittenFile] = []
        try:
            for device, content in memtable.contents():
                if isinstance(content, AlignedData):
                    self._add_aligned(device, content)
                    self._checkpoint()
                else:
                    self._add_series(device, content)
            written.extend(self._close(sequence=kind) for kind in sorted(self._open, reverse=True))
        except OSError:
            for path, file, _ in self._open.values():
                file.close()
                remove(self._disk, [path])
            remove(self._disk, [file.path for file in written])
            raise
        return written

    def _add_series(self, device: str, content: Iterable[SeriesData]) -> None:
        alike: list[_Alike] = []
        for series in content:
            type_ = series.column.type
            encoding, compressor = self._storing(device, series.measurement, type_)
            deadband = self._thinning(device, series.measurement, type_)
            rows = len(series.times)
            written = None
            if deadband is None and rows <= self._page_rows and type_ in MATRIX_TYPES:
                written = self._choices.without_trial(device, series.measurement, encoding, type_, rows)
            if written is Encoding.TS_2DIFF or (written is Encoding.PLAIN and type_ in FLOATING_TYPES):
                one = _Alike(series, encoding, compressor, written)
                if alike and (len(alike) == _TOGETHER_MAX or not one.goes_with(alike[0])):
                    self._add_alike(device, alike)
                    alike = []
                alike.append(one)
            else:
                self._add_one(device, series, encoding, compressor, deadband)
        if alike:
            self._add_alike(device, alike)

    def _add_one(
        self, device: str, series: SeriesData, encoding: Encoding, compressor: Compressor, deadband: Deadband | None
    ) -> None:
        for sequence, first, stop, part in self._parts_of(device, series.times):
            times, column = part, series.column.slice(first, stop)
            if sequence and deadband is not None:
                kept = _deadband_mask(deadband, times, column)
                times, column = times[kept], column.compress(kept)
            self._writer(sequence).write_series(
                device, series.measurement, column.type, encoding, compressor, times, column.values
            )
        self._checkpoint()

    def _add_alike(self, device: str, alike: Sequence[_Alike]) -> None:
        """Add series with the same times, type and encoding; those whose values do not allow TS_2DIFF one by one."""
        times, type_, written = alike[0].series.times, alike[0].series.column.type, alike[0].written
        for sequence, first, stop, part in self._parts_of(device, times):
            writer = self._writer(sequence)
            values = np.stack([one.series.column.numbers[first:stop] for one in alike])
            statistics = of_rows(type_, np.broadcast_to(part, values.shape), values)
            pages = encode_plain_rows(values) if written is Encoding.PLAIN else encode_rows(type_, values)
            for one, page, seen in zip(alike, pages, statistics, strict=True):
                name, compressor = one.series.measurement, one.compressor
                if page is None:
                    rows = one.series.column.slice(first, stop).values
                    writer.write_series(device, name, type_, one.encoding, compressor, part, rows)
                else:
                    writer.write_page(device, name, type_, written, compressor, part, page, seen)
        self._checkpoint()

    def _parts_of(self, device: str, times: Int64Array) -> list[tuple[bool, int, int, Int64Array]]:
        """Return the parts of `_split` with their times, cached for the next series with the same array of times.

        The writer recognizes a repeated array of times, too.
        """
        if times is not self._times:
            self._times = times
            self._parts = [(*part, times[part[1] : part[2]]) for part in self._split(device, times)]
        return self._parts

    def _add_aligned(self, device: str, data: AlignedData) -> None:
        stored = [self._storing(device, m, c.type) for m, c in zip(data.measurements, data.columns, strict=True)]
        for sequence, first, stop in self._split(device, data.times):
            columns = []
            for name, column, (encoding, compressor) in zip(data.measurements, data.columns, stored, strict=True):
                part = column.slice(first, stop)
                if part.valid is None or part.valid.any():
                    columns.append(AlignedColumn(name, part.type, encoding, compressor, part))
            self._writer(sequence).write_aligned(device, data.times[first:stop], columns)

    def _split(self, device: str, times: Int64Array) -> list[tuple[bool, int, int]]:
        """Return the non-empty parts as (sequence, first row, row after the last): late rows first, then the others."""
        last = self._flushed.get(device)
        late = 0 if last is None else int(np.searchsorted(times, last, "right"))
        parts = [(False, 0, late), (True, late, len(times))]
        return [part for part in parts if part[1] < part[2]]

    def _writer(self, sequence: bool) -> TsFileWriter:
        found = self._open.get(sequence)
        if found is None:
            folder = os.path.join(self._folder, kind_folder(sequence=sequence))
            self._disk.make_folder(folder, durably=False)
            path = os.path.join(folder, str(self._name))
            file = self._disk.create(path + TEMPORARY)
            found = self._open[sequence] = (
                path,
                file,
                TsFileWriter(file, page_rows=self._page_rows, choose=self._choices.choose),
            )
        return found[2]

    def _close(self, *, sequence: bool) -> WrittenFile:
        path, file, writer = self._open[sequence]
        summary = writer.finish()
        resource = encode_resource(summary.devices)
        beside = self._disk.create(path + RESOURCE + TEMPORARY)
        try:
            beside.write([resource])
        finally:
            beside.close()
        file.close()
        del self._open[sequence]
        entry = FileEntry(str(self._name), sequence, self._rank, summary.size, summary.crc32, zlib.crc32(resource))
        return WrittenFile(entry, path, summary.devices)


def finish(disk: Disk, written: Sequence[WrittenFile]) -> None:
    """Make files durable under their final names. Raises OSError, after removing them as far as possible."""
    names = [file.path + suffix for file in written for suffix in (RESOURCE, "")]
    kinds = sorted({os.path.dirname(name) for name in names})
    try:
        disk.sync_all([name + TEMPORARY for name in names])
        for name in names:
            disk.replace(name + TEMPORARY, name)
        if len(kinds) < _MANY:
            for kind in kinds:
                disk.make_folder(kind)
            disk.sync_all(kinds)
        else:  # the ancestors of a partition's folder become durable with its manifest
            disk.sync_all(sorted({*kinds, *map(os.path.dirname, kinds)}))
    except OSError:
        remove(disk, [file.path for file in written])
        raise


def remove(disk: Disk, paths: Iterable[str]) -> None:
    """Remove files, finished or not, with their resources."""
    for path in paths:
        for suffix in (RESOURCE, ""):
            disk.remove(path + suffix + TEMPORARY)
            disk.remove(path + suffix)


def _deadband_mask(deadband: Deadband, times: Int64Array, column: Column) -> BoolArray:
    kept = np.empty(len(times), np.bool_)
    values = np.ascontiguousarray(column.numbers, np.float64)
    apply_deadband(np.ascontiguousarray(times), values, deadband.deviation, deadband.shortest, deadband.longest, kept)
    return kept
