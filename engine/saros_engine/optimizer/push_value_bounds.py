"""Rule: a filter's comparisons with constants become bounds of the scans, which then skip whole pages.

    Filter(s1 > 5 and s2 < 3)  over  TimeJoin(Scan s1, Scan s2)      Scan s1 (low 5)   Scan s2 (high 3)

Skipping is safe because a skipped value becomes null, and the filter rejects null as it would reject the value. Only
conjuncts of the form "column compared with constant" are used, and the filter stays in the plan. If a function in the
filter looks back at earlier rows (`diff`), skipping would not be safe, and no bound is pushed. If a conjunct can fail,
later conjuncts are not used, because failures must not depend on the layout of rows in pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec.structs import replace

from saros_engine.evaluation.evaluate import can_fail, parts_of
from saros_engine.expressions.exact_bounds import TURNED, as_exact_comparison
from saros_engine.functions.function import FunctionKind
from saros_engine.functions.registry import function_of
from saros_engine.optimizer.rewrite import bottom_up
from saros_engine.plan.expression import Bound, Constant, FunctionCall, InputColumn, Operation
from saros_engine.plan.plan import Filter, Node, Scan, TimeJoin
from saros_grammar.syntax.ast import BinaryOperator
from saros_storage.base.types import NUMERIC_TYPES, DataType, Scalar
from saros_storage.scan.reading import ValueBound

_BELOW = (BinaryOperator.LESS, BinaryOperator.LESS_EQUAL)
_ABOVE = (BinaryOperator.GREATER, BinaryOperator.GREATER_EQUAL)


def push_value_bounds(root: Node) -> Node:
    """Push the value bounds of a plan's filters."""
    return bottom_up(root, _push)


def _push(node: Node) -> Node:
    if not isinstance(node, Filter):
        return node
    bounds = [bound for part in _safe_conjuncts(node.predicate) for bound in _bounds(part)]
    if not bounds or _looks_back(node.predicate):
        return node
    child = node.child
    if isinstance(child, Scan):
        return replace(node, child=_bounded(child, bounds, 0))
    if isinstance(child, TimeJoin) and all(isinstance(c, Scan) for c in child.children):
        scans = []
        first = 0
        for scan in child.children:
            assert isinstance(scan, Scan)
            scans.append(_bounded(scan, bounds, first))
            first += len(scan.fields)
        return replace(node, child=replace(child, children=tuple(scans)))
    return node


def _looks_back(predicate: Bound) -> bool:
    """Return whether a function in the predicate needs earlier rows, including rows that the filter rejects."""
    parts = [predicate]
    while parts:
        part = parts.pop()
        if isinstance(part, FunctionCall) and function_of(part).kind is FunctionKind.SERIES:
            return True
        parts += parts_of(part)
    return False


def _bounded(scan: Scan, bounds: list[ValueBound], first: int) -> Scan:
    """Return the scan with the bounds on its columns, whose numbers in the filter start at `first`."""
    own = [replace(b, column=b.column - first) for b in bounds if first <= b.column < first + len(scan.fields)]
    return replace(scan, request=replace(scan.request, bounds=tuple(own))) if own else scan


def _safe_conjuncts(predicate: Bound) -> Iterator[Bound]:
    """Yield the conjuncts before the first conjunct that can fail."""
    waiting = [predicate]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Operation) and part.operator is BinaryOperator.AND:
            waiting += [part.right, part.left]
        elif can_fail(part):
            return
        else:
            yield part


def _bounds(predicate: Bound) -> Iterator[ValueBound]:
    if not isinstance(predicate, Operation):
        return
    predicate = as_exact_comparison(predicate)
    operator: BinaryOperator = predicate.operator
    left, right = predicate.left, predicate.right
    if isinstance(left, Constant):
        operator, left, right = TURNED.get(operator, operator), right, left
    if operator not in TURNED or not isinstance(left, InputColumn) or not isinstance(right, Constant):
        return
    value = _as_compared(right.value, left.type)
    if value is None:
        return
    low = value if operator not in _BELOW else None
    high = value if operator not in _ABOVE else None
    yield ValueBound(left.index, low, high)


def _as_compared(value: Scalar, type_: DataType) -> int | float | None:
    """Return the constant, rounded as if it were compared with a column of `type_`; None if it is not a bound."""
    if type_ not in NUMERIC_TYPES or not isinstance(value, (int, float)) or isinstance(value, bool):
        return None  # other types have no minimum and maximum in statistics
    if isinstance(value, float) and math.isnan(value):
        return None
    return float(value) if type_ is DataType.DOUBLE else value
