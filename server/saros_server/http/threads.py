"""The threads of the HTTP service: for functions of routes, for logins, and for cancellations. Thread-safe."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from saros_server.http.limits import HttpLimits

#: Cancellations take a moment: each closes a query.
_CANCELLERS = 2


class HttpThreads:
    """Pools of threads, apart from each other: none waits for the work of another."""

    def __init__(self, limits: HttpLimits) -> None:
        self.workers = ThreadPoolExecutor(limits.workers, thread_name_prefix="saros-http")
        self.logins = ThreadPoolExecutor(limits.logins, thread_name_prefix="saros-http-login")
        self._cancellers = ThreadPoolExecutor(_CANCELLERS, thread_name_prefix="saros-http-cancel")

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function that cancels or closes something. Does not wait."""
        with suppress(RuntimeError):  # the pool was closed: all calls end with the node
            self._cancellers.submit(function)

    def close(self) -> None:
        """End the threads when their work is done. Does not wait for it."""
        for pool in (self.workers, self.logins, self._cancellers):
            pool.shutdown(wait=False, cancel_futures=True)
