"""Streams of bytes over a client's socket, with or without TLS.

A blocking receive or send raises `BlockingIOError` after the socket's timeout. The kernel keeps the timeouts
(`SO_RCVTIMEO`, `SO_SNDTIMEO`), so they cost no system call for each request. The TLS stream holds a lock only while it
encrypts or decrypts in memory. So one thread can receive while another sends.

At most one thread may receive at a time, and at most one may send.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from threading import Lock
from typing import Protocol

#: The maximum number of buffers that are sent in one system call. The kernel accepts at most 1,024.
_BUFFERS_MAX = 1_000
#: The maximum number of bytes that are encrypted in one step when a message is sent.
_ENCRYPTED_BYTES = 256 << 10
#: The maximum number of encrypted bytes that are received in one step, which is enough for a few TLS records.
_RECEIVED_BYTES = 64 << 10


class Stream(Protocol):
    """A byte stream in both directions.

    The methods raise OSError. The error is BlockingIOError if a method would have to wait but must not, or after the
    timeout.
    """

    def receive(self, view: memoryview, *, wait: bool = True) -> int:
        """Receive bytes into the start of `view`. Return their number, or 0 at the end of the stream."""
        ...

    def send(self, buffers: Sequence[bytes | memoryview], total: int) -> None:
        """Send all buffers in order. Together, they have `total` bytes."""
        ...

    def send_now(self, data: bytes) -> int:
        """Send as much of `data` as the socket accepts immediately.

        Return the number of bytes that the caller must not send again.
        """
        ...


class PlainStream:
    """An implementation of `Stream` without encryption."""

    __slots__ = ("_socket",)

    def __init__(self, plain: socket.socket) -> None:
        self._socket = plain

    def receive(self, view: memoryview, *, wait: bool = True) -> int:
        """See `Stream.receive`."""
        return self._socket.recv_into(view, 0, 0 if wait else socket.MSG_DONTWAIT)

    def send(self, buffers: Sequence[bytes | memoryview], total: int) -> None:
        """See `Stream.send`."""
        if len(buffers) <= _BUFFERS_MAX:
            sent = self._socket.sendmsg(buffers)
            if sent == total:
                return
            buffers = _rest(buffers, sent)
        while buffers:
            buffers = _rest(buffers, self._socket.sendmsg(buffers[:_BUFFERS_MAX]))

    def send_now(self, data: bytes) -> int:
        """See `Stream.send_now`."""
        return self._socket.send(data, socket.MSG_DONTWAIT)


class TlsStream:
    """An implementation of `Stream` with TLS, which encrypts and decrypts in memory."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext) -> None:
        self._socket = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        #: Guards the TLS state above. It is not held while the socket may block.
        self._lock = Lock()
        #: Encrypted bytes that the socket has not accepted yet.
        self._unsent = b""

    def shake_hands(self) -> bool:
        """Continue the handshake with the bytes that have arrived. Return whether it is complete. Raises OSError."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush_now()
                if not self._pull(socket.MSG_DONTWAIT):
                    return False
            except ssl.SSLError:
                self._flush_now()  # the alert
                raise
            else:
                self._flush_now()
                return True

    def receive(self, view: memoryview, *, wait: bool = True) -> int:
        """See `Stream.receive`."""
        flags = 0 if wait else socket.MSG_DONTWAIT
        while (count := self._decrypt(view)) is None:
            received = self._socket.recv(_RECEIVED_BYTES, flags)
            with self._lock:
                self._incoming.write(received) if received else self._incoming.write_eof()
        return count

    def _decrypt(self, view: memoryview) -> int | None:
        """Decrypt received bytes into `view`.

        Return their number. Return 0 at the end of the stream, and None if more bytes must be received first.
        """
        try:
            with self._lock:
                return self._tls.read(len(view), view)  # type: ignore[return-value]  # given a view, `read` returns a count
        except ssl.SSLWantReadError:
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return 0

    def send(self, buffers: Sequence[bytes | memoryview], total: int) -> None:  # noqa: ARG002 - as the interface requires
        """See `Stream.send`."""
        for buffer in buffers:
            view = memoryview(buffer).cast("B")
            for start in range(0, len(view), _ENCRYPTED_BYTES):
                self._encrypt(view[start : start + _ENCRYPTED_BYTES])
                if self._outgoing.pending + len(self._unsent) >= _ENCRYPTED_BYTES:
                    self._flush()
        self._flush()

    def send_now(self, data: bytes) -> int:
        """See `Stream.send_now`. Encrypted bytes that the socket does not take now are sent before the next message."""
        self._flush_now()
        if self._unsent:
            return 0
        self._encrypt(memoryview(data))
        self._flush_now()
        return len(data)

    def _encrypt(self, view: memoryview) -> None:
        with self._lock:
            self._tls.write(view)

    def _take_encrypted(self) -> bytes:
        with self._lock:
            return self._unsent + self._outgoing.read() if self._unsent else self._outgoing.read()

    def _flush(self) -> None:
        encrypted, self._unsent = self._take_encrypted(), b""
        left: Sequence[bytes | memoryview] = [encrypted] if encrypted else []
        while left:
            left = _rest(left, self._socket.sendmsg(left))

    def _flush_now(self) -> None:
        encrypted = self._take_encrypted()
        try:
            sent = self._socket.send(encrypted, socket.MSG_DONTWAIT) if encrypted else 0
        except BlockingIOError:
            sent = 0
        self._unsent = encrypted[sent:]

    def _pull(self, flags: int) -> bool:
        """Receive encrypted bytes. Return whether any have arrived. Raises ConnectionResetError at the end."""
        try:
            received = self._socket.recv(_RECEIVED_BYTES, flags)
        except BlockingIOError:
            return False
        if not received:
            raise ConnectionResetError("the client has closed the connection")
        self._incoming.write(received)
        return True


def _rest(buffers: Sequence[bytes | memoryview], sent: int) -> list[bytes | memoryview]:
    """Return the bytes of the buffers that follow the first `sent` bytes, as buffers."""
    for place, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[place + 1 :]]
        sent -= len(buffer)
    return []
