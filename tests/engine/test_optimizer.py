"""The optimiser's rules: each rule has a fixture file, and some tests check properties that hold for any data."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from engine.embedded_engine import Engine
from engine.plan_fixtures import cases, plan, tree
from hypothesis import example, given, settings
from hypothesis import strategies as st

from saros_engine.evaluation.evaluate import compile_predicate, evaluate
from saros_engine.optimizer import RULES, optimize
from saros_engine.optimizer.fold_constants import fold_constants, folded
from saros_engine.optimizer.gather_devices import gather_devices
from saros_engine.optimizer.gather_scans import gather_scans
from saros_engine.optimizer.keep_top_rows import keep_top_rows
from saros_engine.optimizer.push_value_bounds import push_value_bounds
from saros_engine.plan.expression import Bound, Constant, InputColumn, Negate, Not, Operation
from saros_engine.plan.plan import Field, Filter, Scan
from saros_grammar.syntax.ast import BinaryOperator
from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType
from saros_storage.scan.reading import ScanRequest

RULES_BY_NAME = {
    rule.__name__: rule for rule in (gather_scans, gather_devices, fold_constants, push_value_bounds, keep_top_rows)
}
CASES = [(name, text, expected) for name in RULES_BY_NAME for text, expected in cases(f"{name}.txt")]


@pytest.mark.parametrize(("rule", "text", "expected"), CASES)
def test_rules(rule: str, text: str, expected: str) -> None:
    assert expected.splitlines() == tree(RULES_BY_NAME[rule](plan(text).root))


def test_every_rule_has_a_fixture_file() -> None:
    assert [rule.__name__ for rule in RULES] == list(RULES_BY_NAME)


@pytest.mark.parametrize("text", sorted({text for _, text, _ in CASES}))
def test_a_second_pass_changes_nothing(text: str) -> None:
    once = optimize(plan(text).root)
    assert tree(once) == tree(optimize(once))


# ---------------------------------------------------------------------------------------------- bounds

COMPARISONS = [
    BinaryOperator.EQUAL,
    BinaryOperator.LESS,
    BinaryOperator.LESS_EQUAL,
    BinaryOperator.GREATER,
    BinaryOperator.GREATER_EQUAL,
    BinaryOperator.NOT_EQUAL,
]
BORDERS = [0, 1, -1, 5, 2**24, 2**24 + 1, 2**31 - 1, -(2**31), 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1]
BORDERS += [2**63 - 1, -(2**63)]
FLOATS = [0.1, -0.0, 5.5, 1e300, -1e300, math.inf, -math.inf, math.nan, *map(float, BORDERS)]
RANGES = {DataType.INT32: 2**31, DataType.INT64: 2**63}
TYPES = [DataType.INT32, DataType.INT64, DataType.FLOAT, DataType.DOUBLE]


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[DataType, list[int | float], Operation]:
    """Draw a column's type and values, and a comparison of the column with a constant on either side."""
    type_ = draw(st.sampled_from(TYPES))
    number = st.sampled_from(BORDERS) | st.integers(-10, 10)
    if type_ in RANGES:
        number = number.filter(lambda n: -RANGES[type_] <= n < RANGES[type_])
        values: list[int | float] = list(draw(st.lists(number, min_size=1, max_size=8)))
    else:
        fits = st.sampled_from([f for f in FLOATS if type_ is DataType.DOUBLE or not 1e38 < abs(f) < math.inf])
        values = list(draw(st.lists(fits, min_size=1, max_size=8)))
    if draw(st.booleans()):
        constant = Constant(draw(st.sampled_from(BORDERS) | st.integers(-10, 10)), DataType.INT64)
    else:
        constant = Constant(draw(st.sampled_from(FLOATS)), DataType.DOUBLE)
    sides = (InputColumn(0, type_), constant)
    left, right = sides if draw(st.booleans()) else sides[::-1]
    operator, signed_zeros = draw(st.sampled_from(COMPARISONS)), draw(st.booleans())
    return type_, values, Operation(operator, left, right, DataType.BOOLEAN, signed_zeros)


def equal(type_: DataType, constant: Constant) -> Operation:
    return Operation(BinaryOperator.EQUAL, InputColumn(0, type_), constant, DataType.BOOLEAN)


@settings(max_examples=50)
@given(comparisons())
@example((DataType.INT64, [2**53 + 1], equal(DataType.INT64, Constant(float(2**53), DataType.DOUBLE))))
@example((DataType.DOUBLE, [float(2**53)], equal(DataType.DOUBLE, Constant(2**53 + 1, DataType.INT64))))
@example((DataType.FLOAT, [0.1], equal(DataType.FLOAT, Constant(0.1, DataType.DOUBLE))))
def test_bounds_never_keep_a_row_from_the_filter_that_it_accepts(
    case: tuple[DataType, list[int | float], Operation],
) -> None:
    type_, values, comparison = case
    fields = (Field("s", type_),)
    pushed = push_value_bounds(
        Filter(Scan(ScanRequest("root.a.d", ("s",), (type_,), False), fields), comparison, fields)
    )
    assert isinstance(pushed, Filter)
    assert isinstance(pushed.child, Scan)
    assert comparison == pushed.predicate
    column = Column.of(type_, values)
    accepted = compile_predicate(comparison)(Block(None, (column,), len(values)))
    for value, kept in zip(column.to_list(), accepted.tolist(), strict=True):
        assert isinstance(value, (int, float))
        for bound in pushed.child.request.bounds if kept else ():
            assert bound.low is None or bound.low <= value
            assert bound.high is None or value <= bound.high


ROWS = 30_000
QUERIES = {
    "select count(s) from root.p.d where s > 5 and diff(s) > 0": 2,
    "select count(big) from root.p.d where big = 9007199254740992.0": 0,
    "select count(big) from root.p.d where big <= 9007199254740992.0": 0,
    "select count(big) from root.p.d where big > 9007199254740992.0": ROWS,
    "select count(big) from root.p.d where big < 9223372036854775808 and big > -9223372036854775809": ROWS,
    "select count(wide) from root.p.d where wide >= 9007199254740993": ROWS,
}


def test_answers_do_not_depend_on_what_scans_may_skip(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    steps = np.full(ROWS, 1)
    steps[:5], steps[-5:], steps[-3:] = 9, 8, 9  # all pages in the middle are below 5
    columns = {
        "s": Column(DataType.INT64, steps),
        "big": Column(DataType.INT64, np.full(ROWS, 2**53 + 1)),
        "wide": Column(DataType.DOUBLE, np.full(ROWS, 2.0**53)),
    }
    engine.engine.insert_columns("root.p.d", np.arange(ROWS), columns)
    try:
        for state in ("in memory", "in files"):
            assert QUERIES == {text: engine.ask(text)[1][0][0] for text in QUERIES}, state
            engine.ask("flush")
    finally:
        engine.close()


# ---------------------------------------------------------------------------------------------- constants

NUMBERS = st.integers(-5, 5).map(lambda n: Constant(n, DataType.INT64)) | st.just(InputColumn(0, DataType.INT64))
TRUTHS = st.sampled_from(
    [Constant(v, DataType.BOOLEAN) for v in (True, False, None)] + [InputColumn(1, DataType.BOOLEAN)]
)
ARITHMETIC = [BinaryOperator.ADD, BinaryOperator.SUBTRACT, BinaryOperator.MULTIPLY, BinaryOperator.DIVIDE]


def _sums(inner: st.SearchStrategy[Bound]) -> st.SearchStrategy[Bound]:
    operation = st.builds(Operation, st.sampled_from(ARITHMETIC), inner, inner, st.just(DataType.DOUBLE))
    return operation | inner.map(lambda operand: Negate(operand, operand.type))


SUMS = st.recursive(NUMBERS, _sums, max_leaves=5)
TESTS = st.builds(Operation, st.sampled_from(COMPARISONS), SUMS, SUMS, st.just(DataType.BOOLEAN))


def _logic(inner: st.SearchStrategy[Bound]) -> st.SearchStrategy[Bound]:
    both = st.sampled_from([BinaryOperator.AND, BinaryOperator.OR])
    return st.builds(Operation, both, inner, inner, st.just(DataType.BOOLEAN)) | inner.map(Not)


@settings(max_examples=50)
@given(st.recursive(TRUTHS | TESTS, _logic, max_leaves=6))
def test_folded_expressions_give_the_same_values(expression: Bound) -> None:
    numbers = Column.of(DataType.INT64, [1, None, 0, -3, None, 2])
    truths = Column.of(DataType.BOOLEAN, [True, True, False, False, None, None])
    block = Block(None, (numbers, truths), 6)
    assert evaluate(expression, block).to_list() == evaluate(folded(expression), block).to_list()
