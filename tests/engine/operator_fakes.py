"""Scripted readers and operators, and helpers that compute expected results in plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

import numpy as np
from scheduler.idle_driver import idle_task

from saros_engine.memory.memory import QueryMemory
from saros_engine.memory.pool import MemoryPool
from saros_engine.operators.operator import Operator, OperatorContext, OperatorStatistics
from saros_engine.plan.plan import Field
from saros_scheduler.cancellation import RunningTask
from saros_storage.base.block import Block, Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.types import DataType, Scalar
from saros_storage.scan.reading import ReadCounters, ScanRequest, Statistics, Summaries, Summary

DOUBLE, INT, LONG, TEXT, BOOL, STAMP = (
    DataType.DOUBLE,
    DataType.INT32,
    DataType.INT64,
    DataType.TEXT,
    DataType.BOOLEAN,
    DataType.TIMESTAMP,
)
CONTEXT = OperatorContext()
Piece = Block | Summary | Summaries
#: A row: its time (if the rows are timed), followed by its values.
Row = tuple[Scalar, ...]


def memory_of(bytes_max: int) -> QueryMemory:
    """Return the memory account of a query that runs alone on its node."""
    return QueryMemory(bytes_max, MemoryPool(1 << 40, SystemClock()))


def block(types: Sequence[DataType], rows: Sequence[Row], *, timed: bool = True) -> Block:
    """Return rows as a block; timed rows begin with their time."""
    first = 1 if timed else 0
    columns = [Column.of(type_, [row[first + i] for row in rows]) for i, type_ in enumerate(types)]
    if not timed:
        return Block.untimed(columns, len(rows))
    return Block.timed(np.array([row[0] for row in rows], np.int64), columns)


def blocks(types: Sequence[DataType], rows: Sequence[Row], size: int, *, timed: bool = True) -> list[Block]:
    """Return rows as blocks of `size` rows."""
    return [block(types, rows[at : at + size], timed=timed) for at in range(0, len(rows), size)]


def rows_of(produced: Sequence[Block]) -> list[Row]:
    """Return the rows of blocks."""
    result: list[Row] = []
    for one in produced:
        columns = [column.to_list() for column in one.columns]
        times = [] if one.time is None else [one.time.tolist()]
        result += zip(*times, *columns, strict=True)
    return result


def pull(operator: Operator) -> list[Block]:
    """Call an operator as a driver does, and return all its blocks."""
    result = []
    for _ in range(1_000_000):
        if operator.finished:
            operator.close()
            return result
        assert operator.blocked() is None
        piece = operator.next()
        if piece is not None:
            assert piece.rows > 0
            result.append(piece)
    raise AssertionError("the operator never finishes")


def fields(*types: DataType) -> tuple[Field, ...]:
    return tuple(Field(f"c{i}", type_) for i, type_ in enumerate(types))


class Source:
    """An operator with scripted answers; None means "nothing yet"."""

    def __init__(self, pieces: Sequence[Block | None]) -> None:
        self.pieces = list(pieces)
        self.statistics = OperatorStatistics("Source")
        self.children: tuple[Operator, ...] = ()
        self.closed = False
        self.pulled = 0
        self.waits_for: Future[None] | None = None

    @property
    def finished(self) -> bool:
        return self.closed or not self.pieces

    def blocked(self) -> Future[None] | None:
        return self.waits_for

    def next(self) -> Block | None:
        assert not self.finished
        self.pulled += 1
        return self.pieces.pop(0)

    def close(self) -> None:
        self.closed = True


class FakeReader:
    """A series reader that returns scripted pieces."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = list(pieces)
        self.counters = ReadCounters()
        self.closed = False

    def next(self) -> Piece | None:
        assert not self.closed
        return self.pieces.pop(0) if self.pieces else None

    def close(self) -> None:
        self.closed = True


class FakeReaders:
    """A reader factory whose readers return the same pieces for every request, ascending or descending as requested."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = list(pieces)
        self.requests: list[ScanRequest] = []
        self.expected: list[ScanRequest] = []
        self.opened: list[FakeReader] = []

    def expect(self, request: ScanRequest) -> None:
        self.expected.append(request)

    def cuts(self, request: ScanRequest) -> list[int]:
        return []

    def open_lockstep(self, request: ScanRequest) -> None:
        return None

    def open_in_step(self, request: ScanRequest) -> None:
        return None

    def latest(self, request: ScanRequest, counters: ReadCounters) -> list[tuple[int, Scalar] | None]:
        self.requests.append(request)
        counters.cache_hits += len(request.measurements)
        rows = rows_of([piece for piece in self.pieces if isinstance(piece, Block)])
        found: list[tuple[int, Scalar] | None] = []
        for place in range(1, len(request.types) + 1):
            points = [(time, row[place]) for row in rows if row[place] is not None and isinstance(time := row[0], int)]
            found.append(max(points, default=None))
        return found

    def open(self, request: ScanRequest) -> FakeReader:
        pieces = self.pieces
        if request.descending:
            pieces = [backwards(piece) for piece in pieces[::-1]]
        reader = FakeReader(pieces)
        self.requests.append(request)
        self.opened.append(reader)
        return reader


def backwards(piece: Piece) -> Piece:
    """Return the piece with the rows reversed."""
    if isinstance(piece, Summary):
        return piece
    order = np.arange(piece.rows - 1, -1, -1)
    return Summaries(piece.types, piece.block.take(order)) if isinstance(piece, Summaries) else piece.take(order)


class Account:
    """A memory account that has a limit and records reservations."""

    def __init__(self, limit: int = 2**60) -> None:
        self.limit = limit
        self.used = 0
        self.peak = 0

    @property
    def bytes_max(self) -> int:
        return self.limit

    def reserve(self, count: int) -> None:
        if self.used + count > self.limit:
            raise MemoryError
        self.used += count
        self.peak = max(self.peak, self.used)

    def release(self, count: int) -> None:
        self.used -= count
        assert self.used >= 0


def summary_of(one: Block) -> Summary:
    """Return the exact statistics of a block whose columns are numeric."""
    columns: list[Statistics | None] = []
    for column in one.columns:
        points = [(t, v) for t, v in zip(one.times.tolist(), column.to_list(), strict=True) if v is not None]
        values = [v for _, v in points]
        columns.append(
            Statistics(
                len(points), points[0][0], points[-1][0], values[0], values[-1], min(values), max(values), sum(values)
            )
            if points
            else None
        )
    return Summary(int(one.times[0]), int(one.times[-1]), tuple(columns))


@contextmanager
def unwanted() -> Iterator[None]:
    """Run the context's code as if it were on a thread of a query that has already ended."""
    task = idle_task()
    task.to_aborted()
    with RunningTask(task):
        yield
