"""Binding: turn an expression with full paths into a typed expression over numbered columns.

    root.a.d1.s1 + 1 > 2        ->  Operation(>, Operation(+, InputColumn 0, 1: DOUBLE), 2: BOOLEAN)

`Columns` maps paths and aggregate calls to columns. Before an aggregation, paths are columns of the scans; after it,
aggregate calls are columns of the aggregation's result. Error messages quote expressions as the user wrote them, as in
IoTDB.

The binder decides how a comparison treats signed zeros (see `plan/expression.py`). The decision depends on the
expression as written, not on its bound form: a call that generates points counts as computed, although its bound form
is an input column.

Pure: any thread.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import msgspec

from saros_engine.analysis.scope import any_part
from saros_engine.base.errors import NotSupportedError, SemanticError
from saros_engine.expressions.text import like_pattern
from saros_engine.expressions.time_filter import TimeContext, constant_time
from saros_engine.expressions.times import parse_time
from saros_engine.functions.registry import AGGREGATES, FUNCTIONS, RegisteredCall, aggregate_named, function_named
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
from saros_engine.transforms import POINT_FUNCTIONS
from saros_grammar.syntax.ast import (
    Between,
    Binary,
    BinaryOperator,
    Call,
    Case,
    Cast,
    EndTimeReference,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    LiteralKind,
    Parameter,
    PathExpression,
    TimeReference,
    Unary,
)
from saros_grammar.syntax.literals import NUMBER_CHARACTERS_MAX
from saros_storage.base.dates import date_number
from saros_storage.base.types import FLOATING_TYPES, INTEGER_TYPES, NUMERIC_TYPES, STRING_TYPES, DataType, Scalar

_ARITHMETIC = frozenset(
    {
        BinaryOperator.ADD,
        BinaryOperator.SUBTRACT,
        BinaryOperator.MULTIPLY,
        BinaryOperator.DIVIDE,
        BinaryOperator.MODULO,
    }
)
#: Operators whose result is an integer if both operands are integers.
_WHOLE = frozenset({BinaryOperator.DIVIDE, BinaryOperator.MODULO})
_LOGIC = frozenset({BinaryOperator.AND, BinaryOperator.OR})
_NUMBERS = INTEGER_TYPES | FLOATING_TYPES
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_INT64_MAX = (1 << 63) - 1
#: The greatest double below all INT64 values.
_BELOW_INT64 = math.nextafter(-(2.0**63), -math.inf)


class Columns(msgspec.Struct, frozen=True):
    """The columns available to the operator that evaluates an expression, keyed by their names in the statement."""

    moment: TimeContext
    #: The column of each path. A path that is missing here is null: the device lacks the measurement.
    paths: Mapping[PathExpression, InputColumn] = msgspec.field(default_factory=dict)
    #: The result of each aggregate call, or None before an aggregation, where aggregates are not allowed.
    aggregates: Mapping[Expression, Bound] | None = None
    #: The column of `__endTime`, or None without windows.
    end_time: InputColumn | None = None
    #: The column with the result of each call of a function that generates points.
    points: Mapping[Expression, Bound] = msgspec.field(default_factory=dict)


def bind(expression: Expression, columns: Columns) -> Bound:
    """Return the typed expression. Raises SemanticError, or UserMistake if a function's arguments are invalid."""
    if columns.aggregates is not None:
        found = columns.aggregates.get(expression)
        if found is not None:
            return found
    made = columns.points.get(expression) if columns.points else None
    if made is not None:
        return made
    binder = _BINDERS.get(type(expression))
    if binder is None:
        raise NotSupportedError(f"the expression {expression}")
    return binder(expression, columns)


def predicate(expression: Expression, columns: Columns) -> Bound:
    """Bind a condition. Raises SemanticError if the condition is not BOOLEAN."""
    bound = bind(expression, columns)
    if bound.type is not DataType.BOOLEAN:
        raise _wrong_type(expression, bound.type, "BOOLEAN")
    return bound


def _wrong_type(expression: Expression, actual: DataType, expected: str) -> SemanticError:
    return SemanticError(
        f"Invalid input expression data type. expression: {expression}, actual data type: {actual.name}, expected data"
        f" type(s): [{expected}]."
    )


def _path(path: PathExpression, columns: Columns) -> Bound:
    if columns.aggregates is not None:
        raise SemanticError("Raw data and aggregation result hybrid calculation is not supported.")
    return columns.paths.get(path, NULL)


#: The constant for a null literal or a missing series. This constant has the type of a condition, and type checks skip
#: it.
NULL = Constant(None, DataType.BOOLEAN)


def _literal(literal: Literal, columns: Columns) -> Constant:
    value, moment = literal.value, columns.moment
    match literal.kind:
        case LiteralKind.NULL:
            return NULL
        case LiteralKind.BOOLEAN:
            return Constant(bool(value), DataType.BOOLEAN)
        case LiteralKind.INTEGER if isinstance(value, int):
            large = abs(value) > _INT64_MAX
            return Constant(_as_double(value), DataType.DOUBLE) if large else Constant(value, DataType.INT64)
        case LiteralKind.DOUBLE if isinstance(value, (int, float)):
            return Constant(float(value), DataType.DOUBLE)
        case LiteralKind.STRING if isinstance(value, str):
            return Constant(value, DataType.TEXT)
        case LiteralKind.BLOB if isinstance(value, bytes):
            return Constant(value, DataType.BLOB)
        case LiteralKind.TIME:
            ticks = parse_time(value, moment.zone, moment.unit) if isinstance(value, str) else value
            assert isinstance(ticks, int)
            return Constant(ticks, DataType.TIMESTAMP)
        case _:
            raise SemanticError(f"the duration {literal} is not allowed here: add it to a time, as in now() - 1h")


def _as_double(value: int) -> float:
    """Return the double nearest to the value, or an infinity if the value exceeds the range of doubles."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


#: The type of a parameter for each kind of literal that it may replace. When a statement is planned, the parameter's
#: value is unknown.
_GIVEN_TYPES = {
    LiteralKind.BOOLEAN: DataType.BOOLEAN,
    LiteralKind.INTEGER: DataType.INT64,
    LiteralKind.DOUBLE: DataType.DOUBLE,
    LiteralKind.STRING: DataType.TEXT,
    LiteralKind.BLOB: DataType.BLOB,
    LiteralKind.TIME: DataType.TIMESTAMP,
}


def may_be_given(literal: Literal) -> bool:
    """Return whether a parameter may replace the literal, because its type does not depend on its value."""
    large = literal.kind is LiteralKind.INTEGER and isinstance(literal.value, int) and abs(literal.value) > _INT64_MAX
    return literal.kind in _GIVEN_TYPES and not large


def _parameter(parameter: Parameter, _: Columns) -> PlanParameter:
    if parameter.kind is None:
        raise SemanticError("a parameter has no value: pass one value for each ?")
    return PlanParameter(parameter.index, _GIVEN_TYPES[parameter.kind])


def constant(literal: Literal, moment: TimeContext) -> Constant:
    """Return the constant of a literal."""
    return _literal(literal, Columns(moment))


def _time(_: TimeReference, __: Columns) -> Bound:
    return InputTime()


def _end_time(_: EndTimeReference, columns: Columns) -> Bound:
    if columns.end_time is None:
        raise SemanticError("__endTime needs GROUP BY with windows")
    return columns.end_time


def _unary(expression: Unary, columns: Columns) -> Bound:
    operand = bind(expression.operand, columns)
    if is_null(operand):
        return NULL
    if expression.operator == "-":
        if not _is_number(expression.operand, operand.type):
            raise _wrong_type(expression.operand, operand.type, "INT32, INT64, FLOAT, DOUBLE")
        return Negate(operand, operand.type)
    if operand.type is not DataType.BOOLEAN:
        raise _wrong_type(expression.operand, operand.type, "BOOLEAN")
    return Not(operand)


def is_null(bound: Bound) -> bool:
    """Return whether the expression is the constant null."""
    return isinstance(bound, Constant) and bound.value is None


def _binary(expression: Binary, columns: Columns) -> Bound:
    operator = expression.operator
    if isinstance(expression.right, Literal) and expression.right.kind is LiteralKind.DURATION:
        return Constant(constant_time(expression, columns.moment), DataType.TIMESTAMP)  # now() - 1h
    left, right = bind(expression.left, columns), bind(expression.right, columns)
    if operator in _LOGIC:
        for side, bound in ((expression.left, left), (expression.right, right)):
            if bound.type is not DataType.BOOLEAN:
                raise _wrong_type(side, bound.type, "BOOLEAN")
        return Operation(operator, left, right, DataType.BOOLEAN)
    if operator in _ARITHMETIC:
        for side, bound in ((expression.left, left), (expression.right, right)):
            if not _is_number(side, bound.type) and not is_null(bound):
                raise _wrong_type(side, bound.type, "INT32, INT64, FLOAT, DOUBLE")
        if is_null(left) or is_null(right):
            return Constant(None, DataType.DOUBLE)
        whole = operator in _WHOLE and left.type in INTEGER_TYPES and right.type in INTEGER_TYPES
        return Operation(operator, left, right, DataType.INT64 if whole else DataType.DOUBLE)
    return _compare(operator, expression.left, left, expression.right, right, columns)


def _is_number(expression: Expression, type_: DataType) -> bool:
    """Return whether arithmetic accepts the expression.

    It accepts numbers and the times of rows, but no TIMESTAMP series.
    """
    return type_ in NUMERIC_TYPES or (type_ is DataType.TIMESTAMP and not _is_stored_time(expression, type_))


def _is_stored_time(expression: Expression, type_: DataType) -> bool:
    """Return whether the expression yields stored values of type TIMESTAMP, not constants or the times of rows."""
    of_rows = isinstance(expression, Call) and isinstance(next(iter(expression.arguments), None), TimeReference)
    stored = type_ is DataType.TIMESTAMP and not of_rows  # `of_rows` is true for max_by(time, x)
    return stored and any_part(expression, lambda part: isinstance(part, PathExpression))


def _compare(
    operator: BinaryOperator,
    left_text: Expression,
    left: Bound,
    right_text: Expression,
    right: Bound,
    columns: Columns,
) -> Bound:
    if is_null(left) or is_null(right):
        return NULL
    left, right = (
        _as_like(left_text, left, right.type, columns.moment),
        _as_like(right_text, right, left.type, columns.moment),
    )
    left, right = _beside_whole(left_text, left, right.type), _beside_whole(right_text, right, left.type)
    _check_beside_time(left_text, left.type, right_text, right.type)
    _check_beside_time(right_text, right.type, left_text, left.type)
    if not _comparable(left.type, right.type):
        if isinstance(left, Constant) and not isinstance(right, Constant):
            raise _wrong_type(right_text, right.type, _class_of(left.type))
        raise _wrong_type(left_text, left.type, _class_of(right.type))
    signed_zeros = _is_computed(left_text, left.type, columns) or _is_computed(right_text, right.type, columns)
    return Operation(operator, left, right, DataType.BOOLEAN, signed_zeros)


def _is_computed(expression: Expression, type_: DataType, columns: Columns) -> bool:
    """Return whether the expression computes a floating-point number from a row.

    Constants, series and results of aggregates are not computed. An expression that names no series is a constant.
    """
    if type_ not in FLOATING_TYPES or isinstance(expression, (Literal, PathExpression)):
        return False
    if columns.aggregates is not None and expression in columns.aggregates:
        return False
    return any_part(expression, lambda part: isinstance(part, _OF_A_ROW))


#: Expressions whose value differs from row to row.
_OF_A_ROW = (PathExpression, TimeReference, EndTimeReference)


def _as_like(expression: Expression, bound: Bound, other: DataType, moment: TimeContext) -> Bound:
    """Convert a constant to the type of the other operand if that type is DATE or TIMESTAMP.

    A text becomes a date or a time; a time literal that is compared with a DATE becomes a date.
    """
    if other is DataType.DATE and isinstance(expression, Literal) and expression.kind is LiteralKind.TIME:
        bound = Constant(expression.text, DataType.TEXT)
    if not isinstance(bound, Constant) or bound.type is not DataType.TEXT or not isinstance(bound.value, str):
        return bound
    if other is DataType.TIMESTAMP:
        return Constant(parse_time(bound.value, moment.zone, moment.unit), other)
    if other is DataType.DATE:
        try:
            day = date.fromisoformat(bound.value)
        except ValueError as error:
            raise SemanticError(f"{bound.value!r} is not a date: use YYYY-MM-DD") from error
        return Constant(date_number(day), other)
    return bound


def _beside_whole(expression: Expression, bound: Bound, other: DataType) -> Bound:
    """Replace an integer literal below the range of INT64 by a double below all INT64 values.

    The double nearest to the literal cannot be used in all cases, because it may equal the smallest INT64.
    """
    if other not in INTEGER_TYPES or not isinstance(expression, Literal) or not isinstance(expression.value, int):
        return bound
    below = expression.value < -_INT64_MAX - 1
    return Constant(min(_as_double(expression.value), _BELOW_INT64), DataType.DOUBLE) if below else bound


def _comparable(a: DataType, b: DataType) -> bool:
    return a is b or (a in _NUMBERS and b in _NUMBERS) or (a in STRING_TYPES and b in STRING_TYPES)


def _check_beside_time(time: Expression, type_: DataType, other: Expression, other_type: DataType) -> None:
    """Raise SemanticError if a number that is not an INT64 is compared with the values of a TIMESTAMP series."""
    if other_type in NUMERIC_TYPES - {DataType.INT64} and _is_stored_time(time, type_):
        raise _wrong_type(other, other_type, "TIMESTAMP, INT64")


def _class_of(type_: DataType) -> str:
    if type_ in _NUMBERS:
        return "INT32, INT64, FLOAT, DOUBLE, TIMESTAMP"
    return "TEXT, STRING" if type_ in STRING_TYPES else type_.name


def _between(expression: Between, columns: Columns) -> Bound:
    above = Binary(BinaryOperator.GREATER_EQUAL, expression.operand, expression.low)
    below = Binary(BinaryOperator.LESS_EQUAL, expression.operand, expression.high)
    bound = bind(Binary(BinaryOperator.AND, above, below), columns)
    return Not(bound) if expression.negated else bound


def _is_null_test(expression: IsNull, columns: Columns) -> Bound:
    return NullTest(bind(expression.operand, columns), expression.negated)


def _cast(expression: Cast, columns: Columns) -> Bound:
    if expression.type_name not in DataType.__members__:
        raise SemanticError(
            f"CAST: {expression.type_name} is not a data type: use one of {', '.join(DataType.__members__)}"
        )
    moment = columns.moment
    return Conversion(bind(expression.operand, columns), DataType[expression.type_name], moment.zone, moment.unit)


def _in_list(expression: InList, columns: Columns) -> Bound:
    operand = bind(expression.operand, columns)
    if is_null(operand):
        return NULL
    items: list[Scalar] = []
    for item in expression.items:
        literal = _read_as(item, operand.type)
        constant = _as_like(literal, bind(literal, columns), operand.type, columns.moment)
        constant = _beside_whole(literal, constant, operand.type)
        if not isinstance(constant, Constant):
            raise SemanticError(f"{item} in IN (...) is not a constant: IN takes constants only")
        if constant.value is not None and not _comparable(constant.type, operand.type):
            raise _wrong_type(expression.operand, operand.type, _class_of(constant.type))
        items.append(constant.value)
    signed_zeros = _is_computed(expression.operand, operand.type, columns)
    return Membership(operand, tuple(items), expression.negated, signed_zeros=signed_zeros)


def _read_as(item: Expression, type_: DataType) -> Expression:
    """Adapt an item of IN to the operand's type: convert a number to text, or a numeric text to a number."""
    if not isinstance(item, Literal):
        return item
    if type_ in STRING_TYPES and item.kind in (LiteralKind.INTEGER, LiteralKind.DOUBLE):
        return Literal(LiteralKind.STRING, item.text, item.text)
    if type_ in NUMERIC_TYPES and isinstance(item.value, str) and _NUMBER.fullmatch(item.value):
        whole = item.value.lstrip("+-").isdecimal() and len(item.value) <= NUMBER_CHARACTERS_MAX
        kind = LiteralKind.INTEGER if whole else LiteralKind.DOUBLE
        return Literal(kind, int(item.value) if whole else float(item.value), item.value)
    return item


def _like(expression: Like, columns: Columns) -> Bound:
    operand = bind(expression.operand, columns)
    if is_null(operand):
        return NULL
    if operand.type not in STRING_TYPES:
        raise _wrong_type(expression.operand, operand.type, "TEXT, STRING")
    pattern = bind(expression.pattern, columns)
    if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
        raise SemanticError(f"the pattern of {expression} must be a quoted text")
    text, regexp = (pattern.value, True) if expression.regexp else like_pattern(pattern.value, expression.escape)
    return PatternMatch(operand, text, regexp, expression.negated)


def _case(expression: Case, columns: Columns) -> Bound:
    whens = []
    for condition, result in expression.whens:
        bound = bind(condition, columns)
        if bound.type is not DataType.BOOLEAN:
            raise SemanticError(
                f"The expression in the WHEN clause must return BOOLEAN. expression: {condition}, actual data type:"
                f" {bound.type.name}."
            )
        whens.append((bound, bind(result, columns)))
    otherwise = None if expression.otherwise is None else bind(expression.otherwise, columns)
    results = [result for _, result in whens] + ([] if otherwise is None else [otherwise])
    type_ = _common_type([r.type for r in results if not is_null(r)])
    if all(map(is_null, results)):
        return Constant(None, type_)
    return Choice(
        tuple((condition, _retyped(result, type_)) for condition, result in whens),
        None if otherwise is None else _retyped(otherwise, type_),
        type_,
    )


def _retyped(bound: Bound, type_: DataType) -> Bound:
    if is_null(bound):
        return Constant(None, type_)
    if bound.type is type_:
        return bound
    if isinstance(bound, Constant) and type_ is DataType.DOUBLE and isinstance(bound.value, (int, float)):
        return Constant(float(bound.value), type_)
    return Conversion(bound, type_)


def _common_type(types: Sequence[DataType]) -> DataType:
    """Return the common type of all results of a CASE expression. Raises SemanticError if the types may not be mixed.

    If all results have the same integer type, this is the common type; different integer types become INT64. Other
    numbers become DOUBLE. Texts become TEXT. No other types may be mixed.
    """
    if not types:
        return DataType.TEXT
    for single in (DataType.BOOLEAN, DataType.TEXT):
        family = STRING_TYPES if single is DataType.TEXT else {single}
        inside = [t in family for t in types]
        if all(inside):
            return single
        if any(inside):
            raise SemanticError(f"CASE expression: {single.name} and other types cannot exist at the same time")
    if all(t in INTEGER_TYPES for t in types):
        return types[0] if len(set(types)) == 1 else DataType.INT64
    if all(t in _NUMBERS for t in types):
        return DataType.DOUBLE
    if len(set(types)) > 1:
        raise SemanticError(
            "CASE expression: " + " and ".join(sorted({t.name for t in types})) + " cannot be mixed: CAST them"
        )
    return types[0]


#: Function names of other dialects, mapped to the names used here.
_ELSEWHERE = {
    "max": "max_value",
    "min": "min_value",
    "first": "first_value",
    "last": "last_value",
    "mean": "avg",
    "average": "avg",
    "len": "length",
}
#: Functions of other dialects that round times down to the beginning of a window.
_WINDOWS_ELSEWHERE = ("date_bin", "date_bin_gapfill", "date_trunc", "time_bucket", "time_bucket_gapfill")


#: Functions without arguments, each of which has the same value in all rows.
_CONSTANT_CALLS: dict[str, Callable[[TimeContext], Constant]] = {
    "now": lambda moment: Constant(moment.now, DataType.TIMESTAMP),
    "version": lambda _: _version(),
}


def _version() -> Constant:
    from importlib.metadata import version  # this import is slow, because it imports the email package

    return Constant(version("saros"), DataType.TEXT)


def is_known(call: Call) -> bool:
    """Return whether a function of any kind has the call's name."""
    name = call.name.lower()
    found = function_named(call) is not None or aggregate_named(call) is not None
    return found or name in POINT_FUNCTIONS or name in _CONSTANT_CALLS


def unknown_function(call: Call) -> SemanticError:
    """Return the error for a call of an unknown function; its message suggests the most similar name."""
    name = call.name.lower()
    if name in _WINDOWS_ELSEWHERE:
        return SemanticError(f"Unknown function: {call.name}; write windows of time as GROUP BY ([start, end), 1h)")
    names = [*AGGREGATES, *FUNCTIONS, *POINT_FUNCTIONS]
    near = _ELSEWHERE.get(name) or next(iter(difflib.get_close_matches(name, names, n=1, cutoff=0.75)), None)
    meant = f"; did you mean {near}?" if near else "."
    return SemanticError(f"Unknown function: {call.name}{meant} SHOW FUNCTIONS lists all functions")


def _call(expression: Call, columns: Columns) -> Bound:
    name = expression.name.lower()
    if name in _CONSTANT_CALLS and not expression.arguments and type(expression) is Call:
        return _CONSTANT_CALLS[name](columns.moment)
    function = function_named(expression)
    if function is None and name in POINT_FUNCTIONS:
        raise SemanticError(f"{expression} generates points: it is only allowed in SELECT, outside aggregates")
    if function is None and aggregate_named(expression) is not None:
        raise SemanticError(
            f"{expression} is an aggregate, which is not allowed here: filter by aggregates with HAVING"
        )
    if function is None:
        raise unknown_function(expression)
    arguments = tuple(bind(argument, columns) for argument in expression.arguments)
    if any(is_null(argument) for argument in arguments):
        return NULL  # a missing series has no type to check
    type_ = function.check([argument.type for argument in arguments], expression.attributes)
    own = function if isinstance(expression, RegisteredCall) else None
    return FunctionCall(name, arguments, type_, expression.attributes, own)


_BINDERS: dict[type, Callable[[Any, Columns], Bound]] = {
    PathExpression: _path,
    Literal: _literal,
    Parameter: _parameter,
    TimeReference: _time,
    EndTimeReference: _end_time,
    Unary: _unary,
    Binary: _binary,
    Between: _between,
    IsNull: _is_null_test,
    InList: _in_list,
    Like: _like,
    Cast: _cast,
    Case: _case,
    Call: _call,
    RegisteredCall: _call,
}
