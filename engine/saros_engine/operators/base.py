"""Base classes of operators. The base classes record statistics, measure times, reserve memory and close the children.

Subclasses define `_next`, and `_release` if needed. If an operator needs several children, it waits for the first of
them that is blocked. An operator is used only by the thread of its driver.
"""

from __future__ import annotations

from collections.abc import Sequence

from saros_engine.base.errors import MemoryExceeded
from saros_engine.operators.operator import Operator, OperatorContext, OperatorStatistics
from saros_scheduler.task import Blocked
from saros_storage.base.block import Block

#: Rows that can be spilled may take the nth part of a query's memory, where n is this number. The share is small
#: because rows take twice their memory while they are copied, and other operators need memory too.
_SHARE = 4
#: The n that is used instead while the memory pool of all queries is short.
_SHARE_WHEN_SHORT = 64


class PullOperator:
    """The base class of operators; `operator.Operator` defines their contract."""

    def __init__(
        self, name: str, context: OperatorContext, children: Sequence[Operator] = (), detail: str = ""
    ) -> None:
        self._statistics = OperatorStatistics(name, detail)
        self._context = context
        self._children = tuple(children)
        #: Subclasses set this to True when no further block will come.
        self._finished = False
        self._closed = False
        #: The number of bytes that this operator has reserved in the query's account.
        self._reserved = 0
        #: A future for which the operator must wait before it takes more memory, or None if it need not wait.
        self._has_to_wait: Blocked | None = None

    @property
    def statistics(self) -> OperatorStatistics:
        """See `Operator.statistics`."""
        return self._statistics

    @property
    def children(self) -> Sequence[Operator]:
        """See `Operator.children`."""
        return self._children

    @property
    def finished(self) -> bool:
        """See `Operator.finished`."""
        return self._finished

    def blocked(self) -> Blocked | None:
        """See `Operator.blocked`."""
        if self._has_to_wait is not None:
            if not self._has_to_wait.done():
                return self._has_to_wait
            self._has_to_wait = None
        if not self._children:
            return None
        for child in self._needed():
            if not child.finished:
                future = child.blocked()
                if future is not None:
                    return future
        return None

    def next(self) -> Block | None:
        """See `Operator.next`."""
        started = self._context.clock.monotonic_ns()
        block = self._next()
        statistics = self._statistics
        statistics.time_ns += self._context.clock.monotonic_ns() - started
        if block is not None:
            assert block.rows > 0
            statistics.rows += block.rows
            statistics.blocks += 1
            statistics.bytes += block.nbytes
        return block

    def close(self) -> None:
        """See `Operator.close`."""
        if self._closed:
            return
        self._closed = True
        self._finished = True
        self._release()
        self._hold(0)
        for child in self._children:
            child.close()

    def _next(self) -> Block | None:
        """Return the result of one call of `next`."""
        raise NotImplementedError

    def _release(self) -> None:
        """Release everything except the children. This is called only once."""

    def _needed(self) -> Sequence[Operator]:
        """Return the children from which the next call of `_next` would pull."""
        return self._children

    def _hold(self, count: int) -> None:
        """Set the number of bytes that this operator reserves. Raises the errors of `MemoryAccount.reserve`."""
        more = count - self._reserved
        if more > 0:
            self._has_to_wait = self._context.memory.reserve(more) or self._has_to_wait
        elif more < 0:
            self._context.memory.release(-more)
        self._reserved = count

    def _may_hold(self, count: int) -> bool:
        """Reserve bytes for rows that can be spilled, like `_hold`; return False if the rows must be spilled."""
        memory = self._context.memory
        if self._context.spill is None:
            self._hold(count)
            return True
        if count > memory.bytes_max // _SHARE:
            return False
        try:
            self._hold(count)
        except MemoryExceeded:
            return False
        return not memory.short or count <= memory.bytes_max // _SHARE_WHEN_SHORT


class BlockwiseOperator(PullOperator):
    """The base class of operators that process one block of their only child at a time.

    Subclasses define `_made_of`.
    """

    def __init__(self, name: str, context: OperatorContext, child: Operator, detail: str = "") -> None:
        super().__init__(name, context, (child,), detail)
        self._child = child

    def _next(self) -> Block | None:
        if self._child.finished:
            self._finished = True
            return None
        block = self._child.next()
        if block is None:
            self._finished = self._child.finished
            return None
        return self._made_of(block)

    def _made_of(self, block: Block) -> Block | None:
        """Return the result for a block, or None if the result has no rows."""
        raise NotImplementedError
