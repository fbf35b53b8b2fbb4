"""Connections to a node, and pools of idle connections.

    take -> call, which waits on the caller's thread -> complete answer: give back
                                                     -> more rows follow: a `ResultStream` holds the connection until
                                                        the last row
                                                     -> otherwise, or at Ctrl-C: close, and the node ends the call

A process has one pool for each pair of address and authority. Sessions lease the pool, and the last session to release
the pool closes it. Before a connection is used again, it is checked: if its socket is readable, the node has closed the
connection. A forked process begins without pools.

A connection is used for one call at a time, by one thread at a time, except that any thread may cancel the call. Pools
are thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from saros.errors import InterfaceError
from saros.transport.exchange import (
    CLOSED,
    DRAIN_S,
    KEEPALIVE_S,
    PING_FRAME,
    REQUEST_MAX,
    SILENT_S,
    Buffer,
    CallFailed,
    Credits,
    Fate,
    Reply,
    Silence,
    cancel_frame,
    check_frame,
    credit_frame,
    decode_header,
    encode_request,
    endpoint_of,
    large_buffer,
)
from saros.transport.idle_connections import IdleConnections
from saros.transport.sockets import CONNECT_S, Socket, open_socket, reason_of, tls_context
from saros_wire.fork_local import ForkLocal
from saros_wire.frames import HEADER_BYTES, MORE, Call, Header, Kind

if TYPE_CHECKING:
    import ssl

#: Size of the receive buffer. Longer parts of frames are received into separate memory.
_BUFFER_BYTES = 64 << 10
_AUTHORITIES_CACHED = 16
_NO_BYTES = b""


class NodeConnection:
    """A blocking connection to a node, for one call at a time."""

    def __init__(self, address: str, tls: ssl.SSLContext | None, timeout_s: float = CONNECT_S) -> None:
        """Connect. Raises CallFailed (NOT_SENT)."""
        self._socket: Socket | None = None  # for `__del__`, which runs even if the next line raises
        self._socket = open_socket(endpoint_of(address), tls, timeout_s)
        #: The receive buffer. `_buffer[_start:_end]` are the received bytes that were not yet taken.
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._start = self._end = 0
        #: Number of the last request, or 0 if neither the preface nor a request was sent.
        self._request = 0
        #: Held while a frame is sent. Reentrant, because a signal handler that cancels the call may interrupt the
        #: thread that holds the lock.
        self._sending = threading.RLock()
        #: The deadline of the call, or None for no limit.
        self._deadline: float | None = None
        #: The timeout that is set on the socket.
        self._timeout_s = 0.0

    @property
    def request(self) -> int:
        """The number of the last request."""
        return self._request

    # ------------------------------------------------------------------ calls

    def call(self, call: Call, head: bytes, timeout_s: float) -> bytes:
        """Make a call without bodies or a stream. Return the head of its answer. Raises CallFailed."""
        return self.receive(self.begin(call, head, (), timeout_s))[1]

    def begin(self, call: Call, head: bytes, body: Sequence[Buffer], timeout_s: float | None) -> int:
        """Send a request, and return its number. Raises CallFailed, after which the connection cannot be used."""
        self.set_limit(timeout_s)
        request = self._request % REQUEST_MAX + 1
        buffers, total = encode_request(call, request, head, body, greet=not self._request)
        self._request = request
        try:
            with self._sending:
                self._opened().send(buffers, total)
        except (BlockingIOError, TimeoutError):
            raise CallFailed(Fate.NOT_SENT, "it does not read the request", silent_s=SILENT_S) from None
        except OSError as error:
            raise self._refusal(request) or CallFailed(Fate.NOT_SENT, reason_of(error)) from None
        return request

    def _refusal(self, request: int) -> CallFailed | None:
        """Return the error that the node sent before it closed the connection, or None."""
        self._deadline = time.monotonic()
        try:
            self.receive(request)
        except CallFailed as failed:
            return failed if failed.fate is Fate.ANSWERED else None
        return None

    def receive(self, request: int) -> tuple[Header, bytes, Buffer]:
        """Wait for the next frame of the answer to a request.

        Raises CallFailed. After any fate other than ANSWERED, the connection cannot be used again.
        """
        self._set_timeout(KEEPALIVE_S if self._deadline is None else min(KEEPALIVE_S, self._left_s()))
        while True:
            header = self._header()
            head = self._take(header.head_bytes) if header.head_bytes else _NO_BYTES
            body = self._take(header.body_bytes) if header.body_bytes else _NO_BYTES
            if header.kind is not Kind.PONG:
                check_frame(header, bytes(head), request)
                return header, bytes(head), body

    def set_limit(self, timeout_s: float | None) -> None:
        """Limit the wait for frames to a time from now on. With None, wait as long as the node answers pings."""
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s

    def control(self, frame: bytes) -> None:
        """Send a CANCEL, CREDIT or PING frame. May be called from any thread. Raises CallFailed (LOST)."""
        try:
            with self._sending:
                self._opened().send((frame,), len(frame))
        except (BlockingIOError, TimeoutError):
            raise CallFailed(Fate.LOST, "it does not read what it is sent", silent_s=SILENT_S) from None
        except OSError as error:
            raise CallFailed(Fate.LOST, reason_of(error)) from None

    # ------------------------------------------------------------------ bytes

    def _header(self) -> Header:
        if self._end - self._start < HEADER_BYTES:
            self._fill(HEADER_BYTES)
        header = decode_header(self._buffer[self._start : self._start + HEADER_BYTES])
        self._start += HEADER_BYTES
        return header

    def _take(self, count: int) -> Buffer:
        """Return the next `count` bytes, in memory that the receive buffer does not use."""
        there = self._end - self._start
        if there < count:
            if count > _BUFFER_BYTES // 2:
                return self._take_large(count, there)
            self._fill(count)
        self._start += count
        return bytes(self._buffer[self._start - count : self._start])

    def _take_large(self, count: int, there: int) -> memoryview:
        taken = large_buffer(count)
        taken[:there] = self._buffer[self._start : self._end]
        self._start = self._end = 0
        while there < count:
            there += self._receive(taken[there:])
        return taken

    def _fill(self, count: int) -> None:
        """Receive until `count` bytes are in the buffer."""
        there = self._end - self._start
        if self._start:
            self._buffer[:there] = self._buffer[self._start : self._end]
        self._start, self._end = 0, there
        while self._end < count:
            self._end += self._receive(self._buffer[self._end :])

    def _receive(self, view: memoryview) -> int:
        """Receive at least one byte. Raises CallFailed."""
        silence: Silence | None = None
        while True:
            try:
                count = self._opened().receive(view)
            except (BlockingIOError, TimeoutError):
                now = time.monotonic()
                if silence is None:
                    silence = Silence(now - self._timeout_s, self._deadline)
                if silence.passed(now):
                    self.control(PING_FRAME)
                self._set_timeout(silence.wait_s(now))
            except OSError as error:
                raise CallFailed(Fate.LOST, reason_of(error)) from None
            else:
                if not count:
                    raise CallFailed(Fate.LOST, CLOSED)
                return count

    def _left_s(self) -> float:
        return 0.0 if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    def _set_timeout(self, seconds: float) -> None:
        if seconds != self._timeout_s:
            self._timeout_s = seconds
            self._opened().set_timeout(seconds)

    def _opened(self) -> Socket:
        """Return the socket. Raises CallFailed (LOST)."""
        if self._socket is None:
            raise CallFailed(Fate.LOST, CLOSED)
        return self._socket

    # ------------------------------------------------------------------ between calls

    def is_quiet(self) -> bool:
        """Return whether the connection can be used again, as `IdleConnections` requires."""
        return self._socket is not None and self._start == self._end and self._socket.is_quiet()

    def close(self) -> None:
        """Close the connection. Idempotent."""
        opened, self._socket = self._socket, None
        if opened is not None:
            opened.close()

    def __del__(self) -> None:
        self.close()  # a result was dropped before it was closed, or Ctrl-C interrupted a call


class ResultStream:
    """The rest of an answer. Implements `exchange.Stream`. Any thread may call `cancel`."""

    def __init__(self, connection: NodeConnection, pool: ConnectionPool) -> None:
        self._connection = connection
        self._pool = pool
        self._request = connection.request
        self._credits = Credits()
        #: Held by the thread that is receiving.
        self._receiving = threading.Lock()
        self._cancelled = False
        #: True once the call has ended, and the connection is given back or closed.
        self._over = False
        #: See `exchange.Stream.end`.
        self.end = _NO_BYTES
        connection.set_limit(None)

    async def next(self) -> Buffer | None:
        """See `exchange.Stream.next`."""
        with self._receiving:
            if self._cancelled:
                self._drain()
                raise CallFailed(Fate.CANCELLED)
            return None if self._over else self._next()

    def _next(self) -> Buffer | None:
        try:
            header, head, body = self._connection.receive(self._request)
            if header.kind is Kind.ITEM:
                granted = self._credits.take(len(body))
                if granted:
                    self._connection.control(credit_frame(self._request, granted))
                if not self._cancelled:
                    return body
                self._drain()
                raise CallFailed(Fate.CANCELLED)
        except CallFailed as failed:
            if self._over:
                raise
            self._leave(whole=failed.fate is Fate.ANSWERED)
            if self._cancelled:
                raise CallFailed(Fate.CANCELLED) from failed
            raise
        except BaseException:
            self._leave(whole=False)
            raise
        self.end = head
        self._leave(whole=True)
        return None

    async def cancel(self) -> None:
        """See `exchange.Stream.cancel`."""
        self._cancelled = True
        if self._over:
            return
        with suppress(CallFailed):
            self._connection.control(cancel_frame(self._request))
        if self._receiving.acquire(blocking=False):  # if another thread is receiving, it drains the connection
            try:
                self._drain()
            finally:
                self._receiving.release()

    def _drain(self) -> None:
        """Receive the remaining frames of the cancelled call."""
        if self._over:
            return
        whole = False
        try:
            self._connection.set_limit(DRAIN_S)
            while self._connection.receive(self._request)[0].kind is Kind.ITEM:
                pass
            whole = True
        except CallFailed as failed:
            whole = failed.fate is Fate.ANSWERED
        finally:
            self._leave(whole=whole)

    def _leave(self, *, whole: bool) -> None:
        self._over = True
        if whole:
            self._pool.give_back(self._connection)
        else:
            self._connection.close()


class ConnectionPool:
    """The idle connections to a node."""

    def __init__(self, address: str, tls: ssl.SSLContext | None) -> None:
        self._address = address
        self._tls = tls
        self._lock = threading.Lock()
        self._idle: IdleConnections[NodeConnection] = IdleConnections()
        #: Number of leases. The lock of `_pools` guards it.
        self.leases = 0

    def call(self, call: Call, head: bytes, body: Sequence[Buffer], timeout_s: float | None) -> Reply:
        """Make a call on an idle or new connection. Raises CallFailed."""
        connection = self._take(timeout_s)
        try:
            request = connection.begin(call, head, body, timeout_s)
            return self._answered(connection, *connection.receive(request))
        except BaseException as error:
            self._failed(connection, error)
            raise

    def begin(self, call: Call, head: bytes, body: Sequence[Buffer], timeout_s: float | None) -> Callable[[], Reply]:
        """Send a request. Return a function that waits for its answer. Both raise CallFailed."""
        connection = self._take(timeout_s)
        try:
            request = connection.begin(call, head, body, timeout_s)
        except BaseException as error:
            self._failed(connection, error)
            raise

        def answer() -> Reply:
            try:
                return self._answered(connection, *connection.receive(request))
            except BaseException as error:
                self._failed(connection, error)
                raise

        return answer

    def _answered(self, connection: NodeConnection, header: Header, head: bytes, body: Buffer) -> Reply:
        if header.call == MORE:
            return Reply(head, body, ResultStream(connection, self))
        self.give_back(connection)
        return Reply(head, body)

    def _failed(self, connection: NodeConnection, error: BaseException) -> None:
        """Give a connection back if it can be used after the failed call. Otherwise, close it."""
        fate = error.fate if isinstance(error, CallFailed) else None
        if fate in (Fate.ANSWERED, Fate.TOO_LARGE):
            self.give_back(connection)
            return
        connection.close()
        if fate in (Fate.LOST, Fate.NOT_SENT):
            self.clear()  # the node has stopped or is unreachable, so the other connections to it are broken, too

    def _take(self, timeout_s: float | None) -> NodeConnection:
        with self._lock:
            found, overdue = self._idle.take()
        for connection in overdue:
            connection.close()
        return found or NodeConnection(self._address, self._tls, CONNECT_S if timeout_s is None else timeout_s)

    def give_back(self, connection: NodeConnection) -> None:
        """Take back a connection whose call has ended, and close connections that have been idle for too long."""
        with self._lock:
            overdue = self._idle.give_back(connection, time.monotonic())
        for found in overdue:
            found.close()

    def clear(self) -> None:
        """Close the idle connections."""
        with self._lock:
            overdue = self._idle.clear()
        for connection in overdue:
            connection.close()

    def close(self) -> None:
        """Close the idle connections now, and the other connections once they are given back."""
        with self._lock:
            overdue = self._idle.close()
        for connection in overdue:
            connection.close()


_Key = tuple[str, bytes | None]
_pools: ForkLocal[_Key, ConnectionPool] = ForkLocal()


class PoolLease:
    """A reference to the pool of an address, until `release`."""

    def __init__(self, address: str, authority: bytes | None) -> None:
        """Lease the pool of an address.

        authority  the certificate of the authority that signed the nodes' certificates (PEM), or None for no TLS

        Raises InterfaceError if the certificate cannot be used.
        """
        self._key = (address, authority)
        with _pools.lock:
            pool = _pools.get(self._key)
            if pool is None:
                pool = _pools[self._key] = ConnectionPool(address, context_of(authority))
            pool.leases += 1
        self.pool = pool

    def release(self) -> None:
        """Release the pool. The last lease closes it. Must be called once."""
        with _pools.lock:
            self.pool.leases -= 1
            if self.pool.leases:
                return
            if _pools.get(self._key) is self.pool:
                del _pools[self._key]
        self.pool.close()


@lru_cache(_AUTHORITIES_CACHED)
def context_of(authority: bytes | None) -> ssl.SSLContext | None:
    """Return the TLS context for an authority, or None without one. Raises InterfaceError if it cannot be used."""
    if authority is None:
        return None
    try:
        return tls_context(authority)
    except ValueError as error:
        raise InterfaceError(f"the certificate of the authority cannot be read: {error}") from error


def read_authority(file: str | None) -> bytes | None:
    """Return the certificates in a file (PEM), or None without a file. Raises InterfaceError if it cannot be used."""
    if file is None:
        return None
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise InterfaceError(f"cannot read the certificate authority {file}: {error.strerror}") from error
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise InterfaceError(f"{file} holds no certificate in PEM form")
    return content
