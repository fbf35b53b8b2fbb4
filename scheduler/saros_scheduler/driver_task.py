"""The task of a driver: its state and the transitions between states.

              ready_to_running            running_to_finished
    READY ──────────────────────▶ RUNNING ───────────────────▶ FINISHED
      ▲  ◀────────────────────────  │
      │      running_to_ready       │ running_to_blocked
      │                             ▼
      └───────────────────────── BLOCKED          to_aborted: READY, RUNNING, BLOCKED ──▶ ABORTED
             blocked_to_ready

Every transition takes the task's lock and then checks the state, because the query may have been aborted while the
thread waited for the lock. In this case, `move` changes nothing and returns None.

When a driver has finished, the thread that ran it closes it. If a task is aborted, the aborter closes the driver. If
the task was RUNNING, the thread that runs the driver closes it instead, at the end of the quantum. Therefore,
`Driver.close` is called once, and never while the driver runs.
"""

from __future__ import annotations

import threading
from enum import Enum

from saros_scheduler.multilevel_queue import level_of
from saros_scheduler.task import Driver


class TaskState(Enum):
    """A state of a task. FINISHED and ABORTED are final."""

    READY = "ready"
    RUNNING = "running"
    BLOCKED = "blocked"
    FINISHED = "finished"
    ABORTED = "aborted"


class Transition(Enum):
    """A transition between two states, except for aborts, which are possible from several states."""

    READY_TO_RUNNING = (TaskState.READY, TaskState.RUNNING)
    RUNNING_TO_READY = (TaskState.RUNNING, TaskState.READY)
    RUNNING_TO_BLOCKED = (TaskState.RUNNING, TaskState.BLOCKED)
    BLOCKED_TO_READY = (TaskState.BLOCKED, TaskState.READY)
    RUNNING_TO_FINISHED = (TaskState.RUNNING, TaskState.FINISHED)

    def __init__(self, source: TaskState, target: TaskState) -> None:
        self.source = source
        self.target = target


#: States that no transition leaves.
END_STATES = frozenset({TaskState.FINISHED, TaskState.ABORTED})


class DriverTask:
    """A driver, its state, and the time for which it has run. Tasks are compared by identity."""

    def __init__(self, driver: Driver, *, urgent: bool, now_ns: int) -> None:
        self.driver = driver
        self.urgent = urgent
        #: The time for which the driver has run. Only the thread that runs the driver changes it.
        self.scheduled_ns = 0
        #: The time of the last transition, which is used for the metrics of queueing and blocking.
        self.entered_ns = now_ns
        self._state = TaskState.READY
        self._lock = threading.Lock()

    @property
    def state(self) -> TaskState:
        """The current state."""
        return self._state

    @property
    def level(self) -> int:
        """The driver's level in the multilevel queue, which depends on the time for which the driver has run."""
        return level_of(self.scheduled_ns)

    def move(self, transition: Transition, now_ns: int) -> int | None:
        """Make the transition and return the nanoseconds spent in its source state.

        If the task is no longer in the source state, change nothing and return None.
        """
        with self._lock:
            if self._state is not transition.source:
                return None
            self._state = transition.target
            spent, self.entered_ns = now_ns - self.entered_ns, now_ns
            return spent

    def to_aborted(self) -> TaskState | None:
        """Abort the task and return its previous state. Return None if the task had already ended."""
        with self._lock:
            if self._state in END_STATES:
                return None
            before, self._state = self._state, TaskState.ABORTED
            return before
