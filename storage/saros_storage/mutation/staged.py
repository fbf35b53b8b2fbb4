"""A file that a LOAD staged for one partition: as its log entry names it, and in its partition's queue.

    staged folder   17.../1.tsfile  1.tsfile.resource    names never given twice; removed when the manifest has the file

A `LoadedFile` waits among the frozen MemTables. Meanwhile it is read like a file, with the rank of its place. Values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from saros_storage.scan.snapshot import FileSource, Rank


@dataclass(frozen=True, slots=True)
class StagedFile:
    """`name` is its path within the staging folder; sizes and checksums are the file's and its resource's."""

    database: str
    slice: int
    name: str
    size: int
    crc32: int
    resource_crc32: int
    #: As it is read where it lies (the rank is still to be given); None: nobody looked yet.
    known: FileSource | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> list[object]:
        """As JSON takes it."""
        return [self.database, self.slice, self.name, self.size, self.crc32, self.resource_crc32]

    @staticmethod
    def from_json(words: list[object]) -> StagedFile:
        """The inverse. Raises ValueError, TypeError."""
        database, number, name, *sums = words
        size, crc32, resource_crc32 = (int(str(part)) for part in sums)
        return StagedFile(str(database), int(str(number)), str(name), size, crc32, resource_crc32)


class LoadedFile:
    """A staged file that has taken effect: it stands in its partition's queue as a frozen MemTable does."""

    #: What it takes of the MemTables' memory.
    bytes = 0

    def __init__(self, rank: Rank, index: int, staged: StagedFile, source: FileSource | None, problem: str) -> None:
        self.rank = rank
        #: The log index of its LOAD: what it holds back in the log, and up to where the partition is complete with it.
        self.first_index = index
        self.frozen_at = index
        self.staged = staged
        #: None: the staged file is damaged or gone.
        self.source = source
        #: Why it is not there, or empty.
        self.problem = problem

    def device_names(self) -> list[str]:
        """Devices it holds something of."""
        return [] if self.source is None else list(self.source.devices)
