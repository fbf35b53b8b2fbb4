"""The catalog of a backup, which lists all its parts. Each file is stored as an object, named by its SHA-256.

    saros-backup 2 5f3a90c1 812
    {"number": 3, "taken_ns": ..., "incremental": true, "captures": [...], "objects": [[...]], ...}

The first line contains the version of the format, and the checksum and length of the JSON that follows. Version 1,
which can still be read, lacks the salts of the log's pieces. Values; pure: any thread.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator

import msgspec

from saros_storage.base.errors import CorruptFile, NewerFormat
from saros_storage.checkpoint.checkpoint import Checkpoint, CheckpointFile, LogPiece, decode_capture, encode_capture

_VERSION = 2
_FIRST_LINE = re.compile(rb"saros-backup (\d{1,4}) ([0-9a-f]{8}) (\d{1,19})\n")
_SHA256 = re.compile(r"[0-9a-f]{64}")
#: The identity of a store's file: database, slice, name, size, CRC-32.
FileKey = tuple[str, int, str, int, int]


class StoredObject(msgspec.Struct, frozen=True):
    """The content of a file: its SHA-256, and its size in bytes."""

    sha256: str
    size: int


class Catalog(msgspec.Struct, frozen=True):
    """The content of one backup."""

    number: int
    #: The time at which the backup was taken, by the clock of the process that took it (ns since the epoch).
    taken_ns: int
    incremental: bool
    time_unit: str
    time_partition_interval: int
    #: True for a store, whose log can be replayed to points after the capture; False for a node of a cluster, which is
    #: restored as it was captured.
    exact: bool
    schema: bytes
    captures: tuple[Checkpoint, ...]
    #: For each capture, the objects of its files, in the order of the files' numbers.
    objects: tuple[tuple[StoredObject, ...], ...]
    #: CRC-32 of the header of the last record of this backup's log. The next backup uses it to check that its own log
    #: continues this log.
    last_crc32: int = 0
    #: True if this backup's log continues where the previous backup's log ended.
    continues: bool = False

    def files(self) -> Iterator[tuple[CheckpointFile, StoredObject]]:
        """Yield each file of a partition together with its object."""
        for capture, objects in zip(self.captures, self.objects, strict=True):
            for file in capture.files():
                yield file, objects[file.number]

    def log(self) -> Iterator[tuple[LogPiece, StoredObject]]:
        """Yield each piece of the log together with its object, oldest first."""
        for capture, objects in zip(self.captures, self.objects, strict=True):
            behind = objects[len(objects) - len(capture.log) :]
            yield from zip(capture.log, behind, strict=True)

    @property
    def size(self) -> int:
        """Total size of the backup's files in bytes."""
        return sum(stored.size for objects in self.objects for stored in objects)

    @property
    def floor(self) -> int:
        """The earliest log index to which the backup can be restored: the backup's files contain no later entries."""
        (capture,) = self.captures
        return max(capture.index, capture.schema_index, *(p.manifest.flushed for p in capture.partitions))

    @property
    def reached(self) -> int:
        """The index of the last log entry that the backup contains."""
        return max((capture.reached for capture in self.captures), default=0)


def key_of(file: CheckpointFile) -> FileKey:
    """Return the identity of a file; see `FileKey`."""
    return (file.database, file.slice, file.name, file.size, file.crc32)


def encode_catalog(catalog: Catalog) -> bytes:
    """Encode a catalog."""
    words = {
        "number": catalog.number,
        "taken_ns": catalog.taken_ns,
        "incremental": catalog.incremental,
        "time_unit": catalog.time_unit,
        "time_partition_interval": catalog.time_partition_interval,
        "exact": catalog.exact,
        "schema": catalog.schema.decode(),
        "captures": [encode_capture(capture).decode() for capture in catalog.captures],
        "objects": [[[stored.sha256, stored.size] for stored in objects] for objects in catalog.objects],
        "last_crc32": catalog.last_crc32,
        "continues": catalog.continues,
    }
    return framed(json.dumps(words, ensure_ascii=False).encode())


def framed(body: bytes) -> bytes:
    """Prefix a body with a line that contains version, checksum and length."""
    return b"saros-backup %d %08x %d\n" % (_VERSION, zlib.crc32(body), len(body)) + body


def unframed(path: str, data: bytes) -> bytes:
    """Return the body after checking its first line; the inverse of `framed`. Raises CorruptFile, NewerFormat."""
    match = _FIRST_LINE.match(data)
    if match is None:
        raise CorruptFile(path, 0, "not a backup's catalog")
    if int(match.group(1)) > _VERSION:
        raise NewerFormat(path)
    body = data[match.end() :]
    if len(body) != int(match.group(3)) or zlib.crc32(body) != int(match.group(2), 16):
        raise CorruptFile(path, match.end(), "checksum mismatch in the catalog")
    return body


def decode_catalog(path: str, data: bytes) -> Catalog:
    """Decode a catalog. Raises CorruptFile, NewerFormat."""
    body = unframed(path, data)
    try:
        words = json.loads(body)
        captures = tuple(decode_capture(str(text).encode()) for text in words["captures"])
        objects = tuple(tuple(stored_object(path, *item) for item in found) for found in words["objects"])
        made = Catalog(
            int(words["number"]),
            int(words["taken_ns"]),
            bool(words["incremental"]),
            str(words["time_unit"]),
            int(words["time_partition_interval"]),
            bool(words["exact"]),
            str(words["schema"]).encode(),
            captures,
            objects,
            int(words["last_crc32"]),
            bool(words["continues"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptFile(path, 0, f"not a backup's catalog: {error}") from error
    counts = [sum(2 * len(p.manifest.files) for p in c.partitions) + len(c.log) for c in captures]
    if counts != [len(found) for found in objects]:
        raise CorruptFile(path, 0, "the objects do not match the files")
    return made


def stored_object(path: str, sha256: object, size: object) -> StoredObject:
    """Build an object from decoded JSON.

    Raises CorruptFile unless `sha256` is a digest, since this text becomes part of a path.
    """
    if not isinstance(sha256, str) or not isinstance(size, int) or not _SHA256.fullmatch(sha256):
        raise CorruptFile(path, 0, f"invalid object name: {sha256!r}")
    return StoredObject(sha256, size)
