"""The thread that fsyncs a log at a fixed interval, for durability `interval`."""

from __future__ import annotations

import threading
from collections.abc import Callable

from saros_storage.base.errors import StorageError


class LogSyncer:
    """A thread that calls `sync_due` until `stop` is called or the log fails.

    The thread does not report a failure, since writers get the failure from the log.
    """

    def __init__(self, sync_due: Callable[[], None], interval_ms: int) -> None:
        self._sync_due = sync_due
        self._seconds = interval_ms / 1_000
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saros-log-sync", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                self._sync_due()
            except StorageError:
                return

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join()
