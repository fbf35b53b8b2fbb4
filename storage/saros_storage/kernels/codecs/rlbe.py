"""Decoder of RLBE bit streams, which consist of runs of deltas with the same number of bits.

    block     i32 values in it | segments | padding to a byte
    segment   6 or 7 bits L | the run's length as a Fibonacci code, smallest term first, ended by 11 | the run's deltas

A delta has L bits and is unsigned. If L is the width of a value, the top bit of the delta is 1, but is stored as 0. The
first delta of each block is relative to 0; arithmetic wraps at the value's size. Apache TsFile writes this format.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import Int64Array
from saros_storage.kernels.codecs.bit_reader import UInt64Array
from saros_storage.kernels.jit import kernel

U = np.uint64
#: A term of a Fibonacci code that is larger than any run, since a block stores the number of its values in 32 bits.
_TERM_MAX = 1 << 33


def _decode_twin(words: UInt64Array, size: int, width: int, out: Int64Array) -> int:
    stream = "".join(format(w, "064b") for w in words.tolist())[: size * 8]
    position = filled = 0
    field = 6 if width == 32 else 7
    while filled < len(out):
        left, value = int(stream[position : position + 32] or "0", 2), 0
        position += 32
        if position > len(stream) or left == 0:
            return -1
        while left > 0 and filled < len(out):
            length = int(stream[position : position + field] or "0", 2)
            stop = stream.find("11", position + field)
            terms = stop + 1 - position - field
            if not 1 <= length <= width or stop < 0 or terms > 50:
                return -1
            run, low, high = 0, 1, 2
            for bit in stream[position + field : stop + 1]:
                run, low, high = run + low * int(bit), high, low + high
            position = stop + 2
            if run > left or run * length > len(stream) - position:
                return -1
            for i in range(run):
                delta = int(stream[position + i * length : position + (i + 1) * length], 2)
                value += delta ^ (1 << (width - 1)) if length == width else delta
                value = (value + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
                if filled < len(out):
                    out[filled] = value
                    filled += 1
            position += run * length
            left -= run
        position = -(-position // 8) * 8
    return filled


@kernel("i64(u64r[], i64, i64, i64[])", twin=_decode_twin)
def rlbe_decode(words: UInt64Array, size: int, width: int, out: Int64Array) -> int:
    """Fill `out` from a page of `size` bytes with values of `width` bits; return their number, or -1 on damage."""
    one = U(1)
    field, wide = (U(6), U(32)) if width == 32 else (U(7), U(64))
    down = 64 - width
    position, limit = U(0), U(size) * U(8)
    filled = 0
    while filled < len(out):
        if position + U(32) > limit:
            return -1
        word, offset = position >> U(6), position & U(63)
        left = ((words[word] << offset) | ((words[word + one] >> one) >> (U(63) - offset))) >> U(32)
        position += U(32)
        if left == U(0):
            return -1
        value = np.int64(0)
        while left > U(0) and filled < len(out):
            if position + field > limit:
                return -1
            word, offset = position >> U(6), position & U(63)
            length = ((words[word] << offset) | ((words[word + one] >> one) >> (U(63) - offset))) >> (U(64) - field)
            position += field
            run, low, high, ones = U(0), one, U(2), U(0)
            while ones < U(2):
                if position >= limit or low > U(_TERM_MAX):
                    return -1
                bit = (words[position >> U(6)] >> (U(63) - (position & U(63)))) & one
                position += one
                ones = (ones + one) * bit
                if ones < U(2):
                    run += low * bit
                    low, high = high, low + high
            if length == U(0) or length > wide or run > left or run * length > limit - position:
                return -1
            flip = one << (wide - one) if length == wide else U(0)
            at = position
            for i in range(filled, filled + min(int(np.int64(run)), len(out) - filled)):
                word, offset = at >> U(6), at & U(63)
                bits = (words[word] << offset) | ((words[word + one] >> one) >> (U(63) - offset))
                value = ((value + np.int64((bits >> (U(64) - length)) ^ flip)) << down) >> down
                out[i] = value
                at += length
            filled += min(int(np.int64(run)), len(out) - filled)
            position += run * length
            left -= run
        position = (position + U(7)) & ~U(7)
    return filled
