"""How much a sender lets be on its way at a time, in how many chunks. Pure.

    a chunk at first  ── answered at once ──> a chunk's bytes more ... up to FLIGHT_BYTES_MAX
                      ── answered late ─────> half as many             ── no answer ──> a chunk

A slow line is full with one chunk; of several that share it none may arrive before it breaks. On a fast one each call
costs more than its bytes: there the bytes go in longer chunks, of which a few are on their way.
"""

from __future__ import annotations

from saros_sync.transport import CHUNK_BYTES_MAX, FLIGHT_BYTES_MAX

#: So many chunks are under way before they get longer; and so many times their bytes they have at most.
_CHUNKS, _TIMES_MAX = 4, 4
_AT_ONCE_NS = 500_000_000


class Window:
    """See the module."""

    def __init__(self, chunk_bytes: int, *, grows: bool = True) -> None:
        """`grows`: chunks may get longer than `chunk_bytes`."""
        self._least = min(chunk_bytes, CHUNK_BYTES_MAX)
        self._longest = min(self._least * (_TIMES_MAX if grows else 1), CHUNK_BYTES_MAX)
        self._most = max(min(self._longest * _CHUNKS, FLIGHT_BYTES_MAX), self._least)
        self._flight = self._least

    @property
    def chunk_bytes(self) -> int:
        """Bytes of the next chunk."""
        return min(max(self._flight // _CHUNKS, self._least), self._longest)

    @property
    def size(self) -> int:
        """How many chunks may be under way."""
        return self._flight // self.chunk_bytes

    def answered(self, after_ns: int) -> None:
        """A chunk was answered so long after it was sent."""
        if after_ns < _AT_ONCE_NS:
            self._flight = min(self._flight + self._least, self._most)
        else:
            self._flight = max(self._flight // 2, self._least)

    def failed(self) -> None:
        """There was no answer."""
        self._flight = self._least
