"""Several series of a non-aligned device, read by one reader as long as they keep step.

    s0   |--- chunk 1 ---|   |--- chunk 2 ---|                    |--- chunk 3 ---|
    s1   |--- chunk 1 ---|   |--- chunk 2 ---|   . . MemTable .   |--- chunk 3 ------|
    gives    Block  Block        Block  Block        Apart              Apart

Clients mostly write all measurements of a device at once; its series then have the same times in the same chunks and
pages. So one read plan serves all of them, their pages are decoded together, and no join is needed.

They keep step in a chunk if they do in its file (`reader_sources`), and if nothing else (another file, a MemTable, a
tombstone) may have points of the device in that time span. A range for which this does not hold, or cannot be told
cheaply, is left to the caller (`Unaligned`): nothing is merged here.

Belongs to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from saros_storage.base.block import Block
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.read.deletions import relevant
from saros_storage.read.partitions_reader import PartitionsReader, RunRows, in_parts
from saros_storage.read.reader_sources import FilePieces, Piece
from saros_storage.scan.reading import ScanRequest, TimeRange, TimestampsDiffer, Unaligned
from saros_storage.scan.snapshot import FileSource, PartitionSnapshot

#: Readers of single series are opened for each range that is left to who asks, and look through all partitions. After
#: so many ranges the rest is one.
_APARTS_MAX = 16


@dataclass(frozen=True, slots=True)
class _Section:
    """All that a partition has of the device from `start` to `end`."""

    start: int
    end: int
    #: The series' chunks, as one; None: they do not keep step, or it is not known.
    chunk: Piece | None


class LockstepReader(PartitionsReader[Block | Unaligned]):
    """Implements `reading.MultiSeriesReader`."""

    def __init__(self, request: ScanRequest, snapshots: Sequence[PartitionSnapshot], cache: ChunkCache) -> None:
        assert not request.aligned
        assert request.grid is None
        assert not request.bounds
        super().__init__(request, snapshots, cache)
        self._wanted_rows = RunRows(request.block_rows)

    def _read(self) -> Iterator[Block | Unaligned]:
        aparts = 0
        for item in super()._read():
            aparts += isinstance(item, Unaligned)
            if isinstance(item, Unaligned) and aparts == _APARTS_MAX:
                yield self._rest_from(item.time)
                return
            yield item

    def _rest_from(self, time: TimeRange) -> Unaligned:
        """All that comes from a range on, in the order of the request."""
        whole = self._request.time
        rest = TimeRange(whole.start, time.end) if self._request.descending else TimeRange(time.start, whole.end)
        return Unaligned(rest)

    def _partition(self, snapshot: PartitionSnapshot) -> Iterator[Block | Unaligned]:
        stretches = _in_turn(self._stretches(snapshot))
        for stretch in reversed(stretches) if self._request.descending else stretches:
            if stretch.chunk is None:
                yield from self._unaligned(stretch.start, stretch.end)
            else:
                yield from self._chunk(stretch.chunk)

    def _unaligned(self, start: int, end: int) -> Iterator[Unaligned]:
        time = self._request.time.intersect(TimeRange(start, end + 1))
        if not time.empty:
            yield Unaligned(time)

    # ------------------------------------------------------------------ what a partition has

    def _stretches(self, snapshot: PartitionSnapshot) -> list[_Section]:
        request = self._request
        touched = bool(relevant(snapshot.tombstones, request.device, request.measurements, request.time))
        found: list[_Section] = []
        for source in snapshot.sources:
            if isinstance(source, FileSource):
                found += self._in_file(source, touched=touched)
            else:
                span = source.span(request.device)
                if span is not None and request.time.touches(span.start, span.end):
                    found.append(_Section(span.start, span.end, None))
        return found

    def _in_file(self, file: FileSource, *, touched: bool) -> list[_Section]:
        request, counters = self._request, self._counters
        span = file.devices.get(request.device)
        index = None
        if span is not None and request.time.touches(span.start, span.end):
            index = self._cache.indexes.find(file.access, request.device)
        if span is None or index is None or index.aligned or not any(n in index.series for n in request.measurements):
            counters.files_skipped += 1
            return []
        if touched:
            return [_Section(span.start, span.end, None)]
        try:
            pieces = FilePieces(0, file, index, request, (), self._cache, counters)
        except TimestampsDiffer:
            return [_Section(span.start, span.end, None)]
        counters.files += 1
        return [_Section(chunk.start, chunk.end, chunk) for chunk in pieces.chunks()]

    def _chunk(self, chunk: Piece) -> Iterator[Block | Unaligned]:
        assert isinstance(chunk.source, FilePieces)
        self._counters.chunks += len(self._request.measurements)
        try:
            for run in chunk.source.runs(chunk, self._wanted_rows):
                yield from self._run(chunk.source, run)
        except TimestampsDiffer:  # whose pages differ, which is known before the first run
            yield from self._unaligned(chunk.start, chunk.end)

    def _run(self, source: FilePieces, run: Piece) -> Iterator[Block | Unaligned]:
        try:
            block = source.load(run)
        except TimestampsDiffer:
            yield from self._unaligned(run.start, run.end)
            return
        if block is not None:
            yield from in_parts(block, self._request)


def _in_turn(stretches: Sequence[_Section]) -> list[_Section]:
    """Stretches in order of time; as one those that overlap, and neighbours without a chunk."""
    found: list[_Section] = []
    for stretch in sorted(stretches, key=lambda s: s.start):
        last = found[-1] if found else None
        if last is not None and (stretch.start <= last.end or last.chunk is stretch.chunk is None):
            found[-1] = _Section(last.start, max(last.end, stretch.end), None)
        else:
            found.append(stretch)
    return found
