"""What a server's first statements would wait for, done beforehand: a thread that loads, compiles, and then ends.

The parser's tables, Arrow's functions, the kernels (numba comes with them; where they are not compiled yet, another
process does that, and this thread waits). An embedded database does none of it: its process may need none.

All that is loaded then stays for good, and Python's collector of cycles is told so. Else it looks at these 150,000
objects whenever a quarter as many have come: nothing else runs for a tenth of a second.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from saros_grammar.parser import warm
from saros_storage.kernels.jit import load_kernels
from saros_storage.kernels.precompile import all_kernels

logger = logging.getLogger(__name__)

#: A tenth of what a thread of usual priority gets beside it.
_GENTLE_NICE = 10


class WarmUp:
    """See the module. `start`, then `stop`, which waits for the step at hand (a fraction of a second)."""

    def __init__(self, *, gently: bool = False) -> None:
        """`gently`: at low priority; only for a process that serves nobody, since the thread holds the interpreter."""
        self._gently = gently
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self.run, name="saros-warm-up", daemon=True)

    def start(self) -> None:
        """Begin, if it has not begun."""
        if self._thread.ident is None:
            self._thread.start()

    @property
    def is_under_way(self) -> bool:
        """Whether it has begun, and is not over."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End it, also if it has not begun."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def run(self) -> None:
        """All steps, or those before `stop`."""
        if self._gently:
            lower_priority()
        started = time.monotonic()
        try:
            for step in _steps(self._stopping):
                if self._stopping.is_set():
                    return
                step()
        except Exception:
            # Whoever needs it meets the same problem, and is told.
            logger.exception("warming up failed")
            return
        logger.debug("warm", extra={"seconds": round(time.monotonic() - started, 3)})


def lower_priority() -> None:
    """Let the calling thread leave the processor to others, for good. Only on Linux, where threads have a priority."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _GENTLE_NICE)


def _steps(stopping: threading.Event) -> Iterator[Callable[[], object]]:
    yield warm
    yield lambda: importlib.import_module("pyarrow.compute")
    yield all_kernels
    yield lambda: load_kernels(stopping)
    yield gc.collect
    yield gc.freeze
