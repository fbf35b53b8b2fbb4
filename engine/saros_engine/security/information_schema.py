"""information_schema presents the rows of SHOW as tables that SELECT can read.

    select timeseries, data_type from information_schema.timeseries where database = 'root.plant' order by timeseries
    show queries where elapsedtime > 1 order by elapsedtime desc limit 3

    rows of the SHOW -> Filter -> Sort -> Limit -> Project            Filter -> Aggregate -> Project, with aggregates

A table has the rows and the columns of a SHOW statement, and needs the same privileges. Each SELECT executes this SHOW.
The rows of a table have no time, so clauses and functions that need times or series are refused. IoTDB has such tables
only in its table model; a column that exists in both products has IoTDB's name (`start_time` of queries). Names omit
characters that would need quotes (`ttl_ms`).

Pure: any thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from saros_engine.analysis.binding import Columns, bind, predicate
from saros_engine.analysis.scope import any_part, children_of, paths_of, rebuilt
from saros_engine.base.errors import SemanticError
from saros_engine.base.row_set import Row, RowSet
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.functions.function import FunctionKind
from saros_engine.functions.registry import AGGREGATES, FUNCTIONS
from saros_engine.plan.expression import Bound, Constant, InputColumn
from saros_engine.plan.plan import Aggregate, AggregateCall, Field, Filter, Node, Project, Rows, Sort, SortItem, Stage
from saros_engine.planner.context import LogicalPlan
from saros_engine.planner.post_processing import limited
from saros_engine.planner.query_core import is_aggregate, makes_points
from saros_grammar.syntax.ast import (
    CHOSEN_BY_COLUMNS,
    Call,
    EndTimeReference,
    Expression,
    PathExpression,
    Select,
    SelectItem,
    Show,
    ShowKind,
    TimeReference,
)
from saros_grammar.syntax.literals import canonical_name
from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType

#: The SHOW that supplies the rows of each table.
TABLES = {
    "databases": Show(ShowKind.DATABASES),
    "devices": Show(ShowKind.DEVICES, details=True),
    "timeseries": Show(ShowKind.TIMESERIES),
    "views": Show(ShowKind.VIEWS),
    "queries": Show(ShowKind.QUERIES),
    "slow_queries": Show(ShowKind.SLOW_QUERIES),
    "functions": Show(ShowKind.FUNCTIONS),
    "variables": Show(ShowKind.VARIABLES),
    "nodes": Show(ShowKind.CLUSTER, details=True),
    "regions": Show(ShowKind.REGIONS),
    "partitions": Show(ShowKind.PARTITIONS),
    "files": Show(ShowKind.FILES),
}
_RENAMED = {
    "Time": "start_time",
    "TTL(ms)": "ttl_ms",
    "ClassName(UDF)": "class_name",
    "DataNodeId": "datanode_id",
    "MemTableBytes": "memtable_bytes",
}
_ALL = PathExpression(("*",))


def show_of(select: Select) -> Show:
    """Return the SHOW for a SELECT's table. Raises SemanticError for an unknown table or unsuitable clauses."""
    show = TABLES.get(select.table or "")
    if show is None:
        raise SemanticError(f"information_schema has no table {select.table}: use one of {', '.join(TABLES)}")
    for clause, given in (
        ("LAST", select.last),
        ("GROUP BY", select.group_by or select.levels or select.tag_keys),
        ("HAVING", select.having),
        ("FILL", select.fill),
        ("SLIMIT", select.slimit or select.soffset),
        ("ALIGN BY DEVICE", select.align_by_device),
        ("WITHOUT NULL", select.without_null),
        ("INTO", select.into),
    ):
        if given:
            raise SemanticError(f"{clause} cannot be used with information_schema, whose rows are not points of series")
    return show


def column_name(header: str) -> str:
    """Return the name of a table's column for a header of SHOW, such as is_aligned for IsAligned."""
    return _RENAMED.get(header) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", header).lower()


def plan_table(select: Select, shown: RowSet, moment: TimeContext) -> LogicalPlan:
    """Return the plan over the rows of the SHOW. Raises SemanticError, UserMistake."""
    fields = tuple(Field(column_name(field.name), field.type) for field in shown.fields)
    node, names = _source(fields, [canonical_name(field.name) for field in fields], shown.rows, moment)
    table = f"information_schema.{select.table}"
    items = [whole for item in select.items for whole in _expanded(item, fields)]
    for expression in [*(item.expression for item in items), select.where]:
        _check(expression, names, table)
    for key in select.order_by:
        _check(key.expression, names, table, {item.alias for item in items})
    if select.where is not None:
        node = Filter(node, predicate(select.where, names), fields)
    if any(any_part(item.expression, is_aggregate) for item in items):
        if select.order_by:
            raise SemanticError("ORDER BY cannot be used with aggregates of information_schema: they return one row")
        node, names = _aggregated(node, items, names)
    elif select.order_by:
        node = Sort(node, tuple(_sort_items(select, items, names)), fields)
    node = limited(node, select.limit, select.offset)
    bound = tuple(bind(item.expression, names) for item in items)
    outputs = tuple(Field(_header(item), b.type) for item, b in zip(items, bound, strict=True))
    return LogicalPlan(outputs, False, Project(node, bound, outputs))


def chooses(show: Show) -> bool:
    """Return whether `plan_show` must apply clauses (WHERE, ORDER BY, LIMIT) to the rows of a SHOW."""
    clauses = show.where, show.limit, show.offset
    return show.kind in CHOSEN_BY_COLUMNS and (bool(show.order_by) or any(clause is not None for clause in clauses))


def plan_show(show: Show, shown: RowSet, moment: TimeContext) -> LogicalPlan:
    """Return the plan of a SHOW with clauses.

    Clauses name columns by their headers, in any letter case. Raises SemanticError.
    """
    fields = shown.fields
    node, names = _source(fields, [field.name.lower() for field in fields], shown.rows, moment)
    what = f"SHOW {show.kind.value.upper()}"
    where = None if show.where is None else _in_lower_case(show.where)
    keys = [replace(key, expression=_in_lower_case(key.expression)) for key in show.order_by]
    for expression in [where, *(key.expression for key in keys)]:
        _check(expression, names, what)
    if where is not None:
        node = Filter(node, predicate(where, names), fields)
    if keys:
        items = [SortItem(bind(key.expression, names), key.descending, bool(key.nulls_first)) for key in keys]
        node = Sort(node, tuple(items), fields)
    return LogicalPlan(fields, False, limited(node, show.limit, show.offset))


def _source(
    fields: tuple[Field, ...], names: Sequence[str], rows: Sequence[Row], moment: TimeContext
) -> tuple[Node, Columns]:
    """Return a plan node with the rows, and the columns to which the names refer."""
    columns = tuple(Column.of(field.type, [row[i] for row in rows]) for i, field in enumerate(fields))
    inputs = [InputColumn(i, field.type) for i, field in enumerate(fields)]
    known = {PathExpression((name,)): column for name, column in zip(names, inputs, strict=True)}
    return Rows(Block(None, columns, len(rows)), fields), Columns(moment, known)


def _in_lower_case(expression: Expression) -> Expression:
    """Return the expression with the names of columns in lower case; Time counts as a column."""
    if isinstance(expression, TimeReference):
        return PathExpression(("time",))
    if isinstance(expression, PathExpression):
        return PathExpression(tuple(node.lower() for node in expression.nodes))
    children = children_of(expression)
    return rebuilt(expression, [_in_lower_case(child) for child in children]) if children else expression


def _expanded(item: SelectItem, fields: Sequence[Field]) -> list[SelectItem]:
    """Expand `*` to all columns."""
    if item.expression != _ALL:
        return [item]
    if item.alias is not None:
        raise SemanticError(f"alias '{item.alias}' can only be matched with one column")
    return [SelectItem(PathExpression((canonical_name(field.name),))) for field in fields]


def _header(item: SelectItem) -> str:
    return item.alias or str(item.expression)


def _check(expression: Expression | None, columns: Columns, table: str, aliases: Collection[str | None] = ()) -> None:
    """Raise SemanticError for names that are not columns, and for expressions that need times or series."""
    if expression is None:
        return
    for path in paths_of(expression):
        if path not in columns.paths and path != _ALL and str(path) not in aliases:
            there = ", ".join(str(one) for one in columns.paths)
            raise SemanticError(f"{table} has no column {path}: its columns are {there}")
    if any_part(expression, lambda part: isinstance(part, TimeReference | EndTimeReference)):
        raise SemanticError(f"{table} has no time")
    if any_part(expression, _needs_series):
        raise SemanticError(f"{expression} needs points of series, which {table} does not have")


def _needs_series(part: Expression) -> bool:
    if not isinstance(part, Call):
        return False
    function = FUNCTIONS.get(part.name.lower())
    of_series = function is not None and function.kind is FunctionKind.SERIES
    timed = part.name.lower() in _TIMED
    return makes_points(part) or of_series or timed


#: Aggregates that use times.
_TIMED = frozenset(
    {
        "min_time", "max_time", "time_duration", "first_value", "last_value", "count_time", "count_if",
        "max_by", "min_by",
    }
)  # fmt: skip


def _aggregated(node: Node, items: Sequence[SelectItem], names: Columns) -> tuple[Node, Columns]:
    """Return a node that computes one row of aggregates, and the columns of this row to which the items refer."""
    calls = list(dict.fromkeys([call for item in items for call in _calls(item.expression)]))
    bound = []
    for call in calls:
        name = call.name.lower()
        arguments = tuple(_argument(argument, name, names) for argument in call.arguments)
        type_ = AGGREGATES[name].check([argument.type for argument in arguments], call.attributes)
        bound.append(AggregateCall(name, arguments, type_, call.attributes))
    fields = tuple(Field(str(call), b.type) for call, b in zip(calls, bound, strict=True))
    node = Aggregate(node, tuple(bound), None, Stage.SINGLE, fields)
    results: dict[Expression, Bound] = {call: InputColumn(i, fields[i].type) for i, call in enumerate(calls)}
    return node, Columns(names.moment, {}, results)


def _argument(argument: Expression, name: str, names: Columns) -> Bound:
    if argument != _ALL:
        return bind(argument, names)
    if name != "count":
        raise SemanticError(f"{name}(*) is not possible: name a column; only count takes *")
    return Constant(True, DataType.BOOLEAN)


def _calls(expression: Expression) -> list[Call]:
    if isinstance(expression, Call) and is_aggregate(expression):
        return [expression]
    return [call for child in children_of(expression) for call in _calls(child)]


def _sort_items(select: Select, items: Sequence[SelectItem], names: Columns) -> list[SortItem]:
    """Return the keys of ORDER BY over the table's columns; an alias is replaced by its expression."""
    aliases: dict[str, Expression] = {item.alias: item.expression for item in items if item.alias is not None}
    return [
        SortItem(bind(_without_aliases(key.expression, aliases), names), key.descending, bool(key.nulls_first))
        for key in select.order_by
    ]


def _without_aliases(expression: Expression, aliases: dict[str, Expression]) -> Expression:
    if isinstance(expression, PathExpression):
        return aliases.get(str(expression), expression)
    children = children_of(expression)
    return rebuilt(expression, [_without_aliases(child, aliases) for child in children]) if children else expression
