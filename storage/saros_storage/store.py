"""The store of a single node without a cluster: a region with its own log.

    write / delete / change_schema
        check, append to the log, queue            under the lock
        wait until the log has the entry           without the lock; one fsync for all waiting writers
        take effect, in the log's order            under the lock (`Region.take_effect`)

A write therefore becomes visible only once it is in the log, and an entry that the log refused because the disk is full
never takes effect. A schema change holds the lock while it waits for the log. Later writes are therefore checked
against the changed tree.

Writers block (and do not fail) while MemTables hold more than `memtables_total_bytes_max`, unless the disk is full.
Thread-safe. After a crash, `open` recovers every acknowledged write, as far as the option `durability` promises.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from msgspec.structs import replace

from saros_storage.base.clock import Clock
from saros_storage.base.errors import CorruptFile, DiskFull, LogFailed, StorageError, UserMistake
from saros_storage.base.paths import parse_pattern
from saros_storage.base.tablet import MultiTablet, Tablet
from saros_storage.base.write_request import UNNUMBERED, WriteRequest
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.checkpoint.checkpoint_set import CheckpointSet
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.compaction.compactor import CompactionCounters, Compactor
from saros_storage.folder.layout import ARCHIVE_FOLDER, GROUP_FOLDER, LOG_FOLDER, SCHEMA_FILE, SNAPSHOTS_FOLDER
from saros_storage.folder.node_file import check_node_file
from saros_storage.folder.schema_file import load_schema, save_schema
from saros_storage.folder.store_options import StoreOptions, parse_durability
from saros_storage.io.disk import FULL_ERRNOS, Disk
from saros_storage.io.folder_lock import FolderLock
from saros_storage.io.memory_disk import MemoryDisk
from saros_storage.layers import ViewLayer, WriteGuard, change_locks, layer_problems, layered_hold, layered_view
from saros_storage.loading.loader import FileLoad, LoadOptions
from saros_storage.log import Durability, LogOptions, LogSyncer, Record, SegmentedLog
from saros_storage.log.archive import LogArchive
from saros_storage.log.clock_mark import CLOCK_MARK, MARK_NS, encode_mark
from saros_storage.mutation.mutation import MUTATION, Deletion, Mutation, decode_mutation, encode_mutation
from saros_storage.mutation.tablet_codec import TabletFrame
from saros_storage.mutation.tablet_validation import TabletValidator, frames_of
from saros_storage.partition.partition_status import PartitionStatus
from saros_storage.read.latest_cache import LatestCache
from saros_storage.read.view import LocalReadView
from saros_storage.region import Region, StoreStatus
from saros_storage.scan.read_point import HERE, ReadHorizon, ReadPoint, ReadScope, Sources
from saros_storage.scan.reading import ReadView, TimeRange
from saros_storage.scan.snapshot import PartitionSnapshot, everything
from saros_storage.schema import DeleteDatabase, DeleteSeries, SchemaChange, SchemaTree

#: The group number of a store's entries in the log.
_GROUP = 0


class QueuedWrite:
    """A write in the queue of the log."""

    __slots__ = ("_store", "_ticket")

    def __init__(self, store: Store, ticket: tuple[int, int]) -> None:
        self._store = store
        self._ticket = ticket

    def wait(self, seconds: float) -> bool:  # noqa: ARG002 (the log's fsync holds up all writers alike)
        """Wait until the write has taken effect. Return False if the log refused it."""
        try:
            self._store.await_ticket(self._ticket)
        except StorageError:
            return False
        return True


class Store:
    """A database in a folder of this process: a region and its log. Created by `open`."""

    def __init__(self, folder: str, options: StoreOptions, disk: Disk, clock: Clock, owner: FolderLock | None) -> None:
        """Load the folder; `owner` is its lock, or None if the disk is private. Raises as `open` does."""
        self._folder = folder
        self._options = options
        self._disk = disk
        self._clock = clock
        self._owner = owner
        #: See `layers`.
        self.write_guards: Sequence[WriteGuard] = ()
        self.view_layers: Sequence[ViewLayer] = ()
        #: Entries in the log or in its queue that have not taken effect yet.
        self._pending: deque[tuple[tuple[int, int], Mutation]] = deque()
        self._fitting = TabletValidator()
        check_node_file(folder, options, disk)
        schema, schema_index = load_schema(disk, os.path.join(folder, SCHEMA_FILE))
        self._schema_saved = schema_index
        #: The time of the last clock mark in the log.
        self._marked_ns = 0
        #: Checkpoints for backups.
        self.shelf = CheckpointRegistry(os.path.join(folder, SNAPSHOTS_FOLDER), disk, clock)
        self._archive = LogArchive(os.path.join(folder, ARCHIVE_FOLDER), disk, options.log_archive_bytes)
        groups = os.path.join(folder, GROUP_FOLDER)
        self._cache = ChunkCache(options.cache_bytes)
        self._compactor = Compactor(options, clock)
        self._latest = LatestCache(options.latest_cache_bytes)
        self._region = Region(
            groups, options, disk, clock, schema, schema_index, self._cache, self._compactor, self._latest
        )
        self._lock = self._region.lock
        mode, interval_ms = parse_durability(options.durability)
        log_options = LogOptions(mode, options.segment_bytes)
        last = self._region.partitions.applied
        self._log, records = SegmentedLog.open(os.path.join(folder, LOG_FOLDER), disk, log_options, last + 1)
        if self._log.next_index <= last:
            raise CorruptFile(os.path.join(folder, LOG_FOLDER), 0, f"the log ends before entry {last}")
        self._replay(records)
        self._syncer = LogSyncer(self._log.sync_due, interval_ms) if mode is Durability.INTERVAL else None

    @classmethod
    def open(cls, folder: str, options: StoreOptions, disk: Disk, clock: Clock) -> Self:
        """Open the store in `folder`, or create it; the process owns the folder until `close`.

        Raises FolderInUse, CorruptFile (log, schema or a manifest), StorageError 2015 (newer format), 2004 (options
        that differ from the folder's).
        """
        disk.make_folder(folder)
        owner = FolderLock.acquire(folder)
        try:
            return cls(folder, options, disk, clock, owner)
        except BaseException:
            owner.release()
            raise

    @classmethod
    def open_snapshot(cls, folder: str, options: StoreOptions, disk: MemoryDisk, clock: Clock) -> Self:
        """Open a store in a snapshot of a folder, with the same recovery as `open`. Its writes stay in memory.

        Raises as `open` does, except FolderInUse.
        """
        return cls(folder, options, disk, clock, None)

    def _replay(self, records: Iterable[Record]) -> None:
        self._region.start(self)
        with self._lock:
            for record in records:
                if record.kind == MUTATION:
                    self._region.take_effect(record.index, decode_mutation(record.payload))
                    self._region.freeze_large()
        self._region.enable_expiry()
        self._region.sweep_staged()
        self._region.start_compacting()

    # ------------------------------------------------------------------ writing

    @property
    def schema(self) -> SchemaTree:
        """The schema, read-only."""
        return self._region.schema

    @property
    def options(self) -> StoreOptions:
        """The options that the store was opened with."""
        return self._options

    def change_schema(
        self,
        changes: Sequence[SchemaChange],
        *,
        request: WriteRequest = UNNUMBERED,  # noqa: ARG002 (one log: repetitions are found before they get here)
    ) -> None:
        """Apply changes, all or none. For deletions, use `delete_series`. Raises UserMistake."""
        with change_locks(self.write_guards):
            for guard in self.write_guards:
                guard.check_changes(changes)
            self.change_schema_unguarded(changes)

    def change_schema_unguarded(self, changes: Sequence[SchemaChange]) -> None:
        """Apply changes as `change_schema` does, but without the guards, for the package that has set a guard."""
        with self._lock:
            self._region.check_open()
            changes = self.schema.numbered(changes)
            if len(changes) == 1:
                self.schema.check(changes[0])
            else:
                self.schema.dry_run(changes)
            self._commit(Mutation(changes))

    def write(
        self,
        tablets: Sequence[Tablet | MultiTablet],
        creates: Sequence[SchemaChange] = (),
        *,
        request: WriteRequest = UNNUMBERED,  # noqa: ARG002 (one log: repetitions are found before they get here)
    ) -> None:
        """Make the schema changes that the batches need, then write all batches or none. Later views contain them.

        Raises UserMistake (unknown series 508, other type 507, time out of range 2007), DiskFull, LogFailed.
        """
        frames = frames_of(tablets, joined=True)
        if not frames and not creates:
            return
        self._region.wait_for_memory()
        if creates:
            self._create_and_write(frames, creates)
            return
        with self._lock:
            ticket = self._enqueue(frames)
        self.await_ticket(ticket)

    def _create_and_write(self, frames: Sequence[TabletFrame], creates: Sequence[SchemaChange]) -> None:
        with change_locks(self.write_guards), self._lock:
            self._check_rows(frames)
            for guard in self.write_guards:
                guard.check_changes(creates)
            after = self.schema.dry_run(creates, [frame.head.device for frame in frames])
            self._commit(Mutation(creates, (), self._fitting.place(frames, after)))

    def _check_rows(self, frames: Sequence[TabletFrame]) -> None:
        self._region.check_open()
        for guard in self.write_guards:
            guard.check_rows([frame.head.device for frame in frames])

    def _enqueue(self, frames: Sequence[TabletFrame]) -> tuple[int, int]:
        """Check rows of existing series, and append them to the log's queue. Under the lock. Raises StorageError."""
        self._check_rows(frames)
        return self._append(Mutation((), (), self._fitting.place(frames, self.schema)))

    def numbered(self, request: WriteRequest) -> WriteRequest:
        """Return the request unchanged, because a single log needs no sequence numbers. See `Database.numbered`."""
        return request

    def submit_writes(self, writes: Sequence[tuple[Tablet, WriteRequest]]) -> list[QueuedWrite | None]:
        """Queue writes individually. See `Database.submit_writes`.

        The result is None for a write that `write` would refuse, or that cannot be written now.
        """
        frames = [_frame_of(tablet) for tablet, _ in writes]
        try:
            self._region.wait_for_memory()
        except StorageError:
            return [None] * len(frames)
        with self._lock:
            return [None if frame is None else self._submit(frame) for frame in frames]

    def _submit(self, frame: TabletFrame) -> QueuedWrite | None:
        try:
            return QueuedWrite(self, self._enqueue([frame]))
        except StorageError:
            return None

    def delete(
        self,
        patterns: Sequence[str],
        time: TimeRange,
        *,
        request: WriteRequest = UNNUMBERED,  # noqa: ARG002 (one log: repetitions are found before they get here)
    ) -> None:
        """Delete the points in `time` of all series that match a pattern; later writes are kept."""
        for guard in self.write_guards:
            guard.check_deletion(patterns)
        for pattern in patterns:
            parse_pattern(pattern)
        if patterns and not time.empty:
            self._commit(Mutation(deletions=[Deletion(tuple(patterns), time)]))

    def delete_series(
        self,
        pattern: str,
        *,
        request: WriteRequest = UNNUMBERED,  # noqa: ARG002 (one log: repetitions are found before they get here)
    ) -> int:
        """Delete the series that match a pattern with their points; return the number of series."""
        with change_locks(self.write_guards), self._lock:
            for guard in self.write_guards:
                guard.check_deletion([pattern])
            count = len(self.schema.match_series(parse_pattern(pattern)))
            if count:
                self._commit(Mutation([DeleteSeries(pattern)], [Deletion((pattern,), TimeRange())]))
            return count

    def delete_database(
        self,
        path: str,
        *,
        request: WriteRequest = UNNUMBERED,  # noqa: ARG002 (one log: repetitions are found before they get here)
    ) -> None:
        """Delete a database and everything in it. Raises UserMistake 504."""
        with change_locks(self.write_guards), self._region.flusher.folders, self._lock:
            for guard in self.write_guards:
                guard.check_deletion([f"{path}.**"])
            change = DeleteDatabase(path)
            self.schema.check(change)
            self._commit(Mutation([change]))

    def expire(self) -> None:
        """See `Region.expire`."""
        self._region.expire()

    def load(
        self,
        path: str,
        options: LoadOptions,
        *,
        request: WriteRequest = UNNUMBERED,  # noqa: ARG002 (one log: repetitions are found before they get here)
    ) -> int:
        """Load all or none of a TsFile's points as if they were written now; return the number of files made from it.

        When this returns, the points are durable, regardless of the option `durability`. Raises UserMistake (2051 for
        the file; 507, 509, 511, 2007 for its content), CorruptFile, UnsupportedFile, DiskFull.
        """
        with self._lock:
            self._region.check_open()
        with change_locks(self.write_guards):
            for guard in self.write_guards:
                guard.check_file(path)
            return self._load(path, options)

    def _load(self, path: str, options: LoadOptions) -> int:
        with _disk_errors(path):
            load = FileLoad(path, options, self._region.staging, self._disk, self._options, self._clock.now_ns())
            try:
                load.stage(self.schema)
                load.make_durable()
            except BaseException:
                load.cancel()
                raise
        try:
            self._log_load(load)
        except LogFailed:
            raise  # the next start finds out whether the entry is in the log, so the staged files stay
        except StorageError:
            load.cancel()
            raise
        if not load.staged:
            load.cancel()
        self._log.sync_due()
        return len(load.staged)

    def _log_load(self, load: FileLoad) -> None:
        with self._lock:
            if not load.fits(self.schema):
                raise UserMistake("databases were created or dropped during the LOAD: try again", code=2021)
            changes = load.changes(self.schema)
            self.schema.dry_run(changes)
            if changes or load.staged:
                self._commit(Mutation(changes, loads=load.staged))

    # ------------------------------------------------------------------ entries

    def _commit(self, mutation: Mutation) -> None:
        """Log and apply a checked entry, holding the lock throughout; see the module docstring."""
        with self._lock:
            self._region.check_open()
            ticket = self._append(mutation)
            try:
                self._log.wait(ticket)
            except StorageError:
                self._forget(ticket)
                raise
            self._take_effect(ticket)

    def _append(self, mutation: Mutation) -> tuple[int, int]:
        now_ns = self._clock.now_ns()
        if not 0 <= now_ns - self._marked_ns < MARK_NS:
            self._log.append(_GROUP, CLOCK_MARK, [encode_mark(now_ns)])
            self._marked_ns = now_ns
        ticket = self._log.append(_GROUP, MUTATION, encode_mutation(mutation))
        self._pending.append((ticket, mutation))
        return ticket

    def await_ticket(self, ticket: tuple[int, int]) -> None:
        """Wait until a queued entry has taken effect. Raises DiskFull, LogFailed."""
        try:
            self._log.wait(ticket)
        except StorageError:
            with self._lock:
                self._forget(ticket)
            raise
        with self._lock:
            self._take_effect(ticket)

    def _forget(self, ticket: tuple[int, int]) -> None:
        self._pending = deque(item for item in self._pending if item[0] != ticket)

    def _take_effect(self, ticket: tuple[int, int]) -> None:
        """Apply all pending entries up to the entry of `ticket`, which is in the log."""
        index, round_ = ticket
        while self._pending:
            (number, its_round), mutation = self._pending[0]
            # The first pending entries may be entries that the log discarded because the disk was full. The numbers of
            # such entries may have been assigned to other entries, or may be greater than `index`.
            is_lost = its_round != round_ and self._log.is_lost((number, its_round))
            if not is_lost and number > index:
                break
            self._pending.popleft()
            if not is_lost:
                self._region.take_effect(number, mutation)
        self._region.freeze_large()

    # ------------------------------------------------------------------ the log, for the region's flusher

    def sync_due(self) -> None:
        """See `flusher.Journal`."""
        self._log.sync_due()

    def release(self, first: int) -> None:
        """See `flusher.Journal`: remove segments that are no longer needed, after saving the schema."""
        with self._lock:
            segments = self._log.segments()
            if len(segments) * self._options.segment_bytes > self._options.log_bytes_max:
                self._region.flush_oldest(first)
            if len(segments) < 2 or segments[1][1] > first:
                return
            index = self._region.partitions.schema_index
            dump = self.schema.dump() if index > self._schema_saved else None
        if dump is not None:
            # Without this sync, a power cut could leave a schema that includes entries which the log has lost.
            self._log.sync_due()
            path = os.path.join(self._folder, SCHEMA_FILE)
            self._disk.make_folder(os.path.dirname(path))
            save_schema(self._disk, path, dump, index)
            self._schema_saved = index
        self._archive.keep(segments, first)
        self._log.cut(first)
        self.shelf.expire()

    # ------------------------------------------------------------------ flushing, reading, closing

    def flush(self, databases: Sequence[str] | None = None) -> None:
        """See `Region.flush`."""
        self._region.flush(databases)

    def merge(
        self,
        databases: Sequence[str] | None = None,
        *,
        full: bool = False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Merge the files of these databases into as few as possible.

        Returns when this is done, or when `stopped` returns True. If `full`, also rewrites files that contain
        deleted points. Raises DiskFull, StoreClosed.
        """
        self._region.merge(databases, full=full, stopped=stopped)

    def create_checkpoint(self, since: int | None = None) -> CheckpointSet:
        """Create a checkpoint of the whole store for a backup, together with the log that follows it.

        The checkpoint always includes the last record of the log. If `since` is given, it also includes the log from
        this record on, as far as the log still exists. Raises DiskFull, CorruptFile.
        """
        while True:
            self._region.flush_chosen(everything)
            frozen = self._checkpoint_flushed(since)
            if frozen is not None:
                return frozen

    def _checkpoint_flushed(self, since: int | None) -> CheckpointSet | None:
        """Create a checkpoint of the flushed store, or return None if a LOAD has interfered.

        The captured log would then include the entry of the LOAD, but not its file.
        """
        with self._region.flusher.folders:
            with self._lock:
                if self._region.is_loading:
                    return None
                taken = self._region.capture(everything)
            first = min(taken.index + 1, taken.reached if since is None else since)
            id_ = self.shelf.put(taken, self._segments(first, taken.reached), first)
        options = self._options
        capture = self.shelf.capture(id_)
        unit = options.time_unit.suffix
        return CheckpointSet(unit, options.time_partition_interval, True, capture.schema, (id_,), (capture,))

    def _segments(self, first: int, last: int) -> list[tuple[str, int]]:
        """Return the segments with records from `first` to `last`, from the log and from the archive for backups."""
        live = self._log.segments()
        numbers = {number for _, number in live}  # a segment that is being moved to the archive may be in both
        found = [*(segment for segment in self._archive.segments() if segment[1] not in numbers), *live]
        ends = [*(number for _, number in found[1:]), last + 2][: len(found)]  # empty for an empty log
        return [s for s, end in zip(found, ends, strict=True) if end > first and s[1] <= last]

    def read_point(
        self,
        consistency: str,  # noqa: ARG002 (one replica is always current)
        horizon: ReadHorizon | None = None,  # noqa: ARG002
        deadline_ns: int | None = None,  # noqa: ARG002
    ) -> ReadPoint:
        """Return the current read point, since a single replica is always current. See `Database.read_point`."""
        return HERE

    def catch_up(self, point: ReadPoint, scope: ReadScope) -> bool:  # noqa: ARG002
        """Return False: a single replica never waits for others. See `Database.catch_up`."""
        return False

    def finish_schema_read(self, point: ReadPoint) -> None:
        """Do nothing: all readers see the same schema. See `Database.finish_schema_read`."""

    def view(self, point: ReadPoint = HERE, sources: Sources = None) -> ReadView:  # noqa: ARG002
        """Return a snapshot of the store; the caller closes it."""
        return layered_view(self.view_layers, self._region.view)

    def hold(self, point: ReadPoint = HERE) -> ReadView:  # noqa: ARG002
        """Return a snapshot for many statements; every view is such a snapshot. See `Database.hold`."""
        return layered_hold(self.view_layers, self._region.view)

    def view_of(self, partitions: Mapping[str, Sequence[PartitionSnapshot]], scope: Hashable) -> ReadView:
        """Return a view of other partitions, with the store's caches and TTL. `scope`: see `LocalReadView`."""
        expiry = self._region.expiry()
        return LocalReadView(partitions, self._cache, _nothing, expiry, latest=self._latest, scope=scope)

    def status(self) -> StoreStatus:
        """Return the current figures."""
        found = self._region.status(self._log.size_bytes)
        problem = self._compactor.problem
        problems = (*found.problems, *(() if problem is None else (problem,)), *layer_problems(self.view_layers))
        return replace(found, problems=problems)

    @property
    def compaction(self) -> CompactionCounters:
        """Compaction counters since the store was opened."""
        return self._compactor.counters

    @property
    def latest(self) -> LatestCache:
        """The cache of latest points."""
        return self._latest

    def set_options(self, options: StoreOptions) -> None:
        """Use the options of compaction in `options` from the next job on; other options do not change."""
        self._compactor.set_options(options)

    def clear_caches(self) -> None:
        """See `Database.clear_caches`."""
        self._cache.clear()
        self._latest.clear()

    def partitions(self) -> list[PartitionStatus]:
        """Return the status of all partitions and their files."""
        return self._region.partition_status()

    def blocked_by(self) -> str | None:
        """Return the reason why writes are currently refused, or None."""
        return self._log.blocked_by() or self._region.blocked_by()

    def close(self) -> None:
        """Close the store; unflushed data stays in the log. Idempotent."""
        if not self._region.refuse_all():
            return
        if self._syncer is not None:
            self._syncer.stop()
        self._region.stop()
        self._compactor.stop()
        try:
            self._log.close()
        finally:
            if self._owner is not None:
                self._owner.release()


def _nothing() -> None:
    """Do nothing when a view of other partitions closes, since files that it has opened stay readable until then."""


@contextmanager
def _disk_errors(path: str) -> Iterator[None]:
    """Translate disk errors that occur while a file is loaded."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_ERRNOS:
            raise DiskFull(f"no space left to load {path}") from error
        raise StorageError(f"{path} cannot be loaded: {error}") from error


def _frame_of(tablet: Tablet) -> TabletFrame | None:
    """Return the tablet's frame; None if the tablet has no rows, or if `write` would refuse the tablet."""
    try:
        frames = frames_of([tablet], joined=True)
    except UserMistake:
        return None
    return frames[0] if frames else None
