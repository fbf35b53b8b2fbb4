"""A pipeline consists of an operator tree and an output buffer. The scheduler runs a pipeline one quantum at a time."""

from __future__ import annotations

from saros_engine.execution.exchange import ExchangeBuffer
from saros_engine.operators.operator import Operator
from saros_scheduler.task import Blocked, DriverId
from saros_storage.base.clock import Clock
from saros_storage.base.gc_control import reduced_gc


class PipelineDriver:
    """The `Driver` of one fragment instance, which moves blocks from the root operator to the buffer."""

    def __init__(self, id_: DriverId, root: Operator, sink: ExchangeBuffer, clock: Clock, width: int) -> None:
        self._id = id_
        #: The root of the operator tree; EXPLAIN ANALYZE reads the operators' statistics.
        self.root = root
        self._sink = sink
        self._clock = clock
        #: The width of the plan (see `plan.width`).
        self.width = width
        self._finished = False

    @property
    def id(self) -> DriverId:
        """See `Driver.id`."""
        return self._id

    def process_for(self, quantum_ns: int) -> Blocked | None:
        """See `Driver.process_for`."""
        with reduced_gc(self.width):
            return self._process_for(quantum_ns)

    def _process_for(self, quantum_ns: int) -> Blocked | None:
        root, sink = self.root, self._sink
        end = self._clock.monotonic_ns() + quantum_ns
        while True:
            if root.finished or sink.abandoned:
                self._finished = True
                return None
            future = root.blocked() or sink.writable()
            if future is not None:
                return future
            block = root.next()
            if block is not None:
                sink.put(block)
            if self._clock.monotonic_ns() >= end:
                return None

    def is_finished(self) -> bool:
        """See `Driver.is_finished`."""
        return self._finished

    def close(self, cause: BaseException | None) -> None:
        """See `Driver.close`."""
        self.root.close()
        if cause is None:
            self._sink.finish()
