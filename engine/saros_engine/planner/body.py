"""The body of a query: scans, join, filter, aggregation and the select items' expressions, over one scope.

    raw          Project( Filter( TimeJoin(Scan ...) ) )
    aggregate    Project( having Filter( Aggregate( Filter( TimeJoin(Scan ...) ) ) ) )
                 Project( having Filter( WindowJoin( AggregateScan ... ) ) )        no value filter, plain arguments

The last form lets scans answer from statistics. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from saros_engine.aggregates import AGGREGATES
from saros_engine.analysis.binding import Columns, bind, predicate
from saros_engine.analysis.scope import Leaf, any_part, children_of, paths_of
from saros_engine.analysis.sources import Source, column_numbers, joined, sources_of
from saros_engine.errors import SemanticError
from saros_engine.expression import Bound, InputColumn
from saros_engine.plan import (
    Aggregate,
    AggregateCall,
    AggregateScan,
    Field,
    Filter,
    Node,
    Project,
    Stage,
    TimeWindows,
    WindowJoin,
)
from saros_engine.planner.context import PlanContext
from saros_engine.planner.windows import windows_of
from saros_grammar.ast import (
    Binary,
    BinaryOperator,
    Call,
    EndTimeReference,
    Expression,
    GroupByWindow,
    PathExpression,
    TimeReference,
)
from saros_storage.reading import TimeRange
from saros_storage.types import DataType


@dataclass(frozen=True, slots=True)
class Output:
    """A result column: its header and its expression, expanded."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Body:
    """What a body is made from; all expressions are expanded, conditions are joined by AND already."""

    outputs: Sequence[Output]
    #: What ORDER BY needs beside the outputs.
    keys: Sequence[Expression]
    time: TimeRange
    where: Expression | None
    group_by: GroupByWindow | None
    having: Expression | None
    series: Mapping[PathExpression, Leaf]
    descending: bool


@dataclass(frozen=True, slots=True)
class Planned:
    """The body's plan: `root.fields` are the outputs, then the keys."""

    root: Project
    timed: bool


def is_aggregate(expression: Expression) -> bool:
    """Whether the expression is a call of an aggregate."""
    return isinstance(expression, Call) and expression.name.lower() in AGGREGATES


def conjunction(parts: Iterable[Expression]) -> Expression | None:
    """The parts joined by AND, as a tree of little depth; None if there are none."""
    level = list(parts)
    while len(level) > 1:
        pairs = [Binary(BinaryOperator.AND, a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0] if level else None


def plan_body(body: Body, context: PlanContext) -> Planned:
    """The plan of a body with at least one output. Raises SemanticError, UserMistake."""
    shown = [output.expression for output in body.outputs]
    aggregated = [any_part(expression, is_aggregate) for expression in shown]
    if not any(aggregated) and body.group_by is None and body.having is None:
        return Planned(_raw(body, context), timed=True)
    for expression, has in zip(shown, aggregated, strict=True):
        if not has and any(paths_of(expression)):
            raise SemanticError("Raw data and aggregation hybrid query is not supported.")
    if body.having is not None and not any_part(body.having, is_aggregate):
        raise SemanticError("Expression of HAVING clause must to be an Aggregation")
    return Planned(_aggregated(body, context), timed=body.group_by is not None)


# ---------------------------------------------------------------------------------------------- raw


def _leaves(expressions: Iterable[Expression], series: Mapping[PathExpression, Leaf]) -> list[Leaf]:
    return [series[path] for expression in expressions for path in paths_of(expression) if path in series]


def _raw(body: Body, context: PlanContext) -> Project:
    shown = [output.expression for output in body.outputs]
    needed = [*shown, *body.keys, *([] if body.where is None else [body.where])]
    child, columns = _filtered(needed, body, context, body.time)
    return _project(child, body, columns)


def _filtered(
    needed: Sequence[Expression], body: Body, context: PlanContext, time: TimeRange, *, descending: bool | None = None
) -> tuple[Node, Columns]:
    """The rows of all series that the expressions speak of, without those that WHERE rejects."""
    backwards = body.descending if descending is None else descending
    leaves = _leaves(needed, body.series)
    if not leaves:
        raise SemanticError("the query names no series: select at least one")
    sources = sources_of(leaves, time, descending=backwards)
    node = joined(sources, descending=backwards)
    columns = Columns(context.moment, column_numbers(sources, leaves))
    if body.where is not None:
        node = Filter(node, predicate(body.where, columns), node.fields)
    return node, columns


def _project(child: Node, body: Body, columns: Columns, *, drop_null_rows: bool = False) -> Project:
    bound = [bind(output.expression, columns) for output in body.outputs]
    fields = [Field(output.name, b.type) for output, b in zip(body.outputs, bound, strict=True)]
    keys = [bind(key, columns) for key in body.keys]
    fields += [Field(str(key), b.type) for key, b in zip(body.keys, keys, strict=True)]
    return Project(child, (*bound, *keys), tuple(fields), drop_null_rows and not keys)


# ---------------------------------------------------------------------------------------------- aggregates


def _aggregated(body: Body, context: PlanContext) -> Project:
    parts = [output.expression for output in body.outputs] + list(body.keys)
    if body.having is not None:
        parts.append(body.having)
    calls = list(dict.fromkeys(call for part in parts for call in _calls(part)))
    if not calls:
        raise SemanticError("GROUP BY needs an aggregate in SELECT")
    end_time = any(any_part(part, lambda e: isinstance(e, EndTimeReference)) for part in parts)
    sources = None if end_time else _plain_sources(calls, body, context)
    node, first = _scans(sources, body, context) if sources else _rows(calls, body, context, end_time=end_time)
    results: dict[Expression, InputColumn] = {
        call: InputColumn(first[call], node.fields[first[call]].type) for call in calls
    }
    end = InputColumn(0, DataType.TIMESTAMP) if end_time else None
    columns = Columns(context.moment, {}, results, end)
    if body.having is not None:
        node = Filter(node, predicate(body.having, columns), node.fields)
    return _project(node, body, columns)


def _calls(expression: Expression) -> Iterator[Call]:
    """Aggregate calls in an expression. Raises SemanticError for one inside another."""
    if isinstance(expression, Call) and is_aggregate(expression):
        if any(any_part(argument, is_aggregate) for argument in expression.arguments):
            raise SemanticError(f"Aggregation results cannot be as input of the aggregation function: {expression}")
        yield expression
        return
    for child in children_of(expression):
        yield from _calls(child)


def _plain_sources(calls: Sequence[Call], body: Body, context: PlanContext) -> list[tuple[Source, list[Call]]] | None:
    """The scans and their calls, if scans can do the whole aggregation; else None."""
    windows = windows_of(body.group_by, Columns(context.moment), context.moment)
    if body.where is not None or not isinstance(windows, TimeWindows | None):
        return None
    for call in calls:
        if not call.arguments or any(argument not in body.series for argument in call.arguments):
            return None
    backwards = body.descending and windows is not None
    sources = sources_of(_leaves(calls, body.series), _scan_time(body, windows), descending=backwards)
    owner = {(leaf.device.path, leaf.series.measurement): source for source in sources for leaf in source.leaves}
    chosen: dict[int, list[Call]] = {id(source): [] for source in sources}
    for call in calls:
        owners = {id(owner[key]) for key in map(_key, _leaves([call], body.series))}
        if len(owners) > 1:
            return None
        chosen[owners.pop()].append(call)
    return [(source, chosen[id(source)]) for source in sources]


def _key(leaf: Leaf) -> tuple[str, str]:
    return leaf.device.path, leaf.series.measurement


def _scan_time(body: Body, windows: object) -> TimeRange:
    if isinstance(windows, TimeWindows):
        return body.time.intersect(TimeRange(windows.start, windows.end))
    return body.time


def _scans(
    sources: Sequence[tuple[Source, list[Call]]], body: Body, context: PlanContext
) -> tuple[Node, dict[Call, int]]:
    """Scans that aggregate, side by side; and each call's column."""
    windows = windows_of(body.group_by, Columns(context.moment), context.moment)
    assert isinstance(windows, TimeWindows | None)
    children: list[Node] = []
    numbers: dict[Call, int] = {}
    for source, own in sources:
        paths = column_numbers([source], source.leaves)
        # A series may be asked for by its name and by its alias.
        paths |= {
            leaf.path: paths[source.leaves[i].path] for leaf in _leaves(own, body.series) for i in _at(source, leaf)
        }
        bound = tuple(_aggregate_call(call, Columns(context.moment, paths)) for call in own)
        fields = tuple(Field(str(call), b.type) for call, b in zip(own, bound, strict=True))
        children.append(AggregateScan(source.request, bound, windows, Stage.SINGLE, fields))
        for call in own:
            numbers[call] = len(numbers)
    node: Node = children[0]
    if len(children) > 1:
        node = WindowJoin(tuple(children), tuple(field for child in children for field in child.fields))
    return node, numbers


def _at(source: Source, leaf: Leaf) -> list[int]:
    return [i for i, own in enumerate(source.leaves) if own.series.measurement == leaf.series.measurement]


def _aggregate_call(call: Call, columns: Columns) -> AggregateCall:
    name = call.name.lower()
    arguments: tuple[Bound, ...] = tuple(bind(argument, columns) for argument in call.arguments)
    type_ = AGGREGATES[name].check([argument.type for argument in arguments], call.attributes)
    return AggregateCall(name, arguments, type_, call.attributes)


def _rows(calls: Sequence[Call], body: Body, context: PlanContext, *, end_time: bool) -> tuple[Node, dict[Call, int]]:
    """One aggregation over the joined and filtered rows; and each call's column."""
    controls = _controls(body.group_by)
    needed: list[Expression] = [*calls, *controls, *([] if body.where is None else [body.where])]
    time = body.time
    bare = windows_of(body.group_by, None, context.moment)
    if isinstance(bare, TimeWindows):
        time = _scan_time(body, bare)
    child, columns = _filtered(needed, body, context, time, descending=False)
    windows = bare if isinstance(bare, TimeWindows) else windows_of(body.group_by, columns, context.moment)
    bound = tuple(_aggregate_call(call, columns) for call in calls)
    fields = [Field("__endTime", DataType.TIMESTAMP)] if end_time else []
    numbers = {call: len(fields) + i for i, call in enumerate(calls)}
    fields += [Field(str(call), b.type) for call, b in zip(calls, bound, strict=True)]
    node = Aggregate(
        child, bound, windows, Stage.SINGLE, tuple(fields), end_time, body.descending and windows is not None
    )
    return node, numbers


def _controls(group_by: GroupByWindow | None) -> list[Expression]:
    """The expressions that windows depend on."""
    found = [getattr(group_by, name, None) for name in ("control", "predicate")]
    return [expression for expression in found if expression is not None]


def is_time(expression: Expression) -> bool:
    """Whether ORDER BY means the time by it."""
    return isinstance(expression, TimeReference) or str(expression).lower() == "time"
