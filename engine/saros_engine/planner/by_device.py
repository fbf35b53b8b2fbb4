"""ALIGN BY DEVICE: plans each device separately.

All devices have the same columns, of which the first is the name of the device.

    select s1, s2 from root.a.*      DeviceMerge( d1: Project(s1, s2)   d2: Project(s1, null) )

The result has a column if at least one device has this column. A device without any of the columns has no rows in it.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from saros_engine.analysis.headers import column_name
from saros_engine.analysis.scope import DeviceScope, names_series, paths_of, require_suffix
from saros_engine.base.errors import SemanticError
from saros_engine.catalog.views import BaseSeries
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.plan.expression import Bound, Constant
from saros_engine.plan.plan import DeviceMerge, Field, Node, Project, Rows
from saros_engine.planner.context import LogicalPlan, PlanContext
from saros_engine.planner.post_processing import cut_columns, extra_keys, filled, limited, sorted_by, without_null
from saros_engine.planner.query_core import Body, Output, aliases_of, conjunction, is_time, plan_body
from saros_engine.planner.windows import with_expressions
from saros_grammar.syntax.ast import Expression, GroupByCondition, Literal, LiteralKind, PathExpression, Select, SortKey
from saros_storage.base.block import Block
from saros_storage.base.paths import parse_pattern, split_path
from saros_storage.base.types import DataType
from saros_storage.schema import DeviceSchema

_NULL = Literal(LiteralKind.NULL, None, "null")
_DEVICE = Field("Device", DataType.TEXT)


class _Column(msgspec.Struct, frozen=True):
    """A result column, with its expression for each device that has the column."""

    name: str
    by_device: dict[str, Expression]


def plan_by_device(select: Select, context: PlanContext) -> LogicalPlan:
    """Return the plan of ALIGN BY DEVICE. Raises SemanticError, UserMistake."""
    order = select.order_by
    for item in select.items:
        for path in paths_of(item.expression):
            require_suffix(path)  # this is checked even if there are no devices
    scopes = [DeviceScope(device) for device in _devices(select, context)]
    if (order and str(order[0].expression).lower() == "device" and order[0].descending) or (
        len(order) > 1 and str(order[1].expression).lower() == "device" and order[1].descending
    ):
        scopes.reverse()
    columns = _cut(_columns(select, scopes, context.moment), select)
    used = _with_series(select, scopes, columns)
    if not used:
        return LogicalPlan((), True, Rows(Block(None, (), 0), ()))
    descending = any(is_time(key.expression) and key.descending for key in order)
    _check_keys(order, columns, scopes)
    planned = [plan_body(_body(select, scope, columns, context, descending=descending), context) for scope in used]
    bodies = same_types([p.root for p in planned], len(columns))
    timed = planned[0].timed
    by_time = bool(order) and is_time(order[0].expression) and timed
    fields = (_DEVICE, *bodies[0].fields)
    names = tuple(scope.device.path for scope in used)
    node: Node = DeviceMerge(tuple(bodies), names, fields, by_time, descending)
    node = filled(node, select.fill, context.moment, descending=descending)
    outputs = [Output(column.name, next(iter(column.by_device.values()), _NULL)) for column in columns]
    node = without_null(node, select.without_null, outputs, lambda e: _expanded(e, scopes), context.moment, 1)
    if any(not _is_order(key) for key in order):
        node = sorted_by(node, order, outputs, ("device",), timed=timed)
    node = limited(node, select.limit, select.offset)
    sources = tuple(next(iter(column.by_device.values()), _NULL) for column in columns)
    aliases = aliases_of(outputs, context.moment)
    return LogicalPlan(node.fields, timed, node, sources, aliases, tuple(sorted(names, key=split_path)))


def _expanded(expression: Expression, scopes: list[DeviceScope]) -> list[Expression]:
    """Return the expressions to which an expression expands in any of the devices, without duplicates."""
    return list(dict.fromkeys([found for scope in scopes for found in scope.expand(expression)]))


def _with_series(select: Select, scopes: list[DeviceScope], columns: list[_Column]) -> list[DeviceScope]:
    """Return the devices with at least one column. If some columns name series, only columns that name series count."""
    found = [[c.by_device[s.device.path] for c in columns if s.device.path in c.by_device] for s in scopes]
    if any(names_series(item.expression) for item in select.items):
        found = [[expression for expression in own if names_series(expression)] for own in found]
    return [scope for scope, own in zip(scopes, found, strict=True) if own]


def _check_keys(order: tuple[SortKey, ...], columns: list[_Column], scopes: list[DeviceScope]) -> None:
    """Raise SemanticError for a key of ORDER BY that does not exist in any device."""
    names = {column.name for column in columns}
    for key in order:
        known = _is_order(key) or str(key.expression) in names or any(scope.expand(key.expression) for scope in scopes)
        if not known:
            raise SemanticError(f"{key.expression} in order by clause doesn't exist.")


def _is_order(key: SortKey) -> bool:
    """Return whether a key of ORDER BY is the time or the device, by which the DeviceMerge already sorts."""
    return is_time(key.expression) or str(key.expression).lower() == "device"


def _devices(select: Select, context: PlanContext) -> list[DeviceSchema]:
    found: dict[str, DeviceSchema] = {}
    for path in select.from_paths:
        if path.has_wildcard:
            for device in context.schema.match_devices(parse_pattern(str(path))):
                found[device.path] = device
        else:
            known = context.schema.device(str(path))
            if known is not None:
                found[known.path] = known
    return [found[path] for path in sorted(found, key=split_path)]


def _columns(select: Select, scopes: list[DeviceScope], moment: TimeContext) -> list[_Column]:
    columns: list[_Column] = []
    for item in select.items:
        own: dict[str, _Column] = {}
        for scope in scopes:
            expanded = scope.expand(item.expression)
            if item.alias is not None and len(expanded) > 1:
                raise SemanticError(f"alias '{item.alias}' can only be matched with one time series")
            for expression in expanded:
                name = item.alias or column_name(expression, moment)
                own.setdefault(name, _Column(name, {})).by_device[scope.device.path] = expression
        if not own and isinstance(item.expression, PathExpression) and not item.expression.has_wildcard:
            name = item.alias or str(item.expression)
            own[name] = _Column(name, {})
        columns += own.values()
    return columns


def _cut(columns: list[_Column], select: Select) -> list[_Column]:
    outputs = [Output(column.name, next(iter(column.by_device.values()), _NULL)) for column in columns]
    kept = {id(output) for output in cut_columns(outputs, select)}
    return [column for column, output in zip(columns, outputs, strict=True) if id(output) in kept]


def _body(
    select: Select, scope: DeviceScope, columns: list[_Column], context: PlanContext, *, descending: bool
) -> Body:
    outputs = [Output(column.name, column.by_device.get(scope.device.path, _NULL)) for column in columns]
    keys = extra_keys(select.order_by, outputs, ("device",)) if any(not _is_order(k) for k in select.order_by) else []
    time, rest = context.split_time(select.where)
    for condition in (rest, select.having, *keys, *_window_expressions(select)):
        for path in () if condition is None else paths_of(condition):
            scope.find(path)  # this registers the series in the scope; a measurement that the device lacks is null
    base = BaseSeries(context.schema, scope.series, split_path(scope.device.path))
    return Body(
        [Output(output.name, base.of(output.expression)) for output in outputs],
        base.of_each(keys),
        time,
        conjunction(base.of_each([] if rest is None else scope.expand(rest) or [rest])),
        with_expressions(select.group_by, base.of),
        conjunction(base.of_each([] if select.having is None else scope.expand(select.having) or [select.having])),
        scope.series,
        descending,
    )


def _window_expressions(select: Select) -> list[Expression]:
    group_by = select.group_by
    if isinstance(group_by, GroupByCondition):
        return [group_by.predicate]
    control = getattr(group_by, "control", None)
    return [] if control is None else [control]


def same_types(bodies: list[Project], width: int) -> list[Project]:
    """Give each null column the type that the column has in other devices. Raises SemanticError if types differ."""
    types: list[DataType | None] = [None] * len(bodies[0].fields)
    for body in bodies:
        for number, bound in enumerate(body.expressions):
            if _missing(bound):
                continue
            if types[number] not in (None, bound.type) and number < width:
                raise SemanticError("data types of the same measurement column should be the same across devices.")
            types[number] = bound.type
    return [_retyped(body, types) for body in bodies]


def _missing(bound: Bound) -> bool:
    return isinstance(bound, Constant) and bound.value is None


def _retyped(body: Project, types: list[DataType | None]) -> Project:
    expressions = []
    for bound, type_ in zip(body.expressions, types, strict=True):
        expressions.append(Constant(None, DataType.TEXT if type_ is None else type_) if _missing(bound) else bound)
    fields = tuple(Field(f.name, e.type) for f, e in zip(body.fields, expressions, strict=True))
    return replace(body, expressions=tuple(expressions), fields=fields)
