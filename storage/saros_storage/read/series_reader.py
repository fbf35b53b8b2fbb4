"""The series reader: one scan over all sources that a store has for a device, merged by rank.

    partition       seq file   |--- chunk A ---|  |--- chunk B ---|         |-- C --|
                    unseq                    |- D -|
                    MemTable                                     . .                    . . .
    clusters        [ A D B ]  [ row row ]  [ C ]  [ rows ]

Chunks and MemTable rows whose times overlap form a cluster. If a chunk overlaps nothing and the request allows it, the
chunk's statistics are returned instead of its rows. Otherwise its pages are read in runs, or replaced by their cells:
the statistics of each page's rows in each window of the request's grid (`cell_cache`). A cluster of several sources is
divided again at page borders, and only the parts that still overlap are merged: for each time and column, the
highest-ranked source with a value wins. The sources are loaded page by page, and only rows up to a time that all
sources have reached are merged. Memory is therefore bounded, however long a chain of overlapping chunks is.

Skipping by value (`bounds`) applies only to parts that overlap nothing: in an overlap, skipping a newer value would
expose an older one.

Several series of a non-aligned device are read together like the columns of an aligned device, if they keep step in all
sources (`has_shared_timestamps`, `reader_sources`).

Belongs to one thread at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from saros_storage.base.block import Block
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.read.deletions import relevant
from saros_storage.read.partitions_reader import PartitionsReader, RunRows, in_parts
from saros_storage.read.rank_merge import merge_blocks
from saros_storage.read.reader_sources import FilePieces, MemoryPieces, Piece, memory_pieces
from saros_storage.scan.reading import ScanRequest, Summaries, Summary, TimestampsDiffer
from saros_storage.scan.snapshot import FileSource, PartitionSnapshot, Tombstone

Item = Block | Summary | Summaries
#: A page is returned as cells only if it has at least this many rows for each window that it touches: a cell is as
#: large as four rows, and computing it takes time.
_CELL_ROWS_MIN = 16


class LocalSeriesReader(PartitionsReader[Item]):
    """A `reading.SeriesReader` over the local partitions of a store."""

    def __init__(
        self,
        request: ScanRequest,
        snapshots: Sequence[PartitionSnapshot],
        cache: ChunkCache,
        run_rows: int | None = None,
        cell_rows_min: int = _CELL_ROWS_MIN,
    ) -> None:
        """Create a reader of `snapshots`, which are in order of slices.

        `run_rows` is the maximum number of rows in the pages of one source that are loaded together (at least one
        page); None stands for the request's `block_rows`. Cells are used for pages that have at least `cell_rows_min`
        rows in each window on average.
        """
        super().__init__(request, snapshots, cache)
        self._cell_rows_min = cell_rows_min
        self._run_rows = request.block_rows if run_rows is None else run_rows
        self._wanted_rows = RunRows(self._run_rows)
        #: Number of series that are read like the columns of an aligned device. The counters count each of them.
        self._series = 1 if request.aligned else len(request.measurements)
        #: For the id of a snapshot, the pieces that `has_shared_timestamps` found in it.
        self._found: dict[int, list[Piece]] = {}

    def has_shared_timestamps(self) -> bool:
        """Check all sources now and return whether the request's (non-aligned) series keep step in them."""
        if self._request.time.empty:
            return True
        try:
            self._found = {id(snapshot): self._chunks(snapshot) for snapshot in self._snapshots}
        except TimestampsDiffer:
            return False
        return True

    # ------------------------------------------------------------------ partitions

    def _partition(self, snapshot: PartitionSnapshot) -> Iterator[Item]:
        found = self._found.pop(id(snapshot), None)
        for cluster in self.clusters(snapshot) if found is None else self._clusters(found):
            yield from self.read(cluster)

    def clusters(self, snapshot: PartitionSnapshot) -> Iterator[list[Piece]]:
        """Return a partition's chunks and MemTable rows, grouped by overlap, in the order of the request."""
        return self._clusters(self._chunks(snapshot))

    def read(self, cluster: list[Piece]) -> Iterator[Item]:
        """Yield the rows or summaries of one of the `clusters`."""
        return self._single_chunk(cluster[0]) if len(cluster) == 1 else self._overlapping(cluster)

    def _chunks(self, snapshot: PartitionSnapshot) -> list[Piece]:
        """Return those chunks and MemTables of a partition that may have wanted points."""
        request, counters = self._request, self._counters
        tombstones = snapshot.tombstones
        if tombstones:
            tombstones = relevant(tombstones, request.device, request.measurements, request.time)
            if tombstones and self._series > 1:
                raise TimestampsDiffer
        pieces: list[Piece] = []
        for order, source in enumerate(snapshot.sources):
            if isinstance(source, FileSource):
                found = self._file_pieces(order, source, tombstones)
                if found is None:
                    counters.files_skipped += 1
                    continue
                counters.files += 1
                pieces += found.chunks()
            else:
                rows = memory_pieces(order, source, request, tombstones)
                if rows is not None:
                    pieces += rows.chunks()
                    counters.memtable_rows += pieces[-1].count * self._series
        return pieces

    def _file_pieces(self, order: int, file: FileSource, tombstones: Sequence[Tombstone]) -> FilePieces | None:
        """Return the requested columns of a file; None if it has none of them in the request's time range."""
        request = self._request
        span = file.devices.get(request.device)
        if span is None or not request.time.touches(span.start, span.end):
            return None
        index = self._cache.indexes.find(file.access, request.device)
        if index is None or index.aligned != request.aligned:
            return None
        found = FilePieces(order, file, index, request, tombstones, self._cache, self._counters)
        return None if found.empty else found

    def _clusters(self, pieces: list[Piece]) -> Iterator[list[Piece]]:
        """Yield groups of pieces whose spans overlap, directly or through other pieces, in the order of the request."""
        if len(pieces) < 2:
            return iter([pieces] if pieces else [])
        pieces.sort(key=lambda p: p.start)
        clusters = []
        current = [pieces[0]]
        end = pieces[0].end
        for piece in pieces[1:]:
            if piece.start <= end:
                current.append(piece)
                end = max(end, piece.end)
            else:
                clusters.append(current)
                current = [piece]
                end = piece.end
        clusters.append(current)
        return iter(reversed(clusters) if self._request.descending else clusters)

    # ------------------------------------------------------------------ pieces that overlap nothing

    def _single_chunk(self, chunk: Piece) -> Iterator[Item]:
        source = chunk.source
        if isinstance(source, MemoryPieces):
            yield from self._pieces_of(source.load(chunk))
            return
        self._counters.chunks += self._series
        summary = self._summary(chunk)
        if summary is not None:
            yield summary
        elif (cells := self._cached_cells(chunk, source)) is not None:
            yield from self._pieces_of(cells)
        elif self._out_of_bounds(chunk):
            self._counters.chunks_skipped += 1
        elif not self._request.bounds and source.unbroken and self._wants_rows(chunk, source):
            for run in source.runs(chunk, self._wanted_rows):
                yield from self._pieces_of(source.load(run))
        else:
            yield from self._lone_pages(source.pages(chunk))

    def _wants_rows(self, chunk: Piece, source: FilePieces) -> bool:
        """Return whether all pages of a chunk must be read as rows.

        This is the case without a grid, and if each page touches several windows while cells are off.
        """
        grid = self._request.grid
        if grid is None:
            return True
        return grid.step is not None and not self._cache.cells.keeps and grid.step <= source.shortest_page(chunk)

    def _lone_pages(self, pages: Sequence[Piece]) -> Iterator[Item]:
        """Yield pages that nothing overlaps, as summaries or as runs of neighbours that are decoded together."""
        run: list[Piece] = []
        rows, wanted = 0, self._wanted_rows()
        for page in reversed(pages) if self._request.descending else pages:
            summary = self._summary(page)
            if summary is None and self._out_of_bounds(page):
                self._counters.pages_skipped += 1
                continue
            joins = (
                bool(run)
                and summary is None
                and rows + page.count <= wanted
                and _neighbours(run[-1], page)
                and self._gives_cells(run[-1]) is self._gives_cells(page)
            )
            if run and not joins:
                yield from self._load(run)
                run, rows, wanted = [], 0, self._wanted_rows()
            if summary is not None:
                yield summary
            else:
                run.append(page)
                rows += page.count
        if run:
            yield from self._load(run)

    def _load(self, run: Sequence[Piece]) -> Iterator[Item]:
        whole = _span(run[0], run[-1])
        if isinstance(whole.source, FilePieces) and self._gives_cells(run[0]):
            yield from self._pieces_of(whole.source.cells(whole))
        else:
            yield from self._pieces_of(whole.source.load(whole))

    def _cached_cells(self, chunk: Piece, source: FilePieces) -> Summaries | None:
        """Return all cells of a chunk if the reader wants them and they are cached."""
        return source.all_cells(chunk) if self._answerable(chunk) else None

    def _gives_cells(self, page: Piece) -> bool:
        """Return whether a page is returned as cells, which are cached, instead of rows."""
        grid = self._request.grid
        if grid is None or not self._cache.cells.keeps or not self._answerable(page):
            return False
        return page.count >= self._cell_rows_min * grid.touched(page.start, page.end)

    def _pieces_of(self, item: Block | Summaries | None) -> Iterator[Item]:
        if isinstance(item, Block):
            return in_parts(item, self._request)
        return iter(()) if item is None else in_parts(item, self._request)

    def _summary(self, piece: Piece) -> Summary | None:
        grid = self._request.grid
        if grid is None or not grid.same_window(piece.start, piece.end) or not self._answerable(piece):
            return None
        self._counters.summaries += self._series
        return Summary(piece.start, piece.end, piece.statistics)

    def _answerable(self, piece: Piece) -> bool:
        """Return whether statistics may replace the rows of a piece that overlaps nothing."""
        request, source = self._request, piece.source
        if request.grid is None or request.bounds or not piece.statistics or not isinstance(source, FilePieces):
            return False
        if piece.start < request.time.start or piece.end >= request.time.end:
            return False
        return not source.touched(piece.start, piece.end)

    def _out_of_bounds(self, piece: Piece) -> bool:
        """Return whether no row of the piece can be within the requested bounds."""
        if not piece.statistics:
            return False
        for bound in self._request.bounds:
            known = piece.statistics[bound.column]
            if known is None:
                return True
            if known.minimum is None or known.maximum is None:
                continue
            above = bound.low is not None and known.maximum < bound.low
            below = bound.high is not None and known.minimum > bound.high
            if above or below:
                return True
        return False

    # ------------------------------------------------------------------ overlaps

    def _overlapping(self, chunks: Sequence[Piece]) -> Iterator[Item]:
        pages: list[Piece] = []
        for chunk in chunks:
            if isinstance(chunk.source, FilePieces):
                self._counters.chunks += self._series
                pages += chunk.source.pages(chunk)
        borders = [border for page in pages for border in (page.start, page.end + 1)]
        for chunk in chunks:
            if isinstance(chunk.source, MemoryPieces):
                pages += chunk.source.cut(borders)
        alone: list[Piece] = []
        for cluster in self._clusters(pages):
            if len(cluster) == 1 and isinstance(cluster[0].source, FilePieces):
                # These pages are in the order of the request; `_lone_pages` is given them in time order.
                alone.append(cluster[0])
                continue
            yield from self._lone_pages(alone[::-1] if self._request.descending else alone)
            alone = []
            if len(cluster) == 1:
                yield from self._pieces_of(cluster[0].source.load(cluster[0]))
            else:
                yield from self._merge(cluster)
        yield from self._lone_pages(alone[::-1] if self._request.descending else alone)

    def _merge(self, cluster: Sequence[Piece]) -> Iterator[Item]:
        """Load runs of pieces of several sources, and merge their rows up to the time that all sources have reached."""
        descending = self._request.descending
        waiting: dict[int, deque[Piece]] = {}
        for piece in reversed(cluster) if descending else cluster:
            waiting.setdefault(piece.source.order, deque()).append(piece)
        loaded: dict[int, Block] = {}
        while waiting or loaded:
            for order in list(waiting):
                queue = waiting[order]
                while order not in loaded and queue:
                    piece = _next_run(queue, self._run_rows)
                    block = piece.source.load(piece)
                    if block is not None:
                        loaded[order] = block
                if not queue:
                    del waiting[order]
            ready: list[Block] = []
            for order in sorted(loaded):
                now, later = _split(loaded[order], waiting, descending=descending)
                if now is not None:
                    ready.append(now)
                if later is None:
                    del loaded[order]
                else:
                    loaded[order] = later
            if ready:
                yield from self._pieces_of(ready[0] if len(ready) == 1 else merge_blocks(ready))


def _neighbours(a: Piece, b: Piece) -> bool:
    """Return whether two pages of one chunk are adjacent."""
    return a.source is b.source and a.chunk == b.chunk and (a.stop == b.first or b.stop == a.first)


def _span(a: Piece, b: Piece) -> Piece:
    """Return the run of adjacent pages from one piece to another; the pieces may be in either order."""
    first, last = (a, b) if a.first <= b.first else (b, a)
    return Piece(a.source, a.chunk, first.first, last.stop, first.start, last.end, 0, ())


def _next_run(queue: deque[Piece], run_rows: int) -> Piece:
    """Take the next piece, together with the pieces adjacent to it, as long as the run has at most `run_rows` rows."""
    first = last = queue.popleft()
    rows = first.count
    while queue and rows + queue[0].count <= run_rows and _neighbours(last, queue[0]):
        last = queue.popleft()
        rows += last.count
    return first if first is last else _span(first, last)


def _split(block: Block, waiting: dict[int, deque[Piece]], *, descending: bool) -> tuple[Block | None, Block | None]:
    """Split a block into the rows that are final and all other rows.

    A row is final if all rows of the waiting pieces come after it.
    """
    if not waiting:
        return block, None
    if descending:
        horizon = max(queue[0].end for queue in waiting.values())
        cut = int(np.searchsorted(block.times, horizon, "right"))
        now, later = block.slice(cut, block.rows), block.slice(0, cut)
    else:
        horizon = min(queue[0].start for queue in waiting.values())
        cut = int(np.searchsorted(block.times, horizon, "left"))
        now, later = block.slice(0, cut), block.slice(cut, block.rows)
    return now if now.rows else None, later if later.rows else None
