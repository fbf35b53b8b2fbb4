"""A latency histogram with fixed buckets, from which percentiles are computed. Thread-safe."""

from __future__ import annotations

import threading
from bisect import bisect_left

import msgspec

#: Upper bounds of the buckets, each about three times the previous one.
BOUNDS_SECONDS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_NANOSECONDS = 1_000_000_000
_BOUNDS_NS = [int(bound * _NANOSECONDS) for bound in BOUNDS_SECONDS]


class LatencySnapshot(msgspec.Struct, frozen=True):
    """The state of a histogram. `counts` has one count per bucket, and a last count for durations above all bounds.

    `seconds` is the sum of all durations.
    """

    counts: tuple[int, ...]
    seconds: float


NOTHING = LatencySnapshot((0,) * (len(BOUNDS_SECONDS) + 1), 0.0)


class LatencyHistogram:
    """A histogram of durations. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = list(NOTHING.counts)
        self._sum_ns = 0

    def add(self, ns: int) -> None:
        """Add a duration."""
        place = bisect_left(_BOUNDS_NS, ns)
        with self._lock:
            self._counts[place] += 1
            self._sum_ns += ns

    def spread(self) -> LatencySnapshot:
        """Return a snapshot of all added durations."""
        with self._lock:
            return LatencySnapshot(tuple(self._counts), self._sum_ns / _NANOSECONDS)
