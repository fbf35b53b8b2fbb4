"""GORILLA bit streams (TsFile's second version), many pages in one call.

    first value, W bits
    then per value x = value ^ previous:   0                                      x is 0
                                           10 + (W - L - T) bits                  x fits the window (L, T)
                                           11 + lb bits L + lb bits (sig - 1) + sig bits     a new window

W is 32 (lb 5) or 64 (lb 6); values are bit patterns in uint64. Source: tsfile-format section 8.
"""

from __future__ import annotations

import numpy as np

from saros_storage.kernels.jit import kernel
from saros_storage.kernels.words import UInt64Array
from saros_storage.types import Int64Array

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
    """Decode pages [starts[i], ends[i]) (bytes) of counts[i] values into `out`, one after the other.

    Answers the number of values, or -1 if a page is not a Gorilla stream of so many values.
    """
    one = U(1)
    down = U(64 - width)
    header = 2 + 2 * field_bits
    filled = 0
    for page in range(len(starts)):
        position = starts[page] * 8
        limit = ends[page] * 8
        count = counts[page]
        if count == 0:
            continue
        if position + width > limit:
            return -1
        word = position >> 6
        offset = U(position & 63)
        value = ((words[word] << offset) | ((words[word + 1] >> one) >> (U(63) - offset))) >> down
        position += width
        out[filled] = value
        filled += 1
        size = np.int64(0)
        trail = U(0)
        for _ in range(1, count):
            if position >= limit:
                return -1
            word = position >> 6
            offset = U(position & 63)
            bits = (words[word] << offset) | ((words[word + 1] >> one) >> (U(63) - offset))
            if (bits >> U(63)) == U(0):
                position += 1
            else:
                if ((bits << one) >> U(63)) != U(0):
                    lead = np.int64((bits << U(2)) >> U(64 - field_bits))
                    size = np.int64((bits << U(2 + field_bits)) >> U(64 - field_bits)) + 1
                    if lead + size > width:
                        return -1
                    trail = U(width - lead - size)
                    position += header
                else:
                    if size == 0:
                        return -1
                    position += 2
                if position + size > limit:
                    return -1
                word = position >> 6
                offset = U(position & 63)
                bits = (words[word] << offset) | ((words[word + 1] >> one) >> (U(63) - offset))
                position += size
                value ^= (bits >> U(64 - size)) << trail
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
    whole = bits.ljust(-(-len(bits) // 64) * 64, "0")
    for index in range(len(whole) // 64):
        out[index] = int(whole[index * 64 : index * 64 + 64], 2)
    return len(bits)


@kernel("i64(u64r[], i64, i64, u64[])", twin=_encode_twin)
def gorilla_encode(values: UInt64Array, width: int, field_bits: int, out: UInt64Array) -> int:
    """Encode at least one value (the caller appends the sentinel) into the zeroed words `out`; answers the bits."""
    previous = values[0]
    out[0] = previous << U(64 - width)
    position = width
    lead = width + 1
    trail = width + 1
    for index in range(1, len(values)):
        change = values[index] ^ previous
        previous = values[index]
        if change == U(0):
            position += 1
            continue
        leading = 0
        probe = change << U(64 - width)
        for step in (32, 16, 8, 4, 2, 1):
            if probe >> U(64 - step) == U(0):
                leading += step
                probe <<= U(step)
        trailing = 0
        probe = change
        for step in (32, 16, 8, 4, 2, 1):
            if probe << U(64 - step) == U(0):
                trailing += step
                probe >>= U(step)
        if leading >= lead and trailing >= trail:
            code = U(2)
            code_bits = 2
        else:
            lead = leading
            trail = trailing
            code = (((U(3) << U(field_bits)) | U(lead)) << U(field_bits)) | U(width - lead - trail - 1)
            code_bits = 2 + 2 * field_bits
        size = width - lead - trail
        word = position >> 6
        offset = position & 63
        aligned = code << U(64 - code_bits)
        out[word] |= aligned >> U(offset)
        if offset + code_bits > 64:
            out[word + 1] |= aligned << U(64 - offset)
        position += code_bits
        word = position >> 6
        offset = position & 63
        aligned = (change >> U(trail)) << U(64 - size)
        out[word] |= aligned >> U(offset)
        if offset + size > 64:
            out[word + 1] |= aligned << U(64 - offset)
        position += size
    return position
