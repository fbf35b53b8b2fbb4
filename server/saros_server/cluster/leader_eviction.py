"""A thread that moves the leaders of groups off this node while the node's log is slow.

    once a second, while the log is slow     ask the other nodes; transfer up to four groups to members with a fast log
    no other node has a fast log             this node keeps leading

A group commits with a majority of its members, so a slow member delays the group only if it is the leader.
`leader_balancing` brings the groups back when the log is fast again. Eviction has its own thread because the other
background tasks wait for the slow disk.
"""

from __future__ import annotations

import logging
import threading

from saros_cluster.multiraft.host import GroupHost
from saros_server.cluster.status import ClusterStatus

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS = 1.0
#: Maximum number of groups transferred at a time: a group accepts no proposals until its new leader takes over.
TRANSFERS_MAX = 4


class LeaderEviction:
    """The thread that evicts leaders while the log is slow. It runs from `start` to `stop`."""

    def __init__(self, host: GroupHost, status: ClusterStatus) -> None:
        self._host = host
        self._status = status
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saros-eviction", daemon=True)
        #: The number of transfers. It determines which group comes first, so that a group without a fast member does
        #: not block the others.
        self._handed_over = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current step."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_INTERVAL_SECONDS):
            try:
                self.step()
            except Exception:
                logger.exception("handing over the groups of a slow log failed")

    def step(self) -> None:
        """Transfer some of the groups that this node leads, if its log is slow and another node's log is not."""
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
