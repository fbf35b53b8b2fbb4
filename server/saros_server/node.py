"""A node: the composition root. It builds the parts of one database, in order, and takes them down in reverse.

    folder + Configuration -> Store (files, log, schema) -> DriverScheduler (worker threads) -> QueryEngine

Nothing else in Saros builds these. `Node.open` either gives a whole node or leaves nothing behind; `close` ends running
queries, flushes nothing (the log has it all), and frees the folder. Thread-safe after `open`.
"""

from __future__ import annotations

import os
from pathlib import Path

from saros_engine.coordinator import QueryEngine
from saros_engine.options import EngineOptions
from saros_scheduler import DriverScheduler, SchedulerOptions
from saros_server.configuration import Configuration
from saros_storage.allocator import keep_freed_memory
from saros_storage.clock import Clock, SystemClock
from saros_storage.disk import Disk, LocalDisk
from saros_storage.kernels.jit import use_cache_folder
from saros_storage.store import Store
from saros_storage.store_options import StoreOptions
from saros_storage.types import TimeUnit

UNITS = {unit.suffix: unit for unit in TimeUnit}


class Node:
    """One open database. Made by `Node.open`."""

    def __init__(
        self, configuration: Configuration, store: Store, scheduler: DriverScheduler, engine: QueryEngine
    ) -> None:
        self.configuration = configuration
        self.store = store
        self.scheduler = scheduler
        self.engine = engine

    @staticmethod
    def open(
        folder: str, configuration: Configuration, *, disk: Disk | None = None, clock: Clock | None = None
    ) -> Node:
        """Open (or make) the database in `folder`. Raises StorageError: in use, newer format, corrupt log."""
        keep_freed_memory()
        use_cache_folder(fallback=os.path.join(folder, "kernels"))
        clock = clock or SystemClock()
        store = Store.open(folder, store_options(configuration), disk or LocalDisk(), clock)
        try:
            scheduler = DriverScheduler(
                SchedulerOptions(worker_threads=configuration.worker_threads), clock.monotonic_ns
            )
        except BaseException:
            store.close()
            raise
        engine = QueryEngine(store, scheduler, clock, engine_options(configuration))
        return Node(configuration, store, scheduler, engine)

    def close(self) -> None:
        """End what runs and free the folder. Idempotent."""
        self.engine.close()
        self.scheduler.close()
        self.store.close()


def store_options(configuration: Configuration) -> StoreOptions:
    """The store's share of the configuration."""
    unit = UNITS[configuration.time_unit]
    return StoreOptions(
        time_unit=unit,
        time_partition_interval=configuration.time_partition_interval_ms * unit.value // 1_000,
        durability=configuration.durability,
        memtable_bytes_max=configuration.memtable_bytes,
        memtables_total_bytes_max=configuration.memtables_total_bytes,
        cache_bytes=configuration.chunk_cache_bytes,
    )


def engine_options(configuration: Configuration) -> EngineOptions:
    """The engine's share of the configuration."""
    return EngineOptions(
        parallelism=configuration.worker_threads,
        query_memory_bytes_max=configuration.query_memory_bytes,
        query_timeout_ms=configuration.query_timeout_ms,
        default_database_level=configuration.default_database_level,
    )


def configuration_file(folder: str) -> str | None:
    """The folder's own `saros.toml`, if it has one."""
    path = Path(folder) / "saros.toml"
    return str(path) if path.is_file() else None
