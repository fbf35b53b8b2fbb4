"""Backups: a restore gives the contents as of the backup or is refused, and no backup copies the same data again."""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from manual_clock import ManualClock
from msgspec.structs import replace
from waiting import wait_until

from saros_storage.backup.catalog import Catalog
from saros_storage.backup.making import BackupRun
from saros_storage.backup.points import AtIndex, AtTime
from saros_storage.backup.repository import Repository
from saros_storage.backup.restoring import Restore
from saros_storage.backup.source import LocalSource
from saros_storage.backup.verifying import verify
from saros_storage.base.block import Column
from saros_storage.base.errors import CorruptFile, StorageError, UserMistake
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.checkpoint.checkpoint_set import CheckpointSet
from saros_storage.folder.store_options import StoreOptions
from saros_storage.folder_check import check_folder
from saros_storage.io.disk import LocalDisk
from saros_storage.log import segmented_log
from saros_storage.scan.reading import ScanRequest, TimeRange
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema, SetTtl
from saros_storage.store import Store

SECOND = 1_000_000_000
DEVICES = ("root.a.d", "root.b.d")
OPTIONS = StoreOptions(
    time_partition_interval=100, durability="os", compaction=False, segment_bytes=500, log_archive_bytes=1 << 20
)


class Plant:
    """A store with series, and its folder of backups. Tests write, back up and restore."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.store = self.open("data")
        series = (SeriesSchema("x", DataType.INT64, Encoding.PLAIN, Compressor.UNCOMPRESSED),)
        for device in DEVICES:
            self.store.change_schema([CreateDatabase(device[:-2]), CreateSeries(device, False, series)])
        self.repository = Repository(str(folder / "backups"), LocalDisk())

    def open(self, name: str, options: StoreOptions = OPTIONS) -> Store:
        return Store.open(str(self.folder / name), options, LocalDisk(), self.clock)

    def write(self, device: str, *times: int, value: int = 1) -> int:
        """Write points of a device; return the index of the log entry."""
        at = np.array(times, np.int64)
        self.store.write([Tablet(device, ("x",), at, (Column(DataType.INT64, at * 0 + value),), False)])
        return self.store._region.partitions.applied

    def back_up(self, *, incremental: bool = False) -> tuple[Catalog, BackupRun]:
        run = BackupRun(self.repository, LocalSource(self.store), self.clock, incremental=incremental)
        return run.run(), run

    def restore(self, name: str, at: AtIndex | AtTime | None = None) -> dict[str, dict[int, int]]:
        """Restore a folder, and return the points of its store."""
        Restore(self.repository, str(self.folder / name), LocalDisk()).run(at)
        result = check_folder(str(self.folder / name), LocalDisk(), lambda _: None)
        assert [] == result.problems
        store = self.open(name)
        try:
            assert [] == list(store.status().problems)
            return points_of(store)
        finally:
            store.close()

    def objects(self) -> dict[Path, float]:
        return {path: path.stat().st_mtime_ns for path in (self.folder / "backups/objects").glob("*/*")}


def points_of(store: Store) -> dict[str, dict[int, int]]:
    view = store.view()
    found: dict[str, dict[int, int]] = {}
    for device in DEVICES:
        reader = view.open(ScanRequest(device, ("x",), (DataType.INT64,), False))
        found[device] = {}
        while (block := reader.next()) is not None:
            found[device].update(zip(block.times.tolist(), block.columns[0].to_list(), strict=True))
        reader.close()
    view.close()
    return found


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    made = Plant(tmp_path)
    yield made
    made.store.close()


@pytest.mark.slow
def test_what_is_restored_is_what_was_there(plant: Plant) -> None:
    plant.write("root.a.d", 1, 2, 150, value=1)
    plant.store.flush()
    plant.write("root.a.d", 2, value=2)
    plant.store.delete(["root.a.d.x"], TimeRange(1, 2))
    plant.store.change_schema([SetTtl("root.b.**", 1 << 60, 1)])
    plant.write("root.b.d", 5, value=5)
    before = points_of(plant.store)
    schema = plant.store.schema.dump()
    catalog, _ = plant.back_up()
    plant.write("root.a.d", 1, 2, 3, 150, value=9)
    plant.store.delete_database("root.b")
    assert {"root.a.d": {2: 2, 150: 1}, "root.b.d": {5: 5}} == before == plant.restore("restored")
    assert (1, False, False) == (catalog.number, catalog.incremental, catalog.continues)
    store = plant.open("restored")
    assert schema == store.schema.dump()
    store.close()


def test_a_restored_folder_goes_on(plant: Plant) -> None:
    plant.write("root.a.d", 1)
    plant.back_up()
    plant.store.close()
    plant.restore("restored")
    plant.store = plant.open("restored")
    plant.write("root.a.d", 2)
    plant.store.delete(["root.a.d.x"], TimeRange(1, 2))
    plant.store.close()
    plant.store = plant.open("restored")
    assert {2: 1} == points_of(plant.store)["root.a.d"]


def test_points_that_come_while_it_is_backed_up_are_there_up_to_one_write(plant: Plant) -> None:
    """A writer overwrites a point in each of two databases atomically. In each backup, the two points must be equal."""
    plant.store.close()
    plant.store = plant.open("data", replace(OPTIONS, segment_bytes=1 << 20))
    stopped, catalogs = threading.Event(), list[Catalog]()
    written = 0

    def write_on() -> None:
        nonlocal written
        while not stopped.wait(0.002):  # a thread that never waits would keep the other threads from running
            at = np.array([1], np.int64)
            columns = (Column(DataType.INT64, at * (written + 1)),)
            plant.store.write([Tablet(device, ("x",), at, columns, False) for device in DEVICES])
            written += 1

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        for _ in range(4):
            before = written
            catalogs.append(plant.back_up(incremental=True)[0])
            wait_until(lambda before=before: written > before)
    finally:
        stopped.set()
        writer.join()
    values = []
    for catalog in catalogs:
        found = plant.restore(f"at-{catalog.number}", AtIndex(catalog.reached))
        assert found["root.a.d"] == found["root.b.d"]
        values.append(found["root.a.d"].get(1, 0))
    assert sorted(values) == values
    assert values[-1] > values[0]


def test_an_incremental_backup_copies_new_files_only(plant: Plant) -> None:
    plant.write("root.a.d", 1, 150)
    plant.back_up()
    before = plant.objects()
    plant.write("root.b.d", 1)
    _, run = plant.back_up(incremental=True)
    after = plant.objects()
    assert (4, 3) == (run.progress.files_known, run.progress.files)  # new: a TsFile, its resource, a piece of the log
    assert before == {path: time for path, time in after.items() if path in before}
    assert 3 == len(after) - len(before)
    assert {"root.a.d": {1: 1, 150: 1}, "root.b.d": {1: 1}} == plant.restore("restored")


def test_a_full_backup_mends_what_was_damaged(plant: Plant) -> None:
    plant.write("root.a.d", 1, 150)
    plant.back_up()
    path = max(plant.objects(), key=lambda path: path.stat().st_size)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    plant.back_up(incremental=True)
    (problem,) = verify(plant.repository).problems
    assert [1, 2] == problem[1]
    plant.back_up()
    assert [] == verify(plant.repository).problems
    assert {1: 1, 150: 1} == plant.restore("restored", AtIndex(plant.repository.catalogs()[0].reached))["root.a.d"]


@pytest.mark.slow
def test_every_point_between_two_backups_can_be_restored(plant: Plant) -> None:
    plant.write("root.a.d", 1)
    plant.back_up()
    states: list[tuple[int, dict[str, dict[int, int]]]] = []

    def note(act: Callable[[], object]) -> None:
        act()
        states.append((plant.store._region.partitions.applied, points_of(plant.store)))

    for value in range(2, 12):
        note(lambda value=value: plant.write("root.a.d", value, 1, value=value))  # type: ignore[misc]
        plant.store.flush()
    note(lambda: plant.store.delete(["root.a.d.x"], TimeRange(3, 6)))
    note(lambda: plant.write("root.b.d", 250))
    plant.store.flush()
    wait_until(lambda: plant.store._log.segments()[0][1] > states[0][0])  # the log is cut
    catalog, _ = plant.back_up(incremental=True)
    assert catalog.continues
    for index, state in states:
        assert state == plant.restore(f"at-{index}", AtIndex(index)), index


def test_a_moment_is_told_to_a_second(plant: Plant) -> None:
    plant.back_up()
    moments = []
    for value in range(1, 6):
        plant.clock.ns += 60 * SECOND
        plant.write("root.a.d", 1, value=value)
        moments.append(plant.clock.ns)
    plant.clock.ns += 60 * SECOND
    plant.back_up(incremental=True)
    for value, moment in enumerate(moments, 1):
        for later in (SECOND, 30 * SECOND, 59 * SECOND):
            assert {1: value} == plant.restore(f"{value}-{later}", AtTime(moment + later))["root.a.d"]
    for moment in (moments[0] - 120 * SECOND, plant.clock.ns + SECOND):
        with pytest.raises(
            UserMistake, match=r"no backup reaches that point: they were taken from 20\S+Z to 20\S+Z; the backups"
        ):
            plant.restore("never", AtTime(moment))


def test_a_point_of_which_the_log_is_gone_is_refused(plant: Plant) -> None:
    plant.store.close()
    plant.store = plant.open("data", StoreOptions(time_partition_interval=100, segment_bytes=500, compaction=False))
    first, _ = plant.back_up()
    for value in range(12):
        plant.write("root.a.d", value)
        plant.store.flush()
    index = plant.store._region.partitions.applied
    second, _ = plant.back_up(incremental=True)
    assert not second.continues
    with pytest.raises(UserMistake, match=f"entries {first.floor} to {first.reached}, {second.floor} to"):
        plant.restore("never", AtIndex(index - 4))
    assert dict.fromkeys(range(12), 1) == plant.restore("last", AtIndex(second.reached))["root.a.d"]


def test_the_log_of_another_history_is_none(plant: Plant) -> None:
    """After a restore and new writes, a folder has different entries with the same numbers."""
    plant.write("root.a.d", 1, value=1)
    plant.back_up()
    first = plant.write("root.a.d", 2, value=2)
    plant.back_up(incremental=True)
    plant.store.close()
    plant.restore("other", AtIndex(first - 1))
    plant.store = plant.open("other")
    for value in (7, 8, 9):
        last = plant.write("root.a.d", 2, value=value)
    catalog, _ = plant.back_up(incremental=True)
    assert not catalog.continues
    assert {1: 1, 2: 9} == plant.restore("newest", AtIndex(last))["root.a.d"]
    assert {1: 1, 2: 2} == plant.restore("older", AtIndex(first))["root.a.d"]


def test_a_flipped_byte_is_found_and_not_restored(plant: Plant) -> None:
    plant.write("root.a.d", 1, 2, 3)
    catalog, _ = plant.back_up()
    log = {stored.sha256 for _, stored in catalog.log()}
    assert [] == verify(plant.repository).problems
    for path in sorted(plant.objects()):
        good = path.read_bytes()
        bad = bytearray(good)
        bad[len(bad) // 2] ^= 16
        path.write_bytes(bad)
        ((problem, numbers),) = verify(plant.repository).problems
        assert path.name in str(problem)
        assert [1] == numbers
        if path.name not in log:  # files of the log are not needed here
            with pytest.raises(CorruptFile):
                Restore(plant.repository, str(plant.folder / "restored"), LocalDisk()).run()
            assert not list(plant.folder.glob("restored*"))
        path.unlink()
        assert "missing" in str(verify(plant.repository).problems[0][0])
        path.write_bytes(good)
    for path in (plant.folder / "backups/backups").iterdir():
        bad = bytearray(path.read_bytes())
        bad[-9] ^= 1
        path.write_bytes(bad)
        with pytest.raises(CorruptFile):
            verify(plant.repository)


def test_a_damaged_file_of_the_store_is_not_backed_up(plant: Plant) -> None:
    plant.write("root.a.d", 1, 2, 3)
    plant.store.flush()
    (path,) = (plant.folder / "data").rglob("*.tsfile")
    path.write_bytes(path.read_bytes()[:-3] + b"???")
    with pytest.raises(CorruptFile, match="the manifest says"):
        plant.back_up()
    with pytest.raises(UserMistake, match="holds no backup"):
        plant.repository.catalogs()
    assert [] == list((plant.folder / "data/snapshots").iterdir())


class Cut(LocalSource):
    """A source that fails in the middle of a backup."""

    def __init__(self, store: Store, after: int) -> None:
        super().__init__(store)
        self.after = after
        self.read_files = 0

    def create_checkpoint(self, since: int | None) -> CheckpointSet:
        self.read_files = 0
        return super().create_checkpoint(since)

    def read(self, capture: int, number: int) -> Iterator[bytes]:
        self.read_files += 1
        if self.read_files > self.after:
            raise KeyboardInterrupt
        return super().read(capture, number)


def test_a_backup_that_was_cut_short_is_none_and_goes_on(plant: Plant) -> None:
    for number in range(5):
        plant.write("root.a.d", number * 100)
    with pytest.raises(KeyboardInterrupt):
        BackupRun(plant.repository, Cut(plant.store, 6), plant.clock, incremental=False).run()
    assert [] == plant.repository.catalogs_if_any()
    _, run = plant.back_up()
    assert (6, 5) == (run.progress.files_known, run.progress.files_done)
    assert ["backups", "objects"] == sorted(os.listdir(plant.folder / "backups"))
    assert dict.fromkeys(range(0, 500, 100), 1) == plant.restore("restored")["root.a.d"]


def test_what_a_backup_left_that_came_to_no_end_goes(plant: Plant) -> None:
    plant.write("root.a.d", 1)
    plant.back_up()
    stray = plant.folder / "backups/objects/00"
    stray.mkdir()
    (stray / ("0" * 64)).write_bytes(b"of nobody")
    (plant.folder / "backups/partial").write_bytes(b"torn")
    (plant.folder / "backups/partial.new").write_bytes(b"torn")
    plant.back_up(incremental=True)
    assert [] == list(stray.iterdir())
    assert [] == verify(plant.repository).problems
    assert ["backups", "objects"] == sorted(os.listdir(plant.folder / "backups"))


def test_a_folder_that_is_not_empty_is_left_alone(plant: Plant) -> None:
    plant.write("root.a.d", 1)
    plant.back_up()
    for name in ("data", "backups"):
        before = sorted((plant.folder / name).rglob("*"))
        with pytest.raises(UserMistake, match="not empty"):
            plant.restore(name)
        assert before == sorted((plant.folder / name).rglob("*"))
    (plant.folder / "empty").mkdir()
    assert {1: 1} == plant.restore("empty")["root.a.d"]
    with pytest.raises(UserMistake, match="is not a folder of backups"):
        BackupRun(
            Repository(str(plant.folder / "data"), LocalDisk()), LocalSource(plant.store), plant.clock, incremental=True
        ).run()


def test_nothing_was_written_yet(plant: Plant) -> None:
    catalog, _ = plant.back_up()
    assert {"root.a.d": {}, "root.b.d": {}} == plant.restore("restored", AtIndex(catalog.reached))
    again, run = plant.back_up(incremental=True)
    assert (True, 0) == (again.continues, run.progress.files_known)


def test_compaction_between_backups(plant: Plant) -> None:
    for value in range(1, 6):
        plant.write("root.a.d", value, 9, value=value)
        plant.store.flush()
    plant.back_up()
    plant.store.delete(["root.a.d.x"], TimeRange(1, 2))
    plant.store.merge(full=True)
    _, run = plant.back_up(incremental=True)
    assert 0 == run.progress.files_known
    first, second = plant.repository.catalogs()
    assert {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 9: 5} == plant.restore("one", AtIndex(first.reached))["root.a.d"]
    assert {2: 2, 3: 3, 4: 4, 5: 5, 9: 5} == plant.restore("two", AtIndex(second.reached))["root.a.d"]


def test_a_folder_and_a_backup_of_the_time_before_segments_had_salts_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(segmented_log, "new_salt", lambda: 0)
        plant = Plant(tmp_path)
        first = plant.write("root.a.d", 1)
        plant.back_up()
        plant.store.close()
    _to_version_1(tmp_path / "backups/backups/00000001")
    plant.store = plant.open("data")
    last = plant.write("root.a.d", 2, value=9)
    catalog, _ = plant.back_up(incremental=True)
    assert catalog.continues
    assert [] == verify(plant.repository).problems
    assert {1: 1} == plant.restore("older", AtIndex(first))["root.a.d"]
    assert {1: 1, 2: 9} == plant.restore("newer", AtIndex(last))["root.a.d"]
    plant.store.close()


def _to_version_1(catalog: Path) -> None:
    """Rewrite a catalog in the format of an earlier version, whose segments had no salts."""
    words = json.loads(catalog.read_bytes().partition(b"\n")[2])
    captures = [json.loads(text) for text in words["captures"]]
    for capture in captures:
        assert {0} == {salt for _, _, _, salt in capture["log"]}
        capture["log"] = [piece[:3] for piece in capture["log"]]
    body = json.dumps(words | {"captures": [json.dumps(capture) for capture in captures]}).encode()
    catalog.write_bytes(b"saros-backup 1 %08x %d\n" % (zlib.crc32(body), len(body)) + body)


@pytest.mark.parametrize("data", [b"", b"saros-backup 1 00000000 0\n", b"saros-backup 9 00000000 2\n{}"])
def test_what_is_no_catalog_is_refused(plant: Plant, data: bytes) -> None:
    plant.back_up()
    (plant.folder / "backups/backups/00000002").write_bytes(data)
    with pytest.raises(StorageError):
        plant.repository.catalogs()
