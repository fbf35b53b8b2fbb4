"""Whether a file that has arrived is what a round says: its tail, every page, its times; and who looks, when.

Looking costs the processor more than all else of a round, and needs nothing but the file; making it durable waits for
the disk. So `Executor` may do both beside the chunks that come next: `InlineExecutor` is for who has one thread,
`ThreadExecutor` has some of its own. Two that look at files at a time would not be faster: too much of it needs
Python's lock.

What waits to be looked at is open: where many senders send at once, more comes than is looked at, and whoever brings it
then does it himself.
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
#: One that looks at a file, and one that waits for the disk.
_THREADS = 2
#: So much is under way or waits, of all senders: two for each file.
_WAITING_MAX = 64
#: The devices of a file, and from when to when each has points.
Found = dict[str, DeviceSpan]


class Executor(Protocol):
    """Who does what need not be done at once."""

    def begin(self, do: Callable[[], T]) -> Future[T]:
        """Do this, now or soon."""
        ...

    def close(self) -> None:
        """Nobody asks any more."""
        ...


class InlineExecutor:
    """See the module. Implements `Executor`."""

    def begin(self, do: Callable[[], T]) -> Future[T]:
        """See `Executor.begin`."""
        future: Future[T] = Future()
        try:
            future.set_result(do())
        except Exception as error:  # noqa: BLE001 (whoever asks for the result has it raised)
            future.set_exception(error)
        return future

    def close(self) -> None:
        """See `Executor.close`."""


class ThreadExecutor:
    """See the module. Implements `Executor`; its threads come with the first."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "saros-sync")
        self._room = threading.Semaphore(_WAITING_MAX)

    def begin(self, do: Callable[[], T]) -> Future[T]:
        """See `Executor.begin`; at once if much waits already."""
        if not self._room.acquire(blocking=False):
            return InlineExecutor().begin(do)
        return self._threads.submit(self._done, do)

    def close(self) -> None:
        """See `Executor.close`."""
        self._threads.shutdown(cancel_futures=True)

    def _done(self, do: Callable[[], T]) -> T:
        """Do it, and make room before anybody learns that it is done."""
        try:
            return do()
        finally:
            self._room.release()


def check_file(path: str, data: memoryview, interval: int, slices: Sequence[int]) -> Found:
    """Raise CorruptFile, UserMistake, UnsupportedFile for a file that is not one of these slices, or not whole."""
    problems = check_tsfile(path, data).problems
    if problems:
        raise problems[0]
    reader = TsFileReader(path, data)
    content_of(reader)
    devices = devices_of_file(reader)
    for number in slices:
        for device, span in devices.items():
            if span.start < number * interval or span.end >= (number + 1) * interval:
                raise CorruptFile(path, 0, f"{device} has points outside of slice {number}, where it is to be")
    return devices
