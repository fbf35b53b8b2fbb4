"""CHIMP bit streams: each value against one of the last P, many pages in one call.

    first value, W bits; then per value
      00 index                              equal to ring[index]
      01 index lead(3) sig(5 or 6) bits     x = value ^ ring[index]: `sig` bits (0 means W), shifted to their place
      10 bits                               x = value ^ previous: W - L bits, L as before
      11 lead(3) bits                       the same with a new L

W 32: P 64, 6-bit index, 5-bit sig. W 64: P 128, 7-bit index, 6-bit sig. L is one of `_LEADS`. Every value goes into the
ring. After 00 and 01 the writer gives L anew. Source: tsfile-format section 8.
"""

from __future__ import annotations

import numpy as np

from saros_storage.kernels.jit import kernel
from saros_storage.kernels.words import UInt64Array
from saros_storage.types import Int64Array

U = np.uint64
_LEADS = (0, 8, 12, 16, 18, 20, 22, 24)


def _decode_twin(
    words: UInt64Array, starts: Int64Array, ends: Int64Array, counts: Int64Array, width: int, out: UInt64Array
) -> int:
    stream = int.from_bytes(words.astype(np.dtype(">u8")).tobytes(), "big")
    total = len(words) * 64
    index_bits, size_bits = (6, 5) if width == 32 else (7, 6)
    filled = 0
    for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
        position = start * 8
        values: list[int] = []
        lead = 0

        def take(bits: int) -> int:
            nonlocal position
            position += bits
            return (stream >> (total - position)) & ((1 << bits) - 1) if position <= total else 0

        while len(values) < count:
            if not values:
                values.append(take(width))
            else:
                flag = take(2)
                base = values[-1]
                if flag < 2:
                    slot = take(index_bits)
                    back = (len(values) - 1 - slot) % (1 << index_bits)
                    base = values[-1 - back] if back < len(values) else 0
                if flag in (1, 3):
                    lead = _LEADS[take(3)]
                size = 0 if flag == 0 else take(size_bits) or width if flag == 1 else width - lead
                shift = width - lead - size if flag == 1 else 0
                if shift < 0:
                    return -1
                values.append(base ^ (take(size) << shift))
            if position > end * 8:
                return -1
        out[filled : filled + count] = values
        filled += count
    return filled


@kernel("i64(u64r[], i64r[], i64r[], i64r[], i64, u64[])", twin=_decode_twin)
def chimp_decode(
    words: UInt64Array, starts: Int64Array, ends: Int64Array, counts: Int64Array, width: int, out: UInt64Array
) -> int:
    """Decode pages [starts[i], ends[i]) (bytes) of counts[i] values; answers their number, or -1 if one is damaged."""
    one = U(1)
    index_bits = 6 if width == 32 else 7
    size_bits = 5 if width == 32 else 6
    ring = np.zeros(1 << index_bits, np.uint64)
    last_word = len(words) - 1
    filled = 0
    for page in range(len(starts)):
        position = starts[page] * 8
        limit = ends[page] * 8
        ring[:] = U(0)
        lead = np.int64(0)
        value = U(0)
        for index in range(counts[page]):
            word = position >> 6
            if word >= last_word:
                return -1
            offset = U(position & 63)
            bits = (words[word] << offset) | ((words[word + 1] >> one) >> (U(63) - offset))
            size = width
            shift = np.int64(0)
            base = value
            if index == 0:
                base = U(0)
            else:
                flag = bits >> U(62)
                bits <<= U(2)
                position += 2
                if flag < U(2):
                    base = ring[np.int64(bits >> U(64 - index_bits))]
                    bits <<= U(index_bits)
                    position += index_bits
                    size = 0
                if flag == U(1) or flag == U(3):
                    code = np.int64(bits >> U(61))
                    lead = code * 8 if code < 2 else (12 if code == 2 else 10 + 2 * code)
                    bits <<= U(3)
                    position += 3
                if flag == U(1):
                    size = np.int64(bits >> U(64 - size_bits))
                    position += size_bits
                    if size == 0:
                        size = width
                    shift = width - lead - size
                    if shift < 0:
                        return -1
                elif flag >= U(2):
                    size = width - lead
            if position + size > limit:
                return -1
            if size > 0:
                word = position >> 6
                offset = U(position & 63)
                bits = (words[word] << offset) | ((words[word + 1] >> one) >> (U(63) - offset))
                base ^= (bits >> U(64 - size)) << U(shift)
                position += size
            value = base
            ring[index & ((1 << index_bits) - 1)] = value
            out[filled] = value
            filled += 1
    return filled


def _encode_twin(values: UInt64Array, width: int, out: UInt64Array) -> int:
    index_bits, size_bits = (6, 5) if width == 32 else (7, 6)
    threshold = size_bits + index_bits
    numbers = values.tolist()
    bits = format(numbers[0], f"0{width}b")
    latest = {numbers[0] & ((2 << threshold) - 1): 0}
    stored = -1
    for i in range(1, len(numbers)):
        value = numbers[i]
        near = latest.get(value & ((2 << threshold) - 1), -1)
        latest[value & ((2 << threshold) - 1)] = i
        found = near >= 0 and i - near < 1 << index_bits
        change = value ^ numbers[near if found else i - 1]
        slot = format((near if found else i - 1) % (1 << index_bits), f"0{index_bits}b")
        if change == 0:
            bits, stored = bits + "00" + slot, -1
            continue
        if found:
            trail = (change & -change).bit_length() - 1
            code = max(c for c in range(8) if _LEADS[c] <= width - change.bit_length())
            size = width - _LEADS[code] - trail
            field = format(size % width, f"0{size_bits}b")
            bits += "01" + slot + format(code, "03b") + field + format(change >> trail, f"0{size}b")
            stored = -1
            continue
        code = max(c for c in range(8) if _LEADS[c] <= width - change.bit_length())
        bits += "10" if code == stored else "11" + format(code, "03b")
        bits += format(change, f"0{width - _LEADS[code]}b")
        stored = code
    whole = bits.ljust(-(-len(bits) // 64) * 64, "0")
    for index in range(len(whole) // 64):
        out[index] = int(whole[index * 64 : index * 64 + 64], 2)
    return len(bits)


@kernel("i64(u64r[], i64, u64[])", twin=_encode_twin)
def chimp_encode(values: UInt64Array, width: int, out: UInt64Array) -> int:
    """Encode at least one value (the caller appends the sentinel) into the zeroed words `out`; answers the bits."""

    def put(position: int, bits: np.uint64, size: int) -> int:
        word = position >> 6
        offset = position & 63
        aligned = bits << U(64 - size)
        out[word] |= aligned >> U(offset)
        if offset + size > 64:
            out[word + 1] |= aligned << U(64 - offset)
        return position + size

    index_bits = 6 if width == 32 else 7
    size_bits = 5 if width == 32 else 6
    ring_size = 1 << index_bits
    mask = U((2 << (size_bits + index_bits)) - 1)
    latest = np.full(2 << (size_bits + index_bits), -1, np.int64)
    latest[np.int64(values[0] & mask)] = 0
    position = put(0, values[0], width)
    stored = -1
    for i in range(1, len(values)):
        value = values[i]
        near = latest[np.int64(value & mask)]
        latest[np.int64(value & mask)] = i
        found = near >= 0 and i - near < ring_size
        other = near if found else i - 1
        slot = U(other & (ring_size - 1))
        change = value ^ values[other]
        if change == U(0):
            position = put(position, slot, 2 + index_bits)
            stored = -1
            continue
        leading = 0
        probe = change << U(64 - width)
        for step in (32, 16, 8, 4, 2, 1):
            if probe >> U(64 - step) == U(0):
                leading += step
                probe <<= U(step)
        code = 0 if leading < 8 else 1 if leading < 12 else 2 if leading < 16 else min((leading - 10) >> 1, 7)
        lead = code * 8 if code < 2 else (12 if code == 2 else 10 + 2 * code)
        if found:
            trailing = 0
            probe = change
            for step in (32, 16, 8, 4, 2, 1):
                if probe << U(64 - step) == U(0):
                    trailing += step
                    probe >>= U(step)
            size = width - lead - trailing
            head = (((U(1) << U(index_bits)) | slot) << U(3)) | U(code)
            position = put(position, (head << U(size_bits)) | U(size & (width - 1)), 5 + index_bits + size_bits)
            position = put(position, change >> U(trailing), size)
            stored = -1
            continue
        position = put(position, U(2), 2) if code == stored else put(position, U(24 + code), 5)
        position = put(position, change, width - lead)
        stored = code
    return position
