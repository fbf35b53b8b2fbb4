"""A message with a long field of bytes, copied once: to serialize it as a whole copies it thrice.

A serialized message is its fields one after the other, in any order (protobuf.dev, "Encoding"): so the field may be put
behind the message that lacks it, as its tag, its length and its bytes. Pure: any thread.
"""

from __future__ import annotations

from google.protobuf.message import Message

_LENGTH_DELIMITED = 2


def with_bytes(message: Message, field: int, data: bytes | memoryview) -> bytes:
    """The serialized message with these bytes as its field of that number."""
    head = message.SerializeToString()
    return b"".join((head, _varint(field << 3 | _LENGTH_DELIMITED), _varint(len(data)), data))


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
