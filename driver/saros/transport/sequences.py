"""Sequence numbers of a client's writes: 1, 2, 3 ..., each used once. Thread-safe.

A node remembers the newest `SEQUENCES_KEPT` numbers of a client. A new write waits if its number would exceed the
number of the oldest unfinished write by `SEQUENCES_KEPT` or more, so that nodes never forget the number of an
unfinished write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from saros_wire import protocol


class Event(Protocol):
    """An event that is set once: a `threading.Event` for threads, an `asyncio.Event` for tasks."""

    def is_set(self) -> bool:
        """Return whether the event is set."""
        ...

    def set(self) -> None:
        """Set the event, and wake all waiters."""
        ...

    async def wait(self, timeout_s: float | None) -> bool:
        """Wait until the event is set, or until the timeout. Return whether the event is set."""
        ...


class Sequences:
    """The generator of sequence numbers, and the numbers of unfinished writes."""

    def __init__(self, event: Callable[[], Event]) -> None:
        """Create the generator. `event` returns a new event for a write that waits."""
        self._event = event
        self._lock = threading.Lock()
        self._next = 1
        #: Numbers of unfinished writes, oldest first.
        self._open: dict[int, None] = {}
        #: Events of waiting writes, to set when a write finishes.
        self._waiting: list[Event] = []

    async def take(self) -> int:
        """Return the number of a new write, after waiting if necessary. The write is unfinished until `finish`."""
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
        """Mark a write as finished, whether it succeeded or not."""
        with self._lock:
            del self._open[number]
            waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()
