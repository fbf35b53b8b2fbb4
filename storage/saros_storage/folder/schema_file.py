"""`meta/schema`: the schema tree up to a log index, so that the log before that index can be removed.

    saros-schema 2 <crc32> <bytes> <log index>        then the tree as `SchemaTree.dump` writes it

The checksum covers the tree and then the log index. In version 1, which can still be read, it covers only the tree.
"""

from __future__ import annotations

import re
import zlib

from saros_storage.base.errors import CorruptFile, NewerFormat
from saros_storage.folder.layout import confirm, write_durably
from saros_storage.io.disk import Disk
from saros_storage.schema import SchemaTree

_VERSION = 2
_FIRST_LINE = re.compile(rb"saros-schema (\d{1,4}) ([0-9a-f]{8}) (\d{1,19}) (\d{1,19})\n")


def save_schema(disk: Disk, path: str, dump: bytes, index: int) -> None:
    """Replace the file durably."""
    head = b"saros-schema %d %08x %d %d\n" % (_VERSION, zlib.crc32(b"%d" % index, zlib.crc32(dump)), len(dump), index)
    write_durably(disk, path, head + dump)


def load_schema(disk: Disk, path: str) -> tuple[SchemaTree, int]:
    """Load the tree and its log index; without a file, return an empty tree and 0. Raises CorruptFile, NewerFormat."""
    if not disk.exists(path):
        return SchemaTree(), 0
    confirm(disk, path)
    data = bytes(disk.map(path))
    match = _FIRST_LINE.match(data)
    if match is None:
        raise CorruptFile(path, 0, "not a schema file")
    version = int(match.group(1))
    if version > _VERSION:
        raise NewerFormat(path)
    dump = data[match.end() :]
    crc = zlib.crc32(b"" if version == 1 else match.group(4), zlib.crc32(dump))
    if len(dump) != int(match.group(3)) or crc != int(match.group(2), 16):
        raise CorruptFile(path, match.end(), "checksum mismatch in the schema")
    return SchemaTree.load(dump), int(match.group(4))
