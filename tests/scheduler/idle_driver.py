"""A driver of a query that has no work, for tests of the code around a driver's step."""

from __future__ import annotations

from saros_scheduler.driver_task import DriverTask
from saros_scheduler.task import Blocked, DriverId, QueryId


class IdleDriver:
    """A driver that does nothing and never ends."""

    id = DriverId(QueryId("q"), 0, 0, 0)

    def process_for(self, quantum_ns: int) -> Blocked | None:
        return None

    def is_finished(self) -> bool:
        return False

    def close(self, cause: BaseException | None) -> None:
        pass


def idle_task() -> DriverTask:
    return DriverTask(IdleDriver(), urgent=False, now_ns=0)
