"""LastScan: the latest point of each series of SELECT LAST."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from saros_engine.evaluate import compile_predicate
from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import OperatorContext
from saros_engine.plan import LastItem, LastScan
from saros_engine.text import format_column
from saros_storage.block import Block, Column
from saros_storage.reading import (
    BLOCK_ROWS_MAX,
    ReadCounters,
    ReaderFactory,
    ScanRequest,
    Summaries,
    Summary,
    TimeRange,
    WindowGrid,
)
from saros_storage.summaries import of_summaries
from saros_storage.types import BoolArray, DataType, Scalar

#: Series looked up by one `next`.
_ITEMS_PER_BLOCK = 1_024

_Point = tuple[int, Scalar]


class LastScanOperator(PullOperator):
    """Reads each series backwards; without a predicate, the statistics of what comes last may do."""

    def __init__(self, node: LastScan, readers: ReaderFactory, context: OperatorContext) -> None:
        super().__init__("LastScan", context, detail=f"{len(node.items)} series")
        self._statistics.reads = ReadCounters()
        self._items = [(item, _request(node, item)) for item in node.items]
        for _, request in self._items:
            readers.expect(request)
        self._readers = readers
        self._predicate: Callable[[Block], BoolArray] | None = None
        if node.predicate is not None:
            self._predicate = compile_predicate(node.predicate)
        self._at = 0
        self._finished = not node.items

    def _next(self) -> Block | None:
        items = self._items[self._at : self._at + _ITEMS_PER_BLOCK]
        self._at += len(items)
        self._finished = self._at >= len(self._items)
        points = [self._search(request) for _, request in items]
        found = [(item, point) for (item, _), point in zip(items, points, strict=True) if point is not None]
        return _block(found) if found else None

    def _search(self, request: ScanRequest) -> _Point | None:
        """The first row from the end that counts."""
        reader = self._readers.open(request)
        try:
            while (block := reader.next()) is not None:
                if isinstance(block, Summary):
                    block = of_summaries(request.types, [block])
                if isinstance(block, Summaries):
                    (known,) = block.columns
                    assert known.last is not None
                    block = Block.timed(known.end.numbers, [known.last])
                wanted = block.columns[0].present
                if self._predicate is not None:
                    wanted = wanted & self._predicate(block)
                if wanted.any():
                    row = int(np.argmax(wanted))
                    return int(block.times[row]), block.columns[0].slice(row, row + 1).to_list()[0]
        finally:
            reader.close()
            assert self._statistics.reads is not None
            self._statistics.reads.add(reader.counters)
        return None


def _request(node: LastScan, item: LastItem) -> ScanRequest:
    return ScanRequest(
        item.device,
        (item.measurement,),
        (item.type,),
        item.aligned,
        TimeRange(node.start, node.end),
        descending=True,
        # Statistics of BLOB do not have the last value.
        grid=WindowGrid() if node.predicate is None and item.type is not DataType.BLOB else None,
    )


def _block(found: list[tuple[LastItem, _Point]]) -> Block:
    assert len(found) <= BLOCK_ROWS_MAX
    times = np.array([point[0] for _, point in found], np.int64)
    names = Column.of(DataType.TEXT, [item.name for item, _ in found])
    types = Column.of(DataType.TEXT, [item.type.name for item, _ in found])
    return Block.timed(times, (names, _values(found), types))


def _values(found: list[tuple[LastItem, _Point]]) -> Column:
    """The values as text: type by type, then back in the items' order."""
    parts, rows = [], []
    for type_ in DataType:
        numbers = [i for i, (item, _) in enumerate(found) if item.type is type_]
        if numbers:
            values = Column.of(type_, [found[i][1][1] for i in numbers])
            parts.append(Column(DataType.TEXT, format_column(values)))
            rows += numbers
    order = np.empty(len(found), np.int64)
    order[rows] = np.arange(len(found))
    return Column.concat(parts).take(order)
