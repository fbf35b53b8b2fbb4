"""Unions of sorted time arrays are compared with sets, and merges of blocks by rank with dictionaries.

Kernels are compared with their twins in Python.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_storage.base.block import Block, Column
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType, Int64Array, Scalar
from saros_storage.kernels.jit import Kernel
from saros_storage.kernels.merge import union_few, union_times, union_two
from saros_storage.read.rank_merge import merge_blocks

TIMES = st.lists(st.one_of(st.integers(0, 40), st.sampled_from([TIME_MIN, TIME_MAX])), unique=True, max_size=30)
TYPES = [DataType.BOOLEAN, DataType.INT32, DataType.FLOAT, DataType.DOUBLE, DataType.TEXT]


def array(times: Sequence[int]) -> Int64Array:
    return np.array(sorted(times), np.int64)


@given(st.lists(TIMES, min_size=1, max_size=6))
@settings(max_examples=50)
def test_a_union_has_every_time_once_and_says_where_each_row_lands(inputs: list[list[int]]) -> None:
    arrays = [array(times) for times in inputs]
    times, places = union_times(arrays)
    assert sorted(set().union(*inputs)) == times.tolist()
    assert len(arrays) == len(places)
    for known, at in zip(arrays, places, strict=True):
        assert known.tolist() == times[at].tolist()


@pytest.mark.parametrize("kernel", [union_two, union_few])
@given(TIMES, TIMES)
@settings(max_examples=50)
def test_kernels_and_their_twins_agree(kernel: Kernel, a: list[int], b: list[int]) -> None:
    found = []
    for run in (kernel, kernel.twin, kernel.source):
        times, at_a, at_b = (np.full(n, -1, np.int64) for n in (len(a) + len(b), len(a), len(b)))
        count = run(array(a), array(b), times, at_a, at_b)
        found.append((times[:count].tolist(), at_a.tolist(), at_b.tolist()))
    assert sorted({*a, *b}) == found[0][0]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("late", [1, 2, 5, 100])
def test_few_late_rows_land_between_many(late: int) -> None:
    rng = np.random.default_rng(late)
    many = np.sort(rng.choice(10_000, 1_000, replace=False))
    few = np.sort(rng.choice(10_000, late, replace=False))
    for arrays in ([many, few], [few, many]):
        times, places = union_times(arrays)
        assert sorted({*many.tolist(), *few.tolist()}) == times.tolist()
        assert all(np.array_equal(times[at], known) for known, at in zip(arrays, places, strict=True))


def test_what_need_not_be_copied_is_not() -> None:
    many = np.arange(0, 1_000, 10)
    same, _ = union_times([many, many.copy()])
    assert same is many
    overwritten, places = union_times([many, many[20:25]])
    assert overwritten is many
    assert [20, 21, 22, 23, 24] == places[1].tolist()


@st.composite
def ranked(draw: st.DrawFn) -> list[dict[int, tuple[Scalar, ...]]]:
    """Draw blocks in ascending order of rank; each block is a dictionary of rows by time.

    A row has one column of each type.
    """
    values = [st.booleans(), st.integers(-9, 9), st.just(0.5), st.integers(-9, 9).map(float), st.text("aä", max_size=3)]
    nulls = draw(st.booleans())
    row = st.tuples(*(st.none() | value if nulls else value for value in values))
    return draw(st.lists(st.dictionaries(st.integers(0, 20), row, min_size=1, max_size=12), min_size=1, max_size=4))


def block(rows: dict[int, tuple[Scalar, ...]]) -> Block:
    times = sorted(rows)
    columns = zip(*(rows[t] for t in times), strict=True)
    return Block.timed(array(times), [Column.of(t, list(c)) for t, c in zip(TYPES, columns, strict=True)])


@given(ranked())
@settings(max_examples=50)
def test_the_highest_value_that_is_not_null_wins(sources: list[dict[int, tuple[Scalar, ...]]]) -> None:
    expected: dict[int, list[Scalar]] = {}
    for rows in sources:
        for time, row in rows.items():
            known = expected.setdefault(time, [None] * len(TYPES))
            known[:] = [old if new is None else new for old, new in zip(known, row, strict=True)]
    merged = merge_blocks([block(rows) for rows in sources])
    assert sorted(expected) == merged.times.tolist()
    found = [column.to_list() for column in merged.columns]
    assert [expected[t] for t in sorted(expected)] == [list(row) for row in zip(*found, strict=True)]
    assert TYPES == [column.type for column in merged.columns]


def test_sources_are_left_as_they_are() -> None:
    low, high = (block(dict.fromkeys(times, (True, 1, 0.5, 1.0, "a"))) for times in ([1, 2, 3], [2, 4]))
    before = [b.times.tolist() for b in (low, high)], [c.to_list() for b in (low, high) for c in b.columns]
    merge_blocks([low, high])
    assert before == ([b.times.tolist() for b in (low, high)], [c.to_list() for b in (low, high) for c in b.columns])


@pytest.mark.parametrize("late", [[0, 3], [1, 4], [0, 1, 2, 3, 4], [2, 3]])
@pytest.mark.parametrize("type_", [DataType.INT64, DataType.TEXT])
def test_late_rows_take_their_places_wherever_they_are(late: list[int], type_: DataType) -> None:
    def block(rows: list[int], sign: int) -> Block:
        values: list[Scalar] = [b"%d" % (sign * row) if type_.is_text else sign * row for row in rows]
        return Block.timed(array(rows), [Column.of(type_, values)])

    merged = merge_blocks([block([1, 2], 1), block(late, -1)])
    expected = {1: 1, 2: 2} | {row: -row for row in late}
    assert sorted(expected) == merged.times.tolist()
    found = merged.columns[0].to_list()
    assert [expected[row] for row in sorted(expected)] == [int(value) for value in found]  # type: ignore[arg-type]
