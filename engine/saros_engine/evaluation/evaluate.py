"""Expressions over blocks: each bound expression is compiled to a closure that returns one column per block.

    compiled = compile_expression(expression)        once per operator: the closure keeps the state of series functions
    column = compiled(block)                         block.rows values; the blocks are passed in the order of the rows

Null logic is three-valued (Kleene): a comparison with null is null, `false AND null` is false. Arithmetic is done in
double precision and never fails: division by zero gives an infinity or NaN, `%` has the sign of the dividend. However,
`/`, `%` and `-x` of integers have integer results (`integer_arithmetic.py`). Comparisons of integers with integers or
floating-point constants are exact, and so are comparisons of a FLOAT with a constant (`exact_bounds.py`). Integers are
compared with FLOAT and DOUBLE columns as doubles. Text is compared by bytes, which is code point order. -0.0 is less
than 0.0 if the binder has set `signed_zeros`, and otherwise equal to it.

An expression that can fail (a CAST, arithmetic with integer results) is computed only for the rows that need it, so
that a condition can guard it. Evaluation is from left to right. The right side of AND or OR is computed only for rows
that the left side leaves undecided, a condition of CASE only for rows that no earlier condition matched, and a result
of CASE only for rows that select it. In a predicate, null counts as false. Series functions see all rows, and any row
can make them fail.

Errors: UserMistake (a value that CAST refuses, a division by zero, an integer result that does not fit, a bad regular
expression). A compiled expression is used by one operator, and therefore by one thread at a time; it has no state
unless it contains series functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from saros_engine.expressions.conversion import always_converts, check_conversion, convert
from saros_engine.expressions.exact_bounds import as_exact_comparison, is_float
from saros_engine.expressions.integer_arithmetic import divided, negated
from saros_engine.expressions.text import check_pattern, compare_text, is_in, match_text, repeat_text
from saros_engine.functions.function import FunctionKind
from saros_engine.functions.registry import function_of
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
    PlanParameter,
)
from saros_grammar.syntax.ast import BinaryOperator
from saros_grammar.templates import compile_template
from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.types import INTEGER_TYPES, NUMPY_DTYPE, BoolArray, DataType, NumericArray, Scalar

Compiled = Callable[[Block], Column]

_ARITHMETIC = {
    BinaryOperator.ADD: np.add,
    BinaryOperator.SUBTRACT: np.subtract,
    BinaryOperator.MULTIPLY: np.multiply,
    BinaryOperator.DIVIDE: np.divide,
    BinaryOperator.MODULO: np.fmod,
}
#: The NumPy function and the Arrow name of each comparison.
_COMPARISON = {
    BinaryOperator.EQUAL: (np.equal, "equal"),
    BinaryOperator.NOT_EQUAL: (np.not_equal, "not_equal"),
    BinaryOperator.LESS: (np.less, "less"),
    BinaryOperator.LESS_EQUAL: (np.less_equal, "less_equal"),
    BinaryOperator.GREATER: (np.greater, "greater"),
    BinaryOperator.GREATER_EQUAL: (np.greater_equal, "greater_equal"),
}


def evaluate(expression: Bound, block: Block) -> Column:
    """Return the value of the expression for each row of a block. Series functions restart with each call."""
    return compile_expression(expression)(block)


def compile_expression(expression: Bound) -> Compiled:
    """Compile an expression. Raises UserMistake for errors that do not depend on the data."""
    match expression:
        case InputColumn(index, _):
            return lambda block: block.columns[index]
        case InputTime():
            return lambda block: Column(DataType.TIMESTAMP, block.times)
        case Constant(value, type_):
            return lambda block: constant_column(type_, value, block.rows)
        case Negate(operand, type_):
            return _negate(compile_expression(operand), type_)
        case Not(operand):
            return _not(compile_expression(operand))
        case Operation():
            return _operation(expression)
        case FunctionCall():
            return _function(expression)
        case NullTest(operand, negated):
            return _null_test(compile_expression(operand), negated)
        case Membership():
            return _membership(expression)
        case PatternMatch():
            return _pattern(expression)
        case Conversion(operand, type_, zone, unit):
            check_conversion(operand.type, type_)
            inner = compile_expression(operand)
            return lambda block: convert(inner(block), type_, zone, unit)
        case Choice():
            return _choice(expression)
        case PlanParameter(number, _):
            raise AssertionError(f"value {number} is not there yet")


def compile_predicate(expression: Bound) -> Callable[[Block], BoolArray]:
    """Compile a BOOLEAN expression to a function that returns the mask of the rows where the expression is true."""
    if isinstance(expression, Operation) and expression.operator is BinaryOperator.AND:
        left, right = compile_predicate(expression.left), _holding(expression.right)
        return lambda block: right(block, left(block))
    compiled = compile_expression(expression)

    def holds(block: Block) -> BoolArray:
        column = compiled(block)
        return column.numbers if column.valid is None else column.numbers & column.valid

    return holds


def constant_column(type_: DataType, value: Scalar, count: int) -> Column:
    """Return a column with `count` copies of a value; None is a null."""
    if value is None:
        return Column.nulls(type_, count)
    if type_.is_text:
        assert isinstance(value, (str, bytes))
        return Column(type_, repeat_text(value, count))
    return Column(type_, np.full(count, value, NUMPY_DTYPE[type_]))


def both_valid(left: BoolArray | None, right: BoolArray | None) -> BoolArray | None:
    """Return the mask of rows that are valid in both masks."""
    if left is None or right is None:
        return right if left is None else left
    return left & right


# ---------------------------------------------------------------------------------------------- operators


def _negate(operand: Compiled, type_: DataType) -> Compiled:
    def run(block: Block) -> Column:
        column = operand(block)
        values = column.numbers.astype(NUMPY_DTYPE[type_], copy=False)
        return negated(Column(type_, values, column.valid), block)

    return run


def _not(operand: Compiled) -> Compiled:
    def run(block: Block) -> Column:
        column = operand(block)
        return Column(DataType.BOOLEAN, ~column.numbers, column.valid)

    return run


def _operation(expression: Operation) -> Compiled:
    if expression.operator in _ARITHMETIC:
        return _arithmetic(expression)
    if expression.operator in _COMPARISON:
        return _comparison(expression)
    return _logic(expression)


def _logic(expression: Operation) -> Compiled:
    conjunction = expression.operator is BinaryOperator.AND
    logic = _and if conjunction else _or
    left = compile_expression(expression.left)
    if not can_fail(expression.right):
        plain = compile_expression(expression.right)
        return lambda block: logic(left(block), plain(block))
    right = _computed_for(expression.right)

    def run(block: Block) -> Column:
        known = left(block)
        decided = known.present & (~known.numbers if conjunction else known.numbers)
        return logic(known, _scatter_mask(right(block, ~decided), ~decided))

    return run


def _scatter_mask(column: Column, mask: BoolArray) -> Column:
    """Expand a BOOLEAN column of the rows in a mask to all rows. The rows outside the mask become null."""
    values, present = np.zeros(len(mask), np.bool_), np.zeros(len(mask), np.bool_)
    values[mask], present[mask] = column.numbers, column.present
    return Column(DataType.BOOLEAN, values, present)


def _arithmetic(expression: Operation) -> Compiled:
    if expression.type is DataType.INT64:
        return _whole_arithmetic(expression)
    sides = _double_side(expression.left), _double_side(expression.right)
    return _of_numbers(_ARITHMETIC[expression.operator], *sides, DataType.DOUBLE)


def _whole_arithmetic(expression: Operation) -> Compiled:
    left, right = _number_side(expression.left), _number_side(expression.right)

    def run(block: Block) -> Column:
        (a, a_valid), (b, b_valid) = left(block), right(block)
        return divided(expression.operator, a, b, both_valid(a_valid, b_valid), block)

    return run


_Side = Callable[[Block], tuple[NumericArray | float | int, BoolArray | None]]


def _double_side(expression: Bound) -> _Side:
    """Compile one operand to a function that returns doubles. A constant stays a single number."""
    if isinstance(expression, Constant) and isinstance(expression.value, (int, float)):
        number = float(expression.value)
        return lambda _: (number, None)
    compiled = compile_expression(expression)

    def run(block: Block) -> tuple[NumericArray, BoolArray | None]:
        column = compiled(block)
        return column.numbers.astype(np.float64, copy=False), column.valid

    return run


def _comparison(expression: Operation) -> Compiled:
    if expression.left.type.is_text or expression.right.type.is_text:
        return _text_comparison(expression)
    expression = as_exact_comparison(expression)
    sides = _number_side(expression.left), _number_side(expression.right)
    function: Callable[..., object] = _COMPARISON[expression.operator][0]
    if expression.signed_zeros and _may_be_zero(expression.left) and _may_be_zero(expression.right):
        function = _with_signed_zeros(function)
    return _of_numbers(function, *sides, DataType.BOOLEAN)


def _may_be_zero(side: Bound) -> bool:
    """Return whether a side of a comparison may be zero: False only for a constant that is not zero."""
    return not isinstance(side, Constant) or side.value == 0


def _with_signed_zeros(function: Callable[..., Any]) -> Callable[..., BoolArray]:
    """Return the comparison, changed so that -0.0 is less than 0.0. Equal numbers with different signs are zeros."""

    def run(a: NumericArray | float, b: NumericArray | float) -> BoolArray:
        values = np.asarray(function(a, b))
        a_signed, b_signed = np.signbit(a), np.signbit(b)
        zeros = np.equal(a, b) & (a_signed != b_signed)
        # The arguments are swapped because the lesser of two zeros has the sign bit.
        return np.where(zeros, function(b_signed, a_signed), values) if zeros.any() else values

    return run


def _of_numbers(function: Callable[..., object], left: _Side, right: _Side, type_: DataType) -> Compiled:
    """Compile a function that is applied to both sides row by row. The result is null if either side is null."""

    def run(block: Block) -> Column:
        (a, a_valid), (b, b_valid) = left(block), right(block)
        with np.errstate(all="ignore"):
            values = np.asarray(function(a, b))
        if values.ndim == 0:
            values = np.full(block.rows, values)
        return Column(type_, values, both_valid(a_valid, b_valid))

    return run


def _number_side(expression: Bound) -> _Side:
    """Compile one operand without changing its type.

    A constant stays a single number, which NumPy converts for the comparison.
    """
    if isinstance(expression, Constant) and isinstance(expression.value, (bool, int, float)):
        number = expression.value
        return lambda _: (number, None)
    compiled = compile_expression(expression)

    def run(block: Block) -> tuple[NumericArray, BoolArray | None]:
        column = compiled(block)
        return column.numbers, column.valid

    return run


def _text_comparison(expression: Operation) -> Compiled:
    name = _COMPARISON[expression.operator][1]
    left, right = _text_side(expression.left), _text_side(expression.right)

    def run(block: Block) -> Column:
        (a, a_valid), (b, b_valid) = left(block), right(block)
        if isinstance(a, bytes) and isinstance(b, bytes):
            a = repeat_text(a, block.rows)
        return Column(DataType.BOOLEAN, compare_text(name, a, b), both_valid(a_valid, b_valid))

    return run


def _text_side(expression: Bound) -> Callable[[Block], tuple[TextArray | bytes, BoolArray | None]]:
    if isinstance(expression, Constant) and isinstance(expression.value, (str, bytes)):
        raw = _to_bytes(expression.value)
        return lambda _: (raw, None)
    compiled = compile_expression(expression)

    def run(block: Block) -> tuple[TextArray, BoolArray | None]:
        column = compiled(block)
        return column.text, column.valid

    return run


def _to_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _and(left: Column, right: Column) -> Column:
    if left.valid is None and right.valid is None:
        return Column(DataType.BOOLEAN, left.numbers & right.numbers)
    refuted = (left.present & ~left.numbers) | (right.present & ~right.numbers)
    known = left.present & right.present
    return Column(DataType.BOOLEAN, known & ~refuted, known | refuted)


def _or(left: Column, right: Column) -> Column:
    if left.valid is None and right.valid is None:
        return Column(DataType.BOOLEAN, left.numbers | right.numbers)
    proven = (left.present & left.numbers) | (right.present & right.numbers)
    return Column(DataType.BOOLEAN, proven, (left.present & right.present) | proven)


# ---------------------------------------------------------------------------------------------- tests


def _null_test(operand: Compiled, negated: bool) -> Compiled:
    def run(block: Block) -> Column:
        present = operand(block).present
        return Column(DataType.BOOLEAN, present if negated else ~present)

    return run


def _membership(expression: Membership) -> Compiled:
    operand = compile_expression(expression.operand)
    # In SQL, if one of the items is null, the result for a value that is not found is null.
    with_null = None in expression.items
    found = _member_test(expression)

    def run(block: Block) -> Column:
        column = operand(block)
        values, valid = found(column), column.valid
        if with_null:
            valid = values if valid is None else values & valid
        return Column(DataType.BOOLEAN, ~values if expression.negated else values, valid)

    return run


def _member_test(expression: Membership) -> Callable[[Column], BoolArray]:
    items = [item for item in expression.items if item is not None]
    if expression.operand.type.is_text:
        texts = [_to_bytes(item) for item in items if isinstance(item, (str, bytes))]
        return lambda column: is_in(column.text, texts)
    dtype = np.dtype(NUMPY_DTYPE[expression.operand.type])
    wanted = np.array([item for item in items if _can_be(item, dtype)], dtype)
    signs = set(np.signbit(wanted[wanted == 0]).tolist()) if expression.signed_zeros else set()
    if len(signs) != 1:  # no zero, both zeros, or signs do not matter
        return lambda column: np.isin(column.numbers, wanted)
    (negative,) = signs

    def found(column: Column) -> BoolArray:
        numbers = column.numbers
        other_zero: BoolArray = (numbers == 0) & (np.signbit(numbers) != negative)
        return np.isin(numbers, wanted) & ~other_zero

    return found


def _can_be(item: Scalar, dtype: np.dtype[Any]) -> bool:
    """Return whether a column of the type can contain this value.

    For example, no integer equals 2.5, and no FLOAT equals 0.1.
    """
    assert isinstance(item, (int, float))
    if dtype == np.float32:
        return is_float(item)
    if dtype.kind != "i":
        return True
    bounds = np.iinfo(dtype)
    return bounds.min <= item <= bounds.max and item == int(item)


def _pattern(expression: PatternMatch) -> Compiled:
    check_pattern(expression.pattern, regexp=expression.regexp)
    operand = compile_expression(expression.operand)

    def run(block: Block) -> Column:
        column = operand(block)
        found = match_text(column.text, expression.pattern, regexp=expression.regexp)
        return Column(DataType.BOOLEAN, ~found if expression.negated else found, column.valid)

    return run


# ---------------------------------------------------------------------------------------------- CASE, functions


def _choice(expression: Choice) -> Compiled:
    conditions = [_holding(condition) for condition, _ in expression.whens]
    results = [result for _, result in expression.whens]
    otherwise = expression.otherwise or Constant(None, expression.type)
    branches = [_branch(result, expression.type) for result in (*results, otherwise)]

    def run(block: Block) -> Column:
        # choice[i] is the branch of row i: the branch of the first condition that holds, or otherwise the last branch.
        choice = np.full(block.rows, len(conditions), np.int64)
        for number, condition in enumerate(conditions):
            choice[condition(block, choice == len(conditions))] = number
        parts = [branch(block, choice == number) for number, branch in enumerate(branches)]
        chosen = np.argsort(choice, kind="stable")
        order = np.empty(block.rows, np.int64)
        order[chosen] = np.arange(block.rows)
        return Column.concat(parts).take(order)

    return run


def _branch(result: Bound, type_: DataType) -> Callable[[Block, BoolArray], Column]:
    """Compile a result of CASE to a function that computes the result only for the rows of a mask."""
    computed = _computed_for(result)

    def run(block: Block, mask: BoolArray) -> Column:
        column = computed(block, mask)
        if column.type is type_:
            return column
        if type_.is_text:
            return Column(type_, column.values, column.valid)
        return Column(type_, column.numbers.astype(NUMPY_DTYPE[type_]), column.valid)

    return run


# ---------------------------------------------------------------------------------------------- masked evaluation


def can_fail(expression: Bound) -> bool:
    """Return whether evaluation can fail for some values."""
    match expression:
        case Conversion(operand, type_) if not always_converts(operand.type, type_):
            return True
        case Operation(BinaryOperator.DIVIDE | BinaryOperator.MODULO, _, divisor, DataType.INT64):
            harmless = isinstance(divisor, Constant) and divisor.value not in (None, 0, -1)
            if not harmless:
                return True
        case Negate(_, type_) if type_ in INTEGER_TYPES:
            return True
        case FunctionCall(_, _, type_) if type_ in INTEGER_TYPES and function_of(expression).overflows:
            return True
    return any(can_fail(part) for part in parts_of(expression))


def _computed_for(expression: Bound) -> Callable[[Block, BoolArray], Column]:
    """Compile an expression to a function that returns the values at the rows of a mask.

    If the expression can fail, it is not computed for other rows.
    """
    if not can_fail(expression):
        compiled = compile_expression(expression)
        return lambda block, mask: compiled(block).compress(mask)
    widened, rest = _series_first(expression)
    guarded = compile_expression(rest)
    return lambda block, mask: guarded(widened(block).compress(mask))


def _holding(expression: Bound) -> Callable[[Block, BoolArray], BoolArray]:
    """Compile a BOOLEAN expression to a function that narrows a mask to the rows where the expression is true.

    If the expression can fail, it is not computed for rows outside the mask.
    """
    if not can_fail(expression):
        holds = compile_predicate(expression)
        return lambda block, mask: mask & holds(block)
    widened, rest = _series_first(expression)
    guarded = compile_predicate(rest)

    def run(block: Block, mask: BoolArray) -> BoolArray:
        found = mask.copy()
        found[mask] = guarded(widened(block).compress(mask))
        return found

    return run


def _series_first(expression: Bound) -> tuple[Callable[[Block], Block], Bound]:
    """Split an expression into its series functions and the rest.

    Return a function that appends the results of the series functions to a block, and the expression that reads them
    from there.
    """
    calls = list(_series_calls(expression))
    places = {id(call): number for number, call in enumerate(calls)}
    rebuild = compile_template(expression, lambda part: places.get(id(part)))
    if rebuild is None:
        return lambda block: block, expression
    compiled = [compile_expression(call) for call in calls]
    # Columns are numbered from the end, since the number of columns is not known here.
    rest: Bound = rebuild([InputColumn(number - len(calls), call.type) for number, call in enumerate(calls)])
    return lambda block: Block(block.time, (*block.columns, *(run(block) for run in compiled)), block.rows), rest


def _series_calls(expression: Bound) -> Iterator[FunctionCall]:
    """Yield the outermost calls of series functions."""
    if isinstance(expression, FunctionCall) and function_of(expression).kind is FunctionKind.SERIES:
        yield expression
        return
    for part in parts_of(expression):
        yield from _series_calls(part)


def looks_back(expression: Bound) -> bool:
    """Return whether a row's value may depend on earlier rows."""
    return next(_series_calls(expression), None) is not None


def parts_of(expression: Bound) -> tuple[Bound, ...]:
    """Return the direct subexpressions."""
    match expression:
        case Negate() | Not() | NullTest() | Membership() | PatternMatch() | Conversion():
            return (expression.operand,)
        case Operation():
            return (expression.left, expression.right)
        case FunctionCall():
            return expression.arguments
        case Choice():
            pairs = tuple(part for when in expression.whens for part in when)
            return pairs if expression.otherwise is None else (*pairs, expression.otherwise)
        case _:
            return ()


def _function(expression: FunctionCall) -> Compiled:
    function = function_of(expression)
    arguments = [compile_expression(argument) for argument in expression.arguments]
    evaluate_columns = function.make(expression)

    def run(block: Block) -> Column:
        columns = [argument(block) for argument in arguments]
        with np.errstate(all="ignore"):  # without warnings, overflows become infinities, and undefined results NaN
            return evaluate_columns(columns, block)

    return run
