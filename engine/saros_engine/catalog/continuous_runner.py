"""Run the continuous queries that are due. The queries run one after the other on a dedicated thread.

In a cluster, the leader of the meta group runs them. When the leader changes, a query may run twice for the same
moment. The second run writes the same points as the first.

If a run fails because of the query (a series has another type, a privilege was revoked), its moment counts as done, and
SHOW CONTINUOUS QUERIES shows the error. If a run fails because of the database (no leader, a full disk, too little
memory for all queries), it is retried.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from saros_engine.base.database import Database
from saros_engine.base.errors import EngineError, MemoryPoolExhausted
from saros_engine.catalog.continuous_queries import ContinuousQuery, continuous_queries, last_run, ran
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.write_request import UNNUMBERED

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS = 1.0
_NANOSECONDS = 1_000_000_000


class ContinuousRunner:
    """A thread that runs the due continuous queries of a database.

    `run` runs a query for one moment; `in_charge` returns whether this node is responsible for running queries.
    """

    def __init__(
        self,
        store: Database,
        clock: Clock,
        run: Callable[[ContinuousQuery, int], None],
        in_charge: Callable[[], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._run_query = run
        self._in_charge = in_charge
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saros-continuous", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Start no further runs."""
        self._stopped.set()

    def join(self) -> None:
        """Wait for the end of the current run and of the thread. Call `stop` first."""
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_INTERVAL_SECONDS):
            try:
                self.round()
            except Exception:
                logger.exception("continuous queries failed; retrying")

    def round(self) -> None:
        """Run all due queries, if this node is in charge."""
        queries = continuous_queries(self._store.schema)
        if not queries or not self._in_charge():
            return
        for query in queries:
            while not self._stopped.is_set() and self._run_once(query):
                continue

    def _run_once(self, query: ContinuousQuery) -> bool:
        """Run a query for its next due moment; return True if there was such a moment and it now counts as done."""
        now = self._clock.now_ns() * self._store.options.time_unit.value // _NANOSECONDS
        moment = query.due(now, last_run(self._store.schema, query.name)[0])
        if moment is None:
            return False
        problem = None
        try:
            self._run_query(query, moment)
        except MemoryPoolExhausted as error:
            return self._put_off(query, error.message)
        except (UserMistake, EngineError) as error:
            problem = error.message
            logger.warning("a continuous query failed", extra={"query": query.name, "why": problem})
        except StorageError as error:
            return self._put_off(query, error.message)
        self._store.change_schema([ran(query.name, moment, problem)], request=UNNUMBERED)
        return True

    def _put_off(self, query: ContinuousQuery, why: str) -> bool:
        """Log that a run has failed and will be retried in the next round; return False."""
        logger.warning("a continuous query failed; retrying", extra={"query": query.name, "why": why})
        return False
