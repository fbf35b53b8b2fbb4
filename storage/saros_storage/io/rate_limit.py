"""A limit of bytes per second over any span of time; an idle period earns no credit for later. Pure."""

from __future__ import annotations


class RateLimit:
    """See the module. Belongs to one thread, or is under its owner's lock."""

    def __init__(self, bytes_per_second: int) -> None:
        """0: as many as go through."""
        self._rate = bytes_per_second
        #: When what went so far is paid for.
        self._paid_ns = 0

    def wait_s(self, now_ns: int, size: int) -> float:
        """How long to wait before so many bytes go at `now_ns`."""
        if not self._rate:
            return 0.0
        start_ns = max(now_ns, self._paid_ns)
        self._paid_ns = start_ns + size * 1_000_000_000 // self._rate
        return (start_ns - now_ns) / 1e9
