"""Files that a LOAD staged for one partition, as named by log entries and as held in a partition's queue.

    staged folder   17.../1.tsfile  1.tsfile.resource    names are never reused; removed once the manifest has the file

A `LoadedFile` waits among the frozen MemTables. Meanwhile the loaded file is read like any other file, with the rank of
its place in the queue. Values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from saros_storage.scan.snapshot import FileSource, Rank


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A staged file: `name` is its path in the staging folder; sizes and checksums cover the file and its resource."""

    database: str
    slice: int
    name: str
    size: int
    crc32: int
    resource_crc32: int
    #: The file as a source of reads from its staged place, rank still unset; None: it has not been inspected yet.
    known: FileSource | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> list[object]:
        """Return the file as JSON values."""
        return [self.database, self.slice, self.name, self.size, self.crc32, self.resource_crc32]

    @staticmethod
    def from_json(words: list[object]) -> StagedFile:
        """Create a file from JSON values; the inverse of `to_json`. Raises ValueError, TypeError."""
        database, number, name, *sums = words
        size, crc32, resource_crc32 = (int(str(part)) for part in sums)
        return StagedFile(str(database), int(str(number)), str(name), size, crc32, resource_crc32)


class LoadedFile:
    """A staged file whose LOAD was applied; it takes a place in its partition's queue as a frozen MemTable does."""

    #: Its share of the memory for MemTables.
    bytes = 0

    def __init__(self, rank: Rank, index: int, staged: StagedFile, source: FileSource | None, problem: str) -> None:
        self.rank = rank
        #: Log index of its LOAD: the log is kept from here on, and the file completes the partition up to here.
        self.first_index = index
        self.frozen_at = index
        self.staged = staged
        #: None: the staged file is damaged or missing.
        self.source = source
        #: Why `source` is None; otherwise empty.
        self.problem = problem

    def device_names(self) -> list[str]:
        """Return the devices that the file contains."""
        return [] if self.source is None else list(self.source.devices)
