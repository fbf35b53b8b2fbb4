"""A token that tells a call that its client no longer waits for the answer. Thread-safe."""

from __future__ import annotations

import threading
from collections.abc import Callable


class CancelToken:
    """A cancellation that a protocol can trigger once, when the client disconnects or asks to cancel the call."""

    __slots__ = ("_callbacks", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Called when the token is cancelled; None afterwards.
        self._callbacks: list[Callable[[], object]] | None = []

    @property
    def cancelled(self) -> bool:
        """True if `cancel` was called."""
        return self._callbacks is None

    def on_cancel(self, callback: Callable[[], object]) -> bool:
        """Register `callback`, which runs on the thread that cancels.

        If the token is already cancelled, return False and do not call `callback`.
        """
        with self._lock:
            if self._callbacks is None:
                return False
            self._callbacks.append(callback)
            return True

    def cancel(self) -> None:
        """Cancel the call, and return when all callbacks have returned. Idempotent."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            callback()
