"""Background loading of kernels, so that calls do not wait for numba or its compiler.

    start --(list of the cache)--> all compiled ----------------------------> load --> end
                 |                                                              ^
                 +--> some missing: start `precompile`, if no process compiles  | as the list grows
                                    wait --------------------------------------+

Compiling all kernels takes half a minute of processor time. A separate process with the lowest priority compiles them;
each cache has at most one such process at a time. The compiling process can outlive this process, and other processes
load its kernels too. If the compiling process fails, this process does not start another one: callers with large inputs
then compile their kernels themselves.

A thread of this process loads the kernels. Loading takes half a second, mostly for importing numba. It begins after a
short delay, since a short-lived program needs no kernels.
"""

from __future__ import annotations

import atexit
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from saros_storage.kernels.cache import KernelCache

logger = logging.getLogger(__name__)

#: Seconds before numba is loaded, and between checks of the list of compiled kernels.
_DELAY_S, _LOOK_S = 0.3, 0.5
#: Give up after this many compiler processes that succeeded and still left kernels uncompiled: something must be
#: removing the compiled files.
_PROCESSES_MAX = 3


class Loadable(Protocol):
    """The interface of a kernel for the loader."""

    key: str

    @property
    def is_loaded(self) -> bool:
        """True if `compile` has nothing left to do."""
        ...

    def compile(self) -> object:
        """Load the kernel from the cache, or compile it."""
        ...


class KernelLoader:
    """Loads all kernels that `declared` returns. Any thread. A forked child starts from scratch."""

    def __init__(
        self,
        declared: Callable[[], Sequence[Loadable]],
        start_compiler: Callable[[], subprocess.Popen[bytes]] | None = None,
    ) -> None:
        """Create a loader.

        `start_compiler` starts the compiling process, or raises OSError. By default, the process runs `precompile`.
        """
        self._declared = declared
        self._start_compiler = start_compiler or _start_compiler
        self._reset()
        os.register_at_fork(after_in_child=self._forget)

    def _reset(self) -> None:
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        #: The thread that `start` created.
        self._thread: threading.Thread | None = None
        #: True while a thread loads.
        self._is_running = False
        #: Keys of the kernels that can be loaded, as of the last check.
        self._compiled: frozenset[str] = frozenset()
        self._compiler: subprocess.Popen[bytes] | None = None
        self._compilers = 0
        #: True after a failure: from then on, this process starts no compiler and loads nothing in the background.
        self._gave_up = False

    def _forget(self) -> None:
        """Reset the loader in a forked child, where none of its threads runs."""
        self._leave_compiler()
        self._reset()

    def start(self) -> None:
        """Load kernels on a new thread, unless another thread is loading them or the loader has given up.

        The compiler is started before this method returns, so that the warning about it does not appear in the middle
        of a prompt.
        """
        if self._gave_up or not self._begins():
            return
        atexit.unregister(self.stop)
        atexit.register(self.stop)  # before the interpreter shuts down
        arguments = (self._open(), self._stopping)
        self._thread = threading.Thread(target=self._run, args=arguments, name="saros-kernels", daemon=True)
        self._thread.start()

    def run(self, stopping: threading.Event) -> None:
        """Load kernels on the calling thread until all are loaded or `stopping` is set.

        A no-op while another thread loads kernels.
        """
        if self._begins():
            self._run(self._open(), stopping)

    def _begins(self) -> bool:
        """Reserve the loading for the calling thread; return False if another thread is already loading."""
        with self._lock:
            begins, self._is_running = not self._is_running, True
            return begins

    def _open(self) -> KernelCache | None:
        """Open the cache and check which kernels it has; return None on failure."""
        try:
            cache = KernelCache.open()
            self._ready(cache)
        except Exception:
            self._gave_up = True
            logger.exception("kernels could not be loaded in the background")
            return None
        return cache

    def _run(self, cache: KernelCache | None, stopping: threading.Event) -> None:
        try:
            stopping.wait(_DELAY_S)
            while cache is not None and not self._gave_up and not stopping.is_set() and self._pending():
                for kernel in self._ready(cache):
                    kernel.compile()
                    if stopping.is_set():
                        return
                if self._pending():
                    stopping.wait(_LOOK_S)
        except Exception:
            self._gave_up = True
            logger.exception("kernels could not be loaded in the background")
        finally:
            self._is_running = False

    def _pending(self) -> list[Loadable]:
        return [kernel for kernel in self._declared() if not kernel.is_loaded]

    def _ready(self, cache: KernelCache) -> list[Loadable]:
        """Return the kernels that can be loaded; if some are missing, make sure that they are being compiled."""
        pending, self._compiled = self._pending(), cache.compiled()
        ready = [kernel for kernel in pending if kernel.key in self._compiled]
        if len(ready) < len(pending):
            self._see_to_compiler(cache)
        return ready

    def is_cached(self, key: str) -> bool:
        """Return whether a kernel is compiled already and only needs to be loaded."""
        return key in self._compiled

    @property
    def is_compiling(self) -> bool:
        """True while a process started by this one compiles."""
        compiler = self._compiler
        return compiler is not None and compiler.poll() is None

    def stop(self) -> None:
        """Stop after the current kernel. A compiling process continues: other processes will need the kernels too."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._leave_compiler()

    def _leave_compiler(self) -> None:
        if self._compiler is not None and self._compiler.poll() is None:
            self._compiler.returncode = 0  # the process is left running on purpose: suppress Python's warning

    def _see_to_compiler(self, cache: KernelCache) -> None:
        if self.is_compiling:
            return
        if self._compiler is not None and (self._compiler.returncode != 0 or self._compilers == _PROCESSES_MAX):
            self._gave_up = True
            logger.warning("kernels could not be compiled in the background", extra={"folder": cache.folder})
            return
        try:
            lock = cache.lock(wait=False)
            if lock is None:
                return  # another process compiles
            os.close(lock)
            self._compiler = self._start_compiler()
        except OSError as error:
            self._gave_up = True
            logger.warning("kernels cannot be compiled in the background", extra={"reason": str(error)})
            return
        self._compilers += 1
        atexit.unregister(self._leave_compiler)
        atexit.register(self._leave_compiler)
        logger.warning(
            "compiling kernels in the background, once on this machine; until then large queries take longer"
        )


def _start_compiler() -> subprocess.Popen[bytes]:
    """Start `precompile` in a new session, where the terminal's Ctrl-C does not reach it. Raises OSError."""
    if not sys.executable:
        raise OSError("this program does not say which Python it runs")
    room = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    path = os.pathsep.join(filter(None, (room, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-c", "from saros_storage.kernels.precompile import main; main()"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
