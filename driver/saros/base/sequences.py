"""Numbers of a client's writes: 1, 2, 3 ... each given once.

A node remembers the newest `protocol.SEQUENCES_KEPT` numbers of a client. So that the memory always reaches back to the
oldest write that is not answered, a number that is further ahead of it is not given out: its writer waits. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from saros_wire.protocol import SEQUENCES_KEPT


class Sequences:
    """See the module."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = 1
        #: Numbers of writes that are not over, the oldest first.
        self._open: dict[int, None] = {}

    @contextmanager
    def next(self) -> Iterator[int]:
        """A number for a write that is over when the block is."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open or self._next - next(iter(self._open)) < SEQUENCES_KEPT)
            number = self._next
            self._next += 1
            self._open[number] = None
        try:
            yield number
        finally:
            with self._changed:
                del self._open[number]
                self._changed.notify_all()
