"""Warm-up of a server: a thread loads and compiles in advance everything that the first statements need.

It loads the parser's tables, Arrow's functions, and the kernels with numba. Kernels that are not compiled yet are
compiled by another process, and the thread waits for this process. An embedded database does not warm up, since its
process may not need all of it.

The loaded objects live as long as the process, so they are excluded from Python's garbage collection (`gc.freeze`).
Otherwise, the collector would visit these 150,000 objects each time a quarter of that number of new objects has been
created. Each time, it would stop all threads for a tenth of a second.
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

#: With this priority, the thread gets a tenth of the processor time that a competing thread of normal priority gets.
_GENTLE_NICE = 10


class WarmUp:
    """The thread that warms up. `stop` waits for the current step, which takes a fraction of a second."""

    def __init__(self, *, gently: bool = False) -> None:
        """Prepare the thread, which has a low priority if `gently` is true.

        Only a process without clients should lower it: the thread may hold the GIL while it waits for a processor.
        """
        self._gently = gently
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self.run, name="saros-warm-up", daemon=True)

    def start(self) -> None:
        """Start the thread, unless it was started before."""
        if self._thread.ident is None:
            self._thread.start()

    @property
    def is_under_way(self) -> bool:
        """True if the warm-up is in progress."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop the warm-up, or keep it from starting."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def run(self) -> None:
        """Run the steps until `stop` is called."""
        if self._gently:
            lower_priority()
        started = time.monotonic()
        try:
            for step in _steps(self._stopping):
                if self._stopping.is_set():
                    return
                step()
        except Exception:
            # The first statement that needs the step that failed reports the same problem.
            logger.exception("warming up failed")
            return
        logger.debug("warm", extra={"seconds": round(time.monotonic() - started, 3)})


def lower_priority() -> None:
    """Lower the priority of the calling thread permanently.

    Does nothing except on Linux, where each thread has its own priority.
    """
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
