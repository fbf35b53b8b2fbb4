"""Counts the bytes of files that this node expects and receives from other nodes, and limits their rate.

    paced(ask)     wraps `ask`: takes the expected bytes from listings; counts each piece, and delays it if necessary
    begin(change)  resets the counts, for SHOW CLUSTER CHANGE

The throttle is used for slots that move, and for snapshots of groups that the node joins. Thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from saros_cluster.data.snapshots import LIST, PULL
from saros_cluster.placement.ring import NodeId
from saros_storage.base.clock import Clock
from saros_storage.checkpoint.checkpoint import decode_capture
from saros_storage.io.rate_limit import RateLimit

#: Calls a node: (node, name, request) -> answer.
AskNode = Callable[[NodeId, str, bytes], bytes]


class ReceiveCounters(msgspec.Struct, frozen=True):
    """The bytes received in one change of the cluster. `seconds` is the time in which transfers were in progress."""

    change: int = 0
    expected_bytes: int = 0
    bytes: int = 0
    seconds: float = 0.0


class ReceiveThrottle:
    """Counts the bytes of files that this node receives, and limits their rate."""

    def __init__(self, bytes_per_second: int, clock: Clock) -> None:
        """`bytes_per_second` is the limit, or 0 for no limit."""
        self._limit = RateLimit(bytes_per_second)
        self._clock = clock
        self._lock = threading.Lock()
        self._received = ReceiveCounters()
        #: The number of pieces in transfer, and the time up to which the seconds of transfer are counted.
        self._active, self._since_ns = 0, 0

    def set_limit(self, bytes_per_second: int) -> None:
        """Change the limit; 0 means no limit."""
        with self._lock:
            self._limit = RateLimit(bytes_per_second)

    def begin(self, change: int) -> None:
        """Count from now on for the given change of the cluster, starting from 0 unless it is the current change."""
        with self._lock:
            if self._received.change != change:
                self._received = ReceiveCounters(change)

    def received(self) -> ReceiveCounters:
        """Return the counters of the current change."""
        return self._received

    def paced(self, ask: AskNode) -> AskNode:
        """Return a function that calls `ask`, counts the bytes that it fetches, and limits their rate."""

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
