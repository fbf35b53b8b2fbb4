"""Inserts of a process to one node: while calls are under way, further ones gather and go as one.

    nothing under way       goes at once, as an Insert                   a single writer never waits for others
    CALLS_MAX under way     waits; when a call is over, all that wait go together, each with its session and number
    ... and that for long   goes beside them
    large                   goes at once, by itself

Each has an outcome of its own. One that the node has not finished when the others are is asked for again, by itself:
that is safe, since it is numbered. Nobody waits beyond its own time limit.

One `Together` belongs to a channel, and so to all sessions of the process at that node. Thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import grpc

from saros_wire import protocol
from saros_wire.generated import client_pb2

#: With one, more gathers than with two; that is worth more to a node than to have the next call at hand.
CALLS_MAX = 1
#: What is so large gains nothing by company, and is not waited for.
ALONE_BYTES = 256 << 10
#: What waits so long does not wait any longer for the calls under way: one of them may have met with trouble.
HOLD_SECONDS = 0.25
_INTERNAL = 2001


class PartRefused(grpc.RpcError):  # type: ignore[misc]
    """What the node says of one insert among several, in the form of a call that failed."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self._code = code
        self._message = message

    def code(self) -> grpc.StatusCode:
        """Any: the number says it."""
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        """The message."""
        return self._message

    def trailing_metadata(self) -> Sequence[tuple[str, str]]:
        """With the number."""
        return ((protocol.CODE_KEY, str(self._code)),)


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

    __slots__ = ("answer", "columns", "deadline", "over", "session")

    def __init__(self, session: bytes, columns: bytes, deadline: float) -> None:
        self.session = session
        self.columns = columns
        self.deadline = deadline
        self.over = threading.Event()
        self.answer: Answer | None = None

    def end(self, answer: Answer) -> None:
        """It is known what became of it."""
        self.answer = answer
        self.over.set()


class Together:
    """See the module."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._alone = channel.unary_unary(
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

    def insert(self, session: bytes, columns: bytes, timeout_s: float) -> client_pb2.InsertReply:
        """The node's answer to an Insert. Raises grpc.RpcError; ValueError if the channel is closed."""
        if len(columns) >= ALONE_BYTES:
            return self.insert_alone(session, columns, timeout_s)
        deadline = time.monotonic() + timeout_s
        with self._lock:
            goes = self._calls < CALLS_MAX
            if goes:
                self._calls += 1
            else:
                part = _Part(session, columns, deadline)
                self._waiting.append(part)
        if goes:
            try:
                return self.insert_alone(session, columns, timeout_s)
            finally:
                self._go_on()
        outcome = self._await(part)
        if outcome.pending:
            return self.insert_alone(session, columns, max(deadline - time.monotonic(), 0.0))
        return client_pb2.InsertReply(points=outcome.points, leader=outcome.leader)

    def insert_alone(self, session: bytes, columns: bytes, timeout_s: float) -> client_pb2.InsertReply:
        """The same, in a call of its own."""
        metadata = ((protocol.SESSION_KEY, session),)
        reply: client_pb2.InsertReply = self._alone(columns, metadata=metadata, timeout=timeout_s)
        return reply

    def _await(self, part: _Part) -> client_pb2.InsertOutcome:
        if not part.over.wait(min(HOLD_SECONDS, max(part.deadline - time.monotonic(), 0.0))):
            self._go_past()
            part.over.wait(max(part.deadline - time.monotonic(), 0.0))
        answer = part.answer
        if answer is None:
            raise TooLate
        if isinstance(answer, Exception):
            raise answer
        if answer.code:
            raise PartRefused(answer.code, answer.message)
        return answer

    def _go_on(self) -> None:
        """A call is over: what waits goes."""
        with self._lock:
            self._calls -= 1
            parts = self._take() if self._calls < CALLS_MAX else []
            self._calls += bool(parts)
        self._send(parts)

    def _go_past(self) -> None:
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
        while self._waiting and len(parts) < protocol.TOGETHER_MAX:
            part = self._waiting[0]
            size += len(part.columns)
            if parts and size > protocol.TOGETHER_BYTES:
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
        left = max(part.deadline for part in parts) - time.monotonic()
        try:
            call = self._several.future(request, timeout=max(left, 0.0))
        except ValueError as error:  # gRPC's word for a channel that was closed
            self._end(parts, [error] * len(parts))
        else:
            call.add_done_callback(lambda done: self._end(parts, _answers(done, len(parts))))

    def _end(self, parts: Sequence[_Part], answers: Sequence[Answer]) -> None:
        for part, answer in zip(parts, answers, strict=True):
            part.end(answer)
        self._go_on()


def _answers(call: Any, count: int) -> Sequence[Answer]:
    """What became of each part of a call that is over. A failed call is its own exception."""
    if call.cancelled() or call.exception() is not None:
        return [call] * count
    outcomes: Sequence[Answer] = call.result().outcomes
    if len(outcomes) == count:
        return outcomes
    return [PartRefused(_INTERNAL, f"the node answered {len(outcomes)} of {count} inserts")] * count
