"""Building blocks of several encodings: variable-length integers, RLE runs. Errors are DecodeError. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from saros_storage.base.types import ByteArray, Int64Array, NumericArray
from saros_storage.encoding.errors import DecodeError
from saros_storage.kernels.codecs.rle import rle_decode
from saros_storage.kernels.codecs.varint import varint_decode

#: A function that fills the array with the values of one page.
PageDecoder: TypeAlias = Callable[[ByteArray, NumericArray], None]


def uvar(value: int) -> bytes:
    """Encode an unsigned LEB128 integer."""
    head = b""
    while value >= 128:
        head += bytes((value & 127 | 128,))
        value >>= 7
    return head + bytes((value,))


def read_uvar(data: ByteArray, position: int) -> tuple[int, int]:
    """Read an unsigned LEB128 integer of at most 5 bytes; return it and the position after it."""
    value = 0
    for shift in range(0, 35, 7):
        if position >= len(data):
            break
        byte = int(data[position])
        value |= (byte & 127) << shift
        position += 1
        if byte < 128:
            return value, position
    raise DecodeError("a variable-length integer is damaged")


def read_varints(data: ByteArray, bits: int, out: NumericArray) -> int:
    """Fill `out` with ZigZag integers of 32 or 64 bits; return the number of bytes read."""
    values = np.empty(len(out), np.int64)
    position = varint_decode(data, bits, values)
    if position < 0:
        raise DecodeError("variable-length integers are damaged")
    out[:] = values
    return position


def read_rle(data: ByteArray, bits: int, count: int) -> Int64Array:
    """Return `count` bit patterns from an RLE payload of 32-bit or 64-bit values; 32-bit patterns are unsigned."""
    size, start = read_uvar(data, 0)
    if size < 1 or start + size > len(data):
        raise DecodeError("an RLE page is cut off")
    width = int(data[start])
    if not 1 <= width <= bits:
        raise DecodeError(f"an RLE page has values of {width} bits")
    out = np.empty(count, np.int64)
    if rle_decode(data[start + 1 : start + size], width, int(bits == 64), out) < 0:
        raise DecodeError("an RLE page is damaged")
    return out
