"""Snapshots of a store's folder while another process writes to it, and after that process has crashed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random

import pytest
from manual_clock import CountingClock
from storage.crash_disk import CrashDisk
from storage.live_disk import LiveDisk
from storage.store_crashes import Note, judge, tell_all
from storage.store_model import Operation, State, flush, read_store, write_rows
from storage.store_opening import FOLDER, NOW_MS, OPTIONS, open_store
from storage.store_stories import expiring_story, loading_story, merging_story, story

from saros_storage.base.errors import CorruptFile, StorageError, UserMistake
from saros_storage.folder.folder_snapshot import take_snapshot
from saros_storage.folder.layout import LOG_FOLDER
from saros_storage.io.memory_disk import MemoryDisk
from saros_storage.store import Store

STORIES = [story, merging_story, loading_story, expiring_story]
SCHEDULES = 150


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


def open_snapshot(disk: MemoryDisk) -> Store:
    return Store.open_snapshot(FOLDER, OPTIONS, disk, CountingClock(NOW_MS * 1_000_000))


def state_of_snapshot(disk: CrashDisk) -> State:
    store = open_snapshot(take_snapshot(disk, FOLDER))
    try:
        assert () == store.status().problems
        return read_store(store)
    finally:
        store.close()


@pytest.mark.slow
@pytest.mark.parametrize("made", STORIES)
def test_a_snapshot_shows_one_moment_between_its_begin_and_its_end(made: Callable[[], list[Operation]]) -> None:
    told = list(tell_all(CrashDisk(), OPTIONS, made(), Note((State(),))))
    told = [(picture, note) for picture, note in told if picture.disk.exists(f"{FOLDER}/node.json")]
    for seed in range(SCHEDULES):
        chance = Random(seed)
        disk = LiveDisk(told, chance.randrange(len(told)), chance)
        found = state_of_snapshot(disk)
        assert found in disk.allowed, f"schedule {seed}"


@pytest.mark.slow
def test_a_snapshot_after_a_crash_shows_what_the_owner_recovers() -> None:
    told = list(tell_all(CrashDisk(), OPTIONS, story(), Note((State(),))))
    chance = Random(1)
    for picture, note in chance.sample(told, 60):
        for how, disk in chance.sample(list(picture.crashes()), 1):
            if disk.exists(f"{FOLDER}/node.json"):
                before = disk.fingerprint
                found = state_of_snapshot(disk)
                assert before == disk.fingerprint
                assert judge(disk, how, note, OPTIONS, picture.operation) == found


def test_what_a_snapshotd_store_does_stays_in_memory() -> None:
    disk = CrashDisk()
    owner = open_store(disk)
    for operation in (write_rows("root.a.d1", range(150), 1), flush(), write_rows("root.a.d1", range(3), 2)):
        operation.run(owner)
    before, operations = disk.fingerprint, disk.operations
    snapshot = open_snapshot(take_snapshot(disk, FOLDER))
    write_rows("root.a.d1", range(9), 3).run(snapshot)
    snapshot.flush()
    snapshot.merge(full=True)
    snapshot.delete_database("root.a")
    assert State() == read_store(snapshot)
    snapshot.close()
    assert (before, operations) == (disk.fingerprint, disk.operations)
    assert [0, 1, 2] == [t for t, v in read_store(owner).devices["root.a.d1"].series["x"].items() if v % 1_000 == 2]
    owner.close()


def test_files_stay_readable_when_the_owner_removes_them() -> None:
    disk = CrashDisk()
    owner = open_store(disk)
    for operation in (write_rows("root.a.d1", range(150), 1), flush()):
        operation.run(owner)
    expected = read_store(owner)
    snapshot = open_snapshot(take_snapshot(disk, FOLDER))
    owner.delete_database("root.a")
    owner.close()
    assert expected == read_store(snapshot)
    snapshot.close()


def test_damage_is_found_as_the_owner_finds_it() -> None:
    disk = CrashDisk()
    owner = open_store(disk)
    write_rows("root.a.d1", range(3), 1).run(owner)
    write_rows("root.a.d1", range(3), 2).run(owner)
    owner.close()
    (name,) = disk.list(f"{FOLDER}/{LOG_FOLDER}")
    path = f"{FOLDER}/{LOG_FOLDER}/{name}"
    damaged = bytearray(disk.map(path))
    damaged[40] ^= 1
    disk.place(path, bytes(damaged))
    with pytest.raises(CorruptFile, match="a record of the log is damaged"):
        state_of_snapshot(disk)


def test_a_folder_without_a_database_is_refused() -> None:
    disk = CrashDisk()
    with pytest.raises(UserMistake, match="data does not exist: nothing can be read there"):
        take_snapshot(disk, FOLDER)
    disk.make_folder(FOLDER)
    with pytest.raises(UserMistake, match="data is not a data folder"):
        take_snapshot(disk, FOLDER)


class _NeverStill(CrashDisk):
    """A disk on which the schema changes whenever it is read."""

    reads = 0

    def map(self, path: str) -> memoryview:
        self.reads += 1
        return memoryview(b"%d" % self.reads)


def test_a_folder_that_never_stands_still_is_an_error() -> None:
    disk = _NeverStill()
    disk.place(f"{FOLDER}/node.json", b"{}")
    with pytest.raises(StorageError, match="changed during each of 200 attempts to read it; try again"):
        take_snapshot(disk, FOLDER)
    assert 400 == disk.reads
