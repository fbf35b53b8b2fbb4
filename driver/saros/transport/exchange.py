"""The rules of a call on a connection, without I/O: the meaning of its frames, the limits of silence, and how it fails.

    REQUEST -> REPLY                              Reply
            -> REPLY with MORE, ITEM ..., END     Reply, and a stream of further items
            -> ERROR                              CallFailed (ANSWERED)

If a node sends nothing for `KEEPALIVE_MS` while a call waits, the client sends a PING. If the node then sends nothing
for `KEEPALIVE_TIMEOUT_MS`, the connection counts as lost. Both kinds of connections (`node_connection`,
`saros.aio.node_connection`) follow these rules. Pure: the caller passes `now` (seconds).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

import msgspec

from saros_wire import frames, protocol
from saros_wire.frames import Call, Header, Kind
from saros_wire.generated import client_pb2

Buffer = bytes | bytearray | memoryview
#: A silent node gets a PING after `KEEPALIVE_S`, and is given up after `SILENT_S`. Both begin with the silence.
KEEPALIVE_S = protocol.KEEPALIVE_MS / 1e3
SILENT_S = KEEPALIVE_S + protocol.KEEPALIVE_TIMEOUT_MS / 1e3
#: If a cancelled call has not ended after this time, its connection is closed.
DRAIN_S = 0.5
#: Requests of a connection are numbered from 1 up to this number, and then from 1 again.
REQUEST_MAX = 0xFFFF_FFFF
#: The reason given for calls whose connection the node has closed.
CLOSED = "connection closed"
#: The first bytes of a TLS alert: the answer of a TLS port to a client without TLS.
_TLS_ALERT = b"\x15\x03"


class Fate(Enum):
    """The way in which a call failed. It decides whether the call may be repeated."""

    ANSWERED = "the node answered with an error"
    NOT_SENT = "the node has not received the whole request, and does not execute it"
    LOST = "the connection ended before the answer arrived"
    LATE = "the call timed out before the answer arrived"
    CANCELLED = "this process cancelled the call"
    BROKEN = "the node sent bytes that are not an answer"
    TOO_LARGE = "the request exceeds the limit of a message, and was not sent"


class CallFailed(Exception):
    """A call failed: there is no answer, or the answer is an error."""

    def __init__(
        self,
        fate: Fate,
        details: str = "",
        *,
        silent_s: float = 0.0,
        code: int = 0,
        partial_write: client_pb2.PartialWrite | None = None,
    ) -> None:
        """Create the exception.

        silent_s               seconds for which the node had sent nothing
        code, partial_write    from the node's answer
        """
        super().__init__(details or fate.value)
        self.fate = fate
        self.details = details or fate.value
        self.silent_s = silent_s
        self.code = code
        self.partial_write = partial_write


class Stream(Protocol):
    """A stream of the items that follow the head and body of an answer.

    The stream occupies a connection until it ends or is cancelled.
    """

    @property
    def end(self) -> bytes:
        """The head of the END frame, once it was received."""
        ...

    async def next(self) -> Buffer | None:
        """Return the next item, or None at the end. Raises CallFailed."""
        ...

    async def cancel(self) -> None:
        """Make the node end the call. `next` raises CallFailed (CANCELLED) afterwards. Idempotent."""
        ...


class Reply(NamedTuple):
    """An answer: head, body, and the stream of further items if there are any."""

    head: bytes
    body: Buffer
    rest: Stream | None = None


def large_buffer(count: int) -> memoryview:
    """Return memory for a long frame.

    Arrow's allocator reuses freed memory. With NumPy's allocator, the kernel would have to clear each page, which takes
    as long as receiving the bytes.
    """
    import pyarrow as pa

    return memoryview(pa.allocate_buffer(count)).cast("B")


def encode_request(
    call: Call, request: int, head: bytes, body: Sequence[Buffer], *, greet: bool
) -> tuple[list[Buffer], int]:
    """Return the buffers of a request, and their total size in bytes. Raises CallFailed (TOO_LARGE).

    If `greet`, begin with the preface, which comes before the first request of a connection.
    """
    body_bytes = sum([part.nbytes if type(part) is memoryview else len(part) for part in body])
    if len(head) > frames.HEAD_BYTES_MAX or body_bytes > frames.BODY_BYTES_MAX:
        raise CallFailed(
            Fate.TOO_LARGE,
            f"the request has {len(head)} + {body_bytes} bytes, more than {frames.BODY_BYTES_MAX}: divide it",
        )
    start = frames.encode_header(Kind.REQUEST, request, len(head), body_bytes, call) + head
    if greet:
        start = frames.PREFACE + start
    return [start, *body], len(start) + body_bytes


def decode_header(data: Buffer) -> Header:
    """Return the header of a frame. Raises CallFailed (BROKEN, LOST)."""
    try:
        return frames.decode_header(data)
    except frames.BadFrame as error:
        if bytes(data[:2]) == _TLS_ALERT:
            raise CallFailed(Fate.LOST, CLOSED) from None
        raise CallFailed(Fate.BROKEN, f"the answer is not of this protocol: {error}") from None


def check_frame(header: Header, head: bytes, request: int) -> None:
    """Check that a frame belongs to a request and is not an error. Raises CallFailed (ANSWERED, BROKEN)."""
    if header.kind is Kind.ERROR:
        raise _error_of(head)
    if header.request != request or header.kind not in (Kind.REPLY, Kind.ITEM, Kind.END):
        raise CallFailed(Fate.BROKEN, f"{header.kind.name} of request {header.request} in answer to {request}")


def _error_of(head: bytes) -> CallFailed:
    try:
        error = client_pb2.ErrorReply.FromString(head)
    except ValueError as cause:  # the base class of protobuf's DecodeError
        return CallFailed(Fate.BROKEN, f"the node sent an unreadable error: {cause}")
    rows = error.partial_write if error.HasField("partial_write") else None
    return CallFailed(Fate.ANSWERED, error.message, code=error.code, partial_write=rows)


class Silence:
    """A wait for bytes of a node that has sent nothing since the wait began."""

    __slots__ = ("_deadline", "_pinged", "_since")

    def __init__(self, since: float, deadline: float | None) -> None:
        """Begin a wait. `deadline` is the deadline of the call, or None."""
        self._since = since
        self._deadline = deadline
        self._pinged = False

    def wait_s(self, now: float) -> float:
        """Return the seconds to wait for bytes before the next call of `passed`."""
        limit = self._since + (SILENT_S if self._pinged else KEEPALIVE_S)
        return max((limit if self._deadline is None else min(limit, self._deadline)) - now, 0.0)

    def passed(self, now: float) -> bool:
        """Return whether to send a PING after a wait without bytes. Raises CallFailed (LATE, LOST)."""
        silent_s = now - self._since
        if silent_s >= SILENT_S:
            raise CallFailed(Fate.LOST, "no answer to a ping", silent_s=silent_s)
        if self._deadline is not None and now >= self._deadline:
            raise CallFailed(Fate.LATE)
        ping = not self._pinged and silent_s >= KEEPALIVE_S
        self._pinged |= ping
        return ping


class Credits:
    """The flow control of a stream: the number of received bytes for which the node has not yet got new credit."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken = 0

    def take(self, count: int) -> int:
        """Count the bytes of an item. Return the credit to grant now, which is often 0."""
        self._taken += count
        if self._taken < frames.CREDIT_BYTES:
            return 0
        granted, self._taken = self._taken, 0
        return granted


def credit_frame(request: int, count: int) -> bytes:
    """Return a CREDIT frame that grants a number of bytes."""
    head = frames.encode_credit(count)
    return frames.encode_header(Kind.CREDIT, request, len(head)) + head


def cancel_frame(request: int) -> bytes:
    """Return a CANCEL frame for a request."""
    return frames.encode_header(Kind.CANCEL, request)


#: A PING frame, which does not belong to a request.
PING_FRAME = frames.encode_header(Kind.PING, 0)


class Endpoint(msgspec.Struct, frozen=True):
    """The parts of an address: `host:port`, `unix-abstract:name`, or `unix:path`."""

    host: str
    port: int
    #: The path of a Unix socket, or NUL and an abstract name, or "" if the address is a host and port.
    socket_name: str = ""


#: Prefixes of the addresses of Unix sockets, with the first characters of the socket's name in system calls.
_UNIX = {"unix-abstract:": "\0", "unix:": ""}


def endpoint_of(address: str) -> Endpoint:
    """Return the parts of an address."""
    for prefix, marker in _UNIX.items():
        if address.startswith(prefix):
            return Endpoint("", 0, marker + address.removeprefix(prefix))
    host, _, port = address.rpartition(":")
    return Endpoint(host.strip("[]"), int(port))
