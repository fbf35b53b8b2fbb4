"""The thread that drives changes of the cluster's topology."""

from __future__ import annotations

import logging
import threading

from saros_cluster.reconfiguration.reconciler import Reconciler

logger = logging.getLogger(__name__)

_BUSY_SECONDS = 0.02
_IDLE_SECONDS = 0.25


class ReconfigurationThread:
    """A thread that runs a step of the reconciler every 20 ms during a change, and otherwise every 250 ms.

    Runs until `stop`.
    """

    def __init__(self, worker: Reconciler) -> None:
        self._worker = worker
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saros-growing", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current step. This step sends no more requests to other nodes."""
        self._stopped.set()
        self._worker.stop()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_BUSY_SECONDS if self._worker.is_wanted else _IDLE_SECONDS):
            try:
                self._worker.step()
            except Exception:
                logger.exception("a step of a change failed")
