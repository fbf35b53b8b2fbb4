"""The driver for asyncio: connections and cursors as in `saros.api`, with methods to await.

    async with await saros.aio.connect("saros://localhost") as connection:
        async for row in await connection.execute("select * from root.a.d"):
            ...

    saros://...   `RemoteCalls` on sockets of the event loop; no threads
    a folder      the embedded session, on threads

Cancelling a task that awaits a statement cancels the statement. Tasks may share a connection, in one event loop at a
time. Only one task may use a cursor at a time.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import weakref
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Self, Unpack

import msgspec

from saros.api.connection import Options, target_of
from saros.api.cursor_state import CursorState, Row, failed_row
from saros.api.embedded import open_embedded
from saros.api.session import AsyncOutcome, AsyncSession
from saros.base.fork_guard import ForkGuard, refuse_pickling
from saros.base.frames import pandas_frame, polars_frame, times_and_columns
from saros.base.line_writes import line_write, points_of
from saros.base.short_names import shortened
from saros.base.target import Target, without_password
from saros.errors import Error, InterfaceError, translated_errors

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from saros_wire.read_point import ReadPoint

#: The number of rows that iteration fetches at once.
_ROWS = 1_000


async def connect(target: str | os.PathLike[str], **options: Unpack[Options]) -> AsyncConnection:
    """Open the database in a folder, or connect to a server or cluster, for use in asyncio.

        async with await saros.aio.connect("saros://localhost") as connection: ...

    The arguments and errors are those of `saros.connect`.
    """
    where = target_of(target, **options)
    owner = ForkGuard()
    session = await (_remote(where, options) if isinstance(where, Target) else _embedded(where, options, owner))
    epoch = options.get("timestamps", "datetime") == "epoch"
    return AsyncConnection(session, owner, target=os.fspath(target), epoch=epoch, timeout=options.get("timeout"))


async def _remote(where: Target, options: Options) -> AsyncSession:
    from saros.aio.node_connection import AsyncRemoteSession

    session = AsyncRemoteSession(
        where,
        time_zone=options.get("time_zone"),
        failover_s=options.get("failover_s", 30.0),
        timeout_s=options.get("timeout"),
    )
    try:
        await session.open()
    except BaseException:
        await session.close()
        raise
    return session


async def _embedded(folder: str, options: Options, owner: ForkGuard) -> AsyncSession:
    from saros.aio.threads import ThreadSession

    zone, chosen, read_only = options.get("time_zone"), options.get("options"), options.get("read_only", False)
    opening = partial(open_embedded, folder, time_zone=zone, options=chosen, read_only=read_only)
    session = await asyncio.to_thread(opening)
    return ThreadSession(session, owner)


class AsyncConnection:
    """A session on a database, for asyncio.

    Made by `saros.aio.connect`. Use it with `async with`. Tasks of one event loop at a time may share a connection.
    """

    __reduce__ = refuse_pickling

    def __init__(
        self, session: AsyncSession, owner: ForkGuard, *, target: str, epoch: bool, timeout: float | None
    ) -> None:
        self._session = session
        self._target = without_password(target)
        self._epoch = epoch
        self._timeout = timeout
        #: The process that may use the connection.
        self._owner = owner
        self._cursors: weakref.WeakSet[AsyncCursor] = weakref.WeakSet()
        self._closed = False

    def __repr__(self) -> str:
        """Return the target without its password, or state that the connection is closed."""
        return f"<saros.AsyncConnection: {'closed' if self._closed else self._target}>"

    @property
    def closed(self) -> bool:
        """True after `close` was called."""
        return self._closed

    def cursor(self) -> AsyncCursor:
        """Return a new cursor. Raises InterfaceError if the connection is closed."""
        cursor = AsyncCursor(self._open_session(), self._owner, epoch=self._epoch, timeout=self._timeout)
        self._cursors.add(cursor)
        return cursor

    async def execute(
        self, statement: str, parameters: Sequence[object] = (), *, at: ReadPoint | None = None
    ) -> AsyncCursor:
        """Execute a statement on a new cursor, and return the cursor. See `saros.Connection.execute`."""
        return await self.cursor().execute(statement, parameters, at=at)

    async def executemany(self, statement: str, rows: Iterable[Sequence[object]]) -> AsyncCursor:
        """Execute a statement once for each row of parameters on a new cursor. See `Cursor.executemany`."""
        return await self.cursor().executemany(statement, rows)

    async def insert(
        self,
        device: str | Iterable[str],
        times: object,
        columns: object | None = None,
        *,
        aligned: bool | None = None,
    ) -> int:
        """Write columns of one device, or rows of several devices. See `saros.Connection.insert`.

        Cancelling the task does not undo the write.
        """
        with translated_errors():
            session = self._open_session()
            if isinstance(device, str):
                times, named = times_and_columns(device, times, columns)
                return await session.insert(device, times, named, aligned=aligned)
            from saros.api.bulk import device_insert

            insert = device_insert(device, times, columns, aligned)
            for part in insert.parts:
                insert.record(part, await session.insert_rows(part))
            return insert.result()

    async def write_lines(
        self,
        data: str | bytes,
        *,
        database: str,
        precision: str = "ns",
        template: str | None = None,
        time_ns: int | None = None,
    ) -> int:
        """Write lines of InfluxDB's line protocol. See `saros.Connection.write_lines`.

        Cancelling the task does not undo the write.
        """
        with translated_errors():
            write = line_write(data, database, precision, template, time_ns)
            return points_of(await self._open_session().write_lines(write))

    async def hold(
        self, lease_s: float = 600.0, *, name: str | None = None, like: ReadPoint | None = None
    ) -> ReadPoint:
        """Return a read point. See `saros.Connection.hold`."""
        with translated_errors():
            return await self._open_session().hold(secrets.token_hex(16) if name is None else name, lease_s, like)

    async def let_go(self, point: ReadPoint) -> None:
        """Release a read point. See `saros.Connection.let_go`."""
        with translated_errors():
            await self._open_session().let_go(point)

    async def close(self) -> None:
        """Close the connection with its cursors, and cancel its running statements. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if not self._owner.is_own_process:
            return
        try:
            for cursor in list(self._cursors):
                await cursor.close()
        finally:
            with translated_errors():
                await self._session.close()

    async def __aenter__(self) -> Self:
        self._open_session()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _open_session(self) -> AsyncSession:
        if self._closed:
            raise InterfaceError("the connection is closed", 2014)
        self._owner.check()
        return self._session


class AsyncCursor(CursorState[AsyncOutcome]):
    """A cursor for asyncio: executes statements, and fetches their results.

    Made by `AsyncConnection.cursor`. `async for` yields the remaining rows. Only one task may use a cursor at a time,
    except that any task may call `cancel`.
    """

    def __init__(self, session: AsyncSession, owner: ForkGuard, *, epoch: bool, timeout: float | None) -> None:
        super().__init__(owner, epoch=epoch, timeout=timeout)
        self._session = session

    async def execute(self, statement: str, parameters: Sequence[object] = (), *, at: ReadPoint | None = None) -> Self:
        """Execute one statement, and return this cursor. See `Cursor.execute`."""
        self._check_statement(statement, parameters)
        await self._finish()
        self._count_before = 0
        self._cancelled = False
        with translated_errors():
            self._outcome = await self._session.execute(statement, parameters, self._timeout, at=at)
        if self._cancelled:
            await self._outcome.cancel()
        return self

    async def executemany(self, statement: str, rows: Iterable[Sequence[object]]) -> Self:
        """Execute a statement once for each row of parameters. See `Cursor.executemany`."""
        self._check_open()
        count = 0
        for number, parameters in enumerate(rows, 1):
            try:
                await self.execute(statement, parameters)
            except Error as error:
                error.add_note(failed_row(number))
                raise
            self._count_before = count
            count = self.rowcount
        return self

    def prepare(self, statement: str) -> AsyncPrepared:
        """Return a statement to execute several times. See `Cursor.prepare`."""
        self._check_prepared(statement)
        return AsyncPrepared(self, statement)

    async def fetchone(self) -> Row | None:
        """Return the next row as a tuple, or None after the last row."""
        rows = await self.fetchmany(1)
        return rows[0] if rows else None

    async def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next rows: at most `size`, or `arraysize` if it is None."""
        wanted = self.arraysize if size is None else size
        outcome = self._result()
        rows: list[Row] = []
        while len(rows) < wanted:
            if self._begun is None:
                batch = await self._next_batch(outcome)
                if batch is None:
                    break
                self._rows_of(batch)
            rows += self._take_rows(wanted - len(rows))
        return rows

    async def fetchall(self) -> list[Row]:
        """Return all remaining rows."""
        outcome = self._result()
        rows = self._take_rows(None)
        while (batch := await self._next_batch(outcome)) is not None:
            self._rows_of(batch)
            rows += self._take_rows(None)
        return rows

    async def fetch_arrow(self, *, short_names: bool = False) -> pa.Table:
        """Return all remaining rows as one Arrow table. See `Cursor.fetch_arrow`."""
        import pyarrow as pa

        schema = self._result().schema
        table = pa.Table.from_batches([batch async for batch in self.fetch_batches()], schema=schema)
        return table.rename_columns(shortened(schema.names)) if short_names else table

    async def fetch_pandas(self, *, short_names: bool = False, time_index: bool = False) -> pd.DataFrame:
        """Return all remaining rows as a pandas DataFrame. See `Cursor.fetch_pandas`."""
        self._check_frame("pandas", time_index=time_index)
        return pandas_frame(await self.fetch_arrow(short_names=short_names), time_index=time_index)

    async def fetch_polars(self, *, short_names: bool = False) -> pl.DataFrame:
        """Return all remaining rows as a Polars DataFrame. See `Cursor.fetch_polars`."""
        self._check_frame("polars")
        return polars_frame(await self.fetch_arrow(short_names=short_names))

    async def fetch_numpy(self, *, short_names: bool = False) -> dict[str, np.ndarray[Any, Any]]:
        """Return all remaining rows as a dictionary of arrays. See `Cursor.fetch_numpy`."""
        from saros.base.columns import numpy_columns

        return numpy_columns(await self.fetch_arrow(short_names=short_names))

    async def fetch_batches(self, *, short_names: bool = False) -> AsyncIterator[pa.RecordBatch]:
        """Yield the remaining rows as Arrow record batches, as they arrive. See `Cursor.fetch_batches`."""
        outcome = self._result()
        names = shortened(outcome.schema.names) if short_names else None
        rest = self._rest_of_batch()
        batch = await self._next_batch(outcome) if rest is None else rest
        while batch is not None:
            yield batch if names is None else batch.rename_columns(names)
            batch = await self._next_batch(outcome)

    async def cancel(self) -> None:
        """Cancel the running query. May be called from any task. See `Cursor.cancel`."""
        self._cancelled = True
        if self._outcome is not None:
            await self._outcome.cancel()

    async def close(self) -> None:
        """Close the cursor, and cancel its query if it is still running. Idempotent."""
        self._closed = True
        if self._owner.is_own_process:
            await self._finish()

    async def __aiter__(self) -> AsyncIterator[Row]:
        while rows := await self.fetchmany(_ROWS):
            for row in rows:
                yield row

    async def __aenter__(self) -> Self:
        self._check_open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _take_rows(self, count: int | None) -> list[Row]:
        """Return the next `count` rows of the current batch, or all its remaining rows if `count` is None."""
        if self._begun is None:
            return []
        rows = list(islice(self._begun[1], count))
        if count is None or len(rows) < count:
            self._begun = None
        return rows

    async def _next_batch(self, outcome: AsyncOutcome) -> pa.RecordBatch | None:
        try:
            with translated_errors():
                return await outcome.fetch_batch()
        except asyncio.CancelledError:
            await outcome.cancel()
            raise

    async def _finish(self) -> None:
        outcome, self._outcome, self._begun = self._outcome, None, None
        if outcome is not None:
            await outcome.cancel()


class AsyncPrepared(msgspec.Struct, frozen=True):
    """A statement with `?` for parameters. Made by `AsyncCursor.prepare`."""

    cursor: AsyncCursor
    statement: str

    async def execute(self, parameters: Sequence[object] = ()) -> AsyncCursor:
        """Execute the statement with one value for each `?`, and return the cursor."""
        return await self.cursor.execute(self.statement, parameters)

    async def executemany(self, rows: Iterable[Sequence[object]]) -> AsyncCursor:
        """Execute the statement once for each row of values, and return the cursor."""
        return await self.cursor.executemany(self.statement, rows)
