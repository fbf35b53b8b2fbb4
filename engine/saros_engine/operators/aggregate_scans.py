"""AggregateScans: one row of aggregates of many series, whose states are made and merged together.

    scan 0  summary ┐
    scan 1  summary ├▶ statistics as columns, a row per summary ─▶ states, slot = number of the scan ─▶ one row, sliced
    scan 2  rows    ┘

What an operator per series costs, a hundred thousand series would pay a hundred thousand times; here a series costs the
opening of its reader. Scans of one *shape* (types and calls) share their states' table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from saros_engine.aggregates import uses_summaries
from saros_engine.aggregation import Calls, StateTable
from saros_engine.expression import InputColumn
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import OperatorContext
from saros_engine.plan import AggregateCall, AggregateScans, Stage
from saros_engine.windows import grid
from saros_storage.block import Block, Column
from saros_storage.reading import BLOCK_ROWS_MAX, ReadCounters, ReaderFactory, SeriesReader, Summaries, Summary
from saros_storage.slices import Slices
from saros_storage.summaries import of_summaries
from saros_storage.types import DataType

#: Summaries that become columns together, and readers that one `next` pulls from.
_PIECES_MAX = 1_024


class _Shape:
    """The states of scans that have the same types and calls."""

    def __init__(self, calls: tuple[AggregateCall, ...], stage: Stage, types: tuple[DataType, ...]) -> None:
        self._calls = Calls(calls, stage)
        self._types = types
        self._table = StateTable(self._calls)
        self._waiting: list[Summary] = []
        self._slots: list[int] = []
        #: Scans of this shape so far.
        self.scans = 0
        self._results: list[Column] = []

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes

    def add(self, slot: int, piece: Block | Summary | Summaries) -> None:
        """A piece of a scan; scans come one after the other."""
        if isinstance(piece, Summary):
            self._waiting.append(piece)
            self._slots.append(slot)
            if len(self._waiting) == _PIECES_MAX:
                self._gather()
            return
        self._gather()
        if isinstance(piece, Summaries):
            self._table.add(np.full(piece.rows, slot, np.int64), self._calls.summary(piece))
            return
        whole = Slices(np.zeros(1, np.int64), np.full(1, piece.rows, np.int64))
        self._table.add(np.full(1, slot, np.int64), self._calls.states(piece, whole))

    def _gather(self) -> None:
        if self._waiting:
            states = self._calls.summary(of_summaries(self._types, self._waiting))
            self._table.add(np.array(self._slots, np.int64), states)
            self._waiting, self._slots = [], []

    def finish(self) -> None:
        """All scans were added."""
        self._gather()
        self._results = self._calls.results(self._table.rows(0, self.scans))

    def columns(self, slot: int) -> Iterator[Column]:
        """A scan's columns of the row."""
        return (column.slice(slot, slot + 1) for column in self._results)


class AggregateScansOperator(PullOperator):
    """Reads scan after scan."""

    def __init__(self, node: AggregateScans, readers: ReaderFactory, context: OperatorContext) -> None:
        super().__init__("AggregateScans", context, detail=f"{len(node.scans)} scans")
        self._counters = self._statistics.reads = ReadCounters()
        self._readers = readers
        self._shapes: dict[object, _Shape] = {}
        #: Of each scan its request, its shape, and its place there.
        self._scans = []
        #: By the identity of a scan's calls, which many share: what they are, and whether statistics answer them.
        known: dict[int, tuple[object, bool]] = {}
        whole = grid(None, context.time_unit)
        for scan in node.scans:
            if (found := known.get(id(scan.calls))) is None:
                answered = all(uses_summaries(call) for call in scan.calls)
                found = known[id(scan.calls)] = tuple([_key(call) for call in scan.calls]), answered
            key = (scan.stage, scan.request.types, found[0])
            shape = self._shapes.get(key)
            if shape is None:
                shape = self._shapes[key] = _Shape(scan.calls, scan.stage, scan.request.types)
            summarised = found[1] and not scan.request.bounds
            request = replace(scan.request, grid=whole) if summarised else scan.request
            readers.expect(request)
            self._scans.append((request, shape, shape.scans))
            shape.scans += 1
        self._at = 0
        self._reader: SeriesReader | None = None

    def _next(self) -> Block | None:
        rows = 0
        for _ in range(_PIECES_MAX):
            if self._at == len(self._scans):
                return self._row()
            rows += self._pull()
            if rows >= BLOCK_ROWS_MAX:
                break
        self._hold(sum(shape.nbytes for shape in self._shapes.values()))
        return None

    def _pull(self) -> int:
        """One piece of the scan whose turn it is; how many rows it was."""
        request, shape, slot = self._scans[self._at]
        if self._reader is None:
            self._reader = self._readers.open(request)
        piece = self._reader.next()
        if piece is None:
            self._release()
            self._at += 1
            return 0
        shape.add(slot, piece)
        return piece.rows if isinstance(piece, Block) else 0

    def _row(self) -> Block:
        for shape in self._shapes.values():
            shape.finish()
        self._finished = True
        return Block.untimed([column for _, shape, slot in self._scans for column in shape.columns(slot)], 1)

    def _release(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._counters.add(self._reader.counters)
            self._reader = None


def _key(call: AggregateCall) -> tuple[object, ...]:
    arguments = [a.index if isinstance(a, InputColumn) else a for a in call.arguments]
    return call.function, call.attributes, *arguments
