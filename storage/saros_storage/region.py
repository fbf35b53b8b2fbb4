"""A region: the data and schema of one group on one node. A region applies entries that its owner has already logged.

    take_effect(index, mutation)   under the lock, in the log's order: schema tree, MemTables, tombstones
    view      snapshots of all partitions          immutable: later entries do not change them
    flush     write MemTables to files             in the background (`flusher`), or immediately on request

A `Store` is a region with its own log. In a cluster, a region is the state machine of a replica, and Raft is its log.
The region uses its log only through a `Journal`, to which it reports the entries that are no longer needed.

Thread-safe. Methods marked "under the lock" may be called only by the owner of the region, while the owner holds the
lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from saros_storage.base.clock import Clock, JumpGuard
from saros_storage.base.errors import CorruptFile, DiskFull, StorageError, StoreClosed, UnsupportedFile
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.checkpoint.checkpoint import Checkpoint, CheckpointPartition
from saros_storage.checkpoint.partition_import import link_arrived
from saros_storage.compaction.compactor import Compactor
from saros_storage.compaction.swap import CompactionContext
from saros_storage.flush.flusher import Flusher, Journal
from saros_storage.flush.pacer import Pacer
from saros_storage.folder.layout import RESOURCE, STAGING_FOLDER, TRASH_PREFIX, database_folder_name
from saros_storage.folder.lazy_file import LazyFile
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import FULL_ERRNOS, Disk
from saros_storage.loading.staging import Staging
from saros_storage.mutation.mutation import Mutation
from saros_storage.partition.partition import Key, Partition
from saros_storage.partition.partition_files import file_path, open_partition, save_manifests
from saros_storage.partition.partition_status import PartitionStatus, status_of
from saros_storage.partition.partitions import Partitions
from saros_storage.read.latest_cache import LatestCache
from saros_storage.read.view import LocalReadView
from saros_storage.scan.activity import PartitionActivity
from saros_storage.scan.snapshot import Chosen, MemorySource, PartitionSnapshot, nothing
from saros_storage.schema import SchemaTree, SetTtl, TtlRules
from saros_storage.schema.ttl import Expiry

_NO_RULES = TtlRules()


class StoreStatus(msgspec.Struct, frozen=True):
    """Figures about a store or a region; sizes are in bytes. `problems` are sentences for the administrator."""

    databases: int
    devices: int
    partitions: int
    files: int
    file_bytes: int
    memtable_bytes: int
    log_bytes: int
    views: int
    problems: tuple[str, ...]
    #: The number of files with late rows; such files usually overlap other files.
    unsequence_files: int = 0
    unsequence_file_bytes: int = 0
    #: The largest number of files in one partition.
    partition_files_max: int = 0
    #: The number of bytes that flushes have written since the start.
    flushed_bytes: int = 0


class Region:
    """The partitions and the schema of a group on this node, together with the flusher and the compaction."""

    def __init__(
        self,
        folder: str,
        options: StoreOptions,
        disk: Disk,
        clock: Clock,
        schema: SchemaTree,
        schema_index: int,
        cache: ChunkCache,
        compactor: Compactor | None = None,
        latest: LatestCache | None = None,
        pacer: Pacer | None = None,
    ) -> None:
        """Load the region in `folder`; `schema` includes all entries up to `schema_index`. Raises CorruptFile.

        compactor  compacts the region's files; None disables compaction
        latest     the cache for views; None if another object makes the views of this region
        pacer      slows down flushes that are not urgent; None disables pauses
        """
        self._folder = folder
        self._options = options
        self._disk = disk
        self._clock = clock
        self._removal_clock = JumpGuard(clock)
        self._cache = cache
        self._latest = latest
        self._compactor = compactor
        self._pacer = pacer or Pacer(0)
        #: Guards all state; notified after every flush and failure.
        self.lock = threading.Condition()
        self._views = 0
        self._closed = False
        #: True once the replay of the log has restored the TTL rules that were in effect before the start.
        self._rules_hold = False
        self.staging = Staging(folder, disk, self.report_corrupt)
        self.partitions = Partitions(options.time_partition_interval, schema, schema_index, self._partition_folder)
        self._load_partitions()

    def start(self, journal: Journal) -> None:
        """Start the flusher. Call this before the first entry takes effect."""
        self._journal = journal
        self._flusher = Flusher(
            self._options,
            self._disk,
            self._clock,
            self.partitions,
            journal,
            self.lock,
            self.report_corrupt,
            self._compact,
            self.staging,
            self._final_expiry,
            self._pacer,
        )
        self._ground = CompactionContext(
            self._options,
            self._disk,
            self._clock,
            self.partitions,
            self.lock,
            self._flusher.folders,
            self._flusher.storing,
            journal.sync_due,
            self.report_corrupt,
            self._final_expiry,
        )
        self._flusher.start()

    def enable_expiry(self) -> None:
        """Allow the removal of expired data. Call this once all entries from before the start have taken effect."""
        with self.lock:
            self._rules_hold = True
            self._flusher.expire_soon()

    def start_compacting(self) -> None:
        """Start compaction.

        Call this after `start`, and after all drops have been replayed, since replayed drops do not hold
        `flusher.folders`.
        """
        if self._compactor is not None:
            self._compactor.add(self._ground)

    def _compact(self, partition: Partition) -> None:
        if self._compactor is not None:
            self._compactor.schedule(self._ground, partition)

    def _partition_folder(self, database: str, number: int) -> str:
        return os.path.join(self._folder, database_folder_name(database), str(number))

    def _load_partitions(self) -> None:
        names = self._disk.list(self._folder)
        if any(name.startswith(TRASH_PREFIX) for name in names):
            # If the process was killed at this point, the renaming may not be durable. A power cut could then bring
            # back a partition of which only a part was removed.
            self._disk.sync_folder(self._folder)
        places = []
        for name in names:
            folder = os.path.join(self._folder, name)
            if name.startswith(TRASH_PREFIX):
                self._disk.remove_tree(folder)
            elif name != STAGING_FOLDER:
                places += [(folder, number) for number in self._disk.list(folder)]
        self._open_partitions(places)

    def _open_partitions(self, places: Iterable[tuple[str, str]]) -> None:
        """Open the partitions in these folders of databases.

        Move each partition whose folder has a name of an earlier version.
        """
        changed: set[str] = set()
        for parent, number in places:
            folder = os.path.join(parent, number)
            found = open_partition(self._disk, folder, int(number), self.report_corrupt, self._partition_folder)
            if found is not None:
                self.partitions.add(found)
                if found.folder != folder:
                    changed |= {parent, os.path.dirname(found.folder)}
        self._disk.sync_all(sorted(changed))
        for parent in sorted(changed):
            if not self._disk.list(parent):
                self._disk.remove_tree(parent)

    @property
    def schema(self) -> SchemaTree:
        """The schema, read-only."""
        return self.partitions.schema

    @property
    def options(self) -> StoreOptions:
        """The options that the region was opened with."""
        return self._options

    @property
    def closed(self) -> bool:
        """True once the region has begun to close."""
        return self._closed

    @property
    def flusher(self) -> Flusher:
        """The flusher; hold its `folders` lock to remove a partition's folder."""
        return self._flusher

    # ------------------------------------------------------------------ entries, under the lock

    def take_effect(self, index: int, mutation: Mutation, spared: Chosen = nothing) -> None:
        """Apply a checked entry; the entry's deletions and drops skip the `spared` partitions."""
        dropped = self.partitions.apply(index, mutation, spared)
        for staged in mutation.loads:
            self.staging.reserve_name(staged.name)
            loaded = self.partitions.load(index, staged, self.staging.open)
            if loaded is None:
                self.staging.discard([staged.name])
            else:
                self._flusher.add(loaded)
        if any(isinstance(change, SetTtl) for change in mutation.changes):
            self._flusher.expire_soon()
        if dropped:
            self._remove_dropped(dropped)

    def _remove_dropped(self, dropped: Sequence[Partition]) -> None:
        """Remove the folders of dropped partitions; open views can still read the files.

        Even if this fails, the deletion has taken effect. The log must keep the entry of the deletion until the folders
        are gone.
        """
        try:
            # The entry must be durable before files are removed. Otherwise a power cut could undo the deletion when
            # some of the files are gone.
            self._journal.sync_due()
            self._remove_folders(dropped)
        except (OSError, StorageError) as error:
            self._flusher.give_up(error)

    def sweep_staged(self) -> None:
        """Remove staged files that no LOAD needs. Call this once, after the log was replayed."""
        with self.lock:
            self.staging.sweep({loaded.staged.name for partition in self.partitions for loaded in partition.loaded})

    def freeze_large(self) -> None:
        """Freeze full MemTables, and also the largest MemTable if the total size of all MemTables is too large."""
        for partition in self.partitions.take_touched():
            active = partition.active
            if active is not None and active.bytes >= self._options.memtable_bytes_max:
                self._flusher.freeze(partition)
            elif partition.immutable and not self._flusher.is_waiting(partition):
                self._flusher.add(partition)  # an entry has frozen a MemTable
        if self.partitions.memory_bytes > self._options.memtables_total_bytes_max // 2:
            self._freeze_largest()

    def _freeze_largest(self) -> None:
        """Freeze the largest MemTable, unless a flush is already in progress."""
        largest = max(self.partitions, key=_active_bytes, default=None)
        if largest is not None and _active_bytes(largest) and not self._flusher.busy:
            self._flusher.freeze(largest)

    def flush_oldest(self, first: int) -> None:
        """Flush the partition that needs the oldest entry, `first`, of the log."""
        for partition in self.partitions:
            if partition.first_unflushed == first:
                self._flusher.freeze(partition)
                return

    def raise_problem(self) -> None:
        """Raise DiskFull or StorageError if flushing has stopped."""
        problem = self._flusher.problem
        if isinstance(problem, OSError) and problem.errno in FULL_ERRNOS:
            raise DiskFull(f"no space left to flush to {self._folder}; free some space to let writes continue")
        if problem is not None:
            raise StorageError(f"flushing to {self._folder} failed: {problem}; restart after checking the disk")

    # ------------------------------------------------------------------ partitions that move between groups

    def begin_with(self, database: str, number: int, generation: int, index: int, underlay: MemorySource) -> None:
        """Add a partition that moves here at entry `index`. Until its files arrive, `underlay` serves its older data.

        Under the lock.
        """
        self.partitions.begin_with(database, number, generation, index, underlay)

    def arrive(self, keys: Collection[Key], capture: Checkpoint, folder: str) -> None:
        """Install the files of `capture` in the partitions `keys`, which are moving here.

        The files are in `folder`, named by number. Idempotent: partitions that have been dropped in the meantime or are
        already installed are skipped. A partition that is not in the capture was empty. Raises CorruptFile, OSError,
        StoreClosed; in these cases no partition is installed.
        """
        with self._flusher.folders:
            with self.lock:
                self.check_open()
                coming = [p for p in self.partitions if p.key in keys and p.underlay is not None]
            self._journal.sync_due()  # the entries that added the partitions must be durable before the manifests
            linked = link_arrived(self._disk, coming, capture, folder, self.report_corrupt)
            arrived = list(zip(coming, linked, strict=True))
            with self.lock:
                manifests = {p.folder: came.added_to(p.manifest, p.manifest.tombstones) for p, came in arrived}
            save_manifests(self._disk, manifests)
            with self.lock:
                for partition, came in arrived:
                    partition.arrive(came)
                self.partitions.changed()
            for partition in coming:
                self._compact(partition)

    def release(self, chosen: Chosen, index: int) -> None:
        """Remove the chosen partitions, which moved away at entry `index`, unless they have moved back since.

        Under the lock and `flusher.folders`.
        """
        self._remove_folders(self.partitions.release(chosen, index))

    def _remove_folders(self, partitions: Iterable[Partition]) -> None:
        """Remove the folders of partitions with one sync per database, since later log entries wait for the removal."""
        trash: list[str] = []
        parents: dict[str, None] = {}
        for partition in partitions:
            self._keep_for_views(partition)
            for loaded in partition.loaded:
                self.staging.release(loaded)
            if self._disk.exists(partition.folder):
                parent = os.path.dirname(partition.folder)
                trash.append(_trash_of(parent, partition.key[1]))
                self._disk.remove_tree(trash[-1])
                self._disk.replace(partition.folder, trash[-1])
                parents[parent] = None
        for parent in parents:
            self._disk.sync_folder(parent)
        for path in trash:
            self._disk.remove_tree(path)

    def keep_for_views(self) -> None:
        """Open all files that views may still read. Call this before the region's folder is removed."""
        with self.lock:
            for partition in self.partitions:
                self._keep_for_views(partition)

    def _keep_for_views(self, partition: Partition) -> None:
        if self._views:
            for file in partition.files:
                assert isinstance(file.access, LazyFile)
                with suppress(CorruptFile, UnsupportedFile):  # queries that read the file report the error
                    file.access.open()

    # ------------------------------------------------------------------ memory, flushing

    def wait_for_memory(self) -> None:
        """Wait until the total size of all MemTables is within its limit.

        Raises DiskFull, StorageError if the wait might never end.
        """
        limit = self._options.memtables_total_bytes_max
        if self.partitions.memory_bytes <= limit:
            return
        with self.lock:
            while self.partitions.memory_bytes > limit:
                self.check_open()
                self.raise_problem()
                # If the flusher was busy when the last entry arrived and is idle now, nothing else would wake it.
                self._freeze_largest()
                self.lock.wait()

    def flush(self, databases: Sequence[str] | None = None, *, gently: bool = False) -> None:
        """Flush the MemTables (of these databases) to files, and wait until they are flushed.

        Also makes the entries of the log durable, since schema changes are not in a TsFile. `gently` makes the flusher
        pause between steps, which leaves resources for other work. Raises DiskFull, LogFailed.
        """
        with self.lock:
            self.check_open()
            self._flush(self._partitions_of(databases), gently=gently)
            self._journal.sync_due()

    def flush_chosen(self, chosen: Chosen, *, gently: bool = False) -> None:
        """Flush the MemTables of the chosen partitions, and wait until they are flushed. Raises DiskFull."""
        with self.lock:
            self.check_open()
            wanted = [p for p in self.partitions if p.first_unflushed is not None and chosen(*p.key)]
            self._flush(wanted, gently=gently)

    def _flush(self, wanted: Sequence[Partition], *, gently: bool) -> None:
        for partition in wanted:
            self._flusher.freeze(partition, gently=gently)
        # Do not wait for MemTables that are frozen later: if writes continue, this wait might never end.
        last = [partition.immutable[-1:] for partition in wanted]
        while any(
            self._flusher.is_waiting(p) and (not m or m[0] in p.immutable) for p, m in zip(wanted, last, strict=True)
        ):
            self.raise_problem()
            self.lock.wait()
            self.check_open()

    @property
    def is_loading(self) -> bool:
        """True if a loaded file has not been moved to its partition yet. Under the lock."""
        return any(partition.loaded for partition in self.partitions)

    def capture(self, chosen: Chosen) -> Checkpoint:
        """Return a checkpoint of the files of the chosen partitions; see `checkpoint.checkpoint`.

        The caller has flushed the partitions, holds the lock during this call, and holds `flusher.folders` until the
        files are linked. Raises CorruptFile if a file is missing.
        """
        self.check_open()
        taken = [p for p in self.partitions if chosen(*p.key)]
        needed = [first for p in taken if (first := p.first_unflushed) is not None]
        applied = self.partitions.applied
        return Checkpoint(
            min(needed) - 1 if needed else applied,
            applied,
            self.partitions.schema_index,
            self.schema.dump(),
            tuple(self._captured(p) for p in taken if p.saved),
        )

    def _captured(self, partition: Partition) -> CheckpointPartition:
        resources = [file_path(partition.folder, entry) + RESOURCE for entry in partition.manifest.files]
        try:
            sizes = tuple(map(self._disk.size, resources))
        except FileNotFoundError as error:
            raise CorruptFile(str(error.filename), 0, "missing") from error
        return CheckpointPartition(partition.key[1], partition.manifest, sizes, partition.folder)

    def _partitions_of(self, databases: Sequence[str] | None) -> list[Partition]:
        if databases is None:
            return list(self.partitions)
        return [p for name in databases for p in self.partitions.of_database(name)]

    def merge(self, databases: Sequence[str] | None, *, full: bool, stopped: Callable[[], bool]) -> None:
        """Merge the files (of these databases) into as few as possible, as `Compactor.merge` does."""
        with self.lock:
            self.check_open()
            chosen = self._partitions_of(databases)
        if chosen and self._compactor is not None:
            self._compactor.merge(self._ground, chosen, full=full, stopped=stopped)

    # ------------------------------------------------------------------ reading

    def view(self) -> LocalReadView:
        """Return a snapshot of the region; the caller closes it."""
        return LocalReadView(self.pin(), self._cache, self.unpin, self.expiry(), latest=self._latest)

    def expiry(self) -> Expiry:
        """Return the TTL rules with the current time."""
        return Expiry(self.schema.ttl, self._clock.now_ns(), self._options.time_unit)

    def _final_expiry(self) -> Expiry:
        """Return the TTL rules by which expired data may be removed from disk.

        Rules that a pending entry of the log might still extend are not included. The rules are evaluated at a time
        that ignores forward jumps of the clock, because the clock may be set back.
        """
        expiry = replace(self.expiry(), now_ns=self._removal_clock.now_ns())
        return expiry if self._rules_hold else replace(expiry, rules=_NO_RULES)

    def expire(self) -> None:
        """Remove the files whose points are all expired, and wait until they are removed.

        The flusher also removes such files periodically. After a StorageError, the next call removes the remaining
        files.
        """
        try:
            self._flusher.expire()
        except OSError as error:
            raise StorageError(f"expired files of {self._folder} cannot be removed: {error}") from error

    def pin(self) -> Mapping[str, Sequence[PartitionSnapshot]]:
        """Pin and return the current snapshots of each database's partitions; the caller must call `unpin`."""
        with self.lock:
            self.check_open()
            self._views += 1
            return self.partitions.views()

    def unpin(self) -> None:
        """End a `pin`."""
        with self.lock:
            self._views -= 1

    def report_corrupt(self, path: str, error: CorruptFile) -> None:
        """Hide a damaged file from all later views; it is moved to `corrupt/` in the background."""
        with self.lock:
            for partition in self.partitions:
                for entry, file in zip(partition.manifest.files, partition.files, strict=True):
                    if file.path == path:
                        manifest = partition.manifest.without_file(
                            entry.name, sequence=entry.sequence, reason=str(error)
                        )
                        partition.set_aside(manifest, path)
                        self.partitions.changed()
                        self._flusher.set_aside(partition, path)
                        return

    # ------------------------------------------------------------------ status, closing

    def status(self, log_bytes: int) -> StoreStatus:
        """Return the current figures; `log_bytes` is the size of the log."""
        with self.lock:
            partitions = list(self.partitions)
            problems = [f"{name} was set aside: {why}" for p in partitions for name, why in p.manifest.set_aside]
            if self._flusher.problem is not None:
                problems.append(f"flushing stopped: {self._flusher.problem}")
            late = [f.size for p in partitions for f in p.files if not f.sequence]
            return StoreStatus(
                databases=len(self.schema.databases()),
                devices=self.schema.device_count,
                partitions=len(partitions),
                files=sum(len(p.files) for p in partitions),
                file_bytes=sum(f.size for p in partitions for f in p.files),
                memtable_bytes=self.partitions.memory_bytes,
                log_bytes=log_bytes,
                views=self._views,
                problems=tuple(problems),
                unsequence_files=len(late),
                unsequence_file_bytes=sum(late),
                partition_files_max=max((len(p.files) for p in partitions), default=0),
                flushed_bytes=self._flusher.bytes_written,
            )

    def partition_counts(self) -> list[tuple[str, int]]:
        """Return each database that has partitions in this region, and the number of these partitions."""
        with self.lock:
            return self.partitions.counts()

    def activity(self) -> list[PartitionActivity]:
        """Return the cumulative activity of all partitions."""
        with self.lock:
            return [
                PartitionActivity(*p.key, p.activity.written, p.activity.read, sum(file.size for file in p.files))
                for p in self.partitions
            ]

    def partition_status(self) -> list[PartitionStatus]:
        """Return the status of all partitions and their files."""
        interval = self._options.time_partition_interval
        with self.lock:
            self.check_open()
            return [status_of(partition, interval) for partition in self.partitions]

    def blocked_by(self) -> str | None:
        """Return the reason why writes are currently refused; None if they are accepted."""
        if self._closed:
            return "the store is closed"
        return None if self._flusher.problem is None else f"flushing stopped: {self._flusher.problem}"

    def refuse_all(self) -> bool:
        """Refuse new work: the first step of closing. Return False if this was done before."""
        with self.lock:
            if self._closed:
                return False
            self._closed = True
            self.lock.notify_all()
            return True

    def stop(self) -> None:
        """Stop the flusher and compaction: the second step of closing. Data in MemTables stays in the log."""
        if self._compactor is not None:
            self._compactor.remove(self._ground)
        self._flusher.stop()

    def check_open(self) -> None:
        """Raise StoreClosed if the region has begun to close."""
        if self._closed:
            raise StoreClosed("the store is closed")


def _trash_of(parent: str, number: int) -> str:
    """Return the name under which a partition's folder is removed; the next start completes the removal."""
    return os.path.join(os.path.dirname(parent), f"{TRASH_PREFIX}{os.path.basename(parent)}-{number}")


def _active_bytes(partition: Partition) -> int:
    return 0 if partition.active is None else partition.active.bytes
