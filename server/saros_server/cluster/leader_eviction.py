"""Moves leadership off this node while its log is slow, on a thread of its own.

    once a second, while the log is slow     ask the other nodes; hand up to four groups to members with a fast log
    no other node has a fast log             this node goes on leading

A group commits with a majority, so a slow member delays it only as its leader. The groups come back when the log is
fast again (`leader_balancing`). The other background tasks wait for the disk, and would come too late.
"""

from __future__ import annotations

import logging
import threading

from saros_cluster.multiraft.host import GroupHost
from saros_server.cluster.status import ClusterStatus

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS = 1.0
#: Groups handed over at a time: each takes no proposals until its new leader has begun.
TRANSFERS_MAX = 4


class LeaderEviction:
    """See the module. Runs from `start` to `stop`."""

    def __init__(self, host: GroupHost, status: ClusterStatus) -> None:
        self._host = host
        self._status = status
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saros-eviction", daemon=True)
        #: Groups that were handed over, by turns, so that one without a fast member does not delay the others.
        self._handed_over = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the current step."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_INTERVAL_SECONDS):
            try:
                self.step()
            except Exception:
                logger.exception("handing over the groups of a slow log failed")

    def step(self) -> None:
        """Hand over some of the groups that are led here, if the log is slow and another node's is not."""
        if not self._host.log_health.slow:
            return
        led = sorted(group for group, status in self._host.statuses().items() if status.leads)
        fast = self._status.find_fast_nodes() if led else set()
        if not fast:
            return
        first = self._handed_over % len(led)
        for group in (led[first:] + led[:first])[:TRANSFERS_MAX]:
            self._host.transfer_among(group, fast)
            self._handed_over += 1
