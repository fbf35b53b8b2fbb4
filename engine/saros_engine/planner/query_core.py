"""Planning of the body of a query: the scans of one scope, join, filter, aggregation, and the items' expressions.

    raw          Project( Filter( TimeJoin(Scan ...) ) )
    aggregate    Project( having Filter( Aggregate( Filter( TimeJoin(Scan ...) ) ) ) )
                 Project( having Filter( WindowJoin( AggregateScan ... ) ) )        no value filter, plain arguments

The last form is for queries without a value filter whose aggregates have only series as arguments. In this form, the
scans can use statistics. Pure: any thread.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from saros_engine.analysis.binding import NULL, Columns, bind, is_null, predicate
from saros_engine.analysis.headers import column_name
from saros_engine.analysis.scope import Leaf, any_part, children_of, paths_of
from saros_engine.analysis.sources import Source, column_numbers, joined, source_key, sources_of
from saros_engine.base.errors import SemanticError
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.functions.count_if import threshold_of
from saros_engine.functions.function import FunctionKind
from saros_engine.functions.registry import RegisteredCall, aggregate_named, function_named, state_types
from saros_engine.plan.expression import Bound, Constant, FunctionCall, InputColumn, InputTime, NullTest, Operation
from saros_engine.plan.plan import (
    Aggregate,
    AggregateCall,
    AggregateScan,
    Field,
    Filter,
    Generate,
    LevelMerge,
    Node,
    Project,
    Sort,
    SortItem,
    Stage,
    TimeJoin,
    TimeWindows,
    WindowJoin,
)
from saros_engine.planner.context import PlanContext
from saros_engine.planner.windows import rows_of_windows, windows_of
from saros_engine.transforms import POINT_FUNCTIONS
from saros_grammar.syntax.ast import (
    Binary,
    BinaryOperator,
    Call,
    EndTimeReference,
    Expression,
    GroupByTime,
    GroupByWindow,
    Literal,
    LiteralKind,
    PathExpression,
    TimeReference,
)
from saros_storage.base.types import DataType
from saros_storage.scan.reading import TimeRange, rows_per_block


class Output(msgspec.Struct, frozen=True):
    """A result column, with its header and its expanded expression."""

    name: str
    expression: Expression


def aliases_of(outputs: Sequence[Output], moment: TimeContext) -> tuple[str | None, ...]:
    """Return the columns' aliases in the statement, with None for a column without an alias."""
    return tuple(None if output.name == column_name(output.expression, moment) else output.name for output in outputs)


class Body(msgspec.Struct, frozen=True):
    """The input of `plan_body`; all expressions are already expanded."""

    outputs: Sequence[Output]
    #: Expressions of ORDER BY that are not outputs.
    keys: Sequence[Expression]
    time: TimeRange
    where: Expression | None
    group_by: GroupByWindow | None
    having: Expression | None
    series: Mapping[PathExpression, Leaf]
    descending: bool
    #: For GROUP BY LEVEL and TAGS, the calls over series that each merged call represents; otherwise None.
    members: Mapping[Call, Sequence[Call]] | None = None


class Planned(msgspec.Struct, frozen=True):
    """The body's plan; `root.fields` are the outputs, followed by the keys."""

    root: Project
    timed: bool


def is_aggregate(expression: Expression) -> bool:
    """Return whether the expression is a call of an aggregate."""
    return isinstance(expression, Call) and aggregate_named(expression) is not None


def conjunction(parts: Iterable[Expression]) -> Expression | None:
    """Return the parts joined by AND as a balanced tree, or None without parts."""
    level = list(parts)
    while len(level) > 1:
        pairs = [Binary(BinaryOperator.AND, a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0] if level else None


def plan_body(body: Body, context: PlanContext) -> Planned:
    """Return the plan of a body with at least one output. Raises SemanticError, UserMistake."""
    aggregated = any(any_part(output.expression, is_aggregate) for output in body.outputs)
    if not aggregated and body.group_by is None and body.having is None:
        return Planned(_raw(body, context), timed=True)
    return Planned(_aggregated(body, context), timed=body.group_by is not None)


# ---------------------------------------------------------------------------------------------- raw


def _leaves(expressions: Iterable[Expression], series: Mapping[PathExpression, Leaf]) -> list[Leaf]:
    return [series[path] for expression in expressions for path in paths_of(expression) if path in series]


def _raw(body: Body, context: PlanContext) -> Project:
    needed = [*(output.expression for output in body.outputs), *body.keys]
    if not any(any_part(expression, makes_points) for expression in needed):
        child, columns = _filtered([*needed, *_where(body)], body, context, body.time)
    else:
        child, columns = _with_points(needed, body, context)
        if body.descending:
            child = Sort(child, (SortItem(InputTime(), descending=True, nulls_first=False),), child.fields)
    project = _project(child, body, columns)
    shown = [output.expression for output in body.outputs]
    sparse = all(map(_is_null, shown)) or any(any_part(expression, has_own_points) for expression in shown)
    return _without_empty_rows(project, len(body.outputs)) if sparse else project


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.kind is LiteralKind.NULL


def _without_empty_rows(project: Project, width: int) -> Project:
    """Remove the rows in which all outputs are null."""
    fields = project.fields
    tests: list[Bound] = [NullTest(InputColumn(i, fields[i].type), negated=True) for i in range(width)]
    some = functools.reduce(lambda a, b: Operation(BinaryOperator.OR, a, b, DataType.BOOLEAN), tests)
    # An output that is always null must stay recognisable as such, because another device determines its type.
    pairs = enumerate(project.expressions)
    same = tuple(bound if is_null(bound) else InputColumn(i, fields[i].type) for i, bound in pairs)
    return Project(Filter(project, some, fields), same, fields)


def _where(body: Body) -> list[Expression]:
    return [] if body.where is None else [body.where]


def makes_points(expression: Expression) -> bool:
    """Return whether the expression is a call of a function that generates points at any times."""
    if not isinstance(expression, Call) or isinstance(expression, RegisteredCall):
        return False
    return expression.name.lower() in POINT_FUNCTIONS


#: Series functions with one value per row, which CASE accepts.
_ROW_BY_ROW = frozenset({"diff"})


def has_own_points(expression: Expression) -> bool:
    """Return whether the expression is a call of a function whose points need not be at the times of its argument."""
    if not isinstance(expression, Call):
        return False
    function = function_named(expression)
    if function is None:
        return makes_points(expression)
    return function.kind is FunctionKind.SERIES and expression.name.lower() not in _ROW_BY_ROW


def _with_points(needed: Sequence[Expression], body: Body, context: PlanContext) -> tuple[Node, Columns]:
    """Return ascending rows with the series that the expressions name and the points that their functions generate."""
    calls = list(dict.fromkeys([call for expression in needed for call in _outermost(expression)]))
    outside = [path for expression in needed for path in _paths_outside(expression)]
    children: list[Node] = []
    paths: Mapping[PathExpression, InputColumn] = {}
    if _leaves(outside, body.series) or not calls:
        child, columns = _filtered([*outside, *_where(body)], body, context, body.time, descending=False)
        children, paths = [child], columns.paths
    points: dict[Expression, Bound] = {}
    for call in calls:
        made = _generated(call, body, context)
        points[call] = NULL if made is None else InputColumn(sum(len(c.fields) for c in children), made.fields[0].type)
        children += [] if made is None else [made]
    if not children:  # all calls are null: return only the series' rows
        children = [_filtered([*needed, *_where(body)], body, context, body.time, descending=False)[0]]
    node = children[0]
    if len(children) > 1:
        node = TimeJoin(tuple(children), tuple(field for child in children for field in child.fields))
    return node, Columns(context.moment, paths, points=points)


def _generated(call: Call, body: Body, context: PlanContext) -> Generate | None:
    """Return the points of one call, or None if it names a series that does not exist."""
    child, columns = _with_points(call.arguments, body, context)
    arguments = tuple(bind(argument, columns) for argument in call.arguments)
    if any(is_null(argument) for argument in arguments):
        return None
    name = call.name.lower()
    type_ = POINT_FUNCTIONS[name].check([argument.type for argument in arguments], call.attributes)
    return Generate(child, FunctionCall(name, arguments, type_, call.attributes), (Field(str(call), type_),))


def _outermost(expression: Expression) -> Iterator[Call]:
    """Yield the point-generating calls that are not inside another such call."""
    if isinstance(expression, Call) and makes_points(expression):
        yield expression
        return
    for child in children_of(expression):
        yield from _outermost(child)


def _paths_outside(expression: Expression) -> Iterator[PathExpression]:
    """Yield the paths that are not inside a point-generating call."""
    if isinstance(expression, PathExpression):
        yield expression
    if not makes_points(expression):
        for child in children_of(expression):
            yield from _paths_outside(child)


def _filtered(
    needed: Sequence[Expression], body: Body, context: PlanContext, time: TimeRange, *, descending: bool | None = None
) -> tuple[Node, Columns]:
    """Return the rows of all series that the expressions name, filtered by WHERE."""
    backwards = body.descending if descending is None else descending
    leaves = _leaves(needed, body.series)
    if not leaves:
        raise SemanticError("the query names no series: select at least one")
    sources = sources_of(leaves, time, rows_per_block, descending=backwards)
    node = joined(sources, descending=backwards)
    columns = Columns(context.moment, column_numbers(sources, leaves))
    if body.where is not None:
        node = Filter(node, predicate(body.where, columns), node.fields)
    return node, columns


def _project(child: Node, body: Body, columns: Columns) -> Project:
    bound = [bind(output.expression, columns) for output in body.outputs]
    fields = [Field(output.name, b.type) for output, b in zip(body.outputs, bound, strict=True)]
    keys = [bind(key, columns) for key in body.keys]
    fields += [Field(str(key), b.type) for key, b in zip(body.keys, keys, strict=True)]
    return Project(child, (*bound, *keys), tuple(fields))


# ---------------------------------------------------------------------------------------------- aggregates


def _aggregated(body: Body, context: PlanContext) -> Project:
    parts = [output.expression for output in body.outputs] + list(body.keys)
    if body.having is not None:
        parts.append(body.having)
    asked = dict.fromkeys([call for part in parts for call in _calls(part)])
    other = [part for part in parts if not is_aggregate(part)]
    end_time = any(any_part(part, lambda e: isinstance(e, EndTimeReference)) for part in other)
    node: Node
    if body.members is not None:
        concrete = list(dict.fromkeys([member for call in asked for member in body.members[call]]))
        states, numbers = _aggregation(concrete, body, context, Stage.PARTIAL, end_time=end_time)
        node, first = _merged(list(asked), states, numbers, body, context, passed=int(end_time))
    else:
        calls = [call for call in asked if not _is_of_nothing(call, body, context)]
        node, first = _aggregation(calls, body, context, Stage.SINGLE, end_time=end_time)
    results: dict[Expression, Bound] = dict.fromkeys(asked, Constant(None, DataType.BOOLEAN))
    results |= {call: InputColumn(at, node.fields[at].type) for call, at in first.items()}
    end = InputColumn(0, DataType.INT64) if end_time else None
    columns = Columns(context.moment, {}, results, end)
    if body.having is not None:
        node = Filter(node, predicate(body.having, columns), node.fields)
    return _project(node, body, columns)


def _aggregation(
    calls: Sequence[Call], body: Body, context: PlanContext, stage: Stage, *, end_time: bool
) -> tuple[Node, dict[Call, int]]:
    """Aggregate in the scans if that is possible, otherwise over rows; also return each call's first column."""
    if not calls:
        raise SemanticError("GROUP BY needs an aggregate in SELECT")
    sources = None if end_time else _plain_sources(calls, body, context)
    if sources:
        return _scans(sources, body, context, stage)
    return _rows(calls, body, context, stage, end_time=end_time)


def _merged(
    asked: Sequence[Call],
    states: Node,
    numbers: Mapping[Call, int],
    body: Body,
    context: PlanContext,
    *,
    passed: int,
) -> tuple[LevelMerge, dict[Call, int]]:
    """Merge the states of each call's series; also return the number of each call's column."""
    assert body.members is not None
    calls, groups = [], []
    for call in asked:
        members = body.members[call]
        made = [_aggregate_call(member, _typed(member, body, context)) for member in members]
        types = [state_types(m) for m in made]
        if any(other != types[0] or m.type is not made[0].type for other, m in zip(types, made, strict=True)):
            raise SemanticError(f"{call} matches series of different types, which cannot be merged")
        first = numbers[members[0]]
        arguments = tuple(InputColumn(first + i, type_) for i, type_ in enumerate(types[0]))
        calls.append(AggregateCall(made[0].function, arguments, made[0].type, made[0].attributes, made[0].own))
        groups.append(tuple(numbers[member] for member in members))
    fields = (*states.fields[:passed], *(Field(str(call), made.type) for call, made in zip(asked, calls, strict=True)))
    node = LevelMerge(states, tuple(calls), tuple(groups), passed, fields)
    return node, {call: passed + number for number, call in enumerate(asked)}


def _typed(call: Call, body: Body, context: PlanContext) -> list[Bound]:
    """Return the call's arguments with their types; the column numbers are placeholders."""
    paths = [path for path in paths_of(call) if path in body.series]
    columns = Columns(context.moment, {path: InputColumn(0, body.series[path].series.type) for path in paths})
    return [bind(argument, columns) for argument in _values(call)]


def _values(call: Call) -> tuple[Expression, ...]:
    """Return the arguments that are evaluated per row, unlike COUNT_IF's threshold and COUNT_TIME's argument."""
    name = call.name.lower()
    return () if name == "count_time" else call.arguments[:1] if name == "count_if" else call.arguments


def _result_fields(
    calls: Sequence[Call], bound: Sequence[AggregateCall], stage: Stage
) -> tuple[list[Field], list[int]]:
    """Return the result columns of an aggregation, and the number of each call's first column."""
    if stage is not Stage.PARTIAL:
        return [Field(str(call), made.type) for call, made in zip(calls, bound, strict=True)], list(range(len(calls)))
    fields: list[Field] = []
    first = []
    for call, made in zip(calls, bound, strict=True):
        first.append(len(fields))
        fields += [Field(str(call), t) for t in state_types(made)]
    return fields, first


def _calls(expression: Expression) -> Iterator[Call]:
    """Yield the aggregate calls in an expression. Raises SemanticError for nested aggregate calls."""
    if isinstance(expression, Call) and is_aggregate(expression):
        nested = [argument for argument in expression.arguments if not isinstance(argument, PathExpression)]
        if any(any_part(argument, is_aggregate) for argument in nested):
            raise SemanticError(f"Aggregation results cannot be the input of an aggregation function: {expression}")
        yield expression
        return
    for child in children_of(expression):
        yield from _calls(child)


def _is_of_nothing(call: Call, body: Body, context: PlanContext) -> bool:
    """Return whether an argument is null because the device lacks its series; False for counts, which return 0."""
    series = body.series
    if _counts(call) or all(argument in series for argument in call.arguments):
        return False
    paths = [path for argument in call.arguments for path in paths_of(argument)]
    known = {path: InputColumn(0, series[path].series.type) for path in paths if path in series}
    if all(path in known for path in paths):
        return False
    columns = Columns(context.moment, known)
    return any(is_null(bind(argument, columns)) for argument in call.arguments)


def _counts(call: Call) -> bool:
    return not isinstance(call, RegisteredCall) and call.name.lower().startswith("count")


#: A call whose arguments are all series, and these series.
_PlainCall = tuple[Call, list[Leaf]]


def _plain_sources(
    calls: Sequence[Call], body: Body, context: PlanContext
) -> list[tuple[Source, list[_PlainCall]]] | None:
    """Return the scans and their calls, or None if the aggregation needs other nodes."""
    if body.where is not None or not isinstance(body.group_by, GroupByTime | None):
        return None
    windows = windows_of(body.group_by, None, context.moment)
    chosen: dict[tuple[str, str], list[_PlainCall]] = {}
    leaves: list[Leaf] = []
    for call in calls:
        own = [] if call.name.lower() == "count_time" else _arguments(call, body)
        if not own or len(own) < len(call.arguments):
            return None
        key = source_key(own[0])
        if len(own) > 1 and any(source_key(leaf) != key for leaf in own[1:]):
            return None
        chosen.setdefault(key, []).append((call, own))
        leaves += own
    backwards = body.descending and windows is not None
    sources = sources_of(leaves, _scan_time(body, windows), rows_of_windows(windows), descending=backwards)
    return [(source, chosen[source_key(source.leaves[0])]) for source in sources]


def _arguments(call: Call, body: Body) -> list[Leaf]:
    """Return the series among the call's arguments."""
    known = [body.series.get(path) for path in call.arguments if isinstance(path, PathExpression)]
    return [leaf for leaf in known if leaf is not None]


def _scan_time(body: Body, windows: object) -> TimeRange:
    if isinstance(windows, TimeWindows):
        return body.time.intersect(TimeRange(windows.start, windows.end))
    return body.time


def _scans(
    sources: Sequence[tuple[Source, list[_PlainCall]]], body: Body, context: PlanContext, stage: Stage
) -> tuple[Node, dict[Call, int]]:
    """Return a node with aggregating scans side by side, and the number of each call's column."""
    windows = windows_of(body.group_by, None, context.moment)
    assert isinstance(windows, TimeWindows | None)
    children: list[Node] = []
    numbers: dict[Call, int] = {}
    width = 0
    #: Bound calls, keyed by the scan's types and calls. Nearly all of a hundred thousand scans have the same key.
    known: dict[tuple[object, ...], tuple[AggregateCall, ...]] = {}
    for source, own in sources:
        column = {leaf.series.measurement: i for i, leaf in enumerate(source.leaves)}
        # The statement may refer to the same series by its name and by its alias.
        asked = [(call, [column[leaf.series.measurement] for leaf in leaves]) for call, leaves in own]
        key = (source.request.types, *[(type(call), call.name, call.attributes, *at) for call, at in asked])
        bound = known.get(key)
        if bound is None:
            types = source.request.types
            bound = tuple([_aggregate_call(call, [InputColumn(i, types[i]) for i in at]) for call, at in asked])
            known[key] = bound
        calls = [call for call, _ in own]
        fields, first = _result_fields(calls, bound, stage)
        children.append(AggregateScan(source.request, bound, windows, stage, tuple(fields)))
        for call, place in zip(calls, first, strict=True):
            numbers[call] = width + place
        width += len(fields)
    node: Node = children[0]
    if len(children) > 1:
        node = WindowJoin(tuple(children), tuple(field for child in children for field in child.fields))
    return node, numbers


def _aggregate_call(call: Call, arguments: Sequence[Bound]) -> AggregateCall:
    name = call.name.lower()
    attributes = threshold_of(call) if name == "count_if" else call.attributes
    aggregate = aggregate_named(call)
    assert aggregate is not None
    type_ = aggregate.check([argument.type for argument in arguments], attributes)
    own = aggregate if isinstance(call, RegisteredCall) else None
    return AggregateCall(name, tuple(arguments), type_, attributes, own)


def _rows(
    calls: Sequence[Call], body: Body, context: PlanContext, stage: Stage, *, end_time: bool
) -> tuple[Node, dict[Call, int]]:
    """Return one aggregation over the joined and filtered rows, and the number of each call's column."""
    controls = _controls(body.group_by)
    needed: list[Expression] = [*calls, *controls, *([] if body.where is None else [body.where])]
    time = body.time
    bare = windows_of(body.group_by, None, context.moment)
    if isinstance(bare, TimeWindows):
        time = _scan_time(body, bare)
    child, columns = _filtered(needed, body, context, time, descending=False)
    windows = bare if isinstance(bare, TimeWindows) else windows_of(body.group_by, columns, context.moment)
    bound = tuple(_aggregate_call(call, [bind(argument, columns) for argument in _values(call)]) for call in calls)
    fields = [Field("__endTime", DataType.INT64)] if end_time else []
    results, first = _result_fields(calls, bound, stage)
    numbers = {call: len(fields) + place for call, place in zip(calls, first, strict=True)}
    backwards = body.descending and windows is not None
    return Aggregate(child, bound, windows, stage, (*fields, *results), end_time, backwards), numbers


def _controls(group_by: GroupByWindow | None) -> list[Expression]:
    """Return the expressions that the windows depend on."""
    found = [getattr(group_by, name, None) for name in ("control", "predicate")]
    return [expression for expression in found if expression is not None]


def is_time(expression: Expression) -> bool:
    """Return whether an expression of ORDER BY is the time."""
    return isinstance(expression, TimeReference) or str(expression).lower() == "time"
