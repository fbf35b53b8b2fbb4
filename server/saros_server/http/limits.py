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

    #: The maximum number of open connections; any others are answered with 503.
    connections: int = 1_000
    #: The number of threads for the functions of routes. The same number of requests may wait for a thread.
    workers: int = 64
    #: The maximum number of concurrent logins, which is also the limit of the authentication gate
    #: (`saros_server.auth.authentication`).
    logins: int = 16
    #: The maximum number of sessions that are cached for later requests with the same credentials.
    sessions: int = 256
    #: Size of the request line and the headers.
    header_bytes: int = 32 << 10
    #: The maximum sizes of a body before and after decompression, and of the bodies of all requests in progress in
    #: total.
    body_bytes: int = 32 << 20
    plain_body_bytes: int = 64 << 20
    bodies_bytes: int = 256 << 20
    #: The timeout for the TLS handshake and for the headers of a request, and the timeout for each piece of a body.
    header_s: float = 10.0
    body_s: float = 30.0
    #: The lowest rate at which a client may send a body, in bytes per second.
    body_rate: int = 1 << 10
    #: If a client reads nothing of its response for this time, it is disconnected.
    write_s: float = 60.0
    #: A connection without a request is closed after this time.
    idle_s: float = 75.0


class HttpThreads:
    """The pools of threads: each kind of work has its own, so no kind waits for another."""

    def __init__(self, limits: HttpLimits) -> None:
        self.workers = ThreadPoolExecutor(limits.workers, thread_name_prefix="saros-http")
        self.logins = ThreadPoolExecutor(limits.logins, thread_name_prefix="saros-http-login")
        self._cancellers = ThreadPoolExecutor(_CANCELLERS, thread_name_prefix="saros-http-cancel")

    def call_soon(self, function: Callable[[], object]) -> None:
        """Schedule a function that cancels or closes something, without waiting for it."""
        with suppress(RuntimeError):  # The pool is closed: all calls end when the node closes.
            self._cancellers.submit(function)

    def close(self) -> None:
        """Tell the threads to end once their work is done, but do not wait for them."""
        for pool in (self.workers, self.logins, self._cancellers):
            pool.shutdown(wait=False, cancel_futures=True)
