"""Kernels that aggregate slices of rows, compared with their twins in Python.

Rows may have nulls; slices may be empty or overlap.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from saros_storage.base.types import BoolArray, Float64Array, Int64Array
from saros_storage.kernels.windows import (
    variation_starts,
    variation_starts_i64,
    window_edges,
    window_extremes_f64,
    window_extremes_i64,
    window_moments,
    window_sums,
)

FLOATS = st.floats(-1e6, 1e6) | st.sampled_from([float("nan"), 0.0, -0.0])
Slices = tuple[Int64Array, Int64Array]


@st.composite
def rows(draw: st.DrawFn) -> tuple[Float64Array, BoolArray, Slices]:
    """Draw values, a mask of the valid values, and slices of the values. If the mask is empty, all values are valid."""
    values = draw(hnp.arrays(np.float64, st.integers(0, 40), elements=FLOATS))
    mask = draw(hnp.arrays(np.bool_, len(values) if draw(st.booleans()) else 0))
    bounds = st.tuples(st.integers(0, len(values)), st.integers(0, len(values)))
    slices = np.array(draw(st.lists(bounds, min_size=1, max_size=9)), np.int64)
    return values, mask, (np.ascontiguousarray(slices[:, 0]), np.ascontiguousarray(slices[:, 1]))


@given(rows())
def test_sums_and_moments_are_their_twins(drawn: tuple[Float64Array, BoolArray, Slices]) -> None:
    values, mask, (starts, stops) = drawn
    for kernel, results in ((window_sums, 1), (window_moments, 2)):
        found = []
        for run in (kernel, kernel.twin):
            counts, out = np.full(len(starts), -1, np.int64), [np.zeros(len(starts)) for _ in range(results)]
            run(values, mask, starts, stops, counts, *out)
            found.append((counts, out))
        assert found[0][0].tolist() == found[1][0].tolist()
        for one, other in zip(found[0][1], found[1][1], strict=True):
            np.testing.assert_array_equal(one, other)
            assert np.signbit(one[one == 0]).tolist() == np.signbit(other[other == 0]).tolist()


@given(rows())
def test_positions_are_those_of_the_twins(drawn: tuple[Float64Array, BoolArray, Slices]) -> None:
    values, mask, (starts, stops) = drawn
    whole = np.where(np.isnan(values), 0, values).astype(np.int64)
    everywhere = mask if len(mask) else np.ones(len(values), np.bool_)
    for kernel, arguments in (
        (window_extremes_f64, (values, mask)),
        (window_extremes_i64, (whole, mask)),
        (window_edges, (everywhere,)),
    ):
        found = []
        for run in (kernel, kernel.twin):
            first, last = np.full(len(starts), -7, np.int64), np.full(len(starts), -7, np.int64)
            run(*arguments, starts, stops, first, last)
            found.append((first.tolist(), last.tolist()))
        assert found[0] == found[1]


def test_deviations_of_large_numbers_are_not_lost() -> None:
    """The numbers are large and differ by little, so a formula with sums of squares would lose the deviations."""
    values = 1e9 + np.arange(1_001) % 3
    counts, means, squares = np.zeros(1, np.int64), np.zeros(1), np.zeros(1)
    window_moments(values, np.zeros(0, np.bool_), np.zeros(1, np.int64), np.array([1_001]), counts, means, squares)
    expected = sum((value % 3 - 1_000 / 1_001) ** 2 for value in range(1_001))
    assert abs(squares[0] - expected) < 1e-3


WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(2**53, 2**53 + 4)


@pytest.mark.slow
@given(hnp.arrays(np.int64, st.integers(1, 20), elements=WHOLE), st.data())
def test_runs_of_like_values_are_those_of_the_twins(whole: Int64Array, data: st.DataObject) -> None:
    mask = data.draw(hnp.arrays(np.bool_, len(whole) if data.draw(st.booleans()) else 0))
    delta = data.draw(st.integers(1, 3) | st.integers(1, 2**64 - 1))
    has_base = data.draw(st.integers(0, 1))
    floats = data.draw(hnp.arrays(np.float64, len(whole), elements=FLOATS))
    for kernel, arguments in (
        (variation_starts, (floats, mask, float(delta), 0.5, has_base)),
        (variation_starts_i64, (whole, mask, delta, 2**53, has_base)),
    ):
        found = []
        for run in (kernel, kernel.twin):
            begins = np.zeros(len(whole), np.bool_)
            base = run(*arguments, begins)
            # The base is compared only if the last row is valid.
            found.append((begins.tolist(), repr(base) if len(mask) == 0 or mask[-1] else ""))
        assert found[0] == found[1]
