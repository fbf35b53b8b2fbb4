"""Protocols of sessions and outcomes, which embedded and remote databases implement. Results are in Arrow format.

The embedded implementation is in `saros_server.api.session`, the remote ones in `saros.transport` and `saros.aio`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from saros_wire.device_rows import DeviceRows, RowsWritten
    from saros_wire.line_writes import LinesWritten, LineWrite
    from saros_wire.read_point import ReadPoint


class Described(Protocol):
    """The properties of an outcome that are known without waiting."""

    @property
    def query_id(self) -> str:
        """The id for SHOW QUERIES and KILL QUERY, or "" for statements that are not queries."""
        ...

    @property
    def names(self) -> Sequence[str] | None:
        """The column names, or None if the statement returns no rows."""
        ...

    @property
    def type_names(self) -> Sequence[str]:
        """The type name of each column, such as DOUBLE."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the batches."""
        ...

    @property
    def update_count(self) -> int:
        """The number of points written or objects changed, or -1 if it is not known."""
        ...

    @property
    def stale(self) -> bool:
        """True if the rows may be stale, as in `Cursor.stale`."""
        ...

    @property
    def missing(self) -> Sequence[str]:
        """The missing data, as in `Cursor.missing`."""
        ...


class Outcome(Described, Protocol):
    """The outcome of a statement: rows if `names` is not None, otherwise a count of changes."""

    def next_batch(self) -> pa.RecordBatch | None:
        """Return the next batch that is not empty, or None at the end."""
        ...

    def close(self) -> None:
        """Release the remaining rows, and cancel the query if it still runs. Idempotent. Any thread may call this."""
        ...


class AsyncOutcome(Described, Protocol):
    """An `Outcome` whose methods tasks await."""

    async def fetch_batch(self) -> pa.RecordBatch | None:
        """Return the next batch that is not empty, or None at the end."""
        ...

    async def cancel(self) -> None:
        """Release the remaining rows, as `Outcome.close` does. Idempotent. Any task may call this."""
        ...


class Session(Protocol):
    """A session on a database: its time zone, its timeout, and its statements."""

    def execute(
        self, text: str, parameters: Sequence[object], timeout_s: float | None, *, at: ReadPoint | None = None
    ) -> Outcome:
        """Execute one statement. `at` is the read point of a SELECT. Errors carry a status `code`."""
        ...

    def hold(self, name: str, lease_s: float, like: ReadPoint | None) -> ReadPoint:
        """Take a snapshot under a name, or return the existing snapshot with this name.

        If `like` is a read point, the new snapshot is taken at the node of `like`. The node must not have been
        restarted since it took `like`.
        """
        ...

    def let_go(self, point: ReadPoint) -> None:
        """Release a snapshot."""
        ...

    def insert(self, device: str, times: object, columns: Mapping[str, object], *, aligned: bool | None) -> int:
        """Write columns of one device. Return the number of points."""
        ...

    def insert_rows(self, rows: DeviceRows) -> RowsWritten:
        """Write rows of several devices in one call. Devices whose rows are refused do not affect the others."""
        ...

    def write_lines(self, write: LineWrite) -> LinesWritten:
        """Write lines of InfluxDB's line protocol. Wrong lines are left out."""
        ...

    def close(self) -> None:
        """Close the session, and cancel its running statements. Idempotent."""
        ...


class AsyncSession(Protocol):
    """A `Session` whose methods tasks await."""

    async def execute(
        self, text: str, parameters: Sequence[object], timeout_s: float | None, *, at: ReadPoint | None = None
    ) -> AsyncOutcome:
        """See `Session.execute`."""
        ...

    async def hold(self, name: str, lease_s: float, like: ReadPoint | None) -> ReadPoint:
        """See `Session.hold`."""
        ...

    async def let_go(self, point: ReadPoint) -> None:
        """See `Session.let_go`."""
        ...

    async def insert(self, device: str, times: object, columns: Mapping[str, object], *, aligned: bool | None) -> int:
        """See `Session.insert`."""
        ...

    async def insert_rows(self, rows: DeviceRows) -> RowsWritten:
        """See `Session.insert_rows`."""
        ...

    async def write_lines(self, write: LineWrite) -> LinesWritten:
        """See `Session.write_lines`."""
        ...

    async def close(self) -> None:
        """See `Session.close`."""
        ...
