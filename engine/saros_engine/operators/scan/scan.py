"""Scan: returns the rows of one device, in the blocks of its series reader."""

from __future__ import annotations

from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import OperatorContext
from saros_storage.base.block import Block
from saros_storage.scan.reading import ReaderFactory, ScanRequest, SeriesReader


class ScanOperator(PullOperator):
    """Opens its reader when its first block is requested, so that a plan that never runs opens no reader.

    The code that builds the operator announces the request with `readers.expect`.
    """

    def __init__(self, request: ScanRequest, readers: ReaderFactory, context: OperatorContext) -> None:
        super().__init__("Scan", context, detail=describe_request(request))
        assert request.grid is None
        self._request = request
        self._readers = readers
        self._reader: SeriesReader | None = None

    def _next(self) -> Block | None:
        if self._reader is None:
            self._reader = self._readers.open(self._request)
            self._statistics.reads = self._reader.counters
        piece = self._reader.next()
        assert piece is None or isinstance(piece, Block)
        if piece is None:
            self._finished = True
            self._reader.close()
        return piece

    def _release(self) -> None:
        if self._reader is not None:
            self._reader.close()


def describe_request(request: ScanRequest) -> str:
    """Describe the series that a scan reads, for EXPLAIN ANALYZE."""
    return f"{request.device}.({', '.join(request.measurements)})"
