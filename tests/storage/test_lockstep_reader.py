"""A reader that reads several series in step (row by row together) where it can, compared with a model.

Files are drawn so that most of their series have the same times in the same pages, and a few differ slightly. The
reader leaves some parts to its caller: the tests read these series by series. All rows together must equal those of the
model.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from storage.fake_tsfile import Chunks, FakeTsFile, Rows, joined
from storage.single_summaries import singly
from storage.test_series_reader import (
    ALL,
    DEVICE,
    SLICE,
    TYPES,
    VALUES,
    Partition,
    Source,
    model,
    page_lists,
    snapshots,
    tombstones,
)

from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType, Scalar
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.read.lockstep_reader import LockstepReader
from saros_storage.read.series_reader import LocalSeriesReader
from saros_storage.scan.reading import ScanRequest, TimeRange, TimestampsDiffer, Unaligned, WindowGrid
from saros_storage.scan.snapshot import FileSource, PartitionSnapshot, Rank, Tombstone

#: The values of all series at each time.
Points = dict[int, list[Scalar]]
INT, DOUBLE = DataType.INT32, DataType.DOUBLE


def request(*names: str, time: TimeRange = ALL, descending: bool = False, block_rows: int = 1_000) -> ScanRequest:
    types = tuple(TYPES[name] for name in names)
    return ScanRequest(DEVICE, names, types, False, time, descending, block_rows=block_rows)


def pieces(
    snapshots: Sequence[PartitionSnapshot], wanted: ScanRequest, cache: ChunkCache | None = None
) -> list[Block | Unaligned]:
    reader = LockstepReader(wanted, snapshots, ChunkCache(0) if cache is None else cache)
    found = []
    while (piece := reader.next()) is not None:
        found.append(piece)
    reader.close()
    assert reader.next() is None
    return found


def times_of(found: Sequence[Block | Unaligned]) -> list[list[int] | tuple[int, int]]:
    """Return the times of each block, and (start, end) of each `Unaligned`."""
    return [p.times.tolist() if isinstance(p, Block) else (p.time.start, p.time.end) for p in found]


def read_apart(snapshots: Sequence[PartitionSnapshot], wanted: ScanRequest, time: TimeRange) -> Points:
    """Read the points in a time range series by series."""
    points: Points = {}
    for place, (name, type_) in enumerate(zip(wanted.measurements, wanted.types, strict=True)):
        one = replace(wanted, measurements=(name,), types=(type_,), time=time)
        reader = LocalSeriesReader(one, snapshots, ChunkCache(0))
        while (block := reader.next()) is not None:
            assert isinstance(block, Block)
            for t, value in zip(block.times.tolist(), block.columns[0].to_list(), strict=True):
                points.setdefault(t, [None] * len(wanted.types))[place] = value
    return points


def rows_of(
    snapshots: Sequence[PartitionSnapshot], wanted: ScanRequest, cache: ChunkCache
) -> list[tuple[int, tuple[Scalar, ...]]]:
    rows: list[tuple[int, tuple[Scalar, ...]]] = []
    for piece in pieces(snapshots, wanted, cache):
        if isinstance(piece, Block):
            assert 0 < piece.rows <= 2 * wanted.block_rows
            assert wanted.types == tuple(column.type for column in piece.columns)
            rows += zip(piece.times.tolist(), zip(*(c.to_list() for c in piece.columns), strict=True), strict=True)
        else:
            points = read_apart(snapshots, wanted, piece.time)
            rows += [(t, tuple(points[t])) for t in sorted(points, reverse=wanted.descending)]
    return rows


# ---------------------------------------------------------------------------------------------- drawing


@st.composite
def nearly_even(draw: st.DrawFn, start: int) -> Mapping[str, Chunks]:
    """Draw the chunks of each series. All series have the same times and pages, except perhaps for one difference."""
    even = draw(page_lists(TYPES, start, nulls=False))
    chunks: dict[str, Chunks] = {
        name: [[Rows(page.times, {name: page.columns[name]}) for page in chunk] for chunk in even] for name in TYPES
    }
    name = draw(st.sampled_from(sorted(TYPES)))
    change = draw(st.sampled_from(["nothing"] * 4 + ["gone", "type", "pages", "chunks", "times", "span"]))
    if change == "gone":
        del chunks[name]
    elif change == "type":
        chunks["b"] = [[_as_int(page) for page in chunk] for chunk in chunks["b"]]
    elif change == "pages":
        chunks[name] = [[joined(chunk)] for chunk in chunks[name]]
    elif change == "chunks":
        chunks[name] = [[page for chunk in chunks[name] for page in chunk]]
    elif change != "nothing":
        chunks[name] = [[draw(_moved(page, name, inside=change == "times")) for page in c] for c in chunks[name]]
    return chunks


def _as_int(page: Rows) -> Rows:
    return Rows(page.times, {"b": (INT, tuple(int(v) for v in page.columns["b"][1] if isinstance(v, float)))})


@st.composite
def _moved(draw: st.DrawFn, page: Rows, name: str, *, inside: bool) -> Rows:
    """Draw a page with the same number of rows at other times, or with other values if no other times fit.

    With `inside`, the first and the last time stay the same.
    """
    first, last, count = page.times[0], page.times[-1], len(page.times)
    if inside and count > 2:
        others = draw(st.sets(st.integers(first + 1, last - 1), min_size=count - 2, max_size=count - 2))
        return Rows((first, *sorted(others), last), page.columns)
    if not inside and count > 1:
        others = draw(st.sets(st.integers(first, last), min_size=count, max_size=count))
        return Rows(tuple(sorted(others)), page.columns)
    type_, _ = page.columns[name]
    return Rows(page.times, {name: (type_, (draw(VALUES[type_]),) * count)})


@st.composite
def nearly_even_partitions(draw: st.DrawFn, number: int) -> Partition:
    start = number * SLICE
    files = draw(st.integers(0, 3))
    made = [Source(version, False, draw(nearly_even(start))) for version in range(1, files + 1)]
    if draw(st.integers(0, 3)) == 0:
        late = draw(page_lists({"a": INT}, start, nulls=False))
        made.append(Source(files + 1, True, {"a": [[joined([joined(chunk) for chunk in late])]]}))
    stones = [draw(tombstones(start))] if draw(st.integers(0, 3)) == 0 else []
    return Partition(number, made, stones)


@st.composite
def wanted_series(draw: st.DrawFn) -> ScanRequest:
    names = draw(st.permutations(sorted(TYPES)))[: draw(st.integers(2, 3))]
    time = TimeRange()
    if draw(st.booleans()):
        first = draw(st.integers(-5, 2 * SLICE))
        time = TimeRange(first, first + draw(st.integers(0, SLICE)))
    return request(*names, time=time, descending=draw(st.booleans()), block_rows=draw(st.sampled_from([1, 4, 1_000])))


@pytest.mark.slow
@given(st.data())
@settings(max_examples=150)
def test_series_together_and_what_is_left_apart_give_what_the_model_holds(data: st.DataObject) -> None:
    parts = [data.draw(nearly_even_partitions(number)) for number in range(data.draw(st.integers(1, 2)))]
    cache = ChunkCache(data.draw(st.sampled_from([0, 10_000, 1 << 20])))
    with tempfile.TemporaryDirectory() as folder:
        real = data.draw(st.booleans())
        taken = snapshots(parts, folder=folder if real else None, page_rows=data.draw(st.integers(1, 4)))
        for _ in range(4):
            wanted = data.draw(wanted_series())
            for _ in range(2):
                assert model(parts, wanted) == rows_of(taken, wanted, cache)


# ---------------------------------------------------------------------------------------------- in step throughout


@st.composite
def even_partitions(draw: st.DrawFn, number: int) -> Partition:
    """Draw `nearly_even_partitions`, some of which also have MemTables with all series."""
    part = draw(nearly_even_partitions(number))
    if draw(st.booleans()):
        return part
    start, version = number * SLICE, len(part.sources) + 1
    late = draw(page_lists(TYPES, start, nulls=False))
    rows = joined([joined(chunk) for chunk in late])
    chunks = {name: [[Rows(rows.times, {name: rows.columns[name]})]] for name in TYPES}
    sources = [source for source in part.sources if not source.memory]
    return Partition(number, [*sources, Source(version, True, chunks)], part.tombstones)


def pieces_by_series(reader: LocalSeriesReader, count: int) -> list[list[object]]:
    """Return the items of each series: a block as its times and values, and summaries unchanged."""
    found: list[list[object]] = [[] for _ in range(count)]
    while (piece := reader.next()) is not None:
        for item in singly(piece):
            for series, column in zip(found, item.columns, strict=True):
                if isinstance(item, Block):
                    assert isinstance(column, Column)
                    series.append((item.times.tolist(), column.to_list()))
                else:
                    series.append((item.start, item.end, column))
    return found


@pytest.mark.slow
@given(st.data())
@settings(max_examples=200)
def test_series_in_step_give_what_each_gives_by_itself_piece_by_piece(data: st.DataObject) -> None:
    parts = [data.draw(even_partitions(number)) for number in range(data.draw(st.integers(1, 2)))]
    cache = ChunkCache(data.draw(st.sampled_from([0, 10_000, 1 << 20])))
    with tempfile.TemporaryDirectory() as folder:
        real = data.draw(st.booleans())
        taken = snapshots(parts, folder=folder if real else None, page_rows=data.draw(st.integers(1, 4)))
        for _ in range(4):
            grid = data.draw(st.none() | st.builds(WindowGrid, st.integers(-3, 3), st.sampled_from([None, 5, 20])))
            wanted = replace(data.draw(wanted_series()), grid=grid)
            cell_rows = data.draw(st.sampled_from([1, 16]))
            for _ in range(2):
                reader = LocalSeriesReader(wanted, taken, cache, cell_rows_min=cell_rows)
                try:
                    if not reader.has_shared_timestamps():
                        continue
                    found = pieces_by_series(reader, len(wanted.types))
                except TimestampsDiffer:
                    continue
                for place, (name, type_) in enumerate(zip(wanted.measurements, wanted.types, strict=True)):
                    alone = replace(wanted, measurements=(name,), types=(type_,))
                    single = LocalSeriesReader(alone, taken, cache, cell_rows_min=cell_rows)
                    assert pieces_by_series(single, 1) == [found[place]]


# ---------------------------------------------------------------------------------------------- directed


def page(name: str, times: Sequence[int]) -> Rows:
    type_ = TYPES[name]
    return Rows(tuple(times), {name: (type_, tuple(str(t) if type_.is_text else t for t in times))})


def file(version: int, **chunks: Sequence[Sequence[Sequence[int]]]) -> FakeTsFile:
    """Return a file. For each series, `chunks` has a list of chunks; a chunk is a list with the times of each page."""
    made = {name: [[page(name, times) for times in chunk] for chunk in listed] for name, listed in chunks.items()}
    return FakeTsFile(f"{version}.tsfile", DEVICE, made)


def partition(*files: FakeTsFile, stones: Sequence[Tombstone] = ()) -> list[PartitionSnapshot]:
    sources = tuple(access.source(int(access.path.partition(".")[0])) for access in files)
    return [PartitionSnapshot("root.db", 0, sources, (), tuple(stones))]


EVEN = [[[1, 2], [3, 4]], [[7, 8, 9]]]


def test_series_that_keep_step_are_read_by_one_call_for_each_run() -> None:
    access = file(1, a=EVEN, b=EVEN, c=EVEN)
    assert [[1, 2, 3, 4], [7, 8, 9]] == times_of(pieces(partition(access), request("a", "b", "c", block_rows=100)))
    assert [(("a", "b", "c"), 0, 0, 2), (("a", "b", "c"), 1, 0, 1)] == access.reads


def test_backwards_the_last_pages_come_first() -> None:
    access = file(1, a=EVEN, b=EVEN)
    assert [[9, 8, 7], [4, 3, 2, 1]] == times_of(pieces(partition(access), request("a", "b", descending=True)))


def test_only_chunks_that_differ_in_their_pages_are_left_apart() -> None:
    access = file(1, a=EVEN, b=[[[1, 2, 3, 4]], [[7, 8, 9]]])
    assert [(1, 5), [7, 8, 9]] == times_of(pieces(partition(access), request("a", "b")))


def test_only_pages_whose_times_differ_inside_are_left_apart() -> None:
    pages, others = [[[1, 2], [3, 4, 9], [11, 12]]], [[[1, 2], [3, 5, 9], [11, 12]]]
    found = times_of(pieces(partition(file(1, a=pages, b=others)), request("a", "b", block_rows=1)))
    assert [[1, 2], (3, 10), [11, 12]] == found


def test_where_files_overlap_they_are_left_apart_and_the_rest_is_not() -> None:
    late = [[[8]]]
    found = pieces(partition(file(1, a=EVEN, b=EVEN), file(2, a=late, b=late)), request("a", "b"))
    assert [[1, 2, 3, 4], (7, 10)] == times_of(found)


def test_neighbours_that_do_not_keep_step_are_left_apart_as_one_range() -> None:
    files = (file(1, a=[[[1]]]), file(2, b=[[[5]]]), file(3, a=[[[9]]], b=[[[9]]]))
    assert [(1, 6), [9]] == times_of(pieces(partition(*files), request("a", "b")))


def test_a_file_without_any_of_the_series_leaves_nothing_apart() -> None:
    assert [] == pieces(partition(file(1, c=EVEN)), request("a", "b"))


def test_what_a_tombstone_may_touch_is_left_apart() -> None:
    stone = Tombstone("root.db.d.b", TimeRange(2, 3), Rank(0, 5))
    found = pieces(partition(file(1, a=EVEN, b=EVEN), stones=[stone]), request("a", "b"))
    assert [(1, 10)] == times_of(found)


def test_a_range_left_apart_stays_within_what_was_asked_for() -> None:
    access = file(1, a=EVEN, b=[[[1, 2, 3, 4]], [[7, 8, 9]]])
    assert [(2, 4)] == times_of(pieces(partition(access), request("a", "b", time=TimeRange(2, 4))))


@pytest.mark.parametrize("descending", [False, True])
def test_after_many_ranges_left_apart_the_rest_is_one(descending: bool) -> None:
    parts = [
        PartitionSnapshot("root.db", n, (file(1, a=[[[10 * n]]]).source(1), _even_at(10 * n + 5)), (), ())
        for n in range(20)
    ]
    found = times_of(pieces(parts, request("a", "b", descending=descending, time=TimeRange(0, 1_000))))
    ranges = [item for item in found if isinstance(item, tuple)]
    blocks = [item for item in found if isinstance(item, list)]
    if descending:
        assert (0, 41) == ranges[-1] == found[-1]
        assert [[10 * n + 5] for n in range(19, 3, -1)] == blocks
    else:
        assert (150, 1_000) == ranges[-1] == found[-1]
        assert [[10 * n + 5] for n in range(15)] == blocks
    assert 16 == len(ranges)


def _even_at(time: int) -> FileSource:
    return file(2, a=[[[time]]], b=[[[time]]]).source(2)


def test_files_that_overlap_and_a_memtable_are_read_in_step_too() -> None:
    """Two files overlap, a MemTable follows, and all three have both series.

    One reader then returns the merged rows.
    """
    even = {name: [[page(name, [5, 6, 7])]] for name in ("a", "b")}
    parts = partition(file(1, a=EVEN, b=EVEN), file(2, a=[[[3, 5]]], b=[[[3, 5]]]))
    memory = snapshots([Partition(0, [Source(3, True, even)], [])])[0].memtables
    taken = [replace(parts[0], memtables=memory)]
    reader = LocalSeriesReader(request("a", "b"), taken, ChunkCache(0))
    assert reader.has_shared_timestamps()
    times = [t for ts, _ in pieces_by_series(reader, 2)[1] for t in ts]  # type: ignore[misc,has-type]
    assert [1, 2, 3, 4, 5, 6, 7, 8, 9] == times


@pytest.mark.parametrize(
    "files",
    [
        [{"a": [[[1, 2]]]}],
        [{"a": [[[1, 2]]], "b": [[[1, 2, 3]]]}],
        [{"a": [[[1, 2]]], "b": [[[1, 2]]]}, {"b": [[[5, 6]]]}],
    ],
)
def test_one_series_that_is_elsewhere_in_one_file_has_all_read_by_themselves(
    files: Sequence[Mapping[str, Sequence[Sequence[Sequence[int]]]]],
) -> None:
    taken = partition(*(file(version, **chunks) for version, chunks in enumerate(files, 1)))
    assert not LocalSeriesReader(request("a", "b"), taken, ChunkCache(0)).has_shared_timestamps()


def test_times_that_differ_inside_pages_end_the_reading_in_step() -> None:
    taken = partition(file(1, a=[[[1, 2, 4]]], b=[[[1, 3, 4]]]))
    reader = LocalSeriesReader(request("a", "b"), taken, ChunkCache(0))
    assert reader.has_shared_timestamps()
    with pytest.raises(TimestampsDiffer):
        reader.next()


def test_a_cache_keeps_series_each_by_itself() -> None:
    """Two series are read together. Then a read of one of them, or of the other with a third series, uses the cache.

    Each cached block has its own memory, so that its eviction frees the bytes that it counted.
    """
    with tempfile.TemporaryDirectory() as folder:
        chunk = [[Rows((1, 2, 3), {n: (DOUBLE, (float(i), 0.5, 1.5))})] for i, n in enumerate("xyz")]
        source = Source(1, False, dict(zip("xyz", [[c] for c in chunk], strict=True)))
        taken = snapshots([Partition(0, [source], [])], folder=folder, page_rows=2)
        cache = ChunkCache(1 << 20)
        two = ScanRequest(DEVICE, ("x", "y"), (DOUBLE, DOUBLE), False)
        (block,) = pieces(taken, two, cache)
        assert isinstance(block, Block)
        assert all(np.asarray(column.values).base is None for column in block.columns)
        misses = cache.misses
        reader = LocalSeriesReader(replace(two, measurements=("x",), types=(DOUBLE,)), taken, cache)
        assert reader.next() is not None
        assert misses == cache.misses
        (again,) = pieces(taken, ScanRequest(DEVICE, ("z", "y"), (DOUBLE, DOUBLE), False), cache)
        assert isinstance(again, Block)
        assert misses + 1 == cache.misses
        assert [[2.0, 0.5, 1.5], [1.0, 0.5, 1.5]] == [column.to_list() for column in again.columns]


@pytest.mark.parametrize("types", [(DOUBLE, DOUBLE), (DOUBLE, DataType.TEXT), (INT, INT)])
@pytest.mark.parametrize("cached", [(), ("x",), ("x", "y")])
def test_times_that_differ_inside_pages_of_files_are_noticed_whatever_is_cached(
    types: tuple[DataType, DataType], cached: tuple[str, ...]
) -> None:
    """The series' pages have different times, but the same spans and counts, and the same encoded sizes."""
    chunks: dict[str, Chunks] = {}
    for name, type_, times in zip("xy", types, ((1, 2, 4), (1, 3, 4)), strict=True):
        values: tuple[Scalar, ...] = tuple("abc") if type_.is_text else (0, 1, 2)
        chunks[name] = [[Rows(times, {name: (type_, values)})]]
    with tempfile.TemporaryDirectory() as folder:
        taken = snapshots([Partition(0, [Source(1, False, chunks)], [])], folder=folder, page_rows=3)
        cache = ChunkCache(1 << 20)
        both = ScanRequest(DEVICE, ("x", "y"), types, False)
        for name in cached:
            alone = replace(both, measurements=(name,), types=(types["xy".index(name)],))
            assert LocalSeriesReader(alone, taken, cache).next() is not None
        assert [(1, 5)] == times_of(pieces(taken, both, cache))
        assert [(1, 5)] == times_of(pieces(taken, both))
