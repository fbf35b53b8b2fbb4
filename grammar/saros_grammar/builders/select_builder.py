"""The builder of SELECT: items, clauses in any order, windows.

VARIATION, CONDITION, SESSION, COUNT and TAGS are parsed as calls with any expressions as arguments. The functions in
`_WINDOWS` check the arguments.

The functions get the ExpressionBuilder of one statement. Parse-tree contexts are generated code without types, so they
are `Any` here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saros_grammar.builders.expressions import ExpressionBuilder, keep_of
from saros_grammar.generated.Sql import Sql
from saros_grammar.syntax.ast import (
    Binary,
    BinaryOperator,
    Duration,
    Expression,
    Fill,
    FillMethod,
    GroupByCondition,
    GroupByCount,
    GroupBySession,
    GroupByTime,
    GroupByVariation,
    GroupByWindow,
    Into,
    IntoItem,
    KeepCondition,
    Literal,
    LiteralKind,
    Parameter,
    PathExpression,
    Select,
    SelectItem,
    SortKey,
    WithoutNull,
)
from saros_grammar.syntax.errors import SEMANTIC_ERROR
from saros_grammar.syntax.literals import canonical_name, duration_of, is_duration, unquote_name, unquote_string

#: The greatest level of a path that a statement may contain.
LEVEL_MAX = 10_000

_FILL_WORDS = {"previous": FillMethod.PREVIOUS, "linear": FillMethod.LINEAR}


def build(expressions: ExpressionBuilder, context: Any) -> Select:
    """Build the statement of a `select` context. Raises ParseError."""
    items = tuple(_item(expressions, item) for item in context.items)
    into = None if context.into() is None else _into(expressions, context.into())
    sources = context.sources()
    paths = () if sources is None else tuple(pattern(expressions, path) for path in sources.path())
    fields: dict[str, Any] = {}
    for clause in context.clauses:
        found = _clause(expressions, clause)
        for name in found:
            if name in fields:
                raise expressions.error(clause, f"{clause.start.text.upper()} is given twice")
        fields.update(found)
    if fields.pop("align_by_time", False) and fields.get("align_by_device"):
        raise expressions.error(context, "ALIGN BY is given twice")
    if sources is not None and sources.table is not None:
        fields["table"] = expressions.name(sources.table).lower()
    return Select(items, paths, last=context.LAST() is not None, into=into, **fields)


def _item(expressions: ExpressionBuilder, context: Any) -> SelectItem:
    alias = None if context.alias is None else expressions.name(context.alias)
    if context.header is not None:
        alias = unquote_string(context.header.text)
    return SelectItem(expressions.expression(context.children[0]), alias)


def _clause(expressions: ExpressionBuilder, clause: Any) -> dict[str, Any]:
    """Return the fields of `Select` that one clause sets."""
    kind = clause.start.type
    if kind == Sql.WHERE:
        return {"where": expressions.expression(clause.condition)}
    if kind == Sql.HAVING:
        return {"having": expressions.expression(clause.having)}
    if kind == Sql.GROUP:
        return _group_by(expressions, clause)
    if kind == Sql.ORDER:
        return {"order_by": sort_keys(expressions, clause)}
    if kind == Sql.FILL:
        return {"fill": _fill(expressions, clause)}
    if kind == Sql.ALIGN:
        return {"align_by_device": True} if clause.DEVICE() is not None else {"align_by_time": True}
    if kind == Sql.WITHOUT:
        columns = tuple(expressions.expression(column) for column in clause.columns)
        return {"without_null": WithoutNull(clause.kind.type == Sql.ANY, columns)}
    return {clause.start.text.lower(): row_count(expressions, clause.amount)}


def sort_keys(expressions: ExpressionBuilder, context: Any) -> tuple[SortKey, ...]:
    """Build the keys of an ORDER BY."""
    return tuple(_sort_key(expressions, key) for key in context.keys)


def _sort_key(expressions: ExpressionBuilder, key: Any) -> SortKey:
    descending = key.direction is not None and key.direction.type == Sql.DESC
    nulls_first = None if key.place is None else key.place.type == Sql.FIRST
    return SortKey(expressions.expression(key.children[0]), descending, nulls_first)


def row_count(expressions: ExpressionBuilder, context: Any) -> Expression:
    """Build the number of LIMIT, OFFSET, SLIMIT or SOFFSET: a literal or a parameter."""
    token = context.start
    return expressions.parameter(token) if token.type == Sql.PARAMETER else expressions.token_literal(token)


def level(expressions: ExpressionBuilder, token: Any) -> int:
    """Return a path level. Raises ParseError if the level is greater than LEVEL_MAX."""
    if len(token.text) > len(str(LEVEL_MAX)) or int(token.text) > LEVEL_MAX:
        raise expressions.error(token, f"level {token.text[:20]} is deeper than any path")
    return int(token.text)


def pattern(expressions: ExpressionBuilder, context: Any) -> PathExpression:
    """Build the absolute path of a `path` context. It may have wildcards. Raises ParseError."""
    return expressions.path(context, [_pattern_node(expressions, node) for node in context.nodes])


def _pattern_node(expressions: ExpressionBuilder, node: Any) -> str:
    if node.start is node.stop and node.start.type == Sql.INTEGER:
        text = node.start.text
        raise expressions.error(node, f"a node of digits only needs back-quotes: `{text}`", ("a name",))
    return expressions.node(node)


# ---------------------------------------------------------------------------------------------- FILL, INTO


def _fill(expressions: ExpressionBuilder, clause: Any) -> Fill:
    bound = None
    if clause.bound is not None:
        bound = expressions.literal(clause.bound, duration_of, clause.bound.text)
    value = expressions.expression(clause.fill)
    if isinstance(value, PathExpression):
        method = _FILL_WORDS.get(str(value).lower())
        if method is None:
            raise expressions.error(clause.fill, "FILL takes PREVIOUS, LINEAR or a constant", ("PREVIOUS", "LINEAR"))
        return Fill(method, None, bound)
    if not isinstance(value, Literal | Parameter):
        raise expressions.error(clause.fill, "FILL takes PREVIOUS, LINEAR or a constant", ("PREVIOUS", "LINEAR"))
    return Fill(FillMethod.VALUE, value, bound)


def _into(expressions: ExpressionBuilder, context: Any) -> Into:
    return Into(tuple(_into_item(expressions, target) for target in context.target()))


def _into_item(expressions: ExpressionBuilder, target: Any) -> IntoItem:
    device = tuple(target_path(expressions, target.targetPath()))
    if device[0] not in ("root", "::"):
        raise expressions.error(target, "a target is a device below root, or :: for the source's own", ("root", "::"))
    measurements = tuple(target_node(expressions, node) for node in target.measurements)
    return IntoItem(device, measurements, target.ALIGNED() is not None)


def target_path(expressions: ExpressionBuilder, context: Any) -> list[str]:
    """Return the nodes of a target's path. The first node is not checked."""
    first = "root" if context.first is None else target_node(expressions, context.first)
    return [first, *(target_node(expressions, node) for node in context.nodes)]


def target_node(expressions: ExpressionBuilder, node: Any) -> str:
    """Return a node of a target: a name, `::`, or a text with `${i}`."""
    text = expressions.raw(node)
    return text if node.TARGET_NAME() is not None else canonical_name(text)


# ---------------------------------------------------------------------------------------------- GROUP BY


def _group_by(expressions: ExpressionBuilder, clause: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for grouping in clause.groupings:
        name, value = _grouping(expressions, grouping)
        if name in fields:
            message = "GROUP BY takes at most one window, one LEVEL and one TAGS"
            raise expressions.error(grouping, message, code=SEMANTIC_ERROR)
        fields[name] = value
    return fields


def _grouping(expressions: ExpressionBuilder, context: Any) -> tuple[str, Any]:
    if context.interval is not None:
        return "group_by", _time_window(expressions, context)
    if context.kind is None:
        return "levels", tuple(level(expressions, token) for token in context.levels)
    word = expressions.raw(context.kind).lower()
    if word == "tags":
        return "tag_keys", tuple(_tag_key(expressions, control) for control in context.controls)
    window = _WINDOWS.get(word)
    if window is None:
        kinds = ("LEVEL", *(w.upper() for w in _WINDOWS), "TAGS")
        raise expressions.error(context, f"GROUP BY {word.upper()} is unknown: use one of {', '.join(kinds)}", kinds)
    return "group_by", window(expressions, context)


def _time_window(expressions: ExpressionBuilder, context: Any) -> GroupByTime:
    interval = expressions.literal(context.interval, duration_of, context.interval.text)
    step = interval if context.step is None else expressions.literal(context.step, duration_of, context.step.text)
    span = context.timeRange()
    if span is None:
        return GroupByTime(None, None, interval, step)
    left_open = span.start.type == Sql.LEFT_PARENTHESIS
    begin, until = expressions.expression(span.begin), expressions.expression(span.until)
    return GroupByTime(begin, until, interval, step, left_open)


def _tag_key(expressions: ExpressionBuilder, control: Any) -> str:
    key = expressions.expression(control)
    if isinstance(key, Literal) and isinstance(key.value, str):
        return key.value
    if isinstance(key, PathExpression) and len(key.nodes) == 1:
        return unquote_name(key.nodes[0])
    raise expressions.error(control, "TAGS takes tag keys: TAGS(city, workshop)", ("a name",))


def _variation(expressions: ExpressionBuilder, context: Any) -> GroupByVariation:
    control, options, ignore_null = _controls(expressions, context, 1)
    delta = _number(options[0]) if options else 0.0
    if delta is None:
        raise expressions.error(context, "VARIATION takes a number as its delta: VARIATION(s1, 0.5)")
    return GroupByVariation(control, float(delta), ignore_null)


def _condition(expressions: ExpressionBuilder, context: Any) -> GroupByCondition:
    predicate, options, ignore_null = _controls(expressions, context, 1)
    if not options:
        return GroupByCondition(predicate, None, ignore_null)
    keep = keep_of(options[0])
    if not isinstance(keep, KeepCondition):
        keep = KeepCondition(BinaryOperator.GREATER_EQUAL, keep)
    count = _number(keep.count, LiteralKind.INTEGER)
    if count is None:
        raise expressions.error(context, "CONDITION takes KEEP and a whole number: CONDITION(s1 > 0, KEEP >= 3)")
    return GroupByCondition(predicate, (keep.operator, int(count)), ignore_null)


def _session(expressions: ExpressionBuilder, context: Any) -> GroupBySession:
    text = expressions.raw(context.controls[0])
    if len(context.controls) != 1 or not is_duration(text):
        raise expressions.error(context.controls[0], "SESSION takes a gap: SESSION(10m)", ("a duration",))
    gap: Duration = expressions.literal(context.controls[0], duration_of, text)
    return GroupBySession(gap)


def _count(expressions: ExpressionBuilder, context: Any) -> GroupByCount:
    control, options, ignore_null = _controls(expressions, context, 1)
    size = _number(options[0], LiteralKind.INTEGER) if options else None
    if size is None:
        raise expressions.error(context, "COUNT takes a whole number of rows: COUNT(s1, 5)")
    return GroupByCount(control, int(size), ignore_null)


_WINDOWS: dict[str, Callable[[ExpressionBuilder, Any], GroupByWindow]] = {
    "variation": _variation,
    "condition": _condition,
    "session": _session,
    "count": _count,
}


def _controls(
    expressions: ExpressionBuilder, context: Any, options_max: int
) -> tuple[Expression, list[Expression], bool]:
    """Return the control expression, the plain options after it, and the value of ignoreNull (by default True)."""
    control, *rest = (expressions.expression(c) for c in context.controls)
    ignore_null = True
    options: list[Expression] = []
    for option in rest:
        flag = _flag(option)
        if flag is None:
            options.append(option)
        else:
            ignore_null = flag
    if len(options) > options_max:
        raise expressions.error(context, f"{context.start.text.upper()} has too many options")
    return control, options, ignore_null


def _flag(option: Expression) -> bool | None:
    """Return the value of an option such as `ignoreNull=true`, or None for options without a boolean value.

    As in IoTDB, the word before `=` is not checked.
    """
    if (
        isinstance(option, Binary)
        and option.operator is BinaryOperator.EQUAL
        and isinstance(option.left, PathExpression)
    ):
        value = option.right
        if isinstance(value, Literal) and isinstance(value.value, bool):
            return value.value
    return None


def _number(expression: Expression, kind: LiteralKind | None = None) -> float | None:
    if isinstance(expression, Literal) and isinstance(expression.value, int | float):
        if kind is None and expression.kind in (LiteralKind.INTEGER, LiteralKind.DOUBLE):
            return expression.value
        if expression.kind is kind:
            return expression.value
    return None
