"""DriverScheduler: worker threads that run drivers one quantum at a time, and the sentinel that ends overdue queries.

    submit ─▶ READY queue ─▶ worker: process_for(quantum) ─┬─▶ finished: close
                 ▲                                          ├─▶ runnable: back to READY, charged to its level
                 └──── the future's callback ◀── BLOCKED ◀──┘

A thread that submits a query with one driver may lend itself: as a guest, it then runs the first quantum of the driver.
It does so only if a guest slot is free, and if the queue would give this driver to the next worker. The queue, the
deadline, aborts and the metrics treat such a quantum like any other quantum. Lending saves two switches between
threads, which take longer than the work of a small query.

A query is the set of drivers submitted under its id. A query ends once, when its last driver is closed. It has then
either finished or been aborted. An abort affects all tasks of the query. If there are several causes (a driver's
exception, a time-out, `abort`), only the first cause is reported. The listener is notified after the last driver is
closed, so that all resources of the query are released before its result arrives.

Thread-safe. `submit` and `abort` never wait for a driver on another thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import msgspec

from saros_scheduler.cancellation import RunningTask
from saros_scheduler.deadline_queue import DeadlineQueue
from saros_scheduler.driver_task import DriverTask, TaskState, Transition
from saros_scheduler.multilevel_queue import LEVELS
from saros_scheduler.ready_queue import ReadyQueue
from saros_scheduler.task import Blocked, Driver, QueryId, QueryListener

logger = logging.getLogger(__name__)

#: Monotonic nanoseconds.
Ticker = Callable[[], int]


class QueryTimedOut(Exception):
    """The query had not finished by its deadline."""

    code = 712

    def __init__(self, query: QueryId) -> None:
        super().__init__(f"query {query} exceeded its time limit and was ended")
        self.query = query


class SchedulerClosed(Exception):
    """The scheduler is closed and runs no more queries."""

    code = 2014

    def __init__(self) -> None:
        super().__init__("the database is closing: no query can run")


class SchedulerOptions(msgspec.Struct, frozen=True):
    """Options of a scheduler, fixed for its lifetime."""

    worker_threads: int = 2
    #: A driver runs for about this time (one block of rows, or a few) before the next driver runs. The quantum limits
    #: the time for which each long query delays a short query, or a driver on which others depend.
    quantum_ns: int = 5_000_000
    #: The maximum number of queries with a deadline that may run at once.
    queries_max: int = 1_000
    #: The maximum number of submitting threads per worker that run a first quantum at once. With two such threads,
    #: workers that run long queries still get at least a third of the processors, the share that the queue gives to its
    #: second level.
    guests_per_worker: int = 2
    #: The quantum of a guest thread, which has other work to do. A worker continues queries that take longer.
    guest_quantum_ns: int = 10_000_000


class SchedulerMetrics(msgspec.Struct):
    """Totals since the start, and the current numbers of queries and ready tasks.

    Each list has one number for each level of the queue.
    """

    quanta: list[int] = msgspec.field(default_factory=lambda: [0] * LEVELS)
    run_ns: list[int] = msgspec.field(default_factory=lambda: [0] * LEVELS)
    ready_ns: int = 0
    blocked_ns: int = 0
    finished_queries: int = 0
    aborted_queries: int = 0
    running_queries: int = 0
    ready_tasks: int = 0


class _Query(msgspec.Struct):
    """A running query. The scheduler's lock guards it."""

    tasks: list[DriverTask]
    listener: QueryListener
    #: The drivers that are not closed yet.
    left: int
    cause: BaseException | None = None


class DriverScheduler:
    """A fixed set of worker threads that run the drivers of all queries, and a sentinel thread for their deadlines."""

    def __init__(self, options: SchedulerOptions, ticker: Ticker, *, start: bool = True) -> None:
        self._options = options
        self._ticker = ticker
        self._ready: ReadyQueue[DriverTask] = ReadyQueue()
        self._lock = threading.RLock()
        #: Notified when an earlier deadline was added, or the scheduler is closing.
        self._sentinel_wake = threading.Condition(self._lock)
        self._queries: dict[QueryId, _Query] = {}
        self._deadlines: DeadlineQueue[QueryId] = DeadlineQueue(options.queries_max)
        #: The time until which the sentinel sleeps, now or after its next check, or None if it sleeps until it is
        #: notified. This time is never later than the earliest deadline, so only an earlier deadline has to wake the
        #: sentinel. When the query with the earliest deadline ends, this time remains unchanged: most queries end long
        #: before their deadline, and the next query usually has a later deadline.
        self._wakes_ns: int | None = None
        self._metrics = SchedulerMetrics()
        #: Free guest slots.
        self._guests_left = options.worker_threads * options.guests_per_worker
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"saros-worker-{i}", daemon=True)
            for i in range(options.worker_threads)
        ]
        self._threads.append(threading.Thread(target=self._watch, name="saros-sentinel", daemon=True))
        for thread in self._threads if start else ():
            thread.start()

    # ------------------------------------------------------------------ public methods

    def submit(
        self,
        drivers: Sequence[Driver],
        *,
        query: QueryId,
        listener: QueryListener,
        deadline_ns: int | None = None,
        urgent: bool = False,
        lend: bool = False,
    ) -> None:
        """Run the drivers of a query (at least one). Raises SchedulerClosed or DeadlineQueueFull; then nothing runs.

        With `lend`, the calling thread may run the first quantum if the query has one driver and is not urgent.
        """
        assert drivers
        now = self._ticker()
        tasks = [DriverTask(driver, urgent=urgent, now_ns=now) for driver in drivers]
        with self._lock:
            if self._closed:
                raise SchedulerClosed
            assert query not in self._queries
            if deadline_ns is not None:
                self._deadlines.add(query, deadline_ns)
                if self._wakes_ns is None or deadline_ns < self._wakes_ns:
                    self._wakes_ns = deadline_ns
                    self._sentinel_wake.notify_all()
            self._queries[query] = _Query(tasks, listener, len(tasks))
            lent = lend and len(tasks) == 1 and not urgent and self._guests_left > 0
            self._guests_left -= lent
        if lent:
            self._visit(tasks[0])
            return
        for task in tasks:
            self._ready.offer(task, 0, urgent=urgent)

    def abort(self, query: QueryId, cause: BaseException) -> bool:
        """End a query with `cause`, unless it already has a cause. Return False if the query is not running."""
        with self._lock:
            running = self._queries.get(query)
            if running is None:
                return False
            if running.cause is None:
                running.cause = cause
            first = running.cause
            tasks = list(running.tasks)
        for task in tasks:
            if task.to_aborted() in (TaskState.READY, TaskState.BLOCKED):
                self._close_driver(query, task, first)
        return True

    def metrics(self) -> SchedulerMetrics:
        """Return a copy of the metrics."""
        with self._lock:
            m = self._metrics
            return SchedulerMetrics(
                list(m.quanta),
                list(m.run_ns),
                m.ready_ns,
                m.blocked_ns,
                m.finished_queries,
                m.aborted_queries,
                len(self._queries),
                len(self._ready),
            )

    def close(self) -> None:
        """Abort all queries and stop the threads. Idempotent. Drivers and listeners must not call it."""
        with self._lock:
            self._closed = True
            queries = list(self._queries)
            self._sentinel_wake.notify_all()
        for query in queries:
            self.abort(query, SchedulerClosed())
        self._ready.close()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    # ------------------------------------------------------------------ workers

    def _work(self) -> None:
        while self._run_next():
            continue

    def _run_next(self) -> bool:
        """Run the next task. Return False once the queue is closed.

        This is a separate function so that a waiting worker has no reference to its last task.
        """
        task = self._ready.take()
        if task is not None:
            self.run_quantum(task)
        return task is not None

    def _visit(self, task: DriverTask) -> None:
        """Run the first quantum of a task on this thread, if a worker would take this task next.

        Otherwise, queue the task.
        """
        try:
            if self._ready.offer_or_take(task, 0):
                self.run_quantum(task, self._options.guest_quantum_ns)
        except BaseException as error:
            # This is not an error of the driver: a signal handler raised it on the caller's thread, between two steps.
            query, is_here = task.driver.id.query, task.state not in (TaskState.READY, TaskState.BLOCKED)
            if self.abort(query, error) and is_here:
                self._close_driver(query, task, error)
            raise
        finally:
            with self._lock:
                self._guests_left += 1

    def run_quantum(self, task: DriverTask, quantum_ns: int | None = None) -> None:
        """Run one task for `quantum_ns` (by default the option's), then queue, block or close it.

        Workers call this for every task that they take from the queue.
        """
        started = self._ticker()
        waited = task.move(Transition.READY_TO_RUNNING, started)
        if waited is None:
            return  # the task was aborted while it was in the queue, and the aborter has closed it
        query, level, blocked = task.driver.id.query, task.level, None
        try:
            with RunningTask(task):
                blocked = task.driver.process_for(quantum_ns or self._options.quantum_ns)
            finished = task.driver.is_finished()
        except BaseException as error:  # noqa: BLE001 - the top of a driver: its error becomes the abort's cause
            self.abort(query, error)
            finished = False
        now = self._ticker()
        self._account(task, level, now - started, waited)
        if finished:
            moved = task.move(Transition.RUNNING_TO_FINISHED, now)
        elif blocked is not None and not blocked.done():
            moved = self._block(task, blocked, now)
        else:
            moved = task.move(Transition.RUNNING_TO_READY, now)
            if moved is not None:
                self._ready.offer(task, task.scheduled_ns, urgent=task.urgent)
        if moved is None or finished:
            with self._lock:
                cause = self._queries[query].cause
            self._close_driver(query, task, cause)

    def _block(self, task: DriverTask, blocked: Blocked, now: int) -> int | None:
        moved = task.move(Transition.RUNNING_TO_BLOCKED, now)
        if moved is not None:
            blocked.add_done_callback(lambda _: self._unblock(task))
        return moved

    def _unblock(self, task: DriverTask) -> None:
        spent = task.move(Transition.BLOCKED_TO_READY, self._ticker())
        if spent is None:
            return  # the task was aborted before the future was resolved
        with self._lock:
            self._metrics.blocked_ns += spent
        self._ready.offer(task, task.scheduled_ns, urgent=task.urgent)

    def _account(self, task: DriverTask, level: int, used_ns: int, waited_ns: int) -> None:
        task.scheduled_ns += used_ns
        if not task.urgent:
            self._ready.charge(level, used_ns)
        with self._lock:
            self._metrics.quanta[level] += 1
            self._metrics.run_ns[level] += used_ns
            self._metrics.ready_ns += waited_ns

    def _close_driver(self, query: QueryId, task: DriverTask, cause: BaseException | None) -> None:
        try:
            task.driver.close(cause)
        except Exception as error:
            logger.exception("driver failed to close", extra={"driver": str(task.driver.id)})
            self.abort(query, error)
        with self._lock:
            running = self._queries[query]
            running.left -= 1
            if running.left:
                return
            del self._queries[query]
            self._deadlines.discard(query)
            if running.cause is None:
                self._metrics.finished_queries += 1
            else:
                self._metrics.aborted_queries += 1
        if running.cause is None:
            running.listener.query_finished(query)
        else:
            running.listener.query_aborted(query, running.cause)

    # ------------------------------------------------------------------ sentinel

    def _watch(self) -> None:
        while True:
            with self._lock:
                if self._closed:
                    return
                now, deadline = self._ticker(), self._deadlines.next_deadline_ns()
                if deadline is not None or (self._wakes_ns is not None and self._wakes_ns <= now):
                    self._wakes_ns = deadline
                left = None if self._wakes_ns is None else (self._wakes_ns - now) / 1e9
                if left is None or left > 0:
                    self._sentinel_wake.wait(left)
            self.end_overdue()

    def end_overdue(self) -> None:
        """Abort all queries whose deadline has passed. The sentinel calls this each time it wakes."""
        with self._lock:
            overdue = self._deadlines.pop_due(self._ticker())
        for query in overdue:
            self.abort(query, QueryTimedOut(query))
