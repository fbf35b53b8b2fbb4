"""The compaction thread of one store, or of all regions of a node: its schedule, its pace and its handling of failures.

    flushed, deleted, expired, opened ─▶ due ─┐
    MERGE ─▶ requests, which go first ────────┴▶ pick ─▶ merge ─▶ swap ─▶ pick again ... until nothing is worthwhile

    cancelled (close, drop of the database, KILL)     the job leaves nothing on disk
    a damaged source                                  reported, which sets it aside; then other files are picked
    a source that cannot be merged with others        skipped until the next start
    a full disk, another failure                      named in `problem`; retried after a delay

The thread exists while there is work. At every step, a job checks whether it was cancelled, and pauses as long as
`throttle` requires; while it pauses, it holds no lock for which another thread waits. `schedule` may be called with any
lock held; the compactor's own lock is held only for brief reads and updates of its state.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from saros_storage.base.clock import Clock
from saros_storage.base.errors import CorruptFile, DiskFull, StorageError, StoreClosed, UnsupportedFile
from saros_storage.compaction.garbage_estimate import GarbageEstimates
from saros_storage.compaction.merging import Merge, MergeOptions, Unmergeable
from saros_storage.compaction.picker import Kind, Limits, Pick, pick, pick_dead
from saros_storage.compaction.swap import CompactionContext, PartitionChanged, Swap
from saros_storage.compaction.throttle import Throttle
from saros_storage.folder.layout import TEMPORARY, FileName
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import FULL_ERRNOS
from saros_storage.partition.partition import Partition
from saros_storage.read.deletions import may_hold
from saros_storage.scan.snapshot import FileSource, Tombstone

logger = logging.getLogger(__name__)
_SECOND_NS = 1_000_000_000
_RETRY_NS = 30 * _SECOND_NS
#: Interval at which a pausing job and a waiting caller check whether they were cancelled.
_LOOK_SECONDS = 0.05


class Cancelled(Exception):
    """The job was cancelled."""


class CompactionCounters(msgspec.Struct):
    """Totals since the start."""

    jobs: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    points_copied: int = 0
    points_merged: int = 0
    failures: int = 0


class _Request(msgspec.Struct, eq=False):
    """A MERGE statement that waits for completion."""

    ground: CompactionContext
    #: The partitions that are not done yet.
    partitions: list[Partition]
    #: Also rewrite single files that tombstones affect.
    full: bool
    #: Paths of files that need not be rewritten because this request created them.
    settled: set[str] = msgspec.field(default_factory=set)
    cancelled: bool = False
    done: bool = False
    error: StorageError | None = None


class _Task(msgspec.Struct, frozen=True, eq=False):
    """A partition to examine, and the request that asked for it, if any."""

    ground: CompactionContext
    partition: Partition
    request: _Request | None


class Compactor:
    """The compaction thread, its queue of partitions and its requests. Thread-safe."""

    def __init__(self, options: StoreOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._limits = Limits(options.compaction_files_min, options.compaction_file_bytes)
        self._pace = Throttle(options.compaction_bytes_per_second)
        self._lock = threading.Condition()
        self._grounds: set[CompactionContext] = set()
        #: The partitions to examine, with their ids as keys. The dict preserves the order of arrival.
        self._due: dict[int, _Task] = {}
        self._requests: list[_Request] = []
        self._running: _Task | None = None
        self._stopping = False
        #: After a failure, scheduled work does not start before this time.
        self._not_before_ns = 0
        #: Paths of files that are not compacted until the next start.
        self._refused: set[str] = set()
        self._dead = GarbageEstimates()
        #: The time in milliseconds in the name of the newest file.
        self._name_ms = 0
        self._counters = CompactionCounters()
        #: Reason of the last failure, until a job succeeds.
        self.problem: str | None = None
        self._thread: threading.Thread | None = None

    @property
    def counters(self) -> CompactionCounters:
        """The totals since the start."""
        with self._lock:
            return replace(self._counters)

    def add(self, ground: CompactionContext) -> None:
        """Add a region whose files are to be compacted, until `remove`."""
        with self._lock:
            self._grounds.add(ground)
        self._schedule_all(ground)

    def remove(self, ground: CompactionContext) -> None:
        """Stop compacting a region; returns once no job for it runs. The caller must not hold the region's locks."""
        with self._lock:
            self._grounds.discard(ground)
            self._due = {key: task for key, task in self._due.items() if task.ground is not ground}
            for request in [r for r in self._requests if r.ground is ground]:
                self._finish(request, StoreClosed("the store is closed"))
            self._lock.notify_all()
            while self._running is not None and self._running.ground is ground:
                self._lock.wait()

    def stop(self) -> None:
        """End the thread. The caller must have removed all regions before."""
        with self._lock:
            self._stopping = True
            thread = self._thread
            self._lock.notify_all()
        if thread is not None:
            thread.join()

    def set_options(self, options: StoreOptions) -> None:
        """Use the options of compaction in `options` from the next job on; other options do not change."""
        with self._lock:
            was_on = self._options.compaction
            self._options = replace(self._options, compaction=options.compaction)
            self._limits = Limits(self._options.compaction_files_min, options.compaction_file_bytes)
            self._pace.set_rate(options.compaction_bytes_per_second)
            if not options.compaction:
                self._due.clear()
            grounds = list(self._grounds) if options.compaction and not was_on else []
        for ground in grounds:
            self._schedule_all(ground)

    def _schedule_all(self, ground: CompactionContext) -> None:
        with ground.lock:
            partitions = list(ground.partitions)
        for partition in partitions:
            self.schedule(ground, partition)

    def schedule(self, ground: CompactionContext, partition: Partition) -> None:
        """Add a partition that has new files to the queue."""
        if self._options.compaction:
            with self._lock:
                if ground in self._grounds:
                    self._due.setdefault(id(partition), _Task(ground, partition, None))
                    self._begin()

    def _begin(self) -> None:
        """Start the thread, or wake it, because there is work. Called under the lock."""
        if self._thread is None and not self._stopping:
            self._thread = threading.Thread(target=self._run, name="saros-compact", daemon=True)
            self._thread.start()
        self._lock.notify_all()

    def merge(
        self, ground: CompactionContext, partitions: Sequence[Partition], *, full: bool, stopped: Callable[[], bool]
    ) -> None:
        """Merge partitions into as few files as the limits allow; wait for completion, or until `stopped()` is true.

        If `full`, also rewrite files that contain deleted points. Raises DiskFull, StoreClosed, StorageError.
        """
        request = _Request(ground, list(partitions), full)
        with self._lock:
            if ground not in self._grounds:
                raise StoreClosed("the store is closed")
            self._requests.append(request)
            self._begin()
        while not stopped():
            with self._lock:
                if not request.done:
                    self._lock.wait(_LOOK_SECONDS)
                if request.done:
                    break
        with self._lock:
            request.cancelled = True
            self._finish(request, request.error)
        if request.error is not None:
            raise request.error

    def _finish(self, request: _Request, error: StorageError | None) -> None:
        if request in self._requests:
            self._requests.remove(request)
        request.done = True
        request.error = error
        self._lock.notify_all()

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        while (task := self._next()) is not None:
            again = self._do(task)
            with self._lock:
                self._running = None
                if task.request is not None:
                    self._advance_request(task.request, again=again)
                elif again and self._options.compaction and task.ground in self._grounds:
                    self._due.setdefault(id(task.partition), task)
                self._lock.notify_all()

    def _next(self) -> _Task | None:
        """Return the next task, waiting after a failure; None if no task is left or the thread must end."""
        with self._lock:
            while not self._stopping and (self._requests or self._due):
                wait_ns = self._not_before_ns - self._clock.monotonic_ns()
                if self._requests:
                    request = self._requests[0]
                    self._running = _Task(request.ground, request.partitions[0], request)
                    return self._running
                if self._due and wait_ns <= 0:
                    self._running = self._due.pop(next(iter(self._due)))
                    return self._running
                self._lock.wait(wait_ns / _SECOND_NS)
            self._thread = None
            return None

    def _advance_request(self, request: _Request, *, again: bool) -> None:
        """Proceed to the request's next partition unless `again` is set.

        After the last partition, finish the request.
        """
        if not again and not request.done:
            del request.partitions[0]
            if not request.partitions:
                self._finish(request, None)

    def _do(self, task: _Task) -> bool:
        """Examine a partition once; return whether to examine it again."""
        found: Pick | None = None
        try:
            with task.ground.lock:
                if task.partition.underlay is not None:  # any tombstone may hide points that arrive later
                    return False
                files, tombstones = task.partition.files, task.partition.tombstones
            found = self._pick(task, files, tombstones)
            if found is None or self._is_cancelled(task):
                return False
            self._merge(task, found, tombstones)
        except Cancelled:
            return False
        except PartitionChanged:
            return not self._is_cancelled(task)
        except CorruptFile as error:
            if not self._is_cancelled(task):
                task.ground.report(error.file, error)
            return not self._is_cancelled(task)
        except (Unmergeable, UnsupportedFile) as error:
            logger.warning("a file is left out of compaction", extra={"file": error.file, "why": error.message})
            self._refused.add(error.file)
            return True
        except (OSError, StorageError) as error:
            return not self._is_cancelled(task) and self._record_failure(task, error)
        except Exception as error:
            logger.exception("compaction failed")
            self._refused |= set() if found is None else {file.path for file in found.files}
            return self._record_failure(task, error)
        return True

    def _record_failure(self, task: _Task, error: Exception) -> bool:
        """Report a failure to the waiting caller, if any, and delay further attempts. Return whether to try again."""
        full = isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in FULL_ERRNOS)
        logger.warning("compaction was postponed", extra={"partition": task.partition.folder, "why": str(error)})
        with self._lock:
            self.problem = f"compaction of {task.partition.folder} failed: {error}"
            self._counters.failures += 1
            self._not_before_ns = self._clock.monotonic_ns() + _RETRY_NS
            if task.request is not None:
                kind = DiskFull if full else StorageError
                self._finish(task.request, kind(self.problem))
                return False
        return True

    def _is_cancelled(self, task: _Task) -> bool:
        """Return whether a task is obsolete."""
        cancelled = task.request is not None and task.request.cancelled
        return self._stopping or cancelled or task.partition.dropped or task.ground not in self._grounds

    # ------------------------------------------------------------------ a job

    def _pick(self, task: _Task, files: Sequence[FileSource], tombstones: tuple[Tombstone, ...]) -> Pick | None:
        refused = [file.path for file in files if file.path in self._refused]
        request = task.request
        found = pick(files, self._limits, everything=request is not None, refused=refused)
        if found is not None:
            return found
        expiry = task.ground.expiry()

        def dead_fraction(file: FileSource) -> float:
            return self._dead.dead_fraction(file, tombstones, expiry, task.ground.disk, lambda: self._require(task))

        if request is not None and request.full:
            for file in files:
                settled = file.path in request.settled or file.path in refused
                deleted = any(t.rank >= file.rank and may_hold(file, t.pattern, t.time) for t in tombstones)
                if not settled and (deleted or dead_fraction(file) > 0):
                    return Pick.of([file])
        return pick_dead(files, self._limits, dead_fraction, refused=refused)

    def _merge(self, task: _Task, found: Pick, tombstones: tuple[Tombstone, ...]) -> None:
        ground, partition = task.ground, task.partition
        if ground.disk.free_bytes(partition.folder) < found.bytes + self._options.memtable_bytes_max:
            raise DiskFull(f"not enough disk space for a copy of {found.bytes} bytes")
        splits = found.bytes > self._limits.file_bytes
        options = MergeOptions(self._options.page_rows, self._limits.file_bytes if splits else 0)

        def checkpoint(size: int) -> None:
            self._checkpoint(task, size)

        def new_path() -> str:
            return self._new_path(partition, found)

        expiry = ground.expiry()
        merge = Merge(
            ground.disk,
            found.files,
            tombstones,
            ground.storing,
            options,
            new_path,
            checkpoint,
            expiry.expired_before,
        )
        self._pace.resume(self._clock.monotonic_ns())
        try:
            merge.verify(self._checksums(task, found))
            made = Swap(ground, partition, found, tombstones, merge.run(), expiry.rules).run()
        finally:
            with self._lock:
                self._counters.bytes_read += merge.counters.bytes_read
                self._counters.bytes_written += merge.counters.bytes_written
        with self._lock:
            self.problem = None
            self._counters.jobs += 1
            self._counters.points_copied += merge.counters.points_copied
            self._counters.points_merged += merge.counters.points_merged
            if task.request is not None:
                task.request.settled |= {file.path for file in made}

    def _checksums(self, task: _Task, found: Pick) -> list[int]:
        with task.ground.lock:
            known = {(e.name, e.sequence): e.crc32 for e in task.partition.manifest.files}
        keys = [(os.path.basename(file.path), file.sequence) for file in found.files]
        if any(key not in known for key in keys):
            raise PartitionChanged
        return [known[key] for key in keys]

    def _checkpoint(self, task: _Task, size: int) -> None:
        """Pause between two steps of a job for as long as the throttle requires. Raises Cancelled."""
        rest_ns = self._pace.pause_ns(size, self._clock.monotonic_ns())
        if rest_ns:
            until_ns = self._clock.monotonic_ns() + rest_ns
            while not self._is_cancelled(task) and (left_ns := until_ns - self._clock.monotonic_ns()) > 0:
                with self._lock:
                    self._lock.wait(min(left_ns / _SECOND_NS, _LOOK_SECONDS))
            self._pace.resume(self._clock.monotonic_ns())
        self._require(task)

    def _require(self, task: _Task) -> None:
        """Raise Cancelled if the task is obsolete."""
        if self._is_cancelled(task):
            raise Cancelled

    def _new_path(self, partition: Partition, found: Pick) -> str:
        """Return a temporary path for a new file.

        No file of this process has ever had its name, since files are identified by their paths, as in `_refused`.
        """
        sources = [FileName.parse(os.path.basename(file.path)) for file in found.files]
        live = [FileName.parse(os.path.basename(file.path)) for file in partition.files]  # none, if all expired by now
        newest = max(name.time for name in (*live, *sources) if name is not None)
        self._name_ms = max(self._clock.now_ns() // 1_000_000, self._name_ms + 1, newest + 1)
        crosses = found.kind is Kind.CROSS
        inner = max(name.inner for name in sources if name is not None) + (not crosses)
        cross = max(name.cross for name in sources if name is not None) + crosses
        name = FileName(self._name_ms, found.rank.version, inner, cross)
        return os.path.join(os.path.dirname(found.files[0].path), f"{name}{TEMPORARY}")
