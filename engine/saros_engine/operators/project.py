"""Project: expressions over the child's rows."""

from __future__ import annotations

import numpy as np

from saros_engine.evaluate import compile_expression
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan import Project
from saros_storage.block import Block


class ProjectOperator(PullOperator):
    """One block in, at most one out: rows without any result go if the node says so."""

    def __init__(self, node: Project, child: Operator, context: OperatorContext) -> None:
        super().__init__("Project", context, (child,))
        self._child = child
        self._expressions = [compile_expression(expression) for expression in node.expressions]
        self._drop_null_rows = node.drop_null_rows

    def _next(self) -> Block | None:
        if self._child.finished:
            self._finished = True
            return None
        block = self._child.next()
        if block is None:
            return None
        result = Block(block.time, tuple(expression(block) for expression in self._expressions), block.rows)
        return _without_null_rows(result) if self._drop_null_rows else result


def _without_null_rows(block: Block) -> Block | None:
    masks = []
    for column in block.columns:
        if column.valid is None:
            return block
        masks.append(column.valid)
    if not masks:
        return None
    some = masks[0]
    for mask in masks[1:]:
        some = some | mask
    if not np.any(some):
        return None
    return block.compress(some)
