"""A store on a crash disk: options that let a few operations meet with everything, and a clock that stands still."""

from __future__ import annotations

from typing import cast

from manual_clock import CountingClock
from storage.crash_disk import CrashDisk

from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.folder_lock import FolderLock
from saros_storage.store import Store

#: Ticks of a partition in these tests.
SLICE = 100
#: Now, of the stores' clock. It goes on by less than a tick in a test.
NOW_MS = 1_000_000
FOLDER = "data"
#: Segments hold a few writes, pages a few rows, so that a few operations meet with everything.
OPTIONS = StoreOptions(time_partition_interval=SLICE, segment_bytes=900, page_rows=4, compaction=False)


class Wrong(AssertionError):
    """The store has not kept its word."""


class _Nobody:
    """In place of the lock on a folder that is not there."""

    def release(self) -> None:
        return


def open_store(disk: CrashDisk, options: StoreOptions = OPTIONS, folder: str = FOLDER) -> Store:
    disk.make_folder(folder)
    return Store(folder, options, disk, CountingClock(NOW_MS * 1_000_000), cast("FolderLock", _Nobody()))
