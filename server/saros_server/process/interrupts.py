"""Handle Ctrl-C so that it interrupts no operation of the engine halfway.

    at once                  the operation is cancelled, if possible
    when the call ends       KeyboardInterrupt
    after three seconds      KeyboardInterrupt wherever the call is: some calls take long and cannot be cancelled

By default, Python may raise KeyboardInterrupt between any two bytecodes of the main thread. If that happened between
the acquisition of a lock and the `try` that releases it, the lock would never be released. If it happened during a
write, the state of the write-ahead log would be unknown.

Only Python's default handler is replaced, and only during a call to the engine. If the application has set a handler,
it remains in place. Python interrupts only the main thread. On other threads, a call costs only one additional
comparison.
"""

from __future__ import annotations

# The functions of `signal` look up an enum for each argument, which takes ten times as long as the call itself.
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


#: Id of the main thread. In a forked child, the main thread is the one that called fork.
_main_ident = threading.main_thread().ident or 0


def _find_main_thread() -> None:
    global _main_ident
    _main_ident = threading.get_ident()


os.register_at_fork(after_in_child=_find_main_thread)


class UninterruptibleSection:
    """A `with` block that Ctrl-C does not interrupt.

    Instead, Ctrl-C calls `cancel` on another thread, which ends the operation in the block.
    """

    __slots__ = ("_cancel", "_ending", "_is_main", "_over", "_overdue")

    def __init__(self, cancel: Callable[[], object] | None = None) -> None:
        self._cancel = cancel
        self._is_main = self._over = self._overdue = False
        #: A lock that guards `_over` and `_overdue`, and that is held while `cancel` runs. None until Ctrl-C is
        #: pressed.
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
            # `threading` is not used here, because the interrupted code may hold one of its locks.
            _thread.start_new_thread(self._end, (self._ending,))

    def _end(self, ending: _thread.LockType) -> None:
        with ending:
            if self._over:  # the main thread may already be in another call, during which Ctrl-C was not pressed
                return
            if self._cancel is not None:
                self._cancel()
        time.sleep(_PATIENCE_SECONDS)
        with ending:
            if not self._over:
                self._overdue = True
                signal.pthread_kill(_main_ident, signal.SIGINT)
