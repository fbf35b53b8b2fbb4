"""A writer that waits for memory gets it, since its wait starts the flush that frees memory."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema
from saros_storage.store import Store

SERIES = SeriesSchema("x", DataType.INT64, Encoding.PLAIN, Compressor.UNCOMPRESSED)
LIMIT = 100_000
OPTIONS = StoreOptions(durability="os", time_partition_interval=100_000, memtables_total_bytes_max=LIMIT)


def write(store: Store, slice_: int, rows: int) -> None:
    times = np.arange(slice_ * 100_000, slice_ * 100_000 + rows)
    store.write([Tablet("root.a.d", ("x",), times, (Column(DataType.INT64, times),), False)])


def test_memory_that_fills_up_while_something_is_flushed_is_freed_afterwards(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path), OPTIONS, LocalDisk(), SystemClock())
    store.change_schema([CreateDatabase("root.a"), CreateSeries("root.a.d", False, (SERIES,))])
    with store._region.flusher.folders:  # the flusher needs this lock to complete a flush
        for slice_ in range(5):
            write(store, slice_, 900)
        write(store, 5, 50_000)
    waiting = threading.Thread(target=write, args=(store, 6, 10), daemon=True)
    waiting.start()
    waiting.join(20)
    assert not waiting.is_alive(), "the writer waits for memory that nobody frees"
    assert store.status().memtable_bytes <= LIMIT
    store.close()
