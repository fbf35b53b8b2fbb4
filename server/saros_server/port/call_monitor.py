"""A thread that watches clients during their calls: it detects when bytes arrive, and when clients disconnect.

    with connection.watch(...):   the watch is in a set          the call's thread; costs no system call
      10 ms later                 its socket is in an epoll      the monitor's tick
      or at `expedite`                                           the call's thread
        bytes, or the end         a callback                     the monitor
    after the `with`              removed from both; waits for a callback in progress

While new calls keep coming, the monitor wakes up at a fixed interval to look for calls that have become long. Without
new calls, it sleeps. Thread-safe.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from saros_server.port.connection import Connection, ConnectionClosed, Watch
from saros_server.port.event_poll import EDGE, GONE, READABLE, EventPoll, Waker

logger = logging.getLogger(__name__)

#: A call that takes less time than this is not watched. At this interval, the monitor looks for calls that have taken
#: longer.
LONG_CALL_SECONDS = 0.01
#: If there has been no new call for this time, the monitor sleeps.
_QUIET_SECONDS = 1.0
#: An event occurs only when new bytes arrive, so a callback may leave bytes unread.
_EVENTS = READABLE | GONE | EDGE


class CallMonitor:
    """The monitor's thread, and the watches of the calls in progress."""

    def __init__(self) -> None:
        self._epoll = EventPoll()
        self._waker = Waker()
        self._epoll.register(self._waker.fd, READABLE)
        #: Watches of calls in progress.
        self._watches: set[_Watch] = set()
        #: Maps each descriptor in the epoll to the watch of its socket.
        self._registered: dict[int, _Watch] = {}
        #: True while the thread waits without a time limit. A new watch must then wake it.
        self._is_asleep = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="saros-call-monitor", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def watch(self, connection: Connection, on_readable: Callable[[], None], on_closed: Callable[[], None]) -> _Watch:
        """See `Connection.watch`."""
        return _Watch(self, connection, on_readable, on_closed)

    def close(self) -> None:
        """Stop the thread. No call may be in progress."""
        self._is_closed = True
        self._waker.wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._epoll.close()
        self._waker.close()

    def add(self, watch: _Watch) -> None:
        """Add the watch of a call that is beginning."""
        self._watches.add(watch)
        if self._is_asleep:
            self._waker.wake()

    def remove(self, watch: _Watch) -> None:
        """Remove the watch of a call that is ending. With the watch's lock held."""
        self._watches.discard(watch)
        if watch.fd >= 0:
            self._registered.pop(watch.fd, None)
            with suppress(OSError):  # the socket is closed
                self._epoll.unregister(watch.fd)

    def _run(self) -> None:
        busy_at = time.monotonic()
        while not self._is_closed:
            now = time.monotonic()
            busy_at = now if self._register_long(now) else busy_at
            self._is_asleep = now - busy_at > _QUIET_SECONDS
            if self._is_asleep and self._has_new():
                self._is_asleep = False
            for fd, events in self._epoll.poll(None if self._is_asleep else LONG_CALL_SECONDS):
                self._on_events(fd, events)

    def _has_new(self) -> bool:
        return any(watch.fd < 0 for watch in list(self._watches))

    def _register_long(self, now: float) -> bool:
        """Put the sockets of long calls into the epoll. Return whether the socket of any call was missing before."""
        new = [watch for watch in list(self._watches) if watch.fd < 0]
        for watch in new:
            if now - watch.since >= LONG_CALL_SECONDS:
                watch.expedite()
        return bool(new)

    def register(self, watch: _Watch) -> None:
        """Put the socket of a watch into the epoll. With the watch's lock held."""
        watch.fd = watch.connection.fileno()
        self._registered[watch.fd] = watch
        self._epoll.register(watch.fd, _EVENTS)

    def _on_events(self, fd: int, events: int) -> None:
        if fd == self._waker.fd:
            self._waker.drain()
            return
        watch = self._registered.get(fd)
        if watch is not None:
            watch.on_events(is_closed=bool(events & GONE))


class _Watch:
    """The watch of one call: a context manager."""

    __slots__ = ("_is_over", "_lock", "_monitor", "_on_closed", "_on_readable", "connection", "fd", "since")

    def __init__(
        self,
        monitor: CallMonitor,
        connection: Connection,
        on_readable: Callable[[], None],
        on_closed: Callable[[], None],
    ) -> None:
        self.connection = connection
        #: The start of the call, on the monotonic clock.
        self.since = 0.0
        #: The descriptor in the epoll, or -1 if it is not there.
        self.fd = -1
        self._monitor = monitor
        self._on_readable, self._on_closed = on_readable, on_closed
        #: Held while a callback runs, and while the watch is being removed.
        self._lock = threading.Lock()
        self._is_over = False

    def __enter__(self) -> Watch:
        self.since = time.monotonic()
        self._monitor.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._is_over = True
            self._monitor.remove(self)

    def expedite(self) -> None:
        """See `Watch.expedite`. Bytes that arrived with the request, and are still unread, count as new bytes."""
        with self._lock:
            if not self._is_over and self.fd < 0:
                self._monitor.register(self)
                if self.connection.buffered:
                    self._call(is_closed=False)

    def on_events(self, *, is_closed: bool) -> None:
        """Notify the protocol, unless the call has ended."""
        with self._lock:
            if not self._is_over:
                self._call(is_closed=is_closed)

    def _call(self, *, is_closed: bool) -> None:
        try:
            if not is_closed:
                self._on_readable()
        except ConnectionClosed:
            is_closed = True
        except Exception:
            logger.exception("a protocol failed to read what a client sent during a call")
            is_closed = True
        if is_closed:
            self._on_closed()
