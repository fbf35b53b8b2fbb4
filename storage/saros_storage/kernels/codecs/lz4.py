"""LZ4 blocks, many in one call, so that a reader need not take the interpreter lock again for each page.

    sequence    u8 literals (4 bits), match (4 bits) | more of literals | literals | u16 distance | more of match
    lengths     15 goes on in bytes, up to one that is not 255; a match has 4 bytes more than it says
    a block ends with literals, five at least if there is a match; a distance is never 0

Nearly all sequences are short. Where neither end of the buffer is near, they are copied in pieces of fixed size, which
may write up to `_NEAR` bytes past their own end. Source: lz4_Block_format.md of the LZ4 project.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saros_storage.base.types import ByteArray, Int64Array
from saros_storage.kernels.jit import kernel, part
from saros_storage.kernels.unaligned import copy_2, copy_8, copy_16

U = np.uint64
#: Literals behind the last match.
_LAST = 5
#: More than any block has.
_CUT = 1 << 62
#: Bytes that a short sequence reads and writes at most: 14 literals, a match of 18, and what its copies have too many.
_NEAR = 48
#: From this length on a match is copied in pieces.
_LONG = 32
#: From so far away on, a piece need not wait until another is written.
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
    """The whole of a length whose 4 bits are known, and the place behind it; `_CUT` where the block ends before."""
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
    """Write `count` bytes at `to` that are those `distance` before them, of which some may only come to be."""
    last = to + count
    if count >= U(_LONG):
        # What repeats after some bytes does so after several times as many: as soon as these are there.
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
    """How many blocks lie within the arrays, before one that does not."""
    base = 0
    for block in range(len(offsets)):
        offset, size, end = offsets[block], sizes[block], ends[block]
        if offset < 0 or size < 0 or size > len(data) - offset or end < base or end > len(out):
            return block
        base = end
    return len(offsets)


@part
def lz4_block(data: ByteArray, at: np.uint64, stop: np.uint64, out: ByteArray, base: np.uint64, end: np.uint64) -> bool:
    """Decode the block `data[at:stop]` into `out[base:end]`, both within their arrays; whether it came out whole.

    All is unsigned: an index that may be negative costs NumPy's wrap-around.
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
    """Decode blocks of `sizes` bytes at `offsets` of `data`, the first into `out[:ends[0]]`, each behind the other.

    Answers how many came out whole, before one that is damaged, or not within the arrays. One that fills nothing is not
    looked at.
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
