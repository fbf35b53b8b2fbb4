"""MERGE: a statement that waits, that SHOW QUERIES shows, and that KILL QUERY and its time-out end."""

from __future__ import annotations

from collections.abc import Sequence

from saros_engine.base.database import Database
from saros_engine.base.errors import QueryKilled
from saros_scheduler.driver_scheduler import QueryTimedOut
from saros_scheduler.task import QueryId
from saros_storage.base.clock import Clock


class MergeExecution:
    """One MERGE. `deadline_ns`: None if it may take as long as it likes."""

    def __init__(self, query: QueryId, store: Database, clock: Clock, deadline_ns: int | None) -> None:
        self.query = query
        self._store = store
        self._clock = clock
        self._deadline_ns = deadline_ns
        self._began_ns = clock.monotonic_ns()
        #: Why it was ended.
        self._cause: Exception | None = None

    def run(self, databases: Sequence[str] | None, *, full: bool) -> None:
        """Merge, and wait for it. Raises QueryKilled, QueryTimedOut, StorageError."""
        self._store.merge(databases, full=full, stopped=self._stopped)
        if self._cause is not None:
            raise self._cause

    def _stopped(self) -> bool:
        late = self._deadline_ns is not None and self._clock.monotonic_ns() > self._deadline_ns
        if late and self._cause is None:
            self._cause = QueryTimedOut(self.query)
        return self._cause is not None

    def cancel(self, reason: str) -> bool:
        """End it; its client gets QueryKilled."""
        first = self._cause is None
        if first:
            self._cause = QueryKilled(reason)
        return first

    def waited_ns(self) -> int:
        """Since the start: the client waits for nothing else."""
        return self._clock.monotonic_ns() - self._began_ns

    def memory_bytes(self) -> int:
        """None: what it reads is the store's."""
        return 0
