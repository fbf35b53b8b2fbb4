"""A query's memory account. Thread-safe: the drivers of a query share it."""

from __future__ import annotations

import threading

from saros_engine.errors import MemoryExceeded


class QueryMemory:
    """Counts what a query's operators and buffers keep. Implements `operators.operator.MemoryAccount`."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._reserved = 0
        self._peak = 0

    @property
    def bytes_max(self) -> int:
        """See `MemoryAccount.bytes_max`."""
        return self._bytes_max

    @property
    def reserved(self) -> int:
        """Bytes reserved now."""
        return self._reserved

    @property
    def peak(self) -> int:
        """The most that was reserved at once."""
        return self._peak

    def reserve(self, count: int) -> None:
        """See `MemoryAccount.reserve`."""
        with self._lock:
            wanted = self._reserved + count
            if wanted > self._bytes_max:
                raise MemoryExceeded(
                    f"the query needs {wanted} bytes of memory and may have {self._bytes_max}: narrow it, or raise"
                    " query_memory_bytes"
                )
            self._reserved = wanted
            self._peak = max(self._peak, wanted)

    def release(self, count: int) -> None:
        """See `MemoryAccount.release`."""
        with self._lock:
            assert count <= self._reserved
            self._reserved -= count
