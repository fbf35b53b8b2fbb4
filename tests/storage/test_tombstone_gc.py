"""A tombstone may be dropped once it hides no point of any file, nor of a MemTable that is being flushed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pytest

from saros_storage.compaction.tombstone_gc import removable_tombstones
from saros_storage.folder.lazy_file import LazyFile
from saros_storage.io.disk import LocalDisk
from saros_storage.scan.reading import TimeRange
from saros_storage.scan.snapshot import DeviceSpan, FileSource, Rank, Tombstone

STONE = Tombstone("root.a.d.s", TimeRange(10, 20), Rank(0, 5))


def file(version: int, device: str = "root.a.d", first: int = 0, last: int = 99) -> FileSource:
    access = LazyFile("1.tsfile", LocalDisk(), lambda _path, _error: None)
    return FileSource(Rank(0, version), True, "1.tsfile", 1, {device: DeviceSpan(first, last)}, access)


@dataclass
class Frozen:
    rank: Rank
    devices: tuple[str, ...]

    def device_names(self) -> tuple[str, ...]:
        return self.devices


def goes(
    files: Sequence[FileSource] = (),
    merged: Sequence[FileSource] = (),
    applied: Collection[Tombstone] = (),
    waiting: Sequence[Frozen] = (),
) -> bool:
    found = removable_tombstones([STONE], files, merged, applied, waiting)
    assert found in ([], [STONE])
    return bool(found)


def test_a_tombstone_without_any_data_goes() -> None:
    assert goes()


@pytest.mark.parametrize("version", [3, 5, 6])
def test_it_stays_for_files_of_its_rank_and_below(version: int) -> None:
    assert (version > 5) == goes([file(version)])
    assert not goes([file(6), file(version), file(4)])


@pytest.mark.parametrize(
    ("device", "first", "last", "expected"),
    [
        ("root.a.d", 0, 9, True),
        ("root.a.d", 0, 10, False),
        ("root.a.d", 19, 30, False),
        ("root.a.d", 20, 30, True),
        ("root.a.e", 0, 99, True),
    ],
)
def test_it_stays_for_files_that_may_have_points_that_it_hides(
    device: str, first: int, last: int, expected: bool
) -> None:
    assert expected == goes([file(4, device, first, last)])


def test_a_merge_that_left_its_points_out_does_not_need_it() -> None:
    assert goes(merged=[file(4)], applied=[STONE])
    assert not goes(merged=[file(4)])
    assert not goes([file(3)], merged=[file(4)], applied=[STONE])
    assert goes(merged=[file(6)])
    assert not goes(merged=[file(5)])


@pytest.mark.parametrize(
    ("version", "device", "expected"),
    [(4, "root.a.d", False), (5, "root.a.d", False), (6, "root.a.d", True), (4, "root.a.e", True)],
)
def test_it_stays_for_memtables_that_become_files(version: int, device: str, expected: bool) -> None:
    assert expected == goes(waiting=[Frozen(Rank(0, version), ("root.b.d", device))])
