"""The limits of the HTTP service, and its pools of threads, whose sizes are among the limits. Thread-safe."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import msgspec

#: Cancellations are short: each closes a query.
_CANCELLERS = 2


class HttpLimits(msgspec.Struct, frozen=True):
    """The limits of the service.

    The defaults are generous: they protect the node from overload, and do not divide its capacity among clients.
    """

    #: Open connections; further ones are answered with 503.
    connections: int = 1_000
    #: Threads for the functions of routes; as many further requests may wait for a thread.
    workers: int = 64
    #: Concurrent logins; the authentication gate accepts no more (`saros_server.auth.authentication`).
    logins: int = 16
    #: Sessions that are cached for further requests with the same credentials.
    sessions: int = 256
    #: Size of the request line and the headers.
    header_bytes: int = 32 << 10
    #: Maximum sizes of a body as sent, of a body after decompression, and of the bodies of all requests in progress
    #: together.
    body_bytes: int = 32 << 20
    plain_body_bytes: int = 64 << 20
    bodies_bytes: int = 256 << 20
    #: Two timeouts: one for the TLS handshake and for the headers of a request, and one for each piece of a body.
    header_s: float = 10.0
    body_s: float = 30.0
    #: The lowest rate at which a client may send a body, in bytes per second.
    body_rate: int = 1 << 10
    #: A client that reads nothing of its response for this time is disconnected.
    write_s: float = 60.0
    #: A connection without a request is closed after this time.
    idle_s: float = 75.0


class HttpThreads:
    """Separate thread pools, so that no kind of work waits for another."""

    def __init__(self, limits: HttpLimits) -> None:
        self.workers = ThreadPoolExecutor(limits.workers, thread_name_prefix="saros-http")
        self.logins = ThreadPoolExecutor(limits.logins, thread_name_prefix="saros-http-login")
        self._cancellers = ThreadPoolExecutor(_CANCELLERS, thread_name_prefix="saros-http-cancel")

    def call_soon(self, function: Callable[[], object]) -> None:
        """Schedule a function that cancels or closes something, without waiting for it."""
        with suppress(RuntimeError):  # the pool is closed: all calls end with the node
            self._cancellers.submit(function)

    def close(self) -> None:
        """Let the threads end once their work is done, without waiting for them."""
        for pool in (self.workers, self.logins, self._cancellers):
            pool.shutdown(wait=False, cancel_futures=True)
