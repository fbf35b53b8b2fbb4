"""Inserts of a process to one node: while calls are under way, further ones gather and go as one.

    nothing under way       goes at once, as an Insert                   a single writer never waits for others
    CALLS_MAX under way     waits; when a call is over, all that wait go together, each with its session and number
    ... and one is over     whom it answered is waited for shortly, if those answered before came again at once
    ... and that for long   goes beside them
    large                   goes at once, by itself

The third rule is for threads that write one batch after the other: else half of them always waits while the other half
is under way, and a node has two small calls where one would do.

Each has an outcome of its own. One that the node has not finished when the others are is asked for again, by itself:
that is safe, since it is numbered. Nobody waits beyond its own time limit.

One `InsertBatcher` belongs to a channel, and so to all sessions of the process at that node. Thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import grpc

from saros_wire import payload, protocol
from saros_wire.generated import client_pb2

#: With one, more gathers than with two; that is worth more to a node than to have the next call at hand.
CALLS_MAX = 1
#: What is so large gains nothing by company, and is not waited for.
ALONE_BYTES = 256 << 10
#: What waits so long does not wait any longer for the calls under way: one of them may have met with trouble.
HOLD_SECONDS = 0.25
#: Who was answered is waited for so long: a share of what the call took, and never longer than so.
AGAIN_SHARE = 0.25
AGAIN_SECONDS_MAX = 0.02
_INTERNAL = 2001


class PartRefused(grpc.RpcError):  # type: ignore[misc]
    """What the node says of one insert among several, in the form of a call that failed."""

    def __init__(self, code: int, message: str, partial_write: bytes = b"") -> None:
        super().__init__(message)
        self._code = code
        self._message = message
        self._partial_write = partial_write

    def code(self) -> grpc.StatusCode:
        """Any: the number says it."""
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        """The message."""
        return self._message

    def trailing_metadata(self) -> Sequence[tuple[str, str | bytes]]:
        """With the number, and the rows of a write that was done in part."""
        rows = ((protocol.PARTIAL_WRITE_KEY, self._partial_write),) if self._partial_write else ()
        return ((protocol.CODE_KEY, str(self._code)), *rows)


class TooLate(grpc.RpcError):  # type: ignore[misc]
    """An insert that nobody answered in time."""

    def code(self) -> grpc.StatusCode:
        """That of a call which took too long."""
        return grpc.StatusCode.DEADLINE_EXCEEDED

    def details(self) -> str:
        """Why."""
        return "Deadline Exceeded"

    def trailing_metadata(self) -> Sequence[tuple[str, str]]:
        """Nothing."""
        return ()


Answer = client_pb2.InsertOutcome | Exception


class _Part:
    """An insert that waits to go, or has gone with others."""

    __slots__ = ("answer", "columns", "deadline", "done", "session", "wait_s")

    def __init__(self, session: bytes, columns: bytes, deadline: float, wait_s: float) -> None:
        self.session = session
        self.columns = columns
        self.deadline = deadline
        self.wait_s = wait_s
        self.done = threading.Event()
        self.answer: Answer | None = None

    def end(self, answer: Answer) -> None:
        """It is known what became of it."""
        self.answer = answer
        self.done.set()


class InsertBatcher:
    """See the module."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._insert_single = channel.unary_unary(
            protocol.path_of(protocol.INSERT), response_deserializer=client_pb2.InsertReply.FromString
        )
        self._several = channel.unary_unary(
            protocol.path_of(protocol.INSERT_TOGETHER),
            request_serializer=client_pb2.InsertTogetherRequest.SerializeToString,
            response_deserializer=client_pb2.InsertTogetherReply.FromString,
        )
        self._lock = threading.Lock()
        self._waiting: deque[_Part] = deque()
        #: Calls under way; what waits goes when one of them is over.
        self._calls = 0
        #: Inserts of the call that was over last, until when they were to come again, and how many have come by then.
        self._answered = 0
        self._again_by = 0.0
        self._again = 0
        #: Notified when as many wait as are waited for.
        self._gathered = threading.Condition(self._lock)
        self._gathering = 0

    def insert(self, session: bytes, columns: bytes, timeout_s: float, wait_s: float) -> client_pb2.InsertReply:
        """The node's answer to an Insert; `wait_s`: how long the node may wait for others.

        Raises grpc.RpcError; ValueError if the channel is closed.
        """
        if len(columns) >= ALONE_BYTES:
            return self.insert_single(session, columns, timeout_s, wait_s)
        now = time.monotonic()
        deadline = now + timeout_s
        part = _Part(session, columns, deadline, wait_s)
        goes = False
        try:  # from before the call is counted: Ctrl-C may come at any step
            with self._lock:
                self._again += now <= self._again_by
                goes = self._calls < CALLS_MAX
                if goes:
                    self._calls += 1
                else:
                    self._waiting.append(part)
                    if len(self._waiting) == self._gathering:
                        self._gathered.notify_all()
            if goes:
                return self.insert_single(session, columns, timeout_s, wait_s)
        finally:
            if goes:
                self._on_call_done()
        outcome = self._await(part)
        if outcome.pending:
            passed = time.monotonic() - now
            return self.insert_single(session, columns, max(timeout_s - passed, 0.0), max(wait_s - passed, 0.0))
        return client_pb2.InsertReply(points=outcome.points, leader=outcome.leader)

    def insert_single(self, session: bytes, columns: bytes, timeout_s: float, wait_s: float) -> client_pb2.InsertReply:
        """The same, in a call of its own."""
        metadata = ((protocol.SESSION_KEY, session), wait_limit(wait_s))
        reply: client_pb2.InsertReply = self._insert_single(columns, metadata=metadata, timeout=timeout_s)
        return reply

    def _await(self, part: _Part) -> client_pb2.InsertOutcome:
        if not part.done.wait(min(HOLD_SECONDS, max(part.deadline - time.monotonic(), 0.0))):
            self._start_another_call()
            part.done.wait(max(part.deadline - time.monotonic(), 0.0))
        answer = part.answer
        if answer is None:
            raise TooLate
        if isinstance(answer, Exception):
            raise answer
        if answer.code:
            raise PartRefused(answer.code, answer.message, answer.partial_write.SerializeToString())
        return answer

    def _on_call_done(self) -> None:
        """A call is over: what waits goes."""
        with self._lock:
            self._calls -= 1
            parts = self._take() if self._calls < CALLS_MAX else []
            self._calls += bool(parts)
        self._send(parts)

    def _start_another_call(self) -> None:
        """What is under way takes long: what waits goes beside it."""
        with self._lock:
            parts = self._take()
            self._calls += bool(parts)
        self._send(parts)

    def _take(self) -> list[_Part]:
        """What goes with the next call, without those that gave up. Under the lock."""
        parts: list[_Part] = []
        size = 0
        now = time.monotonic()
        while self._waiting and len(parts) < payload.TOGETHER_MAX:
            part = self._waiting[0]
            size += len(part.columns)
            if parts and size > payload.TOGETHER_BYTES:
                break
            self._waiting.popleft()
            if part.deadline > now:
                parts.append(part)
        return parts

    def _send(self, parts: Sequence[_Part]) -> None:
        """Begin a call, if there is something to send; its end begins the next."""
        if not parts:
            return
        request = client_pb2.InsertTogetherRequest(
            parts=[client_pb2.InsertPart(session=part.session, columns=part.columns) for part in parts]
        )
        began = time.monotonic()
        left = max(part.deadline for part in parts) - began
        try:
            metadata = (wait_limit(min(part.wait_s for part in parts)),)
            call = self._several.future(request, metadata=metadata, timeout=max(left, 0.0))
        except ValueError as error:  # gRPC's word for a channel that was closed
            self._end(parts, [error] * len(parts))
        else:
            call.add_done_callback(lambda done: self._end(parts, _answers(done, len(parts)), began))

    def _end(self, parts: Sequence[_Part], answers: Sequence[Answer], began: float | None = None) -> None:
        """`began`: when the call did; None: it did not. On gRPC's thread, which does nothing but end such calls."""
        patience_s = 0.0 if began is None else self._expect(len(parts), began)
        for part, answer in zip(parts, answers, strict=True):
            part.end(answer)
        if patience_s:
            with self._lock:
                self._gathered.wait_for(lambda: len(self._waiting) >= self._gathering, patience_s)
        self._on_call_done()

    def _expect(self, count: int, began: float) -> float:
        """So many are answered now, and may come again at once: for how long they are waited for.

        0, if less than half of those that were answered before came again as quickly.
        """
        now = time.monotonic()
        patience_s = min((now - began) * AGAIN_SHARE, AGAIN_SECONDS_MAX)
        with self._lock:
            came_again = 2 * self._again >= self._answered
            self._answered, self._again, self._again_by = count, 0, now + patience_s
            self._gathering = len(self._waiting) + count
        return patience_s if came_again else 0.0


def wait_limit(seconds: float) -> tuple[str, str]:
    """The item of a write's metadata that says how long the node may wait for others."""
    return protocol.WAIT_KEY, str(round(seconds * 1e3))


def _answers(call: Any, count: int) -> Sequence[Answer]:
    """What became of each part of a call that is over. A failed call is its own exception."""
    if call.cancelled() or call.exception() is not None:
        return [call] * count
    outcomes: Sequence[Answer] = call.result().outcomes
    if len(outcomes) == count:
        return outcomes
    return [PartRefused(_INTERNAL, f"the node answered {len(outcomes)} of {count} inserts")] * count
