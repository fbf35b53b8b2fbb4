"""The interface between storage and its readers: scan requests, series readers, statistics.

A query takes one `ReadView` (a pinned, immutable snapshot of the store). For each scan of a device, it opens a
`SeriesReader` and reads until None is returned. It closes the readers and the view. A reader yields, in time order,
*blocks* of rows and, where the request allows it, *summaries*: spans represented by their statistics instead of their
rows.

    time      |---- chunk A ----|  |-- B --|- C overlaps B -|   |---- D ----|
    answer      Summary(A)           Block  Block                 Summary(D)
    from another node              Summaries(A, B, C, D)

    A reader yields a summary only if the request has a `grid` and no `bounds`, and the span lies entirely inside the
    request's time range and inside one window of the grid. A summary is equivalent to the rows of its span: either it
    was stored in a file, and no other source overlaps these rows and no tombstone touches them, or it was computed from
    the rows (`window_statistics`).

Ranks: if two sources have a row of the same time, the value of the higher-ranked source wins in each column; a null
never hides a value. The output of a reader is already merged, filtered by time, and free of deleted points.

A reader belongs to one thread at a time; a view may be shared. Readers do not evaluate predicates on values: the engine
filters exactly, and `bounds` only lets a reader skip pages that cannot match. Pure: values and protocols.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Protocol

import msgspec
import numpy as np

from saros_storage.base.block import Block, Column
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType, Int64Array, Scalar

#: For blocks of this size, the cost of each call of NumPy or of a kernel is negligible.
BLOCK_ROWS_MAX = 131_072
#: Values per block: about 16 MB. In addition, a join holds as much memory for its children's output.
_BLOCK_VALUES_MAX = 2 << 20
#: With fewer rows, a block's cost per column would exceed the cost of its rows.
_BLOCK_ROWS_MIN = 64


def rows_per_block(columns: int) -> int:
    """Return the number of rows of a block with this many columns."""
    return min(max(_BLOCK_VALUES_MAX // max(columns, 1), _BLOCK_ROWS_MIN), BLOCK_ROWS_MAX)


class TimeRange(msgspec.Struct, frozen=True):
    """Times in [start, end)."""

    start: int = TIME_MIN
    end: int = TIME_MAX

    def intersect(self, other: TimeRange) -> TimeRange:
        """Return the times in both ranges; the result is empty if end <= start."""
        return TimeRange(max(self.start, other.start), min(self.end, other.end))

    @property
    def empty(self) -> bool:
        """True if the range contains no time."""
        return self.end <= self.start

    def touches(self, first: int, last: int) -> bool:
        """Return whether any time from `first` to `last` (inclusive) is in the range."""
        return first < self.end and last >= self.start


class ValueBound(msgspec.Struct, frozen=True):
    """A bound on the wanted rows: the value in `column` is present and within [low, high] (None: unbounded).

    A bound allows the reader to skip rows, but does not require it to filter them. `low` and `high` are inclusive, of a
    numeric type, never NaN.
    """

    column: int
    low: int | float | None
    high: int | float | None


class WindowGrid(msgspec.Struct, frozen=True):
    """Windows [origin + k * step, origin + (k + 1) * step) for all k; if step is None, one window covers all times."""

    origin: int = 0
    step: int | None = None

    def same_window(self, first: int, last: int) -> bool:
        """Return whether the times `first` and `last` fall into one window."""
        return self.step is None or (first - self.origin) // self.step == (last - self.origin) // self.step

    def touched(self, first: int, last: int) -> int:
        """Return the number of windows into which the times from `first` to `last` fall."""
        return 1 if self.step is None else (last - self.origin) // self.step - (first - self.origin) // self.step + 1


class ScanRequest(msgspec.Struct, frozen=True):
    """A request to read columns of one device in a time range.

    For a non-aligned device, a request has one measurement (except with `ReaderFactory.open_lockstep` and
    `open_in_step`). For an aligned device, a request may have any number of measurements. A row is returned if it has a
    value for at least one of them.
    """

    device: str
    measurements: tuple[str, ...]
    types: tuple[DataType, ...]
    aligned: bool
    time: TimeRange = TimeRange()
    descending: bool = False
    bounds: tuple[ValueBound, ...] = ()
    grid: WindowGrid | None = None
    #: If true, only the latest point of each column is returned, in as few rows as possible, in descending order of
    #: time. The request may then have any number of measurements, even for non-aligned devices. It must not have bounds
    #: or a grid.
    latest: bool = False
    #: Approximate number of rows per block; the caller requests fewer if many readers are open at the same time.
    block_rows: int = BLOCK_ROWS_MAX


class Statistics(msgspec.Struct, frozen=True):
    """Statistics of the points that one series has in one span. `start` and `end` are the first and the last time.

    `minimum` and `maximum` are None for text-like types and BOOLEAN; `total` (the sum) is None for text-like types,
    DATE and TIMESTAMP. For floats, minimum and maximum ignore NaN unless all values are NaN.
    """

    count: int
    start: int
    end: int
    first: Scalar
    last: Scalar
    minimum: int | float | None
    maximum: int | float | None
    total: int | float | None


class Summary(msgspec.Struct, frozen=True):
    """The statistics of all rows of a span; `columns[i]` is None if requested column i has no point in the span."""

    start: int
    end: int
    columns: tuple[Statistics | None, ...]


class SpanStatistics(msgspec.Struct, frozen=True):
    """`Statistics` of one column in many spans, one row per span: null (with count 0) where the column has no point.

    Fields that a type does not have are None, as in `Statistics`; for BLOB, `first` and `last` are None, too.
    """

    count: Column
    start: Column
    end: Column
    first: Column | None = None
    last: Column | None = None
    minimum: Column | None = None
    maximum: Column | None = None
    total: Column | None = None


class Summaries(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Many summaries as columns: each row represents all rows of a span. Spans are in scan order and disjoint.

    `block` is untimed; for each of the `types` of the scan it has the columns that `statistics_fields` names. Types may
    share columns that have equal content. The class has a `__dict__`, which `cached_property` needs.
    """

    types: tuple[DataType, ...]
    block: Block

    @property
    def rows(self) -> int:
        """The number of spans."""
        return self.block.rows

    @cached_property
    def nbytes(self) -> int:
        """The size in bytes, which is counted against memory limits."""
        return sum([column.nbytes for column in _distinct(self.block.columns)])

    def slice(self, start: int, stop: int) -> Summaries:
        """Return the spans [start, stop) without copying them."""
        return Summaries(self.types, self.block.slice(start, stop))

    def reversed(self) -> Summaries:
        """Return the spans in reverse order."""
        return Summaries(self.types, self.block.reversed())

    @staticmethod
    def concat(parts: Sequence[Summaries]) -> Summaries:
        """Concatenate the parts: at least one, all from one scan or with the same types."""
        if len(parts) == 1:
            return parts[0]
        made: dict[tuple[int, ...], Column] = {}
        columns = []
        for same in zip(*(part.block.columns for part in parts), strict=True):
            key = tuple(map(id, same))
            if key not in made:
                made[key] = Column.concat(same)
            columns.append(made[key])
        return Summaries(parts[0].types, Block.untimed(columns, sum(part.rows for part in parts)))

    @cached_property
    def columns(self) -> tuple[SpanStatistics, ...]:
        """The statistics of each column of the scan."""
        found, at = [], 0
        for type_ in self.types:
            names = statistics_fields(type_)
            fields = self.block.columns[at : at + len(names)]
            found.append(SpanStatistics(**dict(zip(names, fields, strict=True))))
            at += len(names)
        return tuple(found)

    @cached_property
    def starts(self) -> Int64Array:
        """The first time of each span."""
        times = [_where(column, TIME_MAX) for column in _distinct(one.start for one in self.columns)]
        found: Int64Array = times[0] if len(times) == 1 else np.min(times, axis=0)
        return found

    @cached_property
    def ends(self) -> Int64Array:
        """The last time of each span."""
        times = [_where(column, TIME_MIN) for column in _distinct(one.end for one in self.columns)]
        found: Int64Array = times[0] if len(times) == 1 else np.max(times, axis=0)
        return found


def _distinct(columns: Iterable[Column]) -> Iterable[Column]:
    return {id(column): column for column in columns}.values()


def _where(times: Column, otherwise: int) -> Int64Array:
    return times.numbers if times.valid is None else np.where(times.valid, times.numbers, otherwise)


@cache
def statistics_fields(type_: DataType) -> dict[str, DataType]:
    """Return the fields of `SpanStatistics` that a column of a type has, in order, with their types."""
    names = {"count": DataType.INT64, "start": DataType.TIMESTAMP, "end": DataType.TIMESTAMP}
    if type_ is not DataType.BLOB:
        names |= {"first": type_, "last": type_}
    if not type_.is_text and type_ is not DataType.BOOLEAN:
        names |= {"minimum": type_, "maximum": type_}
    if type_ in (DataType.BOOLEAN, DataType.INT32):
        names["total"] = DataType.INT64
    elif type_.is_numeric:
        names["total"] = DataType.DOUBLE
    return names


class ReadCounters(msgspec.Struct):
    """Counters of the work that a reader has done, which EXPLAIN ANALYZE shows. They only grow."""

    files: int = 0
    files_skipped: int = 0
    chunks: int = 0
    chunks_skipped: int = 0
    pages: int = 0
    pages_skipped: int = 0
    #: The number of chunks and pages whose statistics were used instead of their rows.
    summaries: int = 0
    #: The number of bytes decompressed; a page taken from the chunk cache adds nothing.
    bytes_read: int = 0
    cache_hits: int = 0
    memtable_rows: int = 0
    #: Bytes received from other nodes.
    remote_bytes: int = 0

    def add(self, other: ReadCounters) -> None:
        """Add the counts of another reader."""
        for name in _COUNTERS:
            more = getattr(other, name)
            if more:
                setattr(self, name, getattr(self, name) + more)


_COUNTERS = tuple(ReadCounters.__struct_fields__)


class SeriesReader(Protocol):
    """A reader of one scan's blocks and summaries, in time order; if descending, a block's rows are descending, too."""

    @property
    def counters(self) -> ReadCounters:
        """The counters up to now."""
        ...

    def next(self) -> Block | Summary | Summaries | None:
        """Return the next non-empty piece, which has at most about `block_rows` rows (see the request).

        Returns None at the end. Raises CorruptFile (the file is already set aside for later views), StoreClosed.
        """
        ...

    def close(self) -> None:
        """Release the reader's resources. Idempotent."""
        ...


class Unaligned(msgspec.Struct, frozen=True):
    """A time range in which the series of a request have different times, so the caller must read them one by one."""

    time: TimeRange


class TimestampsDiffer(Exception):
    """Raised if series that are read together have different times; the caller then reads each series separately."""


class MultiSeriesReader(Protocol):
    """Reads several series of a device together, in the order of the request, where their rows have the same times.

    It yields disjoint parts: blocks with a column for each series and no nulls, and time ranges that the caller must
    read separately.
    """

    @property
    def counters(self) -> ReadCounters:
        """The counters of the work done until now for the blocks."""
        ...

    def next(self) -> Block | Unaligned | None:
        """Return the next piece: a block as from a `SeriesReader`, or a non-empty time range; None at the end.

        Raises the errors of `SeriesReader.next`.
        """
        ...

    def close(self) -> None:
        """Release the reader's resources. Idempotent."""
        ...


class ReaderFactory(Protocol):
    """Opens readers; whether a reader is local, remote, or merges both makes no difference to the engine."""

    def open(self, request: ScanRequest) -> SeriesReader:
        """Open a reader for the request. If there is no data for the device, the reader ends immediately."""
        ...

    def open_lockstep(self, request: ScanRequest) -> MultiSeriesReader | None:
        """Open a reader for several series of a non-aligned device; None if they are to be read one by one.

        The request has neither bounds nor grid, and is not for the latest points.
        """
        ...

    def open_in_step(self, request: ScanRequest) -> SeriesReader | None:
        """Open a reader that reads several series of a non-aligned device like an aligned one; no value is null.

        For each series, its blocks and summaries contain exactly the data that a reader of this series alone returns.
        Returns None if the series have different times somewhere in the request, or if this is unknown. If different
        times are found only while rows are decoded, the reader raises TimestampsDiffer, and the caller must discard all
        data that the reader has returned. The request has no bounds.
        """
        ...

    def cuts(self, request: ScanRequest) -> Sequence[int]:
        """Return increasing times at which a scan can be split into large parts, no two of which read the same data."""
        ...

    def latest(self, request: ScanRequest, counters: ReadCounters) -> list[tuple[int, Scalar] | None]:
        """Return time and value of each column's latest point, for a `latest` request; count the work in `counters`.

        Raises the errors of readers.
        """
        ...

    def expect(self, request: ScanRequest) -> None:
        """Announce a request that will be opened later, so that one round trip can serve many remote readers.

        Requests are announced in the order in which they will be opened.
        """
        ...


class ReadView(ReaderFactory, Protocol):
    """A pinned snapshot of a store: later writes and deletes are invisible, and its files are kept until `close`."""

    @property
    def shown(self) -> Mapping[int, int]:
        """For each group, the last log index that is visible. Empty if the store has no groups."""
        ...

    def close(self) -> None:
        """Unpin the snapshot. Idempotent."""
        ...
