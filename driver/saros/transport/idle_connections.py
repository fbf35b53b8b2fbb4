"""The idle connections to a node.

Pure: the caller passes `now` (seconds), and holds a lock if threads share the connections.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, Protocol, TypeVar

#: Connections are closed after being idle for `IDLE_S`. If more than `IDLE_MAX` connections are idle, those that have
#: been idle for the longest time are closed.
IDLE_S, IDLE_MAX = 60.0, 64


class _Connection(Protocol):
    def is_quiet(self) -> bool:
        """Return whether another call may be sent: the node has neither closed the connection nor sent bytes."""
        ...


_C = TypeVar("_C", bound=_Connection)


class IdleConnections(Generic[_C]):
    """A stack of idle connections: the connection that was given back last is taken first."""

    def __init__(self) -> None:
        #: Connections with the times at which they were given back, in the order of these times.
        self._idle: deque[tuple[_C, float]] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._idle)

    def take(self) -> tuple[_C | None, list[_C]]:
        """Return a usable connection or None, and the unusable connections that were found, for the caller to close."""
        overdue: list[_C] = []
        while self._idle:
            found, _ = self._idle.pop()
            if found.is_quiet():
                return found, overdue
            overdue.append(found)
        return None, overdue

    def give_back(self, connection: _C, now: float) -> list[_C]:
        """Keep a connection whose call has ended. Return the connections that the caller must close."""
        self._idle.append((connection, now))
        overdue = []
        while self._idle and (self._closed or len(self._idle) > IDLE_MAX or self._idle[0][1] < now - IDLE_S):
            overdue.append(self._idle.popleft()[0])
        return overdue

    def clear(self) -> list[_C]:
        """Remove and return all connections, for the caller to close."""
        found = [connection for connection, _ in self._idle]
        self._idle.clear()
        return found

    def close(self) -> list[_C]:
        """Remove and return all connections, as `clear` does.

        Connections that are given back later must be closed, too: `give_back` returns them to the caller.
        """
        self._closed = True
        return self.clear()
