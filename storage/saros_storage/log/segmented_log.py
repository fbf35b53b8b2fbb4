"""The write-ahead log: segments of records, durable by group commit in the callers' own threads.

    append (under the lock: an index, a place in the queue)  ->  wait(index)
        the first that waits becomes the leader: it takes the whole queue, writes and fsyncs it, wakes the others
        the others wait for it; whoever came too late leads the next round

So one fsync serves everyone who arrived while the previous one ran, and a single client pays for no hand-over between
threads.

    fsync           wait returns when the record is fsynced
    os              wait returns when the operating system has it
    interval:<ms>   like os; `sync_due` fsyncs at most so often (the store's timer calls it)

Records are written over zeros that were put there before, some MiB at a time. The file's size then rarely changes,
which halves the cost of most fsyncs. Recovery does not take such a tail for records, and cuts it off.

A power cut may keep any part of the records that were not fsynced, with holes between them. Each record says how many
before it were not fsynced when it was written. This tells a hole that lost nothing acknowledged (a cut tail) from
damage to acknowledged records, see `record`. Only the last segment can have a cut tail, since each segment is fsynced
before the next one is made. With durability `os` and `interval`, a hole in records that were never fsynced is a cut
tail as well.

A failed write or fsync is never retried: the log stops for good and raises LogFailed for everyone. A full disk is
different: the queued records are withdrawn as if they had never come (DiskFull), and the log goes on when there is
space again.

Thread-safe. Knows nothing of what payloads mean; all Raft groups of a node share one log.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np

from saros_storage.base.errors import CorruptFile, DiskFull, LogFailed, StoreClosed
from saros_storage.io.disk import FULL_ERRNOS, Disk, File
from saros_storage.log.record import PendingRecord, Record, check_payload, scan

_logger = logging.getLogger(__name__)
_SUFFIX = ".log"
#: Zeros put behind the records at a time.
_RESERVED_BYTES = 4 << 20


class Durability(Enum):
    """What an acknowledged record survives; see the module."""

    FSYNC = "fsync"
    OS = "os"
    INTERVAL = "interval"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Fixed while the log is open."""

    durability: Durability = Durability.FSYNC
    #: A segment that has grown to this is closed and a new one begun.
    segment_bytes: int = 64 << 20


@dataclass(slots=True)
class _Segment:
    path: str
    first_index: int
    #: What its file takes; of the one that is written, before it was opened.
    size: int


class SegmentedLog:
    """See the module. Made by `open`."""

    def __init__(self, folder: str, disk: Disk, options: LogOptions, segments: list[_Segment], next_index: int) -> None:
        self._folder = folder
        self._disk = disk
        self._options = options
        self._lock = threading.Condition()
        #: Oldest first; the last one is written.
        self._segments = segments
        self._file: File | None = None
        #: Records that nobody has written yet; the first one is `_written + 1`, unless somebody leads.
        self._queue: list[PendingRecord] = []
        self._next_index = next_index
        #: Invariant: synced <= written < next_index.
        self._written = next_index - 1
        self._synced = next_index - 1
        #: The first index that was lost when the queue was taken back for the nth time: a ticket of that round from
        #: there on is void, although its index is given again.
        self._lost_from: list[int] = []
        #: Size of the file before the queue that is being written.
        self._good_bytes = 0
        #: Bytes of the file that are there already, used or filled with zeros.
        self._reserved_until = 0
        self._leading = False
        self._failure: BaseException | None = None
        #: What a full disk would not take, last; 0 when something was written since.
        self._refused_bytes = 0
        self._closed = False

    @staticmethod
    def open(folder: str, disk: Disk, options: LogOptions, first_index: int = 1) -> tuple[SegmentedLog, list[Record]]:
        """The log in `folder` and all its records; a tail that a crash cut short is cut off.

        An empty log begins at `first_index`. Raises CorruptFile if a record is damaged that is not the tail, or if a
        segment is missing.
        """
        disk.make_folder(folder)
        segments = [
            _Segment(f"{folder}/{name}", int(name.removesuffix(_SUFFIX)), 0)
            for name in disk.list(folder)
            if name.endswith(_SUFFIX)
        ]
        records: list[Record] = []
        next_index = segments[0].first_index if segments else first_index
        for segment in segments:
            if segment.first_index != next_index:
                raise CorruptFile(segment.path, 0, f"the log lacks the records from {next_index}")
            data = disk.map(segment.path)
            found = scan(data, segment.first_index)
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
            # What a killed process removed here and did not sync must not come back before what is removed next.
            disk.sync_folder(folder)
            # Also when there is nothing to cut off: what a process wrote and did not fsync before it died is read here
            # like the rest, and must not be lost at a later crash, when there are segments behind it.
            disk.truncate(segments[-1].path, segments[-1].size)
        return SegmentedLog(folder, disk, options, segments, next_index), records

    @property
    def next_index(self) -> int:
        """The index that the next record gets."""
        with self._lock:
            return self._next_index

    @property
    def written_index(self) -> int:
        """The last record that is written; it will not be taken back."""
        with self._lock:
            return self._written

    @property
    def synced_index(self) -> int:
        """The last record that is fsynced."""
        with self._lock:
            return self._synced

    @property
    def size_bytes(self) -> int:
        """What its segments take on the disk, with what is reserved."""
        with self._lock:
            file = self._file
            return sum(s.size for s in self._segments) + (max(file.size, self._reserved_until) if file else 0)

    @property
    def failure(self) -> BaseException | None:
        """What ended the log, if something has."""
        return self._failure

    def blocked_by(self) -> str | None:
        """Why nothing can be written at the moment, or None. A full disk shows when it has refused a write."""
        if self._failure is not None:
            return f"the log failed: {self._failure}"
        refused = self._refused_bytes
        if refused and self._disk.free_bytes(self._folder) < refused:
            return f"no space left for the log in {self._folder}"
        return None

    def append(self, group: int, kind: int, payload: Sequence[bytes | memoryview]) -> tuple[int, int]:
        """Queue a record, given in parts; the ticket to `wait` with. Its first number is the record's index."""
        draft = PendingRecord.of(group, kind, payload)
        check_payload(draft.size)
        with self._lock:
            self._check()
            index = self._next_index
            self._queue.append(draft)
            self._next_index += 1
            return index, len(self._lost_from)

    def wait(self, ticket: tuple[int, int], *, fsync: bool = False) -> None:
        """Return when the record is as durable as the options say, or fsynced. Raises LogFailed, DiskFull."""
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
        """Whether the record was taken back because the disk was full."""
        with self._lock:
            return self._was_lost(*ticket)

    def sync_due(self) -> None:
        """Write and fsync all that was appended: what durability `interval` does from time to time.

        If the disk is full, the queue is taken back, and what was written before is fsynced. Raises LogFailed.
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
        """Remove segments that hold only records below `index`; returns how many went. The last one stays.

        Oldest first, each durably before the next: whenever a crash comes, what is left has no gap. One that cannot be
        removed (OSError) is tried again by the next call, before those behind it.
        """
        with self._lock:
            keep = max((n for n, s in enumerate(self._segments) if s.first_index <= index), default=0)
            gone = self._segments[:keep]
            del self._segments[:keep]  # in place: whoever leads may append one meanwhile, without the lock
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
        """(path, index of its first record) of each segment, oldest first."""
        with self._lock:
            return [(s.path, s.first_index) for s in self._segments]

    def close(self) -> None:
        """Write and fsync what is queued, then close. Idempotent."""
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

    # ------------------------------------------------------------------ leading; the lock is held around each

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
        """Take the queue and write it, with the lock released meanwhile."""
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
            self._failure = error  # Ctrl-C in the midst of it: what is written is not known
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
        parts = [part for index, draft in enumerate(drafts, first_index) for part in draft.encode(index, synced)]
        if parts and (self._file is None or self._file.size >= self._options.segment_bytes):
            self._roll(first_index)
        if self._file is None:
            return  # what a segment holds that is closed, is fsynced
        self._good_bytes = self._file.size
        if parts and sync:
            self._reserve(sum(map(len, parts)))
        if parts:
            self._file.write(parts)
        if sync:
            _finally(self._file.sync)

    def _reserve(self, count: int) -> None:
        """Let the file grow rarely and by much: then most fsyncs have no new size to write."""
        assert self._file is not None
        if self._file.size + count <= self._reserved_until:
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
        reuse = bool(self._segments) and self._segments[-1].first_index == first_index
        path = f"{self._folder}/{first_index:020}{_SUFFIX}"
        self._file = self._disk.create(path)
        self._reserved_until = 0
        if not reuse:
            self._segments.append(_Segment(path, first_index, 0))
        _finally(partial(self._disk.sync_folder, self._folder))

    def _close_file(self) -> None:
        """Close the segment, without what was reserved and not used."""
        assert self._file is not None
        segment = self._segments[-1]
        segment.size = self._file.size
        self._file.close()
        self._file = None
        if self._reserved_until > segment.size:
            self._disk.truncate(segment.path, segment.size)
        self._reserved_until = 0

    def _roll_back(self) -> bool:
        """Cut what a full disk let through of the queue; False if even that fails."""
        if self._file is None:
            return True
        path = self._segments[-1].path
        try:
            self._file.close()
            self._disk.truncate(path, self._good_bytes)
            self._file = self._disk.append(path)
            self._reserved_until = 0
        except OSError:
            return False
        return True


def _finally(step: Callable[[], None]) -> None:
    """A step whose failure is final, whatever its reason.

    A failed fsync may have marked pages clean that are lost; and a segment that is not closed in good order, or whose
    name is not durable, must not get a successor.
    """
    try:
        step()
    except OSError as error:
        raise OSError(errno.EIO, f"not made durable: {error.strerror}") from error
