"""The driver for asyncio: the same connections and cursors, whose waiting is done on threads.

    async with await saros.aio.connect("./data") as connection:
        async for row in await connection.execute("select * from root.a.d"):
            ...

A task that is cancelled while it waits cancels its statement on the node. One task at a time uses a cursor; tasks may
share a connection.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import saros
from saros.cursor import Cursor, Row
from saros.errors import Error

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

P = ParamSpec("P")
R = TypeVar("R")
#: Rows that one trip to a thread brings.
_ROWS = 1_000


async def connect(target: str | os.PathLike[str], **options: Any) -> AsyncConnection:
    """As `saros.connect`, with its arguments."""
    return AsyncConnection(await asyncio.to_thread(saros.connect, target, **options))


class AsyncConnection:
    """A connection; made by `connect`."""

    def __init__(self, connection: saros.Connection) -> None:
        self._connection = connection

    def cursor(self) -> AsyncCursor:
        """A new cursor."""
        return AsyncCursor(self._connection.cursor())

    async def execute(self, statement: str, parameters: Sequence[object] = ()) -> AsyncCursor:
        """A new cursor that has executed `statement`."""
        cursor = self.cursor()
        await cursor.execute(statement, parameters)
        return cursor

    async def insert(self, device: str, times: object, columns: object, *, aligned: bool | None = None) -> int:
        """See `saros.Connection.insert`. A task that is cancelled does not undo it."""
        return await asyncio.to_thread(self._connection.insert, device, times, columns, aligned=aligned)

    async def close(self) -> None:
        """Close the connection and its cursors. Idempotent."""
        await asyncio.to_thread(self._connection.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncCursor:
    """A cursor; made by a connection."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    async def execute(self, statement: str, parameters: Sequence[object] = ()) -> Self:
        """See `Cursor.execute`."""
        await self._wait(self._cursor.execute, statement, parameters)
        return self

    async def executemany(self, statement: str, rows: Iterable[Sequence[object]]) -> Self:
        """See `Cursor.executemany`."""
        await self._wait(self._cursor.executemany, statement, rows)
        return self

    def prepare(self, statement: str) -> AsyncPrepared:
        """See `Cursor.prepare`."""
        return AsyncPrepared(self, self._cursor.prepare(statement).statement)

    @property
    def description(self) -> list[Any] | None:
        """See `Cursor.description`."""
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        """See `Cursor.rowcount`."""
        return self._cursor.rowcount

    @property
    def stale(self) -> bool:
        """See `Cursor.stale`."""
        return self._cursor.stale

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

    async def close(self) -> None:
        """See `Cursor.close`."""
        await asyncio.to_thread(self._cursor.close)

    async def __aiter__(self) -> AsyncIterator[Row]:
        while rows := await self.fetchmany(_ROWS):
            for row in rows:
                yield row

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _wait(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do a call on a thread; if the task is cancelled, cancel the statement and wait until the thread is free."""
        running = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._cursor.cancel)
            with suppress(Error):  # that it was cancelled: the cause is ours
                await running
            raise


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
