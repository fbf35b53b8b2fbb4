"""The threads of a `GroupHost`: one for turns, one for log writes, and one for applying entries.

They sleep while there is nothing to do.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from saros_cluster.multiraft.host import RETRY_SECONDS, GroupHost
from saros_storage.base.clock import Clock

logger = logging.getLogger(__name__)


class HostThreads:
    """The threads that run a host from `start` to `stop`."""

    def __init__(self, host: GroupHost, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._guarded, args=(loop,), name=f"saros-raft-{name}", daemon=True)
            for name, loop in (("turn", self._run_raft), ("log", self._sync), ("apply", self._apply))
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads after their current step, then fail all pending requests."""
        self._stopping = True
        for condition in (self._host.turning, self._host.syncing, self._host.applying):
            with condition:
                condition.notify_all()
        for thread in self._threads:
            thread.join()
        self._host.close()

    def _guarded(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except Exception:
            logger.critical("a thread of the groups ended", exc_info=True)
            raise

    def _run_raft(self) -> None:
        host = self._host
        while not self._stopping:
            with host.turning:
                while not host.has_events and not self._stopping:
                    left_ns = host.next_tick_ns() - self._clock.monotonic_ns()
                    if left_ns <= 0:
                        break
                    host.turning.wait(left_ns / 1e9)
            host.turn()

    def _sync(self) -> None:
        host = self._host
        while not self._stopping:
            with host.syncing:
                while not host.has_writes and not self._stopping:
                    host.syncing.wait()
            if not host.sync_some():
                with host.syncing:
                    host.syncing.wait_for(lambda: self._stopping, RETRY_SECONDS)

    def _apply(self) -> None:
        host = self._host
        while not self._stopping:
            with host.applying:
                while not host.has_entries and not self._stopping:
                    host.applying.wait()
            host.apply_some()
