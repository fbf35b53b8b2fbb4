"""A pool of threads that grows if tasks wait, and shrinks if threads are idle, like Java's cached thread pool.

Thread-safe.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

#: A thread ends if it has had no task for this time.
IDLE_SECONDS = 10.0

_Task = TypeVar("_Task")


class CachedThreadPool(Generic[_Task]):
    """A pool of up to `threads_max` threads, which start tasks in the order in which they were submitted."""

    def __init__(self, run: Callable[[_Task], None], threads_max: int, name: str) -> None:
        """Prepare the pool. Its threads call `run` with each task, and `run` must not raise an exception."""
        self._run = run
        self._threads_max = threads_max
        self._name = name
        #: Guards the fields below.
        self._changed = threading.Condition()
        self._tasks: deque[_Task] = deque()
        self._threads: set[threading.Thread] = set()
        #: The number of threads without a task.
        self._idle = 0
        self._is_closed = False

    @property
    def is_crowded(self) -> bool:
        """True if more tasks wait than there are idle threads."""
        return len(self._tasks) > self._idle

    def submit(self, task: _Task) -> None:
        """Queue a task, which a thread will run. Does not wait."""
        with self._changed:
            self._tasks.append(task)
            if len(self._tasks) <= self._idle:
                self._changed.notify()
            elif len(self._threads) < self._threads_max:
                self._start_thread()

    def close(self) -> None:
        """Wait until all tasks are done and the threads have ended."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._threads.add(thread)
        thread.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                has_task = self._changed.wait_for(lambda: self._tasks or self._is_closed, IDLE_SECONDS)
                self._idle -= 1
                if not has_task or not self._tasks:
                    self._threads.discard(threading.current_thread())
                    return
                task = self._tasks.popleft()
            self._run(task)
