"""A limit on bytes per second over any span of time; an idle period does not allow a higher rate later. Pure."""

from __future__ import annotations


class RateLimit:
    """A limit on bytes per second. It belongs to one thread, or its owner guards it with a lock."""

    def __init__(self, bytes_per_second: int) -> None:
        """Create a limit; 0 means unlimited."""
        self._rate = bytes_per_second
        #: The time until which previous transfers use up the rate.
        self._paid_ns = 0

    def wait_s(self, now_ns: int, size: int) -> float:
        """Account for `size` bytes at `now_ns`; return the seconds to wait before transferring them."""
        if not self._rate:
            return 0.0
        start_ns = max(now_ns, self._paid_ns)
        self._paid_ns = start_ns + size * 1_000_000_000 // self._rate
        return (start_ns - now_ns) / 1e9
