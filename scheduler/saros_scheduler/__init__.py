"""The scheduler of query drivers: multilevel queue, deadlines, worker threads. It knows nothing about queries."""

import logging

from saros_scheduler.cancellation import require_wanted
from saros_scheduler.deadline_queue import DeadlineQueueFull
from saros_scheduler.driver_scheduler import (
    DriverScheduler,
    QueryTimedOut,
    SchedulerClosed,
    SchedulerMetrics,
    SchedulerOptions,
)

__all__ = [
    "DeadlineQueueFull",
    "DriverScheduler",
    "QueryTimedOut",
    "SchedulerClosed",
    "SchedulerMetrics",
    "SchedulerOptions",
    "require_wanted",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())
