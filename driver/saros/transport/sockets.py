"""Blocking sockets to nodes: TCP, TLS, and Unix sockets.

    Socket      receive and send with a timeout each; the caller measures for how long the node has been silent
    plain       the kernel enforces the timeouts (SO_RCVTIMEO): one system call to send, one to receive
    portable    for systems whose sockets have neither `sendmsg` nor such timeouts (Windows): it waits with `select`
    TLS         a lock guards OpenSSL's state, since another thread may send a CANCEL; `receive` waits without the lock

Only one thread receives. Any thread may send small frames (see `NodeConnection`).
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from saros.transport.exchange import CLOSED, SILENT_S, Buffer, CallFailed, Endpoint, Fate

if TYPE_CHECKING:
    import ssl

#: Timeout of an attempt to connect.
CONNECT_S = 3.0
#: Limit on the buffers of one system call. Linux accepts 1,024.
_BUFFERS_MAX = 1_000
_TIME_OUT_MIN_S = 0.001
_TIME_VALUE = struct.Struct("@ll")
#: System errors that mean only that the connection has ended.
_ENDED = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)


class Socket(Protocol):
    """A connected blocking socket with timeouts."""

    def receive(self, view: memoryview) -> int:
        """Receive into `view`. Return the number of bytes, which is 0 if the node closed the connection.

        Raises TimeoutError or BlockingIOError (no byte arrived in time), OSError.
        """
        ...

    def send(self, buffers: Sequence[Buffer], total: int) -> None:
        """Send all bytes.

        Raises TimeoutError or BlockingIOError (the node accepts no byte for `SILENT_S`), OSError.
        """
        ...

    def set_timeout(self, seconds: float) -> None:
        """Set the timeout of `receive`."""
        ...

    def is_quiet(self) -> bool:
        """Return whether the connection is open, and no byte is waiting to be received."""
        ...

    def close(self) -> None:
        """Close the socket. Idempotent."""
        ...


class PlainSocket:
    """A socket without TLS. Implements `Socket`."""

    __slots__ = ("_poll", "_socket", "receive")

    def __init__(self, connected: socket.socket) -> None:
        connected.settimeout(None)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _time_value(SILENT_S))
        self._socket = connected
        self._poll = _poll_of(connected)
        self.receive = connected.recv_into

    def send(self, buffers: Sequence[Buffer], total: int) -> None:
        """See `Socket.send`."""
        if len(buffers) > _BUFFERS_MAX:
            buffers = [b"".join(buffers)]
        sent = self._socket.sendmsg(buffers)
        if sent < total:
            left = [memoryview(part).cast("B") for part in buffers]
            while sent < total:
                left = _without(left, sent)
                total -= sent
                sent = self._socket.sendmsg(left)

    def set_timeout(self, seconds: float) -> None:
        """See `Socket.set_timeout`."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _time_value(max(seconds, _TIME_OUT_MIN_S)))

    def is_quiet(self) -> bool:
        """See `Socket.is_quiet`."""
        return not self._poll.poll(0)

    def close(self) -> None:
        """See `Socket.close`."""
        self._socket.close()


class PortableSocket:
    """A socket without TLS that uses only calls that all systems have. Implements `Socket`."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._readable, self._writable = _poll_of(connected), _poll_of(connected, write=True)
        self._timeout_ms = 0

    def receive(self, view: memoryview) -> int:
        """See `Socket.receive`."""
        while True:
            try:
                return self._socket.recv_into(view)
            except BlockingIOError:
                if not self._readable.poll(self._timeout_ms):
                    raise TimeoutError from None

    def send(self, buffers: Sequence[Buffer], total: int) -> None:  # noqa: ARG002 - as the interface has it
        """See `Socket.send`."""
        left = memoryview(b"".join(buffers))
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                if not self._writable.poll(SILENT_S * 1e3):
                    raise TimeoutError from None

    def set_timeout(self, seconds: float) -> None:
        """See `Socket.set_timeout`."""
        self._timeout_ms = max(round(seconds * 1e3), 1)

    def is_quiet(self) -> bool:
        """See `Socket.is_quiet`."""
        return not self._readable.poll(0)

    def close(self) -> None:
        """See `Socket.close`."""
        self._socket.close()


class TlsSocket:
    """A socket with TLS. Implements `Socket`."""

    def __init__(self, connected: ssl.SSLSocket) -> None:
        connected.setblocking(False)
        self._socket = connected
        #: Held while OpenSSL is called. Reentrant, because a signal handler that cancels the call may interrupt the
        #: thread that holds the lock.
        self._lock = threading.RLock()
        self._readable = _poll_of(connected)
        self._writable = _poll_of(connected, write=True)
        self._timeout_ms = 0

    def receive(self, view: memoryview) -> int:
        """See `Socket.receive`."""
        import ssl

        while True:
            try:
                with self._lock:
                    return self._socket.recv_into(view)
            except ssl.SSLWantReadError:
                if not self._readable.poll(self._timeout_ms):
                    raise TimeoutError from None
            except ssl.SSLWantWriteError:
                self._await_writable()
            except ssl.SSLEOFError:
                return 0

    def send(self, buffers: Sequence[Buffer], total: int) -> None:  # noqa: ARG002 - as the interface has it
        """See `Socket.send`."""
        import ssl

        left = memoryview(b"".join(buffers))
        with self._lock:  # held until all bytes are sent: a TLS record must be complete before the next one begins
            while left:
                try:
                    left = left[self._socket.send(left) :]
                except ssl.SSLWantWriteError:
                    self._await_writable()
                except ssl.SSLWantReadError:
                    self._readable.poll(SILENT_S * 1e3)

    def _await_writable(self) -> None:
        if not self._writable.poll(SILENT_S * 1e3):
            raise TimeoutError

    def set_timeout(self, seconds: float) -> None:
        """See `Socket.set_timeout`."""
        self._timeout_ms = max(round(seconds * 1e3), 1)

    def is_quiet(self) -> bool:
        """See `Socket.is_quiet`."""
        return self._socket.pending() == 0 and not self._readable.poll(0)

    def close(self) -> None:
        """See `Socket.close`."""
        self._socket.close()


def open_socket(endpoint: Endpoint, tls: ssl.SSLContext | None, timeout_s: float) -> Socket:
    """Connect to an endpoint, with TLS if there is a context. Raises CallFailed (NOT_SENT)."""
    timeout_s = max(min(timeout_s, CONNECT_S), _TIME_OUT_MIN_S)
    try:
        connected = _connected(endpoint, timeout_s)
        if tls is None:
            return PlainSocket(connected) if hasattr(connected, "sendmsg") else PortableSocket(connected)
        return TlsSocket(_with_tls(connected, tls, endpoint.host))
    except TimeoutError:
        raise CallFailed(Fate.NOT_SENT, "the attempt to connect timed out", silent_s=timeout_s) from None
    except OSError as error:
        raise CallFailed(Fate.NOT_SENT, f"failed to connect: {reason_of(error)}") from None


def _connected(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    if endpoint.socket_name:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(timeout_s)
            made.connect(endpoint.socket_name)
        except BaseException:
            made.close()
            raise
        return made
    made = socket.create_connection((endpoint.host, endpoint.port), timeout_s)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _with_tls(connected: socket.socket, tls: ssl.SSLContext, host: str) -> ssl.SSLSocket:
    try:
        return tls.wrap_socket(connected, server_hostname=host)
    except BaseException:
        connected.close()
        raise


def tls_context(authority: bytes) -> ssl.SSLContext:
    """Return a TLS context that trusts certificates signed by an authority (PEM). Raises ValueError."""
    import ssl

    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the file may contain the certificate of a node itself
    try:
        made.load_verify_locations(cadata=authority.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error
    return made


def reason_of(error: OSError) -> str:
    """Return the text of a connection error, for messages."""
    if isinstance(error, _ENDED):
        return CLOSED if error.errno is None else f"{CLOSED} ({os.strerror(error.errno)})"
    if type(error).__module__ == "ssl":
        words = [getattr(error, "reason", None) or str(error), getattr(error, "verify_message", None)]
        return ": ".join(filter(None, words))
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def _without(buffers: Sequence[memoryview], count: int) -> list[memoryview]:
    """Return the buffers without their first `count` bytes."""
    for number, part in enumerate(buffers):
        if count < len(part):
            return [part[count:], *buffers[number + 1 :]]
        count -= len(part)
    return []


class Poll(Protocol):
    """A wait for one kind of event on a socket."""

    def poll(self, timeout: float | None = None, /) -> Sequence[object]:
        """Wait for the event. Return an empty sequence if it has not occurred after `timeout` milliseconds."""
        ...


class SelectPoll:
    """A `Poll` that uses `select.select`, for systems without `select.poll`."""

    def __init__(self, connected: socket.socket, *, write: bool) -> None:
        self._read, self._write = ([], [connected]) if write else ([connected], [])

    def poll(self, timeout: float | None = None, /) -> Sequence[object]:
        """See `Poll.poll`."""
        found = select.select(self._read, self._write, [], None if timeout is None else timeout / 1e3)
        return found[0] or found[1]


def _poll_of(connected: socket.socket, *, write: bool = False) -> Poll:
    if not hasattr(select, "poll"):
        return SelectPoll(connected, write=write)
    made = select.poll()
    made.register(connected, select.POLLOUT if write else select.POLLIN)
    return made


def _time_value(seconds: float) -> bytes:
    whole = int(seconds)
    return _TIME_VALUE.pack(whole, int((seconds - whole) * 1e6))
