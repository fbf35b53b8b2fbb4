"""Conditions on time: constant times, and the time range that a WHERE selects.

    time >= 2020-01-01 and time < now() - 1h and s1 > 3      ->  range [.., ..), rest: s1 > 3

A conjunct that compares Time with a constant narrows the range and is removed. Other conditions on time stay in the
remaining condition, which is evaluated row by row. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from saros_engine.base.errors import SemanticError
from saros_engine.expressions.times import Calendar, duration_ticks, parse_time
from saros_grammar.syntax.ast import (
    Between,
    Binary,
    BinaryOperator,
    Call,
    Duration,
    Expression,
    InList,
    Literal,
    LiteralKind,
    TimeReference,
    Unary,
)
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import TIME_MAX, TIME_MIN, TimeUnit
from saros_storage.scan.reading import TimeRange

_TURNED = {
    BinaryOperator.LESS: BinaryOperator.GREATER,
    BinaryOperator.LESS_EQUAL: BinaryOperator.GREATER_EQUAL,
    BinaryOperator.GREATER: BinaryOperator.LESS,
    BinaryOperator.GREATER_EQUAL: BinaryOperator.LESS_EQUAL,
    BinaryOperator.EQUAL: BinaryOperator.EQUAL,
}
ALL_TIME = TimeRange()


class TimeContext(msgspec.Struct, frozen=True):
    """The context for interpreting times: the session's zone, the time unit, and the current time in ticks."""

    zone: str
    unit: TimeUnit
    now: int


def constant_time(expression: Expression | None, moment: TimeContext) -> int:
    """Return the ticks of a constant time; None stands for the current time.

    Raises UserMistake with code 701 (not a time) or 2007 (does not fit 64 bits).
    """
    if expression is None:
        return moment.now
    found = _constant(expression, moment)
    if found is None:
        raise SemanticError(f"{expression} is not a time: give an integer, a date, or now() with a duration")
    if not TIME_MIN <= found <= TIME_MAX:
        raise UserMistake(f"time {expression} does not fit 64 bits in {moment.unit.suffix}", code=2007)
    return found


def _constant(expression: Expression, moment: TimeContext) -> int | None:
    match expression:
        case Literal(LiteralKind.INTEGER | LiteralKind.TIME, int(value), _):
            return value
        case Literal(LiteralKind.TIME | LiteralKind.STRING, str(value), _):
            return parse_time(value, moment.zone, moment.unit)
        case Call(name, ()) if name.lower() == "now":
            return moment.now
        case Unary("-", operand):
            inner = _constant(operand, moment)
            return None if inner is None else -inner
        case Binary(BinaryOperator.ADD | BinaryOperator.SUBTRACT as operator, left, right):
            start = _constant(left, moment)
            sign = 1 if operator is BinaryOperator.ADD else -1
            return None if start is None else _shifted(start, right, sign, moment)
        case _:
            return None


def _shifted(start: int, by: Expression, sign: int, moment: TimeContext) -> int | None:
    """Return `start` plus `sign` (1 or -1) times a duration; months and days follow the zone's calendar."""
    if not isinstance(by, Literal) or not isinstance(by.value, Duration):
        shift = _constant(by, moment)
        return None if shift is None else start + sign * shift
    if not by.value.is_fixed:
        start = Calendar(start, moment.unit, moment.zone).plus(sign * by.value.months, sign * by.value.days)
    return start + sign * duration_ticks(replace(by.value, months=0, days=0), moment.unit)


def split_time(where: Expression | None, moment: TimeContext) -> tuple[TimeRange, Expression | None]:
    """Split a condition into a time range that contains all matches, and a remaining condition to check row by row."""
    time = ALL_TIME
    rest: Expression | None = None
    for part in conjuncts(where):
        found = range_of(part, moment)
        if found is not None:
            time = time.intersect(found)
        else:
            rest = part if rest is None else Binary(BinaryOperator.AND, rest, part)
    return time, rest


def time_range(where: Expression | None, moment: TimeContext) -> TimeRange:
    """Return the time range of a DELETE. Raises SemanticError if its condition compares anything but time."""
    time, rest = split_time(where, moment)
    if rest is not None:
        raise SemanticError(
            "For delete statement, where clause can only contain time expressions that form one range, such as"
            f" time >= 1 and time < 5, not {rest}. Value filters are not supported"
        )
    return time


def conjuncts(where: Expression | None) -> Iterator[Expression]:
    """Yield the conditions that a condition joins with AND."""
    if isinstance(where, Binary) and where.operator is BinaryOperator.AND:
        yield from conjuncts(where.left)
        yield from conjuncts(where.right)
    elif where is not None:
        yield where


def range_of(part: Expression, moment: TimeContext) -> TimeRange | None:
    """Return the time range that a conjunct selects, or None if it does not select a single range.

    Raises SemanticError for an invalid date.
    """
    match part:
        case Binary(operator, TimeReference(), value) if operator in _TURNED:
            return _compared(operator, _constant(value, moment))
        case Binary(operator, value, TimeReference()) if operator in _TURNED:
            return _compared(_TURNED[operator], _constant(value, moment))
        case Between(TimeReference(), low, high, False):
            first, last = _constant(low, moment), _constant(high, moment)
            return None if first is None or last is None else TimeRange(first, _after(last))
        case InList(TimeReference(), (only,), False):
            return _compared(BinaryOperator.EQUAL, _constant(only, moment))
        case _:
            return None


def time_ranges(where: Expression, moment: TimeContext) -> list[TimeRange] | None:
    """Return the time ranges, which may overlap, of a condition that only compares time; None for other conditions."""
    match where:
        case Binary(BinaryOperator.AND | BinaryOperator.OR as operator, left, right):
            some, others = time_ranges(left, moment), time_ranges(right, moment)
            if some is None or others is None:
                return None
            return some + others if operator is BinaryOperator.OR else [a.intersect(b) for a in some for b in others]
        case Binary(BinaryOperator.NOT_EQUAL, TimeReference(), value):
            either = [_compared(o, _constant(value, moment)) for o in (BinaryOperator.LESS, BinaryOperator.GREATER)]
        case InList(TimeReference(), items, False):
            either = [_compared(BinaryOperator.EQUAL, _constant(item, moment)) for item in items]
        case _:
            either = [range_of(where, moment)]
    found = [span for span in either if span is not None]
    return found if len(found) == len(either) else None


def _compared(operator: BinaryOperator, value: int | None) -> TimeRange | None:
    if value is None:
        return None
    match operator:
        case BinaryOperator.EQUAL:
            return TimeRange(max(value, TIME_MIN), _after(value))
        case BinaryOperator.LESS:
            return TimeRange(end=min(value, TIME_MAX))
        case BinaryOperator.LESS_EQUAL:
            return TimeRange(end=_after(value))
        case BinaryOperator.GREATER:
            return TimeRange(_after(value))
        case _:
            return TimeRange(max(value, TIME_MIN))


def _after(value: int) -> int:
    return min(max(value + 1, TIME_MIN), TIME_MAX)
