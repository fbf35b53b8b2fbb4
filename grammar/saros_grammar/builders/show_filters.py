"""The normal form of the conditions of SHOW and COUNT, with the subject on the left and the text on the right.

    TAGS(city) = bj             Call("tags", ('city',)) = 'bj'
    dataType = boolean          datatype = 'BOOLEAN'
    timeseries CONTAINS 'x'     Call("contains", (timeseries, 'x'))

Pure functions: any thread.
"""

from __future__ import annotations

from msgspec.structs import replace

from saros_grammar.syntax.ast import (
    Binary,
    BinaryOperator,
    Call,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    LiteralKind,
    PathExpression,
    Unary,
)
from saros_grammar.syntax.literals import unquote_name

_TYPE = PathExpression(("datatype",))
_LOGIC = (BinaryOperator.AND, BinaryOperator.OR)


def subject_filter(condition: Expression) -> Expression:
    """Return the condition in normal form."""
    if isinstance(condition, Unary):
        return replace(condition, operand=subject_filter(condition.operand))
    if isinstance(condition, Binary):
        left, right = condition.left, condition.right
        if condition.operator in _LOGIC:
            return Binary(condition.operator, subject_filter(left), subject_filter(right))
        subject = _subject(left)
        return Binary(condition.operator, subject, _compared(right, subject))
    if isinstance(condition, IsNull | Like):
        return replace(condition, operand=_subject(condition.operand))
    if isinstance(condition, InList):
        subject = _subject(condition.operand)
        return replace(condition, operand=subject, items=tuple(_compared(item, subject) for item in condition.items))
    if isinstance(condition, Call) and condition.name == "contains":
        subject, text = condition.arguments
        return replace(condition, arguments=(_subject(subject), _text(text, always=True)))
    return condition


def _compared(expression: Expression, subject: Expression) -> Expression:
    """Return the right side of a comparison with `subject`.

    A value for a tag becomes a string. The name of a data type becomes a string in upper case.
    """
    found = _text(expression, always=isinstance(subject, Call))
    if subject == _TYPE and isinstance(found, Literal) and isinstance(found.value, str):
        return _string(found.value.upper())
    return found


def _subject(expression: Expression) -> Expression:
    if isinstance(expression, PathExpression) and len(expression.nodes) == 1:
        return PathExpression((expression.nodes[0].lower(),))
    if isinstance(expression, Call) and expression.name.lower() == "tags":
        return Call("tags", tuple(_text(key, always=True) for key in expression.arguments))
    return expression


def _text(expression: Expression, *, always: bool) -> Expression:
    """Turn a name, and with `always` also a number, into a string literal. Return other expressions unchanged."""
    if isinstance(expression, PathExpression):
        nodes = expression.nodes
        return _string(unquote_name(nodes[0]) if len(nodes) == 1 else str(expression))
    if always and isinstance(expression, Literal) and expression.kind in (LiteralKind.INTEGER, LiteralKind.DOUBLE):
        return _string(expression.text)
    return expression


def _string(value: str) -> Literal:
    return Literal(LiteralKind.STRING, value, "'" + value.replace("'", "''") + "'")
