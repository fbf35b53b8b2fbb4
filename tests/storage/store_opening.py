"""Open a store on a crash disk, with a clock that hardly advances, and options for tests with few operations."""

from __future__ import annotations

from typing import cast

from manual_clock import CountingClock
from storage.crash_disk import CrashDisk

from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.folder_lock import FolderLock
from saros_storage.store import Store

#: The width of a time partition in these tests, in ticks.
SLICE = 100
#: The time of the stores' clock, which advances by less than a millisecond in a test.
NOW_MS = 1_000_000
FOLDER = "data"
#: Options for small segments and pages: a few operations suffice to fill several of them.
OPTIONS = StoreOptions(time_partition_interval=SLICE, segment_bytes=900, page_rows=4, compaction=False)


class Wrong(AssertionError):
    """The store violated a guarantee."""


class _Nobody:
    """Replaces the lock of the folder, since the folder exists only in memory."""

    def release(self) -> None:
        return


def open_store(disk: CrashDisk, options: StoreOptions = OPTIONS, folder: str = FOLDER) -> Store:
    disk.make_folder(folder)
    return Store(folder, options, disk, CountingClock(NOW_MS * 1_000_000), cast("FolderLock", _Nobody()))
