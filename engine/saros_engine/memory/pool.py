"""The memory pool of a node: the ledger, its lock, and the futures of waiting queries; it also ends queries.

    QueryMemory --draw--> MemoryPool (`ledger.py` has the rules) --end--> the query that holds the most
                <-give_back-

A thread checks for debts that are too old. The first debt starts this thread, which ends when there are no more debts.
Only this thread ends queries, so a query is never ended by a thread that is executing another query or holds a lock.

Thread-safe. When an account is garbage-collected while it holds bytes, its id is appended to `abandoned`. Appending
needs no lock: the collector may run at any moment, even on a thread that holds the lock.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable

import msgspec

from saros_engine.base.errors import MemoryPoolExhausted
from saros_engine.memory.ledger import Answer, HolderId, MemoryLedger
from saros_scheduler.task import Blocked
from saros_storage.base.clock import Clock

logger = logging.getLogger(__name__)

#: The time that a debt may last before the largest holder must end. This time is long enough for a heavy query to
#: finish or spill.
WAIT_NS = 5_000_000_000
_NANOSECONDS = 1e9

#: A function that ends a running query with an error, or drops the rows of an ended query that its client has not read.
End = Callable[[MemoryPoolExhausted], None]


class PoolStatus(msgspec.Struct, frozen=True):
    """Statistics of a pool; `waits` counts the waits for memory, and `ended` counts the queries that the pool ended."""

    used: int
    bytes_max: int
    waits: int
    ended: int


NO_MEMORY = PoolStatus(0, 0, 0, 0)


class MemoryPool:
    """The memory pool of one node. Thread-safe."""

    def __init__(self, bytes_max: int, clock: Clock, wait_ns: int = WAIT_NS) -> None:
        self._clock = clock
        self._changed = threading.Condition(threading.Lock())
        self._ledger = MemoryLedger(bytes_max, wait_ns)
        self._numbers = itertools.count()
        #: Callbacks that end the holders.
        self._ends: dict[HolderId, End] = {}
        self._blocked: dict[HolderId, Blocked] = {}
        self._waits = self._ended = 0
        self._watcher: threading.Thread | None = None
        #: Holders whose accounts were garbage-collected; their bytes are reclaimed.
        self.abandoned: deque[HolderId] = deque()

    @property
    def bytes_for_one(self) -> int:
        """The maximum number of bytes that a single query can hold."""
        return self._ledger.border

    @property
    def short(self) -> bool:
        """True if queries that can reduce their memory should do so."""
        return self._ledger.short

    def status(self) -> PoolStatus:
        """Return the current statistics."""
        with self._changed:
            over = self._sweep()
            status = PoolStatus(self._ledger.used, self._ledger.bytes_max, self._waits, self._ended)
        _resolve(over)
        return status

    def next_id(self) -> HolderId:
        """Return the id that identifies a new holder."""
        return HolderId(next(self._numbers))

    def draw(self, holder: HolderId, count: int, end: End, *, waits: bool = True) -> Blocked | None:
        """Draw `count` bytes; return a future to wait for before drawing more, or None. Raises MemoryPoolExhausted.

        `waits` is False if the caller does not wait while it owes bytes. If bytes are owed for too long, the largest
        holder is ended.
        """
        blocked = refusal = None
        with self._changed:
            over = self._sweep()
            answer = self._ledger.ask(holder, count, self._clock.monotonic_ns(), waits=waits)
            if answer is Answer.REFUSED:
                refusal = self._refusal(holder, count)
            else:
                self._ends[holder] = end
            if answer is Answer.OWED:
                blocked = self._owe(holder)
                self._waits += waits
        _resolve(over)
        if refusal is not None:
            raise refusal
        return blocked

    def give_back(self, holder: HolderId, count: int) -> None:
        """Give `count` bytes back to the pool."""
        with self._changed:
            over = self._give_back(holder, count)
        _resolve(over)

    # ------------------------------------------------------------------ with the lock held

    def _give_back(self, holder: HolderId, count: int) -> list[Blocked]:
        over = self._ledger.give_back(holder, count)
        if not self._ledger.held(holder):
            del self._ends[holder]
            over.append(holder)
        self._changed.notify()
        return [self._blocked.pop(number) for number in over if number in self._blocked]

    def _sweep(self) -> list[Blocked]:
        """Reclaim the bytes of garbage-collected accounts."""
        over = []
        while self.abandoned:
            holder = self.abandoned.popleft()
            if held := self._ledger.held(holder):
                over += self._give_back(holder, held)
        return over

    def _owe(self, holder: HolderId) -> Blocked:
        blocked = self._blocked.get(holder)
        if blocked is None:
            blocked = self._blocked[holder] = Blocked()
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="saros-memory", daemon=True)
            self._watcher.start()
        self._changed.notify()
        return blocked

    def _refusal(self, holder: HolderId, count: int) -> MemoryPoolExhausted:
        ledger = self._ledger
        return MemoryPoolExhausted(
            f"the queries of this node use {ledger.used} of the {ledger.bytes_max} bytes that they may use together;"
            f" this query uses {ledger.held(holder)} of them and needs {count} more: try again later, narrow it, or"
            " raise queries_memory_bytes"
        )

    # ------------------------------------------------------------------ overdue debts

    def _watch(self) -> None:
        owed = True
        while owed:
            try:
                owed = self._poll()
            except Exception:
                logger.exception("failed to end a query whose memory others wait for")

    def _poll(self) -> bool:
        """End the holder that must end, or wait until a holder may have to end; return False if there are no debts."""
        with self._changed:
            over = self._sweep()
            now = self._clock.monotonic_ns()
            holder = self._ledger.to_end(now)
            again_ns = self._ledger.next_check_ns()
            if holder is not None:
                end, error = self._ends[holder], self._exhausted_error(holder)
                self._ended += 1
            elif again_ns is None:
                self._watcher = None
            elif not over:
                self._changed.wait(max(again_ns - now, 0) / _NANOSECONDS)
        _resolve(over)
        if holder is not None:
            end(error)
        return holder is not None or again_ns is not None

    def _exhausted_error(self, holder: HolderId) -> MemoryPoolExhausted:
        return MemoryPoolExhausted(
            "the query was ended because others waited for memory and it used the most:"
            f" {self._ledger.held(holder)} of the {self._ledger.bytes_max} bytes that the queries of this node may use"
            " together; try again later, narrow it, or raise queries_memory_bytes"
        )


def _resolve(over: list[Blocked]) -> None:
    for blocked in over:
        blocked.set_result(None)
