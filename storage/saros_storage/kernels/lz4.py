"""How much an LZ4 block holds: the format does not say, and the library does not tell.

    sequence   u8 token: literals << 4 | match - 4 | more literals' length | literals | u16 distance | more of the match

A length of 15 is continued by bytes, each added, until one is below 255. The last sequence ends with its literals.
"""

from __future__ import annotations

import numpy as np

from saros_storage.kernels.jit import kernel
from saros_storage.types import ByteArray

U = np.uint64


def _size_twin(data: ByteArray) -> int:
    raw, position, size = data.tobytes(), 0, 0

    def length(nibble: int) -> int:
        nonlocal position
        total = nibble
        while nibble == 15 and position < len(raw):
            position += 1
            total += raw[position - 1]
            if raw[position - 1] < 255:
                break
        return total

    while position < len(raw):
        token = raw[position]
        position += 1
        literals = length(token >> 4)
        position += literals
        size += literals
        if position >= len(raw):
            return size if position == len(raw) else -1
        position += 2
        size += length(token & 15) + 4
    return -1


@kernel("i64(u8r[])", twin=_size_twin)
def lz4_size(data: ByteArray) -> int:
    """Bytes that the block decompresses to, or -1 if it does not end as a block ends."""
    one = U(1)
    position, end, size = U(0), U(len(data)), U(0)
    while position < end:
        token = U(data[position])
        position += one
        literals = token >> U(4)
        if literals == U(15):
            while position < end:
                byte = U(data[position])
                position += one
                literals += byte
                if byte < U(255):
                    break
        position += literals
        size += literals
        if position >= end:
            return int(np.int64(size)) if position == end else -1
        position += U(2)
        match = token & U(15)
        if match == U(15):
            while position < end:
                byte = U(data[position])
                position += one
                match += byte
                if byte < U(255):
                    break
        size += match + U(4)
    return -1
