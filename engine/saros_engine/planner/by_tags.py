"""GROUP BY TAGS: a row for each group of series with equal values of the tags. The tags are the first columns.

    avg(temperature) ... group by tags(city)     city | avg(temperature)

In the names of columns, measurements replace paths, and the names of functions are in lower case. Groups are ordered by
their tag values, and groups that lack a tag come last. With windows of time, the groups have this order at each time. A
measurement that a group lacks is null.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from saros_engine.analysis.headers import column_name
from saros_engine.analysis.scope import Scope, any_part, children_of, names_series, paths_of, rebuilt
from saros_engine.base.errors import SemanticError
from saros_engine.catalog.views import BaseSeries
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.plan.expression import InputColumn
from saros_engine.plan.plan import DeviceMerge, Field, Node, Project, Rows
from saros_engine.planner.by_device import same_types
from saros_engine.planner.context import LogicalPlan, PlanContext
from saros_engine.planner.levels import MergedScope, measurement_of, members_of_series
from saros_engine.planner.post_processing import filled, limited, without_null
from saros_engine.planner.query_core import Body, Output, is_aggregate, is_time, plan_body
from saros_grammar.syntax.ast import Call, Expression, GroupByTime, Literal, LiteralKind, Select, SelectItem
from saros_storage.base.block import Block
from saros_storage.base.types import DataType

#: For each key, the value of the tag, or None if the series lacks the tag.
_Group = tuple[str | None, ...]
_NULL = Literal(LiteralKind.NULL, None, "null")


def plan_by_tags(select: Select, context: PlanContext) -> LogicalPlan:
    """Return the plan of GROUP BY TAGS. Raises SemanticError for unsupported clauses."""
    time, rest = context.split_time(select.where)
    _check(select, has_value_filter=rest is not None)
    scope = Scope(context.schema, select.from_paths)
    merged = MergedScope(scope, measurement_of, is_aggregate, counts_all=False)
    outputs = [output for item in select.items for output in _outputs(item, merged, context.moment)]
    if not outputs:
        return LogicalPlan((), True, Rows(Block(None, (), 0), ()))
    base = BaseSeries(context.schema, scope.series)
    groups = sorted(
        {_group_of(call, scope, select.tag_keys) for calls in merged.members.values() for call in calls}, key=_order
    )
    descending = any(key.descending for key in select.order_by)
    bodies, timed = [], False
    for group in groups:
        members = {
            call: [m for m in calls if _group_of(m, scope, select.tag_keys) == group]
            for call, calls in merged.members.items()
        }
        body = Body(
            [*_tags(select.tag_keys, group), *(_of_group(output, members) for output in outputs)],
            (),
            time,
            None,
            select.group_by,
            None,
            scope.series,
            descending,
            members_of_series(members, base),
        )
        planned = plan_body(body, context)
        bodies.append(planned.root)
        timed = planned.timed
    keys = len(select.tag_keys)
    # FILL is applied before the groups are concatenated, so that a null is filled from windows of the same group.
    whole = [
        filled(body, select.fill, context.moment, descending=descending, first=keys)
        for body in same_types(bodies, len(bodies[0].fields))
    ]
    node = _concatenated(whole, by_time=timed, descending=descending)
    node = without_null(node, select.without_null, outputs, merged.expand, context.moment, keys)
    node = limited(node, select.limit, select.offset)
    return LogicalPlan(node.fields, timed, node)


def _check(select: Select, *, has_value_filter: bool) -> None:
    if len(set(select.tag_keys)) < len(select.tag_keys):
        raise SemanticError(f"GROUP BY TAGS names a key twice: {', '.join(select.tag_keys)}")
    for given, what in (
        (select.align_by_device, "ALIGN BY DEVICE"),
        (has_value_filter, "a condition on values"),
        (select.having is not None, "HAVING"),
        (bool(select.levels), "GROUP BY LEVEL"),
        (select.slimit is not None or select.soffset is not None, "SLIMIT and SOFFSET"),
        (select.group_by is not None and not isinstance(select.group_by, GroupByTime), "windows that are not of time"),
        (any(not is_time(key.expression) for key in select.order_by), "ORDER BY of anything but the time"),
    ):
        if given:
            raise SemanticError(f"{what} cannot be combined with GROUP BY TAGS")
    for item in select.items:
        if not any_part(item.expression, is_aggregate):
            raise SemanticError(f"{item.expression} is not an aggregate: GROUP BY TAGS needs aggregates")
        if item.alias in select.tag_keys:
            raise SemanticError(f"Output column is duplicated with the tag key: {item.alias}")
        if any_part(item.expression, lambda part: is_aggregate(part) and not names_series(part)):
            raise SemanticError(
                f"{item.expression} has an aggregate without series: GROUP BY TAGS groups by tags of series"
            )


def _outputs(item: SelectItem, merged: MergedScope, moment: TimeContext) -> list[Output]:
    found = merged.expand(item.expression)
    if item.alias is not None and len(found) > 1:
        raise SemanticError(f"alias '{item.alias}' can only be matched with one measurement, not {len(found)}")
    return [Output(item.alias or column_name(_in_lower_case(one), moment), one) for one in found]


def _in_lower_case(expression: Expression) -> Expression:
    """Return the expression with the names of functions in lower case, as in the names of columns."""
    children = [_in_lower_case(child) for child in children_of(expression)]
    made = rebuilt(expression, children) if children else expression
    return replace(made, name=made.name.lower()) if isinstance(made, Call) else made


def _group_of(call: Call, scope: Scope, keys: Sequence[str]) -> _Group:
    """Return the tags of the call's first series."""
    tags = scope.series[next(paths_of(call))].series.tags
    return tuple(tags.get(key) for key in keys)


def _order(group: _Group) -> list[tuple[bool, str]]:
    return [(value is None, value or "") for value in group]


def _tags(keys: Sequence[str], group: _Group) -> list[Output]:
    return [
        Output(key, _NULL if value is None else Literal(LiteralKind.STRING, value, repr(value)))
        for key, value in zip(keys, group, strict=True)
    ]


def _of_group(output: Output, members: dict[Call, list[Call]]) -> Output:
    """Return the output, or null if the group lacks the series of the output."""
    lacking = any_part(output.expression, lambda part: isinstance(part, Call) and not members.get(part, [part]))
    return Output(output.name, _NULL) if lacking else output


def _concatenated(bodies: list[Node], *, by_time: bool, descending: bool) -> Node:
    """Return the groups' rows as one stream, without the column that identifies the group."""
    fields = bodies[0].fields
    names = tuple(str(number) for number in range(len(bodies)))
    node = DeviceMerge(tuple(bodies), names, (Field("Group", DataType.TEXT), *fields), by_time, descending)
    return Project(node, tuple(InputColumn(number + 1, f.type) for number, f in enumerate(fields)), fields)
