"""Name result columns in the same way as IoTDB.

    concat(t, 'it''s')       concat(root.a.t, "it's")        a text is in double quotes, and nothing in it is escaped
    b = TRUE                 root.a.b = true
    replace(t, 'a', 'b')     REPLACE(root.a.t, 'a', 'b')
    t IN ('x', 'y')          root.a.t IN (x,y)
    t LIKE 'a!_' ESCAPE '!'  root.a.t LIKE pattern = 'a!_' escape = '!'
    ts > 2024-01-01          root.a.ts > 1704067200000

Unlike the text that `str` returns for an expression, these names are not valid SQL. Pure: any thread.
"""

from __future__ import annotations

from msgspec.structs import replace

from saros_engine.analysis.scope import children_of, rebuilt
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.expressions.times import parse_time
from saros_grammar.syntax.ast import Call, Expression, InList, Like, Literal, LiteralKind, PathExpression


def column_name(expression: Expression, moment: TimeContext) -> str:
    """Return the column name of an expression that has no alias."""
    return str(_spelled(expression, moment))


def _spelled(expression: Expression, moment: TimeContext) -> Expression:
    """Return the expression with its literals spelled as in a column name; pass the result only to `str`."""
    match expression:
        case PathExpression():  # fast path for the usual case
            return expression
        case Literal(LiteralKind.STRING, str(value)):
            return replace(expression, text=f'"{value}"')
        case Literal(LiteralKind.BOOLEAN, _, text):
            return replace(expression, text=text.lower())
        case Literal(LiteralKind.TIME, str(value)):
            return replace(expression, text=str(parse_time(value, moment.zone, moment.unit)))
        case Like(operand, Literal(_, str(value)) as pattern, regexp, _, escape):
            text = f"'{value}'" if regexp else f"pattern = '{value}'"
            text += "" if escape is None else f" escape = '{escape}'"
            pattern = replace(pattern, text=text)
            return replace(expression, operand=_spelled(operand, moment), pattern=pattern, escape=None)
        case Call(name, arguments) if name.lower() == "replace":
            return replace(expression, arguments=tuple(_single_quoted(one, moment) for one in arguments))
        case InList(operand, items):
            spelled = tuple(_unquoted(item, moment) for item in items)
            return replace(expression, operand=_spelled(operand, moment), items=spelled)
        case _:
            children = children_of(expression)
            spelled = tuple(_spelled(child, moment) for child in children)
            same = all(one is other for one, other in zip(children, spelled, strict=True))
            return expression if same else rebuilt(expression, spelled)


def _single_quoted(argument: Expression, moment: TimeContext) -> Expression:
    match argument:
        case Literal(LiteralKind.STRING, str(value)):
            return replace(argument, text=f"'{value}'")
        case _:
            return _spelled(argument, moment)


def _unquoted(item: Expression, moment: TimeContext) -> Expression:
    match item:
        case Literal(LiteralKind.STRING, str(value)):
            return replace(item, text=value)
        case _:
            return _spelled(item, moment)
