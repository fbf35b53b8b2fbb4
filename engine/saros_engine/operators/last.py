"""LastScan: returns the latest point of each series of a SELECT LAST."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from saros_engine.evaluation.evaluate import compile_predicate
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import OperatorContext
from saros_engine.plan.plan import LastScan
from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.text_conversion import format_column
from saros_storage.base.types import BoolArray, DataType, Scalar
from saros_storage.scan.reading import ReadCounters, ReaderFactory, ScanRequest

#: The number of series that one call of `next` looks up. A single request may have more series than this.
_SERIES_PER_BLOCK = 4_096

_Point = tuple[int, Scalar]


class LastScanOperator(PullOperator):
    """Looks up latest points.

    With a predicate, the operator reads each series backwards up to the first matching row.
    """

    def __init__(self, node: LastScan, readers: ReaderFactory, context: OperatorContext) -> None:
        super().__init__("LastScan", context, detail=f"{node.series.rows} series")
        self._counters = self._statistics.reads = ReadCounters()
        self._series = node.series
        self._requests = node.requests
        self._predicate: Callable[[Block], BoolArray] | None = None
        if node.predicate is not None:
            self._predicate = compile_predicate(node.predicate)
            self._requests = tuple(one for request in node.requests for one in _backwards(request))
        for request in self._requests:
            readers.expect(request)
        self._readers = readers
        #: The next request, and the row of `series` at which its columns begin.
        self._at = self._row = 0
        self._finished = not node.requests

    def _next(self) -> Block | None:
        first, points, types = self._row, list[_Point | None](), list[DataType]()
        while self._at < len(self._requests) and len(points) < _SERIES_PER_BLOCK:
            request = self._requests[self._at]
            self._at += 1
            points += self._readers.latest(request, self._counters) if request.latest else [self._search(request)]
            types += request.types
        self._row += len(points)
        self._finished = self._at == len(self._requests)
        return _block(self._series.slice(first, self._row), points, types)

    def _search(self, request: ScanRequest) -> _Point | None:
        """Return the last row that satisfies the predicate, or None."""
        assert self._predicate is not None
        reader = self._readers.open(request)
        try:
            while (block := reader.next()) is not None:
                assert isinstance(block, Block)
                wanted = block.columns[0].present & self._predicate(block)
                if wanted.any():
                    row = int(np.argmax(wanted))
                    return int(block.times[row]), block.columns[0].slice(row, row + 1).to_list()[0]
        finally:
            reader.close()
            self._counters.add(reader.counters)
        return None


def _backwards(request: ScanRequest) -> Iterator[ScanRequest]:
    """Yield a scan for each series of a request for latest points."""
    for name, type_ in zip(request.measurements, request.types, strict=True):
        yield replace(request, measurements=(name,), types=(type_,), latest=False)


def _block(series: Block, points: Sequence[_Point | None], types: Sequence[DataType]) -> Block | None:
    """Return rows for the series that have a point."""
    found = [row for row, point in enumerate(points) if point is not None]
    if not found:
        return None
    known = [point for point in points if point is not None]
    shown = series if len(found) == len(points) else series.take(np.array(found, np.int64))
    times = np.array([point[0] for point in known], np.int64)
    values = _values([point[1] for point in known], [types[row] for row in found])
    names, type_names = shown.columns
    return Block.timed(times, (names, values, type_names))


def _texts(column: Column) -> TextArray:
    """Return values of one type as text. As in IoTDB's LAST, the text of a DATE is its number."""
    return format_column(Column(DataType.INT32, column.numbers) if column.type is DataType.DATE else column)


def _values(values: Sequence[Scalar], types: Sequence[DataType]) -> Column:
    """Convert values of different types to texts. All values of a type are converted together."""
    parts, rows = [], []
    for type_ in set(types):
        numbers = [row for row, its in enumerate(types) if its is type_]
        column = Column.of(type_, [values[row] for row in numbers])
        parts.append(Column(DataType.TEXT, _texts(column)))
        rows += numbers
    if len(parts) == 1:
        return parts[0]
    order = np.empty(len(rows), np.int64)
    order[rows] = np.arange(len(rows))
    return Column.concat(parts).take(order)
