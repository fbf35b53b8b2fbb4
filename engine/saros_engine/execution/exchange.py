"""Exchanges: bounded buffers of blocks between fragments, and from the last fragment to the client.

    driver A -- put --> [block block] -- take --> driver B                       A waits if full, B waits if empty
                                      -- wait_take --> the client's thread

Each side can end the exchange. The writer calls `finish` when it has no more blocks. The reader calls `leave` when it
wants no more blocks, which also stops the writer. `fail` is called when the query ends with an error. Both sides wait
on futures, which are resolved outside the lock.

Buffered blocks are charged to the query's account as queued bytes. Blocks that the client took stay charged until the
client asks for the next block. While the memory pool of all queries is short, a buffer accepts one block at a time.

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

#: The usual capacity of a buffer. The writer waits for the reader while at least this many bytes are buffered.
BYTES_MAX = 8 << 20
#: Small blocks are joined for the client into blocks of up to this many rows.
_ROWS_TOGETHER = 8_192


class ExchangeBuffer:
    """A bounded buffer of blocks between one writer and one reader."""

    def __init__(self, bytes_max: int = BYTES_MAX, memory: MemoryAccount | None = None) -> None:
        """`memory` is None if buffered bytes are not charged to an account."""
        self._memory = UnlimitedMemory() if memory is None else memory
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._blocks: deque[Block] = deque()
        self._bytes = 0
        #: The bytes of the blocks that the client took last, which are still charged.
        self._at_client = 0
        self._finished = False
        self._left = False
        self._failure: BaseException | None = None
        self._for_reader: Blocked | None = None
        self._for_writer: Blocked | None = None

    # ------------------------------------------------------------------ the writer's end

    @property
    def abandoned(self) -> bool:
        """True if the reader wants no more blocks."""
        return self._left

    def writable(self) -> Blocked | None:
        """Return the future that the writer must wait for before `put`, or None if a block may be put now."""
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
        """Mark the end of the blocks."""
        with self._lock:
            self._finished = True
            waiting, self._for_reader = self._for_reader, None
        _resolve(waiting)

    def fail(self, cause: BaseException) -> None:
        """Drop the buffered blocks; the reader's next call raises `cause`."""
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
        """True if all blocks were taken and no more blocks will come."""
        return self._left or (self._finished and not self._blocks and self._failure is None)

    @property
    def is_readable(self) -> bool:
        """True if `take` has a block, the end or an error to report."""
        return bool(self._blocks) or self._finished or self._left or self._failure is not None

    def readable(self) -> Blocked | None:
        """Return the future that the reader must wait for before `take`; None if `take` has something to report now."""
        with self._lock:
            if self.is_readable:
                return None
            if self._for_reader is None:
                self._for_reader = Blocked()
            return self._for_reader

    def take(self) -> Block | None:
        """Remove and return the next block; None if the buffer is empty. Raises the cause passed to `fail`."""
        blocks, size = self._take(0)
        self._dequeue(size)
        return blocks[0] if blocks else None

    def wait_take(self) -> Block | None:
        """Wait for the next block and return it; None at the end. Must not be called on a driver's thread.

        Small blocks that are already buffered are joined, because sending each of them to the client separately would
        cost more than all other work on them.
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
        """Wait up to a timeout; return whether `take` has something to report.

        Must not be called on a driver's thread.
        """
        future = self.readable()
        if future is None:
            return True
        try:
            future.result(max(seconds, 0.0))
        except TimeoutError:
            return False
        return True

    def _take(self, rows: int, *, to_client: bool = False) -> tuple[list[Block], int]:
        """Remove the next block, and further blocks up to `rows` rows in total; return the blocks and their bytes.

        The list is empty if no block is buffered. If `to_client`, the bytes stay charged as queued until the client
        asks for the next block or leaves.
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
        """End reading: drop the remaining blocks and stop the writer. Idempotent.

        Later reads raise `cause`, unless all blocks had been read. If `cause` is None, later reads return None, as at
        the end.
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
        """Release the bytes of the blocks that the client took earlier."""
        with self._lock:
            read, self._at_client = self._at_client, 0
        self._dequeue(read)

    def _dequeue(self, count: int) -> None:
        if count:
            self._memory.dequeue(count)

    def _clear(self) -> int:
        """Drop all blocks; return their size in bytes. Call with the lock held."""
        gone, self._bytes = self._bytes, 0
        self._blocks.clear()
        return gone


def _resolve(future: Blocked | None) -> None:
    if future is not None:
        future.set_result(None)


class ExchangeOperator(PullOperator):
    """An operator that returns the rows of another fragment, which has a single instance, in order of arrival."""

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
    """An operator that receives the rows of devices that are distributed round-robin over a fragment's instances.

        buffers     d0 d0 | d2 ..      d1 | d3 d3 ..        a block has rows of one device, or of one slice of a device
        rows        d0 d0 d1 d2 ..

    Rows are returned in the order of the devices. A device is complete when its buffer has ended or returns a block of
    a later device; that block is held until the turn of the later device. A device may have no rows. Slices of one
    device are distinguished by the times of their rows.
    """

    def __init__(self, node: ExchangeSource, buffers: Sequence[ExchangeBuffer], context: OperatorContext) -> None:
        super().__init__("Exchange", context, detail=f"from fragment {node.fragment}")
        self._devices = [device.encode() for device in node.devices]
        self._times = node.times
        self._named_by = node.named_by
        self._buffers = tuple(buffers)
        #: For each buffer, a block that was taken before the turn of its device, or None.
        self._held: list[Block | None] = [None] * len(self._buffers)
        #: The index of the device whose turn it is.
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
