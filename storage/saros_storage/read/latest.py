"""The latest point of each series in one view.

    partition 7    files, frozen MemTables  ─▶ by statistics, or by reading backwards ─▶ LatestCache ┐
                   active MemTable          ─▶ `latest_rows`                                         ├▶ the later one
    partition 6    only for series without a point in partition 7                                    ┘

The statistics of a file contain its latest point, unless a tombstone hides that point, or the type is BLOB: statistics
of BLOB have no values. In these two cases, the series is read backwards from its end, unless a later point is already
known.

The search does not depend on the requested time range. If the latest point is in the range, it is the result. If it is
before the range, the range has no point. If it is after the range, the range is read. An expired point counts as a
point before the range.

Belongs to a view; thread-safe.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from saros_storage.base.block import Block, Column
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.read.deletions import deleted_times, relevant
from saros_storage.read.latest_cache import Basis, LatestCache, Point
from saros_storage.read.series_reader import LocalSeriesReader
from saros_storage.scan.reading import ReadCounters, ScanRequest, Statistics, TimeRange
from saros_storage.scan.snapshot import FileSource, MemorySource, PartitionSnapshot, Rank
from saros_storage.scan.type_conversion import TypeChanged, is_newer, reads_as, statistics_read_as

#: The measurement and the type of a series.
_Series = tuple[str, DataType]


class _Database(msgspec.Struct, frozen=True):
    """A database's partitions.

    Active MemTables are listed separately: each write changes them, so their points are not cached.
    """

    #: The bases of all partitions; None if some partition has no basis: then nothing is cached.
    basis: Basis | None
    #: The partitions' snapshots without active MemTables, in descending order of slices.
    stable: tuple[PartitionSnapshot, ...]
    active: tuple[MemorySource, ...]


class LatestPoints:
    """Finds the latest points of series in the partition snapshots of one view."""

    def __init__(
        self,
        snapshots: Mapping[str, Sequence[PartitionSnapshot]],
        chunks: ChunkCache,
        cache: LatestCache,
        scope: Hashable,
    ) -> None:
        """Create a finder over `snapshots`, which has the snapshots of each database in order of slices.

        `scope`: see `LatestCache`.
        """
        self._scope = scope
        self._snapshots = snapshots
        self._chunks = chunks
        self._cache = cache
        self._databases: dict[str, _Database] = {}

    def find(self, database: str, request: ScanRequest, counters: ReadCounters) -> list[Point | None]:
        """Return the latest point of each of the request's series within the request's time range.

        Raises TypeChanged if a source has points of a newer type than the requested one.
        """
        known = self._databases.get(database)
        if known is None:
            known = self._databases[database] = self._load_database(database)
        points = self._stable_points(known, request, counters)
        for memtable in known.active:
            _require_known(memtable, request)
            written = memtable.latest(request)
            for place, later in enumerate(written):
                point = points[place]
                if later is not None and (point is None or later[0] >= point[0]):
                    points[place] = later
        return [self._within(database, request, place, points[place], counters) for place in range(len(points))]

    def _load_database(self, database: str) -> _Database:
        stable, active, basis = [], [], []
        for snapshot in reversed(self._snapshots[database]):
            basis.append(snapshot.basis)
            if snapshot.has_active:
                active.append(snapshot.memtables[-1])
                snapshot = replace(snapshot, memtables=snapshot.memtables[:-1], has_active=False)  # noqa: PLW2901
            stable.append(snapshot)
        told = None if None in basis else self._cache.same(self._scope, database, tuple(basis))
        return _Database(told, tuple(stable), tuple(active))

    def _within(
        self, database: str, request: ScanRequest, place: int, point: Point | None, counters: ReadCounters
    ) -> Point | None:
        time = request.time
        if point is None or point[0] < time.start or time.empty:
            return None
        if point[0] < time.end:
            return point
        series = request.measurements[place], request.types[place]
        return _last_row(request, series, time, self._snapshots[database], self._chunks, counters)

    # ------------------------------------------------------------------ files and frozen MemTables

    def _stable_points(self, database: _Database, request: ScanRequest, counters: ReadCounters) -> list[Point | None]:
        series = list(zip(request.measurements, request.types, strict=True))
        basis = database.basis
        if basis is None:
            found = self._search(database, request, series, counters)
            return [found.get(one) for one in series]
        known = self._cache.get(self._scope, request.device, basis)
        missing = [one for one in series if one[0] not in known or known[one[0]][0] is not one[1]]
        if missing:
            found = self._search(database, request, missing, counters)
            known = {**known, **{one[0]: (one[1], found.get(one)) for one in missing}}
            self._cache.put(self._scope, request.device, basis, known)
        counters.cache_hits += len(series) - len(missing)
        self._cache.count(len(series) - len(missing), len(missing))
        return [known[name][1] for name, _ in series]

    def _search(
        self, database: _Database, request: ScanRequest, series: Sequence[_Series], counters: ReadCounters
    ) -> dict[_Series, Point]:
        found: dict[_Series, Point] = {}
        for snapshot in database.stable:
            missing = [one for one in series if one not in found]
            if not missing:
                break
            found.update(_Search(snapshot, request, self._chunks, counters).latest(missing))
        return found


class _Search:
    """A search for the latest points of one device in one partition."""

    def __init__(
        self, snapshot: PartitionSnapshot, request: ScanRequest, chunks: ChunkCache, counters: ReadCounters
    ) -> None:
        self._snapshot = snapshot
        self._request = request
        self._chunks = chunks
        self._counters = counters

    def latest(self, series: Sequence[_Series]) -> dict[_Series, Point]:
        """Return the latest point of each series that has one in this partition."""
        found: dict[_Series, Point] = {}
        #: For each series, its latest time among the sources in which the latest point is found only by reading rows.
        doubt: dict[_Series, int] = {}
        for source in reversed(self._snapshot.sources):
            for one, end, point in self._of_source(source, series, found):
                known = found.get(one)
                if point is None:
                    doubt[one] = max(end, doubt.get(one, end))
                elif known is None or point[0] > known[0]:  # at equal times, the higher rank wins
                    found[one] = point
        for one, end in doubt.items():
            known = found.get(one)
            if known is None or known[0] <= end:
                time = TimeRange(TIME_MIN if known is None else known[0], TIME_MAX)
                read = _last_row(self._request, one, time, (self._snapshot,), self._chunks, self._counters)
                if read is not None:
                    found[one] = read
        return found

    def _of_source(
        self, source: FileSource | MemorySource, series: Sequence[_Series], found: Mapping[_Series, Point]
    ) -> Iterator[tuple[_Series, int, Point | None]]:
        """Yield (series, last time, point) for each series in the source.

        The point is None if it can be found only by reading rows.
        """
        if isinstance(source, FileSource):
            for one, known in self._of_file(source, series, found):
                exact = known.last is not None and not self._is_deleted(one, source.rank, known.end)
                yield one, known.end, (known.end, known.last) if exact else None
            return
        asked = replace(self._request, measurements=tuple(n for n, _ in series), types=tuple(t for _, t in series))
        newer, span = source.newer(asked), source.span(self._request.device)
        for one, point in zip(series, source.latest(asked), strict=True):
            if one[0] in newer and span is not None:
                yield (
                    one,
                    span.end,
                    None,
                )  # read the rows: this raises TypeChanged unless all points of the newer type are deleted
            elif point is not None:
                yield one, point[0], None if self._is_deleted(one, source.rank, point[0]) else point

    def _of_file(
        self, file: FileSource, series: Sequence[_Series], found: Mapping[_Series, Point]
    ) -> Iterator[tuple[_Series, Statistics]]:
        span = file.devices.get(self._request.device)
        if span is None or all(one in found and found[one][0] >= span.end for one in series):
            self._counters.files_skipped += 1
            return
        self._counters.files += 1
        index = file.access.device(self._request.device)
        if index is None or index.aligned != self._request.aligned:
            return
        for one in series:
            stored = index.series.get(one[0])
            if stored is None or not (reads_as(stored.type, one[1]) or is_newer(stored.type, one[1])):
                continue
            # Use the chunk statistics, as readers do; a chunk without points has no statistics.
            known = next((c.statistics for c in reversed(stored.chunks) if c.statistics is not None), None)
            if known is not None:
                self._counters.summaries += 1
                yield one, _converted(known, stored.type, one[1])

    def _is_deleted(self, series: _Series, rank: Rank, time: int) -> bool:
        tombstones = self._snapshot.tombstones
        if not tombstones:
            return False
        device = self._request.device
        near = relevant(tombstones, device, (series[0],), TimeRange(time, time + 1))
        deleted = deleted_times(near, device, series[0], rank) if near else None
        return deleted is not None and deleted.touch(time, time)


def _converted(known: Statistics, stored: DataType, asked: DataType) -> Statistics:
    """Return the statistics with `last` converted to the requested type, or None if only a reader can convert it."""
    if stored is asked:
        return known
    found = statistics_read_as(known, stored, asked) if reads_as(stored, asked) else None
    return replace(known, last=None) if found is None else found


def _require_known(active: MemorySource, request: ScanRequest) -> None:
    """Raise TypeChanged if the active MemTable, in which tombstones hide nothing, has a newer type than requested."""
    for measurement, found in active.newer(request).items():
        asked = request.types[request.measurements.index(measurement)]
        raise TypeChanged(f"{request.device}.{measurement}", asked, found)


def _last_row(
    request: ScanRequest,
    series: _Series,
    time: TimeRange,
    snapshots: Sequence[PartitionSnapshot],
    chunks: ChunkCache,
    counters: ReadCounters,
) -> Point | None:
    """Return the latest point of one series in a time range; the series is read backwards, one page at a time."""
    one = ScanRequest(request.device, (series[0],), (series[1],), request.aligned, time, descending=True)
    reader = LocalSeriesReader(one, snapshots, chunks, run_rows=1)
    try:
        block = reader.next()
    finally:
        reader.close()
        counters.add(reader.counters)
    if block is None:
        return None
    assert isinstance(block, Block)
    return int(block.times[0]), block.columns[0].slice(0, 1).to_list()[0]


class LatestReader:
    """A `SeriesReader` over latest points that are already found; it yields one row for each distinct time."""

    def __init__(self, request: ScanRequest, points: Sequence[Point | None], counters: ReadCounters) -> None:
        self._block = _block(request.types, points)
        self._counters = counters

    @property
    def counters(self) -> ReadCounters:
        """See `SeriesReader.counters`."""
        return self._counters

    def next(self) -> Block | None:
        """See `SeriesReader.next`."""
        block, self._block = self._block, None
        return block

    def close(self) -> None:
        """See `SeriesReader.close`."""
        self._block = None


def _block(types: Sequence[DataType], points: Sequence[Point | None]) -> Block | None:
    times = sorted({point[0] for point in points if point is not None}, reverse=True)
    if not times:
        return None
    columns = []
    for type_, point in zip(types, points, strict=True):
        columns.append(Column.of(type_, [point[1] if point is not None and point[0] == t else None for t in times]))
    return Block.timed(Column.of(DataType.TIMESTAMP, times).numbers.astype("int64"), columns)


def points_of(block: Block) -> list[Point | None]:
    """Return the latest point of each column of a block whose latest rows come first."""
    found: list[Point | None] = []
    for column in block.columns:
        places = column.present.nonzero()[0][:1].tolist()
        found.append((int(block.times[places[0]]), column.take(places).to_list()[0]) if places else None)
    return found
