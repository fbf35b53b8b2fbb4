"""Sending the parts of a large response from the thread that produces them.

    event loop: nothing left to write --> thread: produce a chunk, send it, produce the next one, ...
    event loop: write the rest        <-- thread: a chunk takes longer than `SEND_S`, or the last one has been sent

This avoids copies and the event loop's turns. The thread does not wait for slow clients: the event loop writes the rest
of a chunk, and has the time limits.

The event loop must not write to the connection while `send` runs.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

from saros_server.http.body import ClientGone
from saros_server.http.response import Buffer, Chunk, buffers_of

#: The maximum duration of `send`: enough for 8 MiB at 80 MiB/s.
SEND_S = 0.1
#: The duration after which a thread returns to the event loop, which counts the bytes.
TURN_S = 1.0
#: The number of buffers of one system call; Linux accepts 1,024.
_BUFFERS_MAX = 512


class Frames:
    """The chunks of a body in the chunked encoding of HTTP. For one thread at a time."""

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self._chunks = chunks
        self._bytes = 0

    def next(self) -> Sequence[Buffer]:
        """Produce the next chunk; return its bytes, or an empty sequence after the last chunk. Raises its errors."""
        for chunk in self._chunks:
            buffers = buffers_of(chunk)
            size = sum(map(len, buffers))
            if size:  # a chunk without bytes would end the body
                self._bytes += size
                return (b"%x\r\n" % size, *buffers, b"\r\n")
        return ()

    def count(self) -> int:
        """Return the size of the chunks that were produced since the last call."""
        size, self._bytes = self._bytes, 0
        return size


class DirectWriter:
    """A duplicate of a connection's socket. Thread-safe; close it after the response."""

    def __init__(self, transport: asyncio.Transport) -> None:
        #: The duplicate shares the state of the connection, including its non-blocking mode.
        self._socket = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        self._writable = select.poll()
        self._writable.register(self._socket, select.POLLOUT)
        #: Held while the socket is in use. The socket is not closed then: another connection could get its number.
        self._using = threading.Lock()
        self._is_closed = False

    def send(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Send buffers for at most `SEND_S`; return the rest. Raises ClientGone if the connection is lost."""
        left = deque(memoryview(buffer) for buffer in buffers)
        limit_s = time.monotonic() + SEND_S
        try:
            with self._using, suppress(BlockingIOError):
                while left and not self._is_closed and self._can_send(limit_s):
                    _remove(left, self._socket.sendmsg([*islice(left, _BUFFERS_MAX)]))
        except OSError as error:
            raise ClientGone from error
        if self._is_closed:
            self.close()
            raise ClientGone
        return [*left]

    def _can_send(self, limit_s: float) -> bool:
        """Wait until the socket takes bytes, but not after `limit_s`; return whether it does."""
        return bool(self._writable.poll(max(0.0, limit_s - time.monotonic()) * 1_000))

    def close(self) -> None:
        """Close the duplicate, or let the current `send` close it. The connection stays open. Idempotent."""
        self._is_closed = True
        if self._using.acquire(blocking=False):
            try:
                self._socket.close()
            finally:
                self._using.release()


def send_directly(unsent: Sequence[Buffer], frames: Frames, writer: DirectWriter) -> Sequence[Buffer]:
    """Send a chunk and those after it, for about `TURN_S`; return what remains of a chunk, or nothing at the end.

    A chunk that the client does not take in time is the last one.
    """
    limit_s = time.monotonic() + TURN_S
    while unsent:
        rest = writer.send(unsent)
        if rest:
            return rest
        unsent = frames.next()
        if time.monotonic() > limit_s:
            break
    return unsent


def _remove(buffers: deque[memoryview], sent: int) -> None:
    """Remove the first `sent` bytes."""
    while buffers and sent >= len(buffers[0]):
        sent -= len(buffers.popleft())
    if sent:
        buffers[0] = buffers[0][sent:]
