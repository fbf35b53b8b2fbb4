"""Cancellation of a query during a long step of a driver."""

from __future__ import annotations

import threading

import pytest
from scheduler.idle_driver import idle_task
from waiting import PATIENCE_S

from saros_scheduler.cancellation import QueryCancelled, RunningTask, require_wanted


def test_a_step_of_an_aborted_task_is_unwanted_on_the_thread_that_runs_it_alone() -> None:
    task = idle_task()
    require_wanted()
    with RunningTask(task):
        require_wanted()
        task.to_aborted()
        with pytest.raises(QueryCancelled):
            require_wanted()
        with RunningTask(idle_task()):
            require_wanted()
        other = threading.Thread(target=require_wanted)
        other.start()
        other.join(PATIENCE_S)
        with pytest.raises(QueryCancelled):
            require_wanted()
    require_wanted()
