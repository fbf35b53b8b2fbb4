"""The interface between the scheduler and what it runs: driver ids, the `Driver` protocol, futures.

The scheduler knows a driver only as something that runs for a quantum and then says whether it is finished, runnable,
or blocked on a future. Pure: everything here is plain data or a protocol.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import NewType, Protocol

QueryId = NewType("QueryId", str)

#: What a driver waits for: resolved with None when it may go on. Any thread may resolve it.
Blocked = Future[None]


@dataclass(frozen=True, slots=True, order=True)
class DriverId:
    """Which driver of which fragment instance of which query."""

    query: QueryId
    fragment: int
    instance: int
    driver: int

    def __str__(self) -> str:
        return f"{self.query}.{self.fragment}.{self.instance}.{self.driver}"


class Driver(Protocol):
    """One pipeline. `process_for` and `close` are never called by two threads at once."""

    @property
    def id(self) -> DriverId:
        """Its name."""
        ...

    def process_for(self, quantum_ns: int) -> Blocked | None:
        """Run for about `quantum_ns`, yielding between blocks. None: finished or runnable; else blocked on that future.

        An exception ends the whole query: it becomes the abort's cause.
        """
        ...

    def is_finished(self) -> bool:
        """Whether all is done."""
        ...

    def close(self, cause: BaseException | None) -> None:
        """Release all that the driver holds; `cause` is set when the query was aborted. Called exactly once."""
        ...


class QueryListener(Protocol):
    """Told once when all tasks of a query are over; from a scheduler thread, so it must be quick."""

    def query_finished(self, query: QueryId) -> None:
        """Every driver finished and is closed."""
        ...

    def query_aborted(self, query: QueryId, cause: BaseException) -> None:
        """The query was aborted with its first cause; every driver is closed."""
        ...
