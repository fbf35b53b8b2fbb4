"""The scheduler: with threads, which wait for events, or step by step without threads, in chosen interleavings."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest
from waiting import PATIENCE_S

from saros_scheduler import (
    DeadlineQueueFull,
    DriverScheduler,
    QueryTimedOut,
    SchedulerClosed,
    SchedulerOptions,
    require_wanted,
)
from saros_scheduler.driver_task import DriverTask, TaskState, Transition
from saros_scheduler.task import Blocked, DriverId, QueryId

Step = Callable[[], "Blocked | None"]


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class ScriptedDriver:
    """A driver that runs one of its steps per quantum, and has finished after the last step."""

    def __init__(self, query: str, number: int, steps: list[Step]) -> None:
        self.id = DriverId(QueryId(query), 0, 0, number)
        self.steps = steps
        self.closed: list[BaseException | None] = []
        self.running = False

    def process_for(self, quantum_ns: int) -> Blocked | None:
        assert not self.closed
        self.running = True
        try:
            return self.steps.pop(0)()
        finally:
            self.running = False

    def is_finished(self) -> bool:
        return not self.steps

    def close(self, cause: BaseException | None) -> None:
        assert not self.running
        self.closed.append(cause)


class Listener:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.ends: list[tuple[str, BaseException | None]] = []

    def query_finished(self, query: QueryId) -> None:
        self.ends.append((query, None))
        self.done.set()

    def query_aborted(self, query: QueryId, cause: BaseException) -> None:
        self.ends.append((query, cause))
        self.done.set()


def nothing() -> None:
    return None


@pytest.fixture
def threaded() -> Iterator[DriverScheduler]:
    scheduler = DriverScheduler(SchedulerOptions(worker_threads=2), time.monotonic_ns)
    yield scheduler
    scheduler.close()


def by_hand(clock: Clock) -> DriverScheduler:
    return DriverScheduler(SchedulerOptions(queries_max=2), clock, start=False)


def run_next(scheduler: DriverScheduler) -> None:
    task = scheduler._ready.take()
    assert task is not None
    scheduler.run_quantum(task)


def test_drivers_of_a_query_run_to_their_end_and_are_closed_before_the_listener_hears(
    threaded: DriverScheduler,
) -> None:
    listener = Listener()
    drivers = [ScriptedDriver("q", i, [nothing] * 5) for i in range(4)]
    threaded.submit(drivers, query=QueryId("q"), listener=listener)
    assert listener.done.wait(PATIENCE_S)
    assert [("q", None)] == listener.ends
    assert [[None]] * 4 == [d.closed for d in drivers]
    metrics = threaded.metrics()
    assert (20, 1, 0, 0) == (
        sum(metrics.quanta),
        metrics.finished_queries,
        metrics.running_queries,
        metrics.ready_tasks,
    )


def test_a_blocked_driver_goes_on_when_its_future_is_resolved(threaded: DriverScheduler) -> None:
    future: Future[None] = Future()
    reached = threading.Event()

    def block() -> Blocked:
        reached.set()
        return future

    listener = Listener()
    threaded.submit([ScriptedDriver("q", 0, [block, nothing])], query=QueryId("q"), listener=listener)
    assert reached.wait(PATIENCE_S)
    assert not listener.done.is_set()
    future.set_result(None)
    assert listener.done.wait(PATIENCE_S)
    assert [("q", None)] == listener.ends


def test_one_drivers_error_ends_all_drivers_of_its_query_and_no_other(threaded: DriverScheduler) -> None:
    error = ValueError("broken")

    def fail() -> None:
        raise error

    bad, good = Listener(), Listener()
    never: Future[None] = Future()
    drivers = [ScriptedDriver("q", 0, [lambda: never, nothing]), ScriptedDriver("q", 1, [nothing, fail, nothing])]
    other = ScriptedDriver("other", 0, [nothing] * 50)
    threaded.submit([other], query=QueryId("other"), listener=good)
    threaded.submit(drivers, query=QueryId("q"), listener=bad)
    assert bad.done.wait(PATIENCE_S)
    assert good.done.wait(PATIENCE_S)
    assert [("q", error)] == bad.ends
    assert [[error], [error]] == [d.closed for d in drivers]
    assert [("other", None)] == good.ends
    never.set_result(None)  # has no effect, since the query has ended


def test_an_overdue_query_ends_with_its_cause(threaded: DriverScheduler) -> None:
    never: Future[None] = Future()
    listener = Listener()
    driver = ScriptedDriver("q", 0, [lambda: never, nothing])
    deadline = time.monotonic_ns() + 20_000_000
    threaded.submit([driver], query=QueryId("q"), listener=listener, deadline_ns=deadline)
    assert listener.done.wait(PATIENCE_S)
    (end,) = listener.ends
    assert isinstance(end[1], QueryTimedOut)
    assert 712 == end[1].code
    assert 1 == len(driver.closed)


def test_a_step_that_asks_is_broken_off_and_the_query_ends_with_its_cause(threaded: DriverScheduler) -> None:
    begun, listener, cause = threading.Event(), Listener(), RuntimeError("enough")

    def endless() -> None:
        begun.set()
        while True:
            require_wanted()

    driver = ScriptedDriver("q", 0, [endless, nothing])
    threaded.submit([driver], query=QueryId("q"), listener=listener)
    assert begun.wait(PATIENCE_S)
    threaded.abort(QueryId("q"), cause)
    assert listener.done.wait(PATIENCE_S)
    assert [("q", cause)] == listener.ends
    assert [cause] == driver.closed


def _watched() -> tuple[DriverScheduler, list[str]]:
    """Return a scheduler, and a list of the threads that read its clock."""
    looks: list[str] = []

    def ticker() -> int:
        looks.append(threading.current_thread().name)
        return time.monotonic_ns()

    return DriverScheduler(SchedulerOptions(), ticker), looks


def test_only_an_earlier_deadline_wakes_the_sentinel() -> None:
    scheduler, looks = _watched()
    far = time.monotonic_ns() + 3_600 * 10**9
    for number in range(200):
        listener = Listener()
        driver, query = ScriptedDriver(str(number), 0, [nothing]), QueryId(str(number))
        scheduler.submit([driver], query=query, listener=listener, deadline_ns=far + number)
        assert listener.done.wait(PATIENCE_S)
    assert looks.count("saros-sentinel") < 10
    never: Future[None] = Future()
    for name, deadline in [("late", far + 1_000), ("soon", time.monotonic_ns() + 20_000_000)]:
        listener = Listener()
        driver = ScriptedDriver(name, 0, [lambda: never, nothing])
        scheduler.submit([driver], query=QueryId(name), listener=listener, deadline_ns=deadline)
    assert listener.done.wait(PATIENCE_S)
    assert isinstance(listener.ends[0][1], QueryTimedOut)
    scheduler.close()


def test_queries_that_end_before_the_sentinel_looks_do_not_wake_it_each_time() -> None:
    scheduler, looks = _watched()
    far = time.monotonic_ns() + 3_600 * 10**9
    for number in range(50):
        driver = ScriptedDriver(str(number), 0, [nothing])
        # `lend` runs the query on this thread, so that the query ends before the sentinel runs.
        query = QueryId(str(number))
        scheduler.submit([driver], query=query, listener=Listener(), deadline_ns=far + number, lend=True)
        time.sleep(0.002)
    assert looks.count("saros-sentinel") < 10
    scheduler.close()


def test_an_alarm_that_is_of_no_use_any_more_is_forgotten() -> None:
    scheduler, never = DriverScheduler(SchedulerOptions(), time.monotonic_ns), Future[None]()
    scheduler.submit(
        [ScriptedDriver("over", 0, [nothing])],
        query=QueryId("over"),
        listener=Listener(),
        deadline_ns=time.monotonic_ns() + 10_000_000,
        lend=True,
    )
    time.sleep(0.05)
    listener = Listener()
    driver = ScriptedDriver("late", 0, [lambda: never, nothing])
    deadline_ns = time.monotonic_ns() + 20_000_000
    scheduler.submit([driver], query=QueryId("late"), listener=listener, deadline_ns=deadline_ns)
    assert listener.done.wait(PATIENCE_S)
    assert isinstance(listener.ends[0][1], QueryTimedOut)
    scheduler.close()


def test_closing_ends_what_runs_and_refuses_what_comes() -> None:
    scheduler = DriverScheduler(SchedulerOptions(), time.monotonic_ns)
    never: Future[None] = Future()
    listener = Listener()
    scheduler.submit([ScriptedDriver("q", 0, [lambda: never, nothing])], query=QueryId("q"), listener=listener)
    scheduler.close()
    scheduler.close()
    assert isinstance(listener.ends[0][1], SchedulerClosed)
    with pytest.raises(SchedulerClosed):
        scheduler.submit([ScriptedDriver("r", 0, [nothing])], query=QueryId("r"), listener=listener)


def test_a_driver_that_is_aborted_while_it_runs_is_closed_when_its_quantum_ends() -> None:
    scheduler, listener, cause = by_hand(Clock()), Listener(), RuntimeError("killed")
    driver = ScriptedDriver("q", 0, [])

    def abort_myself() -> None:
        assert scheduler.abort(QueryId("q"), cause)
        assert [] == driver.closed

    driver.steps = [abort_myself, nothing]
    scheduler.submit([driver], query=QueryId("q"), listener=listener)
    run_next(scheduler)
    assert [cause] == driver.closed
    assert [("q", cause)] == listener.ends


def test_a_driver_that_is_aborted_in_the_queue_never_runs() -> None:
    scheduler, listener, cause = by_hand(Clock()), Listener(), RuntimeError("killed")
    driver = ScriptedDriver("q", 0, [nothing])
    scheduler.submit([driver], query=QueryId("q"), listener=listener)
    scheduler.abort(QueryId("q"), cause)
    assert [("q", cause)] == listener.ends
    run_next(scheduler)
    assert ([cause], 1) == (driver.closed, len(driver.steps))
    assert not scheduler.abort(QueryId("q"), cause)


def test_the_first_cause_stays() -> None:
    scheduler, listener = by_hand(Clock()), Listener()
    first, second = RuntimeError("first"), RuntimeError("second")
    driver = ScriptedDriver("q", 0, [])

    def abort_twice() -> None:
        scheduler.abort(QueryId("q"), first)
        scheduler.abort(QueryId("q"), second)

    driver.steps = [abort_twice, nothing]
    scheduler.submit([driver], query=QueryId("q"), listener=listener)
    run_next(scheduler)
    assert [("q", first)] == listener.ends


def test_a_driver_that_fails_to_close_ends_the_query_and_leaves_nothing() -> None:
    scheduler, listener, error = by_hand(Clock()), Listener(), OSError("disk")

    class Stubborn(ScriptedDriver):
        def close(self, cause: BaseException | None) -> None:
            raise error

    scheduler.submit([Stubborn("q", 0, [nothing])], query=QueryId("q"), listener=listener)
    run_next(scheduler)
    assert [("q", error)] == listener.ends
    assert 0 == scheduler.metrics().running_queries


def test_the_sentinel_ends_queries_at_their_deadline_and_the_number_is_bounded() -> None:
    clock = Clock()
    scheduler, listener = by_hand(clock), Listener()
    for name, deadline in [("a", 10), ("b", 20)]:
        scheduler.submit(
            [ScriptedDriver(name, 0, [nothing])], query=QueryId(name), listener=listener, deadline_ns=deadline
        )
    late = ScriptedDriver("c", 0, [nothing])
    with pytest.raises(DeadlineQueueFull):
        scheduler.submit([late], query=QueryId("c"), listener=listener, deadline_ns=30)
    clock.now = 10
    scheduler.end_overdue()
    assert ["a"] == [query for query, _ in listener.ends]
    clock.now = 25
    scheduler.end_overdue()
    assert ["a", "b"] == [query for query, _ in listener.ends]


def test_urgent_queries_pass_all_others_and_long_ones_sink() -> None:
    clock = Clock()
    scheduler, listener = by_hand(clock), Listener()
    order: list[str] = []

    def step(name: str, seconds: float) -> Step:
        def run() -> None:
            order.append(name)
            clock.now += int(seconds * 1e9)

        return run

    heavy = ScriptedDriver("heavy", 0, [step("heavy", 2), step("heavy", 2)])
    scheduler.submit([heavy], query=QueryId("heavy"), listener=listener)
    run_next(scheduler)
    for name in ("short1", "short2"):
        scheduler.submit([ScriptedDriver(name, 0, [step(name, 0.01)])], query=QueryId(name), listener=listener)
    system = ScriptedDriver("show", 0, [step("show", 0)])
    scheduler.submit([system], query=QueryId("show"), listener=listener, urgent=True)
    for _ in range(4):
        run_next(scheduler)
    assert ["heavy", "show", "short1", "heavy", "short2"] == order
    metrics = scheduler.metrics()
    assert (4, 1) == (metrics.quanta[0], metrics.quanta[1])


# ---------------------------------------------------------------------------------------------- lent threads


def here() -> str:
    return threading.current_thread().name


def test_a_lent_thread_runs_the_first_quantum_and_workers_the_others(threaded: DriverScheduler) -> None:
    threads: list[str] = []

    def step() -> None:
        threads.append(here())

    listener = Listener()
    threaded.submit([ScriptedDriver("one", 0, [step])], query=QueryId("one"), listener=listener, lend=True)
    assert ([here()], [("one", None)]) == (threads, listener.ends)  # true at once, since this thread ran the query
    two, several = Listener(), Listener()
    threaded.submit([ScriptedDriver("two", 0, [step, step])], query=QueryId("two"), listener=two, lend=True)
    drivers = [ScriptedDriver("several", i, [step]) for i in range(2)]
    threaded.submit(drivers, query=QueryId("several"), listener=several, lend=True)
    assert two.done.wait(PATIENCE_S)
    assert several.done.wait(PATIENCE_S)
    assert 2 == threads.count(here())
    assert 5 == sum(threaded.metrics().quanta)


def test_what_a_lent_thread_runs_is_a_quantum_as_any_other() -> None:
    clock = Clock()
    scheduler, listener = by_hand(clock), Listener()

    def work() -> None:
        clock.now += 3 * 10**9

    driver = ScriptedDriver("q", 0, [work, work])
    scheduler.submit([driver], query=QueryId("q"), listener=listener, deadline_ns=10**9, lend=True)
    metrics = scheduler.metrics()
    assert ([1, 0, 0, 0, 0], 3 * 10**9, 1) == (metrics.quanta, metrics.run_ns[0], metrics.ready_tasks)
    assert 3 * 10**9 == scheduler._ready.level_times_ns()[0]
    scheduler.end_overdue()
    assert isinstance(listener.ends[0][1], QueryTimedOut)
    assert (1, 1) == (len(driver.steps), len(driver.closed))


@pytest.mark.parametrize("look", [2, 3])
def test_an_interrupt_of_a_lent_thread_ends_its_query_once(look: int) -> None:
    looks = 0

    def ticker() -> int:
        nonlocal looks
        looks += 1
        if looks == look:
            raise KeyboardInterrupt
        return 0

    scheduler = DriverScheduler(SchedulerOptions(), ticker, start=False)
    listener, driver = Listener(), ScriptedDriver("q", 0, [nothing])
    with pytest.raises(KeyboardInterrupt) as raised:
        scheduler.submit([driver], query=QueryId("q"), listener=listener, lend=True)
    assert [raised.value] == driver.closed
    assert [("q", raised.value)] == listener.ends
    assert 0 == scheduler.metrics().running_queries
    assert 4 == scheduler._guests_left


def test_a_lent_thread_passes_nobody_whose_turn_is_before() -> None:
    scheduler, order = by_hand(Clock()), []
    for name, lend in (("first", False), ("second", True)):
        driver = ScriptedDriver(name, 0, [lambda name=name: order.append(name)])  # type: ignore[misc]
        scheduler.submit([driver], query=QueryId(name), listener=Listener(), lend=lend)
    assert [] == order
    run_next(scheduler)
    run_next(scheduler)
    assert ["first", "second"] == order


def test_lent_threads_are_few_and_one_that_is_done_makes_room() -> None:
    clock = Clock()
    options = SchedulerOptions(worker_threads=1, guests_per_worker=2)
    scheduler, ran = DriverScheduler(options, clock, start=False), []

    def submit(name: str, then: Callable[[], object]) -> None:
        def step() -> None:
            ran.append(name)
            then()

        scheduler.submit([ScriptedDriver(name, 0, [step])], query=QueryId(name), listener=Listener(), lend=True)

    # Each query is submitted while the previous query still runs, as another thread could do.
    submit("a", lambda: submit("b", lambda: submit("c", nothing)))
    assert ["a", "b"] == ran
    run_next(scheduler)
    submit("d", nothing)
    assert ["a", "b", "c", "d"] == ran


def test_an_error_on_a_lent_thread_is_the_querys_and_not_the_callers() -> None:
    scheduler, listener, error = by_hand(Clock()), Listener(), ValueError("broken")

    def fail() -> None:
        raise error

    scheduler.submit([ScriptedDriver("q", 0, [fail])], query=QueryId("q"), listener=listener, lend=True)
    assert [("q", error)] == listener.ends
    assert 0 == scheduler.metrics().running_queries


@pytest.mark.parametrize("transition", Transition, ids=lambda t: t.name)
@pytest.mark.parametrize("state", TaskState, ids=lambda s: s.name)
def test_a_transition_happens_from_its_source_only(transition: Transition, state: TaskState) -> None:
    task = DriverTask(ScriptedDriver("q", 0, []), urgent=False, now_ns=0)
    task._state = state
    source, target = transition.source, transition.target
    moved = task.move(transition, 7)
    assert (moved == 7, task.state) == ((True, target) if state is source else (False, state))


@pytest.mark.parametrize("state", TaskState, ids=lambda s: s.name)
def test_what_has_ended_is_not_aborted(state: TaskState) -> None:
    task = DriverTask(ScriptedDriver("q", 0, []), urgent=False, now_ns=0)
    task._state = state
    ended = state in (TaskState.FINISHED, TaskState.ABORTED)
    assert (None if ended else state) == task.to_aborted()
    assert (state if ended else TaskState.ABORTED) == task.state


def test_many_queries_at_once_all_end_once(threaded: DriverScheduler) -> None:
    listeners = [Listener() for _ in range(200)]
    for number, listener in enumerate(listeners):
        name = f"q{number}"
        drivers = [ScriptedDriver(name, i, [nothing] * 3) for i in range(3)]
        threaded.submit(drivers, query=QueryId(name), listener=listener)
        if number % 3 == 0:
            threaded.abort(QueryId(name), RuntimeError("killed"))
    assert all(listener.done.wait(PATIENCE_S) for listener in listeners)
    assert [1] * 200 == [len(listener.ends) for listener in listeners]
    assert (0, 0) == (threaded.metrics().running_queries, threaded.metrics().ready_tasks)
