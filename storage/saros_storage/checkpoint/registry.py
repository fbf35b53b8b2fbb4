"""Captures on lease: hard links to their files, which remain until the lease ends.

    put        links the files of partitions, and segments of the log     id: 16 random bytes
    listing    the capture, as bytes
    read       a piece of a file, by its number; this renews the lease
    release    or nobody reads for its lease, or the process starts anew: the links go

A read of a linked segment returns only the requested records, even if the log is still appending to that file.

Thread-safe.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from saros_storage.base.clock import Clock
from saros_storage.base.errors import CorruptFile, StorageError
from saros_storage.checkpoint.checkpoint import Checkpoint, LogPiece, encode_capture
from saros_storage.folder.layout import RESOURCE
from saros_storage.io.disk import Disk
from saros_storage.log.record import scan
from saros_storage.partition.partition_files import file_path

#: Bytes of an answer at most.
PIECE_BYTES = 2 << 20
#: By default; a puller on a slow line asks more often than that.
CAPTURED_NS = 600_000_000_000


class NoSuchCheckpoint(StorageError):
    """It was not made here, or has gone."""

    def __init__(self) -> None:
        super().__init__("the capture does not exist or was released; request a new one", code=2003)


@dataclass(slots=True)
class _Leased:
    capture: Checkpoint
    folder: str
    #: Of each file: the first byte that belongs to the capture, and the one behind; None: to the end.
    bounds: list[tuple[int, int | None]]
    touched_ns: int
    lease_ns: int
    #: First records of linked segments that are not cut to pieces yet, and the first record that is wanted.
    uncut: tuple[int, ...]
    since: int


class CheckpointRegistry:
    """See the module; links lie in `folder`, which is emptied first."""

    def __init__(self, folder: str, disk: Disk, clock: Clock) -> None:
        self._folder = folder
        self._disk = disk
        self._clock = clock
        self._lock = threading.Lock()
        #: Held while segments are looked through.
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
        """Link everything; whoever calls keeps the files from going meanwhile (`Flusher.folders`).

        `segments`: paths, and indices of their first records; of these, records from `since` to `capture.reached` are
        wanted. Raises CorruptFile if a file is missing, OSError.
        """
        self.expire()
        id_ = secrets.token_bytes(16)
        folder = os.path.join(self._folder, id_.hex())
        try:
            count = self._link_all(capture, segments, folder)
        except BaseException:
            self._disk.remove_tree(folder)
            raise
        firsts = tuple(first for _, first in segments)
        bounds: list[tuple[int, int | None]] = [(0, None)] * (count - len(firsts))
        with self._lock:
            self._kept[id_] = _Leased(capture, folder, bounds, self._clock.monotonic_ns(), lease_ns, firsts, since)
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
        """What was captured; looks through the log that came with it. Raises NoSuchCheckpoint."""
        kept = self._find(id_)
        with self._cutting:
            if kept.uncut:
                pieces = [self._cut(kept, first) for first in kept.uncut]
                kept.capture, kept.uncut = replace(kept.capture, log=tuple(pieces)), ()
        return kept.capture

    def folder_of(self, id_: bytes) -> str:
        """Where its files lie, by number, for who is in this process. Raises NoSuchCheckpoint."""
        return self._find(id_).folder

    def listing(self, id_: bytes) -> bytes:
        """The capture's bytes. Raises NoSuchCheckpoint."""
        return encode_capture(self.capture(id_))

    def _cut(self, kept: _Leased, first: int) -> LogPiece:
        """What a linked segment holds of the records that are wanted; notes where they lie."""
        data = self._disk.map(os.path.join(kept.folder, str(len(kept.bounds))))
        begin = end = 0
        last = first - 1
        for record in scan(data, first).records:
            if record.index > kept.capture.reached:
                break
            end += record.size_bytes
            last = record.index
            if last < kept.since:
                begin = end
        kept.bounds.append((begin, end))
        return LogPiece(max(first, kept.since), last, end - begin)

    def _find(self, id_: bytes) -> _Leased:
        """A capture, whose lease begins anew."""
        with self._lock:
            kept = self._kept.get(id_)
            if kept is None:
                raise NoSuchCheckpoint
            kept.touched_ns = self._clock.monotonic_ns()
            return kept

    def read(self, id_: bytes, number: int, offset: int, count: int = 1) -> bytes:
        """At most PIECE_BYTES of `count` files, one behind the other; fewer: they end there. `offset`: in the first.

        Raises NoSuchCheckpoint, for a number that it lacks too.
        """
        kept = self._find(id_)
        if not 0 <= number < number + count <= len(kept.bounds):
            raise NoSuchCheckpoint
        parts, room = [], PIECE_BYTES
        for place in range(number, number + count):
            start, stop = kept.bounds[place]
            part = self._disk.map(os.path.join(kept.folder, str(place)))[start:stop][offset : offset + room]
            parts.append(bytes(part))  # a file that is mapped stays open
            room -= len(part)
            offset = 0
            if not room:
                break
        return b"".join(parts)

    def pieces(self, id_: bytes, number: int, offset: int = 0) -> Iterator[bytes]:
        """A file from an offset on, in pieces. Raises NoSuchCheckpoint."""
        while piece := self.read(id_, number, offset):
            yield piece
            offset += len(piece)
            if len(piece) < PIECE_BYTES:
                return

    def release(self, id_: bytes) -> None:
        """Let go of a capture; one that is not here is not an error."""
        with self._lock:
            kept = self._kept.pop(id_, None)
        if kept is not None:
            self._disk.remove_tree(kept.folder)

    def expire(self) -> None:
        """Let go of captures that nobody has asked for in a while."""
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            gone = [id_ for id_, kept in self._kept.items() if now_ns - kept.touched_ns > kept.lease_ns]
        for id_ in gone:
            self.release(id_)
