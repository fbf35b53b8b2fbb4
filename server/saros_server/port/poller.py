"""A thread that accepts clients and watches all idle ones. So an idle client does not occupy a thread.

    listening socket --accept--> on_accept(socket)
    park(client) --> [ waits ] --bytes, the end, or the deadline--> on_ready(client)

A parked client belongs to the poller until an event or its deadline, when the poller passes it to `on_ready`, or until
`close` returns it. Thread-safe.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from typing import Any

from saros_server.port.client import Client
from saros_server.port.event_poll import GONE, ONCE, READABLE, EventPoll, Waker

logger = logging.getLogger(__name__)

_EVENTS = READABLE | GONE | ONCE
#: After accepting this number of connections, the thread handles the events of parked clients before it accepts more.
_ACCEPTED_MAX = 100
#: If the operating system has no descriptor or no memory for a new client, the thread accepts no clients for this time.
_PAUSE_SECONDS = 0.5
#: The thread wakes up this long after a deadline. This makes certain that the deadline has passed.
_LATE_SECONDS = 0.001


class Poller:
    """The poller's thread, which runs from `start` to `close`."""

    def __init__(
        self,
        listening: Sequence[socket.socket],
        on_accept: Callable[[socket.socket, socket.socket, Any], None],
        on_ready: Callable[[Client], None],
    ) -> None:
        """Prepare the thread, which will call `on_accept` and `on_ready`. Neither function may wait.

        The arguments of `on_accept` are the listening socket, the client's socket, and the client's address.
        """
        self._listening = {found.fileno(): found for found in listening}
        self._on_accept, self._on_ready = on_accept, on_ready
        self._epoll = EventPoll()
        self._waker = Waker()
        #: Guards the next two fields, and `_is_closed`.
        self._lock = threading.Lock()
        #: Parked clients by descriptor. The thread that removes a client from here then owns the client.
        self._parked: dict[int, Client] = {}
        #: A heap of clients, ordered by deadline. It may also have clients that are no longer parked.
        self._deadlines: list[tuple[float, int, Client]] = []
        #: The descriptors that were registered with the epoll, until their sockets are closed.
        self._known: set[int] = set()
        #: The time until which no client is accepted, or 0 if clients are being accepted.
        self._paused_until = 0.0
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="saros-port", daemon=True)

    def start(self) -> None:
        """Start the thread, and with it the acceptance of clients."""
        self._epoll.register(self._waker.fd, READABLE)
        self._accept_again()
        self._thread.start()

    def park(self, client: Client) -> bool:
        """Park the client until its next event or its deadline.

        After `close`, the client is not parked, and the result is False.
        """
        fd = client.connection.fileno()
        with self._lock:
            if self._is_closed:
                return False
            client.is_parked = True
            self._parked[fd] = client
            if client.deadline is not None:
                heappush(self._deadlines, (client.deadline, id(client), client))
        if client.deadline is not None and threading.current_thread() is not self._thread:
            self._waker.wake()
        self._arm(fd)
        return True

    def forget(self, fd: int) -> None:
        """Forget the socket of a client. The caller must close the socket immediately afterwards."""
        self._known.discard(fd)

    def close(self) -> list[Client]:
        """Stop accepting clients, and end the thread. Return the clients that were parked."""
        with self._lock:
            self._is_closed = True
        self._waker.wake()
        if self._thread.ident is not None:
            self._thread.join()
        for listening in self._listening.values():
            listening.close()
        taken = [self._take(fd) for fd in list(self._parked)]
        return [client for client in taken if client is not None]

    def release(self) -> None:
        """Close the poller's own descriptors. No client may be left."""
        self._epoll.close()
        self._waker.close()

    def _take(self, fd: int, wanted: Client | None = None) -> Client | None:
        """Remove the parked client that has this descriptor, and return it.

        Return None if there is no such client, or if `wanted` is a different client.
        """
        with self._lock:
            client = self._parked.get(fd)
            if client is None or (wanted is not None and client is not wanted):
                return None
            del self._parked[fd]
            client.is_parked = False
            return client

    def _arm(self, fd: int) -> None:
        with suppress(OSError):  # Another thread has taken the client and closed it.
            if fd in self._known:
                self._epoll.modify(fd, _EVENTS)
            else:
                self._known.add(fd)
                self._epoll.register(fd, _EVENTS)

    def _run(self) -> None:
        while not self._is_closed:
            for fd, _ in self._epoll.poll(self._patience()):
                self._on_event(fd)
            self._expire()

    def _on_event(self, fd: int) -> None:
        if fd == self._waker.fd:
            self._waker.drain()
        elif fd in self._listening:
            self._accept(self._listening[fd])
        elif (client := self._take(fd)) is not None:
            self._on_ready(client)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTED_MAX):
            try:
                accepted, address = listening.accept()
            except BlockingIOError:
                return
            except ConnectionError:
                continue  # the client has disconnected already
            except OSError as error:
                logger.warning("clients cannot be accepted", extra={"error": str(error)})
                self._pause()
                return
            self._on_accept(listening, accepted, address)

    def _pause(self) -> None:
        self._paused_until = time.monotonic() + _PAUSE_SECONDS
        for fd in self._listening:
            self._epoll.unregister(fd)

    def _accept_again(self) -> None:
        self._paused_until = 0.0
        for fd in self._listening:
            self._epoll.register(fd, READABLE)

    def _patience(self) -> float | None:
        """Return the number of seconds to wait until the next deadline, or None if there are no deadlines."""
        moments = [self._paused_until] if self._paused_until else []
        with self._lock:
            moments += [entry[0] for entry in self._deadlines[:1]]
        return max(min(moments) - time.monotonic(), 0.0) + _LATE_SECONDS if moments else None

    def _expire(self) -> None:
        """Pass each client whose deadline is over to `on_ready`. If a pause is over, accept clients again."""
        now = time.monotonic()
        if self._paused_until and now >= self._paused_until:
            self._accept_again()
        with self._lock:
            over = []
            while self._deadlines and self._deadlines[0][0] <= now:
                over.append(heappop(self._deadlines))
        for deadline, _, client in over:
            if client.deadline == deadline and self._take(client.connection.fileno(), client) is not None:
                self._on_ready(client)
