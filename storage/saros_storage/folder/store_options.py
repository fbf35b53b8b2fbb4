"""Options of a store, and their defaults. Pure: any thread."""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import force_setattr

from saros_storage.base.errors import UserMistake
from saros_storage.base.types import TimeUnit
from saros_storage.log import Durability

#: Seven days: at the usual rates of gateways, a partition then consists of a few files of tens of megabytes.
_WEEK_SECONDS = 7 * 24 * 3600


def parse_durability(text: str) -> tuple[Durability, int]:
    """Parse `fsync`, `interval:<ms>` or `os`; return the mode, and its milliseconds or 0. Raises UserMistake 2004."""
    match = re.fullmatch(r"(fsync|os)|interval:([1-9]\d{0,8})", text)
    if match is None:
        raise UserMistake(f"durability {text!r} is not one of fsync, interval:<ms>, os", code=2004)
    if match.group(2):
        return Durability.INTERVAL, int(match.group(2))
    return Durability(match.group(1)), 0


class StoreOptions(msgspec.Struct, frozen=True):
    """Options of a store; all sizes are in bytes.

    `time_unit` and `time_partition_interval` never change for a folder.
    """

    time_unit: TimeUnit = TimeUnit.MILLISECOND
    #: Width of a partition in ticks of the time unit; 0 stands for seven days.
    time_partition_interval: int = 0
    #: `fsync`, `interval:<ms>` or `os`: see `log.Durability`.
    durability: str = "fsync"
    #: A MemTable larger than this is flushed.
    memtable_bytes_max: int = 64 << 20
    #: Writers wait while all MemTables together are larger than this.
    memtables_total_bytes_max: int = 512 << 20
    #: Number of rows per page in flushed files.
    page_rows: int = 10_000
    #: Size of the cache of decoded chunks. In addition, the cache of file indexes gets a quarter of this size, and the
    #: cache of statistics per window an eighth.
    cache_bytes: int = 256 << 20
    #: Size of the cache for SELECT LAST, which takes about 250 bytes per series.
    latest_cache_bytes: int = 64 << 20
    #: Size at which a log segment is closed and a new one started.
    segment_bytes: int = 64 << 20
    #: If the log grows larger than this, the store flushes the partitions that prevent the removal of its oldest
    #: segments.
    log_bytes_max: int = 1 << 30
    #: Size of the archive, which keeps segments cut from the log for backups; the oldest segments are removed first.
    log_archive_bytes: int = 0
    #: Minimum number of files of similar size that are worth merging.
    compaction_files_min: int = 8
    #: True to merge files in the background; explicitly requested merges always run.
    compaction: bool = True
    #: Maximum bytes per second that compaction reads and writes; 0 means no limit, and no pauses. The default leaves
    #: most of a disk's throughput to other work.
    compaction_bytes_per_second: int = 64 << 20
    #: Maximum bytes per second of files that a node of a cluster receives; 0 means no limit.
    migration_bytes_per_second: int = 0
    #: Maximum percentage of time for flushes on behalf of other nodes of a cluster; 0 means no limit.
    migration_cpu_percent: int = 30
    #: Size up to which files grow by merging; larger files are merged only with late rows.
    compaction_file_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        parse_durability(self.durability)
        if self.time_partition_interval == 0:
            force_setattr(self, "time_partition_interval", _WEEK_SECONDS * self.time_unit.value)
        assert self.time_partition_interval > 0
        assert self.page_rows > 0
        assert self.segment_bytes > 0
