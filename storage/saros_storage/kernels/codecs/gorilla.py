"""Encode and decode GORILLA bit streams (TsFile's second version), many pages in one call.

    first value, W bits
    then per value x = value ^ previous:   0                                      x is 0
                                           10 + (W - L - T) bits                  x fits the window (L, T)
                                           11 + lb bits L + lb bits (sig - 1) + sig bits     a new window

W is 32 (lb 5) or 64 (lb 6). In a window (L, T), the first L and the last T bits of x are 0 and are not stored; sig is
W - L - T. Values are bit patterns in uint64. Apache TsFile writes this format.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import Int64Array
from saros_storage.kernels.codecs.bit_reader import UInt64Array
from saros_storage.kernels.jit import kernel, part

U = np.uint64


def _decode_twin(
    words: UInt64Array,
    starts: Int64Array,
    ends: Int64Array,
    counts: Int64Array,
    width: int,
    field_bits: int,
    out: UInt64Array,
) -> int:
    stream = int.from_bytes(words.astype(np.dtype(">u8")).tobytes(), "big")
    total = len(words) * 64
    filled = 0
    for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
        position, limit = start * 8, end * 8
        lead, size, value = -1, 0, 0
        for index in range(count):
            if index == 0:
                value, position = (stream >> (total - position - width)) & ((1 << width) - 1), position + width
            elif not stream >> (total - position - 1) & 1:
                position += 1
            else:
                if stream >> (total - position - 2) & 1:
                    fields = stream >> (total - position - 2 - 2 * field_bits)
                    lead = (fields >> field_bits) & ((1 << field_bits) - 1)
                    size = (fields & ((1 << field_bits) - 1)) + 1
                    position += 2 * field_bits
                if lead < 0 or lead + size > width:
                    return -1
                position += 2 + size
                if position > limit:
                    return -1
                value ^= ((stream >> (total - position)) & ((1 << size) - 1)) << (width - lead - size)
            if position > limit:
                return -1
            out[filled] = value
            filled += 1
    return filled


@kernel("i64(u64r[], i64r[], i64r[], i64r[], i64, i64, u64[])", twin=_decode_twin)
def gorilla_decode(
    words: UInt64Array,
    starts: Int64Array,
    ends: Int64Array,
    counts: Int64Array,
    width: int,
    field_bits: int,
    out: UInt64Array,
) -> int:
    """Decode counts[i] values from bytes [starts[i], ends[i]) of each page into `out`, one page after the other.

    Returns the number of values, or -1 if a page is not a Gorilla stream of counts[i] values. Positions in the stream
    are unsigned, since numba adds code for NumPy's negative indices to every access by a signed integer. Repeated
    values are decoded eight at a time.
    """
    one, two = U(1), U(2)
    wide, field = U(width), U(field_bits)
    header = two + field + field
    filled = 0
    for page in range(len(starts)):
        position, limit = U(starts[page]) * U(8), U(ends[page]) * U(8)
        stop = filled + counts[page]
        if filled == stop:
            continue
        if position + wide > limit:
            return -1
        word, offset = position >> U(6), position & U(63)
        value = ((words[word] << offset) | ((words[word + one] >> one) >> (U(63) - offset))) >> (U(64) - wide)
        position += wide
        out[filled] = value
        filled += 1
        size, trail = U(0), U(0)
        while filled < stop:
            if position >= limit:
                return -1
            word, offset = position >> U(6), position & U(63)
            bits = (words[word] << offset) | ((words[word + one] >> one) >> (U(63) - offset))
            if bits >> U(63) == U(0):
                if bits >> U(56) == U(0) and filled + 8 <= stop and position + U(8) <= limit:
                    for i in range(8):
                        out[filled + i] = value
                    filled += 8
                    position += U(8)
                    continue
                position += one
            else:
                taken = two
                if bits >> U(62) == U(3):
                    lead = (bits << two) >> (U(64) - field)
                    size = ((bits << (two + field)) >> (U(64) - field)) + one
                    if lead + size > wide:
                        return -1
                    trail = wide - lead - size
                    taken = header
                position += taken
                if size == U(0) or position + size > limit:
                    return -1
                bits <<= taken
                if taken + size > U(64):
                    word, offset = position >> U(6), position & U(63)
                    bits = (words[word] << offset) | ((words[word + one] >> one) >> (U(63) - offset))
                position += size
                value ^= (bits >> (U(64) - size)) << trail
            out[filled] = value
            filled += 1
    return filled


def _encode_twin(values: UInt64Array, width: int, field_bits: int, out: UInt64Array) -> int:
    bits = format(int(values[0]), f"0{width}b")
    previous, lead, trail = int(values[0]), width + 1, width + 1
    for value in values[1:].tolist():
        change, previous = value ^ previous, value
        if change == 0:
            bits += "0"
            continue
        leading = width - change.bit_length()
        trailing = (change & -change).bit_length() - 1
        if leading >= lead and trailing >= trail:
            bits += "10"
        else:
            lead, trail = leading, trailing
            size = width - lead - trail
            bits += "11" + format(lead, f"0{field_bits}b") + format(size - 1, f"0{field_bits}b")
        bits += format(change >> trail, f"0{width - lead - trail}b")
    whole = bits.ljust((len(bits) // 64 + 1) * 64, "0")
    for index in range(len(whole) // 64):
        out[index] = int(whole[index * 64 : index * 64 + 64], 2)
    return len(bits)


@part
def _encode_page(values: UInt64Array, width: int, field_bits: int, out: UInt64Array, begin: int) -> int:
    """Encode a page into the words of `out` from `begin` on; return the number of bits.

    The word under construction stays in a register; at least one bit of the last word of `out` is unused. `outside` is
    a mask of the bits outside the current window: a change with none of these bits fits the window, so its leading and
    trailing zeros need not be counted.
    """
    one = U(1)
    wide, field = U(width), U(field_bits)
    header = U(2) + field + field
    previous = values[0]
    out[begin] = previous << (U(64) - wide)
    building, used, filled = (out[begin], wide, begin) if width < 64 else (U(0), U(0), begin + 1)
    size, trail, outside = U(0), U(0), ~U(0)
    for index in range(1, len(values)):
        change = values[index] ^ previous
        previous = values[index]
        code, length = U(0), one
        if change != U(0):
            code, length = one << U(63), U(2)
            if change & outside != U(0):
                lead, trail = U(0), U(0)
                probe = change << (U(64) - wide)
                for step in (U(32), U(16), U(8), U(4), U(2), U(1)):
                    if probe >> (U(64) - step) == U(0):
                        lead += step
                        probe <<= step
                probe = change
                for step in (U(32), U(16), U(8), U(4), U(2), U(1)):
                    if probe << (U(64) - step) == U(0):
                        trail += step
                        probe >>= step
                size = wide - lead - trail
                outside = ~((~U(0) >> (U(64) - size)) << trail)
                code = ((((U(3) << field) | lead) << field) | (size - one)) << (U(64) - header)
                length = header
        building |= code >> used
        used += length
        if used >= U(64):
            out[filled] = building
            filled += 1
            used -= U(64)
            building = (code << one) << (length - used - one)
        if change != U(0):
            bits = (change >> trail) << (U(64) - size)
            building |= bits >> used
            used += size
            if used >= U(64):
                out[filled] = building
                filled += 1
                used -= U(64)
                building = (bits << one) << (size - used - one)
    out[filled] = building
    return (filled - begin) * 64 + int(np.int64(used))


@kernel("i64(u64r[], i64, i64, u64[])", twin=_encode_twin)
def gorilla_encode(values: UInt64Array, width: int, field_bits: int, out: UInt64Array) -> int:
    """Encode at least one value (the caller appends the sentinel) into words of `out`; return the number of bits."""
    return _encode_page(values, width, field_bits, out, 0)


def _encode_rows_twin(values: UInt64Array, width: int, field_bits: int, out: UInt64Array, sizes: Int64Array) -> int:
    word = 0
    for row, line in enumerate(values.reshape(len(sizes), -1)):
        sizes[row] = _encode_twin(line, width, field_bits, out[word:]) // 8 + 1
        word += (int(sizes[row]) + 7) >> 3
    return word


@kernel("i64(u64r[], i64, i64, u64[], i64[])", twin=_encode_rows_twin)
def gorilla_encode_rows(values: UInt64Array, width: int, field_bits: int, out: UInt64Array, sizes: Int64Array) -> int:
    """Encode each row of a matrix as a page; the pages follow each other in `out`, and each starts at a word.

    `values` consists of the joined rows, each with its sentinel. `sizes` receives the number of bytes of each page,
    including the spare byte. Returns the number of words.
    """
    count = len(values) // len(sizes)
    word = 0
    for row in range(len(sizes)):
        bits = _encode_page(values[row * count : (row + 1) * count], width, field_bits, out, word)
        sizes[row] = (bits >> 3) + 1
        word += (sizes[row] + 7) >> 3
    return word
