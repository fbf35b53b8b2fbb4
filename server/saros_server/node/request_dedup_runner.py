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
        if found is State.FORGOTTEN:
            raise OutcomeForgotten
        return found if isinstance(found, int) else self._carry_out(request, write)

    def _carry_out(self, request: Request, write: Callable[[], int]) -> int:
        answer = -1
        try:
            answer = write()
        finally:
            with self._over:
                if answer >= 0:
                    self._known.finish(request, answer)
                else:
                    self._known.give_up(request)
                self._over.notify_all()
        return answer
