"""Keep captures on lease: hard links to the files of a capture exist until its lease ends.

    put        links the files of partitions, and segments of the log     id: 16 random bytes
    listing    the capture, encoded
    read       a piece of a file, by its number; renews the lease
    release    removes the links, which are also removed when the lease ends, and at the next start of the process

The lease ends if no reader renews it. A read of a linked segment returns only the captured records, even if the log
still appends records to that file.

Thread-safe.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from saros_storage.base.clock import Clock
from saros_storage.base.errors import CorruptFile, StorageError
from saros_storage.checkpoint.checkpoint import Checkpoint, LogPiece, encode_capture
from saros_storage.folder.layout import RESOURCE
from saros_storage.io.disk import Disk
from saros_storage.log.record import scan
from saros_storage.log.segment_name import SegmentName
from saros_storage.partition.partition_files import file_path

#: Maximum number of bytes that one `read` returns.
PIECE_BYTES = 2 << 20
#: Default duration of a lease; even a client with a slow connection reads more often than that.
CAPTURED_NS = 600_000_000_000


class NoSuchCheckpoint(StorageError):
    """The capture was not taken by this process, was released, or has expired."""

    def __init__(self) -> None:
        super().__init__("the capture does not exist or was released; request a new one", code=2003)


class _Leased(msgspec.Struct):
    capture: Checkpoint
    folder: str
    #: For each file, the start and stop of the bytes that belong to the capture; stop None stands for the file's end.
    bounds: list[tuple[int, int | None]]
    touched_ns: int
    lease_ns: int
    #: Linked segments that are not scanned yet; `since` is the index of the first record that belongs to the capture.
    uncut: tuple[SegmentName, ...]
    since: int


class CheckpointRegistry:
    """The captures of a process; their links are in `folder`, which is emptied first."""

    def __init__(self, folder: str, disk: Disk, clock: Clock) -> None:
        self._folder = folder
        self._disk = disk
        self._clock = clock
        self._lock = threading.Lock()
        #: Held while segments are scanned.
        self._cutting = threading.Lock()
        self._kept: dict[bytes, _Leased] = {}
        disk.remove_tree(folder)

    def put(
        self,
        capture: Checkpoint,
        segments: Sequence[tuple[str, int]] = (),
        since: int = 0,
        lease_ns: int = CAPTURED_NS,
    ) -> bytes:
        """Link all files and return the capture's id.

        The caller ensures that no file is removed in the meantime (`Flusher.folders`). `segments` are paths of log
        segments and the indexes of their first records. The capture includes their records from `since` to
        `capture.reached`. Raises CorruptFile if a file is missing, OSError.
        """
        self.expire()
        id_ = secrets.token_bytes(16)
        folder = os.path.join(self._folder, id_.hex())
        try:
            count = self._link_all(capture, segments, folder)
        except BaseException:
            self._disk.remove_tree(folder)
            raise
        names = tuple(SegmentName.of(path) for path, _ in segments)
        bounds: list[tuple[int, int | None]] = [(0, None)] * (count - len(names))
        with self._lock:
            self._kept[id_] = _Leased(capture, folder, bounds, self._clock.monotonic_ns(), lease_ns, names, since)
        return id_

    def _link_all(self, capture: Checkpoint, segments: Sequence[tuple[str, int]], folder: str) -> int:
        self._disk.make_folder(folder)
        paths = [file_path(p.folder, entry) for p in capture.partitions for entry in p.manifest.files]
        sources = [source for path in paths for source in (path, path + RESOURCE)] + [path for path, _ in segments]
        for number, source in enumerate(sources):
            try:
                self._disk.link(source, os.path.join(folder, str(number)))
            except FileNotFoundError as error:
                raise CorruptFile(source, 0, "missing") from error
        return len(sources)

    def capture(self, id_: bytes) -> Checkpoint:
        """Return the capture, after scanning its log segments if that has not been done yet.

        Raises NoSuchCheckpoint.
        """
        kept = self._find(id_)
        with self._cutting:
            if kept.uncut:
                pieces = [self._cut(kept, name) for name in kept.uncut]
                kept.capture, kept.uncut = replace(kept.capture, log=tuple(pieces)), ()
        return kept.capture

    def folder_of(self, id_: bytes) -> str:
        """Return the folder of the capture's files, named by number, for use in this process.

        Raises NoSuchCheckpoint.
        """
        return self._find(id_).folder

    def listing(self, id_: bytes) -> bytes:
        """Return the encoded capture. Raises NoSuchCheckpoint."""
        return encode_capture(self.capture(id_))

    def _cut(self, kept: _Leased, name: SegmentName) -> LogPiece:
        """Find the captured records in a linked segment; return them as a piece, and add their range to `bounds`."""
        data = self._disk.map(os.path.join(kept.folder, str(len(kept.bounds))))
        begin = end = 0
        last = name.first_index - 1
        for record in scan(data, name.first_index, name.salt).records:
            if record.index > kept.capture.reached:
                break
            end += record.size_bytes
            last = record.index
            if last < kept.since:
                begin = end
        kept.bounds.append((begin, end))
        return LogPiece(max(name.first_index, kept.since), last, end - begin, name.salt)

    def _find(self, id_: bytes) -> _Leased:
        """Return a capture and renew its lease."""
        with self._lock:
            kept = self._kept.get(id_)
            if kept is None:
                raise NoSuchCheckpoint
            kept.touched_ns = self._clock.monotonic_ns()
            return kept

    def read(self, id_: bytes, number: int, offset: int, count: int = 1) -> bytes:
        """Return PIECE_BYTES of `count` consecutive files, or fewer at the end of the last file.

        The bytes begin at `offset` in the first file. Raises NoSuchCheckpoint if the capture or a file with one of the
        numbers does not exist.
        """
        kept = self._find(id_)
        if not 0 <= number < number + count <= len(kept.bounds):
            raise NoSuchCheckpoint
        parts, room = [], PIECE_BYTES
        for place in range(number, number + count):
            start, stop = kept.bounds[place]
            part = self._disk.map(os.path.join(kept.folder, str(place)))[start:stop][offset : offset + room]
            parts.append(bytes(part))  # copied, because a mapped file would stay open
            room -= len(part)
            offset = 0
            if not room:
                break
        return b"".join(parts)

    def pieces(self, id_: bytes, number: int, offset: int = 0) -> Iterator[bytes]:
        """Yield a file from an offset on, in pieces. Raises NoSuchCheckpoint."""
        while piece := self.read(id_, number, offset):
            yield piece
            offset += len(piece)
            if len(piece) < PIECE_BYTES:
                return

    def release(self, id_: bytes) -> None:
        """Release a capture. Idempotent."""
        with self._lock:
            kept = self._kept.pop(id_, None)
        if kept is not None:
            self._disk.remove_tree(kept.folder)

    def expire(self) -> None:
        """Release the captures whose lease has ended."""
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            gone = [id_ for id_, kept in self._kept.items() if now_ns - kept.touched_ns > kept.lease_ns]
        for id_ in gone:
            self.release(id_)
