"""Scans: reads several series of a non-aligned device. One reader reads them as long as they have the same times.

reader      Block Block   Unaligned [20, 50)                        Block     None
returned    Block Block   the blocks of a TimeJoin of Scans         Block     (the end)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from msgspec.structs import replace

from saros_engine.operators.base import PullOperator
from saros_engine.operators.join.time_join import TimeJoinOperator
from saros_engine.operators.operator import OperatorContext
from saros_engine.operators.scan.scan import ScanOperator, describe_request
from saros_engine.plan.plan import Scan, TimeJoin
from saros_storage.base.block import Block
from saros_storage.scan.reading import MultiSeriesReader, ReadCounters, ReaderFactory, ScanRequest, TimeRange, Unaligned


class ScansOperator(PullOperator):
    """Replaces scans that differ only in their series (see `can_read_in_lockstep`), and keeps their order."""

    def __init__(self, scans: Sequence[Scan], readers: ReaderFactory, context: OperatorContext) -> None:
        self._requests = [scan.request for scan in scans]
        first = self._requests[0]
        names = tuple(chain.from_iterable(request.measurements for request in self._requests))
        types = tuple(chain.from_iterable(request.types for request in self._requests))
        self._whole = replace(first, measurements=names, types=types)
        super().__init__("Scan", context, detail=describe_request(self._whole))
        self._counters = self._statistics.reads = ReadCounters()
        self._readers = readers
        for request in self._requests:
            readers.expect(request)
        self._opened = False
        self._reader: MultiSeriesReader | None = None
        #: The join that reads a range in which the times of the series differ, or None outside such ranges.
        self._join: TimeJoinOperator | None = None

    def _next(self) -> Block | None:
        if not self._opened:
            self._open()
        if self._join is not None:
            return self._joined(self._join)
        assert self._reader is not None
        piece = self._reader.next()
        if isinstance(piece, Unaligned):
            self._join = self._joining(piece.time)
            return None
        self._finished = piece is None
        return piece

    def _open(self) -> None:
        self._opened = True
        self._reader = self._readers.open_lockstep(self._whole)
        if self._reader is None:
            self._join = self._joining(self._whole.time)

    def _joining(self, time: TimeRange) -> TimeJoinOperator:
        requests = [request if time == request.time else replace(request, time=time) for request in self._requests]
        scans = [ScanOperator(request, self._readers, self._context) for request in requests]
        node = TimeJoin((), (), self._whole.descending)
        return TimeJoinOperator(node, scans, [request.types for request in requests], self._context)

    def _joined(self, join: TimeJoinOperator) -> Block | None:
        block = None if join.finished else join.next()
        if join.finished:
            self._close_join()
            self._finished = self._reader is None
        return block

    def _close_join(self) -> None:
        if self._join is not None:
            for scan in self._join.children:
                if scan.statistics.reads is not None:
                    self._counters.add(scan.statistics.reads)
            self._join.close()
            self._join = None

    def _release(self) -> None:
        self._close_join()
        if self._reader is not None:
            self._reader.close()
            self._counters.add(self._reader.counters)
            self._reader = None


def can_read_in_lockstep(request: ScanRequest, other: ScanRequest) -> bool:
    """Return whether two requests read the same non-aligned device and differ only in their series."""
    same = (request.device, request.time, request.descending, request.block_rows) == (
        other.device,
        other.time,
        other.descending,
        other.block_rows,
    )
    return same and not (request.aligned or other.aligned or request.bounds or other.bounds)
