"""The body of a request, from the arrival of its first bytes until the response is sent.

    connection --add, complete, abandon--> IncomingBody --read, within the limits--> the whole body, or an error

The connection adds each part that it receives. While the application waits in `read`, a part is only checked against
the limits when it arrives. For the event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from saros_server.http.errors import BUSY, HttpError
from saros_server.http.limits import HttpLimits

#: The key of the `IncomingBody` in the state of an ASGI scope.
BODY = "body"


class ClientGone(Exception):
    """The client has closed the connection, so no response is sent."""


class BodyMemory(msgspec.Struct):
    """The memory used by the bodies of all requests in progress."""

    bytes: int = 0


class IncomingBody:
    """The body of one request."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parts: list[bytes] = []
        #: The number of bytes that have arrived.
        self.size = 0
        #: True once the whole body has arrived.
        self.is_complete = False
        self._is_abandoned = False
        #: Asks the client to send the body. Set by the connection.
        self.invite: Callable[[], None] = lambda: None
        #: The call of `read` that waits for the rest of the body, or None.
        self._reader: _Reader | None = None

    @property
    def is_awaited(self) -> bool:
        """True while `read` waits for the rest of the body."""
        return self._reader is not None

    def add(self, part: bytes) -> None:
        """Add a part of the body, which is kept without being copied."""
        self._parts.append(part)
        self.size += len(part)
        if self._reader is not None:
            self._reader.check_part(len(part))

    def complete(self) -> None:
        """Mark the end of the body."""
        self.is_complete = True
        if self._reader is not None:
            self._reader.end(None)

    def abandon(self) -> None:
        """Stop waiting for the rest of the body, since the client has closed the connection."""
        self._is_abandoned = True
        if self._reader is not None:
            self._reader.end(ClientGone())

    @asynccontextmanager
    async def read(self, limits: HttpLimits, memory: BodyMemory) -> AsyncIterator[bytes]:
        """Wait for the whole body, and yield it. Its bytes count in `memory` until the context ends.

        Raises HttpError (408, 413, 503), ClientGone.
        """
        reader = _Reader(self, limits, memory, self._loop)
        try:
            if self._is_abandoned:
                raise ClientGone
            self.invite()
            self._reader = reader
            reader.check_part(self.size)
            if self.is_complete:
                reader.end(None)
            await reader.wait()
            body = b"".join(self._parts)
            self._parts.clear()
            yield body
        finally:
            self._reader = None
            memory.bytes -= reader.counted


class _Reader:
    """The state of a call of `IncomingBody.read`, which waits and checks the limits."""

    def __init__(
        self, body: IncomingBody, limits: HttpLimits, memory: BodyMemory, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._body = body
        self._limits = limits
        self._memory = memory
        self._loop = loop
        self._began_s = self._last_s = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        #: The number of bytes that the body has added to `memory`.
        self.counted = 0
        #: A future that is done once the whole body has arrived or has been refused.
        self._over: asyncio.Future[None] = loop.create_future()

    def check_part(self, size: int) -> None:
        """Count a part of the body that has arrived, and refuse the body if it has become too large."""
        limits = self._limits
        self._last_s = self._loop.time()
        self.counted += size
        self._memory.bytes += size
        if self._body.size > limits.body_bytes:
            self.end(too_large(limits.body_bytes))
        elif self._memory.bytes > limits.bodies_bytes:
            self.end(HttpError(503, "too many large requests are in progress: try again", BUSY))

    def end(self, error: Exception | None) -> None:
        """End the wait, with an error unless `error` is None. Does nothing if the wait has already ended."""
        if self._over.done():
            return
        if error is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(error)

    async def wait(self) -> None:
        """Wait until the whole body has arrived. Raises HttpError (408, 413, 503), ClientGone."""
        if not self._over.done():
            self._start_timer()
        try:
            await self._over
        finally:
            if self._timer is not None:
                self._timer.cancel()

    # ------------------------------------------------------------------------------------------ time limits

    def _start_timer(self) -> None:
        """Schedule the next check of the time. It is due when the body would be too late if no more of it arrived."""
        self._timer = self._loop.call_at(self._due_s(), self._check_time)

    def _check_time(self) -> None:
        if self._loop.time() < self._due_s():
            self._start_timer()
        else:
            message = "the body arrived too slowly: send it faster, or in parts"
            self.end(HttpError(408, message, Connection="close"))

    def _due_s(self) -> float:
        """Return the time by which the next part must arrive."""
        limits = self._limits
        return min(self._last_s + limits.body_s, self._began_s + limits.body_s + self._body.size / limits.body_rate)


def too_large(bytes_max: int) -> HttpError:
    """Return the error for a body that is too large."""
    return HttpError(413, f"the body has more than {bytes_max} bytes: send less at a time")
