"""LevelMerge: merges the states of several series, which are columns of one row, into one value per group of series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saros_engine.functions.aggregates import retyped
from saros_engine.functions.registry import aggregate_of
from saros_engine.operators.base import BlockwiseOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan.plan import AggregateCall, LevelMerge
from saros_storage.base.block import Block, Column
from saros_storage.base.types import Int64Array
from saros_storage.read.row_ranges import RowRanges

#: Aggregates whose results depend on the order of the states in time. The last of their state columns is the time.
_BY_TIME = frozenset({"first_value", "last_value"})


class LevelMergeOperator(BlockwiseOperator):
    """Merges block by block: each block of the child becomes one block."""

    def __init__(self, node: LevelMerge, child: Operator, context: OperatorContext) -> None:
        super().__init__("LevelMerge", context, child, detail=f"{len(node.calls)} groups")
        self._node = node

    def _made_of(self, block: Block) -> Block | None:
        merged = [
            _merge(call, members, block) for call, members in zip(self._node.calls, self._node.members, strict=True)
        ]
        return Block(block.time, (*block.columns[: self._node.passed], *merged), block.rows)


def _merge(call: AggregateCall, members: Sequence[int], block: Block) -> Column:
    """Merge one group; `members` are the numbers of the first state column of each series."""
    aggregate = aggregate_of(call)
    width = len(call.arguments)
    count, rows = len(members), block.rows
    starts = np.arange(rows, dtype=np.int64) * count
    # Put the states of one row next to each other: the state of series k in row r gets position r * count + k.
    order = np.arange(rows * count, dtype=np.int64).reshape(count, rows).T.ravel()
    states = [Column.concat([block.columns[first + i] for first in members]).take(order) for i in range(width)]
    if call.function in _BY_TIME:
        by_time = _ordered_by_time(states[-1], count)
        states = [state.take(by_time) for state in states]
    merged = aggregate.merge_series(states, RowRanges(starts, starts + count))
    return retyped(call.type, aggregate.final(merged))


def _ordered_by_time(times: Column, count: int) -> Int64Array:
    """Return the positions that sort the states of each row by time."""
    grid = times.numbers.reshape(-1, count)
    within = np.argsort(grid, axis=1, kind="stable")
    return (within + np.arange(len(grid))[:, None] * count).ravel()
