"""Sequence numbers of a client's writes: 1, 2, 3 ..., each used once.

A node remembers the newest `SEQUENCES_KEPT` numbers of a client. A write whose number would be further ahead of the
oldest unfinished one waits, so that the node's memory always reaches back to that one. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from saros_wire import protocol


class Event(Protocol):
    """Something that happens once: `threading.Event` for threads, `asyncio.Event` for tasks."""

    def is_set(self) -> bool:
        """Return whether it has happened."""
        ...

    def set(self) -> None:
        """Let it happen."""
        ...

    async def wait(self, timeout_s: float | None) -> bool:
        """Wait for it; return whether it has happened."""
        ...


class Sequences:
    """See the module."""

    def __init__(self, event: Callable[[], Event]) -> None:
        """`event`: makes one for a write that waits."""
        self._event = event
        self._lock = threading.Lock()
        self._next = 1
        #: Numbers of unfinished writes, oldest first.
        self._open: dict[int, None] = {}
        #: Set when a write is finished.
        self._waiting: list[Event] = []

    async def take(self) -> int:
        """Return the number of a write that begins, and lasts until `finish`."""
        while True:
            with self._lock:
                if not self._open or self._next - next(iter(self._open)) < protocol.SEQUENCES_KEPT:
                    number = self._next
                    self._next += 1
                    self._open[number] = None
                    return number
                finished = self._event()
                self._waiting.append(finished)
            await finished.wait(None)

    def finish(self, number: int) -> None:
        """The write is finished."""
        with self._lock:
            del self._open[number]
            waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()
