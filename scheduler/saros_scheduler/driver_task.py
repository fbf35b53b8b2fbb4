"""The task of a driver: its state and the transitions between states.

              ready_to_running            running_to_finished
    READY ──────────────────────▶ RUNNING ───────────────────▶ FINISHED
      ▲  ◀────────────────────────  │
      │      running_to_ready       │ running_to_blocked
      │                             ▼
      └───────────────────────── BLOCKED          to_aborted: READY, RUNNING, BLOCKED ──▶ ABORTED
             blocked_to_ready

Every transition takes the task's lock and checks the state again: the query may have been aborted while the thread
waited for the lock. The transition then returns False and changes nothing.

Who closes the driver: if it finished, the worker that ran it. If the task was aborted, the aborter; but if the task was
RUNNING then, the worker does so at the end of its quantum. So `Driver.close` is called once, and never while the driver
runs.
"""

from __future__ import annotations

import threading
from enum import Enum

from saros_scheduler.multilevel_queue import level_of
from saros_scheduler.task import Driver


class TaskState(Enum):
    """See the module."""

    READY = "ready"
    RUNNING = "running"
    BLOCKED = "blocked"
    FINISHED = "finished"
    ABORTED = "aborted"


class Transition(Enum):
    """The verbs; each knows where it comes from and leads to."""

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
    """Wraps one driver. Identity is the object's own."""

    def __init__(self, driver: Driver, *, urgent: bool, now_ns: int) -> None:
        self.driver = driver
        self.urgent = urgent
        #: Time this driver has run; written by the worker that runs it only.
        self.scheduled_ns = 0
        #: When it entered its present state; for the queue and block metrics.
        self.entered_ns = now_ns
        self._state = TaskState.READY
        self._lock = threading.Lock()

    @property
    def state(self) -> TaskState:
        """The state at this moment."""
        return self._state

    @property
    def level(self) -> int:
        """The level it belongs to by the time it has run."""
        return level_of(self.scheduled_ns)

    def move(self, transition: Transition, now_ns: int) -> int | None:
        """Carry the transition out; nanoseconds spent in the state left, or None if the state is another by now."""
        with self._lock:
            if self._state is not transition.source:
                return None
            self._state = transition.target
            spent, self.entered_ns = now_ns - self.entered_ns, now_ns
            return spent

    def to_aborted(self) -> TaskState | None:
        """Abort; the state it was in, or None if it had ended already."""
        with self._lock:
            if self._state in END_STATES:
                return None
            before, self._state = self._state, TaskState.ABORTED
            return before
