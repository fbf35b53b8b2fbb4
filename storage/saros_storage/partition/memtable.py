"""The MemTable: the written rows of a partition that are not in a file yet.

    device - run {s1, s2}   chunk (log index 5), chunk (7), chunk (9) ...     one chunk per tablet, in order of arrival
           - run {s3}       chunk (8) ...                                     a run: tablets with the same measurements,
                                                                              or all tablets of an aligned device

A write only appends the tablet's frame, without decoding it. A read or flush concatenates the chunks of a run and sorts
the rows by time (stably: rows of equal times stay in order of arrival). Then it merges rows of equal times: in each
column, the last value that is not null wins. The result is cached until the run grows.

In a MemTable, a series has only one type. A tablet that has another type for the series is written to the next MemTable
(see `takes`).

A snapshot is a pair (devices, index). It does not include chunks whose log index is higher than `index`. A deletion
never changes the content of an existing snapshot: it replaces the table of devices by a new table, with new runs for
the affected devices.

One thread at a time writes (under the store's lock). Any thread may read without a lock: lists only grow, and a
deletion replaces the table of devices instead of changing it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from operator import attrgetter
from types import MappingProxyType
from typing import TypeAlias

import msgspec
import numpy as np

from saros_storage.base.block import Block, Column
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import TIME_MAX, TIME_MIN, BoolArray, DataType, Int64Array, NumericArray, Scalar
from saros_storage.mutation.tablet_codec import (
    FrameHead,
    TabletFrame,
    decode_tablet,
    frame_body,
    frame_head,
    frame_matrix,
    frame_times,
)
from saros_storage.partition.short_devices import SHORT_ROWS, DeviceWindow, ShortRows, short_rows
from saros_storage.read.latest_rows import LatestRows, LatestValue, latest_rows
from saros_storage.scan.reading import ScanRequest, TimeRange, TimestampsDiffer
from saros_storage.scan.snapshot import DeviceSpan, Rank
from saros_storage.scan.type_conversion import is_newer, read_as, reads_as, value_read_as
from saros_storage.tsfile.device_batch import DeviceBatch

#: Approximate memory that a chunk takes in addition to its frame: for objects, and for arrays once it is decoded.
_CHUNK_OVERHEAD_BYTES = 400
#: Maximum number of cached sets of measurements and their types.
_SHAPES_MAX = 4_096
_INDEX = attrgetter("index")
#: The state of a new device. All new devices share it to save memory, since a MemTable may have very many devices that
#: each have only one tablet.
_NO_SHAPES: Mapping[tuple[str, ...], tuple[DataType, ...]] = MappingProxyType({})
_NO_TYPES: Mapping[str, DataType] = MappingProxyType({})


class Chunk:
    """The rows of one tablet that belong to this partition."""

    __slots__ = ("_frame", "_tablet", "end", "index", "ordered", "start")

    def __init__(
        self, index: int, frame: bytes | memoryview | None, tablet: Tablet | None, span: DeviceSpan, ordered: bool
    ) -> None:
        #: Log index of the write. It determines the order of chunks, and which snapshots include the chunk.
        self.index = index
        self._frame = frame
        self._tablet = tablet
        #: First and last time.
        self.start = span.start
        self.end = span.end
        #: True if times increase strictly.
        self.ordered = ordered

    @property
    def tablet(self) -> Tablet:
        """The rows, decoded at the first access."""
        tablet = self._tablet
        if tablet is None:
            assert self._frame is not None
            tablet = self._tablet = decode_tablet(self._frame)
        return tablet

    @property
    def times(self) -> Int64Array:
        """The times of the rows; reading them does not decode the columns."""
        if self._tablet is not None:
            return self._tablet.times
        assert self._frame is not None
        return frame_times(self._frame)

    @property
    def shape(self) -> FrameHead | None:
        """Device, measurements and types; None if the rows are not stored as a frame."""
        return None if self._frame is None else frame_head(self._frame)

    def body(self) -> tuple[int, bytes | memoryview] | None:
        """Return the number of rows and the body of the frame (see `frame_body`).

        Returns None if the rows are not stored as a frame.
        """
        return None if self._frame is None else frame_body(self._frame)

    def matrix(self, types: tuple[DataType, ...]) -> NumericArray | None:
        """Return all columns, which have these types, as a single array (see `frame_matrix`).

        Returns None if this is impossible.
        """
        return None if self._frame is None else frame_matrix(self._frame, types)


class _Sorted:
    """The first `count` chunks of a run, sorted by time. Immutable except for the cache of columns."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = chunks
        self.count = len(chunks)
        times = _concat([c.times for c in chunks])
        rising = _rises(chunks)
        #: The indices that sort the rows by time (the rows are numbered in order of arrival); None if the rows arrived
        #: in time order.
        self.order: Int64Array | None = None
        #: For each distinct time, the first and the last position of its rows in sorted order; None if no time repeats.
        self.groups: tuple[Int64Array, Int64Array] | None = None
        if not rising:
            self.order = np.argsort(times, kind="stable")
            times = times[self.order]
            self.groups = _groups(times)
            if self.groups is not None:
                times = times[self.groups[1]]
        #: Distinct times, strictly increasing.
        self.times = times
        self._columns: dict[str, Column] = {}
        #: For each chunk, the position of each measurement's column; None until the first column is built.
        self._places: list[Mapping[str, int]] | None = None

    def column(self, measurement: str, type_: DataType) -> Column:
        """Return the values of a measurement at `times`, with a null for each time at which the run has no value."""
        found = self._columns.get(measurement)
        if found is None:
            found = self._columns[measurement] = self._make(measurement, type_)
        return found

    def fill(self) -> None:
        """Build all columns at once for a flush, if all chunks have equal shapes and matrices; otherwise do nothing."""
        shape = self.chunks[0].shape
        if shape is None or any(c.shape != shape for c in self.chunks[1:]):
            return
        parts = [c.matrix(shape.types) for c in self.chunks]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return
        whole = known[0] if len(known) == 1 else np.concatenate(known, axis=1)
        if self.order is not None:
            whole = whole.take(self.order if self.groups is None else self.order[self.groups[1]], axis=1)
        for measurement, type_, values in zip(shape.measurements, shape.types, whole, strict=True):
            self._columns.setdefault(measurement, Column(type_, values))

    def _make(self, measurement: str, type_: DataType) -> Column:
        if self._places is None:
            self._places = _places([chunk.tablet for chunk in self.chunks])
        parts = []
        for chunk, places in zip(self.chunks, self._places, strict=True):
            place, tablet = places.get(measurement), chunk.tablet
            parts.append(Column.nulls(type_, tablet.rows) if place is None else tablet.columns[place])
        column = Column.concat(parts)
        if self.order is not None:
            column = column.take(self.order)
        return column if self.groups is None else _last_values(column, *self.groups)


def _rises(chunks: Sequence[Chunk]) -> bool:
    """Return whether the times increase strictly when the chunks are concatenated."""
    return all(c.ordered for c in chunks) and all(a.end < b.start for a, b in pairwise(chunks))


def _places(tablets: Sequence[Tablet]) -> list[Mapping[str, int]]:
    """Return a mapping of measurements to column positions for each tablet; equal neighbours share one mapping."""
    made: list[Mapping[str, int]] = []
    known: tuple[str, ...] | None = None
    for tablet in tablets:
        if tablet.measurements != known:
            known = tuple(tablet.measurements)
            made.append({measurement: place for place, measurement in enumerate(known)})
        else:
            made.append(made[-1])
    return made


def _groups(times: Int64Array) -> tuple[Int64Array, Int64Array] | None:
    """Return the inclusive bounds of the runs of equal times, or None if no time repeats."""
    differs = times[1:] != times[:-1]
    if differs.all():
        return None
    borders = np.flatnonzero(differs)
    first = np.concatenate((np.zeros(1, np.int64), borders + 1))
    return first, np.concatenate((borders, np.array([len(times) - 1])))


def _last_values(column: Column, first: Int64Array, last: Int64Array) -> Column:
    """Return the last non-null value of each group of rows; null if all values of the group are null."""
    if column.valid is None:
        return column.take(last)
    places = np.where(column.valid, np.arange(len(column)), -1)
    latest = np.maximum.accumulate(places)[last]
    found = latest >= first
    taken = Column(column.type, column.values).take(np.where(found, latest, last))
    return Column(column.type, taken.values, None if found.all() else found)


def _concat(arrays: Sequence[Int64Array]) -> Int64Array:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


class _Run:
    """Chunks of a device that are read together: chunks with the same measurements, or all of an aligned device."""

    __slots__ = ("_latest", "_sorted", "chunks")

    def __init__(self) -> None:
        #: The chunks, in order of their log indexes.
        self.chunks: list[Chunk] = []
        self._sorted: _Sorted | None = None
        self._latest: LatestRows | None = None

    def count(self, index: int) -> int:
        """Return the number of chunks up to a log index."""
        chunks = self.chunks
        count = len(chunks)  # another thread may add chunks
        return (
            count if count and chunks[count - 1].index <= index else bisect_right(chunks, index, 0, count, key=_INDEX)
        )

    def sorted(self, index: int) -> _Sorted | None:
        """Return the chunks up to a log index, sorted by time; None if there are none."""
        count = self.count(index)
        if count == 0:
            return None
        kept = self._sorted
        if kept is None or kept.count != count:
            made = _Sorted(self.chunks[:count])
            if kept is None or kept.count < count:
                self._sorted = made
            kept = made
        return kept

    def latest(self, index: int) -> Mapping[str, LatestValue]:
        """Return the latest value of each measurement in the chunks up to a log index."""
        count = self.count(index)
        kept = self._latest
        if kept is not None and kept.count == count:
            return kept.values
        grows = kept is None or kept.count < count
        made = latest_rows(self.chunks[:count], kept if grows else None)
        if grows:
            self._latest = made
        return made.values


@lru_cache(_SHAPES_MAX)
def _types_of(measurements: tuple[str, ...], types: tuple[DataType, ...]) -> Mapping[str, DataType]:
    """Return types by measurement; devices with the same series share the result."""
    return dict(zip(measurements, types, strict=True))


def _present(times: Int64Array, column: Column) -> tuple[Int64Array, Column]:
    """Return the times and values of the rows in which the column has a value."""
    if column.valid is None:
        return times, column
    places = np.flatnonzero(column.valid)
    return times[places], Column(column.type, column.values).take(places)


#: The shared value of devices that have no runs yet; see `_Device`.
_NO_RUNS: tuple[int, Mapping[str, Sequence[_Run]]] = (0, MappingProxyType({}))


class _Device:
    """A device of the MemTable: its runs, and the types of its series."""

    __slots__ = (
        "_last_run",
        "_measurements",
        "_runs_of",
        "_shapes",
        "_types",
        "aligned",
        "end",
        "runs",
        "start",
        "types",
    )

    def __init__(self, *, aligned: bool) -> None:
        self.aligned = aligned
        #: The run of each set of measurements; the only run of an aligned device has the key ().
        self.runs: dict[tuple[str, ...], _Run] = {}
        #: The number of runs, and for each measurement of a non-aligned device its runs, oldest first; see
        #: `_runs_with`.
        self._runs_of: tuple[int, Mapping[str, Sequence[_Run]]] = _NO_RUNS
        #: Types by measurement. The mapping is replaced, never changed, because several devices may share it.
        self.types: Mapping[str, DataType] = _NO_TYPES
        #: The types of each set of measurements that the device has had; empty while there is only one set.
        self._shapes = _NO_SHAPES
        #: The measurements of the last tablet, and their types; the next tablet usually has the same measurements and
        #: types.
        self._measurements: tuple[str, ...] = ()
        self._types: tuple[DataType, ...] = ()
        self._last_run: _Run | None = None
        self.start = TIME_MAX
        self.end = TIME_MIN

    def takes(self, measurements: tuple[str, ...], types: tuple[DataType, ...]) -> bool:
        """Return whether each series of the tablet is new here or has the same type here."""
        if measurements is self._measurements and types is self._types:
            return True
        known = self._shapes.get(measurements)
        if known is not None:
            return known == types
        return all(self.types.get(name, type_) is type_ for name, type_ in zip(measurements, types, strict=True))

    def add(self, measurements: tuple[str, ...], types: tuple[DataType, ...], chunk: Chunk) -> None:
        run = self._last_run
        if run is None or measurements is not self._measurements or types is not self._types:
            run = self._run_for(measurements, types)
        run.chunks.append(chunk)
        if chunk.start < self.start:
            self.start = chunk.start
        if chunk.end > self.end:
            self.end = chunk.end

    def _run_for(self, measurements: tuple[str, ...], types: tuple[DataType, ...]) -> _Run:
        """Return the run of tablets with these measurements; record the measurements' types."""
        key = () if self.aligned else measurements
        run = self.runs.get(key)
        if run is None:
            run = self.runs[key] = _Run()
        if not self.types:
            self.types = _types_of(measurements, types)
        elif measurements not in self._shapes:
            self._shapes = {**self._shapes, self._measurements: self._types, measurements: types}
            self.types = {**self.types, **_types_of(measurements, types)}
        self._measurements, self._types, self._last_run = measurements, types, run
        return run

    def _runs_with(self, measurement: str) -> Sequence[_Run]:
        """Return the runs (at least one) that contain a measurement of a non-aligned device, oldest first."""
        count = len(self.runs)
        if count == 1:
            return list(self.runs.values())[:1]
        known = self._runs_of
        if known[0] != count:
            runs = list(self.runs.items())  # another thread may add a run
            made: dict[str, list[_Run]] = {}
            for names, run in runs:
                for name in names:
                    made.setdefault(name, []).append(run)
            known = self._runs_of = len(runs), made
        return known[1][measurement]

    def series(self, measurement: str, index: int) -> tuple[Int64Array, Column] | None:
        """Return times and values of one series of a non-aligned device, without nulls; None if there are no points."""
        type_ = self.types.get(measurement)
        if type_ is None:
            return None
        parts = [part for run in self._runs_with(measurement) if (part := run.sorted(index)) is not None]
        if len(parts) > 1:
            chunks = sorted((c for part in parts for c in part.chunks), key=lambda c: c.index)
            parts = [_Sorted(chunks)]
        if not parts:
            return None
        times, column = _present(parts[0].times, parts[0].column(measurement, type_))
        return (times, column) if len(times) else None

    def latest(self, index: int) -> Mapping[str, LatestValue]:
        """Return the latest value of each series."""
        runs = list(self.runs.values())
        if len(runs) == 1:
            return runs[0].latest(index)
        found: dict[str, LatestValue] = {}
        for run in runs:
            for name, value in run.latest(index).items():
                if name not in found or value[:2] >= found[name][:2]:
                    found[name] = value
        return found

    def short_rows(self, index: int) -> ShortRows | None:
        """Return the device's rows if they can be written together with rows of other devices (see `short_devices`)."""
        if len(self.runs) > 1 or len(self._shapes) > 1:
            return None
        (run,) = self.runs.values()
        chunks = run.chunks
        if len(chunks) > SHORT_ROWS or chunks[-1].index > index or not _rises(chunks):
            return None
        parts = [part for chunk in chunks if (part := chunk.body()) is not None]
        whole = len(parts) == len(chunks)
        return short_rows(self.aligned, self._measurements, self._types, parts) if whole else None

    def all_series(self, index: int) -> list[SeriesData]:
        """Return the series of a non-aligned device that have points, in order of their names."""
        if len(self.runs) > 1 and sum(map(len, self.runs)) > len(self.types):
            merged = [(name, self.series(name, index)) for name in sorted(self.types)]
            return [SeriesData(name, *found) for name, found in merged if found is not None]
        columns: dict[str, tuple[Int64Array, Column]] = {}
        for names, run in self.runs.items():
            part = run.sorted(index)
            if part is not None:
                part.fill()
                for name in names:
                    columns[name] = part.times, part.column(name, self.types[name])
        series = [(name, _present(*columns[name])) for name in sorted(columns)]
        return [SeriesData(name, *found) for name, found in series if len(found[0])]

    def rows(self, index: int) -> _Sorted | None:
        """Return all rows of an aligned device, or None."""
        run = self.runs.get(())
        return None if run is None else run.sorted(index)


class SeriesData(msgspec.Struct, frozen=True):
    """The points of a MemTable in one series of a non-aligned device: at least one, sorted by time, without nulls."""

    measurement: str
    times: Int64Array
    column: Column


class AlignedData(msgspec.Struct, frozen=True):
    """The rows of a MemTable for an aligned device: at least one row, each with at least one value."""

    times: Int64Array
    measurements: tuple[str, ...]
    columns: tuple[Column, ...]


class ShortDevices(msgspec.Struct, frozen=True):
    """The rows of a MemTable for many devices that have few rows each: at least one device."""

    batches: list[DeviceBatch]
    #: Yields the same devices one by one, in the order of their names.
    singly: Callable[[], Iterator[tuple[str, AlignedData | list[SeriesData]]]]


#: The content of one device, or of several devices.
Content: TypeAlias = AlignedData | list[SeriesData] | ShortDevices


class MemTable:
    """Rows in memory by device. `rank` is the rank of the files that will be written from the MemTable."""

    def __init__(self, rank: Rank, first_index: int) -> None:
        self.rank = rank
        #: Log index of the MemTable's first write: the log must be kept from this index on.
        self.first_index = first_index
        #: The log index up to which a frozen MemTable is complete.
        self.frozen_at: int | None = None
        self.bytes = 0
        self.rows = 0
        self._last_index = 0
        self._devices: dict[str, _Device] = {}

    @property
    def empty(self) -> bool:
        """True if the MemTable contains no chunk."""
        return not self._devices

    def takes(self, head: FrameHead) -> bool:
        """Return whether a tablet with this head fits: no series of the tablet has another type in the MemTable."""
        device = self._devices.get(head.device)
        return device is None or device.takes(head.measurements, head.types)

    def write(self, batch: TabletFrame, index: int) -> int:
        """Append a tablet's frame, and return the number of bytes added.

        `takes` must accept the tablet, and all its rows must belong here.
        """
        frame = batch.frame
        return self._add(batch.head, Chunk(index, frame, None, batch.span, batch.ordered), len(frame), batch.rows)

    def write_rows(self, head: FrameHead, rows: Tablet, index: int, span: DeviceSpan, *, ordered: bool) -> int:
        """Append `rows`, those rows of a tablet that belong here; otherwise like `write`.

        The MemTable keeps the arrays of `rows`.
        """
        size = rows.times.nbytes + sum(c.nbytes for c in rows.columns)
        return self._add(head, Chunk(index, None, rows, span, ordered), size, rows.rows)

    def _add(self, head: FrameHead, chunk: Chunk, size: int, rows: int) -> int:
        assert self.frozen_at is None
        device = self._devices.get(head.device)
        if device is None:
            device = self._devices[head.device] = _Device(aligned=head.aligned)
        assert device.aligned == head.aligned
        device.add(head.measurements, head.types, chunk)
        self._last_index = chunk.index
        size += _CHUNK_OVERHEAD_BYTES
        self.bytes += size
        self.rows += rows
        return size

    def freeze(self, index: int) -> None:
        """Forbid further writes: the MemTable contains all entries of its partition up to `index`."""
        assert self.frozen_at is None
        self.frozen_at = index

    def snapshot(self) -> MemTableSnapshot:
        """Return the MemTable's current content as a `snapshot.MemorySource`."""
        return MemTableSnapshot(self.rank, self._devices, self._last_index)

    @property
    def last_index(self) -> int:
        """Log index of the MemTable's last write."""
        return self._last_index

    def device_names(self) -> list[str]:
        """Return the devices that have rows in the MemTable."""
        return list(self._devices)

    def delete(self, matches: Callable[[str, str], bool], devices: Iterable[str], time: TimeRange) -> None:
        """Remove the points in `time` of those series of `devices` for which `matches(device, measurement)` holds."""
        changed = dict(self._devices)
        for name in devices:
            device = changed.pop(name, None)
            if device is None:
                continue
            left = _without(device, {m for m in device.types if matches(name, m)}, time)
            if left is not None:
                changed[name] = left
        self._devices = changed


def _without(device: _Device, measurements: set[str], time: TimeRange) -> _Device | None:
    """Return a copy of the device that lacks the points of these series in `time`.

    Returns `device` itself if it has no such points, and None if the copy would have no points.
    """
    if not measurements or not time.touches(device.start, device.end):
        return device
    left = _Device(aligned=device.aligned)
    chunks = sorted((c for run in device.runs.values() for c in run.chunks), key=lambda c: c.index)
    for chunk in chunks:
        tablet = chunk.tablet
        if measurements.isdisjoint(tablet.measurements) or not time.touches(chunk.start, chunk.end):
            kept, remains = chunk, tablet
        else:
            part = _tablet_without(tablet, measurements, time)
            if part is None:
                continue
            remains = part
            kept = Chunk(
                chunk.index, None, part, DeviceSpan(int(part.times.min()), int(part.times.max())), chunk.ordered
            )
        left.add(remains.measurements, tuple([c.type for c in remains.columns]), kept)
    return left if left.runs else None


def _tablet_without(tablet: Tablet, measurements: set[str], time: TimeRange) -> Tablet | None:
    """Return a copy of the tablet that lacks the points of these series in `time`; None if no value is left."""
    keep: BoolArray = (tablet.times < time.start) | (tablet.times >= time.end)
    names, columns = [], []
    for name, column in zip(tablet.measurements, tablet.columns, strict=True):
        left = column
        if name in measurements:
            left = Column(column.type, column.values, keep & column.present)
        if left.valid is None or left.valid.any():
            names.append(name)
            columns.append(left)
    if not columns:
        return None
    return Tablet(tablet.device, tuple(names), tablet.times, tuple(columns), tablet.aligned)


class MemTableSnapshot:
    """The content of a MemTable at one moment. Implements `snapshot.MemorySource`."""

    __slots__ = ("_devices", "_index", "rank")

    def __init__(self, rank: Rank, devices: dict[str, _Device], index: int) -> None:
        self.rank = rank
        self._devices = devices
        self._index = index

    @property
    def series_count(self) -> int:
        """Number of series. Later writes may add series."""
        return sum(len(device.types) for device in self._devices.values())

    def span(self, device: str) -> DeviceSpan | None:
        """Return the time span of a device; see `MemorySource.span`. Later writes may widen it."""
        found = self._devices.get(device)
        return None if found is None else DeviceSpan(found.start, found.end)

    def latest(self, request: ScanRequest) -> list[tuple[int, Scalar] | None]:
        """Return the latest points; see `MemorySource.latest`."""
        device = self._devices.get(request.device)
        if device is None or device.aligned != request.aligned:
            return [None] * len(request.measurements)
        values = device.latest(self._index)
        found: list[tuple[int, Scalar] | None] = []
        for measurement, type_ in zip(request.measurements, request.types, strict=True):
            value, own = values.get(measurement), device.types.get(measurement)
            if value is None or own is None or not reads_as(own, type_):
                found.append(None)
            else:
                found.append((value[0], value_read_as(value[2], own, type_)))
        return found

    def newer(self, request: ScanRequest) -> Mapping[str, DataType]:
        """Return the series that have a newer type than requested; see `MemorySource.newer`."""
        device = self._devices.get(request.device)
        if device is None:
            return {}
        own = device.types
        pairs = zip(request.measurements, request.types, strict=True)
        return {name: own[name] for name, asked in pairs if name in own and is_newer(own[name], asked)}

    def read(self, request: ScanRequest) -> Block | None:
        """Return the requested rows; see `MemorySource.read`."""
        device = self._devices.get(request.device)
        if device is None or not request.time.touches(device.start, device.end):
            return None
        if device.aligned and not request.aligned and len(request.measurements) > 1:
            raise TimestampsDiffer
        found = self._aligned(device, request) if device.aligned else self._series(device, request)
        if found is None:
            return None
        times, columns = found
        first, stop = np.searchsorted(times, np.array([request.time.start, request.time.end]))
        block = Block(times, columns, len(times)).slice(int(first), int(stop)).without_empty_rows()
        return block if block.rows else None

    def _series(self, device: _Device, request: ScanRequest) -> tuple[Int64Array, tuple[Column, ...]] | None:
        if len(request.measurements) > 1:
            return self._in_step(device, request)
        found = device.series(request.measurements[0], self._index)
        if found is None or not reads_as(found[1].type, request.types[0]):
            return None
        return found[0], (read_as(found[1], request.types[0]),)

    def _in_step(self, device: _Device, request: ScanRequest) -> tuple[Int64Array, tuple[Column, ...]] | None:
        """Return the times that all requested series share, and the columns; None if no series has points.

        Raises TimestampsDiffer if the series have different times, or if only some of them have points.
        """
        found = [device.series(measurement, self._index) for measurement in request.measurements]
        known = [one for one in found if one is not None]
        if not known:
            return None
        times = known[0][0]
        same = len(known) == len(found) and all(t is times or np.array_equal(t, times) for t, _ in known[1:])
        columns = tuple([column for _, column in known])
        if not same or tuple([column.type for column in columns]) != request.types:
            raise TimestampsDiffer
        return times, columns

    def _aligned(self, device: _Device, request: ScanRequest) -> tuple[Int64Array, tuple[Column, ...]] | None:
        rows = device.rows(self._index)
        if rows is None:
            return None
        columns = []
        for measurement, type_ in zip(request.measurements, request.types, strict=True):
            own = device.types.get(measurement)
            if own is not None and reads_as(own, type_):
                columns.append(read_as(rows.column(measurement, own), type_))
            else:
                columns.append(Column.nulls(type_, len(rows.times)))
        return rows.times, tuple(columns)

    def contents(self) -> Iterator[tuple[str, Content]]:
        """Yield each device with its content, sorted by device, for a flush.

        Devices with few rows are yielded in groups, each under the name of its first device. A group comes after the
        other devices whose names lie between those of its own devices.
        """
        window = DeviceWindow()
        for name, device in sorted(self._devices.items()):
            rows = device.short_rows(self._index)
            if rows is None:
                yield from self._device_contents([name])
                continue
            window.add(name, rows)
            if window.is_full:
                yield from self._window_contents(window)
                window = DeviceWindow()
        yield from self._window_contents(window)

    def _window_contents(self, window: DeviceWindow) -> Iterator[tuple[str, Content]]:
        """Yield the devices of a window: together, as `ShortDevices`, if this is faster, otherwise one by one."""
        if window.pays:
            yield window.devices[0], ShortDevices(window.batches(), partial(self._device_contents, window.devices))
        else:
            yield from self._device_contents(window.devices)

    def _device_contents(self, names: Iterable[str]) -> Iterator[tuple[str, AlignedData | list[SeriesData]]]:
        for name in names:
            device = self._devices[name]
            if device.aligned:
                data = self._all_rows(device)
                if data is not None:
                    yield name, data
            else:
                series = device.all_series(self._index)
                if series:
                    yield name, series

    def _all_rows(self, device: _Device) -> AlignedData | None:
        rows = device.rows(self._index)
        if rows is None:
            return None
        rows.fill()
        names = tuple(sorted(device.types))
        columns = tuple(rows.column(n, device.types[n]) for n in names)
        block = Block(rows.times, columns, len(rows.times)).without_empty_rows()
        return AlignedData(block.times, names, block.columns) if block.rows else None
