"""What the driver needs from a database, embedded or remote: a `Session` that returns `Outcome`s in Arrow.

Protocols only. The embedded one is `saros_server.api.session`.
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
        """For SHOW QUERIES and KILL QUERY; empty for statements that are not queries."""
        ...

    @property
    def names(self) -> Sequence[str] | None:
        """Column names; None: the statement gives no rows."""
        ...

    @property
    def type_names(self) -> Sequence[str]:
        """Saros type name of each column."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the batches."""
        ...

    @property
    def update_count(self) -> int:
        """Points written or things changed; -1 if not known."""
        ...

    @property
    def stale(self) -> bool:
        """Whether the rows may be old: see `Cursor.stale`."""
        ...

    @property
    def missing(self) -> Sequence[str]:
        """The data that was left out: see `Cursor.missing`."""
        ...


class Outcome(Described, Protocol):
    """What one statement gave: rows (`names` not None) or the fact that it was done."""

    def next_batch(self) -> pa.RecordBatch | None:
        """The next non-empty batch; None at the end."""
        ...

    def close(self) -> None:
        """Release what is left; cancels a query that still runs. Any thread; idempotent."""
        ...


class AsyncOutcome(Described, Protocol):
    """An `Outcome` that tasks wait for."""

    async def fetch_batch(self) -> pa.RecordBatch | None:
        """The next non-empty batch; None at the end."""
        ...

    async def cancel(self) -> None:
        """Release what is left, as `Outcome.close` does. Any task; idempotent."""
        ...


class Session(Protocol):
    """One client's conversation: its time zone, its time-out, its statements."""

    def execute(
        self, text: str, parameters: Sequence[object], timeout_s: float | None, *, at: ReadPoint | None = None
    ) -> Outcome:
        """Run one statement; errors carry a status `code`. `at`: the moment that a SELECT sees."""
        ...

    def hold(self, name: str, lease_s: float, like: ReadPoint | None) -> ReadPoint:
        """Keep the moment of now under a name, or find the one that is kept under it.

        `like`: at that one's node, which must be the same process.
        """
        ...

    def let_go(self, point: ReadPoint) -> None:
        """Keep it no longer."""
        ...

    def insert(self, device: str, times: object, columns: Mapping[str, object], *, aligned: bool | None) -> int:
        """Columnar write; returns the number of points."""
        ...

    def insert_rows(self, rows: DeviceRows) -> RowsWritten:
        """Write rows of several devices in one call; one that is refused keeps no other from being written."""
        ...

    def write_lines(self, write: LineWrite) -> LinesWritten:
        """Write lines of InfluxDB's line protocol, as many as can be."""
        ...

    def close(self) -> None:
        """End the conversation and what still runs in it. Idempotent."""
        ...


class AsyncSession(Protocol):
    """A `Session` that tasks wait for."""

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
