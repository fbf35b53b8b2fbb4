"""Aggregate: aggregates the child's rows over windows of any kind, or merges states that another fragment computed.

Results are returned as soon as they are complete. With `descending`, however, the last window comes first, so results
are kept until the child has ended. If these results exceed their share of the query's memory, they are spilled to a
file.
"""

from __future__ import annotations

from saros_engine.aggregation.aggregation import (
    Aggregation,
    Calls,
    GlobalAggregation,
    LabelAggregation,
    TimeAggregation,
)
from saros_engine.aggregation.row_windows import RowWindowAggregation
from saros_engine.aggregation.windows import pane_sequence, require_few, window_sequence
from saros_engine.operators.base import PullOperator
from saros_engine.operators.block_buffer import BlockBuffer
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan.plan import Aggregate, Stage, TimeWindows
from saros_storage.base.block import Block
from saros_storage.base.types import Int64Array


class AggregateOperator(PullOperator):
    """Aggregates its child's rows or states."""

    def __init__(self, node: Aggregate, child: Operator, context: OperatorContext) -> None:
        super().__init__("Aggregate", context, (child,), detail=_describe(node))
        self._child = child
        self._aggregation = _aggregation(node, context)
        #: If the node is `descending`: the results, which are returned in reverse order when the child has ended;
        #: otherwise None.
        self._waiting = BlockBuffer(context.spill) if node.descending else None
        self._drained = False

    def _next(self) -> Block | None:
        if self._drained:
            return self._last_blocks()
        block = self._take()
        if block is None:
            if self._child.finished:
                self._drain()
                return None
            piece = self._child.next()
            if piece is not None:
                self._aggregation.add_block(piece)
                self._account()
        return block

    def _take(self) -> Block | None:
        block = self._aggregation.take()
        while block is not None and self._waiting is not None:
            self._waiting.append(block)
            self._account()
            block = self._aggregation.take()
        return block

    def _account(self) -> None:
        states, waiting = self._aggregation.nbytes, self._waiting
        if waiting is None or len(waiting) == 0:
            self._hold(states)
        elif not self._may_hold(states + waiting.nbytes):
            if not waiting.in_files:
                self._statistics.detail += " in files"
            waiting.spill_to_file()
            self._hold(states)

    def _drain(self) -> None:
        self._drained = True
        self._aggregation.finish()
        if self._waiting is not None:
            self._take()

    def _last_blocks(self) -> Block | None:
        if self._waiting is None:
            block = self._aggregation.take()
            self._finished = block is None
            return block
        self._finished = len(self._waiting) == 0
        return None if self._finished else self._waiting.pop_last().reversed()

    def _release(self) -> None:
        if self._waiting is not None:
            self._waiting.close()


def _aggregation(node: Aggregate, context: OperatorContext) -> Aggregation:
    calls = Calls(node.calls, node.stage)
    windows = node.windows
    if windows is None:
        return GlobalAggregation(calls)
    if node.stage in (Stage.FINAL, Stage.MERGE):
        end_of = None
        if node.end_time:
            assert isinstance(windows, TimeWindows)
            end_of = _LastTimes(windows, context)
        return LabelAggregation(calls, end_of)
    if not isinstance(windows, TimeWindows):
        return RowWindowAggregation(node.calls, node.stage, windows, with_end=node.end_time)
    sequence = window_sequence(windows, context.time_unit)
    if node.descending:
        require_few(sequence, "descending")
    return TimeAggregation(
        calls,
        sequence,
        pane_sequence(windows, context.time_unit),
        label_end=windows.label_end,
        with_end=node.end_time,
    )


class _LastTimes:
    """A function that maps the labels of windows to the last times of these windows."""

    def __init__(self, windows: TimeWindows, context: OperatorContext) -> None:
        self._sequence = window_sequence(windows, context.time_unit)
        self._label_end = windows.label_end

    def __call__(self, labels: Int64Array) -> Int64Array:
        """Return the last times of the windows with these labels."""
        if self._label_end or len(labels) == 0:
            return labels
        return self._sequence.ends_of(self._sequence.index_of(labels)) - 1


def _describe(node: Aggregate) -> str:
    windows = "" if node.windows is None else f" by {type(node.windows).__name__}"
    return f"{node.stage.value}: {', '.join(call.function for call in node.calls)}{windows}"
