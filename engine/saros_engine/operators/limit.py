"""Limit: skips rows of its child, returns at most a given number of rows, and then closes the child."""

from __future__ import annotations

from saros_engine.operators.base import BlockwiseOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan.plan import Limit
from saros_storage.base.block import Block


class LimitOperator(BlockwiseOperator):
    """Returns a range of its child's rows, and pulls no further blocks once it has enough rows."""

    def __init__(self, node: Limit, child: Operator, context: OperatorContext) -> None:
        super().__init__("Limit", context, child, detail=f"offset {node.offset} count {node.count}")
        self._skip = node.offset
        self._left = node.count
        self._finished = node.count == 0

    def _made_of(self, block: Block) -> Block | None:
        skipped = min(self._skip, block.rows)
        self._skip -= skipped
        stop = block.rows if self._left is None else min(block.rows, skipped + self._left)
        if self._left is not None:
            self._left -= stop - skipped
            if self._left == 0:
                self._finished = True
                self._child.close()
        if stop == skipped:
            return None
        return block if stop - skipped == block.rows else block.slice(skipped, stop)
