"""Sort: a stable sort of the child's rows by any number of keys; with a limit only rows that can be on top are kept.

Every key becomes arrays that ascend in the wanted order (nulls, then NaN, then values), and one stable lexicographic
sort does the rest. NaN is the largest number, as in Java. The rows are accounted to the query.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saros_engine.evaluate import Compiled, compile_expression
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan import Sort, SortItem
from saros_engine.text import text_ranks
from saros_storage.block import Block, Column
from saros_storage.reading import BLOCK_ROWS_MAX
from saros_storage.types import Int64Array, NumericArray


class SortOperator(PullOperator):
    """See the module."""

    def __init__(self, node: Sort, child: Operator, context: OperatorContext) -> None:
        limit = "" if node.limit is None else f"top {node.limit}"
        super().__init__("Sort", context, (child,), detail=limit)
        self._child = child
        self._items = node.keys
        self._keys: list[Compiled] = [compile_expression(item.expression) for item in node.keys]
        self._limit = node.limit
        #: Rows so far, in the order in which they came among equals.
        self._blocks: list[Block] = []
        #: All rows in order, once the child has ended.
        self._sorted: Block | None = None
        self._at = 0

    def _next(self) -> Block | None:
        if self._sorted is not None:
            start, self._at = self._at, min(self._at + BLOCK_ROWS_MAX, self._sorted.rows)
            self._finished = self._at == self._sorted.rows
            return self._sorted.slice(start, self._at)
        if self._child.finished:
            self._end()
            return None
        block = self._child.next()
        if block is not None:
            self._blocks.append(block)
            self._hold(sum(b.nbytes for b in self._blocks))
            if self._limit is not None and sum(b.rows for b in self._blocks) > 4 * self._limit + BLOCK_ROWS_MAX:
                self._blocks = [self._ordered(Block.concat(self._blocks))]
        return None

    def _end(self) -> None:
        if not self._blocks:
            self._finished = True
            return
        # While rows are moved, they are there twice.
        self._hold(2 * sum(b.nbytes for b in self._blocks))
        self._sorted = self._ordered(Block.concat(self._blocks))
        self._blocks = []
        self._hold(self._sorted.nbytes)
        self._finished = self._sorted.rows == 0

    def _ordered(self, block: Block) -> Block:
        columns = [key(block) for key in self._keys]
        return block.take(sort_order(columns, self._items)[: self._limit])


def sort_order(columns: Sequence[Column], items: Sequence[SortItem]) -> Int64Array:
    """The rows' numbers in the order of the keys, equals as they came."""
    keys: list[NumericArray] = []
    for column, item in zip(columns, items, strict=True):
        keys += _ascending(column, item)
    # lexsort takes the most important key last.
    return np.lexsort(keys[::-1]).astype(np.int64, copy=False)


def _ascending(column: Column, item: SortItem) -> list[NumericArray]:
    keys: list[NumericArray] = []
    values = text_ranks(column.text) if column.type.is_text else column.numbers
    if column.valid is not None:
        keys.append(column.valid if item.nulls_first else ~column.valid)
        values = np.where(column.valid, values, values.dtype.type(0))
    if values.dtype.kind == "f":
        unordered = np.isnan(values)
        if unordered.any():
            keys.append(~unordered if item.descending else unordered)
            values = np.where(unordered, values.dtype.type(0), values)
        keys.append(-values if item.descending else values)
    else:
        # ~x descends where x ascends, for integers of any size and for booleans.
        keys.append(~values if item.descending else values)
    return keys
