"""Cancellation checks for drivers with long steps.

The scheduler checks for an abort between steps. A loop that may run longer than about 200 ms calls `require_wanted`,
which raises QueryCancelled if the query was aborted (timed out or cancelled) since the step began. The query then ends
with the cause of the abort as its error, not with QueryCancelled. Outside a driver, `require_wanted` does nothing.

The only state of this module is the current task of each thread, so computations need no reference to their driver.
"""

from __future__ import annotations

import threading

from saros_scheduler.driver_task import DriverTask, TaskState


class QueryCancelled(Exception):
    """The query was aborted during a step. Clients get the cause of the abort instead of this exception."""


class _Thread(threading.local):
    task: DriverTask | None = None


_thread = _Thread()


class RunningTask:
    """A context manager that marks a task as running on the current thread."""

    __slots__ = ("_before", "_task")

    def __init__(self, task: DriverTask) -> None:
        self._task = task
        self._before: DriverTask | None = None

    def __enter__(self) -> None:
        self._before, _thread.task = _thread.task, self._task

    def __exit__(self, *_: object) -> None:
        _thread.task = self._before


def require_wanted() -> None:
    """Raise QueryCancelled if the current task was aborted. A call takes a tenth of a microsecond."""
    task = _thread.task
    if task is not None and task.state is TaskState.ABORTED:
        raise QueryCancelled
