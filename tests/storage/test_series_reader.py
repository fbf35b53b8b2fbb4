"""The series reader, compared with a plain model: for each series a dictionary of points, which is filled by rank.

Files and MemTables are fakes that are cut into chunks and pages at random; some files are also written as TsFiles. The
tests check the rows and their order; for windows, they check the statistics that summaries and rows give together.
Directed tests also check that no needless page is read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.fake_tsfile import ROWS, Chunks, FakeMemory, FakeTsFile, Rows, joined, source_of, write_real
from storage.single_summaries import singly

from saros_storage.base.block import Block
from saros_storage.base.errors import CorruptFile
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType, Scalar
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.read.series_reader import LocalSeriesReader
from saros_storage.scan.reading import (
    BLOCK_ROWS_MAX,
    ReadCounters,
    ScanRequest,
    Summaries,
    Summary,
    TimeRange,
    ValueBound,
    WindowGrid,
)
from saros_storage.scan.snapshot import FileSource, PartitionSnapshot, Rank, Tombstone
from saros_storage.scan.type_conversion import TypeChanged
from saros_storage.tsfile.reader import TsFileReader

DEVICE = "root.db.d"
ALL = TimeRange()
TYPES = {"a": DataType.INT32, "b": DataType.DOUBLE, "c": DataType.TEXT}
#: For each series, the types of the stored points that readers return. In Python, converted numbers equal the stored
#: numbers.
HAD = {"a": {DataType.INT32}, "b": {DataType.DOUBLE, DataType.INT32, DataType.FLOAT}, "c": {DataType.TEXT}}
#: The width of a partition: the first partition has times below SLICE, the next one times below 2 * SLICE, and so on.
SLICE = 60


# ---------------------------------------------------------------------------------------------- the model


@dataclass
class Source:
    """The chunks of a file, or the rows of a MemTable as one chunk of one page."""

    version: int
    memory: bool
    chunks: Mapping[str, Chunks]

    def points(self, name: str) -> dict[int, Scalar]:
        """Return the points of a series that have the expected type, or a type that the series may have had before."""
        found: dict[int, Scalar] = {}
        for key, chunks in self.chunks.items():
            for rows in map(joined, chunks):
                if key in (name, ROWS) and name in rows.columns and rows.columns[name][0] in HAD[name]:
                    found |= {t: v for t, v in zip(rows.times, rows.columns[name][1], strict=True) if v is not None}
        return found


@dataclass
class Partition:
    number: int
    sources: list[Source]
    tombstones: list[Tombstone]

    def points(self, name: str) -> dict[int, Scalar]:
        found: dict[int, Scalar] = {}
        for source in self.sources:
            held = source.points(name)
            for stone in self.tombstones:
                if stone.pattern not in NAMED[name]:
                    continue
                hidden = source.version <= stone.rank.version
                if hidden:
                    held = {t: v for t, v in held.items() if not stone.time.start <= t < stone.time.end}
            found |= held
        return found


#: For each series, the patterns in `PATTERNS` that match it.
NAMED = {name: {"root.db.**", "root.*.d.*", f"root.db.d.{name}"} for name in TYPES}
PATTERNS = ["root.db.**", "root.*.d.*", "root.db.d.a", "root.db.d.b", "root.other.**", "root.db.*"]


def model(partitions: Sequence[Partition], request: ScanRequest) -> list[tuple[int, tuple[Scalar, ...]]]:
    """Return all rows of the request."""
    series = []
    for name in request.measurements:
        points: dict[int, Scalar] = {}
        for partition in partitions:
            points |= partition.points(name)
        series.append({t: v for t, v in points.items() if request.time.start <= t < request.time.end})
    times = sorted({t for points in series for t in points}, reverse=request.descending)
    return [(t, tuple(points.get(t) for points in series)) for t in times]


# ---------------------------------------------------------------------------------------------- drawing


VALUES: dict[DataType, st.SearchStrategy[Scalar]] = {
    DataType.INT32: st.integers(-5, 5),
    DataType.BOOLEAN: st.booleans(),
    DataType.FLOAT: st.integers(-6, 6).map(lambda v: v / 2),
    DataType.DOUBLE: st.integers(-6, 6).map(lambda v: v / 2),
    DataType.TEXT: st.sampled_from(["", "x", "ä", "long"]),
}


@st.composite
def page_lists(draw: st.DrawFn, types: Mapping[str, DataType], start: int, *, nulls: bool) -> list[list[Rows]]:
    """Draw rows in [start, start + SLICE), cut into chunks of pages."""
    times = sorted(draw(st.sets(st.integers(start, start + SLICE - 1), min_size=1, max_size=14)))
    columns = {}
    for name, type_ in types.items():
        value = VALUES[type_]
        columns[name] = draw(st.lists(st.none() | value if nulls else value, min_size=len(times), max_size=len(times)))
    cuts = draw(st.sets(st.integers(1, 13)))
    chunk_cuts = draw(st.sets(st.sampled_from(sorted(cuts)))) if cuts else set()
    chunks: list[list[Rows]] = [[]]
    for first, stop in pairwise([0, *sorted(c for c in cuts if c < len(times)), len(times)]):
        if first in chunk_cuts:
            chunks.append([])
        page = {name: (types[name], tuple(values[first:stop])) for name, values in columns.items()}
        chunks[-1].append(Rows(tuple(times[first:stop]), page))
    return chunks


@st.composite
def sources(draw: st.DrawFn, start: int, version: int, *, aligned: bool, memory: bool) -> Source:
    names = draw(st.sets(st.sampled_from(sorted(TYPES)), min_size=1))
    types = {name: TYPES[name] for name in sorted(names)}
    if not memory and draw(st.integers(0, 5)) == 0:
        types["a"] = DataType.BOOLEAN  # the file has points of a series that was dropped and created again
    if "b" in types and not memory and draw(st.integers(0, 2)) == 0:
        types["b"] = draw(st.sampled_from([DataType.INT32, DataType.FLOAT]))
    if aligned:
        chunks = draw(page_lists(types, start, nulls=True))
        return Source(version, memory, {ROWS: in_one(chunks) if memory else chunks})
    found = {name: draw(page_lists({name: type_}, start, nulls=False)) for name, type_ in types.items()}
    return Source(version, memory, {name: in_one(chunks) if memory else chunks for name, chunks in found.items()})


def in_one(chunks: Chunks) -> Chunks:
    """Return all rows in one chunk of one page."""
    return [[joined([joined(chunk) for chunk in chunks])]]


@st.composite
def tombstones(draw: st.DrawFn, start: int) -> Tombstone:
    first = draw(st.integers(start - 5, start + SLICE))
    time = TimeRange(first, first + draw(st.integers(0, 25)))
    if draw(st.integers(0, 9)) == 0:
        time = TimeRange(TIME_MIN, first)
    return Tombstone(draw(st.sampled_from(PATTERNS)), time, Rank(0, draw(st.integers(0, 8))))


@st.composite
def partitions(draw: st.DrawFn, number: int, *, aligned: bool) -> Partition:
    start = number * SLICE
    files = draw(st.integers(0, 4))
    memories = draw(st.integers(0, 2))
    made = [
        draw(sources(start, version, aligned=aligned, memory=version > files))
        for version in range(1, files + memories + 1)
    ]
    stones = draw(st.lists(tombstones(start), max_size=4)) if draw(st.booleans()) else []
    return Partition(number, made, stones)


@st.composite
def stores(draw: st.DrawFn) -> tuple[bool, list[Partition]]:
    aligned = draw(st.booleans())
    count = draw(st.integers(1, 2))
    return aligned, [draw(partitions(number, aligned=aligned)) for number in range(count)]


@st.composite
def requests(draw: st.DrawFn, *, aligned: bool) -> ScanRequest:
    names = draw(st.permutations(sorted(TYPES)))[: draw(st.integers(1, 3)) if aligned else 1]
    time = TimeRange()
    if draw(st.booleans()):
        start = draw(st.integers(-5, 2 * SLICE))
        time = TimeRange(start, start + draw(st.integers(0, SLICE)))
    bounds: tuple[ValueBound, ...] = ()
    numeric = [place for place, name in enumerate(names) if name != "c"]
    if numeric and draw(st.booleans()):
        low, high = draw(st.none() | st.integers(-5, 5)), draw(st.none() | st.integers(-5, 5))
        bounds = (ValueBound(draw(st.sampled_from(numeric)), low, high),)
    grid = draw(st.none() | st.builds(WindowGrid, st.integers(-3, 3), st.sampled_from([None, 5, 20, 45])))
    return ScanRequest(
        DEVICE, tuple(names), tuple(TYPES[n] for n in names), aligned, time, draw(st.booleans()), bounds, grid
    )


# ---------------------------------------------------------------------------------------------- reading


def snapshots(parts: Sequence[Partition], *, folder: str | None = None, page_rows: int = 3) -> list[PartitionSnapshot]:
    """Return snapshots of fakes, or of TsFiles that this function writes to `folder`."""
    found = []
    for part in parts:
        files: list[FileSource] = []
        memories: list[FakeMemory] = []
        for source in part.sources:
            path = f"{part.number}-{source.version}.tsfile"
            if source.memory:
                memories += [FakeMemory(Rank(0, source.version), DEVICE, chunks[0][0]) for chunks in merged(source)]
            elif folder is None:
                files.append(FakeTsFile(path, DEVICE, source.chunks).source(source.version))
            else:
                real = write_real(f"{folder}/{path}", DEVICE, source.chunks, page_rows)
                files.append(source_of(real, source.chunks, DEVICE, source.version))
        found.append(PartitionSnapshot("root.db", part.number, tuple(files), tuple(memories), tuple(part.tombstones)))
    return found


def merged(source: Source) -> list[Chunks]:
    """Return the content of a MemTable as common rows of all series. Nulls fill the gaps of non-aligned series."""
    if ROWS in source.chunks:
        return [source.chunks[ROWS]]
    parts = {name: joined([joined(c) for c in chunks]) for name, chunks in source.chunks.items()}
    times = tuple(sorted({t for rows in parts.values() for t in rows.times}))
    columns = {}
    for name, rows in parts.items():
        type_, values = rows.columns[name]
        known = dict(zip(rows.times, values, strict=True))
        columns[name] = (type_, tuple(known.get(t) for t in times))
    return [[[Rows(times, columns)]]]


def read(
    snapshots: Sequence[PartitionSnapshot],
    request: ScanRequest,
    cache: ChunkCache | None = None,
    cell_rows_min: int = 16,
) -> tuple[list[Block | Summary], ReadCounters]:
    cache = ChunkCache(1 << 20) if cache is None else cache
    reader = LocalSeriesReader(request, snapshots, cache, cell_rows_min=cell_rows_min)
    found = []
    singles = 0
    while (item := reader.next()) is not None:
        singles += isinstance(item, Summary)
        found += singly(item)
    assert reader.counters.summaries == singles
    reader.close()
    assert reader.next() is None
    return found, reader.counters


def rows_of(items: Sequence[Block | Summary]) -> list[tuple[int, tuple[Scalar, ...]]]:
    rows: list[tuple[int, tuple[Scalar, ...]]] = []
    for item in items:
        assert isinstance(item, Block)
        assert item.rows > 0
        rows += zip(item.times.tolist(), zip(*(c.to_list() for c in item.columns), strict=True), strict=True)
    return rows


def check(
    snapshots: Sequence[PartitionSnapshot],
    parts: Sequence[Partition],
    request: ScanRequest,
    cache: ChunkCache,
    cell_rows_min: int,
) -> None:
    expected = model(parts, request)
    for _ in range(2):
        items, _ = read(snapshots, request, cache, cell_rows_min)
        check_order(items, descending=request.descending)
        if request.bounds:
            check_bounded(expected, rows_of(items), request.bounds)
        elif request.grid is None:
            assert expected == rows_of(items)
        else:
            assert windows(expected, request) == windows_of(items, request)


def check_order(items: Sequence[Block | Summary], *, descending: bool) -> None:
    """Check that items follow one another in time and do not overlap, and that rows are in order within each item."""
    spans = []
    for item in items:
        if isinstance(item, Summary):
            assert item.start <= item.end
            assert any(column is not None for column in item.columns)
            for column in item.columns:
                assert column is None or item.start <= column.start <= column.end <= item.end
            spans.append((item.start, item.end))
        else:
            times = item.times[::-1] if descending else item.times
            assert bool((times[1:] > times[:-1]).all())
            spans.append((int(times[0]), int(times[-1])))
    for before, after in pairwise(reversed(spans) if descending else spans):
        assert before[1] < after[0]


def check_bounded(
    expected: list[tuple[int, tuple[Scalar, ...]]],
    found: list[tuple[int, tuple[Scalar, ...]]],
    bounds: tuple[ValueBound, ...],
) -> None:
    """Check that all rows within the bounds were found, and that every found row exists."""
    known = dict(expected)
    assert all(known[t] == values for t, values in found)
    wanted = [t for t, values in expected if all(within(values[b.column], b) for b in bounds)]
    assert not set(wanted) - {t for t, _ in found}


def within(value: Scalar, bound: ValueBound) -> bool:
    if value is None:
        return False
    assert isinstance(value, (int, float))
    return (bound.low is None or value >= bound.low) and (bound.high is None or value <= bound.high)


#: For each (window, column): count, first and last point, minimum, maximum, sum.
Windows = dict[tuple[int, int], tuple[int, tuple[int, Scalar], tuple[int, Scalar], Scalar, Scalar, Scalar]]


def windows(rows: Sequence[tuple[int, tuple[Scalar, ...]]], request: ScanRequest) -> Windows:
    found: Windows = {}
    for time, values in rows:
        for column, value in enumerate(values):
            if value is not None:
                low = value if request.types[column].is_numeric else None
                add(found, (window(time, request), column), (1, (time, value), (time, value), low, low, low))
    return found


def windows_of(items: Sequence[Block | Summary], request: ScanRequest) -> Windows:
    found = windows(rows_of([item for item in items if isinstance(item, Block)]), request)
    for item in items:
        if not isinstance(item, Summary):
            continue
        assert window(item.start, request) == window(item.end, request)
        assert request.time.start <= item.start
        assert item.end < request.time.end
        for column, s in enumerate(item.columns):
            if s is not None:
                piece = (s.count, (s.start, text(s.first)), (s.end, text(s.last)), s.minimum, s.maximum, s.total)
                add(found, (window(item.start, request), column), piece)
    return found


def window(time: int, request: ScanRequest) -> int:
    grid = request.grid
    assert grid is not None
    return 0 if grid.step is None else (time - grid.origin) // grid.step


def text(value: Scalar) -> Scalar:
    return value.decode() if isinstance(value, bytes) else value


def add(found: Windows, key: tuple[int, int], piece: tuple) -> None:
    known = found.get(key)
    if known is None:
        found[key] = piece
        return
    numbers = (
        [None] * 3 if known[3] is None else [min(known[3], piece[3]), max(known[4], piece[4]), known[5] + piece[5]]
    )
    first, last = min(known[1], piece[1]), max(known[2], piece[2])
    found[key] = (known[0] + piece[0], first, last, *numbers)


# ---------------------------------------------------------------------------------------------- against the model


@pytest.mark.slow
@given(st.data())
@settings(max_examples=50)
def test_a_reader_gives_what_the_model_holds(data: st.DataObject) -> None:
    aligned, parts = data.draw(stores())
    taken = snapshots(parts)
    cache = ChunkCache(data.draw(st.sampled_from([0, 10_000, 1 << 20])))
    for _ in range(4):
        request = data.draw(requests(aligned=aligned))
        check(taken, parts, request, cache, data.draw(st.sampled_from([1, 2, 16])))


@given(st.data())
@settings(max_examples=15)
def test_it_does_so_over_tsfiles(data: st.DataObject) -> None:
    aligned, parts = data.draw(stores())
    with tempfile.TemporaryDirectory() as folder:
        taken = snapshots(parts, folder=folder, page_rows=data.draw(st.integers(1, 4)))
        for _ in range(4):
            check(taken, parts, data.draw(requests(aligned=aligned)), ChunkCache(1 << 20), 1)


# ---------------------------------------------------------------------------------------------- directed


def rows(times: Sequence[int], values: Sequence[Scalar] | None = None, type_: DataType = DataType.INT32) -> Rows:
    """Return rows of column `a`."""
    return Rows(tuple(times), {"a": (type_, tuple(times if values is None else values))})


def file(version: int, *chunks: Sequence[Rows]) -> FakeTsFile:
    return FakeTsFile(f"{version}.tsfile", DEVICE, {"a": chunks})


def partition(
    *files: FakeTsFile, memories: Sequence[FakeMemory] = (), tombstones: Sequence[Tombstone] = ()
) -> list[PartitionSnapshot]:
    sources = tuple(access.source(int(access.path.partition(".")[0])) for access in files)
    return [PartitionSnapshot("root.db", 0, sources, tuple(memories), tuple(tombstones))]


def request(
    time: TimeRange = ALL,
    *,
    back: bool = False,
    bounds: tuple[ValueBound, ...] = (),
    grid: WindowGrid | None = None,
    type_: DataType = DataType.INT32,
) -> ScanRequest:
    return ScanRequest(DEVICE, ("a",), (type_,), False, time, back, bounds, grid)


def points(items: Sequence[Block | Summary]) -> list[tuple[int, Scalar]]:
    return [(time, value) for time, (value,) in rows_of(items)]


def test_a_device_without_data_and_an_empty_range_give_nothing() -> None:
    known = file(1, [rows([1, 2])])
    assert [] == read([], request())[0]
    assert [] == read(partition(), request())[0]
    assert [] == read(partition(known), ScanRequest("root.db.other", ("a",), (DataType.INT32,), False))[0]
    assert [] == read(partition(known), request(TimeRange(2, 2)))[0]
    assert [] == known.reads


def test_files_chunks_and_pages_out_of_the_range_are_not_read() -> None:
    near = file(1, [rows([0, 9]), rows([10, 19]), rows([20, 29])], [rows([30, 39])])
    far = file(2, [rows([100, 109])])
    found, counters = read(partition(near, far), request(TimeRange(12, 25)))
    assert [(19, 19), (20, 20)] == points(found)
    assert [(("a",), 0, 1, 3)] == near.reads
    assert [] == far.reads
    assert (1, 1) == (counters.files, counters.files_skipped)
    assert (1, 1) == (counters.chunks, counters.chunks_skipped)
    assert (2, 1) == (counters.pages, counters.pages_skipped)
    assert 20 == counters.bytes_read


def test_neighbouring_pages_are_decoded_in_one_go_and_kept() -> None:
    known = file(1, [rows([1, 2]), rows([3]), rows([4, 5])])
    cache = ChunkCache(1 << 20)
    for times, expected in ((TimeRange(), [1, 2, 3, 4, 5]), (TimeRange(3, 5), [3, 4])):
        assert expected == [t for t, _ in points(read(partition(known), request(times), cache)[0])]
    assert [(("a",), 0, 0, 3)] == known.reads
    _, counters = read(partition(known), request(back=True), cache)
    assert (1, 0, 0) == (counters.cache_hits, counters.pages, counters.bytes_read)


def test_who_wants_a_few_rows_has_them_from_a_few_pages() -> None:
    """The reader loads several pages at once: first a fraction of a block's rows, then more, up to a whole block."""
    pages = [rows([2 * n, 2 * n + 1]) for n in range(20)]
    for back, expected in (
        (False, [(0, 2), (2, 6), (6, 14), (14, 20)]),
        (True, [(18, 20), (14, 18), (6, 14), (0, 6)]),
    ):
        known = file(1, pages)
        reader = LocalSeriesReader(request(back=back), partition(known), ChunkCache(0), 16)
        assert reader.next() is not None
        assert expected[:1] == [(first, stop) for _, _, first, stop in known.reads]
        while reader.next() is not None:
            pass
        assert expected == [(first, stop) for _, _, first, stop in known.reads]


def test_column_sets_of_an_aligned_device_share_what_is_decoded() -> None:
    page = Rows((1, 2), {"a": (DataType.INT32, (1, None)), "b": (DataType.DOUBLE, (0.5, 1.5))})
    known = FakeTsFile("1.tsfile", DEVICE, {ROWS: [[page]]})
    cache = ChunkCache(1 << 20)
    for names in (("a",), ("b", "a"), ("a", "b"), ("b",)):
        found, _ = read(partition(known), ScanRequest(DEVICE, names, tuple(TYPES[n] for n in names), True), cache)
        assert found
    assert [("a",), ("b",)] == [names for names, *_ in known.reads]


def test_the_higher_rank_wins_wherever_it_lies() -> None:
    old = file(1, [rows([1, 2, 3], [10, 20, 30])])
    new = file(2, [rows([2, 4], [21, 41])])
    newest = FakeMemory(Rank(0, 3), DEVICE, rows([3, 4], [32, 42]))
    found, counters = read(partition(old, new, memories=[newest]), request())
    assert [(1, 10), (2, 21), (3, 32), (4, 42)] == points(found)
    assert 2 == counters.memtable_rows


def test_only_pages_that_overlap_are_merged() -> None:
    """Only the page that a late row overlaps is merged; the other pages are read several at a time, or summarised."""
    long = file(1, [rows(range(start, start + 10)) for start in range(0, 100, 10)])
    late = file(2, [rows([55], [-1])])
    found, counters = read(partition(long, late), request(grid=WindowGrid()))
    assert [Summary] * 5 + [Block] + [Summary] * 4 == [type(item) for item in found]
    assert 9 == counters.summaries
    assert [(("a",), 0, 5, 6)] == long.reads
    assert [(("a",), 0, 0, 1)] == late.reads


def test_summaries_stop_at_windows_ranges_and_tombstones() -> None:
    known = file(1, *([rows(range(start, start + 10))] for start in range(0, 60, 10)))
    stone = Tombstone("root.**", TimeRange(35, 36), Rank(0, 1))
    grid = WindowGrid(origin=5, step=20)
    found, _ = read(partition(known, tombstones=[stone]), request(TimeRange(0, 59), grid=grid))
    spans = [(item.start, item.end) for item in found if isinstance(item, Summary)]
    assert [(10, 19)] == spans
    assert [*range(10), *range(20, 35), *range(36, 59)] == [
        t for item in found if isinstance(item, Block) for t in item.times
    ]


def test_a_chunk_that_crosses_a_window_is_answered_by_its_pages() -> None:
    known = file(1, [rows(range(start, start + 10)) for start in range(0, 40, 10)])
    found, counters = read(partition(known), request(grid=WindowGrid(0, 20), back=True))
    assert [(30, 39), (20, 29), (10, 19), (0, 9)] == [(item.start, item.end) for item in found]
    assert (4, 0) == (counters.summaries, len(known.reads))


def minutes(page_count: int, *, first: int = 0) -> list[Rows]:
    """Return pages of a hundred rows."""
    return [rows(range(start, start + 100)) for start in range(first, first + 100 * page_count, 100)]


def test_what_pages_come_to_in_windows_is_not_read_again() -> None:
    known = file(1, minutes(4))
    cache = ChunkCache(80_000)
    asked = request(grid=WindowGrid(30, 60))
    found, _ = read(partition(known), asked, cache)
    assert [(("a",), 0, 0, 4)] == known.reads
    # The window from 90 to 149 covers parts of two pages.
    assert [(0, 29), (30, 89), (90, 99), (100, 149)] == [(i.start, i.end) for i in found[:4] if isinstance(i, Summary)]
    again, counters = read(partition(known), asked, cache)
    assert found == again
    assert (1, 1, 0) == (len(known.reads), counters.cache_hits, counters.pages)
    backwards, _ = read(partition(known), request(back=True, grid=WindowGrid(-30, 60)), cache)
    assert found == backwards[::-1]
    assert 1 == len(known.reads)


def test_a_range_that_moves_on_reads_only_the_pages_that_are_new() -> None:
    known = file(1, minutes(6))
    cache = ChunkCache(80_000)
    read(partition(known), request(TimeRange(0, 350), grid=WindowGrid(0, 50)), cache)
    # The range ends inside its last page, so this page is read separately.
    assert [(("a",), 0, 0, 3), (("a",), 0, 3, 4)] == known.reads
    found, _ = read(partition(known), request(TimeRange(150, 550), grid=WindowGrid(0, 50)), cache)
    assert [(("a",), 0, 3, 5), (("a",), 0, 5, 6)] == known.reads[2:]
    assert windows([(t, (t,)) for t in range(150, 550)], asked := request(grid=WindowGrid(0, 50))) == windows_of(
        found, asked
    )


def test_what_comes_later_is_seen_beside_what_is_kept_of_windows() -> None:
    known = file(1, minutes(4))
    cache = ChunkCache(80_000)
    asked = request(grid=WindowGrid(0, 50))
    read(partition(known), asked, cache)
    stone = Tombstone("root.**", TimeRange(210, 220), Rank(0, 1))
    points = {t: t for t in range(400)}

    def check_changed(snapshot: list[PartitionSnapshot], changed: dict[int, int]) -> None:
        expected = [(t, (v,)) for t, v in sorted(changed.items())]
        assert windows(expected, asked) == windows_of(read(snapshot, asked, cache)[0], asked)

    check_changed(partition(known, tombstones=[stone]), {t: t for t in points if not 210 <= t < 220})
    late = FakeMemory(Rank(0, 2), DEVICE, rows([120, 500], [-1, -2]))
    check_changed(partition(known, memories=[late]), points | {120: -1, 500: -2})
    check_changed(partition(known, file(2, [rows([7], [-3])])), points | {7: -3})


def test_what_is_kept_of_windows_is_of_the_type_that_is_asked_for() -> None:
    both = FakeTsFile("1.tsfile", DEVICE, {ROWS: [minutes(2)]})
    cache = ChunkCache(80_000)
    names = ("a", "b")
    for type_ in (DataType.INT32, DataType.DOUBLE):
        asked = ScanRequest(DEVICE, names, (DataType.INT32, type_), True, grid=WindowGrid(0, 50))
        snapshot = [PartitionSnapshot("root.db", 0, (both.source(1),), (), ())]
        found = LocalSeriesReader(asked, snapshot, cache).next()
        assert isinstance(found, Summaries)
        assert asked.types == found.types


def test_rows_that_are_few_to_a_window_stay_rows() -> None:
    known = file(1, minutes(2))
    found, _ = read(partition(known), request(grid=WindowGrid(0, 5)))
    assert all(isinstance(item, Block) for item in found)


def test_a_tombstone_of_the_time_between_the_points_leaves_them_alone() -> None:
    known = file(1, [rows([0, 100])])
    stone = Tombstone("root.db.d.a", TimeRange(40, 60), Rank(0, 9))
    assert [(0, 0), (100, 100)] == points(read(partition(known, tombstones=[stone]), request())[0])


def test_what_is_wholly_deleted_is_not_read() -> None:
    known = file(1, [rows([1, 2])], [rows([10, 11]), rows([12, 13])])
    stone = Tombstone("root.**", TimeRange(0, 12), Rank(0, 1))
    found, counters = read(partition(known, tombstones=[stone]), request())
    assert [(12, 12), (13, 13)] == points(found)
    assert [(("a",), 1, 1, 2)] == known.reads
    assert (1, 1) == (counters.chunks_skipped, counters.pages_skipped)


def test_a_tombstone_hides_what_its_rank_reaches_and_no_more() -> None:
    """Tombstones also hide points of a MemTable that is being flushed, since a deletion does not change it."""
    old, same, new = (file(n, [rows([1], [n])]) for n in (1, 2, 3))
    stone = Tombstone("root.**", TimeRange(0, 5), Rank(0, 2))
    flushing = FakeMemory(Rank(0, 2), DEVICE, rows([2, 7], [2, 7]))
    active = FakeMemory(Rank(0, 4), DEVICE, rows([3], [4]))
    taken = partition(old, same, memories=[flushing, active], tombstones=[stone])
    assert [(3, 4), (7, 7)] == points(read(taken, request())[0])
    assert [(1, 3)] == points(read(partition(old, same, new, tombstones=[stone]), request())[0])


def test_a_deleted_newer_value_lets_no_deleted_older_one_through() -> None:
    stones = [Tombstone("root.**", TimeRange(0, 5), Rank(0, 2)), Tombstone("root.**", TimeRange(5, 9), Rank(0, 1))]
    old, new = file(1, [rows([1, 6], [1, 1])]), file(2, [rows([1, 6], [2, 2])])
    assert [(6, 2)] == points(read(partition(old, new, tombstones=stones), request())[0])


def test_pages_are_skipped_by_value_where_they_stand_alone() -> None:
    known = file(1, [rows([1, 2], [1, 2]), rows([3, 4], [8, 9])], [rows([10, 11], [3, 3])])
    found, counters = read(partition(known), request(bounds=(ValueBound(0, 5, None),)))
    assert [(3, 8), (4, 9)] == points(found)
    assert [(("a",), 0, 1, 2)] == known.reads
    assert (1, 1) == (counters.pages_skipped, counters.chunks_skipped)


def test_a_skipped_new_value_would_show_an_old_one_so_it_is_not_skipped() -> None:
    old, new = file(1, [rows([1, 2, 3], [9, 9, 9])]), file(2, [rows([2], [0])])
    found, _ = read(partition(old, new), request(bounds=(ValueBound(0, 5, None),)))
    assert [(1, 9), (2, 0), (3, 9)] == points(found)
    memory = FakeMemory(Rank(0, 2), DEVICE, rows([2], [0]))
    found, _ = read(partition(old, memories=[memory]), request(bounds=(ValueBound(0, 5, None),)))
    assert [(1, 9), (2, 0), (3, 9)] == points(found)


def test_a_series_that_came_again_with_another_type_is_another_series() -> None:
    old, new = file(1, [rows([1, 2], [True, False], DataType.BOOLEAN)]), file(2, [rows([2, 3])])
    assert [(2, 2), (3, 3)] == points(read(partition(old, new), request())[0])
    assert [(1, True), (2, False)] == points(read(partition(old, new), request(type_=DataType.BOOLEAN))[0])


def test_points_of_a_type_that_the_series_had_before_are_read_as_its_type() -> None:
    old, new = file(1, [rows([1, 2])]), file(2, [rows([2, 3], [0.5, 1.5], DataType.DOUBLE)])
    assert [(1, 1.0), (2, 0.5), (3, 1.5)] == points(read(partition(old, new), request(type_=DataType.DOUBLE))[0])
    memory = FakeMemory(Rank(0, 3), DEVICE, rows([4], [2.5], DataType.DOUBLE))
    found = points(read(partition(old, memories=[memory]), request(type_=DataType.DOUBLE))[0])
    assert [(1, 1.0), (2, 2.0), (4, 2.5)] == found


def test_who_asks_with_a_type_of_before_is_told_so_unless_what_is_newer_is_deleted() -> None:
    old, new = file(1, [rows([1, 2])]), file(2, [rows([2, 3], [0.5, 1.5], DataType.DOUBLE)])
    with pytest.raises(TypeChanged, match=r"root\.db\.d\.a changed from INT32 to DOUBLE during the query"):
        read(partition(old, new), request())
    dropped = Tombstone("root.db.d.a", TimeRange(), Rank(0, 2))
    again = file(3, [rows([7])])
    assert [(7, 7)] == points(read(partition(old, new, again, tombstones=[dropped]), request())[0])


def test_a_device_that_came_again_unaligned_is_another_device() -> None:
    old = FakeTsFile("1.tsfile", DEVICE, {ROWS: [[rows([1, 2])]]})
    found, counters = read(partition(old, file(2, [rows([3])])), request())
    assert [(3, 3)] == points(found)
    assert 1 == counters.files_skipped


def test_columns_that_a_file_lacks_are_null_and_rows_of_nothing_are_dropped() -> None:
    first = Rows((1, 2, 3), {"a": (DataType.INT32, (1, None, 3)), "b": (DataType.DOUBLE, (None, 2.0, 3.0))})
    second = Rows((5, 6), {"b": (DataType.DOUBLE, (5.0, None))})
    files = [FakeTsFile(f"{n}.tsfile", DEVICE, {ROWS: [[page]]}) for n, page in ((1, first), (2, second))]
    wanted = ScanRequest(DEVICE, ("c", "a"), (DataType.TEXT, DataType.INT32), True)
    found, counters = read(partition(*files), wanted)
    assert [(1, (None, 1)), (3, (None, 3))] == rows_of(found)
    assert 1 == counters.files_skipped
    wanted = ScanRequest(DEVICE, ("a", "b"), (DataType.INT32, DataType.DOUBLE), True)
    expected = [(1, (1, None)), (2, (None, 2.0)), (3, (3, 3.0)), (5, (None, 5.0))]
    assert expected == rows_of(read(partition(*files), wanted)[0])


def test_a_null_hides_nothing() -> None:
    old = Rows((1, 2), {"a": (DataType.INT32, (1, 2)), "c": (DataType.TEXT, ("x", "y"))})
    new = Rows((1, 2), {"a": (DataType.INT32, (None, 20)), "c": (DataType.TEXT, ("z", None))})
    files = [FakeTsFile(f"{n}.tsfile", DEVICE, {ROWS: [[page]]}) for n, page in ((1, old), (2, new))]
    wanted = ScanRequest(DEVICE, ("a", "c"), (DataType.INT32, DataType.TEXT), True)
    assert [(1, (1, "z")), (2, (20, "y"))] == rows_of(read(partition(*files), wanted)[0])


def test_the_ends_of_time_are_read() -> None:
    known = file(1, [rows([TIME_MIN, 0, TIME_MAX - 1], [1, 2, 3])])
    late = FakeMemory(Rank(0, 2), DEVICE, rows([TIME_MIN, TIME_MAX - 1], [-1, -3]))
    expected = [(TIME_MIN, -1), (0, 2), (TIME_MAX - 1, -3)]
    assert expected == points(read(partition(known, memories=[late]), request())[0])
    assert expected[::-1] == points(read(partition(known, memories=[late]), request(back=True))[0])


def test_partitions_follow_one_another() -> None:
    taken = [
        PartitionSnapshot("root.db", slice_, (file(slice_ + 1, [rows([time, time + 1])]).source(1),), (), ())
        for slice_, time in ((0, 10), (1, 20))
    ]
    assert [10, 11, 20, 21] == [t for t, _ in points(read(taken, request())[0])]
    assert [21, 20, 11, 10] == [t for t, _ in points(read(taken, request(back=True))[0])]


@pytest.mark.slow
@pytest.mark.parametrize("back", [False, True])
def test_blocks_and_memory_stay_bounded_however_long_the_overlap(back: bool) -> None:
    """Two files overlap from end to end, and their pages are loaded only when the merge reaches them."""
    page = BLOCK_ROWS_MAX // 4
    count = 40
    files = [
        file(version, *([rows(range(n * 2 * page + shift, (n + 1) * 2 * page + shift, 2))] for n in range(count)))
        for version, shift in ((1, 0), (2, 1))
    ]
    reader = LocalSeriesReader(request(back=back), partition(*files), ChunkCache(0))
    seen = 0
    while (item := reader.next()) is not None:
        assert isinstance(item, Block)
        assert item.rows <= 2 * BLOCK_ROWS_MAX
        seen += item.rows
        loaded = sum(stop - first for access in files for _, _, first, stop in access.reads) * page
        assert loaded - seen <= 4 * BLOCK_ROWS_MAX
    assert 2 * count * page == seen


def test_a_large_memtable_comes_in_parts() -> None:
    times = range(5 * BLOCK_ROWS_MAX)
    found, _ = read(partition(memories=[FakeMemory(Rank(0, 1), DEVICE, rows(times))]), request(back=True))
    assert all(isinstance(item, Block) and item.rows <= 2 * BLOCK_ROWS_MAX for item in found)
    assert list(reversed(times)) == [t for item in found if isinstance(item, Block) for t in item.times.tolist()]


def test_nothing_is_opened_before_the_first_piece_is_asked_for_nor_after_close() -> None:
    known = file(1, [rows([1])], [rows([2])])
    reader = LocalSeriesReader(request(), partition(known), ChunkCache(0))
    assert 0 == known.openings
    assert reader.next() is not None
    reader.close()
    reader.close()
    assert reader.next() is None
    assert 1 == len(known.reads)


def test_a_damaged_file_raises(tmp_path: Path) -> None:
    chunks = {"a": [[rows(range(100))]]}
    path = str(tmp_path / "1.tsfile")
    write_real(path, DEVICE, chunks, 10)
    data = bytearray(Path(path).read_bytes())
    data[60:90] = bytes(30)
    broken = TsFileReader(path, memoryview(bytes(data)))
    taken = [PartitionSnapshot("root.db", 0, (source_of(broken, chunks, DEVICE, 1),), (), ())]
    with pytest.raises(CorruptFile):
        read(taken, request())
