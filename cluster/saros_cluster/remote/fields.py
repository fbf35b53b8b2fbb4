"""Encoding of a sequence of numbers, texts and single values. Every field is checked when it is read.

    number   i64                    flag     u8, 0 or 1
    text     u32 bytes | UTF-8      scalar   u8 tag | nothing, i64, f64, or u32 bytes | bytes, by the tag

Everything is little-endian. Truncated, out-of-range or trailing bytes raise ValueError. Pure: any thread.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from saros_storage.base.types import Scalar

_NUMBER = struct.Struct("<q")
_FLOAT = struct.Struct("<d")
_SIZE = struct.Struct("<I")
_INT64 = 1 << 63


class _Tag(IntEnum):
    """The kind of a scalar."""

    NONE = 0
    FALSE = 1
    TRUE = 2
    INTEGER = 3
    REAL = 4
    TEXT = 5
    BYTES = 6
    #: An integer of more than 64 bits, such as the sum of a series.
    LONG = 7


_TAGS = {tag: bytes([tag]) for tag in _Tag}


class FieldWriter:
    """Collects fields. One thread at a time."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def number(self, value: int) -> None:
        """Add an integer of 64 bits."""
        self._parts.append(_NUMBER.pack(value))

    def flag(self, value: bool) -> None:
        """Add a boolean."""
        self._parts.append(b"\1" if value else b"\0")

    def data(self, value: bytes) -> None:
        """Add bytes, preceded by their count."""
        self._parts += (_SIZE.pack(len(value)), value)

    def text(self, value: str) -> None:
        """Add text as UTF-8, preceded by its count of bytes."""
        self.data(value.encode())

    def scalar(self, value: Scalar) -> None:
        """Add one value together with its Python type. Integers may have any size."""
        match value:
            case None:
                self._parts.append(_TAGS[_Tag.NONE])
            case bool():
                self._parts.append(_TAGS[_Tag.TRUE if value else _Tag.FALSE])
            case int() if -_INT64 <= value < _INT64:
                self._parts += (_TAGS[_Tag.INTEGER], _NUMBER.pack(value))
            case int():
                self._parts.append(_TAGS[_Tag.LONG])
                self.data(value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
            case float():
                self._parts += (_TAGS[_Tag.REAL], _FLOAT.pack(value))
            case str():
                self._parts.append(_TAGS[_Tag.TEXT])
                self.text(value)
            case bytes():
                self._parts.append(_TAGS[_Tag.BYTES])
                self.data(value)

    def done(self) -> bytes:
        """Return the fields as bytes."""
        return b"".join(self._parts)


class FieldReader:
    """Reads fields in the order in which they were written.

    Only one thread uses it at a time. Every method raises ValueError.
    """

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise ValueError(f"{end} bytes are needed, but there are {len(self._data)}")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def number(self) -> int:
        """Read an integer of 64 bits."""
        value: int = _NUMBER.unpack(self._take(_NUMBER.size))[0]
        return value

    def count(self) -> int:
        """Read the number of the items that follow. Each item takes at least one byte."""
        value = self.number()
        if not 0 <= value <= len(self._data) - self._position:
            raise ValueError(f"invalid count {value}")
        return value

    def flag(self) -> bool:
        """Read a boolean."""
        value = self._take(1)[0]
        if value > 1:
            raise ValueError(f"{value} is not a boolean")
        return value == 1

    def data(self) -> bytes:
        """Read counted bytes."""
        return self._take(_SIZE.unpack(self._take(_SIZE.size))[0])

    def text(self) -> str:
        """Read counted text."""
        return self.data().decode()

    def scalar(self) -> Scalar:
        """Read one value."""
        match _Tag(self._take(1)[0]):
            case _Tag.NONE:
                return None
            case _Tag.FALSE:
                return False
            case _Tag.TRUE:
                return True
            case _Tag.INTEGER:
                return self.number()
            case _Tag.REAL:
                real: float = _FLOAT.unpack(self._take(_FLOAT.size))[0]
                return real
            case _Tag.TEXT:
                return self.text()
            case _Tag.BYTES:
                return self.data()
            case _Tag.LONG:
                return int.from_bytes(self.data(), "little", signed=True)

    def numeric(self) -> int | float | None:
        """Read a value that is a number or None."""
        value = self.scalar()
        if isinstance(value, (bool, str, bytes)):
            raise ValueError(f"{value!r} is not a number")  # noqa: TRY004 (the bytes are wrong, not the call)
        return value

    def end(self) -> None:
        """Check that no bytes are left."""
        if self._position != len(self._data):
            raise ValueError(f"{len(self._data) - self._position} unexpected bytes at the end")
