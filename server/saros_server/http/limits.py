"""The limits of the HTTP service, and its thread pools. The sizes of the pools are among the limits. Thread-safe."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import msgspec

#: Number of threads for cancellations. Two suffice, since a cancellation is short: it only closes a query.
_CANCELLERS = 2


class HttpLimits(msgspec.Struct, frozen=True):
    """The limits of the service.

    The defaults are generous: their purpose is to protect the node from overload, not to share it fairly among clients.
    """

    #: The maximum number of open connections. On any further connection, requests are answered with status 503.
    connections: int = 1_000
    #: The number of threads that run the functions of routes. As many other requests may wait for a thread.
    workers: int = 64
    #: The maximum number of concurrent logins. The authentication gate (`saros_server.auth.authentication`) has the
    #: same limit.
    logins: int = 16
    #: The maximum number of cached sessions. A cached session is used for later requests with the same credentials.
    sessions: int = 256
    #: The maximum size of the request line and the headers together.
    header_bytes: int = 32 << 10
    #: The maximum size of a body, first as it is sent and then after decompression; and the maximum total size of the
    #: bodies of all requests in progress.
    body_bytes: int = 32 << 20
    plain_body_bytes: int = 64 << 20
    bodies_bytes: int = 256 << 20
    #: The first timeout is for the TLS handshake, and also for the headers of a request. The second one is for each
    #: piece of a body.
    header_s: float = 10.0
    body_s: float = 30.0
    #: The lowest rate at which a client may send a body, in bytes per second.
    body_rate: int = 1 << 10
    #: If a client does not read any part of its response for this time, it is disconnected.
    write_s: float = 60.0
    #: If a connection has had no request for this time, it is closed.
    idle_s: float = 75.0


class HttpThreads:
    """The thread pools. Each kind of work has its own pool, so that it never waits for work of another kind."""

    def __init__(self, limits: HttpLimits) -> None:
        self.workers = ThreadPoolExecutor(limits.workers, thread_name_prefix="saros-http")
        self.logins = ThreadPoolExecutor(limits.logins, thread_name_prefix="saros-http-login")
        self._cancellers = ThreadPoolExecutor(_CANCELLERS, thread_name_prefix="saros-http-cancel")

    def call_soon(self, function: Callable[[], object]) -> None:
        """Schedule a call of a function that cancels or closes something. Do not wait for the function."""
        with suppress(RuntimeError):  # The pool is closed, so the node is closing, which ends all calls.
            self._cancellers.submit(function)

    def close(self) -> None:
        """Tell each thread to end once it has finished its current work. Do not wait for the threads."""
        for pool in (self.workers, self.logins, self._cancellers):
            pool.shutdown(wait=False, cancel_futures=True)
