"""Runs continuous queries when they are due, on a thread of its own, one after the other.

On a cluster the node that leads the meta group runs them. When the lead changes, a query may run twice for a moment;
what it writes the second time is what it wrote the first time. A moment for which a query failed by its own fault
(a series of another type, a privilege that is gone) counts as done, and SHOW CONTINUOUS QUERIES tells of it; one that
failed by the database's (no leader, a full disk, too little memory for all queries) is tried again.
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
    """See the module. `run` carries out a query for a moment; `in_charge` says whether this node is to."""

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
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopped.set()

    def join(self) -> None:
        """Wait until what runs has ended; after `stop`."""
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_INTERVAL_SECONDS):
            try:
                self.round()
            except Exception:
                logger.exception("continuous queries were put off")

    def round(self) -> None:
        """Run what is due."""
        queries = continuous_queries(self._store.schema)
        if not queries or not self._in_charge():
            return
        for query in queries:
            while not self._stopped.is_set() and self._run_once(query):
                continue

    def _run_once(self, query: ContinuousQuery) -> bool:
        """Run a query for the next moment that is due; whether there was one, and it is done."""
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
        """It is tried again; False."""
        logger.warning("a continuous query was put off", extra={"query": query.name, "why": why})
        return False
