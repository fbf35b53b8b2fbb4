"""Records of the log as bytes, and finding where a segment's good records end.

    u32 payload bytes | u32 crc32 of the rest | u64 index | u32 group | u32 kind | payload, padded to 8

Little-endian. What a payload aligns to 8 bytes is aligned in a mapped segment too.
Indices of a log rise by one. A segment that a crash cut short ends in anything: half a record, zeroes, old bytes. The
first record that does not hold ends the scan; if a good record follows right behind it, the segment is not cut short
but damaged in its middle, and that is an error, not an end.

Pure: any thread.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

_HEADER = struct.Struct("<IIQII")
_CHECKED = struct.Struct("<QII")
HEADER_BYTES = _HEADER.size
_PADDING = tuple(bytes(n) for n in range(8))
#: A longer payload is refused when it is written, so a longer length is damage when it is read.
PAYLOAD_BYTES_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class Record:
    """One entry: what it is, is known to whoever gave it a `kind`; `group` is the Raft group it belongs to."""

    index: int
    group: int
    kind: int
    payload: memoryview

    @property
    def size_bytes(self) -> int:
        """What it takes in its segment, to the byte where the next one begins."""
        return _span(len(self.payload))


@dataclass(frozen=True, slots=True)
class Scan:
    """A segment's good records, where they end, and whether a good record follows the bad one."""

    records: list[Record]
    end: int
    damaged: bool


def encode_record(index: int, group: int, kind: int, payload: Sequence[bytes | memoryview]) -> list[bytes | memoryview]:
    """The record whose payload is those parts, which are not copied."""
    crc = zlib.crc32(_CHECKED.pack(index, group, kind))
    size = 0
    for part in payload:
        crc = zlib.crc32(part, crc)
        size += len(part)
    assert size <= PAYLOAD_BYTES_MAX
    return [_HEADER.pack(size, crc, index, group, kind), *payload, _PADDING[-size & 7]]


def _span(size: int) -> int:
    """Bytes of a record with a payload of `size`."""
    return HEADER_BYTES + (size + 7 & -8)


def scan(data: memoryview, first_index: int) -> Scan:
    """Read a segment whose first record has `first_index`."""
    records: list[Record] = []
    position = 0
    while (record := _record_at(data, position)) is not None and record.index == first_index + len(records):
        records.append(record)
        position += record.size_bytes
    return Scan(records, position, _good_record_follows(data, position))


def _record_at(data: memoryview, position: int) -> Record | None:
    if position + HEADER_BYTES > len(data):
        return None
    size, crc, index, group, kind = _HEADER.unpack_from(data, position)
    start = position + HEADER_BYTES
    if size > PAYLOAD_BYTES_MAX or position + _span(size) > len(data):
        return None
    payload = data[start : start + size]
    if zlib.crc32(payload, zlib.crc32(_CHECKED.pack(index, group, kind))) != crc:
        return None
    return Record(index, group, kind, payload)


def _good_record_follows(data: memoryview, position: int) -> bool:
    if position + HEADER_BYTES > len(data):
        return False
    behind = position + _span(int(_HEADER.unpack_from(data, position)[0]))
    return behind < len(data) and _record_at(data, behind) is not None
