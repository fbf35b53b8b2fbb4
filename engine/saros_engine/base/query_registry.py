"""The running queries, for SHOW QUERIES, KILL QUERY and closing the engine. Thread-safe."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from saros_cluster.placement.ring import NodeId
from saros_scheduler.task import QueryId
from saros_storage.base.clock import Clock

_NUMBERS = 100_000


class Execution(Protocol):
    """A running query, or a long-running statement."""

    @property
    def query(self) -> QueryId:
        """The id of the query."""
        ...

    def cancel(self, reason: str) -> bool:
        """End the execution; return False if it has already ended."""
        ...

    def waited_ns(self) -> int:
        """Return how long the client has waited for the query on this node."""
        ...

    def memory_bytes(self) -> int:
        """Return the number of bytes that the query holds in the memory pool of all queries."""
        ...


class ClientInfo(msgspec.Struct, frozen=True):
    """The client of a query. `user` is empty if no users are configured; `host` is None if it is this process."""

    user: str
    host: str | None = None


class RunningQuery(msgspec.Struct, frozen=True):
    """One query. `started_ns` and `ticks_ns` are the wall-clock time and the monotonic time of its start."""

    query: QueryId
    statement: str
    asker: ClientInfo
    started_ns: int
    ticks_ns: int
    #: The time limit of the query, or None if it is unlimited.
    limit_ms: int | None
    execution: Execution


class QueryRegistry:
    """The running queries of this node, by id."""

    def __init__(self, clock: Clock, node: NodeId) -> None:
        self._clock = clock
        self._node = node
        self._lock = threading.Lock()
        self._number = 0
        #: The second in the newest id (-1 if there is no id yet), and the text form of this second.
        self._second = -1, ""
        self._running: dict[QueryId, RunningQuery] = {}

    def next_id(self) -> QueryId:
        """Return a new id, which consists of the current second, a running number, and the node's id."""
        second = self._clock.now_ns() // 1_000_000_000
        with self._lock:
            self._number = (self._number + 1) % _NUMBERS
            if second != self._second[0]:
                self._second = second, f"{datetime.fromtimestamp(second, UTC):%Y%m%d_%H%M%S}"
            return QueryId(f"{self._second[1]}_{self._number:05}_{self._node}")

    def add(self, statement: str, asker: ClientInfo, limit_ms: int | None, execution: Execution) -> None:
        """Register an execution before it starts."""
        now, ticks = self._clock.now_ns(), self._clock.monotonic_ns()
        entry = RunningQuery(execution.query, statement, asker, now, ticks, limit_ms, execution)
        with self._lock:
            self._running[execution.query] = entry

    def remove(self, execution: Execution) -> RunningQuery:
        """Remove an execution after all its resources are released."""
        with self._lock:
            return self._running.pop(execution.query)

    def running(self) -> list[RunningQuery]:
        """Return the running queries, oldest first."""
        with self._lock:
            return list(self._running.values())
