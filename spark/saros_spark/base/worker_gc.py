"""Cheaper garbage collection in Spark's long-lived Python workers.

In each worker, Spark's daemon collects garbage after each task and each planning step. A collection visits the objects
of all imported modules, which takes 40 ms; in this time, a task reads two million values. Therefore, the objects that
are alive after Saros's first task in a process are frozen, that is, excluded from later collections. Since messages of
some megabytes are allocated and freed all the time, the process also keeps freed memory
(`saros_storage.base.allocator`).

In other processes, such as that of the user, this module does nothing. Any thread.
"""

from __future__ import annotations

import gc
import sys
from functools import lru_cache

from saros_storage.base.allocator import keep_freed_memory

_DAEMON = "pyspark.daemon"


def collect_garbage() -> None:
    """After the first task of a worker, collect garbage and freeze the living objects; later calls do nothing."""
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
