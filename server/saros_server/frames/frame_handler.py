"""The frames of one connection.

    connection's thread: handle() --> REQUEST --> operation --> REPLY, ITEMs under credits, END; or ERROR
    call monitor, while the call lasts: scans the received frames: CANCEL, CREDIT and PING take effect at once;
                                        requests stay in the connection's buffer until it is their turn

The monitor does not consume frames: `handle` reads all frames, and skips those that have already taken effect. An
invalid frame ends the connection, with an ERROR frame for request 0. An error of a request does not end the connection.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from google.protobuf.message import DecodeError

from saros_engine.base.errors import QueryKilled
from saros_server.api.cancellation import CancelToken
from saros_server.api.client_api import ClientApi
from saros_server.api.errors import BadMessage, refusal_of, rows_left_of
from saros_server.frames.calls import CALLS, Buffers, Caller, CallType, Reply, partial_write
from saros_server.frames.credit_window import CreditWindow
from saros_server.port.connection import Connection, ConnectionClosed, Watch
from saros_wire.frames import (
    CLIENT_KINDS,
    HEAD_BYTES_MAX,
    HEADER_BYTES,
    MAGIC,
    MORE,
    PREFACE,
    PREFIX_BYTES,
    QUEUED_BYTES,
    QUEUED_REQUESTS,
    VERSION,
    BadFrame,
    Header,
    Kind,
    decode_credit,
    decode_header,
    decode_prefix,
    encode_header,
)
from saros_wire.generated import client_pb2

#: The maximum number of bytes of the head of a CANCEL, CREDIT or PING.
_CONTROL_BYTES_MAX = 64
_BAD_MESSAGE, _WRONG_VERSION = 2003, 2015
_NO_BODY = memoryview(b"")


class _Running(msgspec.Struct):
    """The request in progress."""

    number: int
    cancel: CancelToken = msgspec.field(default_factory=CancelToken)
    window: CreditWindow | None = None


class FrameHandler:
    """An implementation of `saros_server.port.protocols.Handler` for the native protocol."""

    def __init__(self, api: ClientApi, connection: Connection) -> None:
        self._api = api.connect(connection.peer)
        self._connection = connection
        self._is_greeted = False
        #: The position in the stream of bytes up to which the monitor has scanned it.
        self._seen = 0
        #: The ids of the requests that the monitor has seen but that have not begun, and the ids of those among them
        #: that were canceled.
        self._queued: set[int] = set()
        self._canceled: set[int] = set()
        self._running: _Running | None = None

    def handle(self) -> bool:
        """See `Handler.handle`."""
        try:
            if not self._is_greeted:
                self._greet()
                if not self._connection.buffered:
                    return True
            start = self._connection.position
            header = _client_header(self._connection.read(HEADER_BYTES))
            if header.kind is Kind.REQUEST:
                self._run(header)
            else:
                head = bytes(self._connection.read(header.head_bytes))
                if start >= self._seen:
                    self._obey(header, head)
        except _WrongVersion as error:
            self._connection.post(error_frame(0, _WRONG_VERSION, str(error)))
            return False
        except BadFrame as error:
            self._connection.post(error_frame(0, _BAD_MESSAGE, f"not a frame: {error}"))
            return False
        return True

    def close(self) -> None:
        """See `Handler.close`.

        Sessions outlive their connections for a short time, so that clients can use them on other connections.
        """
        self._api.close()

    def _greet(self) -> None:
        """Read the preface. Raises BadFrame."""
        preface = bytes(self._connection.read(len(PREFACE)))
        self._is_greeted = True
        version = preface[len(MAGIC)]
        if version != VERSION:
            raise _WrongVersion(version)
        if preface != PREFACE:
            raise BadFrame(f"a preface {preface!r}")

    # ------------------------------------------------------------------------------------------ requests

    def _run(self, header: Header) -> None:
        """Read a request, execute it, and answer it. Raises BadFrame, ConnectionClosed."""
        call = CALLS.get(header.call)
        if call is None:
            raise BadFrame(f"call {header.call}")
        if header.body_bytes and not call.has_body:
            raise BadFrame(f"a body of {header.body_bytes} bytes for call {header.call}, which has none")
        head = bytes(self._connection.read(header.head_bytes))
        token, wait_ms = decode_prefix(head)
        body = self._connection.read_buffer(header.body_bytes) if header.body_bytes else _NO_BODY
        running = self._running = _Running(header.request)
        caller = Caller(self._api, token, wait_ms, running.cancel)
        with self._connection.watch(self._look_ahead, running.cancel.cancel) as watch:
            try:
                self._check_not_canceled(running)
                self._answer(running, call.run(caller, _message(call, head), body), watch)
            except Exception as error:
                running.cancel.cancel()  # the call may have opened a result, which must be closed
                if isinstance(error, ConnectionClosed):
                    raise
                self._refuse(running.number, error)
        self._running = None

    def _answer(self, running: _Running, reply: Reply, watch: Watch) -> None:
        sizes = len(reply.head), sum(map(len, reply.body))
        if reply.items is None:
            self._connection.send([encode_header(Kind.REPLY, running.number, *sizes) + reply.head, *reply.body])
            return
        running.window = CreditWindow()
        if not running.cancel.on_cancel(running.window.close):
            running.window.close()
        self._connection.send([encode_header(Kind.REPLY, running.number, *sizes, MORE) + reply.head, *reply.body])
        self._send_items(running, running.window, reply.items, watch)
        end = reply.end()
        self._connection.send([encode_header(Kind.END, running.number, len(end)) + end])

    def _send_items(self, running: _Running, window: CreditWindow, items: Iterable[Buffers], watch: Watch) -> None:
        for item in items:
            size = sum(map(len, item))
            window.take(size, before_wait=watch.expedite)
            self._check_not_canceled(running)
            self._connection.send([encode_header(Kind.ITEM, running.number, 0, size), *item])

    def _check_not_canceled(self, running: _Running) -> None:
        self._queued.discard(running.number)
        if running.number in self._canceled:
            self._canceled.discard(running.number)
            running.cancel.cancel()
        if running.cancel.cancelled:
            raise QueryKilled("the client cancelled the request")

    def _refuse(self, number: int, error: Exception) -> None:
        code, message = refusal_of(error)
        rows = rows_left_of(error)
        left = None if rows is None else partial_write(rows)
        self._connection.send([error_frame(number, code, message, left)])

    # ------------------------------------------------------------------------------------------ while a call runs

    def _look_ahead(self) -> None:
        """Read the frames that arrive during a call, and handle control frames at once. Raises ConnectionClosed.

        Runs on the call monitor's thread.
        """
        more = True
        while more and len(self._queued) < QUEUED_REQUESTS:
            more = self._connection.pull(QUEUED_BYTES)
            self._walk()

    def _walk(self) -> None:
        """Scan the complete frames in the buffer, but stop at an invalid frame, which `handle` reports."""
        position, buffered = self._connection.position, self._connection.buffered
        offset = max(self._seen - position, 0)
        while len(buffered) - offset >= HEADER_BYTES and len(self._queued) < QUEUED_REQUESTS:
            try:
                header = _client_header(buffered[offset : offset + HEADER_BYTES])
                start = offset + HEADER_BYTES
                end = start + header.head_bytes + header.body_bytes
                if end > len(buffered):
                    break
                if header.kind is Kind.REQUEST:
                    self._queued.add(header.request)
                else:
                    self._obey(header, bytes(buffered[start:end]))
            except BadFrame:
                break
            offset = end
        self._seen = position + offset

    def _obey(self, header: Header, head: bytes) -> None:
        """Execute a CANCEL, CREDIT or PING. Raises BadFrame, ConnectionClosed."""
        running = self._running
        match header.kind:
            case Kind.PING:
                self._connection.post(encode_header(Kind.PONG, header.request))
            case Kind.CREDIT:
                count = decode_credit(head)
                if running is not None and running.number == header.request and running.window is not None:
                    running.window.grant(count)
            case Kind.CANCEL:
                if header.request in self._queued:
                    self._canceled.add(header.request)
                elif running is not None and running.number == header.request:
                    running.cancel.cancel()


class _WrongVersion(Exception):
    """The client speaks another version of the protocol."""

    def __init__(self, version: int) -> None:
        remedy = "use a newer driver" if version < VERSION else "use an older driver, or a newer node"
        super().__init__(f"this node speaks protocol {VERSION}, the client {version}: {remedy}")


def error_frame(number: int, code: int, message: str, rows: client_pb2.PartialWrite | None = None) -> bytes:
    """Return the frame that ends a request with an error. If the request is 0, the frame ends the connection."""
    reply = client_pb2.ErrorReply(code=code, message=message, partial_write=rows)
    head: bytes = reply.SerializeToString()
    if len(head) > HEAD_BYTES_MAX:
        return error_frame(number, code, message[: HEAD_BYTES_MAX // 8])
    return encode_header(Kind.ERROR, number, len(head)) + head


def _client_header(data: memoryview) -> Header:
    """Return the header of a client's frame. Raises BadFrame."""
    header = decode_header(data)
    if header.kind not in CLIENT_KINDS:
        raise BadFrame(f"a frame {header.kind.name}, which only nodes send")
    if header.kind is not Kind.REQUEST and (header.body_bytes or header.head_bytes > _CONTROL_BYTES_MAX):
        raise BadFrame(f"a frame {header.kind.name} of {header.head_bytes} and {header.body_bytes} bytes")
    return header


def _message(call: CallType, head: bytes) -> object:
    """Return the message of a request's head. Raises BadMessage."""
    try:
        return call.decode(head[PREFIX_BYTES:])
    except DecodeError as error:
        raise BadMessage(f"a message that cannot be read: {error}") from error
