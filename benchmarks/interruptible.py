"""A campaign's main function as a process: Ctrl-C ends it with one line and exit code 130, whatever threads it has.

Processes that it has started leave Ctrl-C to it, and end with it.
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
    """Ends the process with what `main` answers; threads of stores that a violation left open do not keep it."""
    try:
        code = main() or 0
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = 130
    except SystemExit as end:  # of the parser of arguments
        code = end.code if isinstance(end.code, int) else 1
    for process in multiprocessing.active_children():
        process.terminate()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """What is started meanwhile is not interrupted by Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
