"""Backups and restores that are cut off anywhere, or whose disk fails: see `backup_crashes`."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from storage.backup_crashes import (
    BACKUPS,
    STORY,
    TARGET,
    History,
    crash_backups,
    crash_restores,
    fail_backups,
    fail_restores,
)
from storage.crash_disk import CrashDisk
from storage.store_model import load, write_rows

from saros_storage.backup.points import AtIndex
from saros_storage.backup.repository import Repository
from saros_storage.backup.restoring import Restore
from saros_storage.base.errors import UserMistake
from saros_storage.io.disk import LocalDisk
from saros_storage.region import Region
from saros_storage.scan.snapshot import Chosen


@pytest.mark.slow
def test_a_backup_that_is_cut_off_anywhere() -> None:
    figures = crash_backups(STORY, one_of=9)
    assert {"create", "write", "sync", "rename", "make"} <= figures.kinds
    assert figures.different > 8


def test_a_restore_that_is_cut_off_anywhere() -> None:
    figures = crash_restores(STORY, one_of=5)
    assert {"create", "write", "sync", "rename", "make"} <= figures.kinds
    assert figures.different > 8


@pytest.mark.slow
@pytest.mark.parametrize(("number", "failing", "start"), [(errno.EIO, 1, 3), (errno.ENOSPC, 3, 12)])
def test_an_operation_of_a_backup_that_fails(number: int, failing: int, start: int) -> None:
    assert fail_backups(STORY, number, failing=failing, step=29, start=start).failures > 2


@pytest.mark.parametrize(("number", "failing", "start"), [(errno.EIO, 1, 3), (errno.ENOSPC, 3, 12)])
def test_an_operation_of_a_restore_that_fails(number: int, failing: int, start: int) -> None:
    assert fail_restores(STORY, number, failing=failing, step=29, start=start).failures > 2


def test_a_load_that_comes_while_a_backup_begins_is_in_it_with_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The load comes after the backup's flush, and its file is not yet in a partition when the log is copied."""
    history, disk = History(), CrashDisk()
    history.tell(write_rows("root.a.d1", range(9), 1))
    region, flush_chosen, loading = history.store._region, Region.flush_chosen, [load(("root.a.d1", range(4), 2))]

    def flushing(self: Region, chosen: Chosen) -> None:
        flush_chosen(self, chosen)
        if loading:
            with monkeypatch.context() as patched:
                patched.setattr(region.flusher, "add", lambda partition: None)
                history.tell(loading.pop())

    monkeypatch.setattr(Region, "flush_chosen", flushing)
    history.back_up(disk, incremental=False)
    history.compare(disk, Repository(BACKUPS, disk).catalogs(), "a backup")
    assert not loading
    history.store.close()


def test_a_point_behind_a_load_is_refused_until_a_backup_has_its_file() -> None:
    history, disk = History(), CrashDisk()
    history.tell(write_rows("root.a.d1", range(9), 1))
    history.back_up(disk, incremental=False)
    history.tell(load(("root.a.d1", range(4), 2)))
    loaded = history.reached
    history.tell(write_rows("root.a.d1", range(3), 3))
    history.back_up(disk, incremental=True)
    target = CrashDisk()
    with pytest.raises(UserMistake, match=f"entry {loaded} is a LOAD") as raised:
        Restore(Repository(BACKUPS, disk), TARGET, target).run(AtIndex(loaded))
    assert 2052 == raised.value.code
    assert {} == target.files
    for index in (loaded - 1, history.reached):
        restored = CrashDisk()
        Restore(Repository(BACKUPS, disk), TARGET, restored).run(AtIndex(index))
        history.judge(restored, index, "a restore")
    history.store.close()


def test_a_file_in_place_of_the_folder_is_left_alone(tmp_path: Path) -> None:
    history, disk = History(), CrashDisk()
    history.back_up(disk, incremental=False)
    (tmp_path / "data").write_text("mine")
    for there, target in ((CrashDisk.of({TARGET: b"mine"}), TARGET), (LocalDisk(), str(tmp_path / "data"))):
        with pytest.raises(UserMistake, match="not empty"):
            Restore(Repository(BACKUPS, disk), target, there).run()
        assert b"mine" == bytes(there.map(target))
    history.store.close()
