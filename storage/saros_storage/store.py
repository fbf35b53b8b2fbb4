"""The store of one node: what was written stays, and every reader sees it as it was at one moment.

    write / delete / change_schema
        check, append to the log, queue            under the lock
        wait until the log has it                  without the lock; one fsync for all who wait
        take effect, in the log's order            under the lock: schema tree, MemTables, tombstones
    view      snapshots of all partitions          a reader's picture, unchanged by what comes later
    flush     MemTables become files               in the background (`flusher`), or at once when asked for

So nothing is visible that the log could still lose, and an entry that a full disk refused never was. What changes the
schema keeps the lock while it waits, so that later writes are checked against the tree as it will be.

Writers wait (and never fail) while MemTables hold more than `memtables_total_bytes_max`, unless the disk is full.
Thread-safe. After a crash `open` finds everything that was acknowledged, by the durability that the options promise.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from saros_storage.chunk_cache import ChunkCache
from saros_storage.clock import Clock
from saros_storage.disk import FULL_ERRNOS, Disk
from saros_storage.errors import CorruptFile, DiskFull, StorageError, StoreClosed, UnsupportedFile, UserMistake
from saros_storage.flusher import Flusher
from saros_storage.folder_lock import FolderLock
from saros_storage.layout import GROUP_FOLDER, LOG_FOLDER, SCHEMA_FILE, TRASH_PREFIX, database_folder_name
from saros_storage.log import Durability, LogOptions, Record, SegmentedLog
from saros_storage.mutation import MUTATION, Deletion, Mutation, Placed, decode_mutation, encode_mutation
from saros_storage.node_file import check_node_file
from saros_storage.opened_file import OpenedFile
from saros_storage.partition import Partition
from saros_storage.partition_files import open_partition
from saros_storage.partitions import Partitions
from saros_storage.paths import parse_pattern, split_path
from saros_storage.reading import TimeRange
from saros_storage.schema import DeleteDatabase, DeleteSeries, DeviceSchema, SchemaChange, SchemaTree
from saros_storage.schema_file import load_schema
from saros_storage.store_options import StoreOptions, parse_durability
from saros_storage.tablet import Tablet
from saros_storage.tablet_codec import FrameHead, TabletFrame, encode_tablet
from saros_storage.types import TIME_MAX, TIME_MIN
from saros_storage.view import LocalReadView

#: The group of a store's entries in the log: always 0 outside a cluster.
_GROUP = 0
#: Shapes of tablets whose fit is remembered.
_FITTING_MAX = 50_000


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What a store holds; sizes in bytes. `problems` are sentences for whoever looks after it."""

    databases: int
    devices: int
    partitions: int
    files: int
    file_bytes: int
    memtable_bytes: int
    log_bytes: int
    views: int
    problems: tuple[str, ...]


class Store:
    """See the module. Made by `open`."""

    def __init__(self, folder: str, options: StoreOptions, disk: Disk, clock: Clock, owner: FolderLock) -> None:
        """Load everything. Raises what `open` says."""
        self._folder = folder
        self._options = options
        self._disk = disk
        self._owner = owner
        self._lock = threading.Condition()
        #: Entries that are in the log's queue or in the log, and have not taken effect.
        self._pending: deque[tuple[tuple[int, int], Mutation]] = deque()
        #: By id of a tablet's shape: the device it was found to fit, the shape, the depth of the database.
        self._fitting: dict[int, tuple[DeviceSchema, FrameHead, int]] = {}
        self._cache = ChunkCache(options.cache_bytes)
        self._views = 0
        self._closed = False
        check_node_file(folder, options, disk)
        schema, schema_index = load_schema(disk, os.path.join(folder, SCHEMA_FILE))
        self._partitions = Partitions(options.time_partition_interval, schema, schema_index, self._partition_folder)
        self._load_partitions()
        mode, interval_ms = parse_durability(options.durability)
        log_options = LogOptions(mode, options.segment_bytes)
        last = self._partitions.applied
        self._log, records = SegmentedLog.open(os.path.join(folder, LOG_FOLDER), disk, log_options, last + 1)
        if self._log.next_index <= last:
            raise CorruptFile(os.path.join(folder, LOG_FOLDER), 0, f"the log ends before entry {last}")
        self._flusher = Flusher(
            folder, options, disk, clock, self._partitions, self._log, self._lock, self.report_corrupt
        )
        self._replay(records)
        self._flusher.start()
        self._syncer = _Syncer(self._log, interval_ms) if mode is Durability.INTERVAL else None

    @staticmethod
    def open(folder: str, options: StoreOptions, disk: Disk, clock: Clock) -> Store:
        """The store in `folder`, made if it is new; the process owns the folder until `close`.

        Raises FolderInUse, CorruptFile (log, schema or a manifest), StorageError 2015 (newer format), 2004 (options
        that differ from the folder's).
        """
        disk.make_folder(folder)
        owner = FolderLock.acquire(folder)
        try:
            return Store(folder, options, disk, clock, owner)
        except BaseException:
            owner.release()
            raise

    # ------------------------------------------------------------------ opening

    def _partition_folder(self, database: str, number: int) -> str:
        return os.path.join(self._folder, GROUP_FOLDER, database_folder_name(database), str(number))

    def _load_partitions(self) -> None:
        root = os.path.join(self._folder, GROUP_FOLDER)
        for name in self._disk.list(root):
            folder = os.path.join(root, name)
            if name.startswith(TRASH_PREFIX):
                self._disk.remove_tree(folder)
                continue
            for number in self._disk.list(folder):
                found = open_partition(self._disk, os.path.join(folder, number), int(number), self.report_corrupt)
                if found is not None:
                    self._partitions.add(found)

    def _replay(self, records: Iterable[Record]) -> None:
        with self._lock:
            for record in records:
                if record.kind == MUTATION:
                    for partition in self._partitions.apply(record.index, decode_mutation(record.payload)):
                        self._remove_folder(partition)
                    self._freeze_large()

    # ------------------------------------------------------------------ writing

    @property
    def schema(self) -> SchemaTree:
        """The schema; look, do not change."""
        return self._partitions.schema

    @property
    def options(self) -> StoreOptions:
        """As the store was opened."""
        return self._options

    def change_schema(self, changes: Sequence[SchemaChange]) -> None:
        """Carry out changes, all or none; not for deletions (see `delete_series`). Raises UserMistake."""
        with self._lock:
            self._check_open()
            if len(changes) == 1:
                self.schema.check(changes[0])
            else:
                self.schema.rehearse(changes)
            self._commit(Mutation(changes))

    def write(self, tablets: Sequence[Tablet], creates: Sequence[SchemaChange] = ()) -> None:
        """Write batches, all or none, after the schema changes that they need. Views taken afterwards show them.

        Raises UserMistake (unknown series 508, other type 507, time out of range 2007), DiskFull, LogFailed.
        """
        frames = [TabletFrame(encode_tablet(tablet)) for tablet in tablets if tablet.rows]
        for frame in frames:
            if frame.span.start <= TIME_MIN or frame.span.end >= TIME_MAX:
                raise UserMistake(f"time {frame.span.start} of {frame.head.device} is out of range", code=2007)
        if not frames and not creates:
            return
        self._wait_for_memory()
        with self._lock:
            self._check_open()
            if creates:
                after = self.schema.rehearse(creates, [frame.head.device for frame in frames])
                self._commit(Mutation(creates, (), self._place(frames, after)))
                return
            ticket = self._append(Mutation((), (), self._place(frames, self.schema)))
        self._await(ticket)

    def _place(self, frames: Sequence[TabletFrame], schema: SchemaTree) -> list[Placed]:
        """Check that the tablets fit the schema, and find their databases."""
        placed = []
        for frame in frames:
            head = frame.head
            device = schema.device(head.device)
            fits = self._fitting.get(id(head))
            if fits is None or fits[0] is not device or fits[1] is not head:
                device = _check(device, head)
                if len(self._fitting) >= _FITTING_MAX:
                    self._fitting.clear()
                fits = self._fitting[id(head)] = (device, head, len(split_path(device.database)))
            placed.append(Placed(fits[2], frame.frame, frame))
        return placed

    def delete(self, patterns: Sequence[str], time: TimeRange) -> None:
        """Delete the points in `time` of all series that a pattern matches; what is written later stays."""
        for pattern in patterns:
            parse_pattern(pattern)
        if patterns and not time.empty:
            self._commit(Mutation(deletions=[Deletion(tuple(patterns), time)]))

    def delete_series(self, pattern: str) -> int:
        """Delete series and their points; answers how many series there were."""
        with self._lock:
            count = len(self.schema.match_series(parse_pattern(pattern)))
            if count:
                self._commit(Mutation([DeleteSeries(pattern)], [Deletion((pattern,), TimeRange())]))
            return count

    def delete_database(self, path: str) -> None:
        """Delete a database with all in it. Raises UserMistake 504."""
        with self._flusher.folders, self._lock:
            change = DeleteDatabase(path)
            self.schema.check(change)
            self._commit(Mutation([change]))

    # ------------------------------------------------------------------ entries

    def _commit(self, mutation: Mutation) -> None:
        """Log an entry that was checked and carry it out, with the lock held all the time; see the module."""
        with self._lock:
            self._check_open()
            ticket = self._append(mutation)
            try:
                self._log.wait(ticket)
            except StorageError:
                self._forget(ticket)
                raise
            self._take_effect(ticket)

    def _append(self, mutation: Mutation) -> tuple[int, int]:
        ticket = self._log.append(_GROUP, MUTATION, encode_mutation(mutation))
        self._pending.append((ticket, mutation))
        return ticket

    def _await(self, ticket: tuple[int, int]) -> None:
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
        """Carry out all entries up to one that the log has."""
        index, round_ = ticket
        while self._pending and self._pending[0][0][0] <= index:
            (number, its_round), mutation = self._pending.popleft()
            if its_round != round_ and self._log.is_lost((number, its_round)):
                continue
            for partition in self._partitions.apply(number, mutation):
                self._remove_folder(partition)
        self._freeze_large()

    def _freeze_large(self) -> None:
        """Freeze MemTables that are full, and the largest one if all together hold too much."""
        for partition in self._partitions.take_touched():
            active = partition.active
            if active is not None and active.bytes >= self._options.memtable_bytes_max:
                self._flusher.freeze(partition)
        if self._partitions.memory_bytes > self._options.memtables_total_bytes_max // 2 and not self._flusher.busy:
            largest = max(self._partitions, key=_active_bytes)
            if _active_bytes(largest):
                self._flusher.freeze(largest)

    def _wait_for_memory(self) -> None:
        limit = self._options.memtables_total_bytes_max
        if self._partitions.memory_bytes <= limit:
            return
        with self._lock:
            while self._partitions.memory_bytes > limit:
                self._check_open()
                self._raise_problem()
                self._lock.wait()

    def _raise_problem(self) -> None:
        problem = self._flusher.problem
        if isinstance(problem, OSError) and problem.errno in FULL_ERRNOS:
            raise DiskFull(f"no space left to flush to {self._folder}; free some, writes then go on")
        if problem is not None:
            raise StorageError(f"flushing to {self._folder} failed: {problem}; restart after checking the disk")

    def _remove_folder(self, partition: Partition) -> None:
        """Take a dropped partition's folder away; open views keep its files."""
        if self._views:
            for file in partition.files:
                assert isinstance(file.access, OpenedFile)
                with suppress(CorruptFile, UnsupportedFile):  # whoever reads it will be told
                    file.access.open()
        if self._disk.exists(partition.folder):
            parent = os.path.dirname(partition.folder)
            trash = os.path.join(
                os.path.dirname(parent), f"{TRASH_PREFIX}{os.path.basename(parent)}-{partition.key[1]}"
            )
            self._disk.remove_tree(trash)
            self._disk.replace(partition.folder, trash)
            self._disk.sync_folder(parent)
            self._disk.remove_tree(trash)

    # ------------------------------------------------------------------ flushing, reading, closing

    def flush(self, databases: Sequence[str] | None = None) -> None:
        """Put all that is in memory (of these databases) into files, and wait for it. Raises DiskFull."""
        with self._lock:
            self._check_open()
            if databases is None:
                chosen = list(self._partitions)
            else:
                chosen = [p for name in databases for p in self._partitions.of_database(name)]
            for partition in chosen:
                self._flusher.freeze(partition)
            while any(self._flusher.is_waiting(p) for p in chosen):
                self._raise_problem()
                self._lock.wait()
                self._check_open()

    def view(self) -> LocalReadView:
        """A picture of the store; close it."""
        with self._lock:
            self._check_open()
            self._views += 1
            return LocalReadView(self._partitions.views(), self._cache, self._release)

    def _release(self) -> None:
        with self._lock:
            self._views -= 1

    def report_corrupt(self, path: str, error: CorruptFile) -> None:
        """Take a damaged file out of all later views; it is moved to `corrupt/` in the background."""
        with self._lock:
            for partition in self._partitions:
                for entry, file in zip(partition.manifest.files, partition.files, strict=True):
                    if file.path == path:
                        manifest = partition.manifest.without_file(
                            entry.name, sequence=entry.sequence, reason=str(error)
                        )
                        partition.set_aside(manifest, path)
                        self._partitions.changed()
                        self._flusher.set_aside(partition, path)
                        return

    def status(self) -> StoreStatus:
        """Figures of now."""
        with self._lock:
            partitions = list(self._partitions)
            problems = [f"{name} was set aside: {why}" for p in partitions for name, why in p.manifest.set_aside]
            if self._flusher.problem is not None:
                problems.append(f"flushing does not go on: {self._flusher.problem}")
            return StoreStatus(
                databases=len(self.schema.databases()),
                devices=self.schema.device_count,
                partitions=len(partitions),
                files=sum(len(p.files) for p in partitions),
                file_bytes=sum(f.size for p in partitions for f in p.files),
                memtable_bytes=self._partitions.memory_bytes,
                log_bytes=sum(self._disk.size(path) for path, _ in self._log.segments()),
                views=self._views,
                problems=tuple(problems),
            )

    def blocked_by(self) -> str | None:
        """Why writes are refused at the moment, or None."""
        if self._closed:
            return "the store is closed"
        if self._log.failure is not None:
            return f"the log failed: {self._log.failure}"
        return None if self._flusher.problem is None else f"flushing does not go on: {self._flusher.problem}"

    def close(self) -> None:
        """End; what is in memory stays in the log. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._lock.notify_all()
        if self._syncer is not None:
            self._syncer.stop()
        self._flusher.stop()
        try:
            self._log.close()
        finally:
            self._owner.release()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed")


def _check(device: DeviceSchema | None, head: FrameHead) -> DeviceSchema:
    """The device that tablets of this shape go to. Raises UserMistake if they do not fit it."""
    if device is None:
        raise UserMistake(f"Path [{head.device}] does not exist", code=508)
    if device.aligned != head.aligned:
        kind = "aligned" if device.aligned else "not aligned"
        raise UserMistake(f"device {head.device} is {kind}: write to it so", code=511)
    for measurement, type_ in zip(head.measurements, head.types, strict=True):
        found = device.series.get(measurement)
        if found is None:
            raise UserMistake(f"Path [{head.device}.{measurement}] does not exist", code=508)
        if found.type is not type_:
            raise UserMistake(f"{head.device}.{measurement} is {found.type.name}, not {type_.name}", code=507)
    return device


def _active_bytes(partition: Partition) -> int:
    return 0 if partition.active is None else partition.active.bytes


class _Syncer:
    """Fsyncs the log every so many milliseconds."""

    def __init__(self, log: SegmentedLog, interval_ms: int) -> None:
        self._log = log
        self._seconds = interval_ms / 1_000
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saros-log-sync", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                self._log.sync_due()
            except StorageError:
                return  # the log has failed and says so to every writer

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join()
