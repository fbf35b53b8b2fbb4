"""Summaries that are computed from rows equal the statistics that a file would store for each window."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.single_summaries import statistics_at

from saros_storage.base.block import Block, Column
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType, Scalar
from saros_storage.read.window_statistics import joined, of_summaries, summarised
from saros_storage.scan.reading import Statistics, Summaries, Summary, WindowGrid, statistics_fields
from saros_storage.tsfile.structure.statistics import of_points, reader_statistics

# Numbers whose sums are exact in any order.
REALS = st.sampled_from([0.5, -1.5, 3.25, math.inf, math.nan])
WHOLES = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.sampled_from(["", "a", "ä", "zz"])
VALUES: dict[DataType, st.SearchStrategy[Scalar]] = {
    DataType.BOOLEAN: st.booleans(),
    DataType.INT32: WHOLES,
    DataType.INT64: st.integers(-(2**44), 2**44),
    DataType.FLOAT: REALS,
    DataType.DOUBLE: REALS,
    DataType.TEXT: TEXTS,
    DataType.TIMESTAMP: st.integers(-(2**63), 2**63 - 1),
    DataType.DATE: st.integers(0, 99991231),
    DataType.BLOB: st.binary(max_size=2),
    DataType.STRING: TEXTS,
}
GRIDS = st.builds(WindowGrid, st.integers(-9, 9), st.sampled_from([None, 50, 200, 2**62]))


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    """Draw rows at about every second tick, so that windows have many rows."""
    start = draw(st.integers(-300, 300))
    times = np.array([t for t in range(start, start + draw(st.integers(1, 400))) if t % 7 < 4], np.int64)
    if len(times) == 0:
        times = np.array([start], np.int64)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = []
    for type_ in draw(st.lists(st.sampled_from(DataType), min_size=1, max_size=3)):
        known = draw(st.lists(st.none() | VALUES[type_], min_size=1, max_size=6))
        columns.append(Column.of(type_, [known[n] for n in rng.integers(len(known), size=len(times))]))
    return Block.timed(times, columns)


def stored(block: Block, column: int) -> Statistics | None:
    """Return the statistics that a file would have for a column of the block."""
    values = block.columns[column]
    rows = np.flatnonzero(values.present)
    return reader_statistics(values.type, of_points(values.type, block.times[rows], values.take(rows).values))


def window(block: Block, grid: WindowGrid, time: int) -> Block:
    """Return the rows in the window of a time."""
    return block.compress(np.array([grid.same_window(time, other) for other in block.times.tolist()]))


@pytest.mark.slow
@settings(max_examples=150)
@given(blocks(), GRIDS, st.booleans())
def test_a_summary_of_rows_is_what_a_file_would_store(block: Block, grid: WindowGrid, descending: bool) -> None:
    item = summarised(block.take(np.arange(block.rows)[::-1]) if descending else block, grid, descending=descending)
    if isinstance(item, Block):
        assert item.rows == block.rows
        return
    assert item.nbytes < block.nbytes + 64 * item.rows
    assert tuple(column.type for column in block.columns) == item.types
    rows = range(item.rows)[::-1] if descending else range(item.rows)
    left = block
    for row in rows:
        part = window(block, grid, int(left.times[0]))
        left = left.slice(part.rows, left.rows)
        expected = [stored(part, column) for column in range(len(item.types))]
        assert repr(expected) == repr(statistics_at(item, row))
        spans = [(one.start, one.end) for one in expected if one is not None]
        if spans:
            assert (min(s for s, _ in spans), max(e for _, e in spans)) == (item.starts[row], item.ends[row])
        else:
            assert item.starts[row] > item.ends[row]
    assert left.rows == 0


def test_rows_that_are_less_than_their_summaries_stay() -> None:
    values = Column(DataType.DOUBLE, np.arange(40.0))
    block = Block.timed(np.arange(40), [values])
    assert block is summarised(block, WindowGrid(0, 4), descending=False)
    found = summarised(block, WindowGrid(0, 8), descending=False)
    assert isinstance(found, Summaries)
    assert 5 == found.rows
    assert found.nbytes < block.nbytes


def test_a_text_counts_by_its_length() -> None:
    short = Block.timed(np.arange(40), [Column.of(DataType.TEXT, ["x" * 20] * 40)])
    assert isinstance(summarised(short, WindowGrid(0, 8), descending=False), Summaries)
    uneven = Block.timed(np.arange(40), [Column.of(DataType.TEXT, ["x" * 2000, *[""] * 39])])
    assert uneven is summarised(uneven, WindowGrid(0, 2), descending=False)


def test_distances_that_do_not_fit_64_bits_leave_rows_as_they_are() -> None:
    times = np.array([TIME_MIN, *range(20)], np.int64)
    block = Block.timed(times, [Column(DataType.INT32, np.arange(21, dtype=np.int32))])
    assert block is summarised(block, WindowGrid(1, 1_000), descending=False)
    assert isinstance(summarised(block, WindowGrid(0, 1_000), descending=False), Summaries)
    late = Block.timed(np.array([*range(20), TIME_MAX], np.int64)[::-1], block.columns)
    assert late is summarised(late, WindowGrid(-1, 1_000), descending=True)
    assert isinstance(summarised(late, WindowGrid(0, 1_000), descending=True), Summaries)


# ---------------------------------------------------------------------------------------------- single summaries


@st.composite
def singles(draw: st.DrawFn, types: tuple[DataType, ...]) -> Summary:
    def statistics(type_: DataType) -> Statistics:
        names = statistics_fields(type_)
        found = {name: draw(VALUES[names[name]]) if name in names else None for name in Statistics.__struct_fields__}
        return Statistics(**{**found, "count": draw(st.integers(1, 9))})  # type: ignore[arg-type]

    return Summary(0, 0, tuple(statistics(t) if draw(st.booleans()) else None for t in types))


@settings(max_examples=60)
@given(st.data(), st.lists(st.sampled_from(DataType), min_size=1, max_size=3).map(tuple))
def test_single_summaries_come_back_from_columns(data: st.DataObject, types: tuple[DataType, ...]) -> None:
    given_ = data.draw(st.lists(singles(types), min_size=1, max_size=5))
    made = of_summaries(types, given_)
    assert [repr(list(one.columns)) for one in given_] == [repr(statistics_at(made, row)) for row in range(made.rows)]


def test_neighbours_are_joined_and_blocks_stay_between() -> None:
    types = (DataType.INT64,)

    def single(time: int) -> Summary:
        return Summary(time, time, (Statistics(1, time, time, 7, 7, 7, 7, 7.0),))

    def several(*times: int) -> Summaries:
        return of_summaries(types, [single(time) for time in times])

    block = Block.timed(np.arange(9, 10), [Column.of(DataType.INT64, [7])])
    found = joined(types, [single(0), single(1), several(2, 3), single(4), block, block, several(20, 21)])
    assert [[0, 1, 2, 3, 4], [9], [9], [20, 21]] == [
        (item.times if isinstance(item, Block) else item.starts).tolist() for item in found
    ]
    assert found[1] is block
    assert [] == joined(types, [])
