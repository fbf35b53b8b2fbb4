"""Incoming files from other nodes: bytes expected and received, at a limited rate.

    paced(ask)     asks as `ask` does; a listing tells the bytes to expect; each piece is counted, and may have to wait
    begin(change)  resets the counts, for SHOW CLUSTER CHANGE

For slots that move, and for snapshots of groups that the node joins. Thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from saros_cluster.data.snapshots import LIST, PULL
from saros_cluster.placement.ring import NodeId
from saros_storage.base.clock import Clock
from saros_storage.checkpoint.checkpoint import decode_capture
from saros_storage.io.rate_limit import RateLimit

#: Asks a node: (node, name, request) -> answer.
AskNode = Callable[[NodeId, str, bytes], bytes]


@dataclass(frozen=True, slots=True)
class ReceiveCounters:
    """In one change of the cluster; `seconds` are those in which something came, or was waited for."""

    change: int = 0
    expected_bytes: int = 0
    bytes: int = 0
    seconds: float = 0.0


class ReceiveThrottle:
    """See the module."""

    def __init__(self, bytes_per_second: int, clock: Clock) -> None:
        """0: as fast as it goes."""
        self._limit = RateLimit(bytes_per_second)
        self._clock = clock
        self._lock = threading.Lock()
        self._received = ReceiveCounters()
        #: How many pieces are on their way, and since when there are any.
        self._active, self._since_ns = 0, 0

    def begin(self, change: int) -> None:
        """What comes from now on comes because of this change."""
        with self._lock:
            if self._received.change != change:
                self._received = ReceiveCounters(change)

    def received(self) -> ReceiveCounters:
        """Return what this node has received until now."""
        return self._received

    def paced(self, ask: AskNode) -> AskNode:
        """See the module."""

        def throttled_ask(node: NodeId, name: str, request: bytes) -> bytes:
            if name == PULL:
                return self._piece(lambda: ask(node, name, request))
            answer = ask(node, name, request)
            if name == LIST:
                self._add(expected=sum(file.size for file in decode_capture(answer).files()))
            return answer

        return throttled_ask

    def _piece(self, ask: Callable[[], bytes]) -> bytes:
        with self._lock:
            self._active += 1
            if self._active == 1:
                self._since_ns = self._clock.monotonic_ns()
        came = 0
        try:
            answer = ask()
            self._wait(len(answer))
            came = len(answer)
            return answer
        finally:
            with self._lock:
                self._active -= 1
                now_ns = self._clock.monotonic_ns()
                seconds, self._since_ns = (now_ns - self._since_ns) / 1e9, now_ns
            self._add(came=came, seconds=seconds)

    def _wait(self, size: int) -> None:
        with self._lock:
            seconds = self._limit.wait_s(self._clock.monotonic_ns(), size)
        if seconds:
            time.sleep(seconds)

    def _add(self, *, expected: int = 0, came: int = 0, seconds: float = 0.0) -> None:
        with self._lock:
            known = self._received
            self._received = ReceiveCounters(
                known.change, known.expected_bytes + expected, known.bytes + came, known.seconds + seconds
            )
