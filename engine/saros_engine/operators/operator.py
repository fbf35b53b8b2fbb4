"""The contract of every operator: pull, block, close.

    while not operator.finished:
        blocked = operator.blocked()        # None, or a future that is resolved when it may go on
        if blocked: return blocked to the scheduler
        block = operator.next()             # a block, or None: nothing yet (ask again)

  - `next` does a bounded piece of work (about one block of `BLOCK_ROWS_MAX` rows) and returns; a driver looks at
    the clock between two calls. None is not the end: `finished` is.
  - after `finished` is true, `next` is not called; `close` may be called at any time and releases everything below.
  - blocks are never empty and never changed after they are returned.
  - an operator is used by one thread at a time (its driver's).

`OperatorStatistics` counts what EXPLAIN ANALYZE shows; each operator times itself (`base.py`), the children included.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from saros_engine.memory.spill import QuerySpill
from saros_scheduler.task import Blocked
from saros_storage.base.block import Block
from saros_storage.base.clock import Clock, SystemClock
from saros_storage.base.types import TimeUnit
from saros_storage.scan.reading import ReadCounters


class MemoryAccount(Protocol):
    """A query's memory: operators that keep rows (sort, aggregation, fill, joins) reserve what they keep."""

    @property
    def bytes_max(self) -> int:
        """What the query's operators may hold in all."""
        ...

    @property
    def short(self) -> bool:
        """Whether the memory of all queries together is short: an operator that can do with less, should."""
        ...

    def reserve(self, count: int) -> Blocked | None:
        """Add `count` bytes. The operator has them, but if a future comes back, it goes on when that is resolved.

        Raises MemoryExceeded (709) if the query may not have them, MemoryPoolExhausted (2033) if all together may not.
        """
        ...

    def release(self, count: int) -> None:
        """Give `count` reserved bytes back."""
        ...

    def enqueue(self, count: int) -> None:
        """`count` bytes of rows are on their way to their reader. Raises MemoryPoolExhausted."""
        ...

    def dequeue(self, count: int) -> None:
        """The reader has so many bytes of them."""
        ...


class UnlimitedMemory:
    """An account that never refuses."""

    @property
    def bytes_max(self) -> int:
        """See `MemoryAccount.bytes_max`."""
        return sys.maxsize

    @property
    def short(self) -> bool:
        """See `MemoryAccount.short`."""
        return False

    def reserve(self, count: int) -> Blocked | None:  # noqa: ARG002 (nobody counts)
        """See `MemoryAccount.reserve`."""
        return None

    def release(self, count: int) -> None:
        """See `MemoryAccount.release`."""

    def enqueue(self, count: int) -> None:
        """See `MemoryAccount.enqueue`."""

    def dequeue(self, count: int) -> None:
        """See `MemoryAccount.dequeue`."""


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """What all operators of one query share."""

    memory: MemoryAccount = field(default_factory=UnlimitedMemory)
    #: Only calendar windows need it: to know which instant a time is.
    time_unit: TimeUnit = TimeUnit.MILLISECOND
    clock: Clock = field(default_factory=SystemClock)
    #: Where rows go that do not fit into memory; None: the query fails.
    spill: QuerySpill | None = None


@dataclass(slots=True)
class OperatorStatistics:
    """What one operator did."""

    name: str
    #: Words that tell this operator from its like (device, predicate, window...).
    detail: str = ""
    rows: int = 0
    blocks: int = 0
    #: Time inside `next`, the children's included.
    time_ns: int = 0
    bytes: int = 0
    #: Only for operators that read storage.
    reads: ReadCounters | None = None


class Operator(Protocol):
    """See the module."""

    @property
    def statistics(self) -> OperatorStatistics:
        """What was done so far."""
        ...

    @property
    def children(self) -> Sequence[Operator]:
        """The operators it pulls from."""
        ...

    @property
    def finished(self) -> bool:
        """No more blocks will come."""
        ...

    def blocked(self) -> Blocked | None:
        """What it waits for, if it cannot go on now."""
        ...

    def next(self) -> Block | None:
        """The next block; None if this call produced none."""
        ...

    def close(self) -> None:
        """Release everything, children too. Idempotent."""
        ...
