"""Processes that Spark keeps for Python: what they need not do again for each task.

Spark's daemon collects cycles after each task and each step of planning, in the process that worked. That looks at all
that was ever imported there: 40 ms, as much as reading two million values took. So what is alive when the first work of
ours in a process has ended is taken out of collections for good; what comes later is collected as before. And messages
of some megabytes come and go all the time: what was freed of them stays with the process
(`saros_storage.base.allocator`).

Elsewhere, as in the process that the user runs, nothing happens. Any thread.
"""

from __future__ import annotations

import gc
import sys
from functools import lru_cache

from saros_storage.base.allocator import keep_freed_memory

_DAEMON = "pyspark.daemon"


def collect_garbage() -> None:
    """Collect and freeze garbage after a piece of work; cheap but for the first time."""
    if in_worker():
        _collect_and_freeze()


@lru_cache(1)
def _collect_and_freeze() -> None:
    gc.collect()
    gc.freeze()
    keep_freed_memory()


@lru_cache(1)
def in_worker() -> bool:
    """Return whether the process was forked by Spark's daemon."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == _DAEMON
