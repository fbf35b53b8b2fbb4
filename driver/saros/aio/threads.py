"""A session whose calls run on threads. It is for embedded databases, which compute in this process.

Each connection has its own threads: up to `THREADS` calls run at once, and further calls are queued. Cancelling a task
cancels its query, or removes its call from the queue. Cancelling and closing use separate threads, because they must
not wait for the calls that they end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from saros.api.session import Outcome, Session
from saros.base.fork_guard import ForkGuard
from saros.errors import InterfaceError
from saros_wire.device_rows import DeviceRows, RowsWritten
from saros_wire.line_writes import LinesWritten, LineWrite
from saros_wire.read_point import ReadPoint

if TYPE_CHECKING:
    import pyarrow as pa

_P = ParamSpec("_P")
_R = TypeVar("_R")
#: A waiting thread costs a few KiB, and a node runs only a few statements at once.
THREADS = 64


class _Threads:
    """The threads of a session. The threads end when the session is closed or garbage-collected.

    The threads do not exist in a forked process, so calls raise InterfaceError there.
    """

    def __init__(self, owner: ForkGuard) -> None:
        self._owner = owner
        self._calls = ThreadPoolExecutor(THREADS, "saros-aio")
        #: Threads that end calls, as many as there are threads for calls. Ending a statement waits for the statement's
        #: current step, and must not delay the end of another statement.
        self._ends = ThreadPoolExecutor(THREADS, "saros-aio-end")
        self._closed = False

    async def run(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run a call on a thread. Once begun, the call goes on even if the task is cancelled. Raises InterfaceError."""
        return await asyncio.wrap_future(self._begin(partial(call, *args, **kwargs)))

    async def run_or_end(self, call: Callable[[], _R], end: Callable[[_R | None], None]) -> _R:
        """Run a call on a thread. If the task is cancelled, end the call, and wait until it has ended.

        If the call is still queued, it is removed from the queue. Otherwise, `end` is called with None, and then once
        more with the call's result if the call does not fail.
        """
        begun = self._begin(call)
        waiting = asyncio.wrap_future(begun)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not begun.cancel():
                await self.end(partial(end, None))
                with suppress(Exception):  # the call fails because it was cancelled here
                    await self.end(partial(end, await waiting))
            raise

    async def end(self, call: Callable[[], None]) -> None:
        """Run a call that ends another call, without waiting for a free thread of `run`."""
        if self._owner.is_own_process and not self._closed:
            await asyncio.wrap_future(self._ends.submit(call))

    def close(self) -> None:
        """Refuse further calls, and let the threads end."""
        self._closed = True
        self._calls.shutdown(wait=False)
        self._ends.shutdown(wait=False)

    def _begin(self, call: Callable[[], _R]) -> Future[_R]:
        if self._closed:
            raise InterfaceError("the connection is closed", 2014)
        self._owner.check()
        return self._calls.submit(call)


class ThreadSession:
    """An embedded session whose calls run on threads. Implements `AsyncSession`."""

    def __init__(self, session: Session, owner: ForkGuard) -> None:
        self._session = session
        self._threads = _Threads(owner)

    async def execute(
        self, text: str, parameters: Sequence[object], timeout_s: float | None, *, at: ReadPoint | None = None
    ) -> ThreadOutcome:
        """See `Session.execute`."""
        call = partial(self._session.execute, text, parameters, timeout_s, at=at)
        outcome = await self._threads.run_or_end(call, lambda outcome: None if outcome is None else outcome.close())
        return ThreadOutcome(outcome, self._threads)

    async def hold(self, name: str, lease_s: float, like: ReadPoint | None) -> ReadPoint:
        """See `Session.hold`."""
        return await self._threads.run(self._session.hold, name, lease_s, like)

    async def let_go(self, point: ReadPoint) -> None:
        """See `Session.let_go`."""
        await self._threads.run(self._session.let_go, point)

    async def insert(self, device: str, times: object, columns: Mapping[str, object], *, aligned: bool | None) -> int:
        """See `Session.insert`."""
        return await self._threads.run(self._session.insert, device, times, columns, aligned=aligned)

    async def insert_rows(self, rows: DeviceRows) -> RowsWritten:
        """See `Session.insert_rows`."""
        return await self._threads.run(self._session.insert_rows, rows)

    async def write_lines(self, write: LineWrite) -> LinesWritten:
        """See `Session.write_lines`."""
        return await self._threads.run(self._session.write_lines, write)

    async def close(self) -> None:
        """See `Session.close`."""
        await self._threads.end(self._session.close)
        self._threads.close()


class ThreadOutcome:
    """An outcome whose rows are fetched on threads. Implements `AsyncOutcome`."""

    def __init__(self, outcome: Outcome, threads: _Threads) -> None:
        self._outcome = outcome
        self._threads = threads

    @property
    def query_id(self) -> str:
        """See `Outcome.query_id`."""
        return self._outcome.query_id

    @property
    def names(self) -> Sequence[str] | None:
        """See `Outcome.names`."""
        return self._outcome.names

    @property
    def type_names(self) -> Sequence[str]:
        """See `Outcome.type_names`."""
        return self._outcome.type_names

    @property
    def schema(self) -> pa.Schema:
        """See `Outcome.schema`."""
        return self._outcome.schema

    @property
    def update_count(self) -> int:
        """See `Outcome.update_count`."""
        return self._outcome.update_count

    @property
    def stale(self) -> bool:
        """See `Outcome.stale`."""
        return self._outcome.stale

    @property
    def missing(self) -> Sequence[str]:
        """See `Outcome.missing`."""
        return self._outcome.missing

    async def fetch_batch(self) -> pa.RecordBatch | None:
        """See `AsyncOutcome.fetch_batch`."""
        return await self._threads.run_or_end(self._outcome.next_batch, lambda _: self._outcome.close())

    async def cancel(self) -> None:
        """See `AsyncOutcome.cancel`."""
        await self._threads.end(self._outcome.close)
