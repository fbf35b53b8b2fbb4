"""The cache of devices' indexes: a device is looked up in a file only once, and the cache has a size limit."""

from __future__ import annotations

from storage.fake_tsfile import FakeTsFile

from saros_storage.base.types import DataType
from saros_storage.cache.index_cache import IndexCache, size_of
from saros_storage.scan.reading import Statistics
from saros_storage.scan.tsfile_access import ChunkMeta, DeviceIndex, SeriesIndex


class Counting(FakeTsFile):
    """A file that counts lookups, and has every device except `root.none`."""

    def __init__(self, serial: int, text: str = "") -> None:
        self.asked = 0
        self._number = serial
        self._text = text

    @property
    def serial(self) -> int:
        return self._number

    def device(self, device: str) -> DeviceIndex | None:
        self.asked += 1
        return None if device == "root.none" else index_of(device, self._text)


def index_of(device: str, text: str = "") -> DeviceIndex:
    known = Statistics(2, 1, 2, text, text, None, None, None)
    return DeviceIndex(device, None, {"s": SeriesIndex("s", DataType.TEXT, known, (ChunkMeta(7, known),))})


def test_a_device_is_looked_up_once_in_each_file() -> None:
    cache, one, other = IndexCache(1 << 20), Counting(1), Counting(2)
    for _ in range(3):
        assert cache.find(one, "root.d") == index_of("root.d")
        assert cache.find(other, "root.d") == index_of("root.d")
    assert (1, 1) == (one.asked, other.asked)


def test_what_a_file_lacks_is_not_kept() -> None:
    cache, file = IndexCache(1 << 20), Counting(1)
    assert cache.find(file, "root.none") is None
    assert 0 == len(cache)


def test_it_holds_as_many_as_fit_and_those_used_last() -> None:
    cache, file = IndexCache(10 * size_of(index_of("root.d"))), Counting(1)
    for number in range(30):
        cache.find(file, f"root.d{number}")
    assert 10 == len(cache)
    cache.find(file, "root.d29")
    assert 30 == file.asked


def test_long_texts_in_statistics_count() -> None:
    cache, file = IndexCache(10_000), Counting(1, "x" * 10_000)
    assert cache.find(file, "root.d") == index_of("root.d", "x" * 10_000)
    assert 0 == len(cache)


def test_none_is_kept_without_room() -> None:
    cache, file = IndexCache(0), Counting(1)
    assert [index_of("root.d")] * 2 == [cache.find(file, "root.d") for _ in range(2)]
    assert 2 == file.asked
