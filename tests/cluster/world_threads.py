"""Threads of a simulated world: real code on real threads, of which only one runs at a time; a seed schedules them.

    task        a thread that runs only while it has the baton, and passes the baton on when it waits
    heap        (when, number, what): a task to resume, or an event: a function to call, which must not wait
    now_ns      virtual time, which advances to the next item of the heap without waiting

Within `installed`, tasks get the locks, threads and sleeps of this module instead of Python's. Python's conditions,
events, futures and pools are built on locks and threads. All threads of the product are therefore simulated without
changes to the product, and another task may run whenever the product acquires a lock.

A task may have an owner, usually a node's life. `kill` ends an owner's tasks at the point that each task has reached:
the call in which the task waits raises `Killed`, and the task never waits again.
"""

from __future__ import annotations

import _thread
import concurrent.futures._base as futures_module
import concurrent.futures.thread as pool_module
import heapq
import os
import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import ClassVar
from weakref import WeakKeyDictionary

# If a process imports this module before the product, the importing thread compiles the kernels.
os.environ.setdefault("SAROS_JIT", "eager")

_real_lock = threading.Lock
_real_rlock = threading.RLock
_real_thread = threading.Thread
_real_sleep = time.sleep
_real_now = time.monotonic

#: A task that passes the baton too often within this time is spinning.
_SPIN_NS = 100_000_000
_SPIN_SWITCHES = 20_000
Work = Callable[[], object]
#: An attribute and its temporary value, as (object, name, value).
Place = tuple[object, str, object]
#: The shortest wait. It prevents that a task which waits by a slower clock waits again and again at the same moment.
_WAIT_MIN_NS = 1_000


class Killed(BaseException):
    """An exception that ends a task whose owner has crashed."""


class Stuck(Exception):
    """An error: no task can ever run again."""


class _Runner:
    """An operating-system thread that runs one task after the other."""

    def __init__(self) -> None:
        self.gate = _real_lock()
        self.gate.acquire()
        self.task: Task | None = None
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        threading.current_thread()  # register this thread with Python while Python's locks are real
        while True:
            self.gate.acquire()
            task, self.task = self.task, None
            assert task is not None
            task.threads.run_task(task)
            del task


class Task:
    """A simulated thread with its owner."""

    def __init__(self, threads: Threads, name: str, owner: object, work: Work) -> None:
        self.threads = threads
        self.name = name
        self.owner = owner
        self.work = work
        self.runner: _Runner | None = None
        self.gate = None
        #: The number of the current wait; a wake-up for an earlier wait has no effect.
        self.token = 0
        self.parked = True
        self.woken = False
        self.killed = False
        self.done = False
        self.waiting_for_end: list[Task] = []

    def __repr__(self) -> str:
        return f"{self.name} of {self.owner}"


class Threads:
    """The scheduler of tasks. One thread, which is also a task, creates, uses and closes it."""

    #: Idle operating-system threads.
    _idle: ClassVar[list[_Runner]] = []

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ns = 0
        #: The maximum delay between the moment when a task is woken and the moment when it runs.
        self.jitter_ns = self.random.choice((1, 20_000, 200_000))
        #: The average number of lock acquisitions between preemptions; 0 means that tasks are never preempted.
        self.preempt_every = self.random.choice((0, 40, 150, 400))
        self._until_preempt = self._next_preempt()
        self._heap: list[tuple[int, int, Task | Work, int]] = []
        self._numbers = count()
        self._tasks: dict[Task, None] = {}
        self._paused: dict[object, int] = {}
        self.main = Task(self, "main", None, lambda: None)
        self.main.parked = False
        self.main.gate = _real_lock()
        self.main.gate.acquire()
        #: The task that has the baton, and therefore is the only task that may run; None while an event is called.
        self.current: Task | None = self.main
        self._ident = threading.get_ident()
        #: Unexpected exceptions of tasks and events, with their names.
        self.failures: list[tuple[str, BaseException]] = []
        self.switches = 0
        self._checked_ns = self._checked = 0
        self.closed = False
        #: The numbers of simulated objects such as threads.
        self.made = count()

    # ------------------------------------------------------------------ tasks

    def spawn(self, name: str, owner: object, work: Work) -> Task:
        """Create a task, which begins after a short time."""
        task = Task(self, name, owner, work)
        self._tasks[task] = None
        self._push(self.now_ns + self._jitter(), task, 0)
        return task

    def run_task(self, task: Task) -> None:
        """Run a task on its thread, which has the baton."""
        self._ident = threading.get_ident()
        try:
            if not task.killed:
                task.work()
        except BaseException as error:  # noqa: BLE001 (the top of a thread)
            if not task.killed:
                self.failures.append((repr(task), error))
        task.done = True
        self._tasks.pop(task, None)
        for other in task.waiting_for_end:
            self.wake(other)
        runner = task.runner
        assert runner is not None
        Threads._idle.append(runner)
        self._pass_on(None)

    def at(self, when_ns: int, event: Work) -> None:
        """Call an event at the given time."""
        self._push(max(when_ns, self.now_ns), event, 0)

    def after(self, delay_ns: int, event: Work) -> None:
        """Call an event after a delay."""
        self._push(self.now_ns + delay_ns, event, 0)

    def _push(self, when: int, what: Task | Work, token: int) -> None:
        heapq.heappush(self._heap, (when, next(self._numbers), what, token))

    def _jitter(self) -> int:
        return _WAIT_MIN_NS + self.random.randrange(self.jitter_ns)

    # ------------------------------------------------------------------ waiting

    def park(self, until_ns: int | None = None) -> bool:
        """Wait to be woken, perhaps spuriously; return False if `until_ns` came first. Raises Killed."""
        me = self.current
        assert me is not None, "an event waits"
        if me.killed:
            raise Killed
        me.token += 1
        me.parked = True
        me.woken = False
        if until_ns is not None:
            self._push(max(until_ns, self.now_ns), me, me.token)
        self._pass_on(me)
        if me.killed:
            raise Killed
        return me.woken

    def wake(self, task: Task) -> None:
        """Resume a waiting task soon."""
        if task.parked and not task.woken:
            task.woken = True
            task.token += 1
            self._push(self.now_ns + self._jitter(), task, task.token)

    def sleep(self, seconds: float) -> None:
        """Sleep in virtual time; replaces `time.sleep`."""
        until = self.now_ns + max(int(seconds * 1e9), 0)
        self.park(until)
        while self.now_ns < until:
            self.park(until)

    def preempt(self) -> None:
        """With some probability, let another task run."""
        if self._until_preempt:
            self._until_preempt -= 1
            if not self._until_preempt:
                self._until_preempt = self._next_preempt()
                me = self.current
                if me is not None and me is not self.main and not me.killed:
                    self.park(self.now_ns + self.random.choice((0, 1_000, 100_000, 3_000_000)))

    def _next_preempt(self) -> int:
        return self.random.randrange(2 * self.preempt_every) + 1 if self.preempt_every else 0

    def _pass_on(self, me: Task | None) -> None:
        """Pass the baton to the next task; return when `me` has the baton again."""
        task = self._next()
        if task is me:
            return
        self.switches += 1
        if self.now_ns > self._checked_ns + _SPIN_NS:
            if self.switches - self._checked > _SPIN_SWITCHES:
                self.failures.append((repr(task), Stuck("tasks go round and round and nothing comes of it")))
            self._checked_ns, self._checked = self.now_ns, self.switches
        if task.gate is None:
            task.runner = Threads._idle.pop() if Threads._idle else _Runner()
            task.gate = task.runner.gate
            task.runner.task = task
        task.gate.release()
        if me is not None:
            me.gate.acquire()
            self._ident = threading.get_ident()

    def _next(self) -> Task:
        heap = self._heap
        while True:
            if not heap:
                self.failures.append(("the world", Stuck(f"{len(self._tasks)} tasks wait for each other")))
                self._push(self.now_ns, self.main, self.main.token)
            when, _, what, token = heapq.heappop(heap)
            if isinstance(what, Task):
                if what.done or what.token != token or not what.parked:
                    continue
                until = self._paused.get(what.owner) if self._paused else None
                if until is not None and when < until and not what.killed:
                    self._push(until + self._jitter(), what, token)
                    continue
                self.now_ns = max(self.now_ns, when)
                what.parked = False
                self.current = what
                return what
            self.now_ns = max(self.now_ns, when)
            self.current = None
            try:
                what()
            except BaseException as error:  # noqa: BLE001 (the top of an event)
                self.failures.append(("an event", error))
                self.main.token += 1
                self._push(self.now_ns, self.main, self.main.token)

    # ------------------------------------------------------------------ owners

    def pause(self, owner: object, until_ns: int) -> None:
        """Pause all tasks of an owner until a time."""
        self._paused[owner] = max(until_ns, self._paused.get(owner, 0))

    def kill(self, owner: object) -> None:
        """End the owner's tasks at the point that each task has reached. Only the main task may call this."""
        assert self.current is self.main
        self._paused.pop(owner, None)
        tasks = self.tasks_of(owner)
        for task in tasks:  # mark all tasks first: the end of a task may wake other tasks
            task.killed = True
        for task in tasks:
            if task.done:
                continue
            task.token += 1
            task.parked = True
            self._push(self.now_ns, task, task.token)
            while not task.done:
                self.park(self.now_ns)

    def tasks_of(self, owner: object) -> list[Task]:
        """Return the owner's tasks that have not ended."""
        return [task for task in self._tasks if task.owner is owner]

    def close(self) -> None:
        """End all tasks."""
        self.closed = True
        for owner in {id(task.owner): task.owner for task in self._tasks}.values():
            self.kill(owner)

    @property
    def is_here(self) -> bool:
        """Return whether the calling thread has the baton."""
        return threading.get_ident() == self._ident

    # ------------------------------------------------------------------ replacements of Python's functions

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Give tasks simulated locks, threads and sleeps within the context."""

        def lock() -> object:
            return Lock(self) if self.is_here else _real_lock()

        def rlock() -> object:
            return RLock(self) if self.is_here else _real_rlock()

        class AnyThread:
            __init__ = _real_thread.__init__  # Python calls this for threads that it has not started

            def __new__(cls, *args: object, **kwargs: object) -> object:
                return Thread(self, *args, **kwargs) if self.is_here else _real_thread(*args, **kwargs)

        def sleep(seconds: float) -> None:
            return self.sleep(seconds) if self.is_here else _real_sleep(seconds)

        def now() -> float:
            return self.now_ns / 1e9 if self.is_here else _real_now()

        places = [
            (threading, "Lock", lock),
            (threading, "_allocate_lock", lock),
            (threading, "RLock", rlock),
            (threading, "Thread", AnyThread),
            (threading, "_time", now),
            (time, "sleep", sleep),
            (queue, "SimpleQueue", queue._PySimpleQueue),
            (pool_module, "_global_shutdown_lock", Lock(self)),
            (pool_module, "_threads_queues", WeakKeyDictionary()),
            (futures_module, "_AcquireFutures", _AcquiredInOrder),
        ]
        with replaced(places):
            yield


@contextmanager
def replaced(places: Sequence[Place]) -> Iterator[None]:
    """Give attributes temporary values within the context."""
    before = [(holder, name, getattr(holder, name)) for holder, name, _ in places]
    try:
        for holder, name, value in places:
            setattr(holder, name, value)
        yield
    finally:
        for holder, name, value in reversed(before):
            setattr(holder, name, value)


class Lock:
    """A simulated `threading.Lock`."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._held = False
        self._waiting: deque[Task] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        threads = self._threads
        if blocking:
            threads.preempt()
        if not self._held:
            self._held = True
            return True
        if not blocking:
            return False
        until = None if timeout < 0 else threads.now_ns + max(int(timeout * 1e9), _WAIT_MIN_NS)
        while self._held:
            if not self._wait(until):
                return False
        self._held = True
        return True

    def _wait(self, until: int | None) -> bool:
        me = self._threads.current
        assert me is not None, "an event waits for a lock"
        self._waiting.append(me)
        try:
            return self._threads.park(until)
        finally:
            if me in self._waiting:
                self._waiting.remove(me)

    def release(self) -> None:
        if not self._held:
            me = self._threads.current
            if me is not None and me.killed:
                return
            raise RuntimeError("release unlocked lock")
        self._held = False
        if self._waiting:
            self._threads.wake(self._waiting.popleft())

    def locked(self) -> bool:
        return self._held

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock:
    """A simulated `threading.RLock`."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._lock = Lock(threads)
        self.number = next(threads.made)
        self._owner: Task | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = self._threads.current
        if self._owner is me and self._count:
            self._count += 1
            return True
        if not self._lock.acquire(blocking, timeout):
            return False
        self._owner, self._count = me, 1
        return True

    def release(self) -> None:
        me = self._threads.current
        if self._owner is not me or not self._count:
            if me is not None and me.killed:
                return
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = None
            self._lock.release()

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()

    def _release_save(self) -> tuple[int, Task | None]:
        saved = self._count, self._owner
        self._count, self._owner = 0, None
        self._lock.release()
        return saved

    def _acquire_restore(self, saved: tuple[int, Task | None]) -> None:
        self._lock.acquire()
        self._count, self._owner = saved

    def _is_owned(self) -> bool:
        return self._owner is self._threads.current and self._count > 0


class _AcquiredInOrder(futures_module._AcquireFutures):
    """A context that acquires the locks of futures in the order in which the futures were created.

    Python's version acquires them in the order of the futures' addresses, which a seed does not determine.
    """

    def __init__(self, futures: Iterable[futures_module.Future[object]]) -> None:
        self.futures = sorted(futures, key=lambda future: future._condition._lock.number)


class Thread:
    """A simulated `threading.Thread`; its owner is the owner of the task that starts it."""

    def __init__(
        self,
        threads: Threads,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self._threads = threads
        self._target = target
        self._arguments = args, kwargs or {}
        self.name = name or "thread"
        self.daemon = daemon
        self._task: Task | None = None
        self._number = next(threads.made)

    def __hash__(self) -> int:
        return self._number  # not the address: pools keep threads in sets

    def start(self) -> None:
        me = self._threads.current
        assert me is not None
        self._task = self._threads.spawn(self.name, me.owner, self._run)

    def _run(self) -> None:
        args, kwargs = self._arguments
        assert self._target is not None
        self._target(*args, **kwargs)

    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done

    def join(self, timeout: float | None = None) -> None:
        task = self._task
        if task is None or self._threads.closed:
            return
        until = None if timeout is None else self._threads.now_ns + int(timeout * 1e9)
        while not task.done:
            me = self._threads.current
            assert me is not None
            task.waiting_for_end.append(me)
            if not self._threads.park(until):
                return
