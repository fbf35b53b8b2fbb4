"""Results of statements. A result has rows, which the client pulls block by block, or a count of changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from saros_engine.base.errors import QueryKilled
from saros_engine.base.slow_queries import Stopwatch
from saros_engine.plan.plan import Field
from saros_storage.base.block import Block, Column
from saros_storage.base.types import Scalar
from saros_storage.scan.read_point import HERE, ReadPoint


class Rows(Protocol):
    """The source of a result's blocks."""

    def next_block(self) -> Block | None:
        """Wait for the next non-empty block and return it; None at the end. Raises the error that ended the query."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait up to a timeout for rows or the end; return whether `next_block` would now return at once."""
        ...

    def close(self) -> None:
        """Release all resources. Idempotent; any thread."""
        ...


class Result:
    """The result of one statement. If `timed`, a Time column precedes `fields`."""

    def __init__(
        self,
        query_id: str,
        fields: Sequence[Field] = (),
        *,
        timed: bool = False,
        rows: Rows | None = None,
        count: int = 0,
        point: ReadPoint = HERE,
    ) -> None:
        self._point = point
        #: Empty if the statement is not a query.
        self.query_id = query_id
        self.fields = tuple(fields)
        self.timed = timed
        self.has_rows = rows is not None
        #: The number of points or objects that were changed; -1 for queries.
        self.update_count = -1 if rows is not None else count
        self._rows = rows
        #: The stopwatch to stop when all rows are read, or None if the statement is not timed.
        self._watch: Stopwatch | None = None

    def timed_by(self, watch: Stopwatch) -> None:
        """Stop a stopwatch when the result ends: at its last row, at an error, or when it is closed."""
        if self._rows is None:
            watch.stop(self.query_id)
        else:
            self._watch = watch

    @property
    def stale(self) -> bool:
        """True if there may be newer data on nodes that could not be asked.

        The value is final once all rows have been read.
        """
        return self._point.stale

    @property
    def missing(self) -> Sequence[str]:
        """One text for each group whose data was omitted; the text names the databases, the group, and the reason."""
        return tuple(self._point.missing.values())

    def next_block(self) -> Block | None:
        """Wait for the next rows and return them; None at the end. Raises the error that ended the query."""
        if self._rows is None:
            return None
        block = None
        try:
            block = self._rows.next_block()
        finally:
            if block is None:
                self._stop_watch()
        return block

    def wait(self, seconds: float) -> bool:
        """Wait up to a timeout for rows or the end; return whether `next_block` would now return at once."""
        return self._rows is None or self._rows.wait(seconds)

    def close(self) -> None:
        """End the query if it still runs, and release its resources. Idempotent; any thread."""
        if self._rows is not None:
            self._rows.close()
            self._stop_watch()

    def _stop_watch(self) -> None:
        if self._watch is not None:
            self._watch.stop(self.query_id)


class FixedRows:
    """Rows that are known in advance, in one block."""

    def __init__(self, block: Block) -> None:
        self._block: Block | None = block if block.rows else None
        self._is_cut = False

    def next_block(self) -> Block | None:
        """See `Rows.next_block`."""
        if self._is_cut:
            raise QueryKilled.by_client()
        block, self._block = self._block, None
        return block

    def wait(self, seconds: float) -> bool:  # noqa: ARG002 (the rows are in memory)
        """See `Rows.wait`."""
        return True

    def close(self) -> None:
        """See `Rows.close`. Later reads raise QueryKilled unless the block was read."""
        self._is_cut |= self._block is not None
        self._block = None


def fixed_result(
    fields: Sequence[Field], rows: Iterable[Sequence[Scalar]], point: ReadPoint = HERE, *, timed: bool = False
) -> Result:
    """Return a result with given rows.

    If `timed`, the first value of each row is its time, and `fields[0]` is `Time`.
    """
    listed = list(rows)
    times = np.array([row[0] for row in listed], np.int64) if timed else None
    first = 1 if timed else 0
    columns = tuple(Column.of(field.type, [row[i] for row in listed]) for i, field in enumerate(fields) if i >= first)
    return Result("", fields[first:], timed=timed, rows=FixedRows(Block(times, columns, len(listed))), point=point)
