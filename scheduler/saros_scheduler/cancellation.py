"""Whether the current thread's computation is still wanted: for drivers with long steps.

Between steps the scheduler checks by itself. A loop that may run for more than some 200 ms calls `require_wanted`,
which breaks the step off if the query was aborted meanwhile (timed out or cancelled). The query still ends with the
cause of the abort. Outside of drivers, everything is wanted.

The only state of this module is the task that runs on each thread; computations do not know their driver.
"""

from __future__ import annotations

import threading

from saros_scheduler.driver_task import DriverTask, TaskState


class QueryCancelled(Exception):
    """The query was aborted during a step; whoever waits for it gets the abort's cause instead."""


class _Thread(threading.local):
    task: DriverTask | None = None


_thread = _Thread()


class RunningTask:
    """A context in which this thread runs a task's driver."""

    __slots__ = ("_before", "_task")

    def __init__(self, task: DriverTask) -> None:
        self._task = task
        self._before: DriverTask | None = None

    def __enter__(self) -> None:
        self._before, _thread.task = _thread.task, self._task

    def __exit__(self, *_: object) -> None:
        _thread.task = self._before


def require_wanted() -> None:
    """Raises Unwanted. Takes a tenth of a microsecond."""
    task = _thread.task
    if task is not None and task.state is TaskState.ABORTED:
        raise QueryCancelled
