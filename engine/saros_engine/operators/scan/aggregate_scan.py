"""AggregateScan: aggregates the columns of a device for each window.

The operator uses statistics instead of rows where statistics are exact.
"""

from __future__ import annotations

from msgspec.structs import replace

from saros_engine.aggregation.aggregation import WINDOW_ROWS_MAX, Calls, GlobalAggregation, TimeAggregation
from saros_engine.aggregation.windows import grid, pane_sequence, window_sequence
from saros_engine.functions.registry import uses_summaries
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import OperatorContext
from saros_engine.operators.scan.scan import describe_request
from saros_engine.plan.plan import AggregateScan
from saros_storage.base.block import Block
from saros_storage.read.window_statistics import of_summaries
from saros_storage.scan.reading import ReaderFactory, SeriesReader, Summaries, Summary

#: How many single summaries are added at once. The number is large enough to amortise NumPy's cost per call, and small
#: enough for one quantum of the scheduler.
_SUMMARIES_MAX = 1_024


class AggregateScanOperator(PullOperator):
    """Requests summaries instead of rows from the reader if summaries suffice for every call.

    If the request is descending, the last window is returned first.
    """

    def __init__(self, node: AggregateScan, readers: ReaderFactory, context: OperatorContext) -> None:
        request = node.request
        summaries = not request.bounds and all(uses_summaries(call) for call in node.calls)
        self._request = replace(request, grid=grid(node.windows, context.time_unit) if summaries else None)
        readers.expect(self._request)
        super().__init__("AggregateScan", context, detail=describe_request(request))
        self._readers = readers
        self._reader: SeriesReader | None = None
        self._drained = False
        calls = Calls(node.calls, node.stage)
        self._aggregation: GlobalAggregation | TimeAggregation
        if node.windows is None:
            self._aggregation = GlobalAggregation(calls, newest_first=request.descending)
        else:
            self._aggregation = TimeAggregation(
                calls,
                window_sequence(node.windows, context.time_unit),
                pane_sequence(node.windows, context.time_unit),
                label_end=node.windows.label_end,
                descending=request.descending,
                rows_max=min(WINDOW_ROWS_MAX, request.block_rows),
            )

    def _next(self) -> Block | None:
        block = self._aggregation.take()
        if block is None and self._drained:
            self._finished = True
        elif block is None:
            self._read()
            block = self._aggregation.take()
        return block

    def _read(self) -> None:
        if self._reader is None:
            self._reader = self._readers.open(self._request)
            self._statistics.reads = self._reader.counters
        single: list[Summary] = []
        while isinstance(piece := self._reader.next(), Summary):
            single.append(piece)
            if len(single) == _SUMMARIES_MAX:
                break
        if single:
            self._aggregation.add_summaries(of_summaries(self._request.types, single))
        if piece is None:
            self._drained = True
            self._aggregation.finish()
            self._reader.close()
        elif isinstance(piece, Block):
            self._aggregation.add_block(piece)
        elif isinstance(piece, Summaries):
            self._aggregation.add_summaries(piece)
        self._hold(self._aggregation.nbytes)

    def _release(self) -> None:
        if self._reader is not None:
            self._reader.close()
