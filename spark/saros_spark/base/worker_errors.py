"""Make Spark's Python workers report only the message of some errors, without a traceback.

Spark sends a worker's error to the user as text, and logs it once per attempt. Errors of this package and of the driver
need no traceback, since the message explains the error. All other errors keep their traceback. A worker exits after an
error, so changes to the environment of its process affect no later task.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from saros.errors import Error
from saros_spark.base.errors import SourceError
from saros_spark.base.worker_gc import in_worker

#: Spark's environment variable for workers; the corresponding session setting would also hide the tracebacks of the
#: user's functions.
_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


@contextmanager
def plain_errors() -> Iterator[None]:
    """In a worker, report only the message of an error in the block; in other processes, do nothing.

    This function can also be used as a decorator.
    """
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
    """Discard later output to standard error.

    When Spark has read enough rows for a LIMIT, it stops reading, and its worker prints an error.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
