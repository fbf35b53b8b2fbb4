"""The connections to a node that wait for their next call. The caller holds a lock where threads share them."""

from __future__ import annotations

from collections import deque
from typing import Generic, Protocol, TypeVar

#: A connection that was idle for this long is closed, as are the longest idle beyond this number.
IDLE_S, IDLE_MAX = 60.0, 64


class _Connection(Protocol):
    def is_quiet(self) -> bool:
        """Return whether another call may be sent: the node has neither closed the connection nor sent bytes."""
        ...


_C = TypeVar("_C", bound=_Connection)


class IdleConnections(Generic[_C]):
    """See the module. Pure: `now` in seconds."""

    def __init__(self) -> None:
        #: With the moment at which each was given back, the longest idle first.
        self._idle: deque[tuple[_C, float]] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._idle)

    def take(self) -> tuple[_C | None, list[_C]]:
        """Return a quiet connection, or None, and the others that were looked at, which are to be closed."""
        overdue: list[_C] = []
        while self._idle:
            found, _ = self._idle.pop()
            if found.is_quiet():
                return found, overdue
            overdue.append(found)
        return None, overdue

    def give_back(self, connection: _C, now: float) -> list[_C]:
        """Keep a connection whose call is over; return those to be closed."""
        self._idle.append((connection, now))
        overdue = []
        while self._idle and (self._closed or len(self._idle) > IDLE_MAX or self._idle[0][1] < now - IDLE_S):
            overdue.append(self._idle.popleft()[0])
        return overdue

    def clear(self) -> list[_C]:
        """Return all of them, to be closed."""
        found = [connection for connection, _ in self._idle]
        self._idle.clear()
        return found

    def close(self) -> list[_C]:
        """As `clear`; those that are given back later are to be closed as well."""
        self._closed = True
        return self.clear()
