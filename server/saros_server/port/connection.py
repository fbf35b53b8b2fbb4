"""A client's connection, as a protocol uses it: for reads of a given length, atomic sends, and watches of long calls.

                        +-- read, read_into, read_buffer: the connection's thread
    socket --> buffer --+
                        +-- pull, buffered: the watch's callbacks, while a call runs
    send, post: any thread --> socket

Bytes are read through a buffer, so a small request takes one system call. Large bodies do not pass through the buffer.
A parked connection, whose client waits in the poller and not on a thread, has no buffer.

Only one thread reads at a time. While a call is being watched, this is the thread that runs the watch's callbacks.
Otherwise, it is the connection's thread. Any thread may call `send`, `post` and `abort`.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from threading import Lock
from typing import Protocol

import numpy as np

from saros_server.api.calls import Peer
from saros_server.port.streams import PlainStream, Stream, TlsStream

#: A connection that has been idle for this time is parked: it waits in the poller, without a thread.
IDLE_SECONDS = 1.0
#: Within this time, the next `PROGRESS_BYTES` of a request must arrive, or all its remaining bytes if they are fewer.
#: The second, shorter time applies while other clients wait for a thread.
REQUEST_SECONDS, CROWDED_SECONDS = 30.0, 2.0
PROGRESS_BYTES = 4 << 10
#: While bytes are waiting to be sent to a client, it must accept some of them within this time.
SEND_SECONDS = 60.0
#: The size of a connection's buffer. A longer read uses a larger buffer temporarily.
BUFFER_BYTES = 64 << 10
#: The maximum number of small messages that wait to be sent to a client that does not read.
_POSTED_MAX = 1_000
_EMPTY = memoryview(b"")
#: Unused buffers for other connections. Only a limited number of them is kept; the others are freed.
_spare_buffers: deque[memoryview] = deque(maxlen=256)


class ConnectionClosed(Exception):
    """The client has disconnected, or the server has ended the connection."""


class ReadTimeout(ConnectionClosed):
    """The bytes of a request did not arrive in time."""


class SendTimeout(ConnectionClosed):
    """The client did not read the bytes sent to it in time."""


class Watch(Protocol):
    """The watch of a call."""

    def expedite(self) -> None:
        """Begin to watch immediately, instead of after 10 ms, because the call is waiting for its client.

        Does nothing if the watch has already begun or ended.
        """
        ...


class Watcher(Protocol):
    """A watcher of connections during long calls, such as `call_monitor`."""

    def watch(
        self, connection: Connection, on_readable: Callable[[], None], on_closed: Callable[[], None]
    ) -> AbstractContextManager[Watch]:
        """See `Connection.watch`."""
        ...


class Connection:
    """A client's connection."""

    def __init__(self, plain: socket.socket, peer: Peer, watcher: Watcher, is_crowded: Callable[[], bool]) -> None:
        self.peer = peer
        #: Bytes received, and bytes sent.
        self.bytes_in = self.bytes_out = 0
        self._socket = plain
        self._stream: Stream = PlainStream(plain)
        self._watcher = watcher
        self._is_crowded = is_crowded
        #: Received bytes that were not read: `_view[_start:_end]`.
        self._view, self._start, self._end = _EMPTY, 0, 0
        #: The time when the request began to wait for bytes, or None if it has not waited. `_mark` is the value of
        #: `bytes_in` at that time.
        self._lacking_since: float | None = None
        self._mark = 0
        self._sending = Lock()
        #: Small messages that wait to be sent.
        self._posted: deque[bytes] = deque()
        _set_timeouts(plain)

    # ------------------------------------------------------------------------------------------ reads

    def read(self, count: int) -> memoryview:
        """Return the next `count` bytes, as a view that is valid until the next read. Raises ConnectionClosed."""
        end = self._start + count
        if end > self._end:
            self._gather(count)
            end = self._start + count
        found = self._view[self._start : end]
        self._start = end
        return found

    def read_into(self, view: memoryview) -> None:
        """Fill `view`, which the caller owns, with the next bytes. Raises ConnectionClosed."""
        have = min(len(view), self._end - self._start)
        view[:have] = self._view[self._start : self._start + have]
        self._start += have
        while have < len(view):
            have += self._receive(view[have:])

    def read_buffer(self, count: int) -> memoryview:
        """Return the next `count` bytes in memory that the caller owns. Raises ConnectionClosed."""
        view = np.empty(count, np.uint8).data
        self.read_into(view)
        return view

    @property
    def position(self) -> int:
        """The number of bytes read since the start of the connection."""
        return self.bytes_in - (self._end - self._start)

    @property
    def buffered(self) -> memoryview:
        """The bytes that have been received but not read yet, as a view that is valid until the next read or pull."""
        return self._view[self._start : self._end]

    def pull(self, bytes_max: int) -> bool:
        """Receive without waiting, until the buffer has `bytes_max` unread bytes. Return whether anything was received.

        Raises ConnectionClosed.
        """
        pulled = False
        if self._start == self._end:
            self._start = self._end = 0
        while self._end - self._start < bytes_max:
            if self._end == len(self._view):
                self._make_room(min(bytes_max, max(BUFFER_BYTES, 2 * (self._end - self._start))))
            try:
                self._end += self._receive_once(self._view[self._end :], wait=False)
            except BlockingIOError:
                break
            pulled = True
        return pulled

    def begin_request(self) -> None:
        """Reset the timer, since a new request begins. For the port."""
        self._lacking_since = None

    def receive(self, *, wait: bool) -> bool:
        """Receive the first bytes of a request into the empty buffer. Return whether any have arrived.

        If `wait` is true, wait for up to `IDLE_SECONDS`. For the port. Raises ConnectionClosed.
        """
        if len(self._view) != BUFFER_BYTES:
            self._view = _take_buffer()
        self._start = self._end = 0
        try:
            self._end = self._receive_once(self._view, wait=wait)
        except BlockingIOError:
            return False
        return True

    def release_buffer(self) -> None:
        """Free the buffer if it has no unread bytes. For the port."""
        if self._start == self._end:
            if len(self._view) == BUFFER_BYTES:
                _spare_buffers.append(self._view)
            self._view, self._start, self._end = _EMPTY, 0, 0

    def _gather(self, count: int) -> None:
        """Receive until the buffer has `count` unread bytes."""
        if self._start + count > len(self._view):
            self._make_room(max(count, BUFFER_BYTES))
        while self._end - self._start < count:
            self._end += self._receive(self._view[self._end :])

    def _make_room(self, size: int) -> None:
        """Replace the buffer by one of `size` bytes, and copy the unread bytes to it.

        Views of the old buffer remain valid.
        """
        moved = memoryview(bytearray(size))
        have = self._end - self._start
        moved[:have] = self._view[self._start : self._end]
        self._view, self._start, self._end = moved, 0, have

    def _receive(self, view: memoryview) -> int:
        """Receive more bytes of a request. Raises ReadTimeout if they do not arrive in time."""
        while True:
            self._check_progress()
            with suppress(BlockingIOError):
                return self._receive_once(view)

    def _receive_once(self, view: memoryview, *, wait: bool = True) -> int:
        """Receive some bytes. Raises BlockingIOError, ConnectionClosed."""
        try:
            count = self._stream.receive(view, wait=wait)
        except BlockingIOError:
            raise
        except OSError as error:
            raise ConnectionClosed(str(error)) from error
        if not count:
            raise ConnectionClosed("the client has closed the connection")
        self.bytes_in += count
        return count

    def _check_progress(self) -> None:
        """Raise ReadTimeout if the bytes of a request arrive too slowly."""
        now = time.monotonic()
        since = self._lacking_since
        if since is None or self.bytes_in - self._mark >= PROGRESS_BYTES:
            self._lacking_since, self._mark = now, self.bytes_in
        elif now - since > (CROWDED_SECONDS if self._is_crowded() else REQUEST_SECONDS):
            raise ReadTimeout(f"less than {PROGRESS_BYTES} bytes of a request arrived in {now - since:.0f} s")

    # ------------------------------------------------------------------------------------------ sends

    def send(self, buffers: Sequence[bytes | memoryview]) -> None:
        """Send all buffers in order. No other thread can send bytes between them. Raises ConnectionClosed."""
        with self._sending:
            self._send(buffers)
        if self._posted:
            self._send_posted()

    def post(self, data: bytes) -> None:
        """Send a small message without waiting.

        If another thread is sending a message, that thread then also sends this one. Bytes that the socket does not
        accept now are sent before the next message. Raises ConnectionClosed.
        """
        if len(self._posted) >= _POSTED_MAX:
            raise SendTimeout("the client sends requests but reads no answers")
        self._posted.append(data)
        self._send_posted()

    def _send(self, buffers: Sequence[bytes | memoryview]) -> None:
        buffers = list(map(_as_bytes, buffers))
        if self._posted:
            buffers[:0] = self._take_posted()
        total = sum(map(len, buffers))
        try:
            self._stream.send(buffers, total)
        except BlockingIOError as error:
            self.abort()  # part of the message may have been sent
            raise SendTimeout(f"the client read nothing for {SEND_SECONDS:.0f} s") from error
        except OSError as error:
            raise ConnectionClosed(str(error)) from error
        self.bytes_out += total

    def _send_posted(self) -> None:
        """Send as many posted messages as the socket accepts.

        If another thread is sending, that thread will send them.
        """
        while self._posted and self._sending.acquire(blocking=False):
            try:
                if not self._send_first_posted():
                    return
            finally:
                self._sending.release()

    def _send_first_posted(self) -> bool:
        data = self._posted[0]
        try:
            sent = self._stream.send_now(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise ConnectionClosed(str(error)) from error
        self.bytes_out += sent
        if sent < len(data):
            self._posted[0] = data[sent:]
            return False
        self._posted.popleft()
        return True

    def _take_posted(self) -> list[bytes]:
        return [self._posted.popleft() for _ in range(len(self._posted))]

    # ------------------------------------------------------------------------------------------ greeting: for the port

    @property
    def is_encrypted(self) -> bool:
        """True if the connection uses TLS."""
        return isinstance(self._stream, TlsStream)

    def peek(self, count: int) -> bytes:
        """Return the first received bytes without consuming them: the next read returns them again.

        Raises ConnectionClosed.
        """
        try:
            found = self._socket.recv(count, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise ConnectionClosed(str(error)) from error
        if not found:
            raise ConnectionClosed("the client has closed the connection")
        return found

    def encrypt(self, context: ssl.SSLContext) -> None:
        """Use TLS from now on. Nothing may have been read or sent before this."""
        self._stream = TlsStream(self._socket, context)

    def shake_hands(self) -> bool:
        """Continue the TLS handshake without waiting. Return whether it is complete. Raises ConnectionClosed."""
        try:
            return not isinstance(self._stream, TlsStream) or self._stream.shake_hands()
        except OSError as error:
            raise ConnectionClosed(str(error)) from error

    # ------------------------------------------------------------------------------------------ calls, the end

    def watch(self, on_readable: Callable[[], None], on_closed: Callable[[], None]) -> AbstractContextManager[Watch]:
        """Return a context manager that watches the client while a call runs on the connection's thread.

        The watch begins once the call has lasted 10 ms. Another thread then calls `on_readable` whenever bytes arrive,
        and `on_closed` when the client disconnects. `on_readable` may `pull` and inspect `buffered`. Neither function
        may block, and neither is called after the context has ended.
        """
        return self._watcher.watch(self, on_readable, on_closed)

    def fileno(self) -> int:
        """Return the socket's descriptor, or -1 if the socket is closed."""
        return self._socket.fileno()

    def abort(self) -> None:
        """End the connection: reads and sends in progress raise ConnectionClosed, and the client sees the end."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def end_output(self) -> None:
        """Close the sending direction: the client gets all bytes that were sent, and then the end of the connection."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def end_input(self) -> None:
        """Close the receiving direction: a thread that waits for a request sees the end of the connection."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)

    def discard(self, bytes_max: int) -> None:
        """Discard received bytes. Raises ConnectionClosed at the end of the connection, or after `bytes_max` bytes."""
        waste = bytearray(min(bytes_max, BUFFER_BYTES))
        for _ in range(0, bytes_max, len(waste)):
            try:
                count = self._socket.recv_into(waste, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError as error:
                raise ConnectionClosed(str(error)) from error
            if not count:
                break
        raise ConnectionClosed("the client has closed the connection, or does not stop sending")

    def close(self) -> None:
        """Close the socket. No thread may be using the connection when this is called."""
        self._socket.close()
        self._start = self._end
        self.release_buffer()


def _set_timeouts(plain: socket.socket) -> None:
    """Set the timeouts of the socket in the kernel. This saves a system call for the timeout of each blocking call."""
    plain.setblocking(True)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(IDLE_SECONDS))
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(SEND_SECONDS))


def _as_bytes(buffer: bytes | memoryview) -> bytes | memoryview:
    """Return the buffer with single bytes as its items, so that its `len` is its size in bytes."""
    return buffer.cast("B") if isinstance(buffer, memoryview) and buffer.itemsize != 1 else buffer


def _take_buffer() -> memoryview:
    try:
        return _spare_buffers.pop()
    except IndexError:
        return memoryview(bytearray(BUFFER_BYTES))


def _timeval(seconds: float) -> bytes:
    return struct.pack("@ll", int(seconds), int(seconds % 1 * 1_000_000))
