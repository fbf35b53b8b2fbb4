"""Planning of a SELECT: `plan_select` returns its logical plan.

by_time      rows by time or window, or one row in all, with a column per series
by_tags      GROUP BY TAGS: the plans of the groups of series, one after the other
by_device    ALIGN BY DEVICE: the plans of the devices, one after the other
last         SELECT LAST
without_from  SELECT without FROM: one row
query_core   the body of a plan for by_time and by_device: scans, filter, aggregation, expressions
window_range      the range of GROUP BY (1h), for which the data may have to be read before there is a plan
post_processing   the clauses after the body: FILL, ORDER BY, LIMIT

Pure, except for the imports of user-defined functions: any thread.
"""

from __future__ import annotations

from msgspec.structs import replace

from saros_engine.analysis.binding import is_known, unknown_function
from saros_engine.analysis.scope import any_part, children_of, counts_rows
from saros_engine.base.errors import SemanticError
from saros_engine.extensions.registered import resolved
from saros_engine.planner.by_device import plan_by_device
from saros_engine.planner.by_tags import plan_by_tags
from saros_engine.planner.by_time import plan_by_time
from saros_engine.planner.context import LogicalPlan, PlanContext
from saros_engine.planner.last import LastItem, last_scan, plan_last
from saros_engine.planner.post_processing import row_count
from saros_engine.planner.query_core import has_own_points, is_aggregate
from saros_engine.planner.windows import with_expressions
from saros_engine.planner.without_from import plan_without_from
from saros_grammar.syntax.ast import (
    Call,
    Case,
    EndTimeReference,
    Expression,
    PathExpression,
    Select,
    SelectItem,
    SortKey,
    TimeReference,
)
from saros_storage.schema import Catalogue

__all__ = ["LastItem", "LogicalPlan", "PlanContext", "last_scan", "plan_select"]


def plan_select(select: Select, context: PlanContext) -> LogicalPlan:
    """Return the plan of a SELECT whose parameters are bound.

    Raises SemanticError, NotSupportedError, UserMistake.
    """
    if select.table is not None:
        raise SemanticError("information_schema can only be read by a plain SELECT, not by EXPLAIN, INTO or a view")
    select = _with_registered(select, context.schema.catalogue)
    select = replace(select, order_by=_deciding(select.order_by))
    if select.levels and (select.align_by_device or select.last):
        raise SemanticError("GROUP BY LEVEL cannot be combined with ALIGN BY DEVICE or LAST")
    for item in select.items:
        _check_cases(item.expression)
        _check_functions(item.expression)
    _check_end_time(select)
    _check_row_counts(select)
    _check_limits(select)
    if not select.from_paths:
        return plan_without_from(select, context)
    _check_aliases(select)
    if select.last:
        return plan_last(select, context)
    select = _with_end_time_first(select)
    if select.tag_keys:
        return plan_by_tags(select, context)
    _check_mixture(select)
    return plan_by_device(select, context) if select.align_by_device else plan_by_time(select, context)


def _with_registered(select: Select, catalogue: Catalogue) -> Select:
    """Resolve calls of user-defined functions. Raises UserMistake 1200 if this node lacks a function."""
    if not catalogue.by_key:
        return select

    def change(expression: Expression) -> Expression:
        return resolved(expression, catalogue)

    return replace(
        select,
        items=tuple(replace(item, expression=change(item.expression)) for item in select.items),
        where=None if select.where is None else change(select.where),
        group_by=with_expressions(select.group_by, change),
        having=None if select.having is None else change(select.having),
        order_by=tuple(replace(key, expression=change(key.expression)) for key in select.order_by),
    )


def _deciding(keys: tuple[SortKey, ...]) -> tuple[SortKey, ...]:
    """Return the keys of ORDER BY, without the keys that repeat an earlier key and therefore have no effect."""
    first: dict[str, SortKey] = {}
    for key in keys:
        text = str(key.expression)
        first.setdefault(text.lower() if text.lower() in ("time", "device") else text, key)
    return tuple(first.values())


def _check_cases(expression: Expression) -> None:
    """Raise SemanticError if CASE is combined with a function that does not return one value per input row."""
    if any_part(expression, lambda part: isinstance(part, Case)) and any_part(expression, has_own_points):
        raise SemanticError(f"CASE expression cannot be used with non-mappable UDF: {expression}")


def _check_functions(expression: Expression) -> None:
    """Raise SemanticError for an unknown function, even if no series matches its arguments."""
    if isinstance(expression, Call) and not is_known(expression):
        raise unknown_function(expression)
    for child in children_of(expression):
        _check_functions(child)


def _check_end_time(select: Select) -> None:
    """Raise SemanticError if `__endTime` is inside an expression, in ORDER BY, used with INTO, or without windows."""
    keys = [key.expression for key in select.order_by]
    items = [item.expression for item in select.items]
    whole = [one for one in items if isinstance(one, EndTimeReference)]
    parts = [one for one in items if not isinstance(one, EndTimeReference)]
    if whole and select.group_by is None:
        raise SemanticError("__endTime needs GROUP BY with windows")
    if whole and select.into is not None:
        raise SemanticError("__endTime cannot be written with INTO")
    for expression in (*parts, *keys):
        if any_part(expression, lambda part: isinstance(part, EndTimeReference)):
            raise SemanticError(f"__endTime can only be a column of its own, not in {expression}")


def _check_aliases(select: Select) -> None:
    """Raise SemanticError if two columns have the same alias."""
    aliases = [item.alias for item in select.items if item.alias is not None]
    twice = next((alias for number, alias in enumerate(aliases) if alias in aliases[:number]), None)
    if twice is not None:
        raise SemanticError(f"alias '{twice}' can only be matched with one time series")


def _with_end_time_first(select: Select) -> Select:
    """Replace all `__endTime` items of the query by a single one without an alias, which is the first item."""
    ends = [item.expression for item in select.items if isinstance(item.expression, EndTimeReference)]
    first = [SelectItem(end) for end in ends[:1]]
    others = [item for item in select.items if not isinstance(item.expression, EndTimeReference)]
    return replace(select, items=(*first, *others))


def _check_mixture(select: Select) -> None:
    """Raise SemanticError if raw data is mixed with aggregates, even if a path matches no series."""
    shown, having = [item.expression for item in select.items], select.having
    timed = select.group_by is not None
    if not timed and having is None and not any(any_part(expression, is_aggregate) for expression in shown):
        return
    for expression in shown:
        raw = _names_raw(expression, PathExpression)
        if raw and any_part(expression, is_aggregate):
            raise SemanticError("Raw data and aggregation result hybrid calculation is not supported.")
        if raw or (not timed and _names_raw(expression, TimeReference)):
            raise SemanticError("Raw data and aggregation hybrid query is not supported.")
    if having is not None and (not any_part(having, is_aggregate) or (not timed and _names_raw(having, TimeReference))):
        raise SemanticError("Expression of HAVING clause must be an Aggregation")


def _names_raw(expression: Expression, kind: type[PathExpression | TimeReference]) -> bool:
    """Return whether an expression of class `kind` (a path or `time`) occurs outside of aggregates."""
    if is_aggregate(expression):
        return False
    return isinstance(expression, kind) or any(_names_raw(child, kind) for child in children_of(expression))


def _check_limits(select: Select) -> None:
    """Raise SemanticError for an invalid number in LIMIT, OFFSET, SLIMIT or SOFFSET, even if the result is empty."""
    counts = ("LIMIT", select.limit), ("OFFSET", select.offset), ("SLIMIT", select.slimit), ("SOFFSET", select.soffset)
    for what, expression in counts:
        row_count(expression, what)


def _check_row_counts(select: Select) -> None:
    """Raise SemanticError if COUNT_TIME is combined with unsupported items or clauses."""
    parts = [item.expression for item in select.items]
    if select.having is not None and any_part(select.having, counts_rows):
        raise SemanticError("count_time(*) is not allowed in HAVING")
    counting = [part for part in parts if any_part(part, counts_rows)]
    if not counting:
        return
    beside = [part for part in parts if not isinstance(part, EndTimeReference)]
    if len(beside) > 1 or not counts_rows(beside[0]):
        raise SemanticError("Count_time aggregation can only exist alone, not with other columns or in an expression")
    if select.having is not None or select.levels or select.tag_keys:
        raise SemanticError("count_time(*) cannot be combined with HAVING, GROUP BY LEVEL or GROUP BY TAGS")
