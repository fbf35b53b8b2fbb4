"""Replace the sources of a job by its output files.

    temporary files, durable     written by `merging`, without any lock
    folders held                 no flush, drop or snapshot in the meantime
        a check                  the partition exists, the sources are live, and they may still be merged
        names, resources         as in a flush; a crash up to here leaves files that the next start removes
        manifest                 old files out, new files in: the commit point
        partition                under the region's lock: later views see the new files
        sources are removed      open views have them open and can still read them

Called by the compactor's thread.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from saros_storage.base.clock import Clock
from saros_storage.compaction.merging import MergedFile
from saros_storage.compaction.picker import Pick, is_closed
from saros_storage.compaction.tombstone_gc import removable_tombstones
from saros_storage.flush.contended_lock import ContendedLock
from saros_storage.folder.layout import MANIFEST, RESOURCE, TEMPORARY, kind_folder, write_synced
from saros_storage.folder.lazy_file import LazyFile, Report
from saros_storage.folder.manifest import FileEntry, Manifest, encode_manifest
from saros_storage.folder.resource import encode_resource
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk
from saros_storage.partition.flush_files import Storing
from saros_storage.partition.partition import Partition
from saros_storage.partition.partition_files import save_manifest
from saros_storage.partition.partitions import Partitions
from saros_storage.scan.snapshot import FileSource, Tombstone, overlap
from saros_storage.schema import TtlRules
from saros_storage.schema.ttl import Expiry


class CompactionContext(msgspec.Struct, frozen=True, eq=False):
    """The parts of a region that compaction uses."""

    options: StoreOptions
    disk: Disk
    clock: Clock
    partitions: Partitions
    #: The region's lock.
    lock: threading.Condition
    #: Held while a partition's folder is changed; taken before `lock`.
    folders: ContendedLock
    storing: Storing
    #: Makes all applied log entries durable.
    sync_log: Callable[[], None]
    report: Report
    #: Returns the TTL rules at the current time.
    expiry: Callable[[], Expiry]


class PartitionChanged(Exception):
    """Since the job began, the partition has changed in a way that makes the job's files useless."""


class Swap:
    """The replacement of one job's sources; used once."""

    def __init__(
        self,
        ground: CompactionContext,
        partition: Partition,
        pick: Pick,
        applied: Sequence[Tombstone],
        merged: Sequence[MergedFile],
        rules: TtlRules,
    ) -> None:
        """Create a swap; `applied` and `rules` are the tombstones and TTL rules that the job has applied."""
        self._ground = ground
        self._partition = partition
        self._pick = pick
        self._applied = applied
        self._merged = merged
        self._rules = rules
        self._gone = {file.path for file in pick.files}
        #: The files that have their final names already, and their manifest entries.
        self._new: list[tuple[FileEntry, FileSource]] = []

    def run(self) -> list[FileSource]:
        """Replace the sources; return the new files. Raises PartitionChanged, OSError, StorageError.

        After an error, the sources are still part of the partition. The new files are removed, unless the manifest on
        disk may name them.
        """
        with self._ground.folders:
            try:
                left = self._others()
                for merged in self._merged:
                    self._name(merged, left)
                self._ground.sync_log()
                needless_ones = self._save(left)
            except BaseException:
                self._remove_new()
                raise
            self._install(left, needless_ones)
            return [file for _, file in self._new]

    def _others(self) -> list[FileSource]:
        """Return the partition's files besides the sources. Raises PartitionChanged."""
        with self._ground.lock:
            files, dropped = self._partition.files, self._partition.dropped
        left = [file for file in files if file.path not in self._gone]
        if self._ground.partitions.schema.ttl is not self._rules:
            raise PartitionChanged  # points that the job left out may no longer be expired
        if dropped or len(left) + len(self._gone) != len(files) or not is_closed(self._pick.files, left):
            raise PartitionChanged
        return left

    def _name(self, merged: MergedFile, others: Sequence[FileSource]) -> None:
        """Move a file, with its resource, to its final name in the folder of its kind."""
        disk, summary, folder = self._ground.disk, merged.summary, self._partition.folder
        name = os.path.basename(merged.path).removesuffix(TEMPORARY)
        source = FileSource(
            self._pick.rank,
            True,
            os.path.join(folder, kind_folder(sequence=True), name),
            summary.size,
            summary.devices,
            LazyFile("", disk, self._ground.report),
        )
        if any(file.sequence and overlap(file, source) for file in others):
            source = replace(source, sequence=False, path=os.path.join(folder, kind_folder(sequence=False), name))
        source = replace(source, access=LazyFile(source.path, disk, self._ground.report))
        resource = encode_resource(summary.devices)
        entry = FileEntry(name, source.sequence, source.rank, summary.size, summary.crc32, zlib.crc32(resource))
        self._new.append((entry, source))
        disk.make_folder(os.path.dirname(source.path))
        write_synced(disk, source.path + RESOURCE, resource)
        disk.replace(merged.path, source.path)
        disk.sync_folder(os.path.dirname(source.path))

    def _remove_new(self) -> None:
        disk = self._ground.disk
        for merged in self._merged:
            disk.remove(merged.path)
        for _, file in self._new:
            disk.remove(file.path + RESOURCE + TEMPORARY)
            disk.remove(file.path + RESOURCE)
            disk.remove(file.path)

    def _save(self, others: Sequence[FileSource]) -> set[Tombstone]:
        """Replace the manifest; return the tombstones that it no longer contains."""
        ground, partition = self._ground, self._partition
        with ground.lock:
            old, dropped = partition.manifest, self._removable(others)
        try:
            save_manifest(ground.disk, partition.folder, self._manifest(old, dropped))
        except BaseException:
            if not self._is_saved(old):
                # The new manifest may be on disk now or later. Keep all files, since a start after a crash may find
                # either manifest.
                self._merged, self._new = (), []
            raise
        return dropped

    def _removable(self, others: Sequence[FileSource]) -> set[Tombstone]:
        """Return those tombstones of the partition that hide nothing once the new files are installed.

        Call under the lock.
        """
        merged, frozen = [file for _, file in self._new], tuple(self._partition.immutable)
        return set(removable_tombstones(self._partition.tombstones, others, merged, set(self._applied), frozen))

    def _manifest(self, current: Manifest, dropped: set[Tombstone]) -> Manifest:
        gone = {(os.path.basename(file.path), file.sequence) for file in self._pick.files}
        kept = tuple(t for t in current.tombstones if t not in dropped)
        return current.with_merged(gone, tuple(entry for entry, _ in self._new), kept)

    def _is_saved(self, manifest: Manifest) -> bool:
        path = os.path.join(self._partition.folder, MANIFEST)
        try:
            return bytes(self._ground.disk.map(path)) == encode_manifest(manifest)
        except OSError:
            return False

    def _install(self, others: Sequence[FileSource], dropped: set[Tombstone]) -> None:
        ground, partition = self._ground, self._partition
        with ground.lock:
            live = [file for file in partition.files if file.path in self._gone]
            # Start from the current manifest, which has changed if a file was found damaged in the meantime.
            manifest = self._manifest(partition.manifest, dropped)
            # A deletion after the manifest was saved may have added a tombstone that affects only the sources.
            needless_ones = dropped | self._removable(others)
            partition.compacted(manifest, self._gone, [file for _, file in self._new], needless_ones)
            ground.partitions.changed()
            ground.lock.notify_all()
        for file in live:
            ground.disk.remove(file.path)
            ground.disk.remove(file.path + RESOURCE)
