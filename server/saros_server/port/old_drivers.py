"""Answers for drivers of protocol versions up to 4, which use gRPC: each of their calls fails with a clear error.

    client preface, SETTINGS        --> SETTINGS
    SETTINGS                        --> its acknowledgement
    HEADERS of a call               --> HEADERS with the error, which end the call

Only the parts of HTTP/2 (RFC 9113) and HPACK (RFC 7541) that this needs are implemented. Request headers are not
decoded.
"""

from __future__ import annotations

import struct
from urllib.parse import quote

from saros_server.port.connection import Connection
from saros_wire.frames import VERSION

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#: A frame's header: length, type, flags, stream. The length has three bytes, which are unpacked as one and two bytes.
_FRAME = struct.Struct(">BHBBI")
_HEADERS, _SETTINGS, _PING = 1, 4, 6
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4
#: The maximum size of a frame. Clients must not send larger frames, since the server does not raise this default of
#: HTTP/2.
_FRAME_BYTES_MAX = 1 << 14
_WRONG_PROTOCOL, _INVALID_ARGUMENT = 2015, 3


class OldDriverProtocol:
    """An implementation of `saros_server.port.protocols.Protocol` for old drivers."""

    name = "grpc"

    def accepts(self, first: bytes) -> bool:
        """See `Protocol.accepts`."""
        return first == _PREFACE[: len(first)] and len(first) > 3

    def open(self, connection: Connection) -> _OldDriverHandler:
        """See `Protocol.open`."""
        return _OldDriverHandler(connection)

    def refusal(self, code: int, message: str) -> bytes:  # noqa: ARG002 (the end of the connection tells an old driver more)
        """See `Protocol.refusal`."""
        return b""


class _OldDriverHandler:
    """An implementation of `saros_server.port.protocols.Handler` that refuses every call."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_greeted = False

    def handle(self) -> bool:
        """See `Handler.handle`."""
        if not self._is_greeted:
            self._is_greeted = True
            if self._connection.read(len(_PREFACE)) != _PREFACE:
                return False
            self._connection.post(_frame(_SETTINGS, 0, 0))
            return True
        high, low, kind, flags, stream = _FRAME.unpack(self._connection.read(_FRAME.size))
        length = high << 16 | low
        if length > _FRAME_BYTES_MAX:
            return False
        payload = bytes(self._connection.read(length))
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            self._connection.post(_frame(kind, _ACK, 0, payload if kind == _PING else b""))
        elif kind == _HEADERS:
            self._connection.post(_frame(_HEADERS, _END_STREAM | _END_HEADERS, stream, _error()))
        return True

    def close(self) -> None:
        """See `Handler.close`."""


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return _FRAME.pack(0, len(payload), kind, flags, stream) + payload


def _error() -> bytes:
    """Return the encoded headers of a failed call."""
    message = f"this node speaks protocol {VERSION}, not gRPC: use a newer driver"
    headers = {
        "content-type": "application/grpc",
        "grpc-status": str(_INVALID_ARGUMENT),
        "grpc-message": quote(message, safe=" ,:"),
        "saros-code": str(_WRONG_PROTOCOL),
    }
    status_200 = b"\x88"
    return status_200 + b"".join(b"\0" + _text(name) + _text(value) for name, value in headers.items())


def _text(text: str) -> bytes:
    """Return the HPACK encoding of a text that has fewer than 127 bytes."""
    encoded = text.encode()
    return bytes((len(encoded),)) + encoded
