"""The store, compared with a model: for each series a dictionary of points. Readers use `view()`, as queries do."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick_disk import QuickDisk

from saros_storage.base.block import Block, Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import CorruptFile, FolderInUse, StorageError, StoreClosed, UserMistake
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding, Scalar, TimeUnit
from saros_storage.folder.node_file import FOLDER_FORMAT
from saros_storage.folder.store_options import StoreOptions
from saros_storage.scan.reading import ScanRequest, Statistics, Summary, TimeRange, ValueBound, WindowGrid
from saros_storage.schema import CreateDatabase, CreateSeries, SchemaChange, SeriesSchema
from saros_storage.store import Store

PLAIN_DEVICE, ALIGNED_DEVICE = "root.db.plain", "root.db.aligned"
TYPES = {"i": DataType.INT32, "d": DataType.DOUBLE, "t": DataType.TEXT}
SLICE = 100
ALL = TimeRange()
OPTIONS = StoreOptions(durability="os", time_partition_interval=SLICE, page_rows=3)


def open_store(folder: str | Path, options: StoreOptions = OPTIONS) -> Store:
    return Store.open(str(folder), options, QuickDisk(), SystemClock())


def creates() -> list[SchemaChange]:
    series = tuple(SeriesSchema(name, type_, Encoding.PLAIN, Compressor.UNCOMPRESSED) for name, type_ in TYPES.items())
    return [
        CreateDatabase("root.db"),
        CreateSeries(PLAIN_DEVICE, False, series),
        CreateSeries(ALIGNED_DEVICE, True, series),
    ]


def tablet(device: str, times: Sequence[int], **columns: Sequence[Scalar]) -> Tablet:
    values = tuple(Column.of(TYPES[name], column) for name, column in columns.items())
    return Tablet(device, tuple(columns), np.array(times, np.int64), values, device == ALIGNED_DEVICE)


def points(store: Store, device: str, name: str, time: TimeRange = ALL, *, back: bool = False) -> list[object]:
    """Return the points of one series, as (time, value), that a reader finds."""
    rows = read(store, ScanRequest(device, (name,), (TYPES[name],), device == ALIGNED_DEVICE, time, back))
    return [(t, v) for t, (v,) in rows]


def read(store: Store, request: ScanRequest) -> list[tuple[int, tuple[Scalar, ...]]]:
    rows: list[tuple[int, tuple[Scalar, ...]]] = []
    for item in items(store, request):
        assert isinstance(item, Block)
        columns = [column.to_list() for column in item.columns]
        rows += zip(item.times.tolist(), zip(*columns, strict=True), strict=True)
    return rows


def items(store: Store, request: ScanRequest) -> Iterator[Block | Summary]:
    view = store.view()
    reader = view.open(request)
    try:
        while (item := reader.next()) is not None:
            yield item
    finally:
        reader.close()
        view.close()


@dataclass
class Model:
    """The expected content of the store: for each (device, measurement), the values by time."""

    series: dict[tuple[str, str], dict[int, Scalar]] = field(default_factory=dict)

    def write(self, batch: Tablet) -> None:
        for name, column in zip(batch.measurements, batch.columns, strict=True):
            known = self.series.setdefault((batch.device, name), {})
            for time, value in zip(batch.times.tolist(), column.to_list(), strict=True):
                if value is not None:
                    known[time] = value

    def delete(self, device: str, name: str, time: TimeRange) -> None:
        for (owner, own), known in self.series.items():
            if owner == device and name in (own, "*"):
                for gone in [t for t in known if time.start <= t < time.end]:
                    del known[gone]


def value_of(name: str) -> st.SearchStrategy[Scalar]:
    if name == "i":
        return st.integers(-5, 5)
    if name == "d":
        return st.sampled_from([0.5, -1.5, float("inf"), 3.0])
    return st.sampled_from(["", "a", "ä"])


@st.composite
def tablets(draw: st.DrawFn) -> Tablet:
    device = draw(st.sampled_from([PLAIN_DEVICE, ALIGNED_DEVICE]))
    start = draw(st.integers(-120, 320))
    times = draw(st.lists(st.integers(0, 40), min_size=1, max_size=12))
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=3, unique=True))
    columns = {
        name: draw(
            st.lists(st.none() | value_of(name), min_size=len(times), max_size=len(times))
            if draw(st.booleans())
            else st.lists(value_of(name), min_size=len(times), max_size=len(times))
        )
        for name in names
    }
    return tablet(device, [start + t for t in times], **columns)


@st.composite
def ranges(draw: st.DrawFn) -> TimeRange:
    start = draw(st.integers(-150, 350))
    return TimeRange(start, start + draw(st.integers(0, 200)))


STEPS = st.lists(
    st.one_of(
        tablets().map(lambda t: ("write", t)),
        tablets().map(lambda t: ("write", t)),
        st.tuples(
            st.just("delete"),
            st.sampled_from([PLAIN_DEVICE, ALIGNED_DEVICE]),
            st.sampled_from(["i", "d", "*"]),
            ranges(),
        ),
        st.just(("flush",)),
        st.just(("reopen",)),
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@given(STEPS, ranges(), st.booleans())
@settings(max_examples=60)
def test_a_store_holds_what_a_dictionary_holds(steps: list[tuple], time: TimeRange, back: bool) -> None:
    folder = tempfile.mkdtemp()
    store = open_store(folder)
    model = Model()
    try:
        store.change_schema(creates())
        for step in steps:
            if step[0] == "write":
                store.write([step[1]])
                model.write(step[1])
            elif step[0] == "delete":
                store.delete([f"{step[1]}.{step[2]}"], step[3])
                model.delete(*step[1:])
            elif step[0] == "flush":
                store.flush()
            else:
                store.close()
                store = open_store(folder)
        check(store, model, time, back=back)
        store.flush()
        check(store, model, time, back=back)
        store.close()
        store = open_store(folder)
        check(store, model, TimeRange(), back=back)
        assert 0 == store.status().views
    finally:
        store.close()
        shutil.rmtree(folder)


def check(store: Store, model: Model, time: TimeRange, *, back: bool) -> None:
    for device in (PLAIN_DEVICE, ALIGNED_DEVICE):
        known = {name: model.series.get((device, name), {}) for name in TYPES}
        for name in TYPES:
            expected = sorted((t, v) for t, v in known[name].items() if time.start <= t < time.end)
            assert (expected[::-1] if back else expected) == points(store, device, name, time, back=back)
            check_summaries(store, device, name, expected, time)
        check_bounds(store, device, known["i"], time)
    wanted = {t for name in TYPES for t in known[name] if time.start <= t < time.end}
    rows = [(t, tuple(known[name].get(t) for name in TYPES)) for t in sorted(wanted, reverse=back)]
    request = ScanRequest(ALIGNED_DEVICE, tuple(TYPES), tuple(TYPES.values()), True, time, back)
    assert rows == read(store, request)


def check_summaries(store: Store, device: str, name: str, expected: list[tuple[int, Scalar]], time: TimeRange) -> None:
    """Check that summaries and rows together give the count, first and last point of each window."""
    grid = WindowGrid(5, 60)
    found: dict[int, list[object]] = {}
    request = ScanRequest(device, (name,), (TYPES[name],), device == ALIGNED_DEVICE, time, grid=grid)
    for item in items(store, request):
        if isinstance(item, Summary):
            (statistics,) = item.columns
            assert isinstance(statistics, Statistics)
            add(found, (statistics.start - 5) // 60, statistics.count, statistics.first, statistics.last)
        else:
            for t, v in zip(item.times.tolist(), item.columns[0].to_list(), strict=True):
                add(found, (t - 5) // 60, 1, v, v)
    wanted: dict[int, list[object]] = {}
    for t, v in expected:
        add(wanted, (t - 5) // 60, 1, v, v)
    assert {k: text(v) for k, v in wanted.items()} == {k: text(v) for k, v in found.items()}


def text(values: list[object]) -> list[object]:
    return [v.decode() if isinstance(v, bytes) else v for v in values]


def add(windows: dict[int, list[object]], window: int, count: int, first: Scalar, last: Scalar) -> None:
    known = windows.setdefault(window, [0, first, last])
    known[0] += count  # type: ignore[operator]
    known[2] = last


def check_bounds(store: Store, device: str, known: dict[int, Scalar], time: TimeRange) -> None:
    """Check that a reader that skips pages by their values loses no matching row, and shows no overwritten value."""
    request = ScanRequest(
        device, ("i",), (DataType.INT32,), device == ALIGNED_DEVICE, time, bounds=(ValueBound(0, 3, None),)
    )
    found = dict(read(store, request))
    for t, v in known.items():
        if time.start <= t < time.end and v >= 3:  # type: ignore[operator]
            assert (v,) == found[t]
    assert all(known[t] == v for t, (v,) in found.items())


# ---------------------------------------------------------------------------------------------- directed


def test_a_write_creates_what_it_needs_and_survives_a_restart(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write([tablet(PLAIN_DEVICE, [1, 2], i=[10, 20])], creates())
    store.close()
    assert [(1, 10), (2, 20)] == points(open_store(tmp_path), PLAIN_DEVICE, "i")


def test_what_does_not_fit_the_schema_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.change_schema(creates())
    wrong = Tablet(PLAIN_DEVICE, ("i",), np.array([1]), (Column.of(DataType.DOUBLE, [1.0]),), False)
    with pytest.raises(UserMistake, match="is INT32, not DOUBLE"):
        store.write([tablet(PLAIN_DEVICE, [1], d=[1.0]), wrong])
    with pytest.raises(UserMistake, match="not aligned"):
        store.write([Tablet(PLAIN_DEVICE, ("i",), np.array([1]), (Column.of(DataType.INT32, [1]),), True)])
    with pytest.raises(UserMistake, match="out of range"):
        store.write([tablet(PLAIN_DEVICE, [2**63 - 1], i=[1])])
    assert [] == points(store, PLAIN_DEVICE, "d")


def test_a_view_does_not_see_what_comes_after_it(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write([tablet(PLAIN_DEVICE, [1], i=[10])], creates())
    view = store.view()
    store.write([tablet(PLAIN_DEVICE, [1, 2], i=[11, 20])])
    store.delete([f"{PLAIN_DEVICE}.*"], TimeRange())
    store.flush()
    reader = view.open(ScanRequest(PLAIN_DEVICE, ("i",), (DataType.INT32,), False))
    block = reader.next()
    assert isinstance(block, Block)
    assert ([1], [10]) == (block.times.tolist(), block.columns[0].to_list())
    assert [] == points(store, PLAIN_DEVICE, "i")


def test_a_deleted_database_is_gone_after_a_restart_too_and_an_open_view_keeps_it(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write([tablet(PLAIN_DEVICE, [1], i=[10])], creates())
    store.flush()
    view = store.view()
    store.delete_database("root.db")
    reader = view.open(ScanRequest(PLAIN_DEVICE, ("i",), (DataType.INT32,), False))
    assert reader.next() is not None
    store.write([tablet(PLAIN_DEVICE, [5], i=[50])], creates())
    store.close()
    assert [(5, 50)] == points(open_store(tmp_path), PLAIN_DEVICE, "i")


def test_a_deleted_series_that_comes_again_is_empty(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write([tablet(PLAIN_DEVICE, [1, 150], i=[10, 20], d=[1.0, 2.0])], creates())
    store.flush()
    assert 1 == store.delete_series(f"{PLAIN_DEVICE}.i")
    again = SeriesSchema("i", DataType.INT32, Encoding.PLAIN, Compressor.LZ4)
    store.change_schema([CreateSeries(PLAIN_DEVICE, False, (again,))])
    assert [] == points(store, PLAIN_DEVICE, "i")
    assert [(1, 1.0), (150, 2.0)] == points(store, PLAIN_DEVICE, "d")


def test_a_second_process_is_refused_and_other_options_too(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with pytest.raises(FolderInUse, match=str(os.getpid())):
        open_store(tmp_path)
    store.close()
    with pytest.raises(StorageError, match="time_partition_interval"):
        open_store(tmp_path, StoreOptions(time_partition_interval=7))
    with pytest.raises(StoreClosed):
        store.view()


def test_a_newer_folder_is_refused(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    node = tmp_path / "node.json"
    node.write_text(node.read_text().replace(f'"format": {FOLDER_FORMAT}', '"format": 99'))
    with pytest.raises(StorageError) as caught:
        open_store(tmp_path)
    assert 2015 == caught.value.code


def test_a_folder_of_the_format_without_salts_opens_and_is_then_refused_by_older_versions(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write([tablet(PLAIN_DEVICE, [1], i=[10])], creates())
    store.close()
    node = tmp_path / "node.json"
    node.write_text(node.read_text().replace(f'"format": {FOLDER_FORMAT}', '"format": 1'))
    with pytest.raises(StorageError, match="time_partition_interval"):
        open_store(tmp_path, StoreOptions(time_partition_interval=7))
    assert 1 == json.loads(node.read_text())["format"]
    open_store(tmp_path).close()
    assert 2 == json.loads(node.read_text())["format"]


def test_a_folder_that_lost_its_node_file_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    """If the folder were taken for a new one, its times might be read in another unit.

    Only a folder that was never used is created again.
    """
    options = StoreOptions(time_unit=TimeUnit.MICROSECOND)
    store = open_store(tmp_path, options)
    store.write([tablet(PLAIN_DEVICE, [1], i=[10])], creates())
    store.close()
    node = tmp_path / "node.json"
    node.unlink()
    with pytest.raises(CorruptFile, match="missing, but the folder has data; restore the original file"):
        open_store(tmp_path)
    assert not node.exists()


def test_a_damaged_file_is_set_aside_and_the_others_are_served(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write([tablet(PLAIN_DEVICE, [1, 150], i=[10, 20])], creates())
    store.flush()
    store.close()
    victim = next(path for path in sorted(tmp_path.rglob("*.tsfile")) if "/0/seq/" in str(path))
    victim.write_bytes(victim.read_bytes()[:-9])
    store = open_store(tmp_path)
    assert [(150, 20)] == points(store, PLAIN_DEVICE, "i")
    (problem,) = store.status().problems
    assert victim.name in problem
    assert [victim.name] == [path.name for path in tmp_path.rglob("corrupt/*.tsfile")]


def test_flushed_entries_leave_the_log(tmp_path: Path) -> None:
    store = open_store(tmp_path, StoreOptions(durability="os", segment_bytes=1_000))
    store.change_schema(creates())
    for start in range(0, 1_000, 10):
        store.write([tablet(PLAIN_DEVICE, range(start, start + 10), i=[1] * 10)])
    before = store.status().log_bytes
    store.flush()
    store.close()
    store = open_store(tmp_path, StoreOptions(durability="os", segment_bytes=1_000))
    assert store.status().log_bytes < before / 10
    assert 1_000 == len(points(store, PLAIN_DEVICE, "i"))


def test_memtables_are_flushed_when_they_are_full_and_writers_wait(tmp_path: Path) -> None:
    options = StoreOptions(
        durability="os", memtable_bytes_max=20_000, memtables_total_bytes_max=40_000, compaction=False
    )
    store = open_store(tmp_path, options)
    store.change_schema(creates())
    for start in range(0, 20_000, 100):
        store.write([tablet(PLAIN_DEVICE, range(start, start + 100), i=[1] * 100)])
        assert store.status().memtable_bytes < 50_000
    assert 20_000 == len(points(store, PLAIN_DEVICE, "i"))
    assert store.status().files > 5
    store.close()


class StoppedClock(SystemClock):
    def now_ns(self) -> int:
        return 1_000_000_000


@pytest.mark.parametrize("device", [PLAIN_DEVICE, ALIGNED_DEVICE])
def test_a_database_made_anew_shows_nothing_of_the_old_one_though_its_file_has_the_same_name(
    tmp_path: Path, device: str
) -> None:
    """File names begin with the time, and the clock was set back while the store was closed."""
    names = []

    def write(store: Store, value: int) -> None:
        store.write([tablet(device, [5, 6], i=[value, value])], creates())
        store.flush()
        names.append([file.name for partition in store.partitions() for file in partition.files])

    def opened() -> Store:
        return Store.open(str(tmp_path), OPTIONS, QuickDisk(), StoppedClock())

    store = opened()
    write(store, 1)
    store.close()
    store = opened()
    assert [(5, 1), (6, 1)] == points(store, device, "i")
    store.delete_database("root.db")
    write(store, 2)
    assert [(5, 2), (6, 2)] == points(store, device, "i")
    assert names[0] == names[1]
    store.close()
