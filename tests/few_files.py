"""A limit on the files that this process may open in addition to its open ones."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def few_files(more: int) -> Iterator[None]:
    """Limit this process to `more` additional open files within the context."""
    known = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    while taken[-1] <= highest:  # the limit applies to descriptor numbers, and lower numbers may be free
        taken.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[-1] + 1 + more, known[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, known)
        for number in taken:
            os.close(number)
