"""Arithmetic with integer results, compared with Python's integers, which have no limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saros_engine.expressions.integer_arithmetic import absolute, distances, negated, subtracted, sums
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import NUMPY_DTYPE, DataType, Scalar

BITS = {DataType.INT32: 31, DataType.INT64: 63}


@st.composite
def columns(draw: st.DrawFn, *, count: int = 1) -> tuple[DataType, list[list[int]]]:
    """Draw a type, and columns of equal length whose values are often close to the type's limits."""
    type_ = draw(st.sampled_from(list(BITS)))
    limit = 1 << BITS[type_]
    values = st.one_of(
        st.integers(-limit, limit - 1), st.integers(-limit, 2 - limit), st.integers(limit - 3, limit - 1), st.just(0)
    )
    rows = draw(st.integers(0, 5))
    return type_, [draw(st.lists(values, min_size=rows, max_size=rows)) for _ in range(count)]


def outcome(compute: Callable[[], Sequence[Scalar]]) -> list[Scalar] | int:
    """Return the results of `compute`, the time that its overflow error names, or -1 for another error."""
    try:
        return list(compute())
    except UserMistake as error:
        return int(str(error).split(" at time ")[1].split()[0]) if error.code == 750 else -1


def expected(type_: DataType, results: list[int]) -> list[int] | int:
    """Return the results, or the time of the first result that does not fit (10 times its row number)."""
    limit = 1 << BITS[type_]
    return next((10 * row for row, value in enumerate(results) if not -limit <= value < limit), results)


@given(columns(count=2))
def test_differences_are_exact_or_an_error(drawn: tuple[DataType, list[list[int]]]) -> None:
    type_, (left, right) = drawn
    a, b = (np.array(values, NUMPY_DTYPE[type_]) for values in (left, right))
    times = np.arange(len(left)) * 10
    exact = [x - y for x, y in zip(left, right, strict=True)]
    assert expected(type_, exact) == outcome(lambda: subtracted(a, b, times).tolist())
    # The absolute difference fits if both the difference and its negation fit; then there is no error.
    both = [max(abs(x), -x) for x in exact]
    assert isinstance(expected(type_, both), int) == isinstance(outcome(lambda: distances(a, b, times).tolist()), int)
    if isinstance(expected(type_, both), list):
        assert both == distances(a, b, times).tolist()


@given(columns())
def test_opposites_and_absolute_values_are_exact_or_an_error(drawn: tuple[DataType, list[list[int]]]) -> None:
    type_, (values,) = drawn
    column = Column(type_, np.array(values, NUMPY_DTYPE[type_]))
    block = Block.timed(np.arange(len(values)) * 10, [column])
    assert expected(type_, [-x for x in values]) == outcome(lambda: negated(column, block).to_list())
    assert expected(type_, [abs(x) for x in values]) == outcome(lambda: absolute(column, block).to_list())


@given(columns(), st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True))
def test_sums_are_exact_or_an_error(drawn: tuple[DataType, list[list[int]]], begins: list[int]) -> None:
    _, (values,) = drawn
    starts = sorted({0, *begins} & set(range(len(values))))
    if not starts:
        return
    ends = [*starts[1:], len(values)]
    exact = [sum(values[start:end]) for start, end in zip(starts, ends, strict=True)]
    times = np.arange(len(starts)) * 10
    assert expected(DataType.INT64, exact) == outcome(
        lambda: sums(np.array(values, np.int64), np.array(starts), times).tolist()
    )


@pytest.mark.parametrize("compute", [negated, absolute])
@pytest.mark.parametrize("type_", list(BITS))
def test_a_null_never_fails_whatever_is_in_its_slot(
    compute: Callable[[Column, Block], Column], type_: DataType
) -> None:
    column = Column(type_, np.array([-(1 << BITS[type_]), 0], NUMPY_DTYPE[type_]), np.array([False, True]))
    assert [None, 0] == compute(column, Block.timed(np.array([0, 10]), [column])).to_list()
