"""Filter: keeps the rows for which a predicate is true."""

from __future__ import annotations

from saros_engine.evaluation.evaluate import compile_predicate
from saros_engine.operators.base import BlockwiseOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan.plan import Filter
from saros_storage.base.block import Block


class FilterOperator(BlockwiseOperator):
    """Filters block by block: each block of the child becomes at most one block."""

    def __init__(self, node: Filter, child: Operator, context: OperatorContext) -> None:
        super().__init__("Filter", context, child)
        self._holds = compile_predicate(node.predicate)

    def _made_of(self, block: Block) -> Block | None:
        block = block.compress(self._holds(block))
        return block if block.rows else None
