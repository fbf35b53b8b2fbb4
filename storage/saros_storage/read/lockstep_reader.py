"""One reader for several series of a non-aligned device, as long as they keep step, that is, have equal times.

    s0   |--- chunk 1 ---|   |--- chunk 2 ---|                    |--- chunk 3 ---|
    s1   |--- chunk 1 ---|   |--- chunk 2 ---|   . . MemTable .   |--- chunk 3 ------|
    yields   Block  Block        Block  Block       Unaligned         Unaligned

Clients mostly write all measurements of a device at once. The series of the device then have the same times in the same
chunks and pages. In this case, one read plan serves all these series, their pages are decoded together, and no join is
needed.

The series keep step in a chunk if the file's chunks meet the conditions in `reader_sources`, and no other file,
MemTable or tombstone may have points of the device in the chunk's time span. This reader never merges sources: if in
some range the series do not keep step, or a check would be costly, it returns the range to the caller as `Unaligned`.

Belongs to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from saros_storage.base.block import Block
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.read.deletions import relevant
from saros_storage.read.partitions_reader import PartitionsReader, RunRows, in_parts
from saros_storage.read.reader_sources import FilePieces, Piece
from saros_storage.scan.reading import ScanRequest, TimeRange, TimestampsDiffer, Unaligned
from saros_storage.scan.snapshot import FileSource, PartitionSnapshot

#: For each `Unaligned` range, the caller opens one reader for each series, and each reader looks through all
#: partitions. After this many ranges, everything that remains is returned as a single range.
_APARTS_MAX = 16


class _Section(msgspec.Struct, frozen=True):
    """A time range in which a partition has data of the device; `end` is inclusive."""

    start: int
    end: int
    #: The chunks of all series, as a single piece; None if the series do not keep step, or if this is unknown.
    chunk: Piece | None


class LockstepReader(PartitionsReader[Block | Unaligned]):
    """A `reading.MultiSeriesReader` over the local partitions of a store."""

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
        """Return one range that consists of `time` and of the part of the request that remains after `time`."""
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

    # ------------------------------------------------------------------ sections of a partition

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
        except TimestampsDiffer:  # raised before the first run if the pages differ
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
    """Return the sections in time order; overlapping sections are merged, and so are neighbours without a chunk."""
    found: list[_Section] = []
    for stretch in sorted(stretches, key=lambda s: s.start):
        last = found[-1] if found else None
        if last is not None and (stretch.start <= last.end or last.chunk is stretch.chunk is None):
            found[-1] = _Section(last.start, max(last.end, stretch.end), None)
        else:
            found.append(stretch)
    return found
