"""A partition: the data of one database in one slice of time, as a list of files, MemTables and tombstones.

    write ─▶ active MemTable ── freeze ─▶ immutable ... ── flushed ─▶ files in the manifest

Versions only increase: a MemTable takes the next version when it is created, and the files written from it have the
same version. A deletion removes rows from the active MemTable immediately, and adds a tombstone that ranks below the
active MemTable and above all other data.

    rank      1      2      3        4         5
              file   file   memtable(flushing) active        new tombstone: rank 4

Until the manifest names a loaded file, the file is kept in the list of frozen MemTables, in order of age. A LOAD
freezes the active MemTable.

A partition that moves here from another region starts with an `underlay`: its older data, which is still read in the
other region and ranks below all data written here. When all files of this data have arrived, they replace the underlay
in one step (`partition_import`). Until these files arrive, no tombstone may be discarded.

`flushed` is the log index up to which this partition no longer needs the log. Pure: does no I/O. Partitions are
protected by the store's lock. Only `folder`, `key` and the manifest, which is an immutable value, may be read without
the lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from saros_storage.folder.manifest import FileEntry, Manifest
from saros_storage.mutation.staged import LoadedFile, StagedFile
from saros_storage.partition.memtable import MemTable
from saros_storage.read.deletions import hides, may_hold, reaches
from saros_storage.scan.activity import Activity
from saros_storage.scan.reading import TimeRange
from saros_storage.scan.snapshot import FileSource, MemorySource, PartitionSnapshot, Rank, Tombstone

#: Versions of generation g start at g * _VERSIONS, so that files of a partition that moves between regions never have
#: the same name.
_VERSIONS = 1 << 32
Key = tuple[str, int]


class Arrived(msgspec.Struct, frozen=True):
    """The content that a moved partition had in its former region.

    The files have been linked into the partition's folder.
    """

    files: Sequence[tuple[FileEntry, FileSource]]
    tombstones: tuple[Tombstone, ...] = ()
    set_aside: tuple[tuple[str, str], ...] = ()

    def added_to(self, manifest: Manifest, tombstones: Iterable[Tombstone]) -> Manifest:
        """Return the manifest with the arrived content and with `tombstones`, the tombstones of the live partition."""
        grown = manifest.with_files(tuple(entry for entry, _ in self.files), manifest.flushed)
        return replace(
            grown,
            tombstones=tuple(sorted({*tombstones, *self.tombstones}, key=lambda t: t.rank)),
            set_aside=(*manifest.set_aside, *self.set_aside),
            arrived=manifest.generation,
        )


class Partition:
    """The state of one partition: manifest, files, MemTables and tombstones."""

    def __init__(self, key: Key, folder: str, manifest: Manifest, files: Iterable[FileSource] = ()) -> None:
        #: Database and slice.
        self.key = key
        self.folder = folder
        self.manifest = manifest
        self.activity = Activity()
        #: Lowest rank first.
        self.files = _by_rank(files)
        self.active: MemTable | None = None
        #: Frozen MemTables that are not written to files yet, and loaded files that are not in the manifest yet, oldest
        #: first.
        self.immutable: list[MemTable | LoadedFile] = []
        self.tombstones = manifest.tombstones
        #: First and last log index of deletions that the manifest does not contain.
        self.unsaved: tuple[int, int] | None = None
        #: The partition's data in another region, until its files have arrived here.
        self.underlay: MemorySource | None = None
        #: True once the partition was removed from this store: nothing more may be written to its folder.
        self.dropped = False
        #: True if the manifest is on disk.
        self.saved = bool(manifest.files or manifest.flushed)
        #: Last time of each device in sequence files.
        self.last_flushed: dict[str, int] = {}
        self._version = max(manifest.version_max, manifest.generation * _VERSIONS)
        self._snapshot: PartitionSnapshot | None = None
        self._snapshot_index = -1
        #: See `PartitionSnapshot.basis`.
        self._basis = object()
        self._note_times(self.files)

    def _note_times(self, files: Iterable[FileSource]) -> None:
        for file in files:
            if file.sequence:
                for device, span in file.devices.items():
                    self.last_flushed[device] = max(span.end, self.last_flushed.get(device, span.end))

    # ------------------------------------------------------------------ writing

    def wants(self, index: int) -> bool:
        """Return whether to apply an entry: the files lack its data, and the partition is not newer than the entry."""
        return self.manifest.flushed < index >= self.manifest.created

    def memtable(self, index: int) -> MemTable:
        """Return the active MemTable; if it does not exist, create it for the entry at `index`."""
        if self.active is None:
            self._version += 1
            self.active = MemTable(self._rank(self._version), index)
            self._snapshot = None
        return self.active

    def _rank(self, version: int) -> Rank:
        return Rank(self.manifest.generation, version)

    def freeze(self, index: int) -> MemTable | None:
        """Make the active MemTable, if it exists, immutable and return it; it contains all entries up to `index`."""
        memtable = self.active
        if memtable is not None:
            memtable.freeze(index)
            self.immutable.append(memtable)
            self.active = None
            self._changed()
        return memtable

    def load(self, staged: StagedFile, source: FileSource | None, problem: str, index: int) -> None:
        """Add a loaded file, which outranks all data now in the partition; all data written later outranks the file."""
        self.freeze(index - 1)
        self._version += 1
        rank = self._rank(self._version)
        ranked = None if source is None else replace(source, rank=rank)
        self.immutable.append(LoadedFile(rank, index, staged, ranked, problem))
        self._changed()

    def delete(self, patterns: Iterable[str], time: TimeRange, index: int) -> None:
        """Hide the points in `time` of all series that match a pattern."""
        rank = self._rank(self._version - (self.active is not None))
        for pattern in patterns:
            if self._has_below(pattern, time):
                self._add_tombstone(Tombstone(pattern, time, rank), index)
            if self.active is not None:
                devices = [d for d in self.active.device_names() if reaches(pattern, d)]
                self.active.delete(partial(hides, pattern), devices, time)
                self._snapshot = None

    def _has_below(self, pattern: str, time: TimeRange) -> bool:
        """Return whether a file or an immutable MemTable may contain points of matching series in `time`."""
        if self.underlay is not None or any(may_hold(file, pattern, time) for file in self.files):
            return True
        return any(reaches(pattern, device) for memtable in self.immutable for device in memtable.device_names())

    def _add_tombstone(self, tombstone: Tombstone, index: int) -> None:
        same = [t for t in self.tombstones if (t.pattern, t.time) == (tombstone.pattern, tombstone.time)]
        rank = max((t.rank for t in same), default=tombstone.rank)
        others = [t for t in self.tombstones if t not in same]
        others.append(replace(tombstone, rank=max(rank, tombstone.rank)))
        self.tombstones = tuple(sorted(others, key=lambda t: t.rank))
        self.unsaved = (index, index) if self.unsaved is None else (self.unsaved[0], index)
        self._changed()

    # ------------------------------------------------------------------ flushing

    def install(self, manifest: Manifest, added: Iterable[FileSource], flushed: MemTable | LoadedFile | None) -> None:
        """Adopt a manifest that is now on disk and includes `flushed`, the first of `immutable`."""
        added = tuple(added)
        self.manifest = manifest
        self.saved = True
        self.files = _by_rank((*self.files, *added))
        self._note_times(added)
        if flushed is not None:
            assert self.immutable[0] is flushed
            del self.immutable[0]
        if self.unsaved is not None:
            first, last = self.unsaved
            self.unsaved = None if last <= manifest.flushed else (max(first, manifest.flushed + 1), last)
        self._changed()

    def compacted(
        self, manifest: Manifest, gone: Collection[str], added: Iterable[FileSource], needless: Collection[Tombstone]
    ) -> None:
        """Adopt a manifest in which `added` replace the files at the paths `gone`, from which they were merged."""
        added = tuple(added)
        self.manifest = manifest
        left = (f for f in self.files if f.path not in gone)
        self.files = _by_rank((*left, *added))
        if needless:
            self.tombstones = tuple(t for t in self.tombstones if t not in needless)
        self._note_times(added)
        self._changed()

    def _changed(self) -> None:
        """Invalidate the cached snapshot and its basis.

        Call this after every change, unless only the active MemTable, or the source of the partition's older data, has
        changed.
        """
        self._snapshot = None
        self._basis = object()

    def begin_with(self, underlay: MemorySource) -> None:
        """Read the partition's older data from its former region until that data arrives."""
        self.underlay = underlay
        self._snapshot = None

    def arrive(self, arrived: Arrived) -> None:
        """Adopt the arrived data, which the manifest on disk already contains."""
        self.manifest = arrived.added_to(self.manifest, self.manifest.tombstones)
        self.tombstones = tuple(sorted({*self.tombstones, *arrived.tombstones}, key=lambda t: t.rank))
        self.underlay = None
        self.saved = True
        files = tuple(source for _, source in arrived.files)
        self.files = _by_rank((*self.files, *files))
        self._note_times(files)
        self._snapshot = None

    def set_aside(self, manifest: Manifest, path: str) -> None:
        """Adopt a manifest from which the file at `path` was removed."""
        self.manifest = manifest
        self.files = tuple(f for f in self.files if f.path != path)
        self._changed()

    @property
    def is_whole(self) -> bool:
        """True if all data of the partition is here."""
        return self.underlay is None and self.manifest.arrived >= self.manifest.generation

    @property
    def first_unflushed(self) -> int | None:
        """The first log index that the partition still needs, or None."""
        known = [m.first_index for m in (*self.immutable[:1], *([self.active] if self.active else []))]
        if self.unsaved is not None:
            known.append(self.unsaved[0])
        return min(known, default=None)

    @property
    def loaded(self) -> list[LoadedFile]:
        """Loaded files that are not in the manifest yet."""
        return [item for item in self.immutable if isinstance(item, LoadedFile)]

    @property
    def memory_bytes(self) -> int:
        """Size of all MemTables in bytes."""
        return sum(m.bytes for m in self.immutable) + (self.active.bytes if self.active else 0)

    # ------------------------------------------------------------------ reading

    def snapshot(self) -> PartitionSnapshot | None:
        """Return a snapshot for readers, which is the same object as long as nothing changes.

        Returns None if the partition is empty.
        """
        index = -1 if self.active is None else self.active.last_index
        if self._snapshot is None or self._snapshot_index != index:
            memtables: list[MemorySource] = [m.snapshot() for m in self.immutable if isinstance(m, MemTable)]
            if self.underlay is not None:
                memtables.insert(0, self.underlay)
            has_active = self.active is not None and not self.active.empty
            if self.active is not None and has_active:
                memtables.append(self.active.snapshot())
            files = (*self.files, *(loaded.source for loaded in self.loaded if loaded.source is not None))
            self._snapshot = PartitionSnapshot(
                *self.key, files, tuple(memtables), self.tombstones, self._basis, has_active, self.activity
            )
            self._snapshot_index = index
        return self._snapshot if self._snapshot.files or self._snapshot.memtables else None

    def validate(self) -> None:
        """Assert the invariants across fields."""
        ranks = [m.rank for m in self.immutable] + ([self.active.rank] if self.active else [])
        assert ranks == sorted(set(ranks))
        assert all(f.rank < r for f in self.files for r in ranks)
        assert all(t.rank.version <= self._version for t in self.tombstones)
        assert [f.rank for f in self.files] == [f.rank for f in self.manifest.files]


def _by_rank(files: Iterable[FileSource]) -> tuple[FileSource, ...]:
    """Sort files by rank, lowest first; for files of one flush, the sequence file comes first."""
    return tuple(sorted(files, key=lambda f: (f.rank, not f.sequence)))
