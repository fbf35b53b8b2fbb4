"""LOAD makes a foreign file a part of a store, atomically, as if its points were written now."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from quick_disk import QuickDisk
from storage.test_store import (
    ALIGNED_DEVICE,
    OPTIONS,
    PLAIN_DEVICE,
    SLICE,
    TYPES,
    ScanRequest,
    creates,
    points,
    tablet,
)
from waiting import wait_until

from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import CorruptFile, DiskFull, StoreClosed, UnsupportedFile, UserMistake
from saros_storage.base.paths import parse_pattern
from saros_storage.base.types import Compressor, DataType, Encoding, Scalar
from saros_storage.folder.resource import devices_of_file
from saros_storage.io.disk import LocalDisk
from saros_storage.loading.loader import LoadOptions
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema
from saros_storage.store import Store
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

Rows = Sequence[tuple[int, Scalar]]


@contextmanager
def open_store(folder: Path, disk: LocalDisk | None = None) -> Iterator[Store]:
    store = Store.open(str(folder), replace(OPTIONS, compaction=False), disk or QuickDisk(), SystemClock())
    try:
        yield store
    finally:
        store.close()


def write_file(path: Path, devices: dict[str, dict[str, Rows]], *, page_rows: int = 4) -> Path:
    """Write a file. The name of a series determines its type; ALIGNED_DEVICE and `root.db.w` are aligned."""
    file = LocalDisk().create(str(path))
    writer = TsFileWriter(file, page_rows=page_rows)
    for device, series in devices.items():
        if device in (ALIGNED_DEVICE, "root.db.w"):
            times = sorted({t for rows in series.values() for t, _ in rows})
            columns = []
            for name, rows in series.items():
                values = [dict(rows).get(t) for t in times]
                column = Column.of(TYPES[name], values)
                columns.append(AlignedColumn(name, TYPES[name], Encoding.PLAIN, Compressor.LZ4, column))
            writer.write_aligned(device, np.array(times, np.int64), columns)
            continue
        for name, rows in series.items():
            times_of = np.array([t for t, _ in rows], np.int64)
            column = Column.of(TYPES[name], [v for _, v in rows])
            writer.write_series(device, name, TYPES[name], Encoding.PLAIN, Compressor.SNAPPY, times_of, column.values)
    writer.finish()
    file.close()
    return path


def rows(times: Sequence[int], value: Scalar = None) -> list[tuple[int, Scalar]]:
    return [(t, t if value is None else value) for t in times]


def load(store: Store, path: Path, *, level: int = 1, verify: bool = True) -> int:
    return store.load(str(path), LoadOptions(level, verify))


def files_of(store: Store) -> list[tuple[int, bool]]:
    """Return (slice, sequence) of every file in a manifest."""
    return sorted((p.key[1], f.sequence) for p in store._region.partitions for f in p.files)


def staged(folder: Path) -> list[str]:
    """Return the staged files; a folder that is removed during the search counts as empty."""
    return [name for at, _, names in os.walk(folder) if ".staged" in Path(at).parts for name in names]


def wait_for_nothing_staged(folder: Path) -> None:
    """Wait until no file is staged: the flusher removes loaded files shortly after a FLUSH has returned."""
    wait_until(lambda: not staged(folder))


def test_a_file_in_one_slice_is_taken_as_it_is_and_makes_its_schema(tmp_path: Path) -> None:
    path = write_file(
        tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows(range(10))}, ALIGNED_DEVICE: {"t": rows([3, 7], "x")}}
    )
    with open_store(tmp_path / "data") as store:
        assert 1 == load(store, path)
        assert rows(range(10)) == points(store, PLAIN_DEVICE, "i")
        assert rows([3, 7], "x") == points(store, ALIGNED_DEVICE, "t")
        device = store.schema.device(PLAIN_DEVICE)
        assert device is not None
        assert SeriesSchema("i", DataType.INT32, Encoding.PLAIN, Compressor.SNAPPY) == device.series["i"]
        store.flush()
        (partition,) = store._region.partitions
        assert path.read_bytes() == Path(partition.files[0].path).read_bytes()
        wait_for_nothing_staged(tmp_path)
        assert path.exists()


def test_a_file_over_slices_is_split(tmp_path: Path) -> None:
    series = rows(range(-50, 3 * SLICE, 7))
    both = [(t, 0.5) for t in range(10, 2 * SLICE, 11)]
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": series}, ALIGNED_DEVICE: {"d": both, "i": series}})
    with open_store(tmp_path / "data") as store:
        assert 4 == load(store, path)
        for _ in range(2):
            assert series == points(store, PLAIN_DEVICE, "i")
            assert series == points(store, ALIGNED_DEVICE, "i")
            assert both == points(store, ALIGNED_DEVICE, "d")
            store.flush()
        assert [(n, True) for n in (-1, 0, 1, 2)] == files_of(store)
        for partition in store._region.partitions:
            for file in partition.files:
                spans = devices_of_file(TsFileReader(file.path, LocalDisk().map(file.path)))
                assert {partition.key[1]} == {t // SLICE for s in spans.values() for t in (s.start, s.end)}


def test_slices_without_points_get_no_file(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows([5, 5 * SLICE, 90 * SLICE])}})
    with open_store(tmp_path / "data") as store:
        assert 3 == load(store, path)


def test_loaded_points_win_over_what_was_there_and_lose_to_what_comes(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows([1, 2, 3, 4], 100)}})
    with open_store(tmp_path / "data") as store:
        store.change_schema(creates())
        store.write([tablet(PLAIN_DEVICE, [1, 2], i=[1, 1])])
        store.flush()
        store.write([tablet(PLAIN_DEVICE, [3, 5], i=[1, 1])])
        load(store, path)
        store.write([tablet(PLAIN_DEVICE, [4, 6], i=[7, 7])])
        expected = [(1, 100), (2, 100), (3, 100), (4, 7), (5, 1), (6, 7)]
        for _ in range(2):
            assert expected == points(store, PLAIN_DEVICE, "i")
            assert expected[::-1] == points(store, PLAIN_DEVICE, "i", back=True)
            store.flush()
        assert expected == points(store, PLAIN_DEVICE, "i")
        for partition in store._region.partitions:
            partition.validate()


def test_a_file_is_sequence_unless_it_overlaps_sequence_files(tmp_path: Path) -> None:
    with open_store(tmp_path / "data") as store:
        for number, times in enumerate(([50, 60], [10, 20], [70, 80], [15, 30], [61, 69])):
            load(store, write_file(tmp_path / f"{number}.tsfile", {PLAIN_DEVICE: {"i": rows(times)}}))
            store.flush()
        (partition,) = store._region.partitions
        assert [True, True, True, False, True] == [f.sequence for f in partition.files]
        assert rows([10, 15, 20, 30, 50, 60, 61, 69, 70, 80]) == points(store, PLAIN_DEVICE, "i")


def test_loading_twice_changes_nothing_visible(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows([1, 2])}})
    with open_store(tmp_path / "data") as store:
        load(store, path)
        load(store, path)
        assert rows([1, 2]) == points(store, PLAIN_DEVICE, "i")
        store.flush()
        assert [(0, False), (0, True)] == files_of(store)


def test_deletes_after_a_load_hide_its_points_and_those_before_do_not(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows([1, 2, 3])}})
    with open_store(tmp_path / "data") as store:
        store.change_schema(creates())
        store.write([tablet(PLAIN_DEVICE, [2, 9], i=[0, 0])])
        store.delete(["root.db.**"], TimeRange(2, 3))
        load(store, path)
        assert [(1, 1), (2, 2), (3, 3), (9, 0)] == points(store, PLAIN_DEVICE, "i")
        store.delete([f"{PLAIN_DEVICE}.i"], TimeRange(3, 10))
        assert rows([1, 2]) == points(store, PLAIN_DEVICE, "i")
        store.flush()
        assert rows([1, 2]) == points(store, PLAIN_DEVICE, "i")
    with open_store(tmp_path / "data") as store:
        assert rows([1, 2]) == points(store, PLAIN_DEVICE, "i")


def test_conflicts_are_all_named_and_nothing_is_loaded(tmp_path: Path) -> None:
    path = write_file(
        tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows([1]), "d": [(1, 0.5)]}, "root.db.new": {"i": rows([1])}}
    )
    with open_store(tmp_path / "data") as store:
        series = tuple(SeriesSchema(n, DataType.INT64, Encoding.PLAIN, Compressor.LZ4) for n in ("i", "d"))
        store.change_schema([CreateDatabase("root.db"), CreateSeries(PLAIN_DEVICE, False, series)])
        with pytest.raises(
            UserMistake, match=r"plain.d is INT64, the file has DOUBLE; .*plain.i is INT64.* INT32"
        ) as e:
            load(store, path)
        assert 507 == e.value.code
        assert store.schema.device("root.db.new") is None
        assert [] == staged(tmp_path)
        other = write_file(tmp_path / "g.tsfile", {ALIGNED_DEVICE: {"i": rows([1])}})
        store.change_schema([CreateSeries(ALIGNED_DEVICE, False, series)])
        with pytest.raises(UserMistake, match="is not aligned, but aligned in the file") as e:
            load(store, other)
        assert 511 == e.value.code


def test_a_damaged_file_is_refused_and_named(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"d": [(t, t + 0.5) for t in range(9)]}})
    content = bytearray(path.read_bytes())
    content[content.index(np.array(3.5, ">f8").tobytes()[:4])] ^= 0x10
    path.write_bytes(content)
    with open_store(tmp_path / "data") as store:
        with pytest.raises(CorruptFile, match=r"f\.tsfile at byte"):
            load(store, path)
        for part in (b"", b"TsFile", bytes(content[:-9])):
            path.write_bytes(part)
            with pytest.raises(CorruptFile):
                load(store, path, verify=False)
        with pytest.raises(UserMistake, match="cannot be read") as e:
            load(store, tmp_path / "none.tsfile")
        assert 2051 == e.value.code
        assert [] == store.schema.databases()
        assert [] == staged(tmp_path)


def test_a_file_with_deletions_beside_it_is_refused(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows([1])}})
    (tmp_path / "f.tsfile.mods").write_text("DELETION,root.db.**,0,0,5\n")
    with open_store(tmp_path / "data") as store, pytest.raises(UnsupportedFile, match="deletions"):
        load(store, path)


def test_missing_databases_are_made_at_the_level(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {"root.a.b.c.d": {"i": rows([1])}, "root.a.e.f": {"i": rows([2])}})
    with open_store(tmp_path / "one") as store:
        load(store, path)
        assert ["root.a"] == store.schema.databases()
    with open_store(tmp_path / "two") as store:
        assert 2 == load(store, path, level=2)
        assert ["root.a.b", "root.a.e"] == store.schema.databases()
    with open_store(tmp_path / "three") as store:
        with pytest.raises(UserMistake, match="too short"):
            load(store, path, level=4)
        store.change_schema([CreateDatabase("root.a.b")])
        load(store, path, level=2)
        assert rows([1]) == points(store, "root.a.b.c.d", "i")


def test_times_of_another_unit_are_refused(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows(range(0, 10_001 * SLICE, SLICE), 1)}})
    with open_store(tmp_path / "data") as store, pytest.raises(UserMistake, match="time unit"):
        load(store, path)


def test_a_view_that_saw_the_staged_file_still_reads_it(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows(range(5))}})
    with open_store(tmp_path / "data") as store:
        store.change_schema(creates())
        with store._region.flusher.folders:
            load(store, path)
            view = store._region.view()
        store.flush()
        wait_for_nothing_staged(tmp_path)
        reader = view.open(ScanRequest(PLAIN_DEVICE, ("i",), (DataType.INT32,), False))
        block = reader.next()
        assert block is not None
        assert list(range(5)) == block.columns[0].to_list()  # type: ignore[union-attr]
        view.close()


def test_dropping_a_database_takes_loaded_files_along(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows([1])}})
    with open_store(tmp_path / "data") as store:
        load(store, path)
        store.delete_database("root.db")
        assert [] == staged(tmp_path)
    with open_store(tmp_path / "data") as store:
        assert [] == store.schema.databases()
        assert 0 == store.status().files
        load(store, path)
        assert rows([1]) == points(store, PLAIN_DEVICE, "i")


# --- restarts


class StuckDisk(QuickDisk):
    """A disk on which loaded files stay staged, since either all links or only links into a partition's folder fail."""

    def __init__(self, *, everywhere: bool = False) -> None:
        self._everywhere = everywhere

    def link(self, source: str, target: str) -> None:
        if self._everywhere or ".staged" not in target:
            raise OSError(errno.ENOSPC, "no space left")
        super().link(source, target)


def test_a_restart_replays_what_was_staged(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows([1, 2, SLICE + 1])}})
    with open_store(tmp_path / "data", StuckDisk()) as store:
        store.change_schema(creates())
        store.write([tablet(PLAIN_DEVICE, [1, 3], i=[9, 9])])
        load(store, path)
        store.write([tablet(PLAIN_DEVICE, [2], i=[9])])
    assert 4 == len(staged(tmp_path))
    (tmp_path / "data/groups/0/.staged/123").mkdir()
    for _ in range(3):
        with open_store(tmp_path / "data") as again:
            assert [(1, 1), (2, 9), (3, 9), (SLICE + 1, SLICE + 1)] == points(again, PLAIN_DEVICE, "i")
            again.flush()
        assert [] == staged(tmp_path)
    assert not (tmp_path / "data/groups/0/.staged/123").exists()


def test_a_staged_file_that_is_gone_is_set_aside_and_named(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows([1])}})
    with open_store(tmp_path / "data", StuckDisk()) as store:
        load(store, path)
    next((tmp_path / "data/groups/0/.staged").rglob("1.tsfile")).write_bytes(b"TsFile")
    with open_store(tmp_path / "data") as again:
        again.flush()
        assert [] == points(again, PLAIN_DEVICE, "i")
        (problem,) = again.status().problems
        assert "checksum" in problem
        again.write([tablet(PLAIN_DEVICE, [5], i=[5])])
        assert rows([5]) == points(again, PLAIN_DEVICE, "i")


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {PLAIN_DEVICE: {"i": rows([1])}})
    with open_store(tmp_path / "data", StuckDisk(everywhere=True)) as store:
        with pytest.raises(DiskFull):
            load(store, path)
        assert [] == store.schema.databases()
    assert [] == staged(tmp_path)


# --- Apache's own

APACHE = pytest.mark.skipif(importlib.util.find_spec("tsfile") is None, reason="the package tsfile is not installed")


@pytest.mark.slow
@APACHE
def test_an_apache_file_answers_with_its_content(tmp_path: Path) -> None:
    from storage.test_tsfile_interop import WRITTEN, apache, as_json, sample

    series: dict[str, dict[str, Any]] = {}
    for type_, encodings in WRITTEN:
        for encoding in encodings:
            values = [i * i % 1009 - 300 for i in range(60)] if encoding.value > 8 else sample(type_, 60)
            if type_ is DataType.FLOAT or type_ is DataType.DOUBLE:
                values = [float(v) / 4 for v in range(60)]
            series[f"{type_.name}_{encoding.name}".lower()] = {
                "type": type_.value,
                "encoding": encoding.value,
                "compressor": Compressor.LZ4.value,
                "rows": as_json(values, range(0, 600, 10)),
            }
    devices = {"root.sg.d1": series, "root.a.b.c.d.e": dict(list(series.items())[:3])}
    spec, path = tmp_path / "spec.json", tmp_path / "apache.tsfile"
    spec.write_text(json.dumps({"model": "tree", "devices": devices}))
    apache("write", str(path), str(spec))
    with open_store(tmp_path / "data") as store:
        assert 6 + 6 == load(store, path)
        for device, columns in devices.items():
            known = store.schema.device(device)
            assert known is not None
            for name, column in columns.items():
                TYPES[name] = known.series[name].type
                try:
                    found = [(t, list(v) if isinstance(v, bytes) else v) for t, v in points(store, device, name)]
                finally:
                    del TYPES[name]
                assert [tuple(row) for row in column["rows"]] == found


def test_a_table_model_file_is_refused(tmp_path: Path) -> None:
    path = write_file(tmp_path / "f.tsfile", {"weather.north": {"i": rows([1])}})
    with open_store(tmp_path / "data") as store, pytest.raises(UnsupportedFile, match="table model"):
        load(store, path)


def test_a_version_3_file_is_loaded(tmp_path: Path) -> None:
    from storage.test_tsfile import version_3_file

    path = tmp_path / "v3.tsfile"
    path.write_bytes(version_3_file())
    with open_store(tmp_path / "data") as store:
        assert load(store, path)
        devices = store.schema.match_devices(parse_pattern("root.**"))
        assert devices
        for device in devices:
            for name, series in device.series.items():
                TYPES[name] = series.type
                assert points(store, device.path, name)
                del TYPES[name]


def test_a_closed_store_loads_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path / "data") as store:
        pass
    with pytest.raises(StoreClosed):
        load(store, tmp_path / "f.tsfile")
