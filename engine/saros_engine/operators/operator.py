"""The contract of operators: how to request blocks, how an operator reports that it must wait, and how to close it.

    while not operator.finished:
        blocked = operator.blocked()        # None, or a future that is resolved when the operator can continue
        if blocked: return blocked to the scheduler
        block = operator.next()             # a block, or None: nothing yet (ask again)

  - `next` does a bounded piece of work (about one block of `BLOCK_ROWS_MAX` rows) and returns; a driver looks at
    the clock between two calls. None does not mean the end; only `finished` does.
  - `next` is not called after `finished` is true; `close` may be called at any time and also closes the children.
  - blocks are never empty and never changed after they are returned.
  - an operator is used by one thread at a time (the thread of its driver).

`OperatorStatistics` contains the numbers that EXPLAIN ANALYZE shows. Each operator measures its time (`base.py`), which
includes the time of its children.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

import msgspec

from saros_engine.memory.spill import QuerySpill
from saros_scheduler.task import Blocked
from saros_storage.base.block import Block
from saros_storage.base.clock import Clock, SystemClock
from saros_storage.base.types import TimeUnit
from saros_storage.scan.reading import ReadCounters


class MemoryAccount(Protocol):
    """A query's memory. Operators that keep rows (sort, aggregation, fill, joins) reserve the bytes of the rows."""

    @property
    def bytes_max(self) -> int:
        """The limit on the bytes of all operators of the query together."""
        ...

    @property
    def short(self) -> bool:
        """True if the memory pool of all queries is short; operators that can reduce their memory should do so."""
        ...

    def reserve(self, count: int) -> Blocked | None:
        """Reserve `count` bytes. If a future is returned, the operator must wait for it before it continues.

        Raises MemoryExceeded (709) if the query's limit would be exceeded, and MemoryPoolExhausted (2033) if the limit
        of all queries together would be exceeded.
        """
        ...

    def release(self, count: int) -> None:
        """Give back `count` reserved bytes."""
        ...

    def enqueue(self, count: int) -> None:
        """Charge the account for `count` bytes of rows that wait for their reader. Raises MemoryPoolExhausted."""
        ...

    def dequeue(self, count: int) -> None:
        """Credit the account with `count` bytes of rows that their reader has received."""
        ...


class UnlimitedMemory:
    """An account without a limit."""

    @property
    def bytes_max(self) -> int:
        """See `MemoryAccount.bytes_max`."""
        return sys.maxsize

    @property
    def short(self) -> bool:
        """See `MemoryAccount.short`."""
        return False

    def reserve(self, count: int) -> Blocked | None:  # noqa: ARG002 (nothing is counted)
        """See `MemoryAccount.reserve`."""
        return None

    def release(self, count: int) -> None:
        """See `MemoryAccount.release`."""

    def enqueue(self, count: int) -> None:
        """See `MemoryAccount.enqueue`."""

    def dequeue(self, count: int) -> None:
        """See `MemoryAccount.dequeue`."""


class OperatorContext(msgspec.Struct, frozen=True):
    """Resources shared by all operators of one query."""

    memory: MemoryAccount = msgspec.field(default_factory=UnlimitedMemory)
    #: The unit of times. Only calendar windows need the time unit, to convert times to instants.
    time_unit: TimeUnit = TimeUnit.MILLISECOND
    clock: Clock = msgspec.field(default_factory=SystemClock)
    #: The spill space for rows that do not fit in memory. Without this space (None), the query fails if rows do not
    #: fit.
    spill: QuerySpill | None = None


class OperatorStatistics(msgspec.Struct):
    """Statistics of the work of one operator."""

    name: str
    #: Text that distinguishes the operator from others of its kind (device, predicate, window...).
    detail: str = ""
    rows: int = 0
    blocks: int = 0
    #: The time spent inside `next`, including the time of the children.
    time_ns: int = 0
    bytes: int = 0
    #: The counters of an operator that reads storage, or None for other operators.
    reads: ReadCounters | None = None


class Operator(Protocol):
    """One operator of a running query; see the contract above."""

    @property
    def statistics(self) -> OperatorStatistics:
        """Statistics of the work already done."""
        ...

    @property
    def children(self) -> Sequence[Operator]:
        """The operators from which this operator pulls blocks."""
        ...

    @property
    def finished(self) -> bool:
        """True if no more blocks will come."""
        ...

    def blocked(self) -> Blocked | None:
        """Return a future to wait for if the operator cannot continue now, otherwise None."""
        ...

    def next(self) -> Block | None:
        """Return the next block, or None if this call produced no block."""
        ...

    def close(self) -> None:
        """Release everything, including the children. Idempotent."""
        ...
