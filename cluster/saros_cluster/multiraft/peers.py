"""How a node reaches the others: the border between what decides and what owns sockets.

    send     Raft's messages: never waits, may lose them, keeps their order while a connection lives
    call     one question, one answer, before a deadline
    stream   one question, which goes out at once, and a stream of answers; closing it tells the other side

A request and an answer are bytes; what they mean is known to whoever registered the name. A handler gets the id of the
node that asks, which the transport has verified. An exception of a handler that has an int `code` arrives as
`RemoteError` with that code and its text; any other as code 2001.

Implementations are thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from saros_cluster.placement.ring import NodeId

if TYPE_CHECKING:
    from saros_cluster.raft.messages import Message

#: What answers a call, and what answers a stream: (who asks, request).
CallHandler = Callable[[NodeId, bytes], bytes]
StreamHandler = Callable[[NodeId, bytes], Iterator[bytes]]
#: What takes Raft's messages of one sender, in order.
Receive: TypeAlias = "Callable[[NodeId, Sequence[Message]], None]"


class Unreachable(Exception):
    """The node did not answer in time, or cannot be reached.

    `sent`: whether the request may have been, so that its effect is not known.
    """

    code = 2016

    def __init__(self, node: NodeId, why: str, *, sent: bool = True) -> None:
        super().__init__(f"node {node} does not answer: {why}")
        self.node = node
        self.why = why
        self.sent = sent


class BadRequest(Exception):
    """What a handler raises if it cannot read the request."""

    code = 2003

    def __init__(self, name: str, why: object) -> None:
        super().__init__(f"no request of {name!r}: {why}")


class RemoteError(Exception):
    """The other node's handler raised this."""

    def __init__(self, node: NodeId, code: int, message: str) -> None:
        super().__init__(message)
        self.node = node
        self.code = code


class Answers(Protocol):
    """A stream's answers, as they come; one thread's at a time.

    What comes before it is asked for is kept, up to the transport's window. A generator does.
    """

    def __iter__(self) -> Answers: ...

    def __next__(self) -> bytes:
        """The next answer. Raises Unreachable, RemoteError."""
        ...

    def close(self) -> None:
        """Cancel, or nothing if it has ended. Idempotent."""
        ...


class Peers(Protocol):
    """See the module."""

    def send(self, node: NodeId, messages: Sequence[Message]) -> None:
        """Send, or lose, messages of Raft. Never waits."""
        ...

    def call(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> bytes:
        """Ask. Raises Unreachable, RemoteError."""
        ...

    def stream(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> Answers:
        """Ask for a stream, at once; each answer must come within `timeout_s` of being waited for.

        Raises Unreachable, RemoteError, also between answers.
        """
        ...
