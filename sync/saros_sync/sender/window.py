"""The sender's window, which limits how many bytes may be in flight and in how many chunks. Pure.

    one chunk at first  ── answered at once ──> one chunk's bytes more ... up to FLIGHT_BYTES_MAX
                        ── answered late ─────> half the bytes             ── no answer ──> one chunk

On a slow line, one chunk fills the line. If several chunks shared the line, none of them might arrive before the
connection breaks. On a fast line, the fixed cost of a call exceeds the cost of its bytes, so chunks become longer, and
a few of them are in flight at once.
"""

from __future__ import annotations

from saros_sync.transport import CHUNK_BYTES_MAX, FLIGHT_BYTES_MAX

#: The number of chunks in flight at which chunks become longer, and the maximum factor by which they grow.
_CHUNKS, _TIMES_MAX = 4, 4
_AT_ONCE_NS = 500_000_000


class Window:
    """The number and length of chunks in flight, which adapt to the receiver's answers."""

    def __init__(self, chunk_bytes: int, *, grows: bool = True) -> None:
        """Start with one chunk of `chunk_bytes`. If `grows`, chunks may become longer than that."""
        self._least = min(chunk_bytes, CHUNK_BYTES_MAX)
        self._longest = min(self._least * (_TIMES_MAX if grows else 1), CHUNK_BYTES_MAX)
        self._most = max(min(self._longest * _CHUNKS, FLIGHT_BYTES_MAX), self._least)
        self._flight = self._least

    @property
    def chunk_bytes(self) -> int:
        """The bytes of the next chunk."""
        return min(max(self._flight // _CHUNKS, self._least), self._longest)

    @property
    def size(self) -> int:
        """The number of chunks that may be in flight."""
        return self._flight // self.chunk_bytes

    def answered(self, after_ns: int) -> None:
        """Adapt to an answer that arrived `after_ns` after its chunk was sent."""
        if after_ns < _AT_ONCE_NS:
            self._flight = min(self._flight + self._least, self._most)
        else:
            self._flight = max(self._flight // 2, self._least)

    def failed(self) -> None:
        """Adapt to a request without an answer."""
        self._flight = self._least
