"""Decode many LZ4 blocks in one call, so that a reader need not take the interpreter lock again for each page.

    sequence    u8 literals (4 bits), match (4 bits) | more of literals | literals | u16 distance | more of match
    lengths     15 continues in further bytes, up to one that is not 255; a match is 4 bytes longer than stored
    a block ends with literals, at least five if there is a match; a distance is never 0

Nearly all sequences are short. Unless one of the buffers is near its end, a short sequence is copied in pieces of fixed
size, which may write past the end of the sequence (see `_NEAR`). Source: lz4_Block_format.md of the LZ4 project.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saros_storage.base.types import ByteArray, Int64Array
from saros_storage.kernels.jit import kernel, part
from saros_storage.kernels.unaligned import copy_2, copy_8, copy_16

U = np.uint64
#: Minimum number of literals after the last match.
_LAST = 5
#: A length that exceeds any block: `_length` returns it for a truncated block.
_CUT = 1 << 62
#: Maximum bytes that a short sequence reads or writes: 14 literals, a match of 18 bytes, and the bytes that copying in
#: pieces of fixed size adds.
_NEAR = 48
#: Matches of at least this length are copied in pieces.
_LONG = 32
#: At this match distance and beyond, copying a piece does not depend on recently written pieces.
_APART = 256


def _decode_twin(data: ByteArray, offsets: Int64Array, sizes: Int64Array, ends: Int64Array, out: ByteArray) -> int:
    import cramjam

    decode: Any = cramjam.lz4.decompress_block_into
    start = 0
    for block, (offset, size, end) in enumerate(zip(offsets.tolist(), sizes.tolist(), ends.tolist(), strict=True)):
        if end == start:
            continue
        if min(offset, size, end - start) < 0 or offset + size > len(data) or end > len(out):
            return block
        try:
            made = decode(data[offset : offset + size], out[start:end])
        except cramjam.DecompressionError:
            return block
        if made != end - start:
            return block
        start = end
    return len(offsets)


@part
def _length(data: ByteArray, at: np.uint64, stop: np.uint64, length: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the full length, given its first 4 bits, and the position after it; `_CUT` if the block ends early."""
    if length == U(15):
        more = U(255)
        while more == U(255):
            if at >= stop:
                return U(_CUT), at
            more = U(data[at])
            at += U(1)
            length += more
    return length, at


@part
def _repeat(out: ByteArray, to: np.uint64, distance: np.uint64, count: np.uint64) -> None:
    """Copy `count` bytes to `to`, from the place `distance` bytes before it; source and target may overlap."""
    last = to + count
    if count >= U(_LONG):
        # A pattern with period d also has period k*d, so the copy distance can double as the output grows.
        begin = to
        while to < begin + U(_LONG):
            out[to] = out[to - distance]
            to += U(1)
        while distance < U(16):
            distance += distance
        while to + U(16) <= last:
            if distance < U(_APART) and distance + distance <= to - begin:
                distance += distance
            copy_16(out, to, out, to - distance)
            to += U(16)
    while to < last:
        out[to] = out[to - distance]
        to += U(1)


@part
def _inside(data: ByteArray, offsets: Int64Array, sizes: Int64Array, ends: Int64Array, out: ByteArray) -> int:
    """Return the number of blocks before the first one that is not within the arrays."""
    base = 0
    for block in range(len(offsets)):
        offset, size, end = offsets[block], sizes[block], ends[block]
        if offset < 0 or size < 0 or size > len(data) - offset or end < base or end > len(out):
            return block
        base = end
    return len(offsets)


@part
def lz4_block(data: ByteArray, at: np.uint64, stop: np.uint64, out: ByteArray, base: np.uint64, end: np.uint64) -> bool:
    """Decode the block `data[at:stop]` into `out[base:end]`; return whether the block is intact.

    The caller ensures that both ranges are within their arrays.

    All integers are unsigned, since numba adds code for NumPy's negative indices to every access by a signed integer.
    """
    one = U(1)
    to = base
    at_near, to_near = stop - min(U(_NEAR), stop - at), end - min(U(_NEAR), end - to)
    while True:
        if at >= stop:
            return False
        token = U(data[at])
        literals, match = token >> U(4), token & U(15)
        if at < at_near and to < to_near and literals < U(15):
            copy_16(out, to, data, at + one)
            to += literals
            at += literals + U(3)
            distance = U(data[at - U(2)]) | (U(data[at - one]) << U(8))
            if distance - one >= to - base:
                return False
            if match < U(15) and distance >= U(8):
                copy_8(out, to, out, to - distance)
                copy_8(out, to + U(8), out, to + U(8) - distance)
                copy_2(out, to + U(16), out, to + U(16) - distance)
                to += match + U(4)
                continue
        else:
            literals, at = _length(data, at + one, stop, literals)
            if literals > stop - at or literals > end - to:
                return False
            for i in range(literals):
                out[to + i] = data[at + i]
            to += literals
            at += literals
            if at == stop:
                return bool(to == end)
            if stop - at < U(2):
                return False
            distance = U(data[at]) | (U(data[at + one]) << U(8))
            at += U(2)
            if distance - one >= to - base:
                return False
        match, at = _length(data, at, stop, match)
        match += U(4)
        if match + U(_LAST) > end - to:
            return False
        _repeat(out, to, distance, match)
        to += match


@kernel("i64(u8r[], i64r[], i64r[], i64r[], u8[])", twin=_decode_twin)
def lz4_decode(data: ByteArray, offsets: Int64Array, sizes: Int64Array, ends: Int64Array, out: ByteArray) -> int:
    """Decode blocks of `sizes[i]` bytes at `offsets[i]` of `data` one after the other into `out`, each up to `ends[i]`.

    Returns the number of blocks before the first one that is damaged or not within the arrays. The input of a block
    with an empty output is not read.
    """
    base = U(0)
    inside = _inside(data, offsets, sizes, ends, out)
    for block in range(inside):
        end = U(ends[block])
        if end != base:
            at = U(offsets[block])
            if not lz4_block(data, at, at + U(sizes[block]), out, base, end):
                return block
            base = end
    return inside
