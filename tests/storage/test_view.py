"""Read views find the database of a device, and release everything that they pin exactly once."""

from __future__ import annotations

import threading

import pytest
from storage.fake_tsfile import FakeTsFile, Rows

from saros_storage.base.block import Block
from saros_storage.base.types import DataType
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.read.view import LocalReadView
from saros_storage.scan.reading import ReadView, ScanRequest
from saros_storage.scan.snapshot import PartitionSnapshot


def partition(database: str, number: int, device: str, time: int) -> PartitionSnapshot:
    rows = Rows((time,), {"a": (DataType.INT32, (time,))})
    file = FakeTsFile(f"{database}-{number}", device, {"a": [[rows]]})
    return PartitionSnapshot(database, number, (file.source(1),), (), ())


def times(view: ReadView, device: str, *, back: bool = False) -> list[int]:
    reader = view.open(ScanRequest(device, ("a",), (DataType.INT32,), False, descending=back))
    found: list[int] = []
    while (item := reader.next()) is not None:
        assert isinstance(item, Block)
        found += item.times.tolist()
    reader.close()
    return found


@pytest.mark.parametrize(
    ("database", "device"),
    [
        ("root.db", "root.db.d"),
        ("root.db", "root.db.d.e.f"),
        ("root.db", "root.db"),
        ("root.a.b", "root.a.b.`c.d`"),
        ("root.`a.b`", "root.`a.b`.d"),
        ("root.a", "root.a.`x.``y.z`.d"),
    ],
)
def test_a_device_is_read_in_the_database_it_lies_in(database: str, device: str) -> None:
    others = {name: [partition(name, 0, device, 99)] for name in ("root.d", "root.dbx", "root.db2")}
    view = LocalReadView({database: [partition(database, 0, device, 7)], **others}, ChunkCache(0), lambda: None)
    assert [7] == times(view, device)


def test_a_device_of_no_database_has_nothing() -> None:
    view = LocalReadView({"root.db": [partition("root.db", 0, "root.dbx.d", 7)]}, ChunkCache(0), lambda: None)
    assert [] == times(view, "root.dbx.d")
    assert [] == times(view, "root.d")


def test_partitions_are_read_in_order_of_slices() -> None:
    parts = [partition("root.db", number, "root.db.d", number * 10) for number in range(3)]
    view = LocalReadView({"root.db": parts}, ChunkCache(1 << 20), lambda: None)
    assert [0, 10, 20] == times(view, "root.db.d")
    assert [20, 10, 0] == times(view, "root.db.d", back=True)


def test_a_view_is_released_once_whoever_closes_it() -> None:
    released: list[int] = []
    view = LocalReadView({}, ChunkCache(0), lambda: released.append(1))
    threads = [threading.Thread(target=view.close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    view.close()
    assert [1] == released


def test_readers_of_one_view_share_its_cache_across_threads() -> None:
    device = "root.db.d"
    cache = ChunkCache(1 << 20)
    view = LocalReadView({"root.db": [partition("root.db", 0, device, 5)]}, cache, lambda: None)
    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append(times(view, device))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[5]] * 8 == found
    assert 8 == cache.hits + cache.misses
