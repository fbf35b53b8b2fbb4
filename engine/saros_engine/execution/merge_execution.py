"""Execute MERGE. Like a query, a merge may run long: SHOW QUERIES lists it, and KILL QUERY or its timeout ends it."""

from __future__ import annotations

from collections.abc import Sequence

from saros_engine.base.database import Database
from saros_engine.base.errors import QueryKilled
from saros_scheduler.driver_scheduler import QueryTimedOut
from saros_scheduler.task import QueryId
from saros_storage.base.clock import Clock


class MergeExecution:
    """The execution of one MERGE. `deadline_ns` is None if the merge has no timeout."""

    def __init__(self, query: QueryId, store: Database, clock: Clock, deadline_ns: int | None) -> None:
        self.query = query
        self._store = store
        self._clock = clock
        self._deadline_ns = deadline_ns
        self._began_ns = clock.monotonic_ns()
        #: The error that ended the merge, if one did.
        self._cause: Exception | None = None

    def run(self, databases: Sequence[str] | None, *, full: bool) -> None:
        """Merge the databases, and return when the merge is done. Raises QueryKilled, QueryTimedOut, StorageError."""
        self._store.merge(databases, full=full, stopped=self._stopped)
        if self._cause is not None:
            raise self._cause

    def _stopped(self) -> bool:
        late = self._deadline_ns is not None and self._clock.monotonic_ns() > self._deadline_ns
        if late and self._cause is None:
            self._cause = QueryTimedOut(self.query)
        return self._cause is not None

    def cancel(self, reason: str) -> bool:
        """End the merge; its client gets QueryKilled.

        Return False if the merge had already been cancelled or timed out.
        """
        first = self._cause is None
        if first:
            self._cause = QueryKilled(reason)
        return first

    def waited_ns(self) -> int:
        """Return the time since the start, because the client has waited all this time."""
        return self._clock.monotonic_ns() - self._began_ns

    def memory_bytes(self) -> int:
        """Return 0, because a merge uses the store's memory."""
        return 0
