"""A store in a folder, and an engine over this store, for tests in SQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from saros_engine.base.session_context import SessionContext
from saros_engine.coordinator import QueryEngine
from saros_engine.memory.options import EngineOptions
from saros_scheduler import DriverScheduler, SchedulerOptions
from saros_storage.base.block import Column
from saros_storage.base.clock import Clock, SystemClock
from saros_storage.base.types import DataType
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.store import Store

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Engine:
    """A store in `folder` and an engine over this store; `options` are passed to the engine."""

    def __init__(
        self,
        folder: Path,
        options: EngineOptions | None = None,
        store_options: StoreOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        stored = store_options or StoreOptions(durability="os")
        self.store = Store.open(str(folder), stored, LocalDisk(), self._clock)
        self.scheduler = DriverScheduler(SchedulerOptions(), self._clock.monotonic_ns)
        self.set_options(options or EngineOptions())
        self.session = SessionContext()

    def set_options(self, options: EngineOptions) -> None:
        """Replace the engine by a new one with these options, over the same store."""
        self.options = options
        self.engine = QueryEngine(self.store, self.scheduler, self._clock, options)

    def ask(self, text: str) -> tuple[list[str], list[list[object]]]:
        """Return the header and the rows of a statement's result."""
        result = self.engine.execute(text, self.session)
        header = (["Time"] if result.timed else []) + [field.name for field in result.fields]
        rows: list[list[object]] = []
        try:
            while (block := result.next_block()) is not None:
                columns: list[list[object]] = [[_shown(v, c.type) for v in c.to_list()] for c in block.columns]
                if result.timed:
                    columns.insert(0, list(block.times.tolist()))
                rows += [list(row) for row in zip(*columns, strict=True)]
        finally:
            result.close()
        return header, rows

    def close(self) -> None:
        self.engine.close()
        self.scheduler.close()
        self.store.close()


def engine_with_long_columns(folder: Path, rows: int, options: EngineOptions | None = None) -> Engine:
    """Return an engine whose `root.a.d` has numbers in `n`, and values only in the first and last row of `edges`."""
    made = Engine(folder, options)
    edges = np.zeros(rows, np.bool_)
    edges[[0, -1]] = True
    numbers = np.arange(rows)
    columns = {"n": Column(DataType.INT64, numbers), "edges": Column(DataType.INT64, numbers, edges)}
    made.engine.insert_columns("root.a.d", numbers, columns)
    return made


def _shown(value: object, type_: DataType) -> object:
    """Format dates and times as the conformance cases do."""
    if isinstance(value, float) and type_ is DataType.FLOAT:
        return str(np.float32(value))
    if value is None or not isinstance(value, int):
        return value
    if type_ is DataType.DATE:
        return f"{value // 10_000}-{value // 100 % 100:02}-{value % 100:02}"
    if type_ is DataType.TIMESTAMP:
        return Instant(value)
    return value


class Instant(int):
    """A number of ticks that is printed as a date."""

    def __str__(self) -> str:
        moment = EPOCH + timedelta(milliseconds=int(self))
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{int(self) % 1_000:03}Z"
