"""Files that clients upload in chunks for a later LOAD. A file is identified by its job and name.

    <data>/uploads/<job>/<name>.tsfile      each chunk has a checksum; `finish` checks that of the whole file

    receive    append a chunk; a repeated or early chunk is ignored; returns the bytes received up to then
    finish     check the complete file, and return its path for LOAD
    discard    end a job, loaded or abandoned: its files are removed, and later chunks are refused

When a job begins, each job that has been inactive for an hour is removed. When the process starts, all jobs are
removed. Uploads are not durable: a client that did not learn the outcome of its LOAD uploads its files again.

Thread-safe; the chunks of one job are stored one at a time.
"""

from __future__ import annotations

import os
import re
import threading
import zlib
from collections import deque

import msgspec

from saros_storage.base.clock import Clock
from saros_storage.base.errors import DiskFull, StorageError
from saros_storage.folder.layout import portable_name
from saros_storage.io.disk import FULL_ERRNOS, Disk

_FOLDER = "uploads"
_NAME = re.compile(r"[0-9A-Za-z_-]{1,100}")
_LEASE_NS = 3_600_000_000_000
#: The maximum number of concurrent jobs, and the maximum number of files in a job. Each task of a job uploads a few
#: files.
_JOBS_MAX, _FILES_MAX = 256, 100_000
#: The number of ended jobs whose names are remembered, so that their late chunks are refused. If a task outlives its
#: job, its chunks arrive shortly after the job's end.
_OVER_MAX = 10_000


class UploadRefused(StorageError):
    """The chunk or the file is refused: it is damaged, or its job or name is not valid."""

    code = 2070


class _Part(msgspec.Struct):
    """The received part of a file."""

    size: int = 0
    crc32: int = 0


class _Job(msgspec.Struct):
    """A job, and the received parts of its files by name."""

    touched_ns: int
    parts: dict[str, _Part] = msgspec.field(default_factory=dict)
    lock: threading.Lock = msgspec.field(default_factory=threading.Lock)
    over: bool = False


class Uploads:
    """The uploads of a node, in its data folder `folder`."""

    def __init__(self, folder: str, disk: Disk, clock: Clock) -> None:
        #: The folder from which LOAD may read.
        self.folder = os.path.join(folder, _FOLDER)
        self._disk = disk
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._over: deque[str] = deque(maxlen=_OVER_MAX)
        disk.remove_tree(self.folder)

    def receive(self, job: str, name: str, offset: int, crc32: int, data: bytes | memoryview) -> int:
        """Append a chunk to a file; return the new size of the file. Raises UploadRefused, DiskFull, StorageError."""
        if zlib.crc32(data) != crc32:
            raise UploadRefused(f"the chunk of {name} at {offset} arrived with another checksum: send the file again")
        found = self._job(job, name)
        with found.lock:
            self._check_open(job, found)
            if name not in found.parts and len(found.parts) >= _FILES_MAX:
                raise UploadRefused(f"job {job} has more than {_FILES_MAX} files: divide them among several jobs")
            part = found.parts.setdefault(name, _Part())
            if offset == part.size:
                self._append(job, name, part, data)
            return part.size

    def finish(self, job: str, name: str, size: int, crc32: int) -> str:
        """Check a complete file, and return its path. If the file is damaged, remove it; raises UploadRefused."""
        found = self._job(job, name)
        with found.lock:
            self._check_open(job, found)
            part = found.parts.get(name, _Part())
            if (part.size, part.crc32) != (size, crc32):
                found.parts.pop(name, None)
                if self._disk.exists(self._path(job, name)):
                    self._disk.remove(self._path(job, name))
                raise UploadRefused(
                    f"{name} of job {job} has {part.size} bytes with checksum {part.crc32:08x}, not {size} with"
                    f" {crc32:08x}: send it again",
                )
            return self._path(job, name)

    def received(self, job: str, name: str) -> tuple[str, int]:
        """Return the path and the size of the received part of a file. Raises UploadRefused if nothing was received."""
        found = self._job(job, name)
        with found.lock:
            self._check_open(job, found)
            if name not in found.parts:
                raise UploadRefused(f"nothing of {name} of job {job} was received: send it first")
            return self._path(job, name), found.parts[name].size

    def discard(self, job: str) -> None:
        """End a job and remove its files. Idempotent. Raises UploadRefused (invalid name), OSError."""
        self._check_name(job)
        with self._lock:
            found = self._jobs.pop(job, None)
            self._over.append(job)
        if found is not None:
            self._remove(job, found)

    def _job(self, job: str, name: str) -> _Job:
        self._check_name(job)
        self._check_name(name)
        now = self._clock.monotonic_ns()
        with self._lock:
            if job in self._over:
                raise UploadRefused(_ended(job))
            stale = {} if job in self._jobs else self._stale(now)
            found = self._jobs.get(job)
            if found is None:
                if len(self._jobs) >= _JOBS_MAX:
                    raise UploadRefused(f"{_JOBS_MAX} jobs are uploading files: try again later")
                found = self._jobs[job] = _Job(now)
            found.touched_ns = now
        for name_, old in stale.items():
            self._remove(name_, old)
        return found

    def _stale(self, now: int) -> dict[str, _Job]:
        """Remove the jobs without recent activity from the table, and return them. With the lock held."""
        stale = {name: job for name, job in self._jobs.items() if now - job.touched_ns >= _LEASE_NS}
        for name in stale:
            del self._jobs[name]
            self._over.append(name)
        return stale

    def _append(self, job: str, name: str, part: _Part, data: bytes | memoryview) -> None:
        path = self._path(job, name)
        try:
            if not part.size:
                self._disk.make_folder(os.path.dirname(path))
            file = self._disk.append(path) if part.size else self._disk.create(path)
            try:
                file.write([data])
            finally:
                file.close()
        except OSError as error:
            if part.size and self._disk.exists(path):
                self._disk.truncate(path, part.size)
            if error.errno in FULL_ERRNOS:
                raise DiskFull(f"no space left for {name} of job {job}") from error
            raise StorageError(f"{path} cannot be written: {error}") from error
        part.size += len(data)
        part.crc32 = zlib.crc32(data, part.crc32)

    def _remove(self, job: str, found: _Job) -> None:
        with found.lock:
            found.over = True
            self._disk.remove_tree(os.path.join(self.folder, portable_name(job)))

    def _path(self, job: str, name: str) -> str:
        return os.path.join(self.folder, portable_name(job), f"{portable_name(name)}.tsfile")

    def _check_open(self, job: str, found: _Job) -> None:
        if found.over:
            raise UploadRefused(_ended(job))

    @staticmethod
    def _check_name(name: str) -> None:
        """Raise UploadRefused if a name cannot be a part of a path."""
        if not _NAME.fullmatch(name):
            raise UploadRefused(f"{name[:100]!r} is not a valid name of a job or of a file of one")


def _ended(job: str) -> str:
    return f"job {job} has ended, and accepts no more files: begin another one"
