"""A message with a long field of bytes, copied once on either side; to serialize or parse it whole copies it thrice.

A serialized message is its fields one after the other, in any order (protobuf.dev, "Encoding"): so the field may be put
behind the message that lacks it, as its tag, its length and its bytes, and be cut out again. Pure: any thread.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError, Message

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
#: Of a varint of 64 bits.
_VARINT_BYTES_MAX = 10
#: More, and whoever sent them means to keep us busy.
_FIELDS_MAX = 100


def with_bytes(message: Message, field: int, data: bytes | memoryview) -> bytes:
    """The serialized message with these bytes as its field of that number."""
    head = message.SerializeToString()
    return b"".join((head, _varint(field << 3 | _LENGTH_DELIMITED), _varint(len(data)), data))


def cut_bytes(serialized: bytes, field: int) -> tuple[bytes, memoryview]:
    """The inverse: the serialized message without its field of that number, and the field's bytes, which are a view.

    A field that is there several times is the last one's, as in any message. Raises DecodeError.
    """
    rest: list[memoryview] = []
    found, position = memoryview(b""), 0
    view = memoryview(serialized)
    for _ in range(_FIELDS_MAX):
        if position == len(serialized):
            return b"".join(rest), found
        start, (tag, position) = position, _read_varint(serialized, position)
        size, position = _read_size(serialized, tag, position)
        position += size
        if position > len(serialized):
            raise DecodeError("a field is longer than its message")
        if tag == field << 3 | _LENGTH_DELIMITED:
            found = view[position - size : position]
        else:
            rest.append(view[start:position])
    raise DecodeError(f"more than {_FIELDS_MAX} fields")


def _read_size(data: bytes, tag: int, position: int) -> tuple[int, int]:
    """How many bytes a field has that are still to come, and where they start."""
    kind = tag & 7
    if kind == _LENGTH_DELIMITED:
        return _read_varint(data, position)
    if kind == _VARINT:
        return 0, _read_varint(data, position)[1]
    if kind in _FIXED_BYTES:
        return _FIXED_BYTES[kind], position
    raise DecodeError(f"a field of kind {kind}")


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number, and where it ends."""
    number = 0
    for index, byte in enumerate(data[position : position + _VARINT_BYTES_MAX]):
        number |= (byte & 0x7F) << 7 * index
        if byte <= 0x7F:
            return number, position + index + 1
    raise DecodeError("a varint has no end")
