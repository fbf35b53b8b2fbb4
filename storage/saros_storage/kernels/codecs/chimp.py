"""Encode and decode CHIMP bit streams: each value is stored relative to one of the last P values.

    first value, W bits; then per value
      00 index                              equal to ring[index]
      01 index lead(3) sig(5 or 6) bits     x = value ^ ring[index]: `sig` bits (0 means W), shifted to their place
      10 bits                               x = value ^ previous: W - L bits, L as before
      11 lead(3) bits                       as for 10, but with a new L

If W is 32, P is 64, `index` has 6 bits and `sig` 5 bits; if W is 64, P is 128, `index` has 7 bits and `sig` 6 bits. L
is the element `lead` of `_LEADS`. Every value is added to the ring. After a 00 or a 01, the writer must write L with an
11 before it can use a 10. Apache TsFile writes this format. Many pages are decoded in one call.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import Int32Array, Int64Array
from saros_storage.kernels.codecs.bit_reader import UInt64Array
from saros_storage.kernels.jit import kernel

U = np.uint64
_LEADS = (0, 8, 12, 16, 18, 20, 22, 24)
#: Sizes of scratch space: the words of `chimp_decode`'s ring, and the entries of `chimp_encode`'s table of latest
#: positions.
RING_SIZE, TABLE_SIZE = 128, 1 << 14


def _decode_twin(
    words: UInt64Array,
    starts: Int64Array,
    ends: Int64Array,
    counts: Int64Array,
    width: int,
    ring: UInt64Array,  # noqa: ARG001 (the twin of a kernel)
    out: UInt64Array,
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


@kernel("i64(u64r[], i64r[], i64r[], i64r[], i64, u64[], u64[])", twin=_decode_twin)
def chimp_decode(
    words: UInt64Array,
    starts: Int64Array,
    ends: Int64Array,
    counts: Int64Array,
    width: int,
    ring: UInt64Array,
    out: UInt64Array,
) -> int:
    """Decode counts[i] values from bytes [starts[i], ends[i]) of each page; return their number, or -1 on damage.

    `ring` is scratch space of RING_SIZE words.
    """
    one, two = U(1), U(2)
    wide = U(width)
    index_bits = U(6) if width == 32 else U(7)
    size_bits = U(5) if width == 32 else U(6)
    last_slot = (one << index_bits) - one
    filled = 0
    for page in range(len(starts)):
        position, limit = U(starts[page]) * U(8), U(ends[page]) * U(8)
        stop = filled + counts[page]
        ring[:] = U(0)
        slot = U(0)
        lead, value = U(0), U(0)
        first = True
        while filled < stop:
            if position >= limit:
                return -1
            size, shift = wide, U(0)
            if not first:
                word, offset = position >> U(6), position & U(63)
                bits = (words[word] << offset) | ((words[word + one] >> one) >> (U(63) - offset))
                flag = bits >> U(62)
                bits <<= two
                position += two
                if flag < two:
                    value = ring[bits >> (U(64) - index_bits)]
                    bits <<= index_bits
                    position += index_bits
                    size = U(0)
                if flag & one != U(0):
                    code = bits >> U(61)
                    lead = code << U(3) if code < two else U(12) if code == two else U(10) + code + code
                    bits <<= U(3)
                    position += U(3)
                if flag == one:
                    size = bits >> (U(64) - size_bits)
                    position += size_bits
                    if size == U(0):
                        size = wide
                    if lead + size > wide:
                        return -1
                    shift = wide - lead - size
                elif flag >= two:
                    size = wide - lead
            if position + size > limit:
                return -1
            if size > U(0):
                word, offset = position >> U(6), position & U(63)
                bits = (words[word] << offset) | ((words[word + one] >> one) >> (U(63) - offset))
                value ^= (bits >> (U(64) - size)) << shift
                position += size
            first = False
            ring[slot] = value
            slot = (slot + one) & last_slot
            out[filled] = value
            filled += 1
    return filled


def _encode_twin(
    values: UInt64Array,
    width: int,
    table: Int32Array,  # noqa: ARG001 (the twin of a kernel)
    out: UInt64Array,
) -> int:
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
    whole = bits.ljust((len(bits) // 64 + 1) * 64, "0")
    for index in range(len(whole) // 64):
        out[index] = int(whole[index * 64 : index * 64 + 64], 2)
    return len(bits)


@kernel("i64(u64r[], i64, i32[], u64[])", twin=_encode_twin)
def chimp_encode(values: UInt64Array, width: int, table: Int32Array, out: UInt64Array) -> int:
    """Encode at least one value (the caller appends the sentinel) into words of `out`; return the number of bits.

    `table` is scratch space of TABLE_SIZE entries. The word under construction stays in a register; at least one bit of
    the last word of `out` is unused.
    """
    one = U(1)
    wide = U(width)
    index_bits = U(6) if width == 32 else U(7)
    size_bits = U(5) if width == 32 else U(6)
    mask = (U(2) << (size_bits + index_bits)) - one
    table[:] = -1
    table[values[0] & mask] = 0
    out[0] = values[0] << (U(64) - wide)
    building, used, filled = (out[0], wide, 0) if width < 64 else (U(0), U(0), 1)
    stored = U(8)
    for i in range(1, len(values)):
        near = np.int64(table[values[i] & mask])
        table[values[i] & mask] = i
        found = near >= 0 and i - near < 1 << np.int64(index_bits)
        base = near if found else i - 1
        slot = U(base) & ((one << index_bits) - one)
        change = values[i] ^ values[base]
        head, head_bits = slot, index_bits + U(2)
        size, trail = U(0), U(0)
        if change == U(0):
            stored = U(8)
        else:
            lead = U(0)
            probe = change << (U(64) - wide)
            for step in (U(32), U(16), U(8), U(4), U(2), U(1)):
                if probe >> (U(64) - step) == U(0):
                    lead += step
                    probe <<= step
            code = lead >> U(3) if lead < U(12) else U(2) if lead < U(16) else min((lead - U(10)) >> one, U(7))
            lead = code << U(3) if code < U(2) else U(12) if code == U(2) else U(10) + code + code
            if found:
                probe = change
                for step in (U(32), U(16), U(8), U(4), U(2), U(1)):
                    if probe << (U(64) - step) == U(0):
                        trail += step
                        probe >>= step
            size = wide - lead - trail
            if found:
                head = ((((one << index_bits) | slot) << U(3) | code) << size_bits) | (size & (wide - one))
                head_bits += U(3) + size_bits
                stored = U(8)
            else:
                head, head_bits = (U(2), U(2)) if code == stored else (U(24) + code, U(5))
                stored = code
        for part in range(2):
            bits, length = (head, head_bits) if part == 0 else (change >> trail, size)
            if length > U(0):
                bits <<= U(64) - length
                building |= bits >> used
                used += length
                if used >= U(64):
                    out[filled] = building
                    filled += 1
                    used -= U(64)
                    building = (bits << one) << (length - used - one)
    out[filled] = building
    return filled * 64 + int(np.int64(used))
