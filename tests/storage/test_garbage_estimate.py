"""If most points of a file are expired or deleted, the file is rewritten once in the background to free the space."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_disk import QuickDisk
from storage.test_store import ALIGNED_DEVICE, PLAIN_DEVICE, TYPES, creates, points, tablet
from storage.test_ttl import HandClock
from waiting import wait_until

from saros_storage.base.clock import Clock, SystemClock
from saros_storage.base.types import Compressor, Encoding
from saros_storage.compaction import garbage_estimate
from saros_storage.folder.lazy_file import LazyFile
from saros_storage.folder.store_options import StoreOptions
from saros_storage.read.deletions import DeletedTimes
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema, SetTtl
from saros_storage.store import Store

#: Options under which no files are merged, and a few dead bytes are enough for a rewrite.
OPTIONS = StoreOptions(
    durability="os",
    time_partition_interval=100_000,
    page_rows=10,
    compaction_files_min=1_000,
    compaction_bytes_per_second=0,
    compaction_file_bytes=10_000,
)
#: Rows of a file.
ROWS = 400


@contextmanager
def open_store(folder: Path, clock: Clock | None = None) -> Iterator[Store]:
    store = Store.open(str(folder), OPTIONS, QuickDisk(), clock or SystemClock())
    try:
        yield store
    finally:
        store.close()


def filled(store: Store) -> None:
    """Flush a file with a plain and an aligned device, each with times 0 to 399."""
    store.change_schema(creates())
    for device in (PLAIN_DEVICE, ALIGNED_DEVICE):
        store.write([tablet(device, range(ROWS), i=list(range(ROWS)), d=[t / 2 for t in range(ROWS)])])
    store.flush()


def seen(store: Store, device: str, name: str = "i") -> list[int]:
    return [t for t, _ in points(store, device, name)]  # type: ignore[misc]


def size(folder: Path) -> int:
    return sum(os.path.getsize(path) for path in folder.rglob("*.tsfile"))


def settle(store: Store) -> int:
    """Wait until the compactor is idle; return the number of jobs that it has done."""
    wait_until(lambda: store._compactor._running is None and not store._compactor._due)
    return store.compaction.jobs


RANGES = st.lists(st.tuples(st.integers(-5, 25), st.integers(0, 9)), max_size=6)


@given(RANGES, st.integers(-5, 25), st.integers(0, 9))
def test_the_live_span_leaves_out_what_is_deleted_at_the_ends(
    ranges: list[tuple[int, int]], first: int, more: int
) -> None:
    times = DeletedTimes([TimeRange(start, start + size) for start, size in ranges])
    dead = {t for start, size in ranges for t in range(start, start + size)}
    live = [t for t in range(first, first + more + 1) if t not in dead]
    assert ((live[0], live[-1]) if live else None) == times.live_span(first, first + more)


def test_a_file_that_is_mostly_expired_is_rewritten_in_the_background(tmp_path: Path) -> None:
    clock = HandClock(1_000)
    with open_store(tmp_path, clock) as store:
        filled(store)
        before = size(tmp_path)
        store.change_schema([SetTtl("root.**", 850)])
        assert 0 == settle(store)
        assert before == size(tmp_path)
        clock.ms = 1_200
        store.expire()
        wait_until(lambda: store.compaction.jobs == 1)
        assert size(tmp_path) < before / 2
        for device in (PLAIN_DEVICE, ALIGNED_DEVICE):
            assert list(range(350, ROWS)) == seen(store, device)
        clock.ms = 1_210
        store.expire()
        assert 1 == settle(store)
        clock.ms = 1_250
        store.expire()
        assert 0 == store.status().files


def test_a_file_that_is_mostly_deleted_is_rewritten_and_the_tombstone_goes(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        filled(store)
        before = size(tmp_path)
        store.delete(["root.db.**"], TimeRange(0, 150))
        store.flush()
        assert 0 == settle(store)
        store.delete(["root.db.**"], TimeRange(250, ROWS))
        store.flush()
        wait_until(lambda: store.compaction.jobs == 1)
        assert size(tmp_path) < before / 2
        assert 0 == store.partitions()[0].tombstones
        for device in (PLAIN_DEVICE, ALIGNED_DEVICE):
            assert list(range(150, 250)) == seen(store, device)
            assert list(range(150, 250)) == seen(store, device, "d")


def test_a_series_that_is_gone_counts_by_its_points(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        filled(store)
        store.delete_series(f"{PLAIN_DEVICE}.*")
        store.flush()
        wait_until(lambda: store.compaction.jobs == 1)
        assert [] == seen(store, PLAIN_DEVICE)
        assert list(range(ROWS)) == seen(store, ALIGNED_DEVICE)


def test_of_many_devices_a_sample_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    read = LazyFile.device
    monkeypatch.setattr(garbage_estimate, "SAMPLE", 5)
    monkeypatch.setattr(LazyFile, "device", lambda file, device: reads.append(device) or read(file, device))
    devices = [f"root.db.{kind}{number}" for kind, count in (("old", 45), ("new", 15)) for number in range(count)]
    series = (SeriesSchema("i", TYPES["i"], Encoding.PLAIN, Compressor.UNCOMPRESSED),)
    with open_store(tmp_path) as store:
        store.change_schema([CreateDatabase("root.db"), *(CreateSeries(path, False, series) for path in devices)])
        store.write([tablet(device, range(10), i=list(range(10))) for device in devices])
        store.flush()
        store.delete(["root.db.old1*.**"], TimeRange(0, 10))
        store.flush()
        assert 0 == settle(store)
        assert (4, 5) == (len({d for d in reads if ".old1" in d}), len({d for d in reads if ".old1" not in d}))
        store.delete(["root.db.old*.**"], TimeRange(0, 10))
        store.flush()
        wait_until(lambda: store.compaction.jobs == 1)
        assert [10] * 15 == [len(seen(store, device)) for device in devices[45:]]


def test_without_tombstones_and_rules_no_index_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LazyFile, "device", lambda *_: pytest.fail("an index was read"))
    with open_store(tmp_path) as store:
        filled(store)
        assert 0 == settle(store)


def test_a_file_is_not_rewritten_for_a_hole_again_and_again(tmp_path: Path) -> None:
    """The tombstone is kept for another file. The points that were removed from this file do not count again."""
    with open_store(tmp_path) as store:
        filled(store)
        for device in (PLAIN_DEVICE, ALIGNED_DEVICE):
            store.write([tablet(device, range(200, 1_200), i=[1] * 1_000)])
        store.flush()
        store.delete(["root.db.**"], TimeRange(50, 360))
        store.flush()
        jobs = settle(store)
        assert 1 <= jobs <= 2
        assert 1 == store.partitions()[0].tombstones
    with open_store(tmp_path) as store:
        assert 0 == settle(store)
        for device in (PLAIN_DEVICE, ALIGNED_DEVICE):
            assert [*range(50), *range(360, 1_200)] == seen(store, device)


def test_merge_full_gives_back_what_is_expired(tmp_path: Path) -> None:
    clock = HandClock(1_000)
    with open_store(tmp_path, clock) as store:
        filled(store)
        store.change_schema([SetTtl("root.**", 900)])
        before = size(tmp_path)
        store.merge()
        assert before == size(tmp_path)
        store.merge(full=True)
        assert size(tmp_path) < before
        assert list(range(100, ROWS)) == seen(store, PLAIN_DEVICE)
