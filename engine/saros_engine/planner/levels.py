"""GROUP BY LEVEL and TAGS: series whose paths are generalised to the same name are aggregated together.

    level = 1    count(root.a.d1.s)  count(root.a.d2.s)  count(root.b.d1.s)   ->   count(root.a.*.s)  count(root.b.*.s)

    tags (k)     count(root.a.d1.s)  count(root.b.d1.s)                       ->   count(s)

With levels, `count(*)` counts the points of all measurements of a group together, in one column `count(root.a.*.*)`.

A call over a generalised path is a merged call. A merged call represents the calls over the series of its group
(`members`), whose partial states are merged. A scope belongs to one statement.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from saros_engine.analysis.scope import Scope, children_of, paths_of, rebuilt, with_paths
from saros_engine.base.errors import SemanticError
from saros_engine.catalog.views import BaseSeries
from saros_grammar.syntax.ast import Call, Expression, PathExpression


def of_levels(levels: Sequence[int]) -> Callable[[PathExpression], PathExpression]:
    """Return a function that replaces a path's nodes by `*`, except root, nodes at `levels`, and the measurement."""
    kept = frozenset(levels)

    def name(path: PathExpression) -> PathExpression:
        last = len(path.nodes) - 1
        nodes = [n if i in (0, last) or i in kept else "*" for i, n in enumerate(path.nodes)]
        return replace(path, nodes=tuple(nodes))

    return name


def measurement_of(path: PathExpression) -> PathExpression:
    """Return a path's measurement, as a path."""
    return replace(path, nodes=path.nodes[-1:])


def _all_measurements(path: PathExpression) -> PathExpression:
    """Return the path with `*` as its measurement."""
    return replace(path, nodes=(*path.nodes[:-1], "*"))


def _counts_all(expression: Expression) -> bool:
    """Return whether the expression is `count(*)` or `count(**)`, with any prefix."""
    if not isinstance(expression, Call) or expression.name.lower() != "count" or len(expression.arguments) != 1:
        return False
    argument = expression.arguments[0]
    return isinstance(argument, PathExpression) and argument.nodes[-1] in ("*", "**")


def members_of_series(members: Mapping[Call, Sequence[Call]], base: BaseSeries) -> dict[Call, list[Call]]:
    """Return the members with views replaced by their base series."""
    found = {call: base.of_each(own) for call, own in members.items()}
    return {call: [member for member in own if isinstance(member, Call)] for call, own in found.items()}


class MergedScope:
    """A scope that expands to merged calls; `name` generalises a path; `is_aggregate` selects the calls to merge.

    With `counts_all`, `count(*)` is one column.
    """

    def __init__(
        self,
        scope: Scope,
        name: Callable[[PathExpression], PathExpression],
        is_aggregate: Callable[[Expression], bool],
        *,
        counts_all: bool,
    ) -> None:
        self._scope = scope
        self._name = name
        self._is_aggregate = is_aggregate
        self._counts_all = counts_all
        #: For each merged call, the calls over series that it represents.
        self.members: dict[Call, list[Call]] = {}

    def expand(self, expression: Expression) -> list[Expression]:
        """Return the expansions of an expression, with calls over series replaced by merged calls."""
        if self._counts_all and isinstance(expression, Call) and _counts_all(expression):
            return list(self._grouped(expression, lambda path: _all_measurements(self._name(path))))
        return self._expand(expression, known=False)

    def expand_known(self, condition: Expression) -> list[Expression]:
        """Expand a condition; calls over paths that match no series remain unchanged and evaluate to null."""
        return self.expand(condition) or self._expand(condition, known=True)

    def _expand(self, expression: Expression, *, known: bool) -> list[Expression]:
        if isinstance(expression, Call) and self._is_aggregate(expression):
            found: list[Expression] = list(self._grouped(expression, self._name))
            return found if found or not known else [self._single_member(expression)]
        children = children_of(expression)
        if not children:
            if isinstance(expression, PathExpression):
                raise SemanticError("Raw data and aggregation result hybrid calculation is not supported.")
            return [expression]
        parts = [self._expand(child, known=known) for child in children]
        return [rebuilt(expression, choice) for choice in itertools.product(*parts)]

    def _single_member(self, call: Call) -> Call:
        self.members[call] = [call]
        return call

    def _grouped(self, call: Call, name: Callable[[PathExpression], PathExpression]) -> list[Call]:
        """Return the merged calls, in order of their first series."""
        found: dict[Call, list[Call]] = {}
        for concrete in self._scope.expand(call):
            assert isinstance(concrete, Call)
            leveled = with_paths(concrete, [name(path) for path in paths_of(concrete)])
            assert isinstance(leveled, Call)
            found.setdefault(leveled, []).append(concrete)
        for leveled, members in found.items():
            known = self.members.setdefault(leveled, [])
            known += [member for member in members if member not in known]
        return list(found)
