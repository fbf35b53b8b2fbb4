"""A running query: it holds drivers, buffers, memory and a view, from its creation until all of them are released.

    QueryPlan -- one driver and one buffer per fragment instance --> scheduler
    client <-- blocks -- the root fragment's buffer

However a query ends, the scheduler calls its listener exactly once. The listener closes the view, reduces the memory
account to the bytes in the root's buffer, and removes the query from the registry. After a normal end, the client can
still read the rest of that buffer. If memory is so short that the buffer must be reclaimed before the client has read
it, the client gets an error that says so.

Thread-safe: the client's thread and the scheduler's threads use an execution at the same time.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from saros_engine.base.errors import QueryKilled
from saros_engine.execution.build import build
from saros_engine.execution.driver import PipelineDriver
from saros_engine.execution.exchange import BYTES_MAX, DeviceExchangeOperator, ExchangeBuffer, ExchangeOperator
from saros_engine.memory.memory import QueryMemory
from saros_engine.memory.spill import QuerySpill
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.plan.plan import DeviceMerge, ExchangeSource, FragmentInstance, QueryPlan, width
from saros_engine.planning.scan_splits import in_slices
from saros_scheduler import DriverScheduler
from saros_scheduler.task import DriverId, QueryId
from saros_storage.base.block import Block
from saros_storage.base.clock import Clock
from saros_storage.base.gc_control import reduced_gc
from saros_storage.base.types import TimeUnit
from saros_storage.scan.reading import ReadView

#: The buffers of all devices that wait for their turn may together take the nth part of the query's memory, where n is
#: this number. A buffer should hold about half of a device's rows when the device has its turn; if the buffers were
#: smaller, the fragments of other devices would wait for each other.
_WAITING_SHARE = 4
#: The capacity of a buffer that a join reads: 1.5 times the largest block, so that the next block can be produced while
#: the join processes a block. A larger buffer would not fit in the processor's caches.
_JOINED_BYTES = 24 << 20
#: A plan with at most this many columns produces a block in a few milliseconds, so the client's thread, which would
#: otherwise wait, may produce the first blocks itself.
_SMALL_WIDTH = 64


def _rooms(plan: QueryPlan, memory: QueryMemory) -> list[int]:
    """Return the capacity in bytes of each instance's buffer. The client's buffer has the usual capacity."""
    if len(plan.instances) == 1:
        return [BYTES_MAX]
    dealt = sum(isinstance(instance.fragment.root, DeviceMerge) for instance in plan.instances)
    waiting = max(memory.bytes_max // _WAITING_SHARE // max(dealt, 1), BYTES_MAX)

    def room(instance: FragmentInstance) -> int:
        if instance.sink is None:
            return BYTES_MAX
        return waiting if isinstance(instance.fragment.root, DeviceMerge) else min(waiting, _JOINED_BYTES)

    return [room(instance) for instance in plan.instances]


class QueryExecution:
    """The execution of one query. Call `start`, then read all rows or call `close`."""

    def __init__(
        self,
        query: QueryId,
        plan: QueryPlan,
        view: ReadView,
        memory: QueryMemory,
        clock: Clock,
        time_unit: TimeUnit,
        ended: Callable[[QueryExecution], None],
        spill: QuerySpill | None,
    ) -> None:
        """Build the drivers; take ownership of the view. `ended` is called once, when all resources are released.

        Raises UserMistake like `build`, after closing the view.
        """
        self.query = query
        self.plan = plan
        self.memory = memory
        #: The exception that ended the query, if one did.
        self.cause: BaseException | None = None
        self._clock = clock
        #: The total time of the client's completed waits, and the start of the current wait (None between waits).
        self._waited_ns = 0
        self._waits_since_ns: int | None = None
        self._view = view
        self._ended = ended
        #: A lock that is held until all resources are released. A lock is ten times cheaper than an event.
        self._running = threading.Lock()
        self._running.acquire()
        self._scheduler: DriverScheduler | None = None
        #: The thread that is executing `start`; the scheduler may run the driver on this thread.
        self.started_by: int | None = None
        self._buffers = [ExchangeBuffer(room, memory) for room in _rooms(plan, memory)]
        memory.end_with(_weak_end(self))
        context = OperatorContext(memory, time_unit, clock, spill)
        self.drivers: list[PipelineDriver] = []
        try:
            for instance, sink in zip(in_slices(plan.instances, view.cuts), self._buffers, strict=True):
                self.drivers.append(self._driver(instance, sink, context))
        except BaseException:
            view.close()
            raise

    def _driver(self, instance: FragmentInstance, sink: ExchangeBuffer, context: OperatorContext) -> PipelineDriver:
        plan = instance.fragment.root
        wide = width(plan)
        with reduced_gc(wide):
            root = build(plan, self._view, context, lambda node: self._receive(node, context))
        id_ = DriverId(self.query, instance.fragment.number, instance.instance, 0)
        return PipelineDriver(id_, root, sink, context.clock, wide)

    def _receive(self, node: ExchangeSource, context: OperatorContext) -> Operator:
        pairs = zip(self.plan.instances, self._buffers, strict=True)
        buffers = [buffer for instance, buffer in pairs if instance.fragment.number == node.fragment]
        if node.devices:
            return DeviceExchangeOperator(node, buffers, context)
        (buffer,) = buffers
        return ExchangeOperator(node, buffer, context)

    def start(self, scheduler: DriverScheduler, deadline_ns: int | None) -> None:
        """Submit the drivers to the scheduler. For a small plan, the scheduler may run them on the calling thread.

        Raises the errors of `DriverScheduler.submit`, after all resources are released.
        """
        self._scheduler = scheduler
        self.started_by = threading.get_ident()
        try:
            scheduler.submit(
                self.drivers, query=self.query, listener=self, deadline_ns=deadline_ns, lend=self._may_lend()
            )
        except BaseException as error:
            # On Ctrl-C, the scheduler may have accepted the drivers already; in that case, the scheduler must end the
            # query.
            if not scheduler.abort(self.query, error) and self._running.locked():
                for driver in self.drivers:
                    driver.close(None)
                self._end()
            raise
        finally:
            self.started_by = None

    def _may_lend(self) -> bool:
        """Return whether the plan is small enough to run its first steps on the client's thread."""
        return len(self.drivers) == 1 and self.drivers[0].width <= _SMALL_WIDTH

    # ------------------------------------------------------------------ a thread that runs drivers

    def query_finished(self, query: QueryId) -> None:  # noqa: ARG002 (the listener's protocol)
        """See `QueryListener.query_finished`."""
        self._end()

    def query_aborted(self, query: QueryId, cause: BaseException) -> None:  # noqa: ARG002
        """See `QueryListener.query_aborted`."""
        self.cause = cause
        for buffer in self._buffers:
            buffer.fail(cause)
        self._end()

    def _end(self) -> None:
        self._view.close()
        self.memory.close()
        self._ended(self)
        self._running.release()

    # ------------------------------------------------------------------ the client's thread

    def next_block(self) -> Block | None:
        """Wait for the next rows and return them; None at the end. Raises the error that ended the query."""
        if self._buffers[0].is_readable:
            return self._buffers[0].wait_take()
        with self._waiting():
            return self._buffers[0].wait_take()

    def wait(self, seconds: float) -> bool:
        """Wait up to a timeout for rows or the end; return whether `next_block` would now return at once."""
        if self._buffers[0].is_readable:
            return True
        with self._waiting():
            return self._buffers[0].wait_readable(seconds)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        began = self._waits_since_ns = self._clock.monotonic_ns()
        try:
            yield
        finally:
            self._waits_since_ns = None
            self._waited_ns += self._clock.monotonic_ns() - began

    def waited_ns(self) -> int:
        """Return the total time that the client has waited for rows. Any thread."""
        since = self._waits_since_ns
        return self._waited_ns + (0 if since is None else self._clock.monotonic_ns() - since)

    def fail(self, cause: BaseException) -> None:
        """End the query with an error; if it has already ended, discard the rows that the client has not read."""
        assert self._scheduler is not None
        if not self._scheduler.abort(self.query, cause) and not self._buffers[0].drained:
            self._buffers[0].fail(cause)

    def memory_bytes(self) -> int:
        """See `Execution.memory_bytes`."""
        return self.memory.held

    def cancel(self, reason: str) -> bool:
        """End the query if it still runs; its client gets QueryKilled with `reason`. Return whether it was running."""
        return self._abort(QueryKilled(reason))

    def _abort(self, error: QueryKilled) -> bool:
        assert self._scheduler is not None
        return self._scheduler.abort(self.query, error)

    def close(self) -> None:
        """End the query on behalf of its client, and wait until its resources are released. Idempotent.

        Concurrent and later reads raise QueryKilled unless all rows were read, so that a closed result cannot be
        mistaken for a complete one.
        """
        if self._running.locked():
            self._abort(QueryKilled.by_client())
            with self._running:
                pass
        self._buffers[0].leave(QueryKilled.by_client())


def _weak_end(execution: QueryExecution) -> Callable[[BaseException], None]:
    """Return a callback that calls `execution.fail`, but does not keep the execution alive."""
    found = weakref.ref(execution)

    def end(cause: BaseException) -> None:
        if (alive := found()) is not None:
            alive.fail(cause)

    return end
