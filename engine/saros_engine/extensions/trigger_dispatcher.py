"""The thread that runs AFTER triggers, and its queue.

    writer --submit--> waiting (bounded in bytes) --thread, one by one--> call

A batch is written before it is submitted, so a failure here neither undoes the write nor reaches the writer. If the
queue is full, the writer waits for at most PATIENCE_SECONDS, and then drops the call for its batch. After that, until
the thread has finished a call, writers drop their calls without waiting. Dropped and failed calls are counted per
trigger. Queued calls are lost if the process is killed; `close` waits at most CLOSING_SECONDS for them.

Thread-safe.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

logger = logging.getLogger(__name__)

#: The maximum size of the queued batches: some seconds of writing at full speed.
WAITING_BYTES_MAX = 64 << 20
#: The longest delay that a slow trigger may cause a writer.
PATIENCE_SECONDS = 5.0
#: The time that queued calls have to finish when the database is closed.
CLOSING_SECONDS = 10.0


class Fired(msgspec.Struct, frozen=True):
    """Counters of the calls of one trigger on this node since the start."""

    done: int = 0
    failed: int = 0
    #: Calls that were dropped because earlier calls took too long.
    missed: int = 0
    #: The error of the last failed call.
    problem: str = ""


class TriggerDispatcher:
    """The queue of AFTER calls and its thread. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        #: Queue of (trigger, bytes, call).
        self._waiting: deque[tuple[str, int, Callable[[], None]]] = deque()
        #: The bytes of the batches of all queued calls and of the running call.
        self._bytes = 0
        #: True if a writer has waited without success, and the thread has not finished a call since then.
        self._stuck = False
        self._closing = False
        self._thread: threading.Thread | None = None
        self._fired: dict[str, Fired] = {}

    def submit(self, trigger: str, nbytes: int, call: Callable[[], None]) -> None:
        """Queue a call; wait for at most PATIENCE_SECONDS until the queue has room.

        A call larger than the limit needs an empty queue.
        """
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
        """Return the counters of the calls of a trigger."""
        with self._changed:
            return self._fired.get(trigger, Fired())

    def failed(self, trigger: str, problem: str) -> None:
        """Count a call that could not be submitted."""
        with self._changed:
            self._count(trigger, failed=1, problem=problem)

    def drain(self, seconds: float) -> bool:
        """Wait until all submitted calls have run; return False after `seconds` if they have not."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._bytes and not self._waiting, seconds)

    def close(self) -> None:
        """Run as many queued calls as CLOSING_SECONDS permit. Idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if not self.drain(CLOSING_SECONDS):
            with self._changed:
                given_up = len(self._waiting)
                self._waiting.clear()
            logger.error("triggers did not finish before the shutdown", extra={"calls": given_up})

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
