"""The checks of a received file (tail, every page, times), and the executors that run them.

Checking a file is the most expensive part of a round, and needs only the file. Syncing it waits for the disk. An
`Executor` can therefore check and sync files while the next chunks arrive: `InlineExecutor` runs them on the caller's
thread, `ThreadExecutor` on separate threads. A second thread for checks would gain nothing: most of their work holds
Python's global interpreter lock.

A file that waits for its check remains open, so the number of waiting files is limited. If many senders deliver files
faster than they are checked, the caller's thread does the work itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

from saros_storage.base.errors import CorruptFile
from saros_storage.folder.resource import devices_of_file
from saros_storage.loading.content import content_of
from saros_storage.scan.snapshot import DeviceSpan
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.verifier import check_tsfile

T = TypeVar("T")
#: One thread checks files, the other waits for the disk.
_THREADS = 2
#: The maximum number of running and waiting tasks, for all senders together. Each file has two tasks.
_WAITING_MAX = 64
#: The devices of a file, each with the time span of its points.
Found = dict[str, DeviceSpan]


class Executor(Protocol):
    """Runs tasks, possibly in the background."""

    def begin(self, do: Callable[[], T]) -> Future[T]:
        """Run a task at once, or later in the background."""
        ...

    def close(self) -> None:
        """End the executor. Tasks that have not begun are cancelled."""
        ...


class InlineExecutor:
    """Runs tasks at once, on the caller's thread. Implements `Executor`."""

    def begin(self, do: Callable[[], T]) -> Future[T]:
        """See `Executor.begin`."""
        future: Future[T] = Future()
        try:
            future.set_result(do())
        except Exception as error:  # noqa: BLE001 (`Future.result` raises it)
            future.set_exception(error)
        return future

    def close(self) -> None:
        """See `Executor.close`."""


class ThreadExecutor:
    """Runs tasks on separate threads, which start with the first task. Implements `Executor`."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "saros-sync")
        self._room = threading.Semaphore(_WAITING_MAX)

    def begin(self, do: Callable[[], T]) -> Future[T]:
        """See `Executor.begin`. A task runs on the caller's thread if too many are waiting."""
        if not self._room.acquire(blocking=False):
            return InlineExecutor().begin(do)
        return self._threads.submit(self._done, do)

    def close(self) -> None:
        """See `Executor.close`."""
        self._threads.shutdown(cancel_futures=True)

    def _done(self, do: Callable[[], T]) -> T:
        """Run a task, and free its place in the queue before its future is resolved."""
        try:
            return do()
        finally:
            self._room.release()


def check_file(path: str, data: memoryview, interval: int, slices: Sequence[int]) -> Found:
    """Check a file that is listed in the partitions of these slices. Return its devices.

    Raises CorruptFile, UserMistake, UnsupportedFile if the file is damaged, or has points outside any of the slices.
    """
    problems = check_tsfile(path, data).problems
    if problems:
        raise problems[0]
    reader = TsFileReader(path, data)
    content_of(reader)
    devices = devices_of_file(reader)
    for number in slices:
        for device, span in devices.items():
            if span.start < number * interval or span.end >= (number + 1) * interval:
                raise CorruptFile(path, 0, f"{device} has points outside slice {number}")
    return devices
