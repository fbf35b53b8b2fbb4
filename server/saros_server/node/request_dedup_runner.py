"""Writes that have one effect however often a client sends them: `request_dedup.py` behind a lock. Thread-safe.

A repetition that comes while the first is under way waits for its answer.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from saros_server.node.request_dedup import NO_REQUEST, Request, RequestTable, State


class OutcomeForgotten(Exception):
    """A write that may have been carried out, too long ago to know."""

    code = 2018

    def __init__(self) -> None:
        super().__init__("the write came so late that nobody knows whether it was carried out before")


class Requests:
    """See the module."""

    def __init__(self) -> None:
        #: Names this memory: see OpenReply.memory.
        self.memory = secrets.randbits(64) | 1
        self._known = RequestTable()
        self._over = threading.Condition()

    def run_once(self, request: Request, write: Callable[[], int]) -> int:
        """What `write` answers, now or when it was carried out for this request. A negative answer is not kept.

        Raises what `write` raises, OutcomeForgotten.
        """
        if request == NO_REQUEST:
            return write()
        with self._over:
            while (found := self._known.begin(request)) is State.RUNNING:
                self._over.wait()
        found = _remembered(found)
        return found if isinstance(found, int) else self.carry_out(request, write)

    def begin(self, request: Request) -> State | int:
        """NEW: to be carried out, by `carry_out`, or anyhow, and then `end`; RUNNING; or what was answered.

        Raises OutcomeForgotten.
        """
        if request == NO_REQUEST:
            return State.NEW
        with self._over:
            found = self._known.begin(request)
        return _remembered(found)

    def carry_out(self, request: Request, write: Callable[[], int]) -> int:
        """After `begin` found it NEW: what `write` answers, which is kept as `run_once` says."""
        answer = -1
        try:
            answer = write()
        finally:
            self.end(request, answer)
        return answer

    def end(self, request: Request, answer: int) -> None:
        """After `begin` found it NEW: it was answered; negative: it failed, and may come again."""
        if request == NO_REQUEST:
            return
        with self._over:
            if answer >= 0:
                self._known.finish(request, answer)
            else:
                self._known.give_up(request)
            self._over.notify_all()


def _remembered(found: State | int) -> State | int:
    """What `begin` found. Raises OutcomeForgotten."""
    if found is State.FORGOTTEN:
        raise OutcomeForgotten
    return found
