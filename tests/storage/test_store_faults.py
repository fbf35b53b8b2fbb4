"""A full or failing disk: the store's messages, the data it keeps, and how it continues."""

from __future__ import annotations

import errno
import logging
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from waiting import PATIENCE_S, wait_until

from saros_storage.base.block import Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.errors import DiskFull, LogFailed, StorageError
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding
from saros_storage.base.write_request import UNNUMBERED
from saros_storage.folder.layout import MANIFEST
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import File, LocalDisk
from saros_storage.mutation.mutation import Mutation
from saros_storage.mutation.tablet_validation import frames_of
from saros_storage.scan.reading import ScanRequest
from saros_storage.schema import CreateDatabase, CreateSeries, SchemaChange, SeriesSchema
from saros_storage.store import Store

DEVICE = "root.a.d"
SERIES = SeriesSchema("x", DataType.INT64, Encoding.PLAIN, Compressor.UNCOMPRESSED)
CREATES: list[SchemaChange] = [CreateDatabase("root.a"), CreateSeries(DEVICE, False, (SERIES,))]


class FailingFile:
    """A file whose operations fail if its disk has been set to fail for this path.

    A full disk accepts half of a write.
    """

    def __init__(self, file: File, path: str, disk: FailingDisk) -> None:
        self._file = file
        self._path = path
        self._disk = disk

    @property
    def size(self) -> int:
        return self._file.size

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        if self._disk.fails(self._path):
            data = b"".join(parts)
            self._file.write([data[: len(data) // 2]])
            raise OSError(self._disk.number, "injected")
        self._file.write(parts)

    def reserve(self, count: int) -> None:
        if self._disk.fails(self._path):
            raise OSError(self._disk.number, "injected")
        self._file.reserve(count)

    def sync(self) -> None:
        if self._disk.fails(self._path) and self._disk.number == errno.EIO:
            raise OSError(errno.EIO, "injected")
        self._file.sync()

    def close(self) -> None:
        self._file.close()


class FailingDisk(LocalDisk):
    def __init__(self) -> None:
        self.where = ""
        self.number = 0

    def fails(self, path: str) -> bool:
        return self.number != 0 and self.where in path

    def create(self, path: str) -> File:
        return FailingFile(super().create(path), path, self)

    def append(self, path: str) -> File:
        return FailingFile(super().append(path), path, self)

    def fail(self, where: str, number: int) -> None:
        self.where, self.number = where, number

    def heal(self) -> None:
        self.number = 0


def open_store(folder: Path, disk: LocalDisk, durability: str = "fsync") -> Store:
    return Store.open(str(folder), StoreOptions(durability=durability), disk, SystemClock())


def rows(*times: int) -> Tablet:
    array = np.array(times, np.int64)
    return Tablet(DEVICE, ("x",), array, (Column(DataType.INT64, array * 10),), False)


def seen(store: Store) -> list[int]:
    view = store.view()
    reader = view.open(ScanRequest(DEVICE, ("x",), (DataType.INT64,), False))
    found: list[int] = []
    while (block := reader.next()) is not None:
        found += block.times.tolist()  # type: ignore[union-attr]
    reader.close()
    view.close()
    return found


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_a_full_disk_refuses_writes_and_leaves_nothing_of_them(tmp_path: Path, durability: str) -> None:
    disk = FailingDisk()
    store = open_store(tmp_path, disk, durability)
    store.write([rows(1, 2)], CREATES)
    disk.fail("/log/", errno.ENOSPC)
    for attempt in range(3):
        with pytest.raises(DiskFull, match="no space left"):
            store.write([rows(3 + attempt)])
    with pytest.raises(DiskFull):
        store.change_schema([CreateDatabase("root.b")])
    assert [1, 2] == seen(store)
    assert ["root.a"] == store.schema.databases()
    disk.heal()
    store.write([rows(9)])
    assert [1, 2, 9] == seen(store)
    store.close()
    assert [1, 2, 9] == seen(open_store(tmp_path, LocalDisk()))


#: A store hits the process's limit of file sizes, and continues when the limit is raised.
LIMITED = """
import resource, sys
from pathlib import Path

sys.path.insert(0, sys.argv[3])
from storage.test_store_faults import CREATES, LocalDisk, open_store, rows, seen
from saros_storage.base.errors import DiskFull

folder = Path(sys.argv[1])
store = open_store(folder, LocalDisk(), sys.argv[2])
store.write([rows(1, 2)], CREATES)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
for attempt in range(3):
    try:
        store.write([rows(3 + attempt)])
    except DiskFull as error:
        print(error.code)
print(seen(store))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
store.write([rows(9)])
store.close()
print(seen(open_store(folder, LocalDisk())))
"""


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_a_limit_of_the_size_of_files_is_as_a_full_disk(tmp_path: Path, durability: str) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path), durability, str(Path(__file__).parents[1])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ["611", "611", "611", "[1, 2]", "[1, 2, 9]"] == done.stdout.splitlines(), done.stderr


def test_writes_that_a_full_disk_refused_after_they_were_submitted_may_be_written_again(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = open_store(tmp_path, disk)
    store.write([rows(1)], CREATES)
    unknown = Tablet("root.a.e", ("x",), np.array([1]), (Column(DataType.INT64, np.array([1])),), False)
    disk.fail("/log/", errno.ENOSPC)
    first, refused, empty, last = store.submit_writes([(t, UNNUMBERED) for t in (rows(2), unknown, rows(), rows(3))])
    assert (None, None) == (refused, empty)
    assert first is not None
    assert last is not None
    assert (False, False) == (first.wait(PATIENCE_S), last.wait(PATIENCE_S))
    disk.heal()
    submitted = store.submit_writes([(rows(time), UNNUMBERED) for time in (3, 4, 5)])
    assert [1] == seen(store)
    assert [True] * 3 == [write is not None and write.wait(PATIENCE_S) for write in submitted]
    assert [1, 3, 4, 5] == seen(store)
    store.close()
    assert [None] == store.submit_writes([(rows(6), UNNUMBERED)])
    assert [1, 3, 4, 5] == seen(open_store(tmp_path, LocalDisk()))


def test_writers_that_wait_together_for_a_full_disk_all_hear_of_it(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = open_store(tmp_path, disk)
    store.write([rows(1)], CREATES)
    disk.fail("/log/", errno.ENOSPC)
    refused: list[int] = []

    def write(number: int) -> None:
        try:
            store.write([rows(number)])
        except DiskFull:
            refused.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert list(range(10, 20)) == sorted(refused)
    disk.heal()
    store.write([rows(2)])
    assert [1, 2] == seen(store)
    store.close()


def events(log: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """Return the level and text of each record that an operator reads."""
    return [(record.levelno, record.getMessage()) for record in log.records if record.levelno >= logging.INFO]


def test_a_failed_fsync_of_the_log_ends_writing_and_not_reading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FailingDisk()
    store = open_store(tmp_path, disk)
    store.write([rows(1)], CREATES)
    disk.fail("/log/", errno.EIO)
    with pytest.raises(LogFailed):
        store.write([rows(2)])
    disk.heal()
    with pytest.raises(LogFailed, match="restart"):
        store.write([rows(3)])
    assert [1] == seen(store)
    assert "the log failed" in (store.blocked_by() or "")
    assert [(logging.ERROR, "the log failed; restart after checking the disk")] == events(caplog)
    store.close()
    again = open_store(tmp_path, LocalDisk())
    assert 1 == seen(again)[0]
    again.write([rows(4)])
    again.close()


def test_a_flush_without_room_says_so_and_goes_on_by_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    disk = FailingDisk()
    store = open_store(tmp_path, disk)
    store.write([rows(*range(1_000))], CREATES)
    disk.fail("/groups/", errno.ENOSPC)
    with pytest.raises(DiskFull, match="flush"):
        store.flush()
    assert list(range(1_000)) == seen(store)
    assert store.status().problems
    assert [] == list(tmp_path.rglob("*.tmp"))
    store.write([rows(5_000)])
    disk.heal()
    wait_until(lambda: not store.status().problems)
    store.flush()
    assert () == store.status().problems
    assert 1_001 == len(seen(store))
    assert store.status().files >= 1
    assert [(logging.WARNING, "flushing waits for disk space"), (logging.INFO, "flushing resumed")] == events(caplog)
    store.close()


def test_a_flush_that_fails_otherwise_is_named_and_nothing_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FailingDisk()
    store = open_store(tmp_path, disk)
    store.write([rows(*range(1_000))], CREATES)
    disk.fail("/groups/", errno.EIO)
    with pytest.raises(StorageError, match="restart after checking the disk"):
        store.flush()
    assert "flushing stopped" in store.status().problems[0]
    assert [(logging.ERROR, "flushing failed; restart after checking the disk")] == events(caplog)
    assert 1_000 == len(seen(store))
    store.close()
    again = open_store(tmp_path, LocalDisk())
    again.flush()
    assert 1_000 == len(seen(again))
    again.close()


def test_what_a_full_disk_took_back_does_not_stand_in_the_way_of_later_entries(tmp_path: Path) -> None:
    """Two queued writes are refused. When only one of the two clients knows this, a third client writes."""
    disk = FailingDisk()
    store = open_store(tmp_path, disk)
    store.write([rows(1)], CREATES)
    with store._lock:
        placed = [store._fitting.place(frames_of([rows(n)], joined=True), store.schema) for n in (2, 3)]
        refused = [store._append(Mutation(tablets=tablets)) for tablets in placed]
    disk.fail("/log/", errno.ENOSPC)
    with pytest.raises(DiskFull):
        store.await_ticket(refused[0])
    disk.heal()
    store.change_schema([CreateDatabase("root.b")])
    assert ["root.a", "root.b"] == store.schema.databases()
    store.write([rows(4)])
    with pytest.raises(DiskFull):
        store.await_ticket(refused[1])
    assert [1, 4] == seen(store)
    store.close()
    again = open_store(tmp_path, LocalDisk())
    assert ["root.a", "root.b"] == again.schema.databases()
    assert [1, 4] == seen(again)
    again.close()


class StubbornDisk(LocalDisk):
    """A disk on which one kind of operation fails `times` times for paths that end with `where`."""

    def __init__(self, operation: str, where: str, number: int, times: int = 1) -> None:
        self.operation, self.where, self.number, self.times = operation, where, number, times

    def _look(self, operation: str, path: str) -> None:
        if self.times and operation == self.operation and path.endswith(self.where):
            self.times -= 1
            raise OSError(self.number, "injected")

    def replace(self, source: str, target: str) -> None:
        self._look("replace", target)
        super().replace(source, target)

    def sync_folder(self, path: str) -> None:
        super().sync_folder(path)
        if self.exists(f"{path}/{MANIFEST}"):
            self._look("sync_folder", path)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_database_whose_files_cannot_be_removed_is_gone_all_the_same(tmp_path: Path, number: int) -> None:
    store = open_store(tmp_path, StubbornDisk("replace", "root.a-0", number))
    store.write([rows(1, 2)], CREATES)
    store.flush()
    store.delete_database("root.a")
    assert [] == store.schema.databases()
    assert "could not be removed" in store.status().problems[0]
    store.write([rows(3)], CREATES)
    assert [3] == seen(store)
    with pytest.raises(StorageError, match="restart"):
        store.flush()
    store.close()
    assert list(tmp_path.rglob("*.tsfile"))
    again = open_store(tmp_path, LocalDisk())
    assert [3] == seen(again)
    assert [] == list(tmp_path.rglob("*.tsfile"))
    assert () == again.status().problems
    again.close()


def test_a_manifest_that_found_no_room_is_tried_again_with_the_same_files(tmp_path: Path) -> None:
    store = open_store(tmp_path, StubbornDisk("sync_folder", "root.a/0", errno.ENOSPC, times=3))
    store.write([rows(1, 2)], CREATES)
    while True:
        try:
            store.flush()
        except DiskFull:
            assert 1 == len(list(tmp_path.rglob("*.tsfile")))
        else:
            break
    assert 1 == len(list(tmp_path.rglob("*.tsfile")))
    assert [1, 2] == seen(store)
    store.close()
    again = open_store(tmp_path, LocalDisk())
    assert (1, ()) == (again.status().files, again.status().problems)
    again.close()
