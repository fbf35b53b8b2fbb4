"""Queries aligned by time: one row per time or window, or a single row; one column per expanded select item."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from saros_engine.analysis.headers import column_name
from saros_engine.analysis.scope import Scope, names_series, paths_of
from saros_engine.base.errors import SemanticError
from saros_engine.catalog.views import BaseSeries
from saros_engine.expressions.time_filter import TimeContext, conjuncts
from saros_engine.plan.plan import Rows
from saros_engine.planner.context import LogicalPlan, PlanContext
from saros_engine.planner.levels import MergedScope, members_of_series, of_levels
from saros_engine.planner.post_processing import cut_columns, extra_keys, filled, limited, sorted_by, without_null
from saros_engine.planner.query_core import Body, Output, aliases_of, conjunction, is_aggregate, is_time, plan_body
from saros_engine.planner.windows import with_expressions
from saros_grammar.syntax.ast import (
    Expression,
    PathExpression,
    Select,
    SortKey,
)
from saros_storage.base.block import Block
from saros_storage.base.paths import split_path


def plan_by_time(select: Select, context: PlanContext) -> LogicalPlan:
    """Return the plan of a query aligned by time. Raises SemanticError, UserMistake."""
    scope = Scope(context.schema, select.from_paths)
    levels = _level_scope(select, scope)
    results = scope if levels is None else levels
    outputs = cut_columns(_outputs(select, results, context.moment), select)
    time, rest = context.split_time(select.where)
    if not outputs or (
        any(names_series(item.expression) for item in select.items)
        and not any(names_series(o.expression) for o in outputs)
    ):
        return LogicalPlan((), True, Rows(Block(None, (), 0), ()))
    order_by = _expanded_keys(select.order_by, outputs, results)
    base = BaseSeries(context.schema, scope.series)
    # A merged call contains no paths of series; views are resolved in the calls that it represents.
    of = base.of if levels is None else _same
    only_time = len(order_by) == 1 and is_time(order_by[0].expression)
    descending = only_time and order_by[0].descending
    body = Body(
        [Output(output.name, of(output.expression)) for output in outputs],
        [of(key) for key in extra_keys(order_by, outputs)],
        time,
        conjunction(base.of_each(_condition(rest, scope))),
        with_expressions(select.group_by, lambda control: base.of(_only(control, scope))),
        conjunction([of(part) for part in _having(select.having, scope, levels)]),
        scope.series,
        descending,
        None if levels is None else members_of_series(levels.members, base),
    )
    planned = plan_body(body, context)
    node = filled(planned.root, select.fill, context.moment, descending=descending)
    node = without_null(node, select.without_null, outputs, results.expand, context.moment)
    if order_by and not only_time:
        node = sorted_by(node, order_by, outputs, timed=planned.timed)
    node = limited(node, select.limit, select.offset)
    sources = tuple(_source(output.expression, scope) for output in outputs)
    return LogicalPlan(node.fields, planned.timed, node, sources, aliases_of(outputs, context.moment))


def _same(expression: Expression) -> Expression:
    return expression


def _source(expression: Expression, scope: Scope) -> Expression:
    """Return the source expression of a column, in which measurements replace the aliases that the statement used."""
    leaf = scope.series.get(expression) if isinstance(expression, PathExpression) else None
    if leaf is None or leaf.path.nodes[-1] == leaf.series.measurement:
        return expression
    return PathExpression((*split_path(leaf.device.path), leaf.series.measurement))


def _level_scope(select: Select, scope: Scope) -> MergedScope | None:
    """Return the scope of GROUP BY LEVEL, or None without GROUP BY LEVEL. Raises SemanticError."""
    if not select.levels:
        return None
    if select.having is not None:
        for part in (select.having, *(item.expression for item in select.items)):
            if any(len(path.nodes) > 1 for path in paths_of(part)):
                raise SemanticError(
                    "When Having used with GroupByLevel: the suffix paths can only be measurement or one-level wildcard"
                )
    return MergedScope(scope, of_levels(select.levels), is_aggregate, counts_all=True)


def _having(having: Expression | None, scope: Scope, levels: MergedScope | None) -> list[Expression]:
    if levels is None or having is None:
        return _condition(having, scope)
    return [expression for part in conjuncts(having) for expression in levels.expand_known(part)]


def _outputs(select: Select, scope: Scope | MergedScope, moment: TimeContext) -> list[Output]:
    found = []
    for item in select.items:
        expanded = scope.expand(item.expression)
        if item.alias is not None and len(expanded) > 1:
            raise SemanticError(f"alias '{item.alias}' can only be matched with one time series")
        found += [Output(item.alias or column_name(expression, moment), expression) for expression in expanded]
    if select.levels:
        _check_merged_names(found)
    return found


def _check_merged_names(outputs: Sequence[Output]) -> None:
    """Raise SemanticError if a merged column has two different names."""
    names: dict[Expression, str] = {}
    for output in outputs:
        known = names.setdefault(output.expression, output.name)
        if known != output.name:
            raise SemanticError(f"Result column {output.expression} with more than one alias[{known}, {output.name}]")


def _condition(condition: Expression | None, scope: Scope) -> list[Expression]:
    """Expand a condition.

    The condition must hold for all series that its paths match. A path without series counts as null.
    """
    found = []
    for part in conjuncts(condition):
        found += scope.expand_known(part)
    return found


def _expanded_keys(order_by: tuple[SortKey, ...], outputs: list[Output], scope: Scope | MergedScope) -> list[SortKey]:
    """Return ORDER BY with full paths. Raises SemanticError if a key matches no series."""
    names = {output.name for output in outputs}
    found = []
    for key in order_by:
        if is_time(key.expression) or str(key.expression) in names:
            found.append(key)
            continue
        expanded = scope.expand(key.expression)
        if not expanded:
            raise SemanticError(f"{key.expression} in order by clause doesn't exist.")
        found += [replace(key, expression=expression) for expression in expanded]
    return found


def _only(expression: Expression, scope: Scope) -> Expression:
    """Return the expression of GROUP BY with full paths. Raises SemanticError unless it expands to one expression."""
    found = scope.expand(expression)
    if len(found) != 1:
        raise SemanticError(f"the expression {expression} of GROUP BY must match one series, not {len(found)}")
    return found[0]
