"""How many chunks a sender lets be on their way at a time. Pure.

    1 at first  ── answered at once ──> one more ... up to FLIGHT_BYTES_MAX
                ── answered late ─────> half as many          ── no answer ──> 1

A slow line is full with one chunk; of several that share it none may arrive before it breaks.
"""

from __future__ import annotations

from saros_sync.transport import FLIGHT_BYTES_MAX

_CHUNKS_MAX = 8
_AT_ONCE_NS = 500_000_000


class Window:
    """See the module."""

    def __init__(self, chunk_bytes: int) -> None:
        self._most = max(min(FLIGHT_BYTES_MAX // chunk_bytes, _CHUNKS_MAX), 1)
        self.size = 1

    def answered(self, after_ns: int) -> None:
        """A chunk was answered so long after it was sent."""
        self.size = min(self.size + 1, self._most) if after_ns < _AT_ONCE_NS else max(self.size // 2, 1)

    def failed(self) -> None:
        """There was no answer."""
        self.size = 1
