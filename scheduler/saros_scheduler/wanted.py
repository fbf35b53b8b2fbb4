"""Whether what this thread computes is still wanted: for drivers with steps that take long.

Between steps the scheduler looks itself. A loop that may go on for more than some 200 ms calls `require_wanted` in it;
when the query was aborted meanwhile (its time is over, somebody cancelled it), that breaks the step off. The query ends
with the cause that it had before. Outside of drivers, everything is wanted.

What runs on a thread is the only state of this module: computations do not know their driver.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from saros_scheduler.driver_task import DriverTask, TaskState


class Unwanted(Exception):
    """The query was aborted during a step; whoever waits for it gets the abort's cause instead."""


class _Thread(threading.local):
    task: DriverTask | None = None


_thread = _Thread()


@contextmanager
def working_for(task: DriverTask) -> Iterator[None]:
    """This thread runs a task's driver."""
    before, _thread.task = _thread.task, task
    try:
        yield
    finally:
        _thread.task = before


def require_wanted() -> None:
    """Raises Unwanted. Takes a tenth of a microsecond."""
    task = _thread.task
    if task is not None and task.state is TaskState.ABORTED:
        raise Unwanted
