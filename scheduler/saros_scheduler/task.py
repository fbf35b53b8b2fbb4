"""The interface between the scheduler and the drivers that it runs: driver ids, the `Driver` protocol, futures.

From the scheduler's point of view, a driver runs for a quantum and is then finished, runnable, or blocked on a future.
Pure: everything here is plain data or a protocol.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import NewType, Protocol

import msgspec

QueryId = NewType("QueryId", str)

#: The future for which a blocked driver waits. Any thread may resolve it with None once the driver can continue.
Blocked = Future[None]


class DriverId(msgspec.Struct, frozen=True, order=True):
    """The identity of a driver: its query, its fragment, the fragment's instance, and its number in that instance."""

    query: QueryId
    fragment: int
    instance: int
    driver: int

    def __str__(self) -> str:
        return f"{self.query}.{self.fragment}.{self.instance}.{self.driver}"


class Driver(Protocol):
    """One pipeline of a query. `process_for` and `close` are never called by two threads at once."""

    @property
    def id(self) -> DriverId:
        """The driver's id."""
        ...

    def process_for(self, quantum_ns: int) -> Blocked | None:
        """Run for about `quantum_ns`, checking the time between blocks of rows.

        Return the future on which the driver is blocked, or None if the driver is finished or runnable. An exception
        ends the whole query, and becomes the cause of the abort.
        """
        ...

    def is_finished(self) -> bool:
        """Return whether the driver has finished its work."""
        ...

    def close(self, cause: BaseException | None) -> None:
        """Release the driver's resources. Called exactly once. `cause` is set if the query was aborted."""
        ...


class QueryListener(Protocol):
    """An object that is notified once, when all drivers of a query are closed.

    The thread that closes the last driver calls it: a worker, or a thread that submits or aborts. It must be quick.
    """

    def query_finished(self, query: QueryId) -> None:
        """Handle the end of a query whose drivers have all finished and are closed."""
        ...

    def query_aborted(self, query: QueryId, cause: BaseException) -> None:
        """Handle the end of an aborted query: `cause` is its first cause, and all drivers are closed."""
        ...
