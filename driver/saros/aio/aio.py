"""The driver for asyncio: the same connections and cursors, whose waiting is done on threads.

    async with await saros.aio.connect("./data") as connection:
        async for row in await connection.execute("select * from root.a.d"):
            ...

A connection has threads of its own, up to `THREADS`: so many calls of its tasks wait at once, others for their turn. A
task that is cancelled while it waits cancels its query on the node, or gives up its turn. Cancelling and closing
have other threads, since they must not wait for what they end. One task at a time uses a cursor; tasks may share a
connection.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar, Unpack

import saros
from saros.api.connection import Options
from saros.api.cursor import Cursor, Description, Row
from saros.base.fork_guard import ForkGuard
from saros.errors import Error, InterfaceError

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    import pandas as pd
    import pyarrow as pa

P = ParamSpec("P")
R = TypeVar("R")
#: A thread that waits costs some KiB; a node runs a few statements at a time.
THREADS = 64
#: Rows that one trip to a thread brings.
_ROWS = 1_000


async def connect(target: str | os.PathLike[str], **options: Unpack[Options]) -> AsyncConnection:
    """As `saros.connect`, with its arguments."""
    return AsyncConnection(await asyncio.to_thread(partial(saros.connect, target, **options)))


class _Threads:
    """Where a connection's calls wait; they end with it, or when nobody has it any more.

    A process that was forked has none of them: calls are refused there.
    """

    def __init__(self, owner: ForkGuard) -> None:
        self._owner = owner
        self._calls = ThreadPoolExecutor(THREADS, "saros-aio")
        #: As many: an embedded statement ends after the step it is at, and one must not wait for another's.
        self._ends = ThreadPoolExecutor(THREADS, "saros-aio-end")
        self._closed = False

    async def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do a call on a thread; one that has begun goes on if the task is cancelled. Raises InterfaceError."""
        return await asyncio.wrap_future(self._begin(partial(call, *args, **kwargs)))

    async def run_or_cancel(self, cancel: Callable[[], None], call: Callable[[], R]) -> R:
        """Do a call on a thread; if the task is cancelled, `cancel` what it waits for, and wait until it has ended."""
        begun = self._begin(call)
        waiting = asyncio.wrap_future(begun)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not begun.cancel():
                await self.end(cancel)
                with suppress(Error):  # that it was cancelled: the cause is ours
                    await waiting
                await self.end(cancel)  # of a call that began a statement: it can be cancelled only now
            raise

    async def end(self, call: Callable[[], None]) -> None:
        """Do a call that ends others, which do not keep it waiting."""
        if not self._owner.is_own_process:
            call()
        elif not self._closed:
            await asyncio.wrap_future(self._ends.submit(call))

    def close(self) -> None:
        """No further calls."""
        self._closed = True
        if self._owner.is_own_process:
            self._calls.shutdown(wait=False)
            self._ends.shutdown(wait=False)

    def _begin(self, call: Callable[[], R]) -> Future[R]:
        if self._closed:
            raise InterfaceError("the connection is closed", 2014)
        self._owner.check()
        return self._calls.submit(call)


class AsyncConnection:
    """A connection; made by `connect`."""

    def __init__(self, connection: saros.Connection) -> None:
        self._connection = connection
        self._threads = _Threads(connection.owner)

    @property
    def closed(self) -> bool:
        """See `saros.Connection.closed`."""
        return self._connection.closed

    def cursor(self) -> AsyncCursor:
        """A new cursor."""
        return AsyncCursor(self._connection.cursor(), self._threads)

    async def execute(
        self, statement: str, parameters: Sequence[object] = (), *, at: saros.ReadPoint | None = None
    ) -> AsyncCursor:
        """A new cursor that has executed `statement`; `at`: the moment that a SELECT sees."""
        return await self.cursor().execute(statement, parameters, at=at)

    async def insert(self, device: str, times: object, columns: object, *, aligned: bool | None = None) -> int:
        """See `saros.Connection.insert`. A task that is cancelled does not undo it."""
        return await self._threads.run(self._connection.insert, device, times, columns, aligned=aligned)

    async def hold(
        self, lease_s: float = 600.0, *, name: str | None = None, like: saros.ReadPoint | None = None
    ) -> saros.ReadPoint:
        """See `saros.Connection.hold`."""
        return await self._threads.run(self._connection.hold, lease_s, name=name, like=like)

    async def let_go(self, point: saros.ReadPoint) -> None:
        """See `saros.Connection.let_go`."""
        await self._threads.run(self._connection.let_go, point)

    async def close(self) -> None:
        """Close the connection and its cursors. Idempotent."""
        await self._threads.end(self._connection.close)
        self._threads.close()

    async def __aenter__(self) -> Self:
        if self.closed:
            raise InterfaceError("the connection is closed", 2014)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncCursor:
    """A cursor; made by a connection."""

    def __init__(self, cursor: Cursor, threads: _Threads) -> None:
        self._cursor = cursor
        self._threads = threads

    @property
    def arraysize(self) -> int:
        """See `Cursor.arraysize`."""
        return self._cursor.arraysize

    @arraysize.setter
    def arraysize(self, rows: int) -> None:
        self._cursor.arraysize = rows

    async def execute(
        self, statement: str, parameters: Sequence[object] = (), *, at: saros.ReadPoint | None = None
    ) -> Self:
        """See `Cursor.execute`."""
        await self._wait(self._cursor.execute, statement, parameters, at=at)
        return self

    async def executemany(self, statement: str, rows: Iterable[Sequence[object]]) -> Self:
        """See `Cursor.executemany`."""
        await self._wait(self._cursor.executemany, statement, rows)
        return self

    def prepare(self, statement: str) -> AsyncPrepared:
        """See `Cursor.prepare`."""
        return AsyncPrepared(self, self._cursor.prepare(statement).statement)

    @property
    def description(self) -> list[Description] | None:
        """See `Cursor.description`."""
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        """See `Cursor.rowcount`."""
        return self._cursor.rowcount

    @property
    def query_id(self) -> str:
        """See `Cursor.query_id`."""
        return self._cursor.query_id

    @property
    def stale(self) -> bool:
        """See `Cursor.stale`."""
        return self._cursor.stale

    @property
    def missing(self) -> tuple[str, ...]:
        """See `Cursor.missing`."""
        return self._cursor.missing

    async def fetchone(self) -> Row | None:
        """See `Cursor.fetchone`."""
        return await self._wait(self._cursor.fetchone)

    async def fetchmany(self, size: int | None = None) -> list[Row]:
        """See `Cursor.fetchmany`."""
        return await self._wait(self._cursor.fetchmany, size)

    async def fetchall(self) -> list[Row]:
        """See `Cursor.fetchall`."""
        return await self._wait(self._cursor.fetchall)

    async def fetch_arrow(self) -> pa.Table:
        """See `Cursor.fetch_arrow`."""
        return await self._wait(self._cursor.fetch_arrow)

    async def fetch_pandas(self) -> pd.DataFrame:
        """See `Cursor.fetch_pandas`."""
        return await self._wait(self._cursor.fetch_pandas)

    async def fetch_numpy(self) -> dict[str, np.ndarray[Any, Any]]:
        """See `Cursor.fetch_numpy`."""
        return await self._wait(self._cursor.fetch_numpy)

    async def fetch_batches(self) -> AsyncIterator[pa.RecordBatch]:
        """See `Cursor.fetch_batches`."""
        batches = await self._wait(self._cursor.fetch_batches)
        while (batch := await self._wait(next, batches, None)) is not None:
            yield batch

    async def cancel(self) -> None:
        """See `Cursor.cancel`; from any task."""
        await self._threads.end(self._cursor.cancel)

    async def close(self) -> None:
        """See `Cursor.close`."""
        await self._threads.end(self._cursor.close)

    async def __aiter__(self) -> AsyncIterator[Row]:
        while rows := await self.fetchmany(_ROWS):
            for row in rows:
                yield row

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _wait(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._threads.run_or_cancel(self._cursor.cancel, partial(call, *args, **kwargs))


@dataclass(frozen=True, slots=True)
class AsyncPrepared:
    """A statement with `?`; made by `AsyncCursor.prepare`."""

    cursor: AsyncCursor
    statement: str

    async def execute(self, parameters: Sequence[object] = ()) -> AsyncCursor:
        """See `Prepared.execute`."""
        return await self.cursor.execute(self.statement, parameters)

    async def executemany(self, rows: Iterable[Sequence[object]]) -> AsyncCursor:
        """See `Prepared.executemany`."""
        return await self.cursor.executemany(self.statement, rows)
