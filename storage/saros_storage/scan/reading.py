"""The interface between storage and everything that reads it: scan requests, series readers, statistics.

A query takes one `ReadView` (a pinned, immutable snapshot of the store), opens one `SeriesReader` per device scan,
pulls from it until it returns None, and closes both. A reader yields, in time order, *blocks* of rows and, where the
request allows it, *summaries*: spans whose statistics are given instead of their rows.

    time      |---- chunk A ----|  |-- B --|- C overlaps B -|   |---- D ----|
    answer      Summary(A)           Block  Block                 Summary(D)
    from another node              Summaries(A, B, C, D)

    A summary is given only if: the request has a `grid`; the span lies wholly inside the request's time range and
    inside one window of the grid; there are no `bounds`; and it says what the rows would: those that a file stores
    stand for rows that no other source overlaps and no tombstone touches; the others were made of rows
    (`window_statistics`).

Ranks: where two sources have the same time of a series, the value of the higher rank wins, column by column; a null
never hides a value. What a reader yields is already merged, filtered by time, and free of deleted points.

A reader belongs to one thread at a time; a view may be shared. Not here: value predicates (the engine filters exactly;
`bounds` only lets a reader skip pages that cannot match). Pure: values and protocols.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol

import numpy as np

from saros_storage.base.block import Block, Column
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType, Int64Array, Scalar

#: Enough rows that NumPy's cost per call vanishes and kernels leave the GIL for long: 10,000 and more.
BLOCK_ROWS_MAX = 131_072
#: Values of a block: some 16 MB. A join has as much again at hand of what its children gave.
_BLOCK_VALUES_MAX = 2 << 20
#: With fewer rows, what a block costs per column would count more than its rows.
_BLOCK_ROWS_MIN = 64


def rows_per_block(columns: int) -> int:
    """Rows of a block of so many columns."""
    return min(max(_BLOCK_VALUES_MAX // max(columns, 1), _BLOCK_ROWS_MIN), BLOCK_ROWS_MAX)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Times in [start, end)."""

    start: int = TIME_MIN
    end: int = TIME_MAX

    def intersect(self, other: TimeRange) -> TimeRange:
        """Times in both; empty ranges have end <= start."""
        return TimeRange(max(self.start, other.start), min(self.end, other.end))

    @property
    def empty(self) -> bool:
        """True if no time is in the range."""
        return self.end <= self.start

    def touches(self, first: int, last: int) -> bool:
        """Whether a time from `first` to `last` (inclusive) is in the range."""
        return first < self.end and last >= self.start


@dataclass(frozen=True, slots=True)
class ValueBound:
    """Only rows whose value in `column` is present and within [low, high] are wanted (None: unbounded).

    A permission to skip, not an order to filter. `low` and `high` are inclusive, of a numeric type, never NaN.
    """

    column: int
    low: int | float | None
    high: int | float | None


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """Windows [origin + k * step, origin + (k + 1) * step) for all k; step None: one window for all of time."""

    origin: int = 0
    step: int | None = None

    def same_window(self, first: int, last: int) -> bool:
        """Whether the times `first` and `last` fall into one window."""
        return self.step is None or (first - self.origin) // self.step == (last - self.origin) // self.step

    def touched(self, first: int, last: int) -> int:
        """How many windows the times from `first` to `last` lie in."""
        return 1 if self.step is None else (last - self.origin) // self.step - (first - self.origin) // self.step + 1


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What one reader shall read: columns of one device in a time range.

    A non-aligned device is read one measurement per request (but see `ReaderFactory.open_lockstep` and `open_in_step`);
    an aligned device any number, over one time column: a row appears if at least one requested column has a value in
    it.
    """

    device: str
    measurements: tuple[str, ...]
    types: tuple[DataType, ...]
    aligned: bool
    time: TimeRange = TimeRange()
    descending: bool = False
    bounds: tuple[ValueBound, ...] = ()
    grid: WindowGrid | None = None
    #: Only the latest point of each column is wanted, as few rows as hold these, latest first; of a non-aligned device
    #: too, any number of measurements. Goes with neither bounds nor grid.
    latest: bool = False
    #: The reader gives about so many rows at a time: fewer where many readers wait side by side.
    block_rows: int = BLOCK_ROWS_MAX


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of the points of one series in one span. `start` and `end` are the first and the last time.

    `minimum` and `maximum` are None for text-like types and BOOLEAN; `total` (the sum) is None for text-like types,
    DATE and TIMESTAMP. Floats: NaN is left out of minimum and maximum unless all values are NaN.
    """

    count: int
    start: int
    end: int
    first: Scalar
    last: Scalar
    minimum: int | float | None
    maximum: int | float | None
    total: int | float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """Stands for all rows of a span; `columns[i]` is None where requested column i has no point in it."""

    start: int
    end: int
    columns: tuple[Statistics | None, ...]


@dataclass(frozen=True, slots=True)
class SpanStatistics:
    """`Statistics` of one column in many spans: a row for each, null (the count 0) where the column has no point.

    None stands for what a type does not have, see `Statistics`; BLOB has no first and last either.
    """

    count: Column
    start: Column
    end: Column
    first: Column | None = None
    last: Column | None = None
    minimum: Column | None = None
    maximum: Column | None = None
    total: Column | None = None


@dataclass(frozen=True, eq=False)
class Summaries:
    """Many summaries as columns: a row stands for all rows of a span. Spans are in the scan's order and disjoint.

    `block` is not timed; for each of the `types` of the scan it has the columns that `statistics_fields` names. Those
    that several of the types have in common may be the same ones. Without slots, so that what is made of them is kept.
    """

    types: tuple[DataType, ...]
    block: Block

    @property
    def rows(self) -> int:
        """How many spans."""
        return self.block.rows

    @cached_property
    def nbytes(self) -> int:
        """Bytes held, for memory accounts."""
        return sum([column.nbytes for column in _distinct(self.block.columns)])

    def slice(self, start: int, stop: int) -> Summaries:
        """Spans [start, stop), without a copy."""
        return Summaries(self.types, self.block.slice(start, stop))

    def reversed(self) -> Summaries:
        """The spans last first."""
        return Summaries(self.types, self.block.reversed())

    @staticmethod
    def concat(parts: Sequence[Summaries]) -> Summaries:
        """The parts (at least one, all of one scan or of like ones) one after the other."""
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
    """The fields of `SpanStatistics` that a column of a type has, in order, and their types."""
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


@dataclass(slots=True)
class ReadCounters:
    """What a reader did, for EXPLAIN ANALYZE. Counters only grow."""

    files: int = 0
    files_skipped: int = 0
    chunks: int = 0
    chunks_skipped: int = 0
    pages: int = 0
    pages_skipped: int = 0
    #: Chunks or pages answered from statistics.
    summaries: int = 0
    #: Bytes decompressed (0 when the chunk cache served).
    bytes_read: int = 0
    cache_hits: int = 0
    memtable_rows: int = 0
    #: Bytes that came from other nodes.
    remote_bytes: int = 0

    def add(self, other: ReadCounters) -> None:
        """Add the other's counts to this one's."""
        for name in _COUNTERS:
            more = getattr(other, name)
            if more:
                setattr(self, name, getattr(self, name) + more)


_COUNTERS = tuple(ReadCounters.__dataclass_fields__)


class SeriesReader(Protocol):
    """Yields one scan's blocks and summaries in time order (descending: last first, rows within a block too)."""

    @property
    def counters(self) -> ReadCounters:
        """What was done so far."""
        ...

    def next(self) -> Block | Summary | Summaries | None:
        """The next non-empty piece, of at most about the request's `block_rows`; None at the end.

        Raises CorruptFile (the file is already set aside for later views), StoreClosed.
        """
        ...

    def close(self) -> None:
        """Release what the reader holds. Idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Unaligned:
    """The series of a request do not keep step in the range `time`: read each separately there, and join them."""

    time: TimeRange


class TimestampsDiffer(Exception):
    """Series that were read together do not keep step: read each separately."""


class MultiSeriesReader(Protocol):
    """Yields several series of a device in the order of the request, as far as they have their rows at the same times.

    It yields disjoint parts: blocks with a column for each series and no nulls, and ranges of time that the caller
    must read separately.
    """

    @property
    def counters(self) -> ReadCounters:
        """What was done so far, for the blocks."""
        ...

    def next(self) -> Block | Unaligned | None:
        """The next piece: a block as a `SeriesReader` gives it, a range that is not empty; None at the end.

        Raises what a `SeriesReader` raises.
        """
        ...

    def close(self) -> None:
        """Release what the reader holds. Idempotent."""
        ...


class ReaderFactory(Protocol):
    """Opens readers: local, remote, or merged from both; the engine does not know which."""

    def open(self, request: ScanRequest) -> SeriesReader:
        """A reader for the request. A device that has no data gives a reader that ends at once."""
        ...

    def open_lockstep(self, request: ScanRequest) -> MultiSeriesReader | None:
        """A reader of several series of a device that is not aligned; None: read them one by one.

        The request has neither bounds nor grid, and is not for the latest points.
        """
        ...

    def open_in_step(self, request: ScanRequest) -> SeriesReader | None:
        """A reader of several series of a device that is not aligned, as of one that is; no value is null.

        What it gives of each series, blocks and summaries alike, is what a reader of that series alone would give.
        None: they do not keep step throughout the request, or this cannot be told. If only decoding rows shows it, the
        reader raises TimestampsDiffer, and everything it returned must be discarded. The request has no bounds.
        """
        ...

    def cuts(self, request: ScanRequest) -> Sequence[int]:
        """Times, rising, at which a scan may be cut: each part has much to read, and none reads what another does."""
        ...

    def latest(self, request: ScanRequest, counters: ReadCounters) -> list[tuple[int, Scalar] | None]:
        """Time and value of the latest point of each column of a `latest` request; adds to `counters` what was done.

        Raises what readers raise.
        """
        ...

    def expect(self, request: ScanRequest) -> None:
        """Announce what will be opened, in that order, so that one trip to another node can serve many readers."""
        ...


class ReadView(ReaderFactory, Protocol):
    """A pinned snapshot of a store: later writes and deletes do not show, and its files stay until `close`."""

    @property
    def shown(self) -> Mapping[int, int]:
        """By group: no entry behind this one shows. Empty where there are no groups."""
        ...

    def close(self) -> None:
        """Unpin. Idempotent."""
        ...
