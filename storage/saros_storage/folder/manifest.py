"""A partition's manifest: the live files with their ranks, and the prefix of the log that they contain.

    saros-manifest 1 5f3a90c1 812
    {"database": "root.a", "created": 4, "flushed": 90, "files": [...], "tombstones": [...], "set_aside": [...]}

The first line contains the format version, and the checksum and the length of the rest, which is JSON. The file is
replaced atomically: a partition consists of exactly the content of its manifest, whatever other files are in the
partition's folder. Pure: any thread.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Collection

import msgspec
from msgspec.structs import replace

from saros_storage.base.errors import CorruptFile, NewerFormat
from saros_storage.scan.reading import TimeRange
from saros_storage.scan.snapshot import Rank, Tombstone

_VERSION = 1
_FIRST_LINE = re.compile(rb"saros-manifest (\d{1,4}) ([0-9a-f]{8}) (\d{1,19})\n")


class FileEntry(msgspec.Struct, frozen=True):
    """A live TsFile: its name within `seq/` or `unseq/`, its rank, size and checksum, and its resource's checksum."""

    name: str
    sequence: bool
    rank: Rank
    size: int
    crc32: int
    resource_crc32: int


class Manifest(msgspec.Struct, frozen=True):
    """The content of a partition's manifest."""

    #: The database of the partition (the folder's name may be shortened).
    database: str
    #: Log index of the write that created the partition: deletions of its database at lower indices do not affect it.
    created: int
    #: Files and tombstones contain the effect of all log entries up to this index on the partition.
    flushed: int = 0
    #: Lowest rank first.
    files: tuple[FileEntry, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    #: Name and reason of each damaged file.
    set_aside: tuple[tuple[str, str], ...] = ()
    #: Version of the partition table at which the partition moved to this node; data that is older has a lower
    #: `Rank.generation`.
    generation: int = 0
    #: `files` includes all data that the partition has received from other nodes up to this generation.
    arrived: int = 0

    @property
    def version_max(self) -> int:
        """The highest version of a file or tombstone; 0 if there is neither."""
        ranks = [f.rank for f in self.files] + [t.rank for t in self.tombstones]
        return max((r.version for r in ranks), default=0)

    def with_files(self, added: tuple[FileEntry, ...], flushed: int) -> Manifest:
        """Return the manifest with the files `added`, which contain the log up to index `flushed`."""
        files = tuple(sorted((*self.files, *added), key=lambda f: (f.rank, not f.sequence)))
        return replace(self, files=files, flushed=max(self.flushed, flushed))

    def with_merged(
        self, gone: Collection[tuple[str, bool]], added: tuple[FileEntry, ...], tombstones: tuple[Tombstone, ...]
    ) -> Manifest:
        """Return the manifest with the files `gone`, given as (name, sequence), replaced by the files `added`."""
        left = replace(self, files=tuple(f for f in self.files if (f.name, f.sequence) not in gone))
        return replace(left.with_files(added, self.flushed), tombstones=tombstones)

    def without_file(self, name: str, *, sequence: bool, reason: str) -> Manifest:
        """Return the manifest with one damaged file set aside."""
        files = tuple(f for f in self.files if (f.name, f.sequence) != (name, sequence))
        return replace(self, files=files, set_aside=(*self.set_aside, (name, reason)))


def encode_manifest(manifest: Manifest) -> bytes:
    """Encode a manifest."""
    words = {
        "database": manifest.database,
        "created": manifest.created,
        "flushed": manifest.flushed,
        "files": [[f.name, f.sequence, *f.rank, f.size, f.crc32, f.resource_crc32] for f in manifest.files],
        "tombstones": [[t.pattern, t.time.start, t.time.end, *t.rank] for t in manifest.tombstones],
        "set_aside": [list(item) for item in manifest.set_aside],
        "generation": manifest.generation,
        "arrived": manifest.arrived,
    }
    body = json.dumps(words, ensure_ascii=False, indent=1).encode()
    return b"saros-manifest %d %08x %d\n" % (_VERSION, zlib.crc32(body), len(body)) + body


def decode_manifest(path: str, data: bytes) -> Manifest:
    """Decode a manifest. Raises CorruptFile, NewerFormat."""
    match = _FIRST_LINE.match(data)
    if match is None:
        raise CorruptFile(path, 0, "not a manifest")
    version, crc, size = int(match.group(1)), int(match.group(2), 16), int(match.group(3))
    if version > _VERSION:
        raise NewerFormat(path, f"manifest format {version}")
    body = data[match.end() :]
    if len(body) != size or zlib.crc32(body) != crc:
        raise CorruptFile(path, match.end(), "checksum mismatch in the manifest")
    try:
        words = json.loads(body)
        return Manifest(
            str(words["database"]),
            int(words["created"]),
            int(words["flushed"]),
            tuple(FileEntry(name, seq, Rank(g, v), *sums) for name, seq, g, v, *sums in words["files"]),
            tuple(Tombstone(p, TimeRange(start, end), Rank(g, v)) for p, start, end, g, v in words["tombstones"]),
            tuple((name, reason) for name, reason in words["set_aside"]),
            int(words["generation"]),
            int(words["arrived"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFile(path, match.end(), f"not a manifest: {error}") from error
