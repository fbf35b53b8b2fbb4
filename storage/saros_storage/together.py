"""Several series of a device that is not aligned, read by one reader as long as they keep step.

    s0   |--- chunk 1 ---|   |--- chunk 2 ---|                    |--- chunk 3 ---|
    s1   |--- chunk 1 ---|   |--- chunk 2 ---|   . . MemTable .   |--- chunk 3 ------|
    gives    Block  Block        Block  Block        Apart              Apart

Who writes a device mostly writes all of its measurements at once: then its series have the same times in the same
chunks and pages. One plan of these does for all of them, their pages are decoded together, and nobody joins them.

They keep step in a chunk of a file if all of them are in that file with the types that are asked for; have as many
chunks there, of the same counts and spans; and nothing else (another file, a MemTable, a tombstone) may have points of
the device at that time. What is not so, or cannot be told at once, is left to who asks (`Apart`): nothing is merged
here.

Belongs to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from saros_storage.block import Block, Column
from saros_storage.chunk_cache import ChunkCache
from saros_storage.deletions import relevant
from saros_storage.partitions_reader import PartitionsReader, RunRows, in_parts
from saros_storage.reader_sources import FilePieces, Piece, within
from saros_storage.reading import Apart, ScanRequest, TimeRange
from saros_storage.snapshot import FileSource, PartitionSnapshot
from saros_storage.tsfile.access import DeviceIndex, SeriesIndex

#: Readers of single series are opened for each range that is left to who asks, and look through all partitions. After
#: so many ranges the rest is one.
_APARTS_MAX = 16


@dataclass(frozen=True, slots=True)
class _Stretch:
    """All that a partition has of the device from `start` to `end`."""

    start: int
    end: int
    #: The first series' chunk, which stands for each one's; None: they do not keep step, or it is not known.
    chunk: Piece | None


class LocalTogetherReader(PartitionsReader[Block | Apart]):
    """Implements `reading.TogetherReader`."""

    def __init__(self, request: ScanRequest, snapshots: Sequence[PartitionSnapshot], cache: ChunkCache) -> None:
        assert not request.aligned
        assert request.grid is None
        assert not request.bounds
        super().__init__(request, snapshots, cache)
        #: For the first series alone.
        self._lead = replace(request, measurements=request.measurements[:1], types=request.types[:1])
        self._wanted_rows = RunRows(request.block_rows)

    def _read(self) -> Iterator[Block | Apart]:
        aparts = 0
        for item in super()._read():
            aparts += isinstance(item, Apart)
            if isinstance(item, Apart) and aparts == _APARTS_MAX:
                yield self._rest_from(item.time)
                return
            yield item

    def _rest_from(self, time: TimeRange) -> Apart:
        """All that comes from a range on, in the order of the request."""
        whole = self._request.time
        rest = TimeRange(whole.start, time.end) if self._request.descending else TimeRange(time.start, whole.end)
        return Apart(rest)

    def _partition(self, snapshot: PartitionSnapshot) -> Iterator[Block | Apart]:
        stretches = _in_turn(self._stretches(snapshot))
        for stretch in reversed(stretches) if self._request.descending else stretches:
            if stretch.chunk is None:
                yield from self._apart(stretch.start, stretch.end)
            else:
                yield from self._chunk(stretch.chunk)

    def _apart(self, start: int, end: int) -> Iterator[Apart]:
        time = self._request.time.intersect(TimeRange(start, end + 1))
        if not time.empty:
            yield Apart(time)

    # ------------------------------------------------------------------ what a partition has

    def _stretches(self, snapshot: PartitionSnapshot) -> list[_Stretch]:
        request = self._request
        touched = bool(relevant(snapshot.tombstones, request.device, request.measurements, request.time))
        found: list[_Stretch] = []
        for source in snapshot.sources:
            if isinstance(source, FileSource):
                found += self._in_file(source, touched=touched)
            else:
                span = source.span(request.device)
                if span is not None and request.time.touches(span.start, span.end):
                    found.append(_Stretch(span.start, span.end, None))
        return found

    def _in_file(self, file: FileSource, *, touched: bool) -> list[_Stretch]:
        request, counters = self._request, self._counters
        span = file.devices.get(request.device)
        index = None
        if span is not None and request.time.touches(span.start, span.end):
            index = self._cache.indexes.find(file.access, request.device)
        if span is None or index is None or index.aligned or not any(n in index.series for n in request.measurements):
            counters.files_skipped += 1
            return []
        if touched or not self._keep_step(index):
            return [_Stretch(span.start, span.end, None)]
        counters.files += 1
        lead = FilePieces(0, file, index, self._lead, (), self._cache, counters)
        return [_Stretch(chunk.start, chunk.end, chunk) for chunk in lead.chunks()]

    def _keep_step(self, index: DeviceIndex) -> bool:
        """Whether each series is there, with the right type, and has as many chunks of the same counts and spans."""
        lead: list[tuple[int, int, int]] | None = None
        for name, type_ in zip(self._request.measurements, self._request.types, strict=True):
            series = index.series.get(name)
            if series is None or series.type is not type_:
                return False
            shapes = _shapes(series)
            if lead is not None and shapes != lead:
                return False
            lead = shapes
        return True

    # ------------------------------------------------------------------ one chunk of each series

    def _chunk(self, chunk: Piece) -> Iterator[Block | Apart]:
        lead, names = chunk.source, self._request.measurements
        assert isinstance(lead, FilePieces)
        if not lead.file.access.same_pages(lead.index, names, chunk.chunk):
            yield from self._apart(chunk.start, chunk.end)
            return
        self._counters.chunks += len(names)
        for run in lead.runs(chunk, self._wanted_rows):
            block = self._load(lead, run)
            if block is None:
                yield from self._apart(run.start, run.end)
                continue
            block = within(self._request.time, block, run)
            if block.rows:
                yield from in_parts(block, self._request)

    def _load(self, lead: FilePieces, run: Piece) -> Block | None:
        """A run of pages of each series; None if their times differ."""
        names = self._request.measurements
        if not self._cache.keeps:
            return self._decode(lead, run, names)
        first, stop = lead.rows(run)
        keys = [(lead.file.access.serial, self._request.device, name, run.chunk) for name in names]
        kept = [self._cache.get(key, first, stop) for key in keys]
        self._counters.cache_hits += sum(block is not None for block in kept)
        missing = [place for place, block in enumerate(kept) if block is None]
        if missing:
            read = self._decode(lead, run, [names[place] for place in missing])
            if read is None:
                return None
            for place, column in zip(missing, read.columns, strict=True):
                alone = Block.timed(read.times, (_alone(column),))
                kept[place] = alone
                self._cache.put(keys[place], first, alone)
        return _side_by_side([block for block in kept if block is not None])

    def _decode(self, lead: FilePieces, run: Piece, names: Sequence[str]) -> Block | None:
        read = lead.file.access.read_together(lead.index, names, run.chunk, run.first, run.stop)
        if read is None:
            return None
        block, size = read
        self._counters.bytes_read += size
        self._counters.pages += (run.stop - run.first) * len(names)
        return block


def _shapes(series: SeriesIndex) -> list[tuple[int, int, int]]:
    """First time, last time and rows of each chunk."""
    return [(s.start, s.end, s.count) if (s := chunk.statistics) else (0, 0, 0) for chunk in series.chunks]


def _in_turn(stretches: Sequence[_Stretch]) -> list[_Stretch]:
    """Stretches in order of time; as one those that overlap, and neighbours without a chunk."""
    found: list[_Stretch] = []
    for stretch in sorted(stretches, key=lambda s: s.start):
        last = found[-1] if found else None
        if last is not None and (stretch.start <= last.end or last.chunk is stretch.chunk is None):
            found[-1] = _Stretch(last.start, max(last.end, stretch.end), None)
        else:
            found.append(stretch)
    return found


def _alone(column: Column) -> Column:
    """The column in memory of its own, so that a cache which lets go of it frees what it counted."""
    values = column.values
    if isinstance(values, np.ndarray) and values.base is not None:
        return Column(column.type, values.copy(), column.valid)
    return column


def _side_by_side(blocks: Sequence[Block]) -> Block | None:
    """The blocks' columns, if they have the same times."""
    times = blocks[0].times
    if not all(block.times is times or np.array_equal(block.times, times) for block in blocks[1:]):
        return None
    return Block.timed(times, [column for block in blocks for column in block.columns])
