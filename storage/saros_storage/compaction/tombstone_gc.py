"""Find tombstones that can be dropped because no file contains points that they hide.

    a tombstone of rank 5, and files of rank
        3     merged by this job, which left out the hidden points      -> the tombstone is not needed
        6     outranks the tombstone                                    -> the tombstone is not needed
        4     not merged, may have hidden points                        -> the tombstone is kept

MemTables that are not flushed yet count as files. If a tombstone is dropped while its deletion is still in the log, a
replay may bring it back; it then hides nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from saros_storage.read.deletions import may_hold, reaches
from saros_storage.scan.snapshot import FileSource, Rank, Tombstone


class Waiting(Protocol):
    """A source that will become a file, such as a frozen MemTable."""

    @property
    def rank(self) -> Rank:
        """The rank that its file will have."""
        ...

    def device_names(self) -> Iterable[str]:
        """Return the devices that it contains."""
        ...


def removable_tombstones(
    tombstones: Iterable[Tombstone],
    files: Sequence[FileSource],
    merged: Sequence[FileSource],
    applied: Collection[Tombstone],
    waiting: Sequence[Waiting],
) -> list[Tombstone]:
    """Return the tombstones that hide nothing in any of the sources.

    `merged` are the output files of a job; the tombstones in `applied` hide nothing in them.
    """

    def is_needed(tombstone: Tombstone) -> bool:
        below = [file for file in files if file.rank <= tombstone.rank]
        if tombstone not in applied:
            below += [file for file in merged if file.rank <= tombstone.rank]
        if any(may_hold(file, tombstone.pattern, tombstone.time) for file in below):
            return True
        frozen = [memtable for memtable in waiting if memtable.rank <= tombstone.rank]
        return any(reaches(tombstone.pattern, d) for memtable in frozen for d in memtable.device_names())

    return [tombstone for tombstone in tombstones if not is_needed(tombstone)]
