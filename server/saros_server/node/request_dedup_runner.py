"""De-duplication of writes under a lock: a write takes effect only once, even if it is sent several times.

If a client repeats a write that is still in progress, the second request waits for the answer to the first.
Thread-safe.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from saros_server.node.request_dedup import NO_REQUEST, Request, RequestTable, State


class OutcomeForgotten(Exception):
    """The write is so old that the node no longer knows whether it was executed."""

    code = 2018

    def __init__(self) -> None:
        super().__init__("the write arrived so late that it is unknown whether it was executed before: check its rows")


class Requests:
    """Executes each request of a node's clients at most once."""

    def __init__(self) -> None:
        #: Identifies this memory: see OpenReply.memory.
        self.memory = secrets.randbits(64) | 1
        self._known = RequestTable()
        self._over = threading.Condition()

    def run_once(self, request: Request, write: Callable[[], int]) -> int:
        """Run `write`, unless it has already run for this request; return its answer. A negative answer is not stored.

        Raises the errors of `write`, OutcomeForgotten.
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
