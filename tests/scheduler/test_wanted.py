"""What a long step of a driver learns of its query."""

from __future__ import annotations

import threading

import pytest
from waiting import PATIENCE_S

from saros_scheduler.driver_task import DriverTask
from saros_scheduler.task import Blocked, DriverId, QueryId
from saros_scheduler.wanted import Unwanted, require_wanted, working_for


class Idle:
    id = DriverId(QueryId("q"), 0, 0, 0)

    def process_for(self, quantum_ns: int) -> Blocked | None:
        return None

    def is_finished(self) -> bool:
        return False

    def close(self, cause: BaseException | None) -> None:
        pass


def test_a_step_of_an_aborted_task_is_unwanted_on_the_thread_that_runs_it_alone() -> None:
    task = DriverTask(Idle(), urgent=False, now_ns=0)
    require_wanted()
    with working_for(task):
        require_wanted()
        task.to_aborted()
        with pytest.raises(Unwanted):
            require_wanted()
        with working_for(DriverTask(Idle(), urgent=False, now_ns=0)):
            require_wanted()
        other = threading.Thread(target=require_wanted)
        other.start()
        other.join(PATIENCE_S)
        with pytest.raises(Unwanted):
            require_wanted()
    require_wanted()
