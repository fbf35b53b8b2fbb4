"""Records of the log as bytes, and the search for the end of a segment's good records.

    u32 payload bytes | u32 crc32 | u48 index | u16 check | u32 group | u16 kind | u16 unsynced | payload, padded to 8

Integers are little-endian. `crc32` covers, in this order, the payload, u32 payload bytes, u64 index, u32 group, u16
kind and u16 unsynced; `check` covers the same fields without the payload, see `_check`. Both depend on the segment's
salt, see `segment_name`. Data that is aligned to 8 bytes within a payload is aligned in a mapped segment too. Indexes
of records are consecutive.

After a power cut, some file systems (ext4 with `data=writeback`) show the blocks of removed files at the end of a file
that was growing. Records in such blocks, even for the same place, have another salt. They are neither records of this
segment nor evidence of damage to it.

`unsynced` is one more than the number of earlier records that were not fsynced when this record was written (65535
means: at least that many). Thus all records up to `index - unsynced` were fsynced by that time. If a record is bad, so
that reading ends there, the `unsynced` of later records decides what the damage means:

    power cut     7 8 | 9 #### 11                 9, 10 and 11 were written at once, and 10 reached the disk in part
                        unsynced: 1 2 3           11 says: only 8 was fsynced. 10 was never acknowledged: a torn tail
    damage        7 8 9 #### 11                   11 was written when 10 was fsynced: it may have been acknowledged
                  unsynced: 1 1 1 1 1

    A bad record is a torn tail, unless a good record after it says that it was fsynced; then the segment is damaged.

A power cut may keep any of the blocks that were not fsynced, in any order. Everything after a bad record is therefore
searched for such evidence, not only the place where the next record should be. A bad record whose `check` is correct is
skipped as a whole, since its payload might contain bytes that look like records. A good record with `unsynced` 65535
leaves open whether a bad record before it was fsynced. But such a record occurs only after 65534 records were written
without a fsync, which never happens with durability `fsync`.

Segments of earlier versions have no salt (their salt is 0), so that leftovers of removed segments count as their
records. In the oldest segments, all records are old records: their `check` and `unsynced` are 0, and their crc32 covers
u64 index, u32 group, u32 kind and the payload. An old record directly after a bad record always means damage.

A process that needs only a few records of another process's log reads only the `heads` of the records. A record is
intact if the head of a later record says that it was fsynced; `whole_record` verifies a record for which there is no
such head yet. Pure: any thread.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from saros_storage.base.errors import UserMistake

#: Payload bytes, crc32, a word of index and check, a tag of group, kind and unsynced.
_HEADER = struct.Struct("<IIQQ")
_CHECKED = struct.Struct("<IQQ")
_OLD_CHECKED = struct.Struct("<QQ")
HEADER_BYTES = _HEADER.size
_PADDING = tuple(bytes(n) for n in range(8))
#: The log refuses to write a longer payload, so a greater length found by a reader is damage.
PAYLOAD_BYTES_MAX = 1 << 30
_INDEX_MASK = (1 << 48) - 1
_WORD_MASK = (1 << 64) - 1
#: Arbitrary odd numbers: from the golden ratio, and from xxHash.
_FACTORS = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
#: The value of `unsynced` if this number or a greater one would be correct.
_UNKNOWN = 0xFFFF
#: Upper bound on the records of a segment: if an apparent record's index is farther ahead, it is not a record.
_RECORDS_MAX = 1 << 32
#: Number of 8-byte words that each step of the search after a bad record examines.
_SEARCHED_WORDS = 1 << 18
#: Cost, in bytes, of examining an apparent record after a bad record, in addition to the apparent record's size.
_CANDIDATE_BYTES = 1_000
#: Bytes of the payload that a head contains.
_START_BYTES = 24
#: Bytes that each read of heads fetches: enough for hundreds of small records, yet only a small part of a large one.
_PIECE_BYTES = 1 << 15
#: (offset, count) -> `count` bytes of a segment from the offset on; fewer at the segment's end.
ReadPiece = Callable[[int, int], bytes]


class Record(msgspec.Struct, frozen=True):
    """One entry. The writer defines the meaning of `kind`; `group` is the Raft group that the record belongs to."""

    index: int
    group: int
    kind: int
    payload: memoryview
    #: See the module docstring; 0 marks an old record.
    unsynced: int = 1

    @property
    def size_bytes(self) -> int:
        """Bytes in the segment, up to the start of the next record."""
        return _span(len(self.payload))


class Scan(msgspec.Struct, frozen=True):
    """A segment's good records, their end, and whether they end at a damaged record rather than at a torn tail."""

    records: list[Record]
    end: int
    damaged: bool


class PendingRecord(msgspec.Struct, frozen=True):
    """A queued record, which has no index yet. Its payload is a list of parts, which are not copied."""

    group: int
    kind: int
    payload: Sequence[bytes | memoryview]
    size: int
    payload_crc32: int

    @staticmethod
    def of(group: int, kind: int, payload: Sequence[bytes | memoryview]) -> PendingRecord:
        """Create a record from the parts of its payload."""
        assert group < 1 << 32
        assert kind < 1 << 16
        crc = size = 0
        for part in payload:
            assert isinstance(part, bytes) or part.itemsize == 1, "len(part) must count bytes"
            crc = zlib.crc32(part, crc)
            size += len(part)
        return PendingRecord(group, kind, payload, size, crc)

    def encode(self, index: int, synced: int, salt: int) -> list[bytes | memoryview]:
        """Encode the record, in parts; `synced` is the index of the last fsynced record, `salt` the segment's salt."""
        assert self.size <= PAYLOAD_BYTES_MAX
        assert synced < index <= _INDEX_MASK
        tag = self.group | self.kind << 32 | min(index - synced, _UNKNOWN) << 48
        crc = zlib.crc32(_CHECKED.pack(self.size, index, tag), self.payload_crc32 ^ salt)
        header = _HEADER.pack(self.size, crc, index | _check(self.size ^ salt, index, tag) << 48, tag)
        return [header, *self.payload, _PADDING[-self.size & 7]]


def check_payload(size: int) -> None:
    """Raise UserMistake 2006 if a payload is too large."""
    if size > PAYLOAD_BYTES_MAX:
        raise UserMistake(f"a write of {size:,} bytes is too large: at most {PAYLOAD_BYTES_MAX:,}; split it", code=2006)


def _check(salted_size: int, index: int, tag: int) -> int:
    """Return the top 16 bits of a sum of products: a weak checksum that NumPy computes quickly for a whole segment."""
    a, b, c = _FACTORS
    return (salted_size * a + index * b + tag * c & _WORD_MASK) >> 48


def _span(size: int) -> int:
    """Return the size in bytes of a record whose payload has `size` bytes."""
    return HEADER_BYTES + (size + 7 & -8)


class Head(msgspec.Struct, frozen=True):
    """The verified header of a record, and the start of the record's payload.

    The whole payload is intact if a later record's `synced` is at least this record's index.
    """

    #: Offset in the segment.
    offset: int
    index: int
    kind: int
    #: Bytes of the payload.
    size: int
    crc32: int
    #: All records up to this index were fsynced when this record was written; 0 if that is unknown.
    synced: int
    #: The first bytes of the payload.
    start: bytes
    #: Salt of the segment.
    salt: int

    @property
    def end(self) -> int:
        """Offset of the next record."""
        return self.offset + _span(self.size)


# ---------------------------------------------------------------------- reading


def heads(read: ReadPiece, offset: int, index: int, salt: int) -> Iterator[Head]:
    """Yield the heads of a segment's records from record `index` on, which starts at `offset`, to the last valid one.

    An old record is read as a whole, since only its crc32 can verify its header.
    """
    piece, begins = b"", offset
    while True:
        at = offset - begins
        if at + HEADER_BYTES + _START_BYTES > len(piece):
            piece, begins, at = read(offset, _PIECE_BYTES), offset, 0
        if at + HEADER_BYTES > len(piece):
            return
        size, crc, word, tag = _HEADER.unpack_from(piece, at)
        is_old, synced = tag >> 48 == 0, _synced(word, tag)
        is_valid = not salt if is_old else _is_header(size, word, tag, salt)
        if size > PAYLOAD_BYTES_MAX or word & _INDEX_MASK != index or not is_valid:
            return
        start = piece[at + HEADER_BYTES : at + HEADER_BYTES + min(size, _START_BYTES)]
        head = Head(offset, index, tag >> 32 & 0xFFFF, size, crc, synced, start, salt)
        if is_old and whole_record(read, head) is None:
            return
        yield head
        offset, index = head.end, index + 1


def _synced(word: int, tag: int) -> int:
    """Return the value of `Head.synced`. For an old record this is its own index, since it is verified as a whole."""
    unsynced = tag >> 48
    return 0 if unsynced == _UNKNOWN else (word & _INDEX_MASK) - unsynced


def whole_record(read: ReadPiece, head: Head) -> Record | None:
    """Read and verify the record of a head; return None if it is not intact or has been replaced by another record."""
    record = _record_at(memoryview(read(head.offset, _span(head.size))), 0, head.salt)
    return record if record is not None and record.index == head.index else None


def scan(data: memoryview, first_index: int, salt: int) -> Scan:
    """Read a segment, or a part of a segment, whose first record has the index `first_index`."""
    records: list[Record] = []
    position = 0
    while (record := _record_at(data, position, salt)) is not None and record.index == first_index + len(records):
        records.append(record)
        position += record.size_bytes
    bad = first_index + len(records)
    damaged = _old_record_follows(data, position, salt) or _was_synced(data, position, bad, salt)
    return Scan(records, position, damaged)


def _record_at(data: memoryview, position: int, salt: int) -> Record | None:
    if position + HEADER_BYTES > len(data):
        return None
    size, crc, word, tag = _HEADER.unpack_from(data, position)
    if size > PAYLOAD_BYTES_MAX or position + _span(size) > len(data):
        return None
    payload = data[position + HEADER_BYTES : position + HEADER_BYTES + size]
    group, kind, unsynced = tag & 0xFFFFFFFF, tag >> 32 & 0xFFFF, tag >> 48
    if unsynced == 0:
        if salt:
            return None  # a leftover: only segments without a salt have old records
        found = zlib.crc32(payload, zlib.crc32(_OLD_CHECKED.pack(word, tag)))
        return Record(word, group, kind, payload, 0) if found == crc else None
    index = word & _INDEX_MASK
    if not _is_header(size, word, tag, salt):
        return None
    if zlib.crc32(_CHECKED.pack(size, index, tag), zlib.crc32(payload) ^ salt) != crc:
        return None
    return Record(index, group, kind, payload, unsynced)


def _is_header(size: int, word: int, tag: int, salt: int) -> bool:
    return _check(size ^ salt, word & _INDEX_MASK, tag) == word >> 48


def _old_record_follows(data: memoryview, position: int, salt: int) -> bool:
    if position + HEADER_BYTES > len(data):
        return False
    behind = position + _span(int(_HEADER.unpack_from(data, position)[0]))
    record = _record_at(data, behind, salt) if behind < len(data) else None
    return record is not None and record.unsynced == 0


def _was_synced(data: memoryview, position: int, bad: int, salt: int) -> bool:
    """Return whether a good record after `position`, where record `bad` should be, says that `bad` was fsynced."""
    position += _skipped(data, position, bad, salt)
    allowed = 2 * len(data) + 1_000 * _CANDIDATE_BYTES
    for candidate in _candidates(data, position, bad, salt):
        if _record_at(data, candidate, salt) is not None:
            return True
        allowed -= _CANDIDATE_BYTES + min(int(_HEADER.unpack_from(data, candidate)[0]), len(data))
        if allowed < 0:
            return True  # no real segment has this many apparent headers: refuse to open it rather than cut it
    return False


def _skipped(data: memoryview, position: int, bad: int, salt: int) -> int:
    """Return the size of the record `bad` at `position` if the record's header is intact, otherwise 0."""
    if position + HEADER_BYTES > len(data):
        return 0
    size, _, word, tag = _HEADER.unpack_from(data, position)
    return _span(size) if word & _INDEX_MASK == bad and _is_header(size, word, tag, salt) else 0


def _candidates(data: memoryview, position: int, bad: int, salt: int) -> Iterator[int]:
    """Yield the offsets of apparent headers that say that record `bad` was fsynced."""
    count = max(len(data) - position, 0) // 8
    a, b, c = map(np.uint64, _FACTORS)
    for first in range(0, count - 2, _SEARCHED_WORDS):
        words = np.frombuffer(data, "<u8", min(count - first, _SEARCHED_WORDS + 2), position + 8 * first)
        size, index, tag = words[:-2] & np.uint64(0xFFFFFFFF), words[1:-1] & np.uint64(_INDEX_MASK), words[2:]
        unsynced = tag >> np.uint64(48)
        told = (unsynced > 0) & (unsynced < _UNKNOWN) & (index - unsynced - np.uint64(bad) < _RECORDS_MAX)
        told &= (size ^ np.uint64(salt)) * a + index * b + tag * c >> np.uint64(48) == words[1:-1] >> np.uint64(48)
        for place in np.flatnonzero(told).tolist():
            yield position + 8 * (first + place)
