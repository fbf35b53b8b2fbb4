"""The bytes of a stream that may be sent before the client has taken those before. Thread-safe."""

from __future__ import annotations

import threading

from saros_wire.frames import WINDOW_BYTES


class CreditWindow:
    """One thread takes, others grant."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        #: Bytes that were sent and for which no credit has come.
        self._owed = 0
        self._is_open = True

    def take(self, count: int) -> None:
        """Wait until something may be sent, and count `count` bytes as sent; after `close`, do not wait."""
        with self._changed:
            self._changed.wait_for(lambda: self._owed < WINDOW_BYTES or not self._is_open)
            self._owed += count

    def grant(self, count: int) -> None:
        """Allow `count` bytes more."""
        with self._changed:
            self._owed -= count
            self._changed.notify()

    def close(self) -> None:
        """Let no thread wait any more."""
        with self._changed:
            self._is_open = False
            self._changed.notify()
