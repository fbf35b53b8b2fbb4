"""Scans of other nodes: a node sends only the requested part of its data, in pieces that fit into a message."""

from __future__ import annotations

import numpy as np
import pytest
from cluster.remote_fakes import FakeView
from hypothesis import given
from hypothesis import strategies as st

from saros_cluster.remote.partial_aggregation import ITEM_BYTES_MAX, bytes_of, reduced, within
from saros_storage.base.block import Block, Column
from saros_storage.base.types import NUMERIC_TYPES, DataType, Scalar
from saros_storage.scan.reading import ScanRequest, Statistics, Summaries, Summary, ValueBound, WindowGrid

VALUES: dict[DataType, st.SearchStrategy[Scalar]] = {
    DataType.INT32: st.none() | st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3),
    DataType.INT64: st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    DataType.FLOAT: st.none() | st.floats(width=32),
    DataType.DOUBLE: st.none() | st.floats(),
}
#: Bounds like those of the optimiser: for FLOAT, numbers rounded to 32 bits; for integer types, integers or doubles
#: that have no rounding error.
LIMITS: dict[DataType, st.SearchStrategy[int | float | None]] = {
    DataType.INT32: st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(-(2**52), 2**52),
    DataType.INT64: st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(-(2**52), 2**52),
    DataType.FLOAT: st.none() | st.floats(width=32, allow_nan=False),
    DataType.DOUBLE: st.none() | st.floats(allow_nan=False),
}


@pytest.mark.slow
@given(st.data(), st.lists(st.sampled_from(sorted(NUMERIC_TYPES)), min_size=1, max_size=3), st.integers(1, 20))
def test_rows_within_bounds_are_those_that_python_keeps(data: st.DataObject, types: list[DataType], rows: int) -> None:
    values = [data.draw(st.lists(VALUES[type_], min_size=rows, max_size=rows)) for type_ in types]
    bounds = [
        ValueBound(column, data.draw(LIMITS[types[column]]), data.draw(LIMITS[types[column]]))
        for column in data.draw(st.lists(st.integers(0, len(types) - 1), max_size=3))
    ]
    columns = [Column.of(type_, column) for type_, column in zip(types, values, strict=True)]
    kept = within(Block.timed(np.arange(rows), columns), bounds)
    expected = [row for row in range(rows) if all(is_within(values[b.column][row], b) for b in bounds)]
    assert expected == kept.times.tolist()


def is_within(value: Scalar, bound: ValueBound) -> bool:
    if value is None or isinstance(value, (str, bytes)):
        return False
    # NaN passes only if there are no bounds
    return (bound.low is None or value >= bound.low) and (bound.high is None or value <= bound.high)


def test_what_comes_to_nothing_is_told_as_nothing() -> None:
    bounded = ScanRequest("root.d", ("x",), (DataType.INT32,), False, bounds=(ValueBound(0, 5, None),))
    blocks = [Block.timed(np.arange(3), [Column.of(DataType.INT32, values)]) for values in ([1, 2, 3], [4, 5, 6])]
    found = list(reduced(FakeView(lambda: blocks).open(bounded), bounded))
    assert found[0] is None
    assert [[1, 2]] == [piece.times.tolist() for piece in found[1:] if isinstance(piece, Block)]


@pytest.mark.parametrize("grid", [None, WindowGrid(0, 2), WindowGrid()], ids=str)
def test_large_blocks_are_cut_and_none_is_lost(grid: WindowGrid | None) -> None:
    scan = ScanRequest("root.d", ("x",), (DataType.BLOB,), False, grid=grid)
    large = Block.timed(np.arange(9), [Column.of(DataType.BLOB, [b"x" * (ITEM_BYTES_MAX // 2)] * 9)])
    found = list(reduced(FakeView(lambda: [large]).open(scan), scan))
    assert all(piece is not None and bytes_of(piece) <= ITEM_BYTES_MAX for piece in found)
    counts = [
        piece.rows if isinstance(piece, Block) else int(piece.columns[0].count.numbers.sum())
        for piece in found
        if isinstance(piece, (Block, Summaries))
    ]
    assert 9 == sum(counts)
    assert (grid is None) == (len(found) > 1)


def test_a_summary_takes_the_room_of_its_texts() -> None:
    statistics = Statistics(1, 1, 1, "x" * 100, "y" * 50, None, None, None)
    assert 150 < bytes_of(Summary(1, 1, (statistics, None))) < 250
