"""The thread that flushes frozen MemTables to files, saves manifests, and tells the log which entries it may discard.

    waiting partitions --flush each frozen MemTable, oldest first--> files, manifests --> install under the lock
                       --adopt each loaded file in its turn--------->
                       --save tombstones, files set aside--------->        manifests
    then `journal.release(first)`: entries before the first one that some partition still needs are in files
    periodically, when idle: files whose points are all expired leave their manifests (`ttl`); compaction is notified
                             of other expired data, and rewrites files with little live data

Before a manifest says `flushed: n`, the log is fsynced up to n. Otherwise, with durability `os`, a power loss could cut
off the log before entry n. New entries would get the lost indexes, and a replay would skip these entries.

A *gentle* flush can wait: its files are for other nodes, and no writer waits for its memory. It yields to all other
flushes, and pauses between two series as long as the node's `Pacer` requires, until something is urgent: see
`_is_urgent`.

Small MemTables of several partitions are flushed together, so that a few calls make a thousand files durable. If these
files were synced one by one, the syncs would take longer than the rest of the flush.

If the disk is full, the flusher records the problem (`problem`), writers that would wait for memory get DiskFull, and
the flush is retried every second. If the files are already written, the retry starts at the manifest, since the
manifest may already name them. Any other failure is also recorded, but ends flushing permanently. The log then keeps
all entries until the next start.

The lock is the region's. The flusher holds `folders` while it works in partition folders, so that no folder is removed
in the meantime.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Protocol

import msgspec
from msgspec.structs import replace

from saros_storage.base.clock import Clock
from saros_storage.base.errors import CorruptFile, StorageError, UnsupportedFile
from saros_storage.base.gc_control import reduced_gc
from saros_storage.base.types import DEFAULT_COMPRESSOR, DEFAULT_ENCODING, TIME_MIN, Compressor, DataType, Encoding
from saros_storage.flush.contended_lock import ContendedLock
from saros_storage.flush.file_ingest import adopt
from saros_storage.flush.pacer import Pacer
from saros_storage.folder.layout import RESOURCE, FileName
from saros_storage.folder.lazy_file import LazyFile, Report
from saros_storage.folder.manifest import Manifest
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import FULL_ERRNOS, Disk
from saros_storage.loading.staging import Staging
from saros_storage.mutation.staged import LoadedFile
from saros_storage.partition.flush_files import FileFlush, WrittenFile, finish, remove
from saros_storage.partition.memtable import MemTable
from saros_storage.partition.partition import Partition
from saros_storage.partition.partition_files import move_aside, save_manifest, save_manifests
from saros_storage.partition.partitions import Partitions
from saros_storage.scan.snapshot import FileSource
from saros_storage.schema import Deadband, SeriesSchema, stored_encoding
from saros_storage.schema.ttl import Expiry
from saros_storage.tsfile.encoding_selection import EncodingChoices

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
#: The interval between checks for expired files; there are such checks only if there are TTL rules.
_EXPIRY_SECONDS = 60.0
#: Limits of one batch: the number of partitions that are saved together, and the total bytes of their MemTables.
_TOGETHER_MAX, _TOGETHER_BYTES_MAX = 256, 8 << 20
#: The byte limit for gentle flushes. It is higher, since no writer waits for that memory, and since each sync slows
#: down the syncs of the log.
_GENTLY_TOGETHER_BYTES_MAX = 16 << 20
#: The interval at which a flusher checks for urgent work while it pauses.
_LOOK_SECONDS = 0.02


class _Saving(msgspec.Struct):
    """A partition being saved, and its oldest frozen MemTable or loaded file, if it has any."""

    partition: Partition
    frozen: MemTable | LoadedFile | None
    #: The partition's files when saving began.
    live: tuple[FileSource, ...]
    written: list[WrittenFile] = msgspec.field(default_factory=list)


class _Ending(msgspec.Struct):
    """The state that is installed once a partition is saved: its new manifest and its new sources."""

    saving: _Saving
    #: The last log entry that the files contain once the partition is saved.
    flushed: int
    manifest: Manifest
    #: True if the new manifest's tombstones differ from those of the previous manifest.
    deletes: bool
    sources: list[FileSource] = msgspec.field(default_factory=list)


class Journal(Protocol):
    """The log whose entries a region applies, reduced to the operations that the region needs."""

    def sync_due(self) -> None:
        """Make all applied entries durable. Raises StorageError."""
        ...

    def release(self, first: int) -> None:
        """Allow the log to discard the entries before `first`, whose data is in files.

        Called by the flusher's thread, without the region's lock.
        """
        ...


class Flusher:
    """Saves the frozen data of a region's partitions on a background thread, which the region starts and stops."""

    def __init__(
        self,
        options: StoreOptions,
        disk: Disk,
        clock: Clock,
        partitions: Partitions,
        journal: Journal,
        lock: threading.Condition,
        report: Report,
        changed: Callable[[Partition], None],
        staging: Staging,
        expiry: Callable[[], Expiry],
        pacer: Pacer,
    ) -> None:
        """Create a flusher; `start` starts its thread.

        `changed` is called, without the lock, for each partition that has new files, new tombstones or expired data.
        """
        self._options = options
        self._disk = disk
        self._clock = clock
        self._partitions = partitions
        self._journal = journal
        #: The region's lock; notified whenever a partition leaves the queue.
        self._lock = lock
        self._report = report
        self._changed = changed
        self._staging = staging
        self._expiry = expiry
        self._pacer = pacer
        self._choices = EncodingChoices()
        #: The thread's processor time at the end of its last pause, or at the start of the save.
        self._resumed_ns = 0
        #: Expired files that are already removed from views, but not yet from the disk: (partition, files).
        self._expired: list[tuple[Partition, list[FileSource]]] = []
        #: The time of the next check for expired files, on the monotonic clock.
        self._expire_at_ns = 0
        #: Total bytes of the files written since the start.
        self.bytes_written = 0
        #: The lock that a thread holds while it changes a partition's folder.
        self.folders = ContendedLock()
        #: The partitions that have something to save, with their ids as keys, in order of arrival.
        self._waiting: dict[int, Partition] = {}
        #: The partitions that a gentle flush saves once `_waiting` is empty, with their ids as keys.
        self._unhurried: dict[int, Partition] = {}
        #: The partitions whose files are written but not yet in the manifest, with their ids as keys.
        self._written: dict[int, _Saving] = {}
        #: The milliseconds in the name of the last file. They increase strictly, so no name is used twice.
        self._name_ms = 0
        #: Damaged files to be moved: (partition, path).
        self._aside: list[tuple[Partition, str]] = []
        self._stopping = False
        #: True if the log must keep all entries: see `give_up`.
        self._gave_up = False
        #: The error that makes flushes fail, temporarily or permanently; None if flushes succeed.
        self.problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="saros-flush", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current partition. Frozen data that is not flushed stays in the log."""
        with self._lock:
            self._stopping = True
            self._lock.notify_all()
        self._thread.join()

    # ------------------------------------------------------------------ under the lock

    def add(self, partition: Partition, *, gently: bool = False) -> None:
        """Queue the partition so that its frozen MemTables and its tombstones are saved."""
        if not gently:
            self._unhurried.pop(id(partition), None)
            self._waiting[id(partition)] = partition
        elif id(partition) not in self._waiting:
            self._unhurried[id(partition)] = partition
        self._lock.notify_all()

    def set_aside(self, partition: Partition, path: str) -> None:
        """Queue the move of a file that has already left its partition."""
        self._aside.append((partition, path))
        self.add(partition)

    def freeze(self, partition: Partition, *, gently: bool = False) -> None:
        """Freeze the active MemTable and flush it."""
        partition.freeze(self._partitions.applied)
        self._partitions.changed()
        self.add(partition, gently=gently)

    def give_up(self, problem: OSError | StorageError) -> None:
        """Stop permanently, because a dropped partition's folder could not be removed.

        The log then keeps all entries until the next start. The caller holds `folders` too.
        """
        self.problem = StorageError(f"the files of a deleted database could not be removed: {problem}")
        self._gave_up = self._stopping = True
        self._lock.notify_all()

    def is_waiting(self, partition: Partition) -> bool:
        """Return whether the partition still waits to be saved."""
        return id(partition) in self._waiting or id(partition) in self._unhurried

    @property
    def busy(self) -> bool:
        """True if any partition waits to be saved."""
        return bool(self._waiting or self._unhurried)

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self.busy and not self._stopping and not self._expiry_is_due():
                    self._lock.wait(_EXPIRY_SECONDS if self._partitions.schema.ttl else None)
                if self._stopping:
                    return
                partitions = self._next()
            self._resumed_ns = self._pacer.thread_time_ns()
            try:
                if not partitions:
                    self.expire()
                    continue
                with self.folders:
                    if not self._gave_up:
                        self._save(partitions)
                        self._journal.release(self.first_needed())
            except OSError as error:
                if not self._record_failure(error, final=error.errno not in FULL_ERRNOS):
                    return
            except Exception as error:  # noqa: BLE001 (the top of a thread)
                self._record_failure(error, final=True)
                return
            else:
                self._clear_problem()

    def _next(self) -> list[Partition]:
        """Return the partitions to save next, in order of arrival: several together if they are small.

        Gentle flushes come last.
        """
        found: list[Partition] = []
        bytes_, bytes_max = 0, _TOGETHER_BYTES_MAX if self._waiting else _GENTLY_TOGETHER_BYTES_MAX
        for partition in islice((self._waiting or self._unhurried).values(), _TOGETHER_MAX):
            bytes_ += sum(frozen.bytes for frozen in partition.immutable)
            if found and bytes_ > bytes_max:
                break
            found.append(partition)
        return found

    def _is_urgent(self) -> bool:
        """Return whether a flush must not pause: other threads wait for it, or writers will soon wait for memory."""
        is_wanted = bool(self._waiting) or self._stopping or self.folders.is_contended
        return is_wanted or self._partitions.memory_bytes > self._options.memtables_total_bytes_max // 4 * 3

    def _checkpoint(self) -> None:
        """Pause between two steps if the pacer requires a pause and nothing is urgent."""
        if self._is_urgent():
            self._resumed_ns = self._pacer.thread_time_ns()  # the pacer does not count urgent work
            return
        now_ns = self._clock.monotonic_ns()
        rest_ns = self._pacer.rest_ns(self._pacer.thread_time_ns() - self._resumed_ns, now_ns)
        if not rest_ns:
            return
        with self._lock:
            until_ns = now_ns + rest_ns
            while (left_ns := until_ns - self._clock.monotonic_ns()) > 0 and not self._is_urgent():
                self._lock.wait(min(left_ns / 1e9, _LOOK_SECONDS))
        self._resumed_ns = self._pacer.thread_time_ns()

    def _expiry_is_due(self) -> bool:
        return bool(self._partitions.schema.ttl) and self._clock.monotonic_ns() >= self._expire_at_ns

    def expire_soon(self) -> None:
        """Schedule a check for expired files for when there is nothing to flush. Under the lock."""
        self._expire_at_ns = 0
        self._lock.notify_all()

    def expire(self) -> None:
        """Remove the files whose points have all expired, in one swap for each partition. Raises OSError.

        Files are first removed from the views, then from the disk. Thus, even if a rule is withdrawn in the meantime,
        the points of these files do not reappear and disappear again.
        """
        with self.folders:
            with self._lock:
                self._expire_at_ns = self._clock.monotonic_ns() + int(_EXPIRY_SECONDS * 1e9)
                expiry = self._expiry()
                limit, interval = expiry.expired_before_at_most, self._options.time_partition_interval
                aging = [p for p in self._partitions if limit is not None and p.key[1] * interval < limit]
                found = [(p, gone) for p in aging if (gone := expiry.expired(p.files))]
                for partition, gone in found:
                    names = {(os.path.basename(file.path), file.sequence) for file in gone}
                    manifest = partition.manifest.with_merged(names, (), partition.manifest.tombstones)
                    partition.compacted(manifest, {file.path for file in gone}, (), ())
                    self._partitions.changed()
                self._expired += found
                self._lock.notify_all()
            if self._expired:
                self._journal.sync_due()  # the rule must be durable before its effect
            while self._expired:
                self._remove(*self._expired[0])
                del self._expired[0]
        for partition in aging:
            self._changed(partition)

    def _remove(self, partition: Partition, gone: Sequence[FileSource]) -> None:
        """Remove the files from disk; open views keep them.

        The caller holds `folders`, and calls this again after a failure.
        """
        with self._lock:
            manifest = partition.manifest
            if partition.dropped:
                return
        save_manifest(self._disk, partition.folder, manifest)
        for file in gone:
            assert isinstance(file.access, LazyFile)
            with suppress(CorruptFile, UnsupportedFile):  # readers will report the damage
                file.access.open()
            self._disk.remove(file.path)
            self._disk.remove(file.path + RESOURCE)

    def _clear_problem(self) -> None:
        with self._lock:
            if not self._stopping:
                if self.problem is not None:
                    logger.info("flushing resumed")
                self.problem = None
            self._lock.notify_all()

    def _record_failure(self, error: BaseException, *, final: bool) -> bool:
        """Record the problem and, unless it is final, wait before a retry. Return whether the thread may continue."""
        with self._lock:
            if not self._gave_up:
                if final:
                    logger.error("flushing failed; restart after checking the disk", exc_info=error)
                elif self.problem is None:
                    logger.warning("flushing waits for disk space", extra={"why": str(error)})
                self.problem = error
            self._lock.notify_all()
            if not final and not self._stopping:
                self._lock.wait(_RETRY_SECONDS)
            return not final

    def _save(self, partitions: Sequence[Partition]) -> None:
        while batch := self._left(partitions):
            self._write(batch)
            self._checkpoint()
            self._commit(batch)
            self._checkpoint()
            for saving in batch:
                self._written.pop(id(saving.partition), None)
                if isinstance(saving.frozen, LoadedFile):
                    self._staging.release(saving.frozen)

    def _left(self, partitions: Sequence[Partition]) -> list[_Saving]:
        """Return the partitions that still have something to save, and remove the others from the queue."""
        left = []
        with self._lock:
            for partition in partitions:
                if partition.dropped or (not partition.immutable and not self._unsaved(partition)):
                    self._written.pop(id(partition), None)
                    self._waiting.pop(id(partition), None)
                    self._unhurried.pop(id(partition), None)
                else:
                    frozen = partition.immutable[0] if partition.immutable else None
                    left.append(_Saving(partition, frozen, partition.files))
            self._lock.notify_all()
        return left

    def _unsaved(self, partition: Partition) -> bool:
        deleted = partition.active is None and partition.unsaved is not None
        return deleted or any(owner is partition for owner, _ in self._aside)

    def _write(self, batch: Sequence[_Saving]) -> None:
        """Write the files of the batch, except those that an earlier attempt wrote before it failed on the manifest."""
        begun: list[_Saving] = []
        try:
            for saving in batch:
                known = self._written.pop(id(saving.partition), None)
                if known is not None and known.frozen is saving.frozen and known.live is saving.live:
                    saving.written = known.written
                elif isinstance(saving.frozen, LoadedFile):
                    partition = saving.partition
                    saving.written = adopt(self._disk, partition.folder, saving.frozen, saving.live, self._name_time())
                elif saving.frozen is not None:
                    saving.written = self._files_of(saving.partition, saving.frozen)
                    begun.append(saving)
                    continue
                self._written[id(saving.partition)] = saving
        except OSError:
            remove(self._disk, [file.path for saving in begun for file in saving.written])
            raise
        finish(self._disk, [file for saving in begun for file in saving.written])
        self._written.update((id(saving.partition), saving) for saving in begun)

    def _name_time(self) -> int:
        self._name_ms = max(self._clock.now_ns() // 1_000_000, self._name_ms + 1)
        return self._name_ms

    def _files_of(self, partition: Partition, memtable: MemTable) -> list[WrittenFile]:
        """Write the files of a MemTable; `finish` must then make them durable."""
        name = FileName(self._name_time(), memtable.rank.version)
        flush = FileFlush(
            self._disk,
            partition.folder,
            self.storing,
            partition.last_flushed,
            memtable.rank,
            name,
            self._options.page_rows,
            partial(self._deadband_for, partition),
            self._choices,
            self._checkpoint,
        )
        snapshot = memtable.snapshot()
        with reduced_gc(snapshot.series_count):
            return flush.run(snapshot)

    def storing(self, device: str, measurement: str, type_: DataType) -> tuple[Encoding, Compressor]:
        """Return encoding and compressor of a series, or the defaults if the schema does not have it."""
        series = self._declared(device, measurement)
        if series is None:
            return DEFAULT_ENCODING[type_], DEFAULT_COMPRESSOR
        return stored_encoding(type_, series.encoding), series.compressor

    def _deadband_for(self, partition: Partition, device: str, measurement: str, type_: DataType) -> Deadband | None:
        """Return the deadband of a series; None if dropping a point could make an older point visible.

        An older point could become visible if an unsequence file reaches beyond the last flushed time, or if the
        partition has an underlay. See `flush_files.Thinning`.
        """
        series = self._declared(device, measurement)
        if series is None or series.deadband is None or series.type is not type_ or partition.underlay is not None:
            return None
        last = partition.last_flushed.get(device, TIME_MIN)
        ends = [f.devices[device].end for f in partition.files if not f.sequence and device in f.devices]
        return series.deadband if max(ends, default=TIME_MIN) <= last else None

    def _declared(self, device: str, measurement: str) -> SeriesSchema | None:
        """Return the series in the schema; its points may have been written with an earlier type."""
        known = self._partitions.schema.device(device)
        return None if known is None else known.series.get(measurement)

    def _commit(self, batch: Sequence[_Saving]) -> None:
        with self._lock:
            endings = [self._ending(saving) for saving in batch]
            saved = {id(saving.partition) for saving in batch}
            aside = [item for item in self._aside if id(item[0]) in saved]
            self._aside = [item for item in self._aside if id(item[0]) not in saved]
        self._journal.sync_due()
        manifests = {ending.saving.partition.folder: ending.manifest for ending in endings}
        if len(manifests) == 1:
            save_manifest(self._disk, *manifests.popitem())
        else:
            save_manifests(self._disk, manifests)
        for owner, path in aside:
            move_aside(self._disk, owner.folder, path)
        for ending in endings:
            ending.sources = [self._source(written) for written in ending.saving.written]
        with self._lock:
            for ending in endings:
                self._install(ending)
            self._partitions.changed()
            self._lock.notify_all()
        for ending in endings:
            if ending.saving.written or ending.deletes:
                self._changed(ending.saving.partition)

    def _ending(self, saving: _Saving) -> _Ending:
        partition = saving.partition
        flushed = self._complete_up_to(partition, saving.frozen)
        manifest = replace(_grown(partition.manifest, saving, flushed), tombstones=partition.tombstones)
        return _Ending(saving, flushed, manifest, manifest.tombstones != partition.manifest.tombstones)

    def _install(self, ending: _Ending) -> None:
        saving, partition = ending.saving, ending.saving.partition
        # Extend the current manifest rather than the manifest from before the flush: a file may have been found damaged
        # in the meantime.
        current = _grown(partition.manifest, saving, ending.flushed)
        partition.install(replace(current, tombstones=ending.manifest.tombstones), ending.sources, saving.frozen)
        if saving.frozen is not None:
            self._partitions.memory_bytes -= saving.frozen.bytes
        self.bytes_written += sum(written.entry.size for written in saving.written)

    def _complete_up_to(self, partition: Partition, memtable: MemTable | LoadedFile | None) -> int:
        """Return the last entry that the files contain once `memtable` is flushed."""
        if memtable is not None:
            assert memtable.frozen_at is not None
            return memtable.frozen_at
        return self._partitions.applied if partition.active is None else partition.manifest.flushed

    def _source(self, written: WrittenFile) -> FileSource:
        access = LazyFile(written.path, self._disk, self._report)
        entry = written.entry
        return FileSource(entry.rank, entry.sequence, written.path, entry.size, written.devices, access)

    def first_needed(self) -> int:
        """Return the first entry that some partition still needs; if no entry is needed, the next one to be logged."""
        with self._lock:
            needed = [p.first_unflushed for p in self._partitions]
            return min((index for index in needed if index is not None), default=self._partitions.applied + 1)


def _grown(manifest: Manifest, saving: _Saving, flushed: int) -> Manifest:
    """Return the manifest with the written files; a damaged loaded file is recorded in it as set aside."""
    grown = manifest.with_files(tuple(written.entry for written in saving.written), flushed)
    frozen = saving.frozen
    if isinstance(frozen, LoadedFile) and frozen.source is None:
        return replace(grown, set_aside=(*grown.set_aside, (frozen.staged.name, frozen.problem)))
    return grown
