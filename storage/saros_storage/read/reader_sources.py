"""The sources of a series reader: the files and MemTables of a partition, which are cut into pieces.

    source (rank order)    chunks of a file              MemTable
    pieces                 its pages                     runs of its rows

Several series of a non-aligned device are read together like the columns of an aligned device, as long as they *keep
step*: the file has each series with the requested type, all series have the same chunks and pages by number, row count
and time span, no tombstone touches any of them, and their times are equal. If one of these conditions does not hold,
TimestampsDiffer is raised, at the latest when rows are decoded.

A source knows which of the requested columns it has, and at which times tombstones hide points of these columns. The
rows that `load` returns are filtered by time, free of deleted points, and have the requested columns in the requested
order and types; rows without any value are dropped. The statistics of a file are also converted, but only if the result
equals the statistics of the converted values.

Belongs to one reader.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np

from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType
from saros_storage.cache.cell_cache import CellCache, CellKey, ChunkCells
from saros_storage.cache.chunk_cache import TIMES, ChunkCache
from saros_storage.read.deletions import DeletedTimes, deleted_times
from saros_storage.read.window_statistics import celled
from saros_storage.scan.reading import ReadCounters, ScanRequest, Statistics, Summaries, TimeRange, TimestampsDiffer
from saros_storage.scan.snapshot import FileSource, MemorySource, Tombstone
from saros_storage.scan.tsfile_access import ChunkMeta, DeviceIndex, PageSpan, SeriesIndex
from saros_storage.scan.type_conversion import TypeChanged, is_newer, read_as, reads_as, statistics_read_as

#: One entry per requested column; None if the span has no point of that column.
ColumnStatistics = tuple[Statistics | None, ...]


class Piece:
    """A span of one source: pages [first, stop) of a chunk, or rows [first, stop) of a MemTable's block."""

    __slots__ = ("chunk", "count", "end", "first", "source", "start", "statistics", "stop")

    def __init__(
        self,
        source: FilePieces | MemoryPieces,
        chunk: int,
        first: int,
        stop: int,
        start: int,
        end: int,
        count: int,
        statistics: ColumnStatistics,
    ) -> None:
        self.source = source
        self.chunk = chunk
        self.first = first
        self.stop = stop
        #: First and last time (inclusive).
        self.start = start
        self.end = end
        #: Number of rows, or an upper bound.
        self.count = count
        self.statistics = statistics


class MemoryPieces:
    """The rows of a MemTable, already read and free of deleted points."""

    def __init__(self, order: int, block: Block) -> None:
        #: The position among the sources. Values of sources with higher positions win.
        self.order = order
        self._block = block

    def chunks(self) -> list[Piece]:
        """Return all rows as one piece."""
        times = self._block.times
        return [self._piece(0, len(times))]

    def _piece(self, first: int, stop: int) -> Piece:
        times = self._block.times
        return Piece(self, 0, first, stop, int(times[first]), int(times[stop - 1]), stop - first, ())

    def cut(self, borders: Sequence[int]) -> list[Piece]:
        """Return pieces cut at the borders; each border is the first possible time of the piece that follows it."""
        times = self._block.times
        places = np.searchsorted(times, np.array(borders, np.int64)).tolist()
        bounds = sorted({0, len(times), *places})
        return [self._piece(a, b) for a, b in pairwise(bounds)]

    def load(self, piece: Piece) -> Block | None:
        """Return the piece's rows."""
        return self._block.slice(piece.first, piece.stop)


class FilePieces:
    """The chunks of the requested columns in one file."""

    def __init__(
        self,
        order: int,
        file: FileSource,
        index: DeviceIndex,
        request: ScanRequest,
        tombstones: Sequence[Tombstone],
        cache: ChunkCache,
        counters: ReadCounters,
    ) -> None:
        """Find the requested columns in the file.

        Raises TypeChanged if the file has points of a newer type than the requested one, and TimestampsDiffer if the
        request is for several series of a non-aligned device and the file's index shows that they do not keep step.
        """
        #: The position among the sources. Values of sources with higher positions win.
        self.order = order
        self.file = file
        #: The device's index in the file.
        self.index = index
        self._request = request
        self._cache = cache
        self._counters = counters
        #: For each column that is read from the file, its position in the request.
        self._places: list[int] = []
        #: The requested type of each column that is converted; the key is the column's position in `names`.
        self._wanted: dict[int, DataType] = {}
        names: list[str] = []
        for place, (measurement, type_) in enumerate(zip(request.measurements, request.types, strict=True)):
            found = index.series.get(measurement)
            if found is None:
                continue
            if found.type is not type_:
                if not reads_as(found.type, type_):
                    _require_not_newer(found, type_, file, request, tombstones)
                    continue
                self._wanted[len(names)] = type_
            names.append(measurement)
            self._places.append(place)
        #: The columns that are read.
        self.names = tuple(names)
        #: The most recently used chunk, its pages, and a list of each page's first row, followed by the total row
        #: count.
        self._last: tuple[int, Sequence[PageSpan], list[int]] | None = None
        self._deleted: tuple[DeletedTimes | None, ...] = ()
        if tombstones:
            deleted = [deleted_times(tombstones, request.device, m, file.rank) for m in names]
            self._deleted = tuple(deleted) if any(d is not None for d in deleted) else ()
        #: The number of series that the counters count; an aligned device counts as one series.
        self._series = 1 if request.aligned else len(request.measurements)
        self._in_step = self._series > 1
        if self._in_step and names:
            self._require_step()

    def _require_step(self) -> None:
        """Raise TimestampsDiffer unless the file has each series as requested, all with the same chunk shapes."""
        if self._wanted or self._deleted or len(self.names) < len(self._request.measurements):
            raise TimestampsDiffer
        lead, *others = [self.index.series[name].chunks for name in self.names]
        shapes = [_shape(chunk) for chunk in lead]
        if any([_shape(chunk) for chunk in chunks] != shapes for chunks in others):
            raise TimestampsDiffer

    @property
    def empty(self) -> bool:
        """True if the file has none of the columns."""
        return not self.names

    @property
    def converts(self) -> bool:
        """True if the requested type of a column differs from its stored type."""
        return bool(self._wanted)

    def chunks(self) -> list[Piece]:
        """Return a piece for each chunk that may have wanted points.

        `stop` of each piece is 0, since its pages are not known yet.
        """
        index, time = self.index, self._request.time
        columns = [index.series[name].chunks for name in self.names]
        spans = columns[0] if index.time is None else index.time.chunks
        found = []
        for number, span in enumerate(spans):
            known = span.statistics
            if known is None:
                continue
            stored = [chunks[number].statistics for chunks in columns]
            wanted = time.touches(known.start, known.end)
            if not wanted or all(s is None for s in stored) or self._all_deleted(known.start, known.end):
                self._counters.chunks_skipped += 1
                continue
            statistics = self._in_order(stored)
            found.append(Piece(self, number, 0, 0, known.start, known.end, known.count, statistics))
        return found

    def pages(self, chunk: Piece) -> list[Piece]:
        """Return the chunk's pages that may have wanted points."""
        time = self._request.time
        found = []
        spans, _ = self._pages_of(chunk.chunk)
        for number, span in enumerate(spans):
            wanted = time.touches(span.start, span.end)
            nothing = all(s is None for s in span.statistics)
            if not wanted or nothing or self._all_deleted(span.start, span.end):
                self._counters.pages_skipped += 1
                continue
            statistics = self._in_order(span.statistics)
            found.append(Piece(self, chunk.chunk, number, number + 1, span.start, span.end, span.count, statistics))
        return found

    @property
    def unbroken(self) -> bool:
        """True if every page in the request's time range may have wanted points; `runs` requires this."""
        return self.index.time is None and not self._deleted

    def shortest_page(self, chunk: Piece) -> int:
        """Return the shortest time span among the chunk's pages, from first to last row."""
        spans, _ = self._pages_of(chunk.chunk)
        return min([span.end - span.start for span in spans])

    def runs(self, chunk: Piece, wanted: Callable[[], int]) -> Iterator[Piece]:
        """Yield runs of pages in the request's time range, in the request's order.

        A run has one page or up to `wanted()` rows. Runs avoid the cost of a `Piece` for each page.
        """
        time, descending = self._request.time, self._request.descending
        spans, rows = self._pages_of(chunk.chunk)
        first, stop = 0, len(spans)
        while first < stop and spans[first].end < time.start:
            first += 1
        while first < stop and spans[stop - 1].start >= time.end:
            stop -= 1
        self._counters.pages_skipped += len(spans) - (stop - first)
        while first < stop:
            if descending:
                a, b = max(min(bisect_left(rows, rows[stop] - wanted()), stop - 1), first), stop
                stop = a
            else:
                a, b = first, min(max(bisect_right(rows, rows[first] + wanted()) - 1, first + 1), stop)
                first = b
            yield Piece(self, chunk.chunk, a, b, spans[a].start, spans[b - 1].end, rows[b] - rows[a], ())

    def rows(self, piece: Piece) -> tuple[int, int]:
        """Return the row range [first, stop) that a run of pages covers in its chunk."""
        _, rows = self._pages_of(piece.chunk)
        return rows[piece.first], rows[piece.stop]

    def _pages_of(self, chunk: int) -> tuple[Sequence[PageSpan], list[int]]:
        if self._last is None or self._last[0] != chunk:
            if self._in_step and not self.file.access.same_pages(self.index, self.names, chunk):
                raise TimestampsDiffer
            pages = self.file.access.pages(self.index, self.names, chunk)
            self._last = (chunk, pages, list(accumulate([page.count for page in pages], initial=0)))
        return self._last[1:]

    def _in_order(self, statistics: Sequence[Statistics | None]) -> ColumnStatistics:
        """Arrange the statistics of the file's columns in the request's order; return () if any cannot be converted."""
        if self._wanted:
            converted = list(statistics)
            for number, type_ in self._wanted.items():
                stored = statistics[number]
                if stored is not None:
                    converted[number] = statistics_read_as(stored, self.index.series[self.names[number]].type, type_)
                    if converted[number] is None:
                        return ()
            statistics = converted
        if len(self._places) == len(self._request.measurements):
            return tuple(statistics)
        found: list[Statistics | None] = [None] * len(self._request.measurements)
        for place, known in zip(self._places, statistics, strict=True):
            found[place] = known
        return tuple(found)

    def touched(self, start: int, end: int) -> bool:
        """Return whether a tombstone hides anything in these times (inclusive)."""
        return any(d is not None and d.touch(start, end) for d in self._deleted)

    def _all_deleted(self, start: int, end: int) -> bool:
        return bool(self._deleted) and all(d is not None and d.cover(start, end) for d in self._deleted)

    def load(self, piece: Piece) -> Block | None:
        """Return the rows of a run of pages of one chunk; None if no row remains."""
        block = _within(self._request.time, self._decode(piece), piece)
        if block.rows and self._deleted:
            block = _without_deleted(block, self._deleted)
        block = block.without_empty_rows()
        return self._widen(self._converted(block)) if block.rows else None

    def _converted(self, block: Block) -> Block:
        """Return the block, converted to the requested types."""
        if not self._wanted:
            return block
        columns = [
            read_as(column, self._wanted.get(number, column.type)) for number, column in enumerate(block.columns)
        ]
        return Block.timed(block.times, columns)

    def _widen(self, block: Block) -> Block:
        """Return the block with a column for each requested column."""
        types = self._request.types
        if len(self._places) == len(types):
            return block
        columns: list[Column | None] = [None] * len(types)
        for place, column in zip(self._places, block.columns, strict=True):
            columns[place] = column
        filled = [Column.nulls(t, block.rows) if c is None else c for c, t in zip(columns, types, strict=True)]
        return Block.timed(block.times, filled)

    # ------------------------------------------------------------------ cells of the request's grid, through the cache

    def all_cells(self, chunk: Piece) -> Summaries | None:
        """Return the cells of a chunk if they are cached; otherwise None.

        The chunk must have no deleted rows and be entirely within the request's time range.
        """
        known = self._cell_cache.get(self._cell_key(chunk))
        if known is None or known.whole is None or known.whole.types != self._request.types:
            return None
        self._counters.cache_hits += self._series
        return known.whole

    def cells(self, run: Piece) -> Summaries:
        """Return the cells of a run of pages of one chunk, from the cache or computed.

        The run must have no deleted rows and be entirely within the request's time range.
        """
        key = self._cell_key(run)
        known = self._cell_cache.get(key)
        if known is None or known.types not in ((), self._request.types):
            known = ChunkCells()
        cells = known.of(run.first, run.stop)
        if cells is not None:
            self._counters.cache_hits += self._series
            return cells
        known = self._with_cells(known, run, *known.missing(run.first, run.stop))
        self._cell_cache.put(key, known)
        cells = known.of(run.first, run.stop)
        assert cells is not None
        return cells

    def _with_cells(self, known: ChunkCells, run: Piece, first: int, stop: int) -> ChunkCells:
        pages, _ = self._pages_of(run.chunk)
        wanted = pages[first:stop]
        block = self.load(Piece(self, run.chunk, first, stop, wanted[0].start, wanted[-1].end, 0, ()))
        grid = self._request.grid
        assert block is not None
        assert grid is not None
        return known.plus(first, *celled(block, grid, [page.start for page in wanted]), len(pages))

    @property
    def _cell_cache(self) -> CellCache:
        return self._cache.cells

    def _cell_key(self, piece: Piece) -> CellKey:
        request = self._request
        assert request.grid is not None
        step = request.grid.step
        # Without a step, the statistics of a chunk or page answer the request, so no cells are needed.
        assert step is not None
        origin = request.grid.origin % step
        return self.file.access.serial, request.device, request.measurements, piece.chunk, origin, step

    # ------------------------------------------------------------------ decoding, through the cache

    def _decode(self, piece: Piece) -> Block:
        first, stop = self.rows(piece)
        if self._in_step:
            return self._read_aligned(piece, first, stop)
        if self.index.time is None:
            return self._cached(piece, self.names, first, stop)
        key = (self.file.access.serial, self._request.device)
        kept = [self._cache.get((*key, name, piece.chunk), first, stop) for name in (TIMES, *self.names)]
        missing = [n for n, block in zip(self.names, kept[1:], strict=True) if block is None]
        if kept[0] is not None and not missing:
            self._counters.cache_hits += 1
            return Block.timed(kept[0].times, [b.columns[0] for b in kept[1:] if b is not None])
        read = self._read(piece, tuple(missing))
        self._cache.put((*key, TIMES, piece.chunk), first, Block.timed(read.times, ()))
        columns = []
        fresh = iter(zip(missing, read.columns, strict=True))
        for block in kept[1:]:
            if block is not None:
                columns.append(block.columns[0])
                continue
            name, column = next(fresh)
            self._cache.put((*key, name, piece.chunk), first, Block.untimed((column,)))
            columns.append(column)
        return Block.timed(read.times, columns)

    def _cached(self, piece: Piece, names: tuple[str, ...], first: int, stop: int) -> Block:
        key = (self.file.access.serial, self._request.device, names[0], piece.chunk)
        block = self._cache.get(key, first, stop)
        if block is not None:
            self._counters.cache_hits += 1
            return block
        block = self._read(piece, names)
        self._cache.put(key, first, block)
        return block

    def _read_aligned(self, piece: Piece, first: int, stop: int) -> Block:
        """Read series that keep step, that is, have equal times; each series is cached separately.

        Raises TimestampsDiffer if their times differ.
        """
        names = self.names
        if not self._cache.keeps:
            return self._read_together(piece, names)
        keys = [(self.file.access.serial, self._request.device, name, piece.chunk) for name in names]
        kept = [self._cache.get(key, first, stop) for key in keys]
        self._counters.cache_hits += sum(block is not None for block in kept)
        missing = [place for place, block in enumerate(kept) if block is None]
        if missing:
            read = self._read_together(piece, [names[place] for place in missing])
            for place, column in zip(missing, read.columns, strict=True):
                alone = Block.timed(read.times, (_owned_copy(column),))
                kept[place] = alone
                self._cache.put(keys[place], first, alone)
        return _side_by_side([block for block in kept if block is not None])

    def _read_together(self, piece: Piece, names: Sequence[str]) -> Block:
        read = self.file.access.read_together(self.index, names, piece.chunk, piece.first, piece.stop)
        if read is None:
            raise TimestampsDiffer
        block, size = read
        self._counters.bytes_read += size
        self._counters.pages += (piece.stop - piece.first) * len(names)
        return block

    def _read(self, piece: Piece, names: tuple[str, ...]) -> Block:
        block, size = self.file.access.read(self.index, names, piece.chunk, piece.first, piece.stop)
        self._counters.bytes_read += size
        self._counters.pages += piece.stop - piece.first
        return block


def _shape(chunk: ChunkMeta) -> tuple[int, int, int]:
    """Return the chunk's first time, last time and row count."""
    known = chunk.statistics
    return (known.start, known.end, known.count) if known else (0, 0, 0)


def _owned_copy(column: Column) -> Column:
    """Copy the column if it shares memory; its eviction from a cache then frees the bytes that were counted for it."""
    values = column.values
    if isinstance(values, np.ndarray) and values.base is not None:
        return Column(column.type, values.copy(), column.valid)
    return column


def _side_by_side(blocks: Sequence[Block]) -> Block:
    """Join the columns of blocks with the same times into one block. Raises TimestampsDiffer if the times differ."""
    times = blocks[0].times
    if not all(block.times is times or np.array_equal(block.times, times) for block in blocks[1:]):
        raise TimestampsDiffer
    return Block.timed(times, [column for block in blocks for column in block.columns])


def _within(time: TimeRange, block: Block, piece: Piece) -> Block:
    """Return the rows of a piece in a time range."""
    if time.start <= piece.start and piece.end < time.end:
        return block
    first, stop = np.searchsorted(block.times, np.array([time.start, time.end]))
    return block.slice(int(first), int(stop))


def _require_not_newer(
    series: SeriesIndex, asked: DataType, file: FileSource, request: ScanRequest, tombstones: Sequence[Tombstone]
) -> None:
    """Raise TypeChanged if the stored type is newer than the requested type, unless tombstones hide all points.

    Tombstones hide all points of a dropped series, for example.
    """
    known = series.statistics
    if known is not None and is_newer(series.type, asked):
        deleted = deleted_times(tombstones, request.device, series.measurement, file.rank)
        if deleted is None or not deleted.cover(known.start, known.end):
            raise TypeChanged(f"{request.device}.{series.measurement}", asked, series.type)


def memory_pieces(
    order: int, memory: MemorySource, request: ScanRequest, tombstones: Sequence[Tombstone]
) -> MemoryPieces | None:
    """Return the wanted rows of a MemTable; None if there are none.

    Raises TypeChanged if the MemTable has points of a newer type than the requested one.
    """
    span = memory.span(request.device)
    if span is None:
        return None
    for measurement, type_ in memory.newer(request).items():
        gone = deleted_times(tombstones, request.device, measurement, memory.rank)
        if gone is None or not gone.cover(span.start, span.end):
            asked = request.types[request.measurements.index(measurement)]
            raise TypeChanged(f"{request.device}.{measurement}", asked, type_)
    block = memory.read(request)
    if block is None:
        return None
    if tombstones:
        deleted = [deleted_times(tombstones, request.device, m, memory.rank) for m in request.measurements]
        block = _without_deleted(block, deleted).without_empty_rows()
    return MemoryPieces(order, block) if block.rows else None


def _without_deleted(block: Block, deleted: Sequence[DeletedTimes | None]) -> Block:
    """Return the rows, of which there is at least one, with nulls in place of deleted values."""
    times = block.times
    first, last = int(times[0]), int(times[-1])
    columns = []
    for column, gone in zip(block.columns, deleted, strict=True):
        if gone is not None and gone.touch(first, last):
            columns.append(Column(column.type, column.values, column.present & gone.live_mask(times)))
        else:
            columns.append(column)
    return Block.timed(times, columns)
