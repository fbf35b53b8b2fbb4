"""Expressions over blocks: three-valued logic, arithmetic in double, comparisons, CASE, CAST, functions."""

from __future__ import annotations

import itertools
import math
import operator

import numpy as np
import pytest
from engine.corpus.values import liked
from hypothesis import example, given
from hypothesis import strategies as st

from saros_engine.evaluation.evaluate import evaluate
from saros_engine.expressions.text import like_pattern, match_text
from saros_engine.plan.expression import (
    Bound,
    Choice,
    Constant,
    Conversion,
    FunctionCall,
    InputColumn,
    InputTime,
    Membership,
    Negate,
    Not,
    NullTest,
    Operation,
    PatternMatch,
)
from saros_grammar.syntax.ast import BinaryOperator as Op
from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType, Scalar

BOOL, INT, LONG, FLOAT, DOUBLE, TEXT = (
    DataType.BOOLEAN,
    DataType.INT32,
    DataType.INT64,
    DataType.FLOAT,
    DataType.DOUBLE,
    DataType.TEXT,
)
THREE: tuple[bool | None, ...] = (True, False, None)


def run(expression: Bound, *columns: Column) -> list[Scalar]:
    rows = len(columns[0]) if columns else 1
    return evaluate(expression, Block.timed(np.arange(rows) * 10, columns)).to_list()


def column(type_: DataType, *values: Scalar) -> Column:
    return Column.of(type_, list(values))


def test_and_or_not_are_kleenes() -> None:
    pairs = list(itertools.product(THREE, THREE))
    left, right = (column(BOOL, *(p[i] for p in pairs)) for i in (0, 1))
    a, b = InputColumn(0, BOOL), InputColumn(1, BOOL)
    expected_and = [False if False in p else None if None in p else True for p in pairs]
    expected_or = [True if True in p else None if None in p else False for p in pairs]
    assert expected_and == run(Operation(Op.AND, a, b, BOOL), left, right)
    assert expected_or == run(Operation(Op.OR, a, b, BOOL), left, right)
    assert [False, True, None] == run(Not(a), column(BOOL, *THREE))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (Op.ADD, [9.0, -5.0, None, 1.0]),
        (Op.SUBTRACT, [5.0, -9.0, None, 1.0]),
        (Op.MULTIPLY, [14.0, -14.0, None, 0.0]),
        (Op.DIVIDE, [3.5, -3.5, None, math.inf]),
        (Op.MODULO, [1.0, -1.0, None, math.nan]),
    ],
)
def test_arithmetic_is_in_double_and_never_fails(operator: Op, expected: list[Scalar]) -> None:
    got = run(
        Operation(operator, InputColumn(0, INT), InputColumn(1, INT), DOUBLE),
        column(INT, 7, -7, None, 1),
        column(INT, 2, 2, 2, 0),
    )
    assert repr(expected) == repr(got)
    assert [-7.0, None] == run(Negate(InputColumn(0, INT), DOUBLE), column(INT, 7, None))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (Op.LESS, [True, False, False, None]),
        (Op.LESS_EQUAL, [True, True, False, None]),
        (Op.EQUAL, [False, True, False, None]),
        (Op.NOT_EQUAL, [True, False, True, None]),
        (Op.GREATER_EQUAL, [False, True, True, None]),
        (Op.GREATER, [False, False, True, None]),
    ],
)
def test_comparisons_of_numbers_and_texts(operator: Op, expected: list[Scalar]) -> None:
    numbers = column(INT, 1, 2, 3, None), column(DOUBLE, 2.0, 2.0, 2.0, 2.0)
    assert expected == run(Operation(operator, InputColumn(0, INT), InputColumn(1, DOUBLE), BOOL), *numbers)
    texts = column(TEXT, "a", "b", "bb", None)
    assert expected == run(Operation(operator, InputColumn(0, TEXT), Constant("b", TEXT), BOOL), texts)


def test_large_integers_are_compared_exactly() -> None:
    values = column(LONG, 2**53, 2**53 + 1)
    assert [False, True] == run(Operation(Op.EQUAL, InputColumn(0, LONG), Constant(2**53 + 1, LONG), BOOL), values)


EXACT = {
    Op.EQUAL: operator.eq,
    Op.NOT_EQUAL: operator.ne,
    Op.LESS: operator.lt,
    Op.LESS_EQUAL: operator.le,
    Op.GREATER: operator.gt,
    Op.GREATER_EQUAL: operator.ge,
}
WIDTHS = {INT: 31, LONG: 63, DataType.TIMESTAMP: 63}
LARGE = [sign * 2**power for power in (24, 31, 53, 63) for sign in (1, -1)]
#: Values in ranges where doubles are sparse, values at the limits of types, and values between integers.
CONSTANTS = [math.nan, math.inf, -math.inf, -0.0, 0.5, -0.5, 5e-324, 1e300, *map(float, LARGE)]
CONSTANTS += [math.nextafter(n, way) for n in LARGE for way in (math.inf, -math.inf)]


@st.composite
def whole_numbers(draw: st.DrawFn) -> tuple[DataType, list[int | None]]:
    """Draw a type and some of its values, including its limits and null."""
    type_ = draw(st.sampled_from(list(WIDTHS)))
    least, greatest = -(1 << WIDTHS[type_]), (1 << WIDTHS[type_]) - 1
    near = st.sampled_from(LARGE).flatmap(lambda n: st.integers(n - 2, n + 2)) | st.integers(-3, 3)
    values = draw(st.lists(near.filter(lambda n: least <= n <= greatest) | st.integers(least, greatest), max_size=5))
    return type_, [least, greatest, None, *values]


@given(whole_numbers(), st.sampled_from(CONSTANTS) | st.floats(), st.sampled_from(list(EXACT)), st.booleans())
def test_whole_numbers_and_floating_constants_are_compared_as_pythons(
    numbers: tuple[DataType, list[int | None]], value: float, asked: Op, turned: bool
) -> None:
    type_, values = numbers
    sides = InputColumn(0, type_), Constant(value, DOUBLE)
    exact = EXACT[asked]
    expected = [None if n is None else exact(value, n) if turned else exact(n, value) for n in values]
    comparison = Operation(asked, *(sides[::-1] if turned else sides), BOOL)
    assert expected == run(comparison, column(type_, *values))


@given(whole_numbers(), st.lists(st.sampled_from(CONSTANTS) | st.floats(), min_size=1, max_size=3), st.booleans())
def test_whole_numbers_are_found_among_floating_constants_as_by_python(
    numbers: tuple[DataType, list[int | None]], items: list[float], negated: bool
) -> None:
    type_, values = numbers
    expected = [None if n is None else any(n == item for item in items) != negated for n in values]
    assert expected == run(Membership(InputColumn(0, type_), tuple(items), negated), column(type_, *values))


@pytest.mark.parametrize("type_", [FLOAT, DOUBLE])
def test_floating_numbers_take_a_whole_constant_as_a_double(type_: DataType) -> None:
    whole = Operation(Op.EQUAL, InputColumn(0, type_), Constant(2**53 + 1, LONG), BOOL)
    assert [True, False, None] == run(whole, column(type_, 2.0**53, 2.0**54, None))


#: FLOATs; further below, doubles that equal these FLOATs or are near them.
FLOATS = [0.0, 1.0, 2.0**24, 3.4028234663852886e38, 1.401298464324817e-45, math.inf]
FLOATS = [sign * n for n in FLOATS for sign in (1, -1)]
BESIDE_FLOATS = [math.nan, 0.1, 1e40, -1e40, 1e-60, -1e-60, 2**24 + 1, 2**63 - 1, *FLOATS]
BESIDE_FLOATS += [math.nextafter(n, way) for n in FLOATS for way in (math.inf, -math.inf)]


@given(
    st.lists(st.sampled_from(FLOATS) | st.floats(width=32), max_size=5),
    st.sampled_from(BESIDE_FLOATS) | st.floats(),
    st.sampled_from(list(EXACT)),
    st.booleans(),
)
def test_floats_and_constants_are_compared_as_doubles(
    values: list[float], value: float, asked: Op, turned: bool
) -> None:
    sides = InputColumn(0, FLOAT), Constant(value, LONG if isinstance(value, int) else DOUBLE)
    exact, other = EXACT[asked], float(value)
    expected = [exact(other, n) if turned else exact(n, other) for n in values]
    comparison = Operation(asked, *(sides[::-1] if turned else sides), BOOL)
    assert [*expected, None] == run(comparison, column(FLOAT, *values, None))


@example([-3.402823466385289e38])
@given(st.lists(st.sampled_from(BESIDE_FLOATS) | st.floats(), min_size=1, max_size=3))
def test_floats_are_found_among_doubles_as_by_python(items: list[float]) -> None:
    found = run(Membership(InputColumn(0, FLOAT), tuple(items), negated=False), column(FLOAT, *FLOATS))
    assert [any(n == float(item) for item in items) for n in FLOATS] == found


def test_a_whole_constant_beside_a_floating_one_and_columns_of_both() -> None:
    sides = Constant(2**63 - 1, LONG), Constant(2.0**63, DOUBLE)
    assert [True, False] == [*run(Operation(Op.LESS, *sides, BOOL)), *run(Operation(Op.EQUAL, *sides, BOOL))]
    both = Operation(Op.EQUAL, InputColumn(0, LONG), InputColumn(1, DOUBLE), BOOL)
    assert [True] == run(both, column(LONG, 2**63 - 1), column(DOUBLE, 2.0**63))


@pytest.mark.parametrize(("zero", "equal"), [(0.0, True), (-0.0, False)])
def test_a_whole_zero_is_greater_than_a_negative_zero_that_was_computed(zero: float, equal: bool) -> None:
    values, sides = column(LONG, -1, 0, 1, None), (InputColumn(0, LONG), Constant(zero, DOUBLE))
    assert [False, equal, False, None] == run(compared(Op.EQUAL, *sides), values)
    assert [False, True, True, None] == run(compared(Op.GREATER_EQUAL, *sides), values)


#: Both zeros, and values that comparisons with signed zeros must not affect.
NUMBERS = (-1.0, -0.0, 0.0, 1.0, math.nan, None)
ORDERED = {
    Op.EQUAL: [False, False, True, False, False, None],
    Op.NOT_EQUAL: [True, True, False, True, True, None],
    Op.LESS: [True, True, False, False, False, None],
    Op.LESS_EQUAL: [True, True, True, False, False, None],
    Op.GREATER: [False, False, False, True, False, None],
    Op.GREATER_EQUAL: [False, False, True, True, False, None],
}
TURNED = {Op.LESS: Op.GREATER, Op.LESS_EQUAL: Op.GREATER_EQUAL, Op.GREATER: Op.LESS, Op.GREATER_EQUAL: Op.LESS_EQUAL}


def compared(operator: Op, left: Bound, right: Bound) -> Operation:
    return Operation(operator, left, right, BOOL, signed_zeros=True)


@pytest.mark.parametrize("type_", [FLOAT, DOUBLE])
@pytest.mark.parametrize("zero", [Constant(0, LONG), Constant(0.0, DOUBLE), Constant(1e-60, DOUBLE)], ids=str)
@pytest.mark.parametrize("operator", list(ORDERED))
def test_signed_zeros_are_ordered_beside_a_constant(operator: Op, zero: Constant, type_: DataType) -> None:
    numbers, value = column(type_, *NUMBERS), InputColumn(0, type_)
    if zero.value == 1e-60:
        expected = [operator in (Op.LESS, Op.LESS_EQUAL, Op.NOT_EQUAL)] * 3
        assert expected == run(compared(operator, value, zero), numbers)[:3]
        return
    assert ORDERED[operator] == run(compared(operator, value, zero), numbers)
    assert ORDERED[operator] == run(compared(TURNED.get(operator, operator), zero, value), numbers)


@pytest.mark.parametrize("type_", [FLOAT, DOUBLE])
def test_signed_zeros_are_ordered_beside_the_constant_that_has_the_sign(type_: DataType) -> None:
    numbers, value, zero = column(type_, *NUMBERS), InputColumn(0, type_), Constant(-0.0, DOUBLE)
    assert [False, True, False, False, False, None] == run(compared(Op.EQUAL, value, zero), numbers)
    assert [True, False, False, False, False, None] == run(compared(Op.LESS, value, zero), numbers)
    assert [False, False, True, True, False, None] == run(compared(Op.LESS, zero, value), numbers)


@pytest.mark.parametrize("right", [INT, LONG, FLOAT, DOUBLE])
@pytest.mark.parametrize("left", [FLOAT, DOUBLE])
@pytest.mark.parametrize("operator", list(ORDERED))
def test_signed_zeros_are_ordered_beside_other_numbers(operator: Op, left: DataType, right: DataType) -> None:
    zeros = column(right, *[0] * len(NUMBERS))
    sides = InputColumn(0, left), InputColumn(1, right)
    assert ORDERED[operator] == run(compared(operator, *sides), column(left, *NUMBERS), zeros)
    turned = compared(TURNED.get(operator, operator), *sides[::-1])
    assert ORDERED[operator] == run(turned, column(left, *NUMBERS), zeros)


def test_signed_zeros_of_both_sides_are_ordered() -> None:
    a, b = column(DOUBLE, -0.0, -0.0, 0.0, 0.0, None), column(FLOAT, -0.0, 0.0, -0.0, 0.0, 0.0)
    sides = InputColumn(0, DOUBLE), InputColumn(1, FLOAT)
    assert [True, False, False, True, None] == run(compared(Op.EQUAL, *sides), a, b)
    assert [False, True, False, False, None] == run(compared(Op.LESS, *sides), a, b)
    assert [True, False, True, True, None] == run(compared(Op.GREATER_EQUAL, *sides), a, b)


def test_signed_zeros_of_constants_and_of_no_rows() -> None:
    zeros = Constant(-0.0, DOUBLE), Constant(0, LONG)
    assert [True] == run(compared(Op.LESS, *zeros))
    assert [False] == run(compared(Op.EQUAL, *zeros))
    assert [] == run(compared(Op.LESS, InputColumn(0, DOUBLE), zeros[1]), column(DOUBLE))


def test_zeros_are_one_where_nothing_else_is_said() -> None:
    zeros, value = column(DOUBLE, -0.0, 0.0), InputColumn(0, DOUBLE)
    assert [True, True] == run(Operation(Op.EQUAL, value, Constant(0, LONG), BOOL), zeros)
    assert [True, True] == run(Membership(value, (-0.0,), negated=False), zeros)


@pytest.mark.parametrize("type_", [FLOAT, DOUBLE])
@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ((0, 7), [False, False, True, False, False, None]),
        ((-0.0, 1), [False, True, False, True, False, None]),
        ((0, -0.0), [False, True, True, False, False, None]),
        ((1, 7), [False, False, False, True, False, None]),
        ((0.0, None), [None, None, True, None, None, None]),
    ],
)
def test_signed_zeros_are_two_items(items: tuple[Scalar, ...], expected: list[Scalar], type_: DataType) -> None:
    numbers, value = column(type_, *NUMBERS), InputColumn(0, type_)
    assert expected == run(Membership(value, items, negated=False, signed_zeros=True), numbers)
    inverse = [None if found is None else not found for found in expected]
    assert inverse == run(Membership(value, items, negated=True, signed_zeros=True), numbers)


def test_time_null_membership_and_patterns() -> None:
    texts = column(TEXT, "abc", "a_c", None)
    operand = InputColumn(0, TEXT)
    time = Operation(Op.GREATER, InputTime(), Constant(5, DataType.TIMESTAMP), BOOL)
    assert [False, True, True] == run(time, texts)
    assert [False, False, True] == run(NullTest(operand, negated=False), texts)
    assert [False, True, None] == run(Membership(operand, ("a_c", "x"), negated=False), texts)
    escaped, regexp = like_pattern("a!_c", "!")
    assert [False, True, None] == run(PatternMatch(operand, escaped, regexp, negated=False), texts)
    assert [True, True, None] == run(PatternMatch(operand, "a_c", regexp=False, negated=False), texts)
    assert [False, True, None] == run(PatternMatch(operand, "ab.", regexp=True, negated=True), texts)


@pytest.mark.parametrize("escape", [None, "\\", "!", "%"])
def test_like_matches_backslashes_and_escapes_at_all_places(escape: str | None) -> None:
    texts = ["".join(one) for length in range(4) for one in itertools.product("a\\%_!", repeat=length)]
    array = TextArray.of(texts)
    for pattern in texts:
        try:
            form, regexp = like_pattern(pattern, escape)
        except UserMistake:
            assert escape is not None
            continue
        fits = liked(pattern, escape)
        assert [fits(text) for text in texts] == match_text(array, form, regexp=regexp).tolist(), pattern


def test_like_takes_every_character_beside_an_escape() -> None:
    others = "".join(map(chr, range(1, 256))) + "\U0001f600"
    pattern = "".join("\\" + one if one in "%_\\" else one for one in others) + "_\\%"
    form, regexp = like_pattern(pattern, "\\")
    texts = TextArray.of([others + "\n%", others + "%", others + "\nx"])
    assert [True, False, False] == match_text(texts, form, regexp=regexp).tolist()


def test_case_takes_the_first_true_condition() -> None:
    value = InputColumn(0, INT)
    small = Operation(Op.LESS, value, Constant(10, INT), BOOL)
    middle = Operation(Op.LESS, value, Constant(20, INT), BOOL)
    choice = Choice(((small, Constant("s", TEXT)), (middle, Constant("m", TEXT))), None, TEXT)
    assert ["s", "m", None, None] == run(choice, column(INT, 1, 11, 99, None))


def test_casts_convert_or_name_the_value() -> None:
    texts = column(TEXT, "1", "2.5", None)
    assert [1.0, 2.5, None] == run(Conversion(InputColumn(0, TEXT), DOUBLE), texts)
    assert ["1.5", None] == run(Conversion(InputColumn(0, DOUBLE), TEXT), column(DOUBLE, 1.5, None))
    with pytest.raises(UserMistake, match=r"2\.5"):
        run(Conversion(InputColumn(0, TEXT), INT), texts)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("abs", -2.0, 2.0),
        ("ceil", 1.2, 2.0),
        ("floor", -1.2, -2.0),
        ("sqrt", 9.0, 3.0),
        ("exp", 0.0, 1.0),
        ("ln", 1.0, 0.0),
    ],
)
def test_functions_of_one_number(name: str, value: float, expected: float) -> None:
    call = FunctionCall(name, (InputColumn(0, DOUBLE),), DOUBLE)
    assert [expected, None] == run(call, column(DOUBLE, value, None))
