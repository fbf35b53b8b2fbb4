"""Handle Ctrl-C while the main thread is in the engine, so that no operation is interrupted halfway.

    at once                  the operation is cancelled, if possible
    when the call ends       KeyboardInterrupt
    after three seconds      KeyboardInterrupt wherever the call is: some calls take long and cannot be cancelled

By default, Python raises KeyboardInterrupt between any two bytecodes of the main thread. If that happened between the
acquisition of a lock and the `try` that releases it, the lock would never be released; during a write, the log would be
left in an unknown state.

Only Python's default handler is replaced, for the duration of a call; a handler of the application stays. Threads other
than the main thread are never interrupted. For these threads, a call costs only one more comparison.
"""

from __future__ import annotations

# `signal` looks up an enum for each argument, which takes ten times as long as the call.
import _signal  # type: ignore[import-not-found]
import _thread
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType

#: How long a call that cannot be cancelled may continue.
_PATIENCE_SECONDS = 3.0


#: Id of the main thread; in a forked child, this is the thread that called fork.
_main_ident = threading.main_thread().ident or 0


def _find_main_thread() -> None:
    global _main_ident
    _main_ident = threading.get_ident()


os.register_at_fork(after_in_child=_find_main_thread)


class UninterruptibleSection:
    """A `with` block that Ctrl-C does not interrupt; `cancel`, called from another thread, ends the operation in it."""

    __slots__ = ("_cancel", "_ending", "_is_main", "_over", "_overdue")

    def __init__(self, cancel: Callable[[], object] | None = None) -> None:
        self._cancel = cancel
        self._is_main = self._over = self._overdue = False
        #: Guards `_over` and `_overdue`, and is held while `cancel` runs; None if Ctrl-C was not pressed.
        self._ending: _thread.LockType | None = None

    def __enter__(self) -> None:
        if threading.get_ident() != _main_ident:
            return
        if _signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            _signal.signal(signal.SIGINT, self._interrupted)
            self._is_main = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_main:
            return
        try:
            if self._ending is not None:
                with self._ending:
                    self._over = True
        finally:
            _signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._ending is not None:
            raise KeyboardInterrupt from None

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self._overdue:
            signal.default_int_handler(number, frame)
        if self._ending is None:
            self._ending = _thread.allocate_lock()
            # Does not use `threading`, whose locks the interrupted code may hold.
            _thread.start_new_thread(self._end, (self._ending,))

    def _end(self, ending: _thread.LockType) -> None:
        with ending:
            if self._over:  # the thread may be in another call by now, which was not interrupted
                return
            if self._cancel is not None:
                self._cancel()
        time.sleep(_PATIENCE_SECONDS)
        with ending:
            if not self._over:
                self._overdue = True
                signal.pthread_kill(_main_ident, signal.SIGINT)
