"""Flow control of a stream: it limits the number of bytes that were sent and that the client has not confirmed yet.

Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from saros_wire.frames import WINDOW_BYTES


class CreditWindow:
    """The window of one stream. One thread takes credit, others grant it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        #: The number of bytes that were sent but for which no credit has arrived yet.
        self._owed = 0
        self._is_open = True

    def take(self, count: int, before_wait: Callable[[], None]) -> None:
        """Wait until the window has room, and then count `count` bytes as sent. After `close`, do not wait."""
        if self._is_full():
            before_wait()
        with self._changed:
            self._changed.wait_for(lambda: not self._is_full())
            self._owed += count

    def _is_full(self) -> bool:
        return self._owed >= WINDOW_BYTES and self._is_open

    def grant(self, count: int) -> None:
        """Allow `count` more bytes."""
        with self._changed:
            self._owed -= count
            self._changed.notify()

    def close(self) -> None:
        """Stop waiting for credit."""
        with self._changed:
            self._is_open = False
            self._changed.notify()
