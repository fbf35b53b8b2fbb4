"""The flusher: the MemTables that it saves together, its work while the queue is empty, and the way it stops."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest
from manual_clock import ManualClock
from storage.crash_disk import CrashDisk
from storage.store_opening import open_store
from storage.test_store_faults import events
from waiting import PATIENCE_S, wait_until

from saros_storage.base.block import Column
from saros_storage.base.errors import StorageError
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.flush import flusher
from saros_storage.folder.layout import TEMPORARY
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk, File, LocalDisk
from saros_storage.scan.reading import ScanRequest
from saros_storage.scan.snapshot import everything
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema, SetTtl
from saros_storage.store import Store

SERIES = SeriesSchema("x", DataType.INT64, Encoding.PLAIN, Compressor.UNCOMPRESSED)
MEMORY_BYTES = 1 << 20


def opened(folder: Path, disk: Disk | None = None, clock: ManualClock | None = None) -> Store:
    options = StoreOptions(durability="os", compaction=False, memtables_total_bytes_max=MEMORY_BYTES)
    return Store.open(str(folder), options, disk or LocalDisk(), clock or ManualClock())


def fill(store: Store, count: int, *times: int) -> None:
    """Write the same rows to a device of each of `count` databases, which are created if they are missing."""
    at = np.array(times or (900, 950), np.int64)
    for number in range(count):
        device = f"root.d{number:02}.d"
        if store.schema.device(device) is None:
            store.change_schema([CreateDatabase(device[:-2]), CreateSeries(device, False, (SERIES,))])
        store.write([Tablet(device, ("x",), at, (Column(DataType.INT64, at),), False)])


def seen(store: Store, number: int) -> list[int]:
    view = store.view()
    reader = view.open(ScanRequest(f"root.d{number:02}.d", ("x",), (DataType.INT64,), False))
    found: list[int] = []
    while (block := reader.next()) is not None:
        found += block.times.tolist()  # type: ignore[union-attr]
    reader.close()
    view.close()
    return found


def data_files(folder: Path) -> list[Path]:
    return [path for kind in ("seq", "unseq") for path in folder.rglob(f"{kind}/*")]


class CountingDisk(LocalDisk):
    """A disk that counts the TsFiles that are made durable together."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def sync_all(self, paths: Collection[str]) -> None:
        count = sum(path.endswith(".tsfile" + TEMPORARY) for path in paths)
        self.counts += [count] if count else []
        super().sync_all(paths)


@pytest.mark.parametrize(("gently", "together"), [(False, [2, 2, 1]), (True, [3, 2])])
def test_memtables_are_saved_together_up_to_a_number_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gently: bool, together: list[int]
) -> None:
    """A gentle flush saves more bytes together than others, since each of its syncs slows down the syncs of the log."""
    disk = CountingDisk()
    store = opened(tmp_path, disk)
    fill(store, 5)
    region = store._region
    size = region.partitions.memory_bytes // 5
    assert 5 * size == region.partitions.memory_bytes
    monkeypatch.setattr(flusher, "_TOGETHER_BYTES_MAX", 2 * size)
    monkeypatch.setattr(flusher, "_GENTLY_TOGETHER_BYTES_MAX", 3 * size)
    region.flush_chosen(everything, gently=gently)
    assert together == disk.counts
    assert 0 == region.partitions.memory_bytes
    store.close()


def test_a_memtable_that_is_larger_than_the_limit_is_saved_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = CountingDisk()
    store = opened(tmp_path, disk)
    fill(store, 3)
    monkeypatch.setattr(flusher, "_TOGETHER_BYTES_MAX", 1)
    store.flush()
    assert [1, 1, 1] == disk.counts
    store.close()


@pytest.mark.parametrize(("used", "is_urgent"), [(0, False), (MEMORY_BYTES * 3 // 4, False), (MEMORY_BYTES, True)])
def test_a_flush_is_urgent_when_writers_will_soon_wait_for_memory(tmp_path: Path, used: int, is_urgent: bool) -> None:
    store = opened(tmp_path)
    region = store._region
    region.partitions.memory_bytes = used
    assert is_urgent == region.flusher._is_urgent()
    region.partitions.memory_bytes = used and MEMORY_BYTES * 3 // 4 + 1
    assert bool(used) == region.flusher._is_urgent()
    region.partitions.memory_bytes = 0
    store.close()


def test_the_bytes_written_are_those_of_the_files(tmp_path: Path) -> None:
    store = opened(tmp_path)
    fill(store, 3)
    store.flush()
    fill(store, 2, 100, 960)
    store.flush()
    files = list(tmp_path.rglob("*.tsfile"))
    assert 7 == len(files)
    assert sum(path.stat().st_size for path in files) == store._region.flusher.bytes_written
    store.close()


@pytest.mark.parametrize("count", [1, 9])
def test_flushed_points_survive_a_power_cut(count: int) -> None:
    """The flusher makes many folders durable in one way, and a few folders in another way."""
    disk = CrashDisk()
    store = open_store(disk)
    fill(store, count)
    store.flush()
    after = open_store(disk.after_power_cut())
    assert [[900, 950]] * count == [seen(after, number) for number in range(count)]
    assert (count, ()) == (after.status().files, after.status().problems)


def test_files_expire_while_nothing_is_to_be_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "_EXPIRY_SECONDS", 0.01)
    clock = ManualClock(1_000_000_000)
    store = opened(tmp_path, clock=clock)
    fill(store, 2)
    store.change_schema([SetTtl("root.d00.**", 500)])
    store.flush()
    store.expire()
    assert 4 == len(data_files(tmp_path))
    clock.advance(1)
    wait_until(lambda: len(data_files(tmp_path)) == 2)
    assert [[], [900, 950]] == [seen(store, number) for number in range(2)]
    fill(store, 1, 1_900)
    store.flush()
    assert [1_900] == seen(store, 0)
    store.close()


def test_a_rule_is_durable_before_files_go_by_it() -> None:
    disk = CrashDisk()
    store = open_store(disk, StoreOptions(durability="os", compaction=False))
    fill(store, 1)
    store.flush()
    store.change_schema([SetTtl("root.**", 500)])
    store.expire()
    assert not any(partition.files for partition in store.partitions())
    after = open_store(disk.after_power_cut(), StoreOptions(durability="os", compaction=False))
    assert 500 == after.schema.ttl.milliseconds("root.d00.d")


def test_a_mistake_of_ours_ends_flushing_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def mistaken(*_: object) -> None:
        raise RuntimeError("a mistake")

    store = opened(tmp_path)
    fill(store, 1)
    monkeypatch.setattr(flusher, "finish", mistaken)
    with pytest.raises(StorageError, match="restart after checking the disk"):
        store.flush()
    assert [(logging.ERROR, "flushing failed; restart after checking the disk")] == events(caplog)
    assert "flushing stopped" in store.status().problems[0]
    assert [900, 950] == seen(store, 0)
    store.close()
    monkeypatch.undo()
    again = opened(tmp_path)
    assert [900, 950] == seen(again, 0)
    again.close()


class WaitingDisk(LocalDisk):
    """A disk on which a flush waits at its first file."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()

    def create(self, path: str) -> File:
        if "/groups/" in path and ".tsfile" in path:
            self.began.set()
            assert self.may_end.wait(PATIENCE_S)
        return super().create(path)


def test_a_store_that_closes_waits_for_the_flush_in_progress(tmp_path: Path) -> None:
    disk = WaitingDisk()
    store = opened(tmp_path, disk)
    fill(store, 1)
    thread, region = store._region.flusher._thread, store._region
    with region.lock:
        for partition in region.partitions:
            region.flusher.freeze(partition)
    assert disk.began.wait(PATIENCE_S)
    closing = threading.Thread(target=store.close, daemon=True)
    closing.start()
    wait_until(lambda: region.flusher._stopping)
    disk.may_end.set()
    closing.join(PATIENCE_S)
    assert (False, False) == (closing.is_alive(), thread.is_alive())
    assert 2 == len(data_files(tmp_path))
    again = opened(tmp_path)
    assert [900, 950] == seen(again, 0)
    again.close()
