"""The latest points of series: cached reads, and changes after which the store must be read again.

`metamorphic` tests random operations.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from saros_storage.base.block import Column
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DEFAULT_ENCODING, Compressor, DataType, Scalar
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.loading.loader import LoadOptions
from saros_storage.read.latest_cache import LatestCache
from saros_storage.scan.reading import ReadCounters, ScanRequest, TimeRange
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema, SetTtl
from saros_storage.store import Store

TYPES = {"x": DataType.INT64, "o": DataType.BLOB}
OPTIONS = StoreOptions(durability="os", time_partition_interval=1_000, compaction=False)


class SetClock:
    """A clock that never advances."""

    now = 5_000_000_000

    def now_ns(self) -> int:
        return self.now

    def monotonic_ns(self) -> int:
        return self.now


CLOCK = SetClock()


def opened(folder: Path) -> Store:
    return Store.open(str(folder), OPTIONS, LocalDisk(), CLOCK)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = opened(tmp_path / "store")
    series = tuple(SeriesSchema(n, t, DEFAULT_ENCODING[t], Compressor.LZ4) for n, t in TYPES.items())
    made.change_schema([CreateDatabase("root.a"), *(CreateSeries(d, False, series) for d in ("root.a.d", "root.a.e"))])
    yield made
    made.close()


def write(store: Store, times: Sequence[int], name: str = "x", device: str = "root.a.d") -> None:
    values: list[Scalar] = [t if name == "x" else b"%d" % t for t in times]
    columns = (Column.of(TYPES[name], values),)
    store.write([Tablet(device, (name,), np.array(times, np.int64), columns, False)])


def ask(store: Store, name: str = "x", time: TimeRange | None = None, device: str = "root.a.d") -> Scalar:
    """Return the value of the latest point; the value encodes the time."""
    return asked(store, name, time, device)[0]


def asked(
    store: Store, name: str = "x", time: TimeRange | None = None, device: str = "root.a.d"
) -> tuple[Scalar, ReadCounters]:
    view, counters = store.view(), ReadCounters()
    request = ScanRequest(device, (name,), (TYPES[name],), False, time or TimeRange(), descending=True, latest=True)
    try:
        (point,) = view.latest(request, counters)
    finally:
        view.close()
    return None if point is None else point[1], counters


def test_rows_in_memory_do_not_make_it_look_into_files_again(store: Store) -> None:
    write(store, [1, 2])
    store.flush()
    assert 2 == ask(store)
    for time in (3, 4, 5):
        write(store, [time])
        value, counters = asked(store)
        assert time == value
        assert (1, 0) == (counters.cache_hits, counters.files)
    assert 3 == store.latest.hits
    assert 1 == store.latest.misses


def test_it_looks_again_after_a_flush_but_reads_no_page(store: Store) -> None:
    write(store, [1, 2])
    assert 2 == ask(store)
    store.flush()
    value, counters = asked(store)
    assert 2 == value
    assert (0, 1, 0) == (counters.cache_hits, counters.summaries, counters.pages)


def test_late_rows_do_not_count_and_rows_of_the_same_time_do(store: Store) -> None:
    write(store, [10])
    store.flush()
    write(store, [5])
    assert 10 == ask(store)
    overwriting = Tablet("root.a.d", ("x",), np.array([10]), (Column.of(DataType.INT64, [77]),), False)
    store.write([overwriting])
    assert 77 == ask(store)
    store.flush()
    assert 77 == ask(store)
    store.merge(full=True)
    assert 77 == ask(store)


def test_a_deletion_shows_what_came_before(store: Store) -> None:
    write(store, [1, 2, 1_500])
    store.flush()
    assert 1_500 == ask(store)
    store.delete(["root.a.d.x"], TimeRange(2, 9_000))
    assert 1 == ask(store)
    write(store, [3])
    assert 3 == ask(store)
    store.delete(["root.a.**"], TimeRange())
    assert ask(store) is None


def test_a_deleted_end_is_read_a_page_at_a_time(tmp_path: Path) -> None:
    with_pages = Store.open(str(tmp_path), replace(OPTIONS, page_rows=10), LocalDisk(), CLOCK)
    series = (SeriesSchema("x", DataType.INT64, DEFAULT_ENCODING[DataType.INT64], Compressor.LZ4),)
    with_pages.change_schema([CreateDatabase("root.a"), CreateSeries("root.a.d", False, series)])
    write(with_pages, range(900))
    with_pages.flush()
    with_pages.delete(["root.a.d.x"], TimeRange(895, 2_000))
    value, counters = asked(with_pages)
    assert (894, 1) == (value, counters.pages)
    with_pages.close()


def test_a_range_that_ends_before_the_latest_point_is_read(store: Store) -> None:
    write(store, [1, 5, 9])
    assert 5 == ask(store, time=TimeRange(0, 9))
    assert ask(store, time=TimeRange(6, 9)) is None
    assert ask(store, time=TimeRange(10, 99)) is None
    assert 9 == ask(store, time=TimeRange(9, 10))


def test_blobs_whose_statistics_have_no_values_are_read_once(store: Store) -> None:
    write(store, [1, 2], "o")
    store.flush()
    value, counters = asked(store, "o")
    assert (b"2", 1) == (value, counters.pages)
    value, counters = asked(store, "o")
    assert (b"2", 0, 1) == (value, counters.pages, counters.cache_hits)


def test_what_is_expired_is_not_shown_and_comes_back_when_it_may_live_longer(store: Store) -> None:
    write(store, [1_000, 3_000])
    store.flush()
    assert 3_000 == ask(store)
    store.change_schema([SetTtl("root.a.**", 1_500)])
    assert ask(store) is None
    store.change_schema([SetTtl("root.a.**", 2_500)])
    assert 3_000 == ask(store)


def test_a_loaded_file_counts_at_once(store: Store, tmp_path: Path) -> None:
    write(store, [1, 2])
    store.flush()
    source = next((tmp_path / "store").rglob("*.tsfile"))
    copied = tmp_path / "copied.tsfile"
    copied.write_bytes(source.read_bytes())
    store.delete_database("root.a")
    series = (SeriesSchema("x", DataType.INT64, DEFAULT_ENCODING[DataType.INT64], Compressor.LZ4),)
    store.change_schema([CreateDatabase("root.a"), CreateSeries("root.a.d", False, series)])
    assert ask(store) is None
    store.load(str(copied), LoadOptions())
    assert 2 == ask(store)


def test_a_restarted_store_knows_it_from_statistics(store: Store, tmp_path: Path) -> None:
    write(store, [1, 2])
    store.flush()
    write(store, [1_001], device="root.a.e")
    store.close()
    again = opened(tmp_path / "store")
    value, counters = asked(again)
    assert (2, 0) == (value, counters.pages)
    assert 1_001 == ask(again, device="root.a.e")
    again.close()


def test_a_view_does_not_see_what_came_after_it(store: Store) -> None:
    write(store, [1])
    store.flush()
    request = ScanRequest("root.a.d", ("x",), (DataType.INT64,), False, descending=True, latest=True)
    views = []
    for time in (2, 3, 4):
        write(store, [time])
        views.append(store.view())
    store.flush()
    write(store, [5])
    assert 5 == ask(store)
    assert [[(4, 4)], [(2, 2)], [(3, 3)]] == [views[n].latest(request, ReadCounters()) for n in (2, 0, 1)]
    for view in views:
        view.close()


def test_readers_beside_a_writer_see_each_point_no_later_than_it_was_acknowledged(store: Store) -> None:
    written, wrong = [0], list[tuple[Scalar, int]]()
    write(store, [0])

    def read() -> None:
        while written[0] < 600:
            least = written[0]
            found = ask(store)
            assert isinstance(found, int)
            if found < least:
                wrong.append((found, least))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for time in range(1, 601):
        write(store, [time])
        written[0] = time
        if time % 150 == 0:
            store.flush()
    for thread in threads:
        thread.join()
    assert [] == wrong


def test_memory_is_bounded_and_what_was_used_longest_ago_goes_first() -> None:
    cache, basis = LatestCache(3_000), (object(),)
    known = {"s": (DataType.TEXT, (1, "x" * 200))}
    for device in "abc":
        cache.put(None, device, basis, known)
    assert known == cache.get(None, "a", basis)
    cache.put(None, "d", basis, known)
    assert [True, False, True, True] == [bool(cache.get(None, device, basis)) for device in "abcd"]
    assert cache.bytes <= 3_000
    assert {} == cache.get(None, "a", (object(),))
    assert {} == cache.get("other", "a", basis)
