"""The thread that works at changes of the cluster: often while there is one, now and then otherwise."""

from __future__ import annotations

import logging
import threading

from saros_cluster.reconfiguration.reconciler import Reconciler

logger = logging.getLogger(__name__)

_BUSY_SECONDS = 0.02
_IDLE_SECONDS = 0.25


class ReconfigurationThread:
    """See the module. Begins when it is made."""

    def __init__(self, worker: Reconciler) -> None:
        self._worker = worker
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saros-growing", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after what is at hand, which asks other nodes nothing more."""
        self._stopped.set()
        self._worker.stop()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_BUSY_SECONDS if self._worker.is_wanted else _IDLE_SECONDS):
            try:
                self._worker.step()
            except Exception:
                logger.exception("a step of a change failed")
