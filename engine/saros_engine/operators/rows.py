"""Rows: returns rows that were already known when the query was planned."""

from __future__ import annotations

from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import OperatorContext
from saros_engine.plan.plan import Rows
from saros_storage.base.block import Block
from saros_storage.scan.reading import BLOCK_ROWS_MAX


class RowsOperator(PullOperator):
    """Returns the rows block by block."""

    def __init__(self, node: Rows, context: OperatorContext) -> None:
        super().__init__("Rows", context)
        self._block = node.block
        self._at = 0
        self._finished = node.block.rows == 0

    def _next(self) -> Block | None:
        start, self._at = self._at, min(self._at + BLOCK_ROWS_MAX, self._block.rows)
        self._finished = self._at == self._block.rows
        return self._block.slice(start, self._at)
