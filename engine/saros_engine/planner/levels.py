"""GROUP BY LEVEL: series whose paths agree in some levels are aggregated together.

    level = 1    count(root.a.d1.s)  count(root.a.d2.s)  count(root.b.d1.s)   ->   count(root.a.*.s)  count(root.b.*.s)

A call over such a path stands for the calls over the series themselves (`members`), whose partial states are merged.
Belongs to one statement.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

from saros_engine.analysis.scope import Scope, children_of, paths_of, rebuilt, with_paths
from saros_engine.errors import SemanticError
from saros_grammar.ast import Call, Expression, PathExpression


class LevelScope:
    """See the module; `levels` count from 0 at the root. `is_aggregate` says what is to be merged."""

    def __init__(self, scope: Scope, levels: Sequence[int], is_aggregate: Callable[[Expression], bool]) -> None:
        self._scope = scope
        self._levels = frozenset(levels)
        self._is_aggregate = is_aggregate
        #: The calls over series that a call over levels stands for.
        self.members: dict[Call, list[Call]] = {}

    def expand(self, expression: Expression) -> list[Expression]:
        """What the expression stands for, with calls over levels in place of calls over series."""
        if isinstance(expression, Call) and self._is_aggregate(expression):
            return list(self._grouped(expression))
        children = children_of(expression)
        if not children:
            if isinstance(expression, PathExpression):
                raise SemanticError("Raw data and aggregation result hybrid calculation is not supported.")
            return [expression]
        return [rebuilt(expression, choice) for choice in itertools.product(*map(self.expand, children))]

    def _grouped(self, call: Call) -> list[Call]:
        """The calls over levels, in order of their first series."""
        found: dict[Call, list[Call]] = {}
        for concrete in self._scope.expand(call):
            assert isinstance(concrete, Call)
            kept = [self._kept(path) for path in paths_of(concrete)]
            leveled = with_paths(concrete, kept)
            assert isinstance(leveled, Call)
            found.setdefault(leveled, []).append(concrete)
        for leveled, members in found.items():
            known = self.members.setdefault(leveled, [])
            known += [member for member in members if member not in known]
        return list(found)

    def _kept(self, path: PathExpression) -> PathExpression:
        """The path with `*` for all nodes but the root, those of the levels, and the measurement."""
        last = len(path.nodes) - 1
        nodes = [n if i in (0, last) or i in self._levels else "*" for i, n in enumerate(path.nodes)]
        return replace(path, nodes=tuple(nodes))
