"""The write-ahead log: segments of records, made durable by group commit in the threads of the callers.

    append (under the lock: an index, a place in the queue)  ->  wait(index)
        the first caller to wait becomes the leader: it takes the whole queue, writes and fsyncs it, wakes the others
        the others wait for the leader; one of those whose records came too late leads the next round

Thus one fsync serves all callers that arrived during the previous fsync, and a single client's thread does all the work
itself.

    fsync           wait returns when the record is fsynced
    os              wait returns when the operating system has the record
    interval:<ms>   like os; `sync_due` fsyncs at most once per interval (the store's timer calls it)

Records overwrite zeros that were written in advance, some MiB at a time. The file's size then rarely changes, which
halves the cost of most fsyncs. Recovery does not mistake the remaining zeros for records, and cuts them off.

After a power cut, any of the records that were not fsynced may be on the disk, with holes between them. Each record
stores the number of earlier records that were not fsynced when it was written. This distinguishes a hole without
acknowledged records (a torn tail) from damage to acknowledged records, see `record`. Only the last segment can have a
torn tail, since each segment is fsynced before the next segment is created. With durability `os` and `interval`, a hole
in records that were never fsynced is also a torn tail.

Each segment has a random salt, on which the checksums of its records depend, see `segment_name`. Leftovers of other
segments on the disk are therefore never mistaken for records.

A failed write or fsync is never retried: the log stops permanently and raises LogFailed for all callers. A full disk is
different: the queued records are withdrawn without effect, their callers get DiskFull, and the log accepts records
again once there is space.

Thread-safe. The log does not interpret payloads; all Raft groups of a node share one log.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial

import msgspec
import numpy as np

from saros_storage.base.errors import CorruptFile, DiskFull, LogFailed, StoreClosed
from saros_storage.io.disk import FULL_ERRNOS, Disk, File
from saros_storage.log.record import PendingRecord, Record, check_payload, scan
from saros_storage.log.segment_name import SegmentName, list_segments, new_salt

_logger = logging.getLogger(__name__)
#: Number of zero bytes that are written in advance at a time.
_RESERVED_BYTES = 4 << 20
#: Larger writes get no zeros in advance: writing as many zeros again takes longer than recording a new file size.
_LARGE_BYTES = 256 << 10


class Durability(Enum):
    """The moment at which a record is acknowledged, which determines the failures it survives; see the module."""

    FSYNC = "fsync"
    OS = "os"
    INTERVAL = "interval"


class LogOptions(msgspec.Struct, frozen=True):
    """Options of a log; fixed while it is open."""

    durability: Durability = Durability.FSYNC
    #: Size at which a segment is closed and a new segment is started.
    segment_bytes: int = 64 << 20


class _Segment(msgspec.Struct):
    path: str
    name: SegmentName
    #: Size of the file; for the segment being written, the size that the file had when it was opened.
    size: int = 0

    @property
    def first_index(self) -> int:
        return self.name.first_index


class SegmentedLog:
    """A log of numbered records in segment files; `open` creates this object."""

    def __init__(self, folder: str, disk: Disk, options: LogOptions, segments: list[_Segment], next_index: int) -> None:
        self._folder = folder
        self._disk = disk
        self._options = options
        self._lock = threading.Condition()
        #: Segments, oldest first; records are appended to the last one.
        self._segments = segments
        self._file: File | None = None
        #: Queued records that no leader has taken yet; the first one has the index `_written + 1`, unless a leader is
        #: writing.
        self._queue: list[PendingRecord] = []
        self._next_index = next_index
        #: Invariant: synced <= written < next_index.
        self._written = next_index - 1
        self._synced = next_index - 1
        #: For each withdrawal of the queue, the index of the first withdrawn record. The next round begins with a
        #: withdrawal, and assigns this index and the indexes after it again. The tickets of the earlier round that have
        #: these indexes are void.
        self._lost_from: list[int] = []
        #: Size of the file before the write of the queue that is in progress.
        self._good_bytes = 0
        #: Size of the file including the zeros after the records.
        self._reserved_until = 0
        self._leading = False
        self._failure: BaseException | None = None
        #: Size of the last write that a full disk refused; 0 after a successful write.
        self._refused_bytes = 0
        self._closed = False

    @staticmethod
    def open(folder: str, disk: Disk, options: LogOptions, first_index: int = 1) -> tuple[SegmentedLog, list[Record]]:
        """Open the log in `folder`, cut off a torn tail left by a crash, and return the log with all its records.

        An empty log starts at `first_index`. Raises CorruptFile if a record other than the tail is damaged, or if a
        segment is missing.
        """
        disk.make_folder(folder)
        segments = [_Segment(path, SegmentName.of(path)) for path in list_segments(disk, folder)]
        records: list[Record] = []
        next_index = segments[0].first_index if segments else first_index
        for segment in segments:
            if segment.first_index != next_index:
                raise CorruptFile(segment.path, 0, f"the log lacks the records from {next_index}")
            data = disk.map(segment.path)
            found = scan(data, segment.first_index, segment.name.salt)
            if found.end < len(data) and (found.damaged or segment is not segments[-1]):
                raise CorruptFile(segment.path, found.end, "a record of the log is damaged")
            if np.frombuffer(data, np.uint8, offset=found.end).any():
                _logger.warning(
                    "truncating the torn tail of the log", extra={"path": segment.path, "offset": found.end}
                )
            segment.size = found.end
            records += found.records
            next_index += len(found.records)
        if segments:
            # A killed process may have removed a segment without a sync. The removal must be durable before the next
            # segment is removed.
            disk.sync_folder(folder)
            # `truncate` also fsyncs the file, which is needed even if there is no tail to cut off: the records read
            # here may include some that a process wrote but did not fsync before it died. Once later segments exist, a
            # crash must not lose those records.
            disk.truncate(segments[-1].path, segments[-1].size)
        return SegmentedLog(folder, disk, options, segments, next_index), records

    @property
    def next_index(self) -> int:
        """The index of the next record."""
        with self._lock:
            return self._next_index

    @property
    def written_index(self) -> int:
        """Index of the last record that is written; a written record is never withdrawn."""
        with self._lock:
            return self._written

    @property
    def synced_index(self) -> int:
        """Index of the last record that is fsynced."""
        with self._lock:
            return self._synced

    @property
    def size_bytes(self) -> int:
        """Size of the log's segments on disk, including reserved space."""
        with self._lock:
            file = self._file
            return sum(s.size for s in self._segments) + (max(file.size, self._reserved_until) if file else 0)

    @property
    def failure(self) -> BaseException | None:
        """The error that stopped the log permanently, or None."""
        return self._failure

    def blocked_by(self) -> str | None:
        """Return the reason why writes are currently impossible, or None.

        A full disk is a reason only once it has refused a write.
        """
        if self._failure is not None:
            return f"the log failed: {self._failure}"
        refused = self._refused_bytes
        if refused and self._disk.free_bytes(self._folder) < refused:
            return f"no space left for the log in {self._folder}"
        return None

    def append(self, group: int, kind: int, payload: Sequence[bytes | memoryview]) -> tuple[int, int]:
        """Queue a record, given in parts; return the ticket for `wait`, whose first number is the record's index."""
        draft = PendingRecord.of(group, kind, payload)
        check_payload(draft.size)
        with self._lock:
            self._check()
            index = self._next_index
            self._queue.append(draft)
            self._next_index += 1
            return index, len(self._lost_from)

    def wait(self, ticket: tuple[int, int], *, fsync: bool = False) -> None:
        """Wait until the record is as durable as the options require (or fsynced, if `fsync` is set).

        Raises LogFailed, DiskFull.
        """
        index, round_ = ticket
        sync = fsync or self._options.durability is Durability.FSYNC
        with self._lock:
            while not self._is_done(index, round_, sync=sync):
                self._check()
                if self._leading:
                    self._lock.wait()
                else:
                    self._lead(sync=sync)

    def is_lost(self, ticket: tuple[int, int]) -> bool:
        """Return whether the record was withdrawn because the disk was full."""
        with self._lock:
            return self._was_lost(*ticket)

    def sync_due(self) -> None:
        """Write and fsync all queued records: the periodic step of durability `interval`.

        If the disk is full, the queued records are withdrawn, and only the records already written are fsynced. Raises
        LogFailed.
        """
        with self._lock:
            while self._leading:
                self._lock.wait()
            self._check()
            written = self._written
            if self._synced < self._next_index - 1:
                self._lead(sync=True)
            if self._failure is None and self._synced < written:
                self._lead(sync=True)
            self._check()

    def cut(self, index: int) -> int:
        """Remove segments that contain only records below `index`, but never the last segment; return their number.

        Segments are removed oldest first, each durably before the next, so that a crash at any time leaves no gap. If a
        segment cannot be removed (OSError), the next call begins with that segment.
        """
        with self._lock:
            keep = max((n for n, s in enumerate(self._segments) if s.first_index <= index), default=0)
            gone = self._segments[:keep]
            del self._segments[:keep]  # in place: a leader may append a segment now, without the lock
        for place, segment in enumerate(gone):
            try:
                self._disk.remove(segment.path)
                self._disk.sync_folder(self._folder)
            except OSError:
                with self._lock:
                    self._segments[:0] = gone[place:]
                raise
        return len(gone)

    def segments(self) -> list[tuple[str, int]]:
        """Return (path, index of its first record) of each segment, oldest first."""
        with self._lock:
            return [(s.path, s.first_index) for s in self._segments]

    def close(self) -> None:
        """Write and fsync the queue, then close. Idempotent."""
        with self._lock:
            while self._leading:
                self._lock.wait()
            if self._closed:
                return
            if self._failure is None and self._synced < self._next_index - 1:
                self._lead(sync=True)
            self._closed = True
            if self._file is not None:
                self._close_file()
            self._lock.notify_all()

    # ------------------------------------------------------------------ leading; the caller has the lock

    def _is_done(self, index: int, round_: int, *, sync: bool) -> bool:
        if self._was_lost(index, round_):
            raise DiskFull(f"no space left for the log in {self._folder}; free some space to let writes continue")
        return index <= (self._synced if sync else self._written)

    def _was_lost(self, index: int, round_: int) -> bool:
        return round_ < len(self._lost_from) and index >= self._lost_from[round_]

    def _check(self) -> None:
        if self._failure is not None:
            raise LogFailed(f"the log in {self._folder} failed: {self._failure}; restart after checking the disk")
        if self._closed:
            raise StoreClosed("the log is closed")

    def _lead(self, *, sync: bool) -> None:
        """Write the queued records as the leader; the lock is released during the write."""
        drafts, self._queue = self._queue, []
        last = self._next_index - 1
        self._leading = True
        self._lock.release()
        failure: OSError | None = None
        try:
            self._write(drafts, self._written + 1, self._synced, sync=sync)
        except OSError as error:
            failure = error
        except BaseException as error:
            self._failure = error  # interrupted, as by Ctrl-C: it is unknown what was written
            raise
        finally:
            self._lock.acquire()
            self._leading = False
            self._lock.notify_all()
        if failure is None:
            self._written = last
            self._synced = last if sync else self._synced
            if drafts and self._refused_bytes:
                self._refused_bytes = 0
                _logger.info("the log has disk space again", extra={"path": self._folder})
        elif failure.errno in FULL_ERRNOS and self._roll_back():
            if not self._refused_bytes:
                _logger.warning("no space left for the log", extra={"path": self._folder})
            self._refused_bytes = sum(draft.size for draft in drafts + self._queue)
            self._queue.clear()
            self._next_index = self._written + 1
            self._lost_from.append(self._next_index)
        else:
            self._failure = failure
            _logger.error(
                "the log failed; restart after checking the disk", extra={"path": self._folder, "why": str(failure)}
            )

    def _write(self, drafts: list[PendingRecord], first_index: int, synced: int, *, sync: bool) -> None:
        if drafts and (self._file is None or self._file.size >= self._options.segment_bytes):
            self._roll(first_index)
        if self._file is None:
            return  # a closed segment is fsynced
        salt = self._segments[-1].name.salt
        parts = [part for index, draft in enumerate(drafts, first_index) for part in draft.encode(index, synced, salt)]
        self._good_bytes = self._file.size
        if parts and sync:
            self._reserve(sum(map(len, parts)))
        if parts:
            self._file.write(parts)
        if sync:
            _finally(self._file.sync)

    def _reserve(self, count: int) -> None:
        """Grow the file in large steps, so that most fsyncs of small writes need not record a new file size."""
        assert self._file is not None
        if count > _LARGE_BYTES or self._file.size + count <= self._reserved_until:
            return
        try:
            self._file.reserve(count + _RESERVED_BYTES)
        except OSError as error:
            if error.errno not in FULL_ERRNOS:
                raise
            return  # the write itself may still find room
        self._reserved_until = self._file.size + count + _RESERVED_BYTES

    def _roll(self, first_index: int) -> None:
        if self._file is not None:
            _finally(self._file.sync)
            _finally(self._close_file)
        name = SegmentName(first_index, new_salt())
        path = os.path.join(self._folder, str(name))
        if self._segments and self._segments[-1].first_index == first_index:
            # The last segment has no records. It is renamed, not replaced, so that no crash leaves two segments for
            # this index.
            self._disk.replace(self._segments[-1].path, path)
            self._segments[-1] = _Segment(path, name)
            self._file = self._disk.append(path)
        else:
            self._file = self._disk.create(path)
            self._segments.append(_Segment(path, name))
        self._reserved_until = 0
        _finally(partial(self._disk.sync_folder, self._folder))

    def _close_file(self) -> None:
        """Close the segment, and cut off the zeros that were written in advance."""
        assert self._file is not None
        segment = self._segments[-1]
        segment.size = self._file.size
        self._file.close()
        self._file = None
        if self._reserved_until > segment.size:
            self._disk.truncate(segment.path, segment.size)
        self._reserved_until = 0

    def _roll_back(self) -> bool:
        """Cut off the records that a full disk accepted before it refused one; return False if even that fails."""
        if self._file is None:
            return True
        path = self._segments[-1].path
        file, self._file = self._file, None  # if a step fails, `close` must not close it again
        try:
            file.close()
            self._disk.truncate(path, self._good_bytes)
            self._file = self._disk.append(path)
            self._reserved_until = 0
        except OSError:
            return False
        return True


def _finally(step: Callable[[], None]) -> None:
    """Run a step, and turn any OSError into EIO, which stops the log permanently.

    A failed fsync may have marked lost pages as clean. A segment that is not properly closed, or whose name is not
    durable, must not get a successor.
    """
    try:
        step()
    except OSError as error:
        raise OSError(errno.EIO, f"not made durable: {error.strerror}") from error
