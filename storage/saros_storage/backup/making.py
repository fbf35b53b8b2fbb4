"""Make one backup: copy the captured files of a source one by one, then write the catalog.

    full           every file is copied, and replaces an earlier copy of the same content
    incremental    files that an earlier backup contains are neither copied again nor verified

The log is copied from the point at which the previous backup ended. If the log still has all records since that point,
every point between the two backups can be restored.

While a file is copied, it is verified against the size and checksum in its manifest; in a piece of the log, every
record is verified. After an interrupted backup, the next backup does not copy the already copied files again. Runs on
one thread.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from saros_storage.backup.catalog import Catalog, FileKey, StoredObject, key_of
from saros_storage.backup.repository import Repository
from saros_storage.backup.source import Source
from saros_storage.base.clock import Clock
from saros_storage.base.errors import CorruptFile
from saros_storage.checkpoint.checkpoint import Checkpoint, CheckpointFile, LogPiece
from saros_storage.checkpoint.checkpoint_set import CheckpointSet
from saros_storage.log.record import HEADER_BYTES, scan

#: The list of copied files is saved each time this many bytes have been copied.
_NOTED_BYTES = 256 << 20


class Progress(msgspec.Struct):
    """The progress of a backup or a restore: the files to copy and the files copied, with their sizes in bytes."""

    files: int = 0
    size: int = 0
    files_done: int = 0
    size_done: int = 0
    #: Number of files that are not copied because an earlier backup contains them.
    files_known: int = 0


class BackupRun:
    """One run of a backup; used once."""

    def __init__(
        self,
        repository: Repository,
        source: Source,
        clock: Clock,
        *,
        incremental: bool,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._repository = repository
        self._source = source
        self._clock = clock
        self._incremental = incremental
        self._on_progress = on_progress
        self.progress = Progress()
        #: The files that this backup, or an interrupted one before it, has copied.
        self._copied: dict[FileKey, StoredObject] = {}
        self._unnoted = 0

    def run(self) -> Catalog:
        """Make the backup. Raises CorruptFile (a file differs from its manifest), OSError, UserMistake 2052."""
        earlier = self._repository.catalogs_if_any()
        self._copied = self._repository.begin(earlier)
        known = dict(self._copied)
        if self._incremental:
            known |= {key_of(file): stored for catalog in earlier for file, stored in catalog.files()}
        last = next((c for c in reversed(earlier) if c.exact), None)
        try:
            frozen = self._source.create_checkpoint(None if last is None else last.reached)
            taken_ns = self._clock.now_ns()
            catalog = self._catalog(frozen, known, earlier, taken_ns, last)
        finally:
            self._source.release()
        self._repository.save(catalog)
        return catalog

    def _catalog(
        self,
        frozen: CheckpointSet,
        known: dict[FileKey, StoredObject],
        earlier: Sequence[Catalog],
        taken_ns: int,
        last: Catalog | None,
    ) -> Catalog:
        missing = [file for c in frozen.captures for file in c.files() if key_of(file) not in known]
        pieces = [piece for c in frozen.captures for piece in c.log]
        self.progress.files = len(missing) + len(pieces)
        self.progress.size = sum(f.size for f in missing) + sum(p.size for p in pieces)
        objects, last_crc32, continues = [], 0, False
        try:
            for place, capture in enumerate(frozen.captures):
                found = [self._file(place, file, known) for file in capture.files()]
                for number, piece in enumerate(capture.log, len(found)):
                    stored, crcs = self._piece(place, number, piece)
                    found.append(stored)
                    last_crc32 = crcs.get(capture.reached, last_crc32)
                    continues = continues or (last is not None and crcs.get(last.reached) == last.last_crc32)
                objects.append(tuple(found))
                _check_log(capture)
        except BaseException:
            with suppress(OSError):
                self._repository.save_partial(self._copied)
            raise
        if last is not None and frozen.exact and (continues or last.reached == 0):  # any log continues an empty log
            continues = _is_whole(frozen.captures[0].log, max(last.reached, 1))
        return Catalog(
            max((c.number for c in earlier), default=0) + 1,
            taken_ns,
            self._incremental,
            frozen.time_unit,
            frozen.time_partition_interval,
            frozen.exact,
            frozen.schema,
            tuple(replace(c, schema=b"", note=b"") for c in frozen.captures),
            tuple(objects),
            last_crc32,
            continues,
        )

    # ------------------------------------------------------------------ copying

    def _file(self, place: int, file: CheckpointFile, known: dict[FileKey, StoredObject]) -> StoredObject:
        key = key_of(file)
        if key in known:
            self.progress.files_known += 1
            return known[key]
        stored, crc32 = self._copy(self._source.read(place, file.number))
        if (stored.size, crc32) != (file.size, file.crc32):
            came = f"received {stored.size} bytes with checksum {crc32:08x}"
            where = f"{file.database}, slice {file.slice}, {file.name}"
            raise CorruptFile(where, 0, f"{came}, but the manifest says {file.size} with {file.crc32:08x}")
        self._repository.add(stored)
        known[key] = self._copied[key] = stored
        self._unnoted += stored.size
        if self._unnoted >= _NOTED_BYTES:
            self._repository.save_partial(self._copied)
            self._unnoted = 0
        return stored

    def _piece(self, place: int, number: int, piece: LogPiece) -> tuple[StoredObject, dict[int, int]]:
        """Copy a piece of the log; return its object, and the CRC-32 of each record's header, by the record's index.

        Raises CorruptFile.
        """
        kept = []

        def pieces() -> Iterable[bytes]:
            for part in self._source.read(place, number):
                kept.append(part)
                yield part

        stored, _ = self._copy(pieces())
        data = memoryview(b"".join(kept))
        found = scan(data, piece.first, piece.salt)
        count = max(piece.last - piece.first + 1, 0)
        if len(found.records) != count or found.end != piece.size or len(data) != piece.size:
            raise CorruptFile("log", found.end, f"records {piece.first} to {piece.last} were not received completely")
        self._repository.add(stored)
        crcs, position = {}, 0
        for record in found.records:
            crcs[record.index] = zlib.crc32(data[position : position + HEADER_BYTES])
            position += record.size_bytes
        return stored, crcs

    def _copy(self, pieces: Iterable[bytes]) -> tuple[StoredObject, int]:
        """Write a new object durably but do not name it yet; return its identity and its CRC-32."""
        digest, crc32, size = hashlib.sha256(), 0, 0
        file = self._repository.new_object()
        try:
            for piece in pieces:
                file.write([piece])
                digest.update(piece)
                crc32 = zlib.crc32(piece, crc32)
                size += len(piece)
                self.progress.size_done += len(piece)
                self._on_progress(self.progress)
            file.sync()
        finally:
            file.close()
        self.progress.files_done += 1
        self._on_progress(self.progress)
        return StoredObject(digest.hexdigest(), size), crc32


def _check_log(capture: Checkpoint) -> None:
    """Raise CorruptFile unless the log contains all entries after those that the files contain."""
    if capture.log and not _is_whole(capture.log, capture.index + 1) and capture.reached > capture.index:
        raise CorruptFile("log", 0, f"the records after {capture.index} were not received completely")


def _is_whole(pieces: Sequence[LogPiece], first: int) -> bool:
    """Return whether the pieces contain every record from `first` to the last one without a gap."""
    wanted = [piece for piece in pieces if piece.last >= first]
    whole = all(b.first == a.last + 1 for a, b in pairwise(wanted))
    return bool(wanted) and whole and wanted[0].first <= first
