"""Which driver runs next: multilevel queue, deadlines, worker threads. Knows nothing of queries' content."""

import logging

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
]

logging.getLogger(__name__).addHandler(logging.NullHandler())
