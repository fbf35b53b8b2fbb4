"""Connections to nodes in an event loop. Implements `Network`. The rules of calls are those of `saros.transport`.

    take -> call, which its task awaits -> complete answer: give back
                                        -> more rows follow: an `AsyncStream` holds the connection until the last row
                                        -> the task is cancelled: send CANCEL, give back once the call has ended
                                        -> otherwise: close, and the node ends the call

A network belongs to one `AsyncConnection` and to the running event loop. A connection that was opened in another loop
is not used again. Only one call at a time uses a connection.
"""

from __future__ import annotations

import asyncio
import select
import socket
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from saros.base.target import Target
from saros.transport.exchange import (
    CLOSED,
    DRAIN_S,
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
from saros.transport.node_connection import context_of, read_authority
from saros.transport.remote_calls import RemoteCalls, Result
from saros.transport.sockets import CONNECT_S, reason_of
from saros_wire.frames import HEADER_BYTES, MORE, Call, Header, Kind

if TYPE_CHECKING:
    import ssl

_BUFFER_BYTES = 64 << 10
Frame = tuple[Header, bytes, Buffer]


class FrameReader:
    """A decoder of frames from bytes in pieces of any size.

    The caller reads bytes into `space`, and then calls `filled`, which returns the completed frames.
    """

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        #: Received bytes of incomplete frames: `_buffer[_start:_end]`, or `_large[:_end]`.
        self._start = self._end = 0
        #: The content of the current frame, if it is too long for the buffer.
        self._large: memoryview | None = None
        self._header: Header | None = None

    @property
    def is_empty(self) -> bool:
        """True if no byte of a frame has been received."""
        return self._start == self._end and self._header is None

    def space(self) -> memoryview:
        """Return the memory for the next bytes."""
        if self._large is not None:
            return self._large[self._end :]
        there = self._end - self._start
        if self._start:
            self._buffer[:there] = self._buffer[self._start : self._end]
            self._start, self._end = 0, there
        return self._buffer[self._end :]

    def filled(self, count: int) -> list[Frame]:
        """Return the frames that are complete after `count` more bytes in `space`. Raises CallFailed (BROKEN, LOST)."""
        self._end += count
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def _next(self) -> Frame | None:
        header = self._header
        if header is None:
            if self._end - self._start < HEADER_BYTES:
                return None
            header = self._header = decode_header(self._buffer[self._start : self._start + HEADER_BYTES])
            self._start += HEADER_BYTES
        size = header.head_bytes + header.body_bytes
        if self._end - self._start < size:
            if self._large is None and size > _BUFFER_BYTES // 2:
                self._begin_large(size)
            return None
        content = self._large if self._large is not None else self._buffer[self._start : self._start + size]
        self._start += size
        is_large = self._large is not None
        if is_large:
            self._large, self._start, self._end = None, 0, 0
        self._header = None
        if not header.head_bytes:
            return header, b"", content if is_large else bytes(content)
        return header, bytes(content[: header.head_bytes]), bytes(content[header.head_bytes :])  # aligned, for Arrow

    def _begin_large(self, size: int) -> None:
        there = self._end - self._start
        self._large = large_buffer(size)
        self._large[:there] = self._buffer[self._start : self._end]
        self._start, self._end = 0, there


class AsyncNodeConnection(asyncio.BufferedProtocol):
    """A connection to a node. Made by `open_connection`."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader()
        self._frames: deque[Frame] = deque()
        #: The reason why the connection ended, or None while it is open.
        self._failure: CallFailed | None = None
        #: A future that is resolved when frames arrive, when everything was sent, or when the connection ends.
        self._waiter: asyncio.Future[None] | None = None
        self._sent_all = True
        self._received_at = 0.0
        #: Number of the last request, or 0 if neither the preface nor a request was sent.
        self.request = 0

    # ------------------------------------------------------------------ called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BufferedProtocol`."""
        assert isinstance(transport, asyncio.Transport)
        # With these limits, asyncio calls `resume_writing` once everything has been sent. A TLS transport pauses at
        # `high`, not above it, so with a `high` of 0 it would also pause when it has nothing to send.
        transport.set_write_buffer_limits(high=1, low=0)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio passes it
        """See `asyncio.BufferedProtocol`."""
        return self._reader.space()

    def buffer_updated(self, nbytes: int) -> None:
        """See `asyncio.BufferedProtocol`."""
        self._received_at = time.monotonic()
        try:
            self._frames.extend(frame for frame in self._reader.filled(nbytes) if frame[0].kind is not Kind.PONG)
        except CallFailed as failed:
            self._end(failed)
        else:
            self._wake()

    def pause_writing(self) -> None:
        """See `asyncio.BufferedProtocol`."""
        self._sent_all = False

    def resume_writing(self) -> None:
        """See `asyncio.BufferedProtocol`."""
        self._sent_all = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.BufferedProtocol`."""
        self._end(CallFailed(Fate.LOST, reason_of(exc) if isinstance(exc, OSError) else CLOSED))

    def _end(self, failed: CallFailed) -> None:
        self._failure = self._failure or failed
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # ------------------------------------------------------------------ calls

    async def begin(self, call: Call, head: bytes, body: Sequence[Buffer]) -> int:
        """Send a request, and return its number. Raises CallFailed."""
        request = self.request % REQUEST_MAX + 1
        buffers, _ = encode_request(call, request, head, body, greet=not self.request)
        self.request = request
        self._write(b"".join(buffers))
        left, deadline = self._unsent, time.monotonic() + SILENT_S
        while not self._sent_all:
            await self._wait(deadline - time.monotonic())
            if self._failure is not None:
                raise CallFailed(Fate.NOT_SENT, self._failure.details)
            now = time.monotonic()
            if self._unsent != left:
                left, deadline = self._unsent, now + SILENT_S
            elif not self._sent_all and now >= deadline:
                raise CallFailed(Fate.NOT_SENT, "it does not read the request", silent_s=SILENT_S)
        return request

    @property
    def _unsent(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    async def receive(self, request: int, deadline: float | None) -> Frame:
        """Wait for the next frame of the answer to a request.

        Raises CallFailed. After any fate other than ANSWERED, the connection cannot be used again.
        """
        silence = Silence(time.monotonic(), deadline)
        while not self._frames:
            if self._failure is not None:
                raise self._failure
            before = self._received_at
            await self._wait(silence.wait_s(time.monotonic()))
            now = time.monotonic()
            if self._received_at != before:
                silence = Silence(now, deadline)
            elif not self._frames and self._failure is None and silence.passed(now):
                self._write(PING_FRAME)
        header, head, body = self._frames.popleft()
        check_frame(header, head, request)
        return header, head, body

    async def _wait(self, timeout_s: float) -> None:
        """Wait for the next event of the connection, or until the timeout."""
        self._waiter = self.loop.create_future()
        timer = self.loop.call_later(timeout_s, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            timer.cancel()

    def control(self, frame: bytes) -> None:
        """Send a CANCEL or CREDIT frame."""
        self._write(frame)

    async def drain(self, request: int) -> bool:
        """Receive the remaining frames of a cancelled call. Return whether the connection can be used again."""
        deadline = time.monotonic() + DRAIN_S
        try:
            while True:
                header, _, _ = await self.receive(request, deadline)
                if header.kind is Kind.END or (header.kind is Kind.REPLY and header.call != MORE):
                    return True
        except CallFailed as failed:
            return failed.fate is Fate.ANSWERED

    def _write(self, data: bytes) -> None:
        if self._transport is not None and self._failure is None:
            self._transport.write(data)

    # ------------------------------------------------------------------ between calls

    def is_quiet(self) -> bool:
        """Return whether the connection can be used again, as `IdleConnections` requires."""
        transport = self._transport
        if self._failure is not None or self._frames or not self._reader.is_empty or transport is None:
            return False
        if self.loop is not asyncio.get_running_loop() or transport.is_closing():
            return False
        return not _is_readable(transport.get_extra_info("socket"))

    def close(self) -> None:
        """Close the connection. Idempotent."""
        transport, self._transport = self._transport, None
        if transport is not None:
            with suppress(RuntimeError):  # the event loop is closed
                transport.abort()


def _is_readable(found: socket.socket) -> bool:
    poll = select.poll()
    poll.register(found, select.POLLIN)
    return bool(poll.poll(0))


async def open_connection(address: str, tls: ssl.SSLContext | None, timeout_s: float) -> AsyncNodeConnection:
    """Connect to a node. Raises CallFailed (NOT_SENT)."""
    endpoint, loop = endpoint_of(address), asyncio.get_running_loop()
    timeout_s = min(timeout_s, CONNECT_S)
    host = None if tls is None else endpoint.host
    try:
        async with asyncio.timeout(timeout_s):
            _, made = await loop.create_connection(
                AsyncNodeConnection, endpoint.host, endpoint.port, ssl=tls, server_hostname=host
            )
    except TimeoutError:
        raise CallFailed(Fate.NOT_SENT, "the attempt to connect timed out", silent_s=timeout_s) from None
    except OSError as error:
        raise CallFailed(Fate.NOT_SENT, f"failed to connect: {reason_of(error)}") from None
    return made


class AsyncStream:
    """The rest of an answer. Implements `exchange.Stream`. One task may call `next`, and any task may call `cancel`."""

    def __init__(self, connection: AsyncNodeConnection, network: AsyncNetwork, address: str) -> None:
        self._connection = connection
        self._network = network
        self._address = address
        self._request = connection.request
        self._credits = Credits()
        self._receiving = False
        self._cancelled = False
        #: True once the call has ended, and the connection is given back or closed.
        self._over = False
        #: See `exchange.Stream.end`.
        self.end = b""

    async def next(self) -> Buffer | None:
        """See `exchange.Stream.next`."""
        self._check_not_cancelled()
        if self._over:
            return None
        self._receiving = True
        try:
            header, head, body = await self._connection.receive(self._request, None)
            if self._cancelled:
                await self._drain(header)
            self._check_not_cancelled()
        except CallFailed as failed:
            if not self._over:
                self._leave(whole=failed.fate is Fate.ANSWERED)
            self._check_not_cancelled()
            raise
        finally:
            self._receiving = False
        if header.kind is Kind.ITEM:
            granted = self._credits.take(len(body))
            if granted:
                self._connection.control(credit_frame(self._request, granted))
            return body
        self.end = head
        self._leave(whole=True)
        return None

    def _check_not_cancelled(self) -> None:
        if self._cancelled:
            raise CallFailed(Fate.CANCELLED)

    async def cancel(self) -> None:
        """See `exchange.Stream.cancel`."""
        if self._over:
            return
        if not self._cancelled:
            self._cancelled = True
            self._connection.control(cancel_frame(self._request))
        if not self._receiving:  # if a task is receiving, that task receives the remaining frames
            self._receiving = True
            await self._drain()

    async def _drain(self, received: Header | None = None) -> None:
        """Receive the remaining frames of a cancelled call. `received` is the frame received last."""
        whole = received is not None and received.kind is Kind.END
        try:
            whole = whole or await self._connection.drain(self._request)
        finally:
            self._leave(whole=whole)

    def _leave(self, *, whole: bool) -> None:
        self._over = True
        if whole:
            self._network.give_back(self._address, self._connection)
        else:
            self._connection.close()

    def __del__(self) -> None:
        if not self._over:
            self._connection.close()


class LoopEvent(asyncio.Event):
    """An event that tasks await. Implements `sequences.Event`."""

    async def wait(self, timeout_s: float | None = None) -> bool:  # type: ignore[override]
        """See `sequences.Event.wait`."""
        try:
            async with asyncio.timeout(timeout_s):
                await super().wait()
        except TimeoutError:
            return self.is_set()
        return True


class AsyncNetwork:
    """The connections of a session. Only one task uses a connection during a call. Implements `Network`."""

    def __init__(self, authority: bytes | None) -> None:
        """Create a network without connections.

        authority  the certificate of the authority that signed the nodes' certificates (PEM), or None for no TLS

        Raises InterfaceError if the certificate cannot be used.
        """
        self._tls = context_of(authority)
        self._idle: dict[str, IdleConnections[AsyncNodeConnection]] = {}
        self._closed = False

    async def call(
        self, address: str, call: Call, head: bytes, body: Sequence[Buffer], timeout_s: float | None
    ) -> Reply:
        """See `Network.call`."""
        connection = await self._take(address, timeout_s)
        request = 0
        try:
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            request = await connection.begin(call, head, body)
            header, answer, content = await connection.receive(request, deadline)
        except CallFailed as failed:
            self._failed(address, connection, failed)
            raise
        except asyncio.CancelledError:
            await self._abandon(address, connection, request)
            raise
        except BaseException:
            connection.close()
            raise
        if header.call == MORE:
            return Reply(answer, content, AsyncStream(connection, self, address))
        self.give_back(address, connection)
        return Reply(answer, content)

    def event(self) -> LoopEvent:
        """See `Network.event`."""
        return LoopEvent()

    def close(self) -> None:
        """Close the idle connections now, and each other connection once its call has ended."""
        self._closed = True
        for idle in self._idle.values():
            _close_all(idle.close())

    async def _take(self, address: str, timeout_s: float | None) -> AsyncNodeConnection:
        found, overdue = self._idle_at(address).take()
        _close_all(overdue)
        if found is None:
            found = await open_connection(address, self._tls, CONNECT_S if timeout_s is None else timeout_s)
        return found

    def give_back(self, address: str, connection: AsyncNodeConnection) -> None:
        """Take back a connection whose call has ended, and close connections that have been idle for too long."""
        _close_all(self._idle_at(address).give_back(connection, time.monotonic()))

    def _idle_at(self, address: str) -> IdleConnections[AsyncNodeConnection]:
        idle = self._idle.get(address)
        if idle is None:
            idle = self._idle[address] = IdleConnections()
            if self._closed:
                idle.close()
        return idle

    def _failed(self, address: str, connection: AsyncNodeConnection, failed: CallFailed) -> None:
        if failed.fate in (Fate.ANSWERED, Fate.TOO_LARGE):
            self.give_back(address, connection)
            return
        connection.close()
        if failed.fate in (Fate.LOST, Fate.NOT_SENT):
            _close_all(self._idle_at(address).clear())

    async def _abandon(self, address: str, connection: AsyncNodeConnection, request: int) -> None:
        """Cancel a call whose task was cancelled. `request` is 0 if the request was not sent completely."""
        whole = False
        try:
            if request:
                connection.control(cancel_frame(request))
                whole = await connection.drain(request)
        finally:
            if whole:
                self.give_back(address, connection)
            else:
                connection.close()


def _close_all(connections: Sequence[AsyncNodeConnection]) -> None:
    for connection in connections:
        connection.close()


class AsyncRemoteSession(RemoteCalls[Result]):
    """A session on a server or cluster, for asyncio. Implements `AsyncSession`."""

    def __init__(
        self,
        target: Target,
        *,
        time_zone: str | None,
        failover_s: float,
        timeout_s: float | None,
    ) -> None:
        """Create a session, as `RemoteCalls` does. Raises InterfaceError if the certificate file cannot be read."""
        self._own = AsyncNetwork(read_authority(target.tls_ca))
        super().__init__(target, self._own, Result, time_zone=time_zone, failover_s=failover_s, timeout_s=timeout_s)

    async def close(self) -> None:
        """See `Session.close`."""
        try:
            await super().close()
        finally:
            self._own.close()
