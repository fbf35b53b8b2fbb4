"""Cursors: results whose remaining batches wait to be fetched. The session identifies each cursor by a number.

    put --> number --client: take--> the remainder is sent
              └ discarded, not fetched within `LEASE_SECONDS`, or evicted: closed, which ends the query

A thread closes cursors that were not fetched in time. The thread starts with the first cursor and ends when no cursor
is left. Thread-safe.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from saros_server.api.arrow import Message
from saros_server.api.session import EmbeddedOutcome, EmbeddedSession
from saros_storage.base.clock import Clock

#: This time is short because a client fetches the other rows immediately, in the same call of its API.
LEASE_SECONDS = 5.0
#: Equal to the limit on concurrent calls. If there are this many cursors, a new one evicts the oldest one.
RESTS_MAX = 256


class CursorGone(Exception):
    """The session has no cursor with this number."""

    code = 2030

    def __init__(self) -> None:
        super().__init__("the rest of the result is no longer available: run the query again")


class ResultCursor(NamedTuple):
    """A statement's result that has not been sent completely."""

    outcome: EmbeddedOutcome
    session: EmbeddedSession
    #: Messages that were taken from the result but have not been sent yet.
    left: list[Message]
    #: The missing data that the result's head record lists. Its end record lists all other missing data.
    missing: Sequence[str] = ()


class ResultCursors:
    """The cursors of a node; their number is limited, and each exists for a limited time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        #: Maps each cursor's number to the cursor's expiry (monotonic, ns) and the cursor; the earliest expiry comes
        #: first.
        self._waiting: OrderedDict[int, tuple[int, ResultCursor]] = OrderedDict()
        self._numbers = count(1)
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        """Return the number of cursors."""
        return len(self._waiting)

    def put(self, rest: ResultCursor) -> int:
        """Add a cursor to the table, and return the cursor's unique number.

        Evicts the oldest cursor if there are too many.
        """
        until = self._clock.monotonic_ns() + round(LEASE_SECONDS * 1e9)
        pushed_out = None
        with self._changed:
            number = next(self._numbers)
            self._waiting[number] = until, rest
            if len(self._waiting) > RESTS_MAX:
                pushed_out = self._waiting.popitem(last=False)[1][1]
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="saros-rests", daemon=True)
                self._thread.start()
        if pushed_out is not None:
            pushed_out.outcome.close()
        return number

    def take(self, number: int, session: EmbeddedSession) -> ResultCursor:
        """Remove and return a cursor of a session; the caller must close it. Raises CursorGone."""
        with self._changed:
            found = self._waiting.get(number)
            if found is None or found[1].session is not session:
                raise CursorGone
            del self._waiting[number]
        return found[1]

    def close_overdue(self) -> None:
        """Close the cursors that were not fetched in time."""
        now = self._clock.monotonic_ns()
        overdue = []
        with self._changed:
            while self._waiting and (first := next(iter(self._waiting.items())))[1][0] <= now:
                del self._waiting[first[0]]
                overdue.append(first[1][1])
        for rest in overdue:
            rest.outcome.close()

    def close(self) -> None:
        """Close all cursors."""
        with self._changed:
            gone = [rest for _, rest in self._waiting.values()]
            self._waiting.clear()
            self._changed.notify()
        for rest in gone:
            rest.outcome.close()

    def _watch(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._thread = None
                    return
                until, _ = next(iter(self._waiting.values()))
                self._changed.wait(max(until - self._clock.monotonic_ns(), 0) / 1e9)
            self.close_overdue()
