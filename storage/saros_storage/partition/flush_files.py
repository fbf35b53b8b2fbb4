"""Write a frozen MemTable as up to two files: a sequence file, and an unsequence file of late rows.

    device d1, flushed up to 40       rows 35 38 | 41 42 43
                                      unseq/..     seq/..

Rows are late if the device already has rows of that time or later in a sequence file.

Several series are encoded by one call, as the rows of a matrix, because a call alone costs as much as encoding a
hundred values. The series of a device are encoded together if they were written together and share one array of times.
Short series that follow one another are also encoded together, even if they belong to different devices. Devices that
have only a few rows in each series are written together (`ShortDevices`). The encoding of each of their chunks is
chosen by a separate trial, unless the chunk is very short (`encode_by_trial`).

For a series with a deadband, rows that are not late are thinned out: only the points that the deadband keeps are
written. All late rows are written, since a late row may replace an older value. The last point is always kept, so that
the device's time span covers all rows.

Each file and its `.resource` are written under temporary names. `finish` syncs these files (for several MemTables at
once), renames them and syncs the folders. Then the caller adds the files to the manifest, which makes them part of the
partition. If a failure occurs before that, the next start removes the files.

Only the thread that flushes uses these objects.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from saros_storage.base.block import Column
from saros_storage.base.types import FLOATING_TYPES, TIME_MIN, BoolArray, Compressor, DataType, Encoding, Int64Array
from saros_storage.encoding import MATRIX_TYPES, encode_plain_rows, encode_rows, encode_time_rows, encode_times
from saros_storage.folder.layout import RESOURCE, TEMPORARY, FileName, kind_folder
from saros_storage.folder.manifest import FileEntry
from saros_storage.folder.resource import encode_resource
from saros_storage.io.disk import Disk, File
from saros_storage.kernels.deadband import apply_deadband
from saros_storage.partition.memtable import AlignedData, MemTableSnapshot, SeriesData, ShortDevices
from saros_storage.scan.snapshot import DeviceSpan, Rank
from saros_storage.schema import Deadband
from saros_storage.tsfile.device_batch import DeviceBatch, Stored
from saros_storage.tsfile.encoding_selection import EncodingChoices
from saros_storage.tsfile.structure.statistics import of_rows
from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

#: If at least this many folders must be synced, sync all of them and their parents in one batch, instead of syncing
#: each folder with its ancestors.
_MANY = 8
#: Maximum number of series of one device that are encoded together. The limit keeps a step short: a throttled flush
#: pauses between steps.
_TOGETHER_MAX = 64
#: Series of several devices are encoded together if each has at most this number of rows.
_SHORT_ROWS = 64
_SHORT_TOGETHER_MAX = 1_024

#: Maps (device, measurement, type) to the encoding and the compressor of the series.
Storing = Callable[[str, str, DataType], tuple[Encoding, Compressor]]
#: Maps (device, measurement, type) to the deadband of the series; None if it has no deadband, or if a point that the
#: deadband drops would make an older point visible.
Thinning = Callable[[str, str, DataType], Deadband | None]


class _Part(NamedTuple):
    """Rows `first` to `stop` (exclusive) of a series, all of which are in the same file, sequence or unsequence."""

    sequence: bool
    first: int
    stop: int
    times: Int64Array


class _Alike(NamedTuple):
    """A series that may be encoded together with other series."""

    device: str
    series: SeriesData
    parts: Sequence[_Part]
    #: The declared encoding; `written` is the encoding that the page is written with.
    encoding: Encoding
    compressor: Compressor
    written: Encoding

    def goes_with(self, last: _Alike) -> bool:
        """Return whether the series can be a row of the matrix whose last row is `last`."""
        if self.series.column.type is not last.series.column.type or self.written is not last.written:
            return False
        if self.device == last.device:
            return self.parts is last.parts
        return self.is_short and last.is_short and self.parts[0][:3] == last.parts[0][:3]

    @property
    def is_short(self) -> bool:
        """True if the series is short and all in one file: it may share a matrix with series of other devices."""
        return len(self.parts) == 1 and self.parts[0].stop <= _SHORT_ROWS


class WrittenFile(msgspec.Struct, frozen=True):
    """A file that is not in the manifest yet; `path` is its path after the call of `finish`."""

    entry: FileEntry
    path: str
    devices: dict[str, DeviceSpan]


class FileFlush:
    """The writer of one MemTable; each object is used once."""

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
        #: The array of times of the series added last, and the parts into which it was split; see `_parts_of`.
        self._times: Int64Array | None = None
        self._parts: list[_Part] = []
        #: Series that will be encoded together and are not written yet.
        self._alike: list[_Alike] = []
        #: For each kind (True: sequence): the path, the open file, and the file's writer.
        self._open: dict[bool, tuple[str, File, TsFileWriter]] = {}

    def run(self, memtable: MemTableSnapshot) -> list[WrittenFile]:
        """Write the MemTable to files; call `finish` afterwards.

        If an OSError occurs, the files are removed and the error is raised.
        """
        written: list[WrittenFile] = []
        try:
            for device, content in memtable.contents():
                if isinstance(content, ShortDevices):
                    self._add_devices(content)
                else:
                    self._add(device, content)
            self._write_alike()
            written.extend(self._close(sequence=kind) for kind in sorted(self._open, reverse=True))
        except OSError:
            for path, file, _ in self._open.values():
                file.close()
                remove(self._disk, [path])
            remove(self._disk, [file.path for file in written])
            raise
        return written

    def _add(self, device: str, content: AlignedData | list[SeriesData]) -> None:
        if isinstance(content, AlignedData):
            self._write_alike()
            self._add_aligned(device, content)
            self._checkpoint()
        else:
            self._add_series(device, content)

    def _add_devices(self, content: ShortDevices) -> None:
        if not all(map(self._goes_together, content.batches)):
            for device, single in content.singly():
                self._add(device, single)
            return
        self._write_alike()
        parts = [part for batch in content.batches for part in self._parts_of_batch(batch)]
        for kind in (False, True):
            batches = [(batch, stored) for sequence, batch, stored in parts if sequence is kind]
            if batches:
                self._writer(kind).write_devices(batches)
        self._checkpoint()

    def _goes_together(self, batch: DeviceBatch) -> bool:
        """Return whether each series of the devices fits in one page and has no deadband, which could drop rows."""
        series = list(zip(batch.measurements, batch.types, strict=True))
        deadbands = (self._thinning(device, name, type_) for device in batch.devices for name, type_ in series)
        return batch.times.shape[1] <= self._page_rows and all(deadband is None for deadband in deadbands)

    def _parts_of_batch(self, batch: DeviceBatch) -> Iterator[tuple[bool, DeviceBatch, Stored]]:
        """Yield (sequence, devices, stored form): devices with equal numbers of late rows and equal stored forms."""
        series = list(zip(batch.measurements, batch.types, strict=True))
        lasts = [self._flushed.get(device) for device in batch.devices]
        reached = np.array([TIME_MIN if last is None else last for last in lasts])
        known = np.array([last is not None for last in lasts])
        lates = ((batch.times <= reached[:, None]) & known[:, None]).sum(axis=1).tolist()
        kinds: dict[tuple[int, Stored], list[int]] = {}
        for index, (device, late) in enumerate(zip(batch.devices, lates, strict=True)):
            stored = tuple([self._storing(device, name, type_) for name, type_ in series])
            kinds.setdefault((late, stored), []).append(index)
        rows = batch.times.shape[1]
        for (late, stored), chosen in kinds.items():
            for sequence, first, stop in ((False, 0, late), (True, late, rows)):
                if first < stop:
                    yield sequence, batch.part(np.array(chosen), slice(first, stop)), stored

    def _add_series(self, device: str, content: Iterable[SeriesData]) -> None:
        self._times = None  # which rows are late depends on the device
        for series in content:
            type_ = series.column.type
            encoding, compressor = self._storing(device, series.measurement, type_)
            deadband = self._thinning(device, series.measurement, type_)
            rows = len(series.times)
            written = None
            if deadband is None and rows <= self._page_rows and type_ in MATRIX_TYPES:
                written = self._choices.without_trial(device, series.measurement, encoding, type_, rows)
            if written is Encoding.TS_2DIFF or (written is Encoding.PLAIN and type_ in FLOATING_TYPES):
                parts = self._parts_of(device, series.times)
                self._add_alike(_Alike(device, series, parts, encoding, compressor, written))
            else:
                self._write_alike(but=device)
                self._add_one(device, series, encoding, compressor, deadband)

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

    def _add_alike(self, one: _Alike) -> None:
        """Add a series to the pending series; if it cannot be encoded together with them, write them first."""
        alike = self._alike
        is_full = len(alike) >= _TOGETHER_MAX and alike[-_TOGETHER_MAX].device == one.device
        if alike and (is_full or not one.goes_with(alike[-1])):
            self._write_alike()
        elif len(alike) >= _SHORT_TOGETHER_MAX:
            self._write_alike(but=one.device)
        self._alike.append(one)

    def _write_alike(self, *, but: str | None = None) -> None:
        """Write the series that are encoded together, except those of the device `but`.

        Series whose values do not allow TS_2DIFF are written one by one.
        """
        alike = [one for one in self._alike if one.device != but]
        self._alike = [one for one in self._alike if one.device == but]
        if not alike:
            return
        type_, written = alike[0].series.column.type, alike[0].written
        for number, (sequence, first, stop, _) in enumerate(alike[0].parts):
            writer = self._writer(sequence)
            times = [one.parts[number].times for one in alike]
            rows = [one.series.column.numbers[first:stop] for one in alike]
            values = np.concatenate(rows).reshape(len(rows), -1)
            bounds = np.concatenate(times).reshape(len(times), -1)
            pages = encode_plain_rows(values) if written is Encoding.PLAIN else encode_rows(type_, values)
            encoded = zip(_time_pages(times), pages, of_rows(type_, bounds, values), strict=True)
            for one, part, (time_page, page, seen) in zip(alike, times, encoded, strict=True):
                device, name, compressor = one.device, one.series.measurement, one.compressor
                if page is None:
                    column = one.series.column.slice(first, stop)
                    writer.write_series(device, name, type_, one.encoding, compressor, part, column.values)
                else:
                    writer.write_page(device, name, type_, written, compressor, time_page, page, seen)
        self._checkpoint()

    def _parts_of(self, device: str, times: Int64Array) -> Sequence[_Part]:
        """Return the parts of `_split` with their times.

        The result is cached, since the next series often has the same times.

        The writer also recognizes an array of times that it has just encoded.
        """
        if times is not self._times:
            self._times = times
            self._parts = [_Part(*part, times[part[1] : part[2]]) for part in self._split(device, times)]
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


def _time_pages(times: Sequence[Int64Array]) -> list[bytes]:
    """Return the encoded times of each series; neighbours often have equal times."""
    if all(part is times[0] for part in times):
        return [encode_times(times[0])] * len(times)
    raws = [part.tobytes() for part in times]
    distinct = dict.fromkeys(raws)
    rows = np.frombuffer(b"".join(distinct), np.int64).reshape(len(distinct), -1)
    pages = dict(zip(distinct, encode_time_rows(rows), strict=True))
    return [pages[raw] for raw in raws]


def finish(disk: Disk, written: Sequence[WrittenFile]) -> None:
    """Make files durable under their final names.

    If an OSError occurs, the files are removed as far as possible and the error is raised.
    """
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
    """Remove files and their resources, under the temporary names and under the final names."""
    for path in paths:
        for suffix in (RESOURCE, ""):
            disk.remove(path + suffix + TEMPORARY)
            disk.remove(path + suffix)


def _deadband_mask(deadband: Deadband, times: Int64Array, column: Column) -> BoolArray:
    kept = np.empty(len(times), np.bool_)
    values = np.ascontiguousarray(column.numbers, np.float64)
    apply_deadband(np.ascontiguousarray(times), values, deadband.deviation, deadband.shortest, deadband.longest, kept)
    return kept
