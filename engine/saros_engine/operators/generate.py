"""Generate: returns the points that a function computes from all rows of the child.

Rows with a null argument are skipped, unless the function takes its arguments separately. Buffered rows are charged to
the query's memory.
"""

from __future__ import annotations

import numpy as np

from saros_engine.evaluation.evaluate import compile_expression
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan.plan import Generate
from saros_engine.transforms import POINT_FUNCTIONS, Points
from saros_storage.base.block import Block, Column
from saros_storage.scan.reading import BLOCK_ROWS_MAX


class GenerateOperator(PullOperator):
    """Buffers its child's rows, applies the function, and returns the points block by block."""

    def __init__(self, node: Generate, child: Operator, context: OperatorContext) -> None:
        super().__init__("Generate", context, (child,), detail=node.call.name)
        self._child = child
        self._arguments = [compile_expression(argument) for argument in node.call.arguments]
        function = POINT_FUNCTIONS[node.call.name]
        self._function, self._apart = function.make(node.call, context.time_unit), function.apart
        #: The points of the arguments that were received.
        self._parts: list[Points] = []
        #: The result of the function (None while rows are received), and the number of its rows that were returned.
        self._made: Block | None = None
        self._at = 0

    def _next(self) -> Block | None:
        if self._made is not None:
            start, self._at = self._at, min(self._at + BLOCK_ROWS_MAX, self._made.rows)
            self._finished = self._at == self._made.rows
            return self._made.slice(start, self._at) if start < self._at else None
        if self._child.finished:
            self._make()
            return None
        block = self._child.next()
        if block is not None:
            self._parts.append(self._points(block))
            self._hold(sum(map(_nbytes, self._parts)))
        return None

    def _points(self, block: Block) -> Points:
        columns = tuple(argument(block) for argument in self._arguments)
        points = Points(block.times, columns)
        if self._apart or all(column.valid is None for column in columns):
            return points
        present = np.logical_and.reduce([column.present for column in columns])
        kept = points.take(np.flatnonzero(present))
        return Points(kept.times, tuple(Column(c.type, c.values) for c in kept.columns))

    def _make(self) -> None:
        if not self._parts:
            self._finished = True
            return
        # While points are concatenated, memory holds them twice.
        self._hold(2 * sum(map(_nbytes, self._parts)))
        times = np.concatenate([part.times for part in self._parts])
        columns = zip(*(part.columns for part in self._parts), strict=True)
        points = Points(times, tuple(Column.concat(parts) for parts in columns))
        self._parts = []
        with np.errstate(all="ignore"):  # like other functions (see `evaluate`)
            made = self._function(points)
        self._made = Block.timed(made.times, list(made.columns))
        self._hold(self._made.nbytes)
        self._finished = self._made.rows == 0


def _nbytes(points: Points) -> int:
    return points.times.nbytes + sum(column.nbytes for column in points.columns)
