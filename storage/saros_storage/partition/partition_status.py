"""Rows of SHOW PARTITIONS, FILES and DISK_USAGE: the current files of a partition. Values."""

from __future__ import annotations

import msgspec

from saros_storage.mutation.staged import LoadedFile
from saros_storage.partition.partition import Partition
from saros_storage.scan.snapshot import FileSource


class FileStatus(msgspec.Struct, frozen=True):
    """A live file, and the time span that covers all its devices.

    A `staged` file was loaded, but is not in the manifest yet.
    """

    name: str
    sequence: bool
    staged: bool
    version: int
    bytes: int
    devices: int
    start: int
    end: int


class PartitionStatus(msgspec.Struct, frozen=True):
    """The status of a partition, which covers the times [start, end); sizes are in bytes.

    `set_aside` gives each damaged file's name and the reason.
    `region` is the region that contains the partition: 1 if there is only one region.
    """

    database: str
    slice: int
    start: int
    end: int
    files: tuple[FileStatus, ...]
    memtable_bytes: int
    tombstones: int
    set_aside: tuple[tuple[str, str], ...]
    region: int = 1

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)


def status_of(partition: Partition, interval: int) -> PartitionStatus:
    """Return the current status; call under the region's lock."""
    database, number = partition.key
    files = [_file(file.path.rpartition("/")[2], file) for file in partition.files]
    staged = [(loaded, loaded.source) for loaded in partition.loaded]
    files += [_staged(loaded, source) for loaded, source in staged if source is not None]
    return PartitionStatus(
        database,
        number,
        number * interval,
        (number + 1) * interval,
        tuple(files),
        partition.memory_bytes,
        len(partition.tombstones),
        partition.manifest.set_aside,
    )


def _staged(loaded: LoadedFile, source: FileSource) -> FileStatus:
    return _file(loaded.staged.name, source, staged=True)


def _file(name: str, source: FileSource, *, staged: bool = False) -> FileStatus:
    spans = source.devices.values()
    start, end = min(s.start for s in spans), max(s.end for s in spans)
    return FileStatus(name, source.sequence, staged, source.rank.version, source.size, len(spans), start, end)
