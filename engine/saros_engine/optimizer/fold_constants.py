"""Rule: evaluate expressions without columns while planning, and remove filters that are always true or never true.

For example, in s1 + (1 + 2) > now(), this rule computes 1 + 2 once instead of once per row. An expression that fails,
such as 1 / 0, is left unchanged, so that it raises its error only if there are rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import astuple, replace

from saros_engine.evaluation.evaluate import evaluate
from saros_engine.optimizer.rewrite import bottom_up
from saros_engine.plan.expression import (
    Bound,
    Choice,
    Constant,
    FunctionCall,
    InputColumn,
    InputTime,
    Membership,
    Operation,
)
from saros_engine.plan.plan import Filter, Node, Project, Rows
from saros_grammar.syntax.ast import BinaryOperator
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import UserMistake

_ONE_ROW = Block(None, (), 1)


def fold_constants(root: Node) -> Node:
    """Fold the constants of a plan."""
    return bottom_up(root, _fold_node)


def _fold_node(node: Node) -> Node:
    if isinstance(node, Filter):
        predicate = folded(node.predicate)
        if isinstance(predicate, Constant):
            return node.child if predicate.value is True else _nothing(node)
        return node if predicate is node.predicate else replace(node, predicate=predicate)
    if isinstance(node, Project):
        expressions = tuple(folded(e) for e in node.expressions)
        same = all(new is old for new, old in zip(expressions, node.expressions, strict=True))
        return node if same else replace(node, expressions=expressions)
    return node


def _nothing(node: Filter) -> Rows:
    import numpy as np

    columns = tuple(Column.of(field.type, []) for field in node.fields)
    return Rows(Block(np.empty(0, np.int64), columns, 0), node.fields)


def folded(expression: Bound) -> Bound:
    """Return the expression with its constant parts evaluated."""
    if isinstance(expression, (InputColumn, InputTime, Constant)):
        return expression
    if isinstance(expression, Operation):
        left, right = folded(expression.left), folded(expression.right)
        short = _short_cut(expression, left, right)
        if short is not None:
            return short
        if left is not expression.left or right is not expression.right:
            expression = replace(expression, left=left, right=right)
    if isinstance(expression, FunctionCall) or any(not isinstance(part, Constant) for part in _parts(expression)):
        return expression
    try:
        return Constant(evaluate(expression, _ONE_ROW).to_list()[0], expression.type)
    except UserMistake:
        return expression  # if it is left unchanged, it fails only if there are rows


def _short_cut(expression: Operation, left: Bound, right: Bound) -> Bound | None:
    """Simplify an AND or OR with a constant side; None if that is not possible."""
    if expression.operator not in (BinaryOperator.AND, BinaryOperator.OR):
        return None
    decides = expression.operator is BinaryOperator.OR
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Constant) and side.value is not None:
            return side if side.value is decides else other
    return None


def _parts(expression: Bound) -> Iterator[Bound]:
    if isinstance(expression, Choice):
        for when, then in expression.whens:
            yield from (when, then)
        if expression.otherwise is not None:
            yield expression.otherwise
        return
    if isinstance(expression, Membership):
        yield expression.operand
        return
    for part in astuple(expression):
        if isinstance(part, Bound):
            yield part
