"""AggregateScans: aggregates of many series, per window or of all time, whose states are made and merged together.

    scan 0  summary ┐
    scan 1  summary ├▶ states, slot = number of the scan * windows + number of the window ─▶ results, sliced by scan
    scan 2  rows    ┘

What an operator per series costs, a hundred thousand series would pay a hundred thousand times; here a series costs the
opening of its reader, and what its rows come to. Summaries become states many at a time. Scans of one *shape* (types
and calls) share their states' table.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from saros_engine.aggregation import Calls, StateTable
from saros_engine.expression import InputColumn
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import OperatorContext
from saros_engine.plan import AggregateCall, AggregateScan, AggregateScans
from saros_engine.windows import WindowSequence, spans_inside, window_sequence
from saros_storage.block import Block, Column
from saros_storage.reading import BLOCK_ROWS_MAX, ReadCounters, ReaderFactory, SeriesReader, Summaries, Summary
from saros_storage.slices import Slices
from saros_storage.summaries import of_summaries
from saros_storage.types import Int64Array

#: Summaries that become columns together, and readers that one `next` pulls from.
_PIECES_MAX = 1_024
#: Rows of states that are merged together: enough that NumPy's cost per call vanishes.
_STATES_MAX = 16_384


class _Shape:
    """The states of scans that have the same types and calls.

    A scan has as many rows of states as there are windows (without windows: one). Scans come one after the other: those
    of a *batch* are complete before the next one begins, and their states become results.
    """

    def __init__(self, scan: AggregateScan, windows: WindowSequence | None) -> None:
        self._calls = Calls(scan.calls, scan.stage)
        self._types = scan.request.types
        self._windows = windows
        self._rows = 1 if windows is None else windows.count
        #: Scans of a batch.
        self._batch = max(_STATES_MAX // self._rows, 1)
        self._table = StateTable(self._calls)
        #: Single summaries, and the scan of each, that wait to become columns together; the same of many in one.
        self._waiting: list[Summary] = []
        self._slots: list[int] = []
        self._cells: list[Summaries] = []
        self._cell_slots: list[int] = []
        self._cell_rows = 0
        #: Scans of this shape so far.
        self.scans = 0
        #: Of each batch that is finished, a scan's rows after the other's.
        self._results: list[list[Column]] = []
        self._results_bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes + self._results_bytes

    def add(self, scan: int, piece: Block | Summary | Summaries) -> None:
        """A piece of a scan; scans come one after the other."""
        while scan // self._batch > len(self._results):
            self._finish_batch()
        slot = scan % self._batch
        if isinstance(piece, Summary):
            self._gather_cells()
            self._waiting.append(piece)
            self._slots.append(slot)
            if len(self._waiting) == _PIECES_MAX:
                self._gather_single()
            return
        self._gather_single()
        if isinstance(piece, Summaries):
            self._cells.append(piece)
            self._cell_slots.append(slot)
            self._cell_rows += piece.rows
            if self._cell_rows >= _STATES_MAX:
                self._gather_cells()
            return
        self._gather_cells()
        if self._windows is None:
            whole = Slices(np.zeros(1, np.int64), np.full(1, piece.rows, np.int64))
            self._table.add(np.full(1, slot, np.int64), self._calls.states(piece, whole))
        else:
            numbers, states = self._calls.windowed(piece, self._windows)
            self._table.add(slot * self._rows + numbers, states)

    def _gather_single(self) -> None:
        if self._waiting:
            self._add_summaries(np.array(self._slots, np.int64), of_summaries(self._types, self._waiting))
            self._waiting, self._slots = [], []

    def _gather_cells(self) -> None:
        if self._cells:
            slots = np.repeat(np.array(self._cell_slots, np.int64), [piece.rows for piece in self._cells])
            self._add_summaries(slots, Summaries.concat(self._cells))
            self._cells, self._cell_slots, self._cell_rows = [], [], 0

    def _add_summaries(self, slots: Int64Array, summaries: Summaries) -> None:
        states = self._calls.summary(summaries)
        if self._windows is None:
            self._table.add(slots, states)
            return
        spans, numbers = spans_inside(self._windows, summaries.starts, summaries.ends)
        if len(spans) < summaries.rows:
            slots, states = slots[spans], [column.take(spans) for column in states]
        self._table.add(slots * self._rows + numbers, states)

    def _finish_batch(self) -> None:
        self._gather_single()
        self._gather_cells()
        scans = min(self.scans - len(self._results) * self._batch, self._batch)
        results = self._calls.results(self._table.rows(0, scans * self._rows))
        self._results.append(results)
        self._results_bytes += sum(column.nbytes for column in results)
        self._table = StateTable(self._calls)

    def finish(self) -> None:
        """All scans were added."""
        while len(self._results) * self._batch < self.scans:
            self._finish_batch()

    def columns(self, scan: int) -> Iterator[Column]:
        """A scan's columns of the result."""
        batch, slot = divmod(scan, self._batch)
        low = slot * self._rows
        return (column.slice(low, low + self._rows) for column in self._results[batch])


class AggregateScansOperator(PullOperator):
    """Reads scan after scan."""

    def __init__(self, node: AggregateScans, readers: ReaderFactory, context: OperatorContext) -> None:
        super().__init__("AggregateScans", context, detail=f"{len(node.scans)} scans")
        self._counters = self._statistics.reads = ReadCounters()
        self._readers = readers
        self._shapes: dict[object, _Shape] = {}
        self._scans = node.scans
        #: Of each scan its shape, and its place there.
        self._places: list[tuple[_Shape, int]] = []
        #: By the identity of a scan's calls, which many share: what they are.
        known: dict[int, object] = {}
        windows = node.scans[0].windows
        self._windows = None if windows is None else window_sequence(windows, context.time_unit)
        self._label_end = windows is not None and windows.label_end
        for scan in node.scans:
            if (calls := known.get(id(scan.calls))) is None:
                calls = known[id(scan.calls)] = tuple([_key(call) for call in scan.calls])
            key = (scan.stage, scan.request.types, calls)
            shape = self._shapes.get(key)
            if shape is None:
                shape = self._shapes[key] = _Shape(scan, self._windows)
            readers.expect(scan.request)
            self._places.append((shape, shape.scans))
            shape.scans += 1
        self._at = 0
        self._reader: SeriesReader | None = None

    def _next(self) -> Block | None:
        rows = 0
        for _ in range(_PIECES_MAX):
            if self._at == len(self._scans):
                return self._result()
            rows += self._pull()
            if rows >= BLOCK_ROWS_MAX:
                break
        self._hold(sum(shape.nbytes for shape in self._shapes.values()))
        return None

    def _pull(self) -> int:
        """One piece of the scan whose turn it is; how many rows it was."""
        shape, number = self._places[self._at]
        if self._reader is None:
            self._reader = self._readers.open(self._scans[self._at].request)
        piece = self._reader.next()
        if piece is None:
            self._release()
            self._at += 1
            return 0
        shape.add(number, piece)
        return piece.rows if isinstance(piece, Block) else 0

    def _result(self) -> Block:
        for shape in self._shapes.values():
            shape.finish()
        self._finished = True
        columns = [column for shape, scan in self._places for column in shape.columns(scan)]
        if self._windows is None:
            return Block.untimed(columns, 1)
        count = self._windows.count
        times = self._windows.ends(0, count) - 1 if self._label_end else self._windows.starts(0, count)
        return Block.timed(times, columns)

    def _release(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._counters.add(self._reader.counters)
            self._reader = None


def _key(call: AggregateCall) -> tuple[object, ...]:
    arguments = [a.index if isinstance(a, InputColumn) else a for a in call.arguments]
    return call.function, call.attributes, *arguments
