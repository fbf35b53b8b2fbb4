"""Data restored by a replay of the log must survive the next replay, too.

When a store is closed, rows in memory are not flushed, but remain in the log.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from waiting import wait_until

from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import CorruptFile
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.scan.reading import ScanRequest
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema
from saros_storage.store import Store

SERIES = SeriesSchema("x", DataType.INT64, Encoding.PLAIN, Compressor.UNCOMPRESSED)
DEVICES = ("root.a.d", "root.b.d")
SMALL = StoreOptions(durability="os", memtable_bytes_max=4_000)
LARGE = StoreOptions(durability="os")


def open_store(folder: Path, options: StoreOptions) -> Store:
    return Store.open(str(folder), options, LocalDisk(), SystemClock())


def new_store(folder: Path) -> Store:
    store = open_store(folder, LARGE)
    for device in DEVICES:
        store.change_schema([CreateDatabase(device[:-2]), CreateSeries(device, False, (SERIES,))])
    return store


def write(store: Store, device: str, start: int, rows: int = 10) -> None:
    times = np.arange(start, start + rows)
    store.write([Tablet(device, ("x",), times, (Column(DataType.INT64, times * 2),), False)])


def times_of(store: Store, device: str) -> list[int]:
    view = store.view()
    reader = view.open(ScanRequest(device, ("x",), (DataType.INT64,), False))
    found: list[int] = []
    while (block := reader.next()) is not None:
        found += block.times.tolist()
    view.close()
    return found


def wait_for_files(store: Store) -> None:
    wait_until(lambda: store.status().files >= 2)


def test_rows_behind_a_flush_during_replay_survive(tmp_path: Path) -> None:
    store = new_store(tmp_path / "first")
    for start in range(0, 1_000, 10):
        write(store, "root.a.d", start)
    write(store, "root.b.d", 0)
    store.flush(["root.b"])
    store.close()
    store = open_store(tmp_path / "first", SMALL)
    wait_for_files(store)
    store.close()
    store = open_store(tmp_path / "first", LARGE)
    assert list(range(1_000)) == times_of(store, "root.a.d")
    store.close()


def test_rows_in_memory_survive_a_file_that_is_set_aside(tmp_path: Path) -> None:
    store = new_store(tmp_path / "first")
    write(store, "root.a.d", 0)
    store.flush()
    write(store, "root.a.d", 100)
    (file,) = (tmp_path / "first").rglob("*.tsfile")
    store.close()
    file.write_bytes(bytes(file.stat().st_size))
    store = open_store(tmp_path / "first", LARGE)
    write(store, "root.a.d", 200)
    with pytest.raises(CorruptFile):
        times_of(store, "root.a.d")
    wait_until(lambda: any((tmp_path / "first").rglob("corrupt/*.tsfile")))
    store.close()
    store = open_store(tmp_path / "first", LARGE)
    assert [100, 200] == times_of(store, "root.a.d")[::10]
    store.close()
