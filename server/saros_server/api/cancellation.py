"""A token that tells a call that its client no longer waits for the answer. Thread-safe."""

from __future__ import annotations

import threading
from collections.abc import Callable


class CancelToken:
    """Cancelled once, by the protocol: because its client went away, or asked for it."""

    __slots__ = ("_callbacks", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Called at the cancellation; None after it.
        self._callbacks: list[Callable[[], object]] | None = []

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._callbacks is None

    def on_cancel(self, callback: Callable[[], object]) -> bool:
        """Call `callback` at the cancellation, on its thread. False: it was cancelled before, and nothing is called."""
        with self._lock:
            if self._callbacks is None:
                return False
            self._callbacks.append(callback)
            return True

    def cancel(self) -> None:
        """Cancel the call. Idempotent; returns when all callbacks have returned."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            callback()
