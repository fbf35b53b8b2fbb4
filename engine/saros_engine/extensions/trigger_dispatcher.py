"""The thread that AFTER triggers run on, and what waits for it.

    writer --submit--> waiting (bounded in bytes) --thread, one by one--> call

A batch is in the database before it is handed over, so nothing that happens here takes it back or fails its writer.
If there is no room, the writer waits, at most PATIENCE_SECONDS; then its batch's call is given up, and so are those of
the writers after it, without waiting, until the thread has gone on. What is given up, and what fails, is counted by
trigger. Calls that wait when the process is killed are lost; `close` gives them CLOSING_SECONDS.

Thread-safe.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

logger = logging.getLogger(__name__)

#: Bytes of batches that wait: some seconds of writing at full speed.
WAITING_BYTES_MAX = 64 << 20
#: What a slow trigger may cost a writer.
PATIENCE_SECONDS = 5.0
#: What waiting calls get when the database is closed.
CLOSING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Fired:
    """What became of the calls of one trigger on this node since the start."""

    done: int = 0
    failed: int = 0
    #: Given up, since calls before took too long.
    missed: int = 0
    #: Why the last one that failed did.
    problem: str = ""


class TriggerDispatcher:
    """See the module."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        #: Trigger, bytes, call.
        self._waiting: deque[tuple[str, int, Callable[[], None]]] = deque()
        #: Bytes of those that wait and of the one that runs.
        self._bytes = 0
        #: A writer waited in vain, and the thread has not gone on since.
        self._stuck = False
        self._closing = False
        self._thread: threading.Thread | None = None
        self._fired: dict[str, Fired] = {}

    def submit(self, trigger: str, nbytes: int, call: Callable[[], None]) -> None:
        """Have a call made; waits a while if there is no room. One that alone is too large waits for an empty queue."""
        with self._changed:
            if not self._has_room(nbytes) and not self._stuck and not self._closing:
                self._stuck = not self._changed.wait_for(
                    lambda: self._closing or self._has_room(nbytes), PATIENCE_SECONDS
                )
            if self._closing or not self._has_room(nbytes):
                self._count(trigger, missed=1)
                return
            self._waiting.append((trigger, nbytes, call))
            self._bytes += nbytes
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="saros-triggers", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _has_room(self, nbytes: int) -> bool:
        return not self._bytes or self._bytes + nbytes <= WAITING_BYTES_MAX

    def fired(self, trigger: str) -> Fired:
        """See `Fired`."""
        with self._changed:
            return self._fired.get(trigger, Fired())

    def failed(self, trigger: str, problem: str) -> None:
        """A call could not even be handed over."""
        with self._changed:
            self._count(trigger, failed=1, problem=problem)

    def drain(self, seconds: float) -> bool:
        """Wait until all calls that were handed over are made; whether they were in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._bytes and not self._waiting, seconds)

    def close(self) -> None:
        """Make the calls that wait, as far as there is time. Idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if not self.drain(CLOSING_SECONDS):
            with self._changed:
                given_up = len(self._waiting)
                self._waiting.clear()
            logger.error("triggers did not come to an end", extra={"calls": given_up})

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting:
                    return
                trigger, nbytes, call = self._waiting.popleft()
            problem = ""
            try:
                call()
            except Exception as error:
                problem = f"{type(error).__name__}: {error}".rstrip(": ")
                logger.exception("a trigger failed", extra={"trigger": trigger})
            with self._changed:
                self._bytes -= nbytes
                self._stuck = False
                self._count(trigger, done=not problem, failed=bool(problem), problem=problem)
                self._changed.notify_all()

    def _count(self, trigger: str, *, done: int = 0, failed: int = 0, missed: int = 0, problem: str = "") -> None:
        known = self._fired.get(trigger, Fired())
        self._fired[trigger] = replace(
            known,
            done=known.done + done,
            failed=known.failed + failed,
            missed=known.missed + missed,
            problem=problem or known.problem,
        )
