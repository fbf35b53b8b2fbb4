"""A connection of the HTTP service: uvicorn's connection, with additional limits.

    opened, or response sent --header_s--> headers complete --> response --write_s without progress--> aborted
                              +-- too slow, or too large: closed

For the event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from saros_server.http.body import BODY, IncomingBody
from saros_server.http.direct_writer import DirectWriter
from saros_server.http.limits import HttpLimits
from saros_server.http.response import Buffer
from saros_server.port.counters import ProtocolCounters

#: The keys of functions in the state of an ASGI scope. `ABORT` closes the connection without sending the data that is
#: still buffered. `WRITE` writes buffers without copying them, after all data that was sent through ASGI. `DIRECT`
#: returns a new `DirectWriter`, and `IS_IDLE` whether it may be used: whether all data has been given to the socket.
ABORT, WRITE, DIRECT, IS_IDLE = "abort", "write", "direct", "is idle"
#: Maximum size of one write, since the transport copies all bytes that the socket does not accept immediately.
_PIECE_BYTES = 1 << 18
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\nconnection: close\r\n"
    b"content-length: 44\r\n\r\nthe request line and the headers are too big"
)


class LimitedConnection(HttpToolsProtocol):
    """A connection with limits on slow clients and on the size of headers."""

    limits = HttpLimits()
    counters = ProtocolCounters()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        #: The number of bytes received since the end of the last request, or None while a body is being received.
        self._header_bytes: int | None = 0
        self._header_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        #: Sends the parts of the last response.
        self._writer: DirectWriter | None = None
        #: The body of the last request.
        self._body = IncomingBody(self.loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a client."""
        super().connection_made(transport)
        self.counters.accepted += 1
        self.counters.connections += 1
        self.counters.refused += len(self.connections) >= self.limits.connections
        self._header_timer = self.loop.call_later(self.limits.header_s, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the connection's timers, and end the wait for a body."""
        self.counters.connections -= 1
        _cancel(self._header_timer)
        _cancel(self._write_timer)
        self._body.abandon()
        if self._writer is not None:
            self._writer.close()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes that the client has sent, and check that its headers are not too large."""
        self.counters.bytes_in += len(data)
        if self._header_bytes is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._header_bytes is not None and self._header_bytes > self.limits.header_bytes:
            self._refuse_headers()

    def on_message_begin(self) -> None:
        """Begin to receive a request."""
        super().on_message_begin()
        self.counters.requests += 1
        self._body = IncomingBody(self.loop)
        self.scope["state"] |= {
            ABORT: self.transport.abort,
            WRITE: self._write,
            DIRECT: self._direct_writer,
            IS_IDLE: self._is_idle,
            BODY: self._body,
        }
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.limits.header_s, self.transport.abort)

    def on_headers_complete(self) -> None:
        """Start to handle a request whose headers are complete. Its body may arrive later."""
        _cancel(self._header_timer)
        self._header_timer = None
        self._header_bytes = None
        super().on_headers_complete()
        self._body.invite = partial(self._invite_body, self.cycle)

    def _invite_body(self, cycle: RequestResponseCycle) -> None:
        """Read the body of a request. If the client waits for status 100 before it sends the body, send this status."""
        if cycle.waiting_for_100_continue and not self.transport.is_closing():
            cycle.waiting_for_100_continue = False
            self.transport.write(_CONTINUE)
        self.flow.resume_reading()

    def on_body(self, body: bytes) -> None:
        """Add a part to the body of a request.

        If the application does not wait for the body, stop reading after a certain number of bytes.
        """
        if self.cycle.response_complete:
            return
        self._body.add(body)
        if not self._body.is_awaited and self._body.size > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """Handle the end of a request's body."""
        self._body.complete()
        super().on_message_complete()
        self._header_bytes = 0

    def pause_writing(self) -> None:
        """Start the timeout of a client that does not read its response."""
        super().pause_writing()
        _cancel(self._write_timer)
        self._write_timer = self.loop.call_later(self.limits.write_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timeout, since the client is reading its response again."""
        _cancel(self._write_timer)
        super().resume_writing()

    async def _write(self, buffers: Iterable[Buffer]) -> None:
        """Write buffers, waiting while the client's receive window is full."""
        for piece in _pieces(buffers):
            await self.flow.drain()
            if self.transport.is_closing():
                return
            self.transport.write(piece)

    def _direct_writer(self) -> DirectWriter:
        self._writer = DirectWriter(self.transport)
        return self._writer

    def _is_idle(self) -> bool:
        """Return whether another thread may write to the socket: not with TLS, which has a state of its own."""
        transport = self.transport
        is_plain = transport.get_extra_info("sslcontext") is None
        return is_plain and not transport.is_closing() and not transport.get_write_buffer_size()

    def _refuse_headers(self) -> None:
        """Close a connection whose headers are too large. First send a response, unless another one is being sent."""
        if not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(_TOO_LARGE)
            self.transport.close()


def _pieces(buffers: Iterable[Buffer]) -> Iterator[Buffer]:
    """Yield the bytes of the buffers in pieces, each of at most `_PIECE_BYTES`.

    Small buffers are joined, and large ones are split into views.
    """
    small, size = list[Buffer](), 0
    for buffer in buffers:
        if size + len(buffer) > _PIECE_BYTES:
            yield b"".join(small)
            small, size = [], 0
        if len(buffer) > _PIECE_BYTES:
            yield from (memoryview(buffer)[at : at + _PIECE_BYTES] for at in range(0, len(buffer), _PIECE_BYTES))
        else:
            small.append(buffer)
            size += len(buffer)
    yield b"".join(small)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def connection_class(limits: HttpLimits, counters: ProtocolCounters) -> type[LimitedConnection]:
    """Return the connection class for a service that has these limits and counters."""
    return type("LimitedConnection", (LimitedConnection,), {"limits": limits, "counters": counters})
