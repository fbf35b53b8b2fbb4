"""The threads of the HTTP service: for functions of routes, for logins, and for cancellations. Thread-safe."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from saros_server.http.limits import HttpLimits

#: Cancellations are short: each closes a query.
_CANCELLERS = 2


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
