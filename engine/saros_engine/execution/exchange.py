"""Exchanges: bounded buffers of blocks between fragments, and from the last fragment to the client.

    driver A -- put --> [block block] -- take --> driver B                       A waits when full, B when empty
                                      -- wait_take --> the client's thread

Either end may stop early or finish: `finish` means that the writer has no more blocks, `fail` that the query ended with
an error, `leave` that the reader wants no more, upon which the writer stops too. Waiting is done on futures, which are
resolved outside the lock.

Buffered blocks are charged to the query's account as queued bytes; so are blocks that the client took, until it asks
for the next. While the memory of all queries together is short, a buffer accepts one block at a time.

Thread-safe, for one writer and one reader.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from saros_engine.operators.base import PullOperator
from saros_engine.operators.operator import MemoryAccount, OperatorContext, UnlimitedMemory
from saros_engine.plan.plan import ExchangeSource
from saros_scheduler.task import Blocked
from saros_storage.base.block import Block

#: A writer that has put more than this waits until the reader took some.
BYTES_MAX = 8 << 20
#: Rows that go to the client at a time, if they come in smaller blocks.
_ROWS_TOGETHER = 8_192


class ExchangeBuffer:
    """See the module."""

    def __init__(self, bytes_max: int = BYTES_MAX, memory: MemoryAccount | None = None) -> None:
        """`memory` is None if buffered bytes are not accounted."""
        self._memory = UnlimitedMemory() if memory is None else memory
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._blocks: deque[Block] = deque()
        self._bytes = 0
        #: Bytes that the client took last.
        self._at_client = 0
        self._finished = False
        self._left = False
        self._failure: BaseException | None = None
        self._for_reader: Blocked | None = None
        self._for_writer: Blocked | None = None

    # ------------------------------------------------------------------ the writer's end

    @property
    def abandoned(self) -> bool:
        """Whether the reader wants no more."""
        return self._left

    def writable(self) -> Blocked | None:
        """None if a block may be put, else the future to wait for."""
        bytes_max = 1 if self._memory.short else self._bytes_max
        with self._lock:
            if self._left or self._bytes < bytes_max:
                return None
            if self._for_writer is None:
                self._for_writer = Blocked()
            return self._for_writer

    def put(self, block: Block) -> None:
        """Append a block. Raises MemoryPoolExhausted."""
        size = block.nbytes
        self._memory.enqueue(size)
        waiting = None
        with self._lock:
            left = self._left
            if not left:
                self._blocks.append(block)
                self._bytes += size
                waiting, self._for_reader = self._for_reader, None
        if left:
            self._memory.dequeue(size)
        _resolve(waiting)

    def finish(self) -> None:
        """No more blocks will come."""
        with self._lock:
            self._finished = True
            waiting, self._for_reader = self._for_reader, None
        _resolve(waiting)

    def fail(self, cause: BaseException) -> None:
        """End the query with `cause`: the reader gets it instead of the remaining blocks."""
        with self._lock:
            self._failure = cause
            gone = self._clear()
            waiting, self._for_reader = self._for_reader, None
            writer, self._for_writer = self._for_writer, None
        self._dequeue(gone)
        _resolve(waiting)
        _resolve(writer)

    # ------------------------------------------------------------------ the reader's end

    @property
    def drained(self) -> bool:
        """Whether all blocks were taken and no more will come."""
        return self._left or (self._finished and not self._blocks and self._failure is None)

    @property
    def is_readable(self) -> bool:
        """Whether `take` has a block, an end or an error to report."""
        return bool(self._blocks) or self._finished or self._left or self._failure is not None

    def readable(self) -> Blocked | None:
        """None if `take` has something to report, else the future to wait for."""
        with self._lock:
            if self.is_readable:
                return None
            if self._for_reader is None:
                self._for_reader = Blocked()
            return self._for_reader

    def take(self) -> Block | None:
        """The next block, or None if there is none now. Raises what `fail` was given."""
        blocks, size = self._take(0)
        self._dequeue(size)
        return blocks[0] if blocks else None

    def wait_take(self) -> Block | None:
        """The next block, waited for; None at the end. For a thread that is not a driver's.

        Small blocks that are already buffered are returned as one: otherwise the cost of sending each to the client
        would dominate.
        """
        if self._at_client:
            self._count_as_read()
        while True:
            blocks, _ = self._take(_ROWS_TOGETHER, to_client=True)
            if blocks:
                return blocks[0] if len(blocks) == 1 else Block.concat(blocks)
            if self.drained:
                return None
            future = self.readable()
            if future is not None:
                future.result()

    def wait_readable(self, seconds: float) -> bool:
        """Wait up to a time-out; returns whether `take` has something to report. Not for a driver's thread."""
        future = self.readable()
        if future is None:
            return True
        try:
            future.result(max(seconds, 0.0))
        except TimeoutError:
            return False
        return True

    def _take(self, rows: int, *, to_client: bool = False) -> tuple[list[Block], int]:
        """The next block, joined with those after it up to a number of rows, and its size in bytes.

        None if there is none. `to_client`: its bytes stay charged as queued until the client asks again, or leaves.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            taken: list[Block] = []
            size = self._bytes
            while self._blocks and (not taken or self._blocks[0].rows <= rows):
                block = self._blocks.popleft()
                self._bytes -= block.nbytes
                rows -= block.rows
                taken.append(block)
            size -= self._bytes
            if to_client:
                self._at_client += size
            waiting = None
            if taken and self._bytes < self._bytes_max:
                waiting, self._for_writer = self._for_writer, None
        _resolve(waiting)
        return taken, size

    def leave(self, cause: BaseException | None = None) -> None:
        """Drop the blocks that are left: the reader wants no more. Idempotent.

        `cause`: raised by later reads unless all blocks were read before; None: they return None, as at the end.
        """
        with self._lock:
            if self._failure is None and not self.drained:
                self._failure = cause
            self._left = True
            gone = self._clear() + self._at_client
            self._at_client = 0
            reader, self._for_reader = self._for_reader, None
            writer, self._for_writer = self._for_writer, None
        self._dequeue(gone)
        _resolve(reader)
        _resolve(writer)

    def _count_as_read(self) -> None:
        """The client has finished with the blocks it took."""
        with self._lock:
            read, self._at_client = self._at_client, 0
        self._dequeue(read)

    def _dequeue(self, count: int) -> None:
        if count:
            self._memory.dequeue(count)

    def _clear(self) -> int:
        """Drop all blocks; returns their size in bytes. Call with the lock held."""
        gone, self._bytes = self._bytes, 0
        self._blocks.clear()
        return gone


def _resolve(future: Blocked | None) -> None:
    if future is not None:
        future.set_result(None)


class ExchangeOperator(PullOperator):
    """Receives the rows of another fragment's only instance, in order of arrival."""

    def __init__(self, node: ExchangeSource, buffer: ExchangeBuffer, context: OperatorContext) -> None:
        super().__init__("Exchange", context, detail=f"from fragment {node.fragment}")
        self._buffer = buffer

    def blocked(self) -> Blocked | None:
        """See `Operator.blocked`."""
        return self._buffer.readable()

    def _next(self) -> Block | None:
        block = self._buffer.take()
        self._finished = block is None and self._buffer.drained
        return block

    def _release(self) -> None:
        self._buffer.leave()


class DeviceExchangeOperator(PullOperator):
    """Receives the rows of devices that were dealt round-robin to a fragment's instances, in that same order.

        buffers     d0 d0 | d2 ..      d1 | d3 d3 ..        a block is of one device, or of those of one turn
        rows        d0 d0 d1 d2 ..

    A device is complete when its buffer has ended or shows a later device, which is held until its turn. A device
    without rows never appears. Slices of one device are told apart by the times of their rows.
    """

    def __init__(self, node: ExchangeSource, buffers: Sequence[ExchangeBuffer], context: OperatorContext) -> None:
        super().__init__("Exchange", context, detail=f"from fragment {node.fragment}")
        self._devices = [device.encode() for device in node.devices]
        self._times = node.times
        self._named_by = node.named_by
        self._buffers = tuple(buffers)
        #: Of each buffer the first block of a device whose turn has not come.
        self._held: list[Block | None] = [None] * len(self._buffers)
        #: The device whose turn it is.
        self._turn = 0

    def blocked(self) -> Blocked | None:
        """See `Operator.blocked`."""
        place = self._turn % len(self._buffers)
        readable = self._buffers[place].readable() if self._held[place] is None else None
        return super().blocked() or readable

    def _next(self) -> Block | None:
        place = self._turn % len(self._buffers)
        block = self._held[place] or self._buffers[place].take()
        if block is None and not self._buffers[place].drained:
            return None
        if block is not None and self._has_its_turn(block):
            self._held[place] = None
            return block
        self._held[place] = block
        self._hold(sum(held.nbytes for held in self._held if held is not None))
        self._turn += 1
        self._finished = self._turn == len(self._devices)
        return None

    def _has_its_turn(self, block: Block) -> bool:
        if block.columns[self._named_by].text.value(0) != self._devices[self._turn]:
            return False
        if not self._times:
            return True
        time = self._times[self._turn]
        return time.start <= int(block.times[0]) < time.end

    def _release(self) -> None:
        self._held = [None] * len(self._buffers)
        for buffer in self._buffers:
            buffer.leave()
