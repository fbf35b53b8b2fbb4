"""A capture (or checkpoint): the content of a region at one moment, and its guarantees.

    entries of the log   ... 41 42 43 | 44 45 46 | 47        index 43, reached 46
    chosen partitions    contain all of ... 43, perhaps some of 44 45 46, nothing of 47
    log (of a store)     .............. | 44 45 46           replaying the log adds the missing entries

- All log entries up to `index` that concern the chosen partitions are in the manifests' files and tombstones. A caller
  that needs the state at exactly one index either applies no entries during the capture (then `index` equals
  `reached`), or also captures the log after `index`.
- Chosen partitions are flushed only if they have unflushed entries; entries may be applied in the meantime.
- Files are hard links, so neither compaction nor a deletion changes them; a manifest lists their names, sizes and
  checksums.
- `schema` is the region's complete schema tree with its TTL rules, as of entry `schema_index`.
- Files are numbered in this order: for each partition and each entry of its manifest, the TsFile and its resource; then
  the pieces of the log. Requests identify a file by this number, never by a path.

Values; pure: any thread.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from saros_storage.base.errors import CorruptFile
from saros_storage.folder.layout import RESOURCE, FileName, kind_folder
from saros_storage.folder.manifest import FileEntry, Manifest, decode_manifest, encode_manifest
from saros_storage.log.segment_name import SALT_BITS
from saros_storage.scan.snapshot import Rank


class CheckpointFile(msgspec.Struct, frozen=True):
    """A file to copy: `name` is relative to its partition's folder (`seq/17-1-0-0.tsfile`)."""

    number: int
    database: str
    slice: int
    name: str
    size: int
    crc32: int
    rank: Rank


@dataclass(frozen=True, slots=True)
class CheckpointPartition:
    """A captured partition; sizes in bytes."""

    slice: int
    manifest: Manifest
    #: The size of each file's resource, in the order of the manifest's files.
    resource_sizes: tuple[int, ...]
    #: The partition's folder; known only in the process that took the capture.
    folder: str = field(default="", compare=False)

    def files(self, number: int) -> Iterator[CheckpointFile]:
        """Yield the partition's files, numbered from `number` on."""
        database = self.manifest.database
        for entry, size in zip(self.manifest.files, self.resource_sizes, strict=True):
            name = os.path.join(kind_folder(sequence=entry.sequence), entry.name)
            yield CheckpointFile(number, database, self.slice, name, entry.size, entry.crc32, entry.rank)
            yield CheckpointFile(
                number + 1, database, self.slice, name + RESOURCE, size, entry.resource_crc32, entry.rank
            )
            number += 2


class LogPiece(msgspec.Struct, frozen=True):
    """Records `first` to `last` of one segment; they take `size` bytes, and each record contains its checksum."""

    first: int
    last: int
    size: int
    #: Salt of the segment, or 0 if it has none. Captures of earlier versions lack this field.
    salt: int = 0


class Checkpoint(msgspec.Struct, frozen=True):
    """A capture of one region; `note` contains data that the region's owner adds."""

    index: int
    reached: int
    schema_index: int
    schema: bytes
    partitions: tuple[CheckpointPartition, ...] = ()
    note: bytes = b""
    #: Oldest first. All records after `index` are present, but some of the older records may be missing.
    log: tuple[LogPiece, ...] = ()

    def files(self) -> Iterator[CheckpointFile]:
        """Yield all files of partitions, numbered from 0; the pieces of the log have the numbers after them."""
        for number, partition in self.numbered():
            yield from partition.files(number)

    def numbered(self) -> Iterator[tuple[int, CheckpointPartition]]:
        """Yield the partitions, each after the number of its first file."""
        number = 0
        for partition in self.partitions:
            yield number, partition
            number += 2 * len(partition.manifest.files)


def encode_capture(capture: Checkpoint) -> bytes:
    """Encode a capture."""
    words = {
        "index": capture.index,
        "reached": capture.reached,
        "schema_index": capture.schema_index,
        "schema": capture.schema.decode(),
        "partitions": [[p.slice, encode_manifest(p.manifest).decode(), p.resource_sizes] for p in capture.partitions],
        "note": capture.note.decode(),
        "log": [[piece.first, piece.last, piece.size, piece.salt] for piece in capture.log],
    }
    return json.dumps(words, ensure_ascii=False).encode()


def decode_capture(data: bytes) -> Checkpoint:
    """Decode a capture that another process has sent. Raises CorruptFile."""
    try:
        words = json.loads(data)
        partitions = [
            CheckpointPartition(int(number), decode_manifest("capture", str(text).encode()), tuple(map(int, sizes)))
            for number, text, sizes in words["partitions"]
        ]
        found = Checkpoint(
            int(words["index"]),
            int(words["reached"]),
            int(words["schema_index"]),
            str(words["schema"]).encode(),
            tuple(partitions),
            str(words["note"]).encode(),
            tuple(LogPiece(*map(int, piece)) for piece in words["log"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptFile("capture", 0, f"invalid capture: {error}") from error
    if not all(0 <= piece.salt < 1 << SALT_BITS for piece in found.log):
        raise CorruptFile("capture", 0, "a salt of the log is out of range")
    for partition in found.partitions:
        if len(partition.resource_sizes) != len(partition.manifest.files):
            raise CorruptFile("capture", 0, "the sizes do not match the files")
        for entry in partition.manifest.files:
            check_name(entry)
    return found


def check_name(entry: FileEntry) -> None:
    """Raise CorruptFile unless the name has the form of a TsFile's name: it becomes part of a path."""
    if FileName.parse(entry.name) is None:
        raise CorruptFile("capture", 0, f"invalid file name: {entry.name!r}")
