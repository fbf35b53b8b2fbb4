"""The interface to other nodes, which separates the code that makes decisions from the code that uses sockets.

    send     Raft's messages: never waits, may lose them, keeps their order while a connection lives
    call     one request, one answer, before a deadline
    stream   one request, which is sent at once, and a stream of answers; closing it cancels it at the other node

Requests and answers are bytes, whose format only the module that registered the handler knows. Each handler receives
the verified id of the calling node from the transport. If a handler raises an exception with an int `code`, the caller
gets a `RemoteError` with that code and the exception's text. Any other exception arrives as code 2001.

Implementations are thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from saros_cluster.placement.ring import NodeId

if TYPE_CHECKING:
    from saros_cluster.raft.messages import Message

#: Handlers of calls and of streams, called with (caller, request).
CallHandler = Callable[[NodeId, bytes], bytes]
StreamHandler = Callable[[NodeId, bytes], Iterator[bytes]]
#: Called with (sender, messages) for Raft's messages, in the order in which each sender sent them.
Receive: TypeAlias = "Callable[[NodeId, Sequence[Message]], None]"


class Unreachable(Exception):
    """The node cannot be reached, or did not answer in time.

    `sent` is True if the request may have been sent, so that its effect is unknown.
    """

    code = 2016

    def __init__(self, node: NodeId, why: str, *, sent: bool = True) -> None:
        super().__init__(f"node {node} does not answer: {why}")
        self.node = node
        self.why = why
        self.sent = sent


class BadRequest(Exception):
    """Raised by a handler that cannot read the request."""

    code = 2003

    def __init__(self, name: str, why: object) -> None:
        super().__init__(f"invalid {name!r} request: {why}")


class RemoteError(Exception):
    """An exception raised by the handler on the other node."""

    def __init__(self, node: NodeId, code: int, message: str) -> None:
        super().__init__(message)
        self.node = node
        self.code = code


class Answers(Protocol):
    """The answers of a stream, in order. Only one thread uses it at a time.

    Answers that arrive early are buffered, up to the transport's window. A generator satisfies this interface.
    """

    def __iter__(self) -> Answers: ...

    def __next__(self) -> bytes:
        """Return the next answer. Raises Unreachable, RemoteError."""
        ...

    def close(self) -> None:
        """Cancel the stream, unless it has ended. Idempotent."""
        ...


class Peers(Protocol):
    """The connection to all other nodes of the cluster."""

    def send(self, node: NodeId, messages: Sequence[Message]) -> None:
        """Send Raft's messages, or lose them. Never waits."""
        ...

    def call(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> bytes:
        """Send a request and return the answer. Raises Unreachable, RemoteError."""
        ...

    def stream(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> Answers:
        """Start a stream at once. Each time the caller waits for an answer, the answer must arrive within `timeout_s`.

        Raises Unreachable or RemoteError, here or while the caller waits for an answer.
        """
        ...
