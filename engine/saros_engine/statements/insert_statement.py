"""Batches of columns that are written together, each by itself: what the engine is given, and what it has begun.

    ColumnBatch -> handed over to the database with the others -> Inserting.wait: written | not yet | write it alone

Values; `InsertExecutor.wait` is for one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from saros_engine.base.access import Access
from saros_engine.base.database import Writing
from saros_storage.base.block import Column
from saros_storage.base.types import Int64Array
from saros_storage.base.write_request import WriteRequest


@dataclass(frozen=True, slots=True)
class ColumnBatch:
    """Rows of a device: times (n,), columns (n,) by canonical measurement; who writes them, as which request."""

    device: str
    times: Int64Array
    columns: Mapping[str, Column]
    aligned: bool | None
    access: Access
    request: WriteRequest


@dataclass(frozen=True, slots=True)
class InsertExecutor:
    """A batch that was handed over."""

    writing: Writing
    points: int
    #: Is told of the points when they are written.
    count: Callable[[int], None]

    def wait(self, seconds: float) -> bool | None:
        """See `Writing.wait`; not to be called again after True."""
        written = self.writing.wait(seconds)
        if written:
            self.count(self.points)
        return written
