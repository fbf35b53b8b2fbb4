"""Limit the number of files that this process may open in addition to its open files."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def few_files(more: int) -> Iterator[None]:
    """Within the context, limit this process to `more` additional open files."""
    known = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    while taken[-1] <= highest:  # the system limits the highest descriptor, so use up the lower ones
        taken.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + more, known[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, known)
        for number in taken:
            os.close(number)
