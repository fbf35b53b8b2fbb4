"""A query's memory account, which draws from the node's pool. Thread-safe: the drivers of a query share it.

    reserved    bytes that operators keep: at most the query's limit
    queued      bytes of rows in buffers between fragments and before the client; they may outlast the query
    drawn       bytes drawn from the pool to cover both: the excess over the first mebibyte, rounded up to whole steps,
                plus a spare step

A small query therefore never uses the pool, and a large query only once per mebibyte.
"""

from __future__ import annotations

import threading
import weakref

from saros_engine.base.errors import MemoryExceeded
from saros_engine.memory.ledger import HolderId
from saros_engine.memory.pool import End, MemoryPool
from saros_scheduler.task import Blocked

#: The number of bytes that an account draws from the pool at a time.
STEP_BYTES = 1 << 20
#: The number of bytes that a query may hold without drawing from the pool. If a server executes its maximum number of
#: calls, their queries hold 256 MiB in all in this way.
FREE_BYTES = 1 << 20


class QueryMemory:
    """Counts the bytes that the operators and buffers of a query keep.

    Implements `operators.operator.MemoryAccount`.
    """

    def __init__(self, bytes_max: int, pool: MemoryPool) -> None:
        self._bytes_max = bytes_max
        self._pool = pool
        self._lock = threading.Lock()
        self._reserved = 0
        self._peak = 0
        self._queued = 0
        self._drawn = 0
        #: The account's id in the pool, or None until the account draws bytes for the first time.
        self._holder: HolderId | None = None
        self._end: End = _ignore_excess
        #: True after the end of the query. No operator reserves memory after that, so no spare step is needed.
        self._closed = False

    @property
    def bytes_max(self) -> int:
        """See `MemoryAccount.bytes_max`."""
        return min(self._bytes_max, self._pool.bytes_for_one)

    @property
    def short(self) -> bool:
        """See `MemoryAccount.short`."""
        return self._pool.short

    @property
    def reserved(self) -> int:
        """Bytes currently reserved by operators."""
        return self._reserved

    @property
    def held(self) -> int:
        """Bytes currently reserved or queued."""
        return self._reserved + self._queued

    @property
    def peak(self) -> int:
        """The peak number of reserved bytes."""
        return self._peak

    def end_with(self, end: End) -> None:
        """Set the callback that ends this query when other queries wait for memory and this query holds the most.

        `end` must not keep the account alive.
        """
        self._end = end

    def reserve(self, count: int) -> Blocked | None:
        """See `MemoryAccount.reserve`."""
        with self._lock:
            wanted = self._reserved + count
            if wanted > self._bytes_max:
                raise MemoryExceeded(
                    f"the query needs {wanted} bytes of memory, more than the {self._bytes_max} that it may have:"
                    " narrow it, or raise query_memory_bytes"
                )
            blocked = None
            if more := self._lacking(count):
                blocked = self._pool.draw(self._name(), more, self._end)
                self._drawn += more
            self._reserved = wanted
            self._peak = max(self._peak, wanted)
            return blocked

    def release(self, count: int) -> None:
        """See `MemoryAccount.release`."""
        with self._lock:
            assert count <= self._reserved
            self._reserved -= count
            if self._drawn:
                self._give_back()

    def enqueue(self, count: int) -> None:
        """See `MemoryAccount.enqueue`."""
        with self._lock:
            if more := self._lacking(count):
                self._pool.draw(self._name(), more, self._end, waits=False)
                self._drawn += more
            self._queued += count

    def dequeue(self, count: int) -> None:
        """See `MemoryAccount.dequeue`."""
        with self._lock:
            assert count <= self._queued
            self._queued -= count
            if self._drawn:
                self._give_back()

    def close(self) -> None:
        """Record the end of the query; queued rows may still wait for the client."""
        with self._lock:
            self._closed = True
            if self._drawn:
                self._give_back()

    # ------------------------------------------------------------------ with the lock held

    def _lacking(self, count: int) -> int:
        """Return the number of bytes to draw from the pool before holding `count` more bytes."""
        lacking = self._reserved + self._queued + count - FREE_BYTES - self._drawn
        return _steps(lacking) if lacking > 0 else 0

    def _give_back(self) -> None:
        spare = 0 if self._closed or self._pool.short else STEP_BYTES
        kept = _steps(max(self._reserved + self._queued - FREE_BYTES, 0)) + spare
        if kept < self._drawn:
            assert self._holder is not None
            self._pool.give_back(self._holder, self._drawn - kept)
            self._drawn = kept

    def _name(self) -> HolderId:
        if self._holder is None:
            self._holder = self._pool.next_id()
            # If the client neither reads nor closes the result, the bytes of its rows are given back when the account
            # is garbage-collected.
            weakref.finalize(self, self._pool.abandoned.append, self._holder).atexit = False
        return self._holder


def _steps(count: int) -> int:
    """Round a number of bytes up to a multiple of a step."""
    return -(-count // STEP_BYTES) * STEP_BYTES


def _ignore_excess(_: MemoryExceeded) -> None:
    """Do nothing, because the account belongs to no execution."""
