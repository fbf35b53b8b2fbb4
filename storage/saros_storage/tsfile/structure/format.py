"""Primitives of a TsFile: numbers, varints, strings, markers, and the cursor that reads them within bounds.

    uvar   unsigned LEB128 of 32 bits          sizes, counts
    var    ZigZag, then uvar                   lengths of strings (-1: null)
    vstr   var(byte length) + UTF-8            names
    others big-endian, two's complement / IEEE-754

The cursor checks each read before it returns a value: bytes that the format does not allow raise CorruptFile with their
position in the file. The limits for pages and reads bound the memory that a reader allocates for a malformed file.

Pure functions, for any thread; a cursor belongs to one thread.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from saros_storage.base.errors import CorruptFile

MAGIC = b"TsFile"
VERSION_3 = 3
VERSION_4 = 4
#: Size of the head: the magic and the version byte.
HEAD_BYTES = 7
#: Size of the smallest file: the head, a separator, the size of an empty metadata block, and the magic at the end.
FILE_BYTES_MIN = HEAD_BYTES + 1 + 4 + len(MAGIC)

#: Data type id of a time column; no other column has this id.
VECTOR_TYPE = 6

#: Maximum size of a page. Pages usually have 64 KiB. A limit of 256 MiB allows pages of large texts, but stops
#: decompression bombs.
PAGE_BYTES_MAX = 1 << 28
#: Maximum rows of a page. Pages usually have 10 000 rows; pages of 200 000 rows have been seen.
PAGE_ROWS_MAX = 1 << 24
#: Maximum number of rows that one `read` call returns, from all its pages together.
READ_ROWS_MAX = 1 << 27
#: Maximum number of bytes that one `read` call returns in one column: the offsets of texts in a column are int32.
READ_BYTES_MAX = (1 << 31) - 1
#: Maximum size of a chunk's pages, because Apache's readers read this size as int32.
CHUNK_BYTES_MAX = (1 << 31) - 1


class Marker(IntEnum):
    """The first byte of those records in the data area that are not chunks.

    The first byte of a chunk is `TIME_MASK`, `VALUE_MASK` or 0, plus `MANY_PAGES` or `ONE_PAGE` (at most one page).
    """

    CHUNK_GROUP = 0x00
    SEPARATOR = 0x02
    OPERATION_RANGE = 0x04


#: Low bits of a chunk marker.
MANY_PAGES = 0x01
ONE_PAGE = 0x05
PAGES_MASK = 0x3F
#: High bits of a chunk marker, and of the type byte of a series in the index.
TIME_MASK = 0x80
VALUE_MASK = 0x40

_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_VARINT_BYTES_MAX = 5
_U32_MASK = (1 << 32) - 1
_SMALL_UVARS = tuple(bytes((n,)) for n in range(128))


def uvar(value: int) -> bytes:
    """Encode `value` in [0, 2**32) as unsigned LEB128."""
    if value < 128:
        return _SMALL_UVARS[value]
    out = bytearray()
    while value >= 128:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def var(value: int) -> bytes:
    """Encode an int32 as ZigZag LEB128."""
    return uvar((value << 1 ^ value >> 31) & _U32_MASK)


def vstr(text: str | None) -> bytes:
    """Encode a text as length-prefixed UTF-8; for None, the length is -1."""
    if text is None:
        return _SMALL_UVARS[1]
    raw = text.encode()
    size = len(raw)
    return (_SMALL_UVARS[2 * size] if size < 64 else var(size)) + raw


def prefixed(raw: bytes) -> bytes:
    """Return the bytes preceded by their int32 length, as in statistics of text."""
    return _I32.pack(len(raw)) + raw


def i32(value: int) -> bytes:
    """Encode a big-endian int32."""
    return _I32.pack(value)


def i64(value: int) -> bytes:
    """Encode a big-endian int64."""
    return _I64.pack(value)


class Cursor:
    """Reads primitives from `data`, which starts at byte `base` of `file`. Reads past the end raise CorruptFile."""

    __slots__ = ("base", "data", "file", "pos")

    def __init__(self, file: str, data: bytes | memoryview, base: int = 0, pos: int = 0) -> None:
        self.file = file
        self.data = data
        self.base = base
        self.pos = pos

    def corrupt(self, reason: str) -> CorruptFile:
        """Return the error for the bytes at the cursor."""
        return CorruptFile(self.file, self.base + self.pos, reason)

    @property
    def offset(self) -> int:
        """The cursor's position in the file."""
        return self.base + self.pos

    @property
    def rest(self) -> int:
        """Number of bytes not yet read."""
        return len(self.data) - self.pos

    def u8(self) -> int:
        """Read one byte."""
        try:
            value = self.data[self.pos]
        except IndexError:
            raise self.corrupt("the record ends early") from None
        self.pos += 1
        return value

    def uvar(self) -> int:
        """Read an unsigned LEB128 of at most 32 bits."""
        data, pos = self.data, self.pos
        result = shift = 0
        try:
            byte = data[pos]
            if byte < 128:
                self.pos = pos + 1
                return byte
            while True:
                byte = data[pos]
                pos += 1
                result |= (byte & 0x7F) << shift
                if byte < 128:
                    break
                shift += 7
                if shift >= 7 * _VARINT_BYTES_MAX:
                    raise self.corrupt("a varint is longer than 5 bytes")
        except IndexError:
            raise self.corrupt("the record ends within a varint") from None
        if result > _U32_MASK:
            raise self.corrupt("a varint is larger than 32 bits")
        self.pos = pos
        return result

    def var(self) -> int:
        """Read a ZigZag LEB128 int32."""
        value = self.uvar()
        return value >> 1 ^ -(value & 1)

    def i32(self) -> int:
        """Read a big-endian int32."""
        return int(self.unpack(_I32)[0])

    def i64(self) -> int:
        """Read a big-endian int64."""
        return int(self.unpack(_I64)[0])

    def unpack(self, layout: struct.Struct) -> tuple[int | float, ...]:
        """Read fixed-width fields."""
        try:
            fields = layout.unpack_from(self.data, self.pos)
        except struct.error:
            raise self.corrupt("the record ends early") from None
        self.pos += layout.size
        return fields

    def take(self, size: int) -> bytes:
        """Read the next `size` bytes, as a copy."""
        end = self.pos + size
        if size < 0 or end > len(self.data):
            raise self.corrupt(f"a length of {size} does not fit")
        raw = bytes(self.data[self.pos : end])
        self.pos = end
        return raw

    def prefixed(self) -> bytes:
        """Read bytes preceded by their int32 length."""
        return self.take(self.i32())

    def vstr(self) -> str | None:
        """Read a length-prefixed UTF-8 string, or None."""
        size = self.var()
        if size == -1:
            return None
        return self._text(size)

    def name(self) -> str:
        """Read a string that must not be null."""
        return self._text(self.var())

    def istr(self) -> str | None:
        """Read a string preceded by its int32 length, or None; used in table schemas."""
        size = self.i32()
        return None if size == -1 else self._text(size)

    def _text(self, size: int) -> str:
        raw = self.take(size)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.pos -= size
            raise self.corrupt("a name is not UTF-8") from None
