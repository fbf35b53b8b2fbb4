"""Errors in Spark's Python workers: the reason alone, without the traceback that leads to it.

Spark sends a worker's error to the user as text, and prints it in the log, once per attempt. An error that explains
itself needs no traceback; others keep theirs. A worker ends with its error, so settings of its process end with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from saros.errors import Error
from saros_spark.base.errors import SourceError
from saros_spark.base.worker_gc import in_worker

#: Spark's own switch for workers; its session setting would hide the tracebacks of the user's functions, too.
_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Report errors of the block by their message; also a decorator. Elsewhere than in a worker, change nothing."""
    try:
        yield
    except (SourceError, Error):
        if in_worker():
            os.environ[_HIDE_TRACEBACK] = "1"
        raise
    except GeneratorExit:
        if in_worker():
            _discard_stderr()
        raise


def _discard_stderr() -> None:
    """Discard the rest of standard error: Spark has read enough (LIMIT), and its worker would print a broken pipe."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
