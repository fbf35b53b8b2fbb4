from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest
from storage.crash_disk import CrashDisk

from saros_storage.io import platform
from saros_storage.io.disk import LocalDisk


class Watched(LocalDisk):
    def __init__(self) -> None:
        self.synced: list[str] = []

    def sync_folder(self, path: str) -> None:
        self.synced.append(path)
        super().sync_folder(path)


def test_a_folder_is_made_durable_once_also_if_a_process_that_died_has_made_it(tmp_path: Path) -> None:
    (tmp_path / "left").mkdir()
    disk = Watched()
    for _ in range(2):
        disk.make_folder(str(tmp_path / "left" / "new"))
    assert [str(tmp_path), str(tmp_path / "left")] == disk.synced[-2:]
    assert 1 == disk.synced.count(str(tmp_path))
    assert 1 == disk.synced.count(str(tmp_path / "left"))


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    disk = Watched()
    for _ in range(2):
        disk.make_folder(str(tmp_path / "new"))
        assert (tmp_path / "new").is_dir()
        disk.remove_tree(str(tmp_path / "new"))
    assert 2 == disk.synced.count(str(tmp_path))


def test_a_folder_that_was_removed_and_made_again_stays_also_on_a_disk_of_crash_tests() -> None:
    """The new folder stays, whether or not the removal of the old one was durable."""
    disk = CrashDisk()
    for data in (b"old", b"new"):
        disk.make_folder("folder")
        file = disk.create("folder/file")
        file.write([data])
        file.sync()
        disk.sync_folder("folder")
        assert {"folder/file": data} == disk.after_power_cut().files
        if data == b"old":
            disk.remove_tree("folder")


class Forbidding(LocalDisk):
    def sync_folder(self, path: str) -> None:
        raise PermissionError(errno.EPERM, "not yours", path)


def test_folders_above_that_are_not_ours_need_not_be_synced(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    Forbidding().make_folder(str(tmp_path / "theirs"))
    with pytest.raises(PermissionError):
        Forbidding().make_folder(str(tmp_path / "theirs" / "new"))


class FullOnce(Watched):
    """A disk that is full at the first sync of `where`."""

    def __init__(self, where: Path) -> None:
        super().__init__()
        self.where = str(where)

    def sync_folder(self, path: str) -> None:
        if path == self.where:
            self.where = ""
            raise OSError(errno.ENOSPC, "full", path)
        super().sync_folder(path)


def test_a_folder_whose_making_was_not_made_durable_is_so_when_it_is_made_again(tmp_path: Path) -> None:
    """Without this, files in the folder would wrongly count as durable, and their log entries would be released."""
    disk = FullOnce(tmp_path)
    with pytest.raises(OSError, match="full"):
        disk.make_folder(str(tmp_path / "new"))
    disk.make_folder(str(tmp_path / "new"))
    assert [str(tmp_path)] == disk.synced[-1:]


def test_many_files_are_synced_with_their_file_system_and_few_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = ([tmp_path / f"{kind}{n}" for n in range(count)] for kind, count in (("few", 3), ("many", 40)))
    for path in (*few, *many):
        path.write_bytes(b"x")
    systems: list[str] = []
    monkeypatch.setattr(platform, "sync_file_system", systems.append)
    disk = Watched()
    disk.sync_all([*map(str, few), str(tmp_path)])
    assert (disk.synced, systems) == ([*map(str, few), str(tmp_path)], [])
    disk.synced.clear()
    disk.sync_all(list(map(str, many)))
    assert (disk.synced, systems) == ([], [str(many[0])])
    monkeypatch.setattr(platform, "sync_file_system", None)  # as on systems whose sync does not report lost writes
    disk.sync_all(list(map(str, many)))
    assert disk.synced == list(map(str, many))


@pytest.mark.parametrize("count", [1, 40])
def test_a_file_that_is_missing_is_not_durable(tmp_path: Path, count: int) -> None:
    paths = [str(tmp_path / str(n)) for n in range(count)]
    for path in paths[1:]:
        Path(path).write_bytes(b"x")
    with pytest.raises(FileNotFoundError):
        LocalDisk().sync_all(paths)


def cached_bytes(path: Path) -> int:
    """Return the number of bytes at the file's start that can be read without waiting for the disk."""
    with path.open("rb") as file:
        buffer = bytearray(path.stat().st_size)
        try:
            return os.preadv(file.fileno(), [buffer], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            return 0


_LENGTHS = [[], [0], [1], [4 << 20], [5 << 20, 7], [512, 4 << 20, 512], [100_000] * 130]


@pytest.mark.parametrize("lengths", _LENGTHS, ids=str)
@pytest.mark.parametrize("can_pass_cache", [True, False])
def test_what_goes_past_the_cache_is_what_was_written(
    lengths: list[int], can_pass_cache: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_pass_cache:
        monkeypatch.setattr(os, "O_DIRECT", 0)
    parts = [random.Random(number).randbytes(length) for number, length in enumerate(lengths)]
    file = LocalDisk().create_unread(str(tmp_path / "file"))
    for part in parts:
        file.write([part[:100], memoryview(part)[100:]])
    assert sum(lengths) == file.size
    file.sync()
    assert b"".join(parts) == (tmp_path / "file").read_bytes()
    file.close()


def test_who_writes_a_file_that_nobody_reads_soon_takes_no_memory_for_it(tmp_path: Path) -> None:
    found = {}
    for create in (LocalDisk().create, LocalDisk().create_unread):
        path = tmp_path / create.__name__
        file = create(str(path))
        file.write([bytes(8 << 20)])
        file.sync()
        file.close()
        found[create.__name__] = cached_bytes(path)
    if not found["create"]:
        pytest.skip("this file system does not tell what is in memory")
    assert {"create": 8 << 20, "create_unread": 0} == found


def test_a_full_disk_is_told_by_who_goes_past_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = LocalDisk().create_unread(str(tmp_path / "file"))
    file.write([b"1234"])

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="no room"):
        file.sync()
    file.close()
