"""SELECT without FROM: one row of expressions that read no series, such as `select 1` or `select now()`.

Clients send it to check a connection. Such a SELECT accepts WHERE, LIMIT and OFFSET.

Pure: any thread.
"""

from __future__ import annotations

from saros_engine.analysis.binding import Columns, bind, predicate
from saros_engine.analysis.headers import column_name
from saros_engine.analysis.scope import any_part, paths_of
from saros_engine.plan.plan import Field, Filter, Node, Project, Rows
from saros_engine.planner.context import LogicalPlan, PlanContext
from saros_engine.planner.post_processing import limited
from saros_engine.planner.query_core import has_own_points, is_aggregate, makes_points
from saros_grammar.syntax.ast import EndTimeReference, Expression, Select, TimeReference
from saros_storage.base.block import Block
from saros_storage.base.errors import UserMistake

_NEEDS_FROM = "SELECT needs FROM and a path"
#: IoTDB's code for a SELECT without FROM.
_CODE = 700
_ONE_ROW = Rows(Block(None, (), 1), ())


def plan_without_from(select: Select, context: PlanContext) -> LogicalPlan:
    """Return the plan of a SELECT without FROM. Raises UserMistake 700 for expressions and clauses that need series."""
    _check_clauses(select)
    for item in select.items:
        _check(item.expression)
    columns = Columns(context.moment)
    node: Node = _ONE_ROW
    if select.where is not None:
        _check(select.where)
        node = Filter(node, predicate(select.where, columns), node.fields)
    bound = tuple(bind(item.expression, columns) for item in select.items)
    names = [item.alias or column_name(item.expression, context.moment) for item in select.items]
    fields = tuple(Field(name, one.type) for name, one in zip(names, bound, strict=True))
    return LogicalPlan(fields, False, limited(Project(node, bound, fields), select.limit, select.offset))


def _check_clauses(select: Select) -> None:
    for given, what in (
        (select.last, "LAST"),
        (select.into is not None, "INTO"),
        (select.group_by is not None or select.levels or select.tag_keys, "GROUP BY"),
        (select.having is not None, "HAVING"),
        (select.fill is not None, "FILL"),
        (select.without_null is not None, "WITHOUT NULL"),
        (bool(select.order_by), "ORDER BY"),
        (select.align_by_device, "ALIGN BY DEVICE"),
        (select.slimit is not None or select.soffset is not None, "SLIMIT and SOFFSET"),
    ):
        if given:
            raise UserMistake(f"{_NEEDS_FROM}: {what} is not possible without it", code=_CODE)


def _check(expression: Expression) -> None:
    """Raise UserMistake for an expression that reads series or their times."""
    path = next(paths_of(expression), None)
    if path is not None:
        raise UserMistake(f"{_NEEDS_FROM}: {path} is a path; write a text in quotes", code=_CODE)
    if any_part(expression, _is_of_rows):
        raise UserMistake(f"{_NEEDS_FROM}: {expression} is computed from series", code=_CODE)


def _is_of_rows(part: Expression) -> bool:
    times = isinstance(part, TimeReference | EndTimeReference)
    return times or is_aggregate(part) or makes_points(part) or has_own_points(part)
