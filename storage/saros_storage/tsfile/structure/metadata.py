"""The tail of a file: root nodes of the index, table schemas, end of the data area, bloom filter, properties.

    v4:  { table, root node }* | { table, schema }* | separator's offset | bloom | { key, value }*
    v3:  root node             |                      separator's offset | bloom

These fields are followed by their total size as int32, and by the magic.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from saros_storage.base.errors import CorruptFile, UnsupportedFile
from saros_storage.tsfile.structure.bloom import BloomFilter
from saros_storage.tsfile.structure.format import (
    FILE_BYTES_MIN,
    HEAD_BYTES,
    MAGIC,
    VERSION_3,
    VERSION_4,
    Cursor,
    Marker,
    i32,
    i64,
    uvar,
    var,
    vstr,
)
from saros_storage.tsfile.structure.index import IndexTree

#: A property that only files written by Saros have.
OWN_PROPERTY = "saros.format"
#: The properties that Saros writes: three that Apache's readers look for, and `OWN_PROPERTY`.
PROPERTIES: tuple[tuple[str, str | None], ...] = (
    ("encryptLevel", "0"),
    ("encryptType", "org.apache.tsfile.encrypt.UNENCRYPTED"),
    ("encryptKey", None),
    (OWN_PROPERTY, "1"),
)
_UNENCRYPTED = frozenset({None, "", "0"})


class FileMetadata(msgspec.Struct, frozen=True):
    """The metadata that a reader needs, apart from the index roots. The data area ends at `data_end`."""

    version: int
    data_end: int
    properties: dict[str, str | None]


def encode_metadata(tables: Sequence[tuple[str, bytes]], separator: int, bloom: BloomFilter) -> bytes:
    """Return the metadata block of a tree-model file, followed by its size and the magic."""
    body = [uvar(len(tables))]
    for table, root in tables:
        body += (vstr(table), root)
    body += (uvar(0), i64(separator), uvar(len(bloom.bits)))
    if bloom.bits:
        body += (bloom.bits, uvar(bloom.size), uvar(bloom.hashes))
    body.append(var(len(PROPERTIES)))
    for key, value in PROPERTIES:
        body += (vstr(key), vstr(value))
    block = b"".join(body)
    return block + i32(len(block)) + MAGIC


def read_metadata(file: str, data: memoryview) -> tuple[FileMetadata, IndexTree]:
    """Check the head and the tail of a file, and read its metadata. Raises CorruptFile, UnsupportedFile."""
    version = _check_ends(file, data)
    tail = len(data) - len(MAGIC) - 4
    size = int.from_bytes(data[tail : tail + 4], "big", signed=True)
    start = tail - size
    if size <= 0 or start < HEAD_BYTES:
        raise CorruptFile(file, tail, f"metadata of {size} bytes")
    cursor = Cursor(file, bytes(data[start:tail]), start)
    tree = IndexTree(file, data, start, version_3=version == VERSION_3)
    if version == VERSION_3:
        tree.add_root(None, cursor)
    else:
        for _ in range(cursor.uvar()):
            tree.add_root(cursor.name(), cursor)
        for _ in range(cursor.uvar()):
            _skip_schema(cursor)
    separator = cursor.i64()
    if not HEAD_BYTES <= separator < start or data[separator] != Marker.SEPARATOR:
        raise cursor.corrupt("the data area does not end where the metadata says")
    _skip_bloom(cursor)
    properties = {} if version == VERSION_3 else _read_properties(cursor)
    if properties.get("encryptLevel") not in _UNENCRYPTED:
        raise UnsupportedFile(file, "encryption")
    return FileMetadata(version, separator, properties), tree


def _check_ends(file: str, data: memoryview) -> int:
    if len(data) < FILE_BYTES_MIN:
        raise CorruptFile(file, 0, f"{len(data)} bytes are too few for a TsFile")
    if data[: len(MAGIC)] != MAGIC:
        raise CorruptFile(file, 0, "the file does not start with 'TsFile'")
    version = data[len(MAGIC)]
    if version not in (VERSION_3, VERSION_4):
        raise UnsupportedFile(file, f"TsFile version {version}")
    if data[-len(MAGIC) :] != MAGIC:
        raise CorruptFile(file, len(data) - len(MAGIC), "the file does not end with 'TsFile': it was never finished")
    return version


def _skip_schema(cursor: Cursor) -> None:
    """Skip a table's name and columns, which are not needed: the index lists all devices and series."""
    cursor.name()
    for _ in range(cursor.uvar()):
        cursor.istr()
        cursor.take(3)  # type, encoding, compressor
        for _ in range(cursor.i32()):
            cursor.istr()
            cursor.istr()
        cursor.i32()  # tag, field, attribute or time


def _skip_bloom(cursor: Cursor) -> None:
    """Skip the bloom filter, which is not needed: devices and series are looked up in the index."""
    if size := cursor.uvar():
        cursor.take(size)
        cursor.uvar()
        cursor.uvar()


def _read_properties(cursor: Cursor) -> dict[str, str | None]:
    # Early writers of version 4 omitted the properties.
    count = cursor.var() if cursor.rest else 0
    return {cursor.name(): cursor.vstr() for _ in range(count)}
