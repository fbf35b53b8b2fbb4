"""A connection of the HTTP service: uvicorn's, with limits that uvicorn does not have.

    opened, or response sent --header_s--> headers complete --> response --write_s without progress--> aborted
                              +-- too slow, or too large: closed

Used on the event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from saros_server.http.limits import HttpLimits
from saros_server.http.response import Buffer
from saros_server.port.counters import ProtocolCounters

#: Keys of functions in the state of an ASGI scope: to end the connection without sending what is buffered, and to write
#: buffers as they are, after what ASGI has sent.
ABORT, WRITE = "abort", "write"
#: Bytes that are written at a time: the transport copies those that the socket does not take at once.
_PIECE_BYTES = 1 << 18
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\nconnection: close\r\n"
    b"content-length: 44\r\n\r\nthe request line and the headers are too big"
)


class LimitedConnection(HttpToolsProtocol):
    """A connection whose client may neither be slow nor send headers without end."""

    limits = HttpLimits()
    counters = ProtocolCounters()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        #: Bytes that came since the last request was complete; None: within a body.
        self._header_bytes: int | None = 0
        self._header_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a client."""
        super().connection_made(transport)
        self.counters.accepted += 1
        self.counters.connections += 1
        self.counters.refused += len(self.connections) >= self.limits.connections
        self._header_timer = self.loop.call_later(self.limits.header_s, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a client."""
        self.counters.connections -= 1
        _cancel(self._header_timer)
        _cancel(self._write_timer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes of the client; those of headers are counted."""
        self.counters.bytes_in += len(data)
        if self._header_bytes is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._header_bytes is not None and self._header_bytes > self.limits.header_bytes:
            self._refuse_headers()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.counters.requests += 1
        self.scope["state"] |= {ABORT: self.transport.abort, WRITE: self._write}
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.limits.header_s, self.transport.abort)

    def on_headers_complete(self) -> None:
        """Start to answer a request."""
        _cancel(self._header_timer)
        self._header_timer = None
        self._header_bytes = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the body of a request."""
        super().on_message_complete()
        self._header_bytes = 0

    def pause_writing(self) -> None:
        """Note that the client does not take what it is sent."""
        super().pause_writing()
        _cancel(self._write_timer)
        self._write_timer = self.loop.call_later(self.limits.write_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the client has taken what it was sent."""
        _cancel(self._write_timer)
        super().resume_writing()

    async def _write(self, buffers: Iterable[Buffer]) -> None:
        """Write buffers; waits while the client does not take what it was sent."""
        for piece in _pieces(buffers):
            await self.flow.drain()
            if self.transport.is_closing():
                return
            self.transport.write(piece)

    def _refuse_headers(self) -> None:
        """Refuse headers that are too large, unless a response is on its way."""
        if not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(_TOO_LARGE)
            self.transport.close()


def _pieces(buffers: Iterable[Buffer]) -> Iterator[Buffer]:
    """Yield the bytes of buffers, at most `_PIECE_BYTES` at a time: small buffers together, views of large ones."""
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
    """Return the class of the connections of a service."""
    return type("LimitedConnection", (LimitedConnection,), {"limits": limits, "counters": counters})
