"""Wait for events of sockets: on Linux with `select.epoll` and an eventfd, elsewhere with `select.poll` and a pipe.

`EventPoll` has the methods of `select.epoll` that a port uses. One thread waits in `poll` while other threads register
sockets. A `Waker` has a descriptor, which its method `wake` makes readable: this wakes a thread that polls it. A call
of the portable `poll` takes time proportional to the number of sockets, which is good enough for development.
Thread-safe.
"""

from __future__ import annotations

import os
import select
import threading
import time

#: Bytes or the end of the stream can be read.
READABLE: int = select.POLLIN
#: The peer has closed the connection, or only the direction in which it sends.
GONE: int = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
#: A flag: after one event, the socket has no more events until `modify` is called.
ONCE: int = getattr(select, "EPOLLONESHOT", 1 << 30)
#: A flag: the socket has an event when new bytes arrive, but not for bytes that were left unread.
EDGE: int = getattr(select, "EPOLLET", 1 << 31)
_FLAGS = ONCE | EDGE
#: `select.poll` has no edge-triggered events. With it, a socket that has unread bytes has an event at this interval.
_EDGE_SECONDS = 0.05


class PortablePoll:
    """The methods of `select.epoll`, implemented with `select.poll`."""

    def __init__(self) -> None:
        self._waker = PortableWaker()
        #: Guards the next two.
        self._lock = threading.Lock()
        #: For each descriptor, the events to wait for, combined with flags.
        self._wanted: dict[int, int] = {}
        #: For each descriptor with `EDGE` that has just had an event, the time from which it is polled again.
        self._resting: dict[int, float] = {}

    def register(self, fd: int, eventmask: int) -> None:
        """Wait for events of a descriptor. The entry of a closed descriptor with the same number is replaced."""
        with self._lock:
            self._wanted[fd] = eventmask
            self._resting.pop(fd, None)
        self._waker.wake()

    def modify(self, fd: int, eventmask: int) -> None:
        """Wait for these events of the descriptor instead, or, after its event with `ONCE`, for another one."""
        self.register(fd, eventmask)

    def unregister(self, fd: int) -> None:
        """Stop waiting. Raises OSError if the descriptor is unknown."""
        with self._lock:
            self._resting.pop(fd, None)
            if self._wanted.pop(fd, None) is None:
                raise FileNotFoundError(fd)

    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
        """Wait for events. Return each descriptor with its events, or an empty list after `timeout` seconds."""
        limit = None if timeout is None else time.monotonic() + timeout
        while True:
            now = time.monotonic()
            poll, ends = self._poll_of_now(now, limit)
            raw = poll.poll(None if ends is None else max(ends - now, 0.0) * 1_000)
            found = self._taken(raw)
            if found or (limit is not None and time.monotonic() >= limit):
                return found

    def close(self) -> None:
        """Close the descriptors of the poll itself."""
        self._waker.close()

    def _poll_of_now(self, now: float, limit: float | None) -> tuple[select.poll, float | None]:
        """Return a poll of the descriptors to wait for, and the time at which to stop waiting."""
        poll = select.poll()
        poll.register(self._waker.fd, READABLE)
        with self._lock:
            for fd in [fd for fd, until in self._resting.items() if until <= now]:
                del self._resting[fd]
            for fd, wanted in self._wanted.items():
                if wanted & ~_FLAGS and fd not in self._resting:
                    poll.register(fd, wanted & ~_FLAGS)
            moments = [*self._resting.values(), *([] if limit is None else [limit])]
        return poll, min(moments, default=None)

    def _taken(self, raw: list[tuple[int, int]]) -> list[tuple[int, int]]:
        found = []
        with self._lock:
            for fd, events in raw:
                wanted = self._wanted.get(fd)
                if fd == self._waker.fd:
                    self._waker.drain()
                elif wanted is not None and events & select.POLLNVAL:
                    del self._wanted[fd]  # it was closed
                elif wanted is not None:
                    found.append((fd, events))
                    if wanted & ONCE:
                        self._wanted[fd] = 0
                    elif wanted & EDGE:
                        self._resting[fd] = time.monotonic() + _EDGE_SECONDS
        return found


class PortableWaker:
    """A waker that uses a pipe."""

    def __init__(self) -> None:
        self.fd, self._end = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._end, False)

    def wake(self) -> None:
        """Make the descriptor readable."""
        try:
            os.write(self._end, b"\0")
        except BlockingIOError:
            return  # The pipe is full, so its descriptor is already readable.

    def drain(self) -> None:
        """Make it unreadable."""
        try:
            while os.read(self.fd, 4_096):
                pass
        except BlockingIOError:
            return

    def close(self) -> None:
        """Free the descriptors."""
        os.close(self.fd)
        os.close(self._end)


class EventfdWaker:
    """A waker that uses an eventfd of Linux."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def wake(self) -> None:
        """Make the descriptor readable."""
        os.eventfd_write(self.fd, 1)

    def drain(self) -> None:
        """Make it unreadable."""
        os.eventfd_read(self.fd)

    def close(self) -> None:
        """Free the descriptor."""
        os.close(self.fd)


EventPoll = select.epoll if hasattr(select, "epoll") else PortablePoll
Waker = EventfdWaker if hasattr(os, "eventfd") else PortableWaker
