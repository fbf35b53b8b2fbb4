"""A cache of plans for SELECTs that recur with the same values or with other values.

    (user's key, zone, shape)   first occurrence, few series      -> plan, not cached
    (user's key, zone, shape, kinds of open values, other values) -> template -- values --> plan
      no template: (user's key, zone, shape, all values)          -> plan

Making a template takes several times as long as making a plan of a few series. If a program queries one device after
another, most of its statements never recur, so a template is made only when a statement recurs. If a path may match
many series, planning itself is slow, and the plan is cached at once.

A plan is valid for one version of the schema (series, views, templates, TTLs: everything that `SchemaTree.apply`
changes) and for one set of privileges, which was checked to cover all series that the plan reads. A template is valid
for all values of WHERE, LIMIT and OFFSET of the same kinds; see `plan_template`.

The number of entries is bounded, as in any `RecentMap`. Any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from saros_engine.analysis.binding import may_be_given
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.optimizer import optimize
from saros_engine.plan.plan import Field, Node
from saros_engine.planner import PlanContext, plan_select
from saros_engine.planning.plan_template import Outline, PlanTemplate, Values, depends_on_now, frame_of, outline_of
from saros_grammar.cache import RecentMap
from saros_grammar.syntax import ast
from saros_storage.base.gc_control import reduced_gc

_Key = tuple[object, ...]
#: If a statement's text contains one of these texts, a path in it may match very many series.
_MANY = ("**", ".*")


class Planned(msgspec.Struct, frozen=True):
    """An optimised plan, and a description of its rows."""

    fields: tuple[Field, ...]
    timed: bool
    root: Node


class PlanRequest(msgspec.Struct, frozen=True):
    """The context of a request for a plan. `key` is equal for all users with the same privileges."""

    key: str
    moment: TimeContext
    #: The version of the schema, which was read before `context` was made.
    version: int
    context: Callable[[], PlanContext]
    #: Raises NoPermission if the plan reads a series that the user may not read.
    check: Callable[[Node], None]


class PlanCache:
    """A cache of about `capacity` templates and as many plans. Any thread."""

    def __init__(self, capacity: int) -> None:
        #: The keys of the statements that were planned before. A key consists of the user's key, the zone and the
        #: shape.
        self._met: RecentMap[_Key, bool] = RecentMap(capacity)
        self._outlines: RecentMap[str, Outline] = RecentMap(capacity)
        #: Each template, or None if no template is possible, with the schema version for which this is valid.
        self._frames: RecentMap[_Key, tuple[int, PlanTemplate | None]] = RecentMap(capacity)
        self._plans: RecentMap[_Key, tuple[int, Planned]] = RecentMap(capacity)
        self._counting = threading.Lock()
        self._made = self._reused = 0

    def counts(self) -> tuple[int, int]:
        """Return the number of plans that were made, and the number of times that a plan was reused."""
        with self._counting:
            return self._made, self._reused

    def clear(self) -> None:
        """Drop all entries."""
        for kept in (self._met, self._outlines, self._frames, self._plans):
            kept.clear()

    def plan(
        self, parsed: ast.Parsed, given: Values, asking: PlanRequest, fill: Callable[[], ast.Statement]
    ) -> Planned:
        """Return the plan of a SELECT with values for its `?`. Raises the errors of planning and `asking.check`.

        `given` are the values for `?`; `fill` returns the statement with these values.
        """
        whose = (asking.key, asking.moment.zone, parsed.shape)
        if self._met.get(whose) is None:
            self._met.put(whose, True)
            if not any(mark in parsed.shape for mark in _MANY):
                select = fill()
                assert isinstance(select, ast.Select)
                return self._planned(select, asking)
        outline = self._outlines.get(parsed.shape)
        if outline is None:
            outline = outline_of(parsed)
            self._outlines.put(parsed.shape, outline)
        values = (*parsed.literals, *given)
        if not outline.framed:
            return self._plan_for_values(outline, values, (*whose, *values), asking)
        key = (*whose, *[v.kind if n in outline.opened and may_be_given(v) else v for n, v in enumerate(values)])
        known = self._frames.get(key)
        reused = known is not None and known[0] == asking.version
        if known is None or not reused:
            with reduced_gc():
                frame = frame_of(outline, values, asking.context())
            if frame is not None:
                asking.check(frame.plan)
            known = asking.version, frame
            self._frames.put(key, known)
        if known[1] is None:
            return self._plan_for_values(outline, values, (*whose, *values), asking)
        self._count(reused=reused)
        with reduced_gc(known[1].width):
            return Planned(known[1].fields, known[1].timed, known[1].filled(values, asking.moment))

    def _plan_for_values(self, outline: Outline, values: Values, key: _Key, asking: PlanRequest) -> Planned:
        """Return a plan that is valid only for these values."""
        known = self._plans.get(key)
        if known is not None and known[0] == asking.version:
            self._count(reused=True)
            return known[1]
        select = outline.filled(values)
        planned = self._planned(select, asking)
        if not depends_on_now(select):
            self._plans.put(key, (asking.version, planned))
        return planned

    def _planned(self, select: ast.Select, asking: PlanRequest) -> Planned:
        with reduced_gc():
            logical = plan_select(select, asking.context())
            planned = Planned(logical.fields, logical.timed, optimize(logical.root))
        asking.check(planned.root)
        self._count(reused=False)
        return planned

    def _count(self, *, reused: bool) -> None:
        with self._counting:
            self._made += not reused
            self._reused += reused
