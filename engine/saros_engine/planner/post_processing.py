"""The clauses applied after a body: FILL, WITHOUT NULL, ORDER BY, LIMIT. Pure: any thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from saros_engine.analysis.headers import column_name
from saros_engine.base.errors import SemanticError
from saros_engine.expressions.literal_values import date_of, value_of
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.expressions.times import duration_ticks
from saros_engine.plan.expression import Bound, InputColumn, InputTime, NullTest, Operation
from saros_engine.plan.plan import FillKind, FillNode, Filter, Limit, Node, Project, Sort, SortItem
from saros_engine.planner.query_core import Output, is_time
from saros_grammar.syntax.ast import (
    BinaryOperator,
    EndTimeReference,
    Expression,
    Fill,
    FillMethod,
    Literal,
    LiteralKind,
    Select,
    SortKey,
    WithoutNull,
)
from saros_grammar.syntax.literals import unquote_name
from saros_storage.base.types import STRING_TYPES, DataType, Scalar

_KINDS = {
    FillMethod.PREVIOUS: FillKind.PREVIOUS,
    FillMethod.LINEAR: FillKind.LINEAR,
    FillMethod.VALUE: FillKind.VALUE,
}
#: IoTDB's row counts are 64-bit.
_ROWS_MAX = 2**63 - 1


def row_count(expression: Expression | None, what: str) -> int | None:
    """Return the number of a LIMIT, OFFSET, SLIMIT or SOFFSET. Raises SemanticError."""
    if expression is None:
        return None
    value = expression.value if isinstance(expression, Literal) else None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        if value > _ROWS_MAX:
            raise SemanticError(f"Out of range. {what} <N>: N should be Int64.")
        return value
    raise SemanticError(f"{what} should be an integer of at least 0, not {expression}")


def limited(node: Node, limit: Expression | None, offset: Expression | None) -> Node:
    """Apply LIMIT and OFFSET, which come last."""
    count, skipped = row_count(limit, "LIMIT"), row_count(offset, "OFFSET")
    if count is None and not skipped:
        return node
    return Limit(node, skipped or 0, count, node.fields)


def cut_columns(outputs: list[Output], select: Select) -> list[Output]:
    """Apply SLIMIT and SOFFSET, which do not count `__endTime`."""
    count, offset = row_count(select.slimit, "SLIMIT"), row_count(select.soffset, "SOFFSET") or 0
    if count is None and not offset:
        return outputs
    kept = [output for output in outputs if isinstance(output.expression, EndTimeReference)]
    counted = [output for output in outputs if not isinstance(output.expression, EndTimeReference)]
    return kept + (counted[offset:] if count is None else counted[offset : offset + count])


def filled(node: Node, fill: Fill | None, moment: TimeContext, *, descending: bool, first: int = 0) -> Node:
    """Apply FILL; constants apply to the columns starting at `first`. Raises SemanticError for an invalid duration."""
    if fill is None:
        return node
    if fill.bound is not None and fill.method is not FillMethod.PREVIOUS:
        raise SemanticError("Only FILL(PREVIOUS) supports a time duration threshold.")
    bound = None if fill.bound is None else duration_ticks(fill.bound, moment.unit)
    values: tuple[Scalar, ...] = ()
    if fill.method is FillMethod.VALUE:
        assert isinstance(fill.value, Literal)
        own = [_fill_value(fill.value, field.type, moment) for field in node.fields[first:]]
        values = (*([None] * first), *own)
    return FillNode(node, _KINDS[fill.method], values, bound, node.fields, descending)


def _fill_value(literal: Literal, type_: DataType, moment: TimeContext) -> Scalar:
    """Return the value for one column, or None if it does not fit the column's type. A time counts as its ticks."""
    if literal.kind is LiteralKind.TIME and type_ is not DataType.DATE:
        ticks = value_of(literal, DataType.TIMESTAMP, moment.zone, moment.unit)
        literal = Literal(LiteralKind.INTEGER, ticks, str(ticks))
    value = literal.value
    if type_ in STRING_TYPES:
        return value if isinstance(value, str) else literal.text
    if literal.kind is LiteralKind.INTEGER and type_ is DataType.DATE:
        day = literal.text.rjust(8, "0")
        return date_of(Literal(LiteralKind.STRING, f"{day[:-4]}-{day[-4:-2]}-{day[-2:]}", literal.text))
    if literal.kind is LiteralKind.STRING and type_ is not DataType.DATE:
        return None
    if literal.kind is LiteralKind.INTEGER and type_ is DataType.BOOLEAN:
        return None
    return value_of(literal, type_, moment.zone, moment.unit)


def without_null(
    node: Node,
    clause: WithoutNull | None,
    outputs: Sequence[Output],
    expand: Callable[[Expression], Sequence[Expression]],
    moment: TimeContext,
    first: int = 0,
) -> Node:
    """Apply WITHOUT NULL; the outputs are the columns starting at `first`. Raises SemanticError for other columns."""
    if clause is None:
        return node
    chosen: Iterable[int] = range(len(outputs))
    if clause.columns:
        chosen = [number for column in clause.columns for number in _columns_named(column, outputs, expand, moment)]
    tests: list[Bound] = [
        NullTest(InputColumn(first + n, node.fields[first + n].type), negated=True) for n in dict.fromkeys(chosen)
    ]
    if not tests:
        return node  # all columns in the clause are of series that do not exist
    operator = BinaryOperator.AND if clause.any_null else BinaryOperator.OR
    kept = functools.reduce(lambda a, b: Operation(operator, a, b, DataType.BOOLEAN), tests)
    return Filter(node, kept, node.fields)


def _columns_named(
    column: Expression,
    outputs: Sequence[Output],
    expand: Callable[[Expression], Sequence[Expression]],
    moment: TimeContext,
) -> list[int]:
    """Return the numbers of the outputs that a column of WITHOUT NULL names."""
    numbers = {output.name: number for number, output in enumerate(outputs)}
    text = unquote_name(str(column))
    if text in numbers:
        return [numbers[text]]
    names = [column_name(expression, moment) for expression in expand(column)]
    if any(name not in numbers for name in names):
        raise SemanticError(
            f"The without null columns don't match the columns queried: {column}. If has alias, please use the alias."
        )
    return [numbers[name] for name in names]


def extra_keys(order_by: Sequence[SortKey], outputs: Sequence[Output], named: Sequence[str] = ()) -> list[Expression]:
    """Return the expressions of ORDER BY that are neither outputs, nor the time, nor one of the `named` columns."""
    names = {output.name for output in outputs}
    shown = {output.expression for output in outputs}
    return [
        key.expression
        for key in order_by
        if not is_time(key.expression)
        and key.expression not in shown
        and str(key.expression) not in names
        and str(key.expression).lower() not in named
    ]


def sorted_by(
    node: Node, order_by: Sequence[SortKey], outputs: Sequence[Output], named: Sequence[str] = (), *, timed: bool
) -> Node:
    """Apply ORDER BY; `node` has the `named` columns, the outputs, and the extra keys, which are removed.

    Rows that are not `timed` compare as equal in time.
    """
    extra = extra_keys(order_by, outputs, named)
    first = len(named)
    items = []
    for key in order_by:
        expression = key.expression
        bound: Bound
        if is_time(expression):
            if not timed:
                continue
            bound = InputTime()
        else:
            number = _column_of(expression, outputs, extra, named)
            bound = InputColumn(number, node.fields[number].type)
        items.append(SortItem(bound, key.descending, nulls_first=bool(key.nulls_first)))
    width = first + len(outputs)
    if items:
        node = Sort(node, tuple(items), node.fields)
    if len(node.fields) == width:
        return node
    shown = node.fields[:width]
    return Project(node, tuple(InputColumn(i, field.type) for i, field in enumerate(shown)), shown)


def _column_of(
    expression: Expression, outputs: Sequence[Output], extra: Sequence[Expression], named: Sequence[str]
) -> int:
    text = str(expression)
    if text.lower() in named:
        return list(named).index(text.lower())
    for number, output in enumerate(outputs):
        if expression == output.expression or text == output.name:
            return len(named) + number
    return len(named) + len(outputs) + list(extra).index(expression)
