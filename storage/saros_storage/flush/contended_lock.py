"""A lock whose holder can see whether other threads wait for the lock."""

from __future__ import annotations

import threading


class ContendedLock:
    """A mutex with a count of the threads that wait for it. Not reentrant."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        #: Number of threads that wait for the lock or are about to acquire it.
        self._waiting = 0

    @property
    def is_contended(self) -> bool:
        """True if a thread waits for the lock."""
        return self._waiting > 0

    def __enter__(self) -> None:
        self._count(1)
        try:
            self._lock.acquire()
        finally:
            self._count(-1)

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _count(self, change: int) -> None:
        with self._counting:
            self._waiting += change
