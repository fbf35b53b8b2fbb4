"""Files that a LOAD staged for one partition: `StagedFile` in log entries, `LoadedFile` in a partition's queue.

    staged folder   17.../1.tsfile  1.tsfile.resource    names are never reused; removed once the manifest has the file

A `LoadedFile` waits in the queue among the frozen MemTables. Meanwhile it is read like any other file; its rank follows
from its place in the queue. Values.
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
    #: The file as a source of reads, whose rank is not set yet; None if the file has not been examined yet.
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
    """A staged file whose LOAD was applied, and which has a place in its partition's queue, like a frozen MemTable."""

    #: The file takes up no memory for MemTables.
    bytes = 0

    def __init__(self, rank: Rank, index: int, staged: StagedFile, source: FileSource | None, problem: str) -> None:
        self.rank = rank
        #: Log index of its LOAD. The log is needed from this index on until the file is in the manifest. Together with
        #: earlier items of the queue, the file contains all of the partition's data up to this index.
        self.first_index = index
        self.frozen_at = index
        self.staged = staged
        #: The file for readers; None if the staged file is damaged or missing.
        self.source = source
        #: The reason why `source` is None; otherwise empty.
        self.problem = problem

    def device_names(self) -> list[str]:
        """Return the devices that the file contains."""
        return [] if self.source is None else list(self.source.devices)
