"""IoTDB's session protocol on the port: connections, their frames and calls.

    frame --header--> method --arguments--> function --> answer frame
                        |         +-- unreadable: an error of the protocol, and the connection continues
                        +-- unknown: likewise
    another format: an error that the client can read, if it speaks a variant of Thrift; the connection is closed

A failed call is answered by a status with IoTDB's code. If the session has ended in the meantime (it is too old, or its
user's password was changed), the connection is closed without an answer: stock clients then connect and log in again,
and repeat the call.
"""

from __future__ import annotations

import struct
from contextlib import suppress

from saros_server.api.cancellation import CancelToken
from saros_server.api.client_api import ClientApi
from saros_server.api.client_sessions import NoSession
from saros_server.port.connection import Connection, ConnectionClosed
from saros_server.thrift.codec import (
    COMPACT,
    PROTOCOL_ERROR,
    UNKNOWN_METHOD,
    VERSION,
    BadArguments,
    FrameBuffer,
    Header,
    UnreadableMessage,
    framed,
    refuse,
    refuse_compact,
    reply,
)
from saros_server.thrift.methods import METHODS, Method
from saros_server.thrift.sessions import FRAME_BYTES_MAX, LOGIN_BYTES_MAX, ThriftSession
from saros_server.thrift.status_codes import failure

_SIZE = struct.Struct(">i")
#: A frame above the session's limit is read to its end and refused. A frame that is also larger than this number ends
#: the connection.
_SKIPPED_BYTES_MAX, _SKIPPED_AT_ONCE = 1 << 30, 64 << 10
#: This many bytes of a message always contain its header.
_HEADER_BYTES_MAX = 256
_FRAMED_BINARY = "this port takes Thrift's binary protocol in frames"
_NOT_FRAMED = f"{_FRAMED_BINARY}: switch the framed transport on"
_NOT_BINARY = f"{_FRAMED_BINARY}: switch compact messages (rpc_thrift_compression_enable) off"


class ThriftProtocol:
    """An implementation of `saros_server.port.protocols.Protocol` for IoTDB's clients. Thread-safe."""

    name = "iotdb"

    def __init__(self, api: ClientApi) -> None:
        self._api = api

    def accepts(self, first: bytes) -> bool:
        """See `Protocol.accepts`. The first frame is small, so its length begins with a zero byte."""
        if first[:1] == b"\0":
            return first[4:6] == VERSION or first[4:5] == bytes((COMPACT,))
        return first[:2] == VERSION or first[:1] == bytes((COMPACT,))

    def open(self, connection: Connection) -> ThriftHandler:
        """See `Protocol.open`."""
        return ThriftHandler(self._api, connection)

    def refusal(self, code: int, message: str) -> bytes:
        """See `Protocol.refusal`: clients read it as the answer to their first call."""
        return b"".join(framed(*refuse(Header("openSession", 0), PROTOCOL_ERROR, f"{message} ({code})")))


class ThriftHandler:
    """An implementation of `saros_server.port.protocols.Handler`: a connection and its session."""

    def __init__(self, api: ClientApi, connection: Connection) -> None:
        self._connection = connection
        self.session = ThriftSession(api, connection.peer)

    def handle(self) -> bool:
        """See `Handler.handle`."""
        head = bytes(self._connection.read(_SIZE.size))
        (size,) = _SIZE.unpack(head)
        if size > (FRAME_BYTES_MAX if self.session.is_open else LOGIN_BYTES_MAX):
            return self._refuse_large(size)
        if size <= 0:
            return self._refuse_unframed(head)
        frame = FrameBuffer(size)
        with frame.memory() as memory:
            self._connection.read_into(memory)
        try:
            header = frame.read_header()
        except UnreadableMessage:
            return self._refuse_message(frame)
        try:
            answer = self._answer(frame, header)
        except NoSession:
            return False
        if not header.oneway:
            self._connection.send(answer)
        return True

    def close(self) -> None:
        """See `Handler.close`."""
        self.session.end()

    def _answer(self, frame: FrameBuffer, header: Header) -> list[bytes]:
        """Execute a call, and return the frame of its answer. Raises NoSession."""
        method = METHODS.get(header.name)
        if method is None:
            return framed(*refuse(header, UNKNOWN_METHOD, f"Saros has no call {header.name}: see docs/clients.md"))
        try:
            arguments = frame.read_arguments(method.arguments, bare=method.bare)
        except BadArguments as error:
            return framed(*refuse(header, PROTOCOL_ERROR, str(error)))
        try:
            return reply(header, self._run(method, arguments))
        except (NoSession, ConnectionClosed):
            raise
        except Exception as error:  # noqa: BLE001 (the top of a call)
            status = failure(error)
            if method.answer is None:
                return framed(*refuse(header, PROTOCOL_ERROR, f"{status.message} ({status.code})"))
            return reply(header, method.answer(status))

    def _run(self, method: Method, arguments: object) -> object:
        session = self.session
        session.cancel = CancelToken()
        with self._connection.watch(_ignore, session.cancel.cancel):
            return method.run(session, arguments)

    # ------------------------------------------------------------------------------------------ other messages

    def _refuse_large(self, size: int) -> bool:
        """Refuse a frame that is too large; return whether the next one can be read."""
        if not self.session.is_open or size > _SKIPPED_BYTES_MAX:
            return False
        frame = FrameBuffer(_HEADER_BYTES_MAX)
        with frame.memory() as memory:
            self._connection.read_into(memory)
        for start in range(_HEADER_BYTES_MAX, size, _SKIPPED_AT_ONCE):
            self._connection.read(min(size - start, _SKIPPED_AT_ONCE))
        try:
            header = frame.read_header()
        except UnreadableMessage:
            return False
        message = f"a message of {size} bytes: more than {FRAME_BYTES_MAX}; send less at a time"
        self._connection.send(framed(*refuse(header, PROTOCOL_ERROR, message)))
        return True

    def _refuse_unframed(self, head: bytes) -> bool:
        """Tell a client of a Thrift protocol that it must send frames; return False."""
        with suppress(UnreadableMessage):
            if head.startswith(VERSION):
                self._connection.send(refuse(self._unframed_header(head), PROTOCOL_ERROR, _NOT_FRAMED))
            elif head[0] == COMPACT:
                self._connection.pull(_HEADER_BYTES_MAX)
                call = head + bytes(self._connection.buffered)
                self._connection.send(refuse_compact(call, PROTOCOL_ERROR, _NOT_FRAMED))
        return False

    def _unframed_header(self, head: bytes) -> Header:
        """Read the rest of the header of a message without a frame. Raises UnreadableMessage."""
        head += bytes(self._connection.read(4))
        rest = _SIZE.unpack_from(head, 4)[0] + 4
        frame = FrameBuffer(len(head) + min(max(rest, 0), _HEADER_BYTES_MAX))
        with frame.memory() as memory:
            memory[: len(head)] = head
            self._connection.read_into(memory[len(head) :])
        return frame.read_header()

    def _refuse_message(self, frame: FrameBuffer) -> bool:
        """Tell a client of the compact protocol that this is not supported; return False."""
        with frame.memory() as memory:
            call = bytes(memory[:_HEADER_BYTES_MAX])
        if call[0] == COMPACT:
            with suppress(UnreadableMessage):
                self._connection.send(framed(*refuse_compact(call, PROTOCOL_ERROR, _NOT_BINARY)))
        return False


def _ignore() -> None:
    """Do nothing: the next calls are read from the connection after the current call is answered."""
