"""Run a campaign's main function so that Ctrl-C ends the process with one line of output and exit code 130.

The process ends even if other threads are still running. Child processes ignore Ctrl-C, and end with their parent.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn


def run(main: Callable[[], int | None]) -> NoReturn:
    """Exit with the result of `main`, without waiting for threads of stores that a violation left open."""
    try:
        code = main() or 0
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = 130
    except SystemExit as end:  # raised by the argument parser
        code = end.code if isinstance(end.code, int) else 1
    for process in multiprocessing.active_children():
        process.terminate()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Protect processes that are started within this context from Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
