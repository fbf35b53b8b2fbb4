"""All partitions of a store.

Applying a log entry for the first time and replaying it later change the partitions in the same way.

    entry 7: schema changes, deletions, tablets  ->  schema tree, tombstones, MemTables        in this order
             loaded files                        ->  afterwards, by the caller, which has the disk (`load`)

A partition skips entries whose data is already in its files (`flushed`), and entries from before its creation. A replay
may therefore start at any entry, as long as it includes each entry that some partition still needs.

Pure: does no I/O. The store owns these objects, and its lock protects them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from saros_storage.base.errors import CorruptFile, UnsupportedFile
from saros_storage.base.paths import join_nodes, parent_of, split_path
from saros_storage.base.tablet import Tablet
from saros_storage.folder.manifest import Manifest
from saros_storage.mutation.mutation import Deletion, Mutation, PlacedTablet
from saros_storage.mutation.staged import StagedFile
from saros_storage.mutation.tablet_codec import FrameHead, decode_tablet
from saros_storage.partition.memtable import MemTable
from saros_storage.partition.partition import Partition
from saros_storage.scan.snapshot import Chosen, DeviceSpan, FileSource, MemorySource, PartitionSnapshot
from saros_storage.schema import DeleteDatabase, SchemaTree


class Partitions:
    """All partitions; each is identified by its database and its slice of time.

    `folder_of(database, slice)` returns the folder of a new partition.
    """

    def __init__(
        self, interval: int, schema: SchemaTree, schema_index: int, folder_of: Callable[[str, int], str]
    ) -> None:
        self._interval = interval
        self._folder_of = folder_of
        self._by_database: dict[str, dict[int, Partition]] = {}
        self._views: dict[str, tuple[PartitionSnapshot, ...]] | None = None
        self.schema = schema
        #: Log index of the last entry whose changes are in `schema`.
        self.schema_index = schema_index
        #: The log index of the last applied entry; during a replay, of the entry that the replay has reached.
        self.applied = schema_index
        #: Size of all MemTables in bytes, including frozen ones.
        self.memory_bytes = 0
        self._touched: dict[int, Partition] = {}

    def __iter__(self) -> Iterator[Partition]:
        for slices in self._by_database.values():
            yield from slices.values()

    def of_database(self, database: str) -> list[Partition]:
        """Return the partitions of a database."""
        return list(self._by_database.get(database, {}).values())

    def counts(self) -> list[tuple[str, int]]:
        """Return the number of partitions of each database that has partitions."""
        return [(database, len(slices)) for database, slices in self._by_database.items() if slices]

    def add(self, partition: Partition) -> None:
        """Add a partition that was found on disk."""
        database, number = partition.key
        self._by_database.setdefault(database, {})[number] = partition
        self.applied = max(self.applied, partition.manifest.flushed)

    def changed(self) -> None:
        """Invalidate the views after a change to some partition's files, MemTables or tombstones."""
        self._views = None

    def take_touched(self) -> list[Partition]:
        """Return the partitions to which rows were written since the last call."""
        touched = list(self._touched.values())
        self._touched.clear()
        return touched

    def views(self) -> dict[str, tuple[PartitionSnapshot, ...]]:
        """Return snapshots of all readable partitions: for each database, a list in order of slices."""
        if self._views is None:
            views = {}
            for database, slices in self._by_database.items():
                found = [slices[number].snapshot() for number in sorted(slices)]
                views[database] = tuple(s for s in found if s is not None)
            self._views = views
        return self._views

    # ------------------------------------------------------------------ entries

    def apply(self, index: int, mutation: Mutation, spared: Chosen) -> list[Partition]:
        """Apply an entry and return the partitions that it dropped.

        Drops and deletions do not affect partitions chosen by `spared`.
        """
        dropped = []
        for change in mutation.changes:
            if isinstance(change, DeleteDatabase):
                dropped += self._drop(change.path, index, spared)
        if mutation.changes and index > self.schema_index:
            self.schema.apply_all(mutation.changes)
            self.schema_index = index
        self.applied = index
        for deletion in mutation.deletions:
            self._delete(index, deletion, spared)
        if mutation.tablets:
            self._write(index, mutation.tablets)
        self.changed()
        return dropped

    def begin_with(self, database: str, number: int, generation: int, index: int, underlay: MemorySource) -> None:
        """Move a partition here at entry `index`; until its files arrive, its older data is read from `underlay`.

        Has no effect on a partition that was created after entry `index`, after a drop of the database: that partition
        has no data elsewhere.
        """
        slices = self._by_database.setdefault(database, {})
        partition = slices.get(number)
        if partition is None:
            manifest = Manifest(database, index, generation=generation)
            partition = slices[number] = Partition((database, number), self._folder_of(database, number), manifest)
        if partition.manifest.created <= index and partition.manifest.arrived < generation:
            partition.begin_with(underlay)
            self.changed()

    def release(self, chosen: Chosen, index: int) -> list[Partition]:
        """Remove the chosen partitions, which moved away at entry `index`; keep those created here after that entry."""
        found = [p for p in self if p.manifest.created < index and chosen(*p.key)]
        for partition in found:
            self._remove(partition)
        self.changed()
        return found

    def _remove(self, partition: Partition) -> None:
        database, number = partition.key
        partition.dropped = True
        self.memory_bytes -= partition.memory_bytes
        del self._by_database[database][number]
        if not self._by_database[database]:
            del self._by_database[database]

    def skip(self, index: int) -> None:
        """Skip an entry that has no effect on these partitions."""
        self.applied = index

    def _drop(self, database: str, index: int, spared: Chosen) -> list[Partition]:
        slices = self._by_database.get(database, {})
        dropped = [p for p in slices.values() if p.manifest.created < index and not spared(*p.key)]
        for partition in dropped:
            self._remove(partition)
        return dropped

    def _delete(self, index: int, deletion: Deletion, spared: Chosen) -> None:
        for partition in self:
            start = partition.key[1] * self._interval
            touched = deletion.time.touches(start, start + self._interval - 1)
            if touched and partition.wants(index) and not spared(*partition.key):
                partition.delete(deletion.patterns, deletion.time, index)

    def _write(self, index: int, tablets: Sequence[PlacedTablet]) -> None:
        """Write tablets to MemTables. Neighbouring tablets mostly belong to the same partition."""
        #: Maps the parent of a device and the depth of its database to the database; None if the device is the
        #: database.
        databases: dict[tuple[str, int], str | None] = {}
        key, partition = None, None
        for placed in tablets:
            frame = placed.tablet
            head, span = frame.head, frame.span
            place = parent_of(head.device), placed.depth
            if place not in databases:
                above = split_path(place[0])
                databases[place] = join_nodes(above[: placed.depth]) if len(above) >= placed.depth else None
            database = databases[place] or head.device
            first = span.start // self._interval
            if first != span.end // self._interval:
                self._write_to_several(index, database, placed)
                continue
            if key != (database, first):
                key, partition = (database, first), self._partition_to_write(database, first, index)
            if partition is not None:
                partition.activity.written += frame.rows * len(head.measurements)
                self.memory_bytes += self._memtable(partition, index, head).write(frame, index)

    def _write_to_several(self, index: int, database: str, placed: PlacedTablet) -> None:
        """Write a tablet whose rows belong to several partitions."""
        frame = placed.tablet
        tablet = decode_tablet(placed.frame)
        numbers = tablet.times // self._interval
        for number in sorted(set(numbers.tolist())):
            partition = self._partition_to_write(database, number, index)
            if partition is None:
                continue
            places = np.flatnonzero(numbers == number)
            partition.activity.written += len(places) * len(frame.head.measurements)
            times = tablet.times[places]
            rows = Tablet(
                tablet.device, tablet.measurements, times, tuple(c.take(places) for c in tablet.columns), tablet.aligned
            )
            span = DeviceSpan(int(times.min()), int(times.max()))
            memtable = self._memtable(partition, index, frame.head)
            self.memory_bytes += memtable.write_rows(frame.head, rows, index, span, ordered=frame.ordered)

    def load(self, index: int, staged: StagedFile, open_staged: Callable[[StagedFile], FileSource]) -> Partition | None:
        """Add a loaded file of the applied entry `index`.

        Return the file's partition, or None if the partition does not need the entry (see `Partition.wants`).
        """
        partition = self._partition_for(staged.database, staged.slice, index)
        if partition is None:
            return None
        source, problem = None, ""
        try:
            source = open_staged(staged)
        except (CorruptFile, UnsupportedFile) as error:
            problem = str(error)
        partition.load(staged, source, problem, index)
        self.changed()
        return partition

    def _partition_to_write(self, database: str, number: int, index: int) -> Partition | None:
        """Return the result of `_partition_for`; if it is a partition, the next `take_touched` will return it, too."""
        partition = self._partition_for(database, number, index)
        if partition is not None:
            self._touched[id(partition)] = partition
        return partition

    @staticmethod
    def _memtable(partition: Partition, index: int, head: FrameHead) -> MemTable:
        """Return the MemTable for rows of an entry.

        If the active MemTable has other types for the series of these rows, freeze it and create another.
        """
        memtable = partition.active
        if memtable is not None and memtable.takes(head):
            return memtable
        partition.freeze(index - 1)  # the type of a series has changed since its last write
        return partition.memtable(index)

    def _partition_for(self, database: str, number: int, index: int) -> Partition | None:
        """Return the partition, and create it if it does not exist.

        Returns None if the partition does not need the entry (see `Partition.wants`).
        """
        slices = self._by_database.setdefault(database, {})
        partition = slices.get(number)
        if partition is None:
            partition = slices[number] = Partition(
                (database, number), self._folder_of(database, number), Manifest(database, index)
            )
        return partition if partition.wants(index) else None
