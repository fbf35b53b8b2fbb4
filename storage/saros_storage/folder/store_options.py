"""Options of a store, frozen; each with the reason for its default. Pure: any thread."""

from __future__ import annotations

import re
from dataclasses import dataclass

from saros_storage.base.errors import UserMistake
from saros_storage.base.types import TimeUnit
from saros_storage.log import Durability

#: Seven days: with gateways' usual rates a partition is then some files of tens of megabytes.
_WEEK_SECONDS = 7 * 24 * 3600


def parse_durability(text: str) -> tuple[Durability, int]:
    """From `fsync`, `interval:<ms>` or `os`: the mode, and the milliseconds (else 0). Raises UserMistake 2004."""
    match = re.fullmatch(r"(fsync|os)|interval:([1-9]\d{0,8})", text)
    if match is None:
        raise UserMistake(f"durability {text!r} is none of fsync, interval:<ms>, os", code=2004)
    if match.group(2):
        return Durability.INTERVAL, int(match.group(2))
    return Durability(match.group(1)), 0


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """See each field; sizes in bytes. `time_unit` and `time_partition_interval` are fixed for a folder's life."""

    time_unit: TimeUnit = TimeUnit.MILLISECOND
    #: Ticks of a partition; 0: seven days in the time unit.
    time_partition_interval: int = 0
    #: `fsync`, `interval:<ms>` or `os`: see `log.Durability`.
    durability: str = "fsync"
    #: A MemTable that holds more is flushed.
    memtable_bytes_max: int = 64 << 20
    #: Writers wait while all MemTables together hold more.
    memtables_total_bytes_max: int = 512 << 20
    #: Rows of a page in flushed files.
    page_rows: int = 10_000
    #: Decoded chunks kept for readers, and a quarter as much for files' indexes.
    cache_bytes: int = 256 << 20
    #: Latest points of series kept for SELECT LAST: some 250 bytes each.
    latest_cache_bytes: int = 64 << 20
    #: A log segment that reached this size is followed by a new one.
    segment_bytes: int = 64 << 20
    #: Past this, partitions that hold back old segments are flushed.
    log_bytes_max: int = 1 << 30
    #: Of segments that left the log, so many bytes are kept for backups; the oldest go first.
    log_archive_bytes: int = 0
    #: So many files of about one size are worth a merge.
    compaction_files_min: int = 8
    #: Whether files are merged in the background; asked for, they always are.
    compaction: bool = True
    #: What compaction may read and write in a second, 0: no limit, and no pauses. Leaves most of a disk.
    compaction_bytes_per_second: int = 64 << 20
    #: What files that come to a node of a cluster may take of its line in a second, 0: no limit.
    migration_bytes_per_second: int = 0
    #: Percent of the time that flushes for other nodes of a cluster may take, 0: no limit.
    migration_cpu_percent: int = 30
    #: Merged files grow up to here; larger ones are only merged with late rows.
    compaction_file_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        parse_durability(self.durability)
        if self.time_partition_interval == 0:
            object.__setattr__(self, "time_partition_interval", _WEEK_SECONDS * self.time_unit.value)
        assert self.time_partition_interval > 0
        assert self.page_rows > 0
        assert self.segment_bytes > 0
