"""A plan with holes: the common part of the plans of a SELECT that is executed with different values in its WHERE.

    where time > ~ and s2 = ~      times: time > ~        plan: Filter(s2 = Given 1) over Scan(time: hole)
    limit ~                               `-- values --> a range, constants --> the plan of these values, cut to rows

There is one `Outline` for each shape of statements. An outline records which values are open: an open value occurs only
in WHERE, LIMIT and OFFSET. A `PlanTemplate` is valid for one outline, one version of the schema and one kind of each
open value. Conditions on time, LIMIT and OFFSET are removed before planning and evaluated for each execution, so
conditions may contain `now()`. The other open values become `PlanParameter`s, of which planning knows only the type. If
planning needs to know more about a value (IN, LIKE, a text compared with a date), no template is possible.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from saros_engine.analysis.binding import constant, may_be_given
from saros_engine.base.errors import EngineError
from saros_engine.expressions.time_filter import TimeContext, conjuncts, range_of, split_time
from saros_engine.optimizer import optimize
from saros_engine.optimizer.keep_top_rows import keep_top
from saros_engine.plan.expression import PlanParameter
from saros_engine.plan.plan import Field, Limit, Node, width
from saros_engine.planner import PlanContext, plan_select
from saros_engine.planner.post_processing import limited
from saros_engine.planner.query_core import conjunction
from saros_grammar.syntax import ast
from saros_grammar.templates import Rebuild, compile_template, field_names
from saros_storage.base.errors import StorageError
from saros_storage.scan.reading import ScanRequest, TimeRange

Values = Sequence[ast.Literal]
_ONE = ast.Literal(ast.LiteralKind.INTEGER, 1, "1")
#: The width of plans beyond which there is no template: it would take four times as long as the plan, and much memory.
_WIDTH_MAX = 20_000
#: The types of fields whose values contain no structs; most fields have one of these types.
_LEAVES = frozenset({type(None), str, bool, int, float})


class Outline(msgspec.Struct, frozen=True):
    """A SELECT and the places of its values. Values are numbered: first the literals, then the values for `?`."""

    select: ast.Select
    #: The numbers of the open values, which occur only in places that a template can leave open.
    opened: frozenset[int]
    #: True if a template may be possible: there is a place for open values, and no windows depend on the range of
    #: times.
    framed: bool
    rebuild: Rebuild | None

    def filled(self, values: Sequence[ast.Literal | ast.Parameter]) -> ast.Select:
        """Return the statement with the given values."""
        select: ast.Select = self.select if self.rebuild is None else self.rebuild(values)
        return select


class PlanTemplate(msgspec.Struct, frozen=True):
    """A plan with holes. If it has no holes, `plan` is used unchanged."""

    fields: tuple[Field, ...]
    timed: bool
    #: The plan, with a hole for the range of times and with `PlanParameter`s; if it contains `PlanParameter`s, it is
    #: not optimised yet.
    plan: Node
    #: Builds the plan from a list: the range of times, followed by a Constant for each number of an open value.
    rebuild: Rebuild | None
    #: The conditions on time in WHERE, and the function that fills in their values.
    times: ast.Expression | None
    times_rebuild: Rebuild | None
    givens: tuple[PlanParameter, ...]
    #: LIMIT and OFFSET, which are not part of the plan.
    limit: ast.Expression | None
    offset: ast.Expression | None
    #: True if LIMIT and OFFSET apply. A plan without devices has no rows, so LIMIT and OFFSET do not apply to it.
    #: Their values are checked in any case.
    cut: bool
    #: See `plan.width`.
    width: int

    def filled(self, values: Values, moment: TimeContext) -> Node:
        """Return the optimised plan for values of the template's kinds. Raises SemanticError for invalid values."""
        plan = self.plan if self.rebuild is None else self._rebuilt(self.rebuild, values, moment)
        rows = limited(plan, _valued(self.limit, values), _valued(self.offset, values))
        plan = rows if self.cut else plan
        return optimize(plan) if self.givens else keep_top(plan)

    def _rebuilt(self, rebuild: Rebuild, values: Values, moment: TimeContext) -> Node:
        times = self.times if self.times_rebuild is None else self.times_rebuild(values)
        time, rest = split_time(times, moment)
        assert rest is None
        parts: list[Any] = [time, *[None] * len(values)]
        for given in self.givens:
            parts[1 + given.number] = found = constant(values[given.number], moment)
            assert found.type is given.type
        plan: Node = rebuild(parts)
        return plan


def outline_of(parsed: ast.Parsed) -> Outline:
    """Return the outline of a SELECT."""
    select = parsed.statement
    assert isinstance(select, ast.Select)
    numbers = {id(literal): number for number, literal in enumerate(parsed.literals)}
    inside: set[int] = set()
    outside: set[int] = set()

    def number_of(part: object) -> int | None:
        if type(part) is ast.Parameter:
            return len(numbers) + part.index
        return numbers.get(id(part)) if type(part) is ast.Literal else None

    def record(part: object, found: set[int]) -> None:
        found.update(number for one in parts_of(part) if (number := number_of(one)) is not None)

    assert len(numbers) == len(parsed.literals)
    for part in (select.where, select.limit, select.offset):
        record(part, inside)
    record(replace(select, where=None, limit=None, offset=None), outside)
    somewhere = (select.where, select.limit, select.offset) != (None, None, None)
    framed = somewhere and not isinstance(select.group_by, ast.GroupByTime)
    return Outline(select, frozenset(inside - outside), framed, compile_template(select, number_of))


def frame_of(outline: Outline, values: Values, context: PlanContext) -> PlanTemplate | None:
    """Return the template for values of these kinds, or None if only plans for particular values are possible."""
    marks = [
        ast.Parameter(number, value.kind) if number in outline.opened and may_be_given(value) else value
        for number, value in enumerate(values)
    ]
    select = outline.filled(marks)
    times: list[ast.Expression] = []
    others: list[ast.Expression] = []
    try:
        for part in conjuncts(select.where):
            about_time = range_of(_with(part, values), context.moment) is not None
            (times if about_time else others).append(part)
        return _framed(replace(select, where=conjunction(others)), conjunction(times), context)
    except (EngineError, StorageError):
        return None


def depends_on_now(select: ast.Select) -> bool:
    """Return whether the plan depends on the time at which it is made, because the statement calls `now()`."""
    return any(isinstance(part, ast.Call) and part.name.lower() == "now" for part in parts_of(select))


def _framed(select: ast.Select, times: ast.Expression | None, context: PlanContext) -> PlanTemplate | None:
    if depends_on_now(select):
        return None
    hole = TimeRange()
    cut = select.limit is not None or select.offset is not None
    logical = plan_select(replace(select, limit=_ONE if cut else None, offset=None), replace(context, time=hole))
    root = logical.root
    if width(root) > _WIDTH_MAX:
        return None
    if isinstance(root, Limit):
        root = root.child
    givens = tuple({part for part in parts_of(root) if type(part) is PlanParameter})
    plan = root if givens else optimize(root)
    if any(type(part) is ScanRequest and part.time is not hole for part in parts_of(plan)):
        return None

    def hole_of(part: object) -> int | None:
        if part is hole:
            return 0
        return 1 + part.number if type(part) is PlanParameter else None

    times_rebuild = compile_template(times, _number_of)
    rebuild = compile_template(plan, hole_of)
    return PlanTemplate(
        logical.fields,
        logical.timed,
        plan,
        rebuild,
        times,
        times_rebuild,
        givens,
        select.limit,
        select.offset,
        root is not logical.root,
        width(plan),
    )


def _valued(expression: ast.Expression | None, values: Values) -> ast.Expression | None:
    return values[expression.index] if type(expression) is ast.Parameter else expression


def _number_of(part: object) -> int | None:
    return part.index if type(part) is ast.Parameter else None


def _with(part: ast.Expression, values: Values) -> ast.Expression:
    rebuild = compile_template(part, _number_of)
    whole: ast.Expression = part if rebuild is None else rebuild(values)
    return whole


def parts_of(node: object) -> Iterator[object]:
    """Yield all structs in a tree that have fields. A struct comes before the structs in its fields."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        names = field_names(type(part))
        if names:
            yield part
            for name in names:
                below = getattr(part, name)
                if type(below) not in _LEAVES:
                    waiting.append(below)
        elif isinstance(part, tuple):
            waiting += part
