"""Project: evaluates expressions for the child's rows."""

from __future__ import annotations

from saros_engine.evaluation.evaluate import compile_expression
from saros_engine.operators.base import BlockwiseOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan.plan import Project
from saros_storage.base.block import Block


class ProjectOperator(BlockwiseOperator):
    """Evaluates expressions block by block: each block of the child becomes one block."""

    def __init__(self, node: Project, child: Operator, context: OperatorContext) -> None:
        super().__init__("Project", context, child)
        self._expressions = [compile_expression(expression) for expression in node.expressions]

    def _made_of(self, block: Block) -> Block | None:
        return Block(block.time, tuple([expression(block) for expression in self._expressions]), block.rows)
