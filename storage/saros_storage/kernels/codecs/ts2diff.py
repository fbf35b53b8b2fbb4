"""Encode and decode TS_2DIFF streams, many pages in one call: bit-packed deltas, each minus its block's least delta.

    block:  i32 n | i32 width | min | first | n deltas of `width` bits, padded to a byte       value bytes: 4 or 8

A floating-point number is stored as an integer, which a reader divides by a power of ten (see `numbers_page`).
Arithmetic wraps at the value's size. Apache TsFile writes this format.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from saros_storage.base.types import BoolArray, ByteArray, Float64Array, Int64Array
from saros_storage.kernels.codecs.bit_reader import UInt64Array
from saros_storage.kernels.jit import kernel, part
from saros_storage.kernels.unaligned import number_8

U = np.uint64
#: Deltas per block, as in Apache's Java writer.
BLOCK_DELTAS = 128
#: A delta of at most this number of bits fits in eight bytes, at whichever bit of the first byte it begins.
_ONE_READ = 57


def _decode_twin(
    data: ByteArray, starts: Int64Array, ends: Int64Array, counts: Int64Array, size: int, out: Int64Array
) -> int:
    content = data.tobytes()
    filled = 0
    for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
        position, left = start, count
        while left > 0:
            if position + 8 + 2 * size > end:
                return -1
            deltas = int.from_bytes(content[position : position + 4], "big")
            width = int.from_bytes(content[position + 4 : position + 8], "big")
            low = int.from_bytes(content[position + 8 : position + 8 + size], "big", signed=True)
            first = int.from_bytes(content[position + 8 + size : position + 8 + 2 * size], "big", signed=True)
            position += 8 + 2 * size
            if width > 8 * size or deltas >= 1 << 31 or position + (deltas * width + 7) // 8 > end:
                return -1
            packed = int.from_bytes(content[position : position + (deltas * width + 7) // 8], "big")
            total = (deltas * width + 7) // 8 * 8
            wanted = min(deltas, left - 1)
            steps = [low + (packed >> (total - (i + 1) * width) & ((1 << width) - 1)) for i in range(wanted)]
            wrapped = [(s + 2**63) % 2**64 - 2**63 for s in steps]
            values = np.cumsum(np.array([first, *wrapped], np.int64))
            out[filled : filled + wanted + 1] = values if size == 8 else values.astype(np.int32)
            filled += wanted + 1
            left -= wanted + 1
            position += (deltas * width + 7) // 8
    return filled


@part
def ts2diff_page(
    data: ByteArray, position: np.uint64, limit: np.uint64, count: int, size: int, out: Int64Array, filled: int
) -> int:
    """Decode `count` values of the page [position, limit) of the data into `out` from `filled` on.

    Returns the end of the values in `out`, or -1 if the page is damaged. Positions in the data are unsigned, since
    numba adds code for NumPy's negative indices to every access by a signed integer.
    """
    one, byte = U(1), U(8)
    left, begin = count, filled
    while left > 0:
        if position + byte + U(2 * size) > limit:
            return -1
        head = number_8(data, position)
        deltas, width = head >> U(32), head & U(0xFFFFFFFF)
        if deltas >= U(1 << 31) or width > U(8 * size):
            return -1
        position += byte
        if size == 8:
            low, value = np.int64(number_8(data, position)), np.int64(number_8(data, position + byte))
        else:
            both = np.int64(number_8(data, position))
            low, value = both >> 32, (both << 32) >> 32
        position += U(2 * size)
        taken = (deltas * width + U(7)) >> U(3)
        if taken > limit - position:
            return -1
        out[filled] = value
        made = out[filled + 1 : filled + 1 + min(int(np.int64(deltas)), left - 1)]
        if width == U(0):
            # Each value is computed from the first one, not from the previous one, so that the loop can be vectorised.
            for i in range(len(made)):
                made[i] = value + low * (i + 1)
        else:
            wide = _wide(len(data), position, width, len(made))
            bit, shift = U(0), U(64) - width
            if width <= U(_ONE_READ):
                for i in range(wide):
                    value += low + np.int64((number_8(data, position + (bit >> U(3))) << (bit & U(7))) >> shift)
                    made[i] = value
                    bit += width
            else:
                for i in range(wide):
                    place, offset = position + (bit >> U(3)), bit & U(7)
                    word = (number_8(data, place) << offset) | (U(data[place + byte]) >> (byte - offset))
                    value += low + np.int64(word >> shift)
                    made[i] = value
                    bit += width
            for i in range(wide, len(made)):
                packed = U(0)
                for _ in range(np.int64(width)):
                    packed = (packed << one) | ((U(data[position + (bit >> U(3))]) >> (U(7) - (bit & U(7)))) & one)
                    bit += one
                value += low + np.int64(packed)
                made[i] = value
        filled += len(made) + 1
        left -= len(made) + 1
        position += taken
    if size == 4:
        whole = out[begin:filled]
        for i in range(len(whole)):
            whole[i] = (whole[i] << 32) >> 32
    return filled


@part
def _wide(size: int, position: np.uint64, width: np.uint64, count: int) -> int:
    """Return how many of the `count` deltas at `position` begin at least nine bytes before the end of the data."""
    room = size - np.int64(position) - 9
    return min(count, int((8 * room + 7) // np.int64(width)) + 1) if room >= 0 else 0


@kernel("i64(u8r[], i64r[], i64r[], i64r[], i64, i64[])", twin=_decode_twin)
def ts2diff_decode(
    data: ByteArray, starts: Int64Array, ends: Int64Array, counts: Int64Array, size: int, out: Int64Array
) -> int:
    """Decode pages [starts[i], ends[i]) of counts[i] values of `size` bytes; return the number of values, or -1."""
    filled = 0
    for page in range(len(starts)):
        filled = ts2diff_page(data, U(starts[page]), U(ends[page]), counts[page], size, out, filled)
        if filled < 0:
            return -1
    return filled


@part
def _numbers_into(values: ByteArray, filled: int, whole: Int64Array, count: int, width: int, power: float) -> None:
    """Store the first `count` integers of `whole` as numbers of `width` bytes in `values`, from `filled` on.

    Unless `power` is 0, each integer is divided by `power`.
    """
    if power == 0.0:
        if width == 8:
            longs = values.view(np.int64)[filled : filled + count]
            for i in range(count):
                longs[i] = whole[i]
        else:
            ints = values.view(np.int32)[filled : filled + count]
            for i in range(count):
                ints[i] = np.int32(whole[i])
    elif width == 8:
        doubles = values.view(np.float64)[filled : filled + count]
        for i in range(count):
            doubles[i] = np.true_divide(whole[i], power)
    else:
        singles = values.view(np.float32)[filled : filled + count]
        for i in range(count):
            singles[i] = np.float32(np.true_divide(whole[i], power))


@part
def numbers_page(
    data: ByteArray,
    start: int,
    stop: int,
    count: int,
    width: int,
    powers: Float64Array,
    whole: Int64Array,
    values: ByteArray,
    filled: int,
) -> bool:
    """Decode the page [start, stop) of `count` numbers of `width` bytes into `values`, from `filled` on.

    If `powers` is not empty, the numbers are floating-point numbers: the page begins with a byte m, and its integers
    are divided by powers[m]. `whole` is scratch space for the integers of a page. Returns False if the page is damaged
    or `powers` has no element m.
    """
    power = 0.0
    if len(powers) > 0:
        if start >= stop or data[start] >= len(powers):
            return False
        power = powers[data[start]]
        start += 1
    if ts2diff_page(data, U(start), U(stop), count, width, whole, 0) < 0:
        return False
    _numbers_into(values, filled, whole, count, width, power)
    return True


def numbers_page_twin(
    data: ByteArray,
    start: int,
    stop: int,
    count: int,
    width: int,
    powers: Float64Array,
    whole: Int64Array,
    values: ByteArray,
    filled: int,
) -> bool:
    """Decode a page like `numbers_page`. The twins of kernels that call `numbers_page` use this function."""
    head = int(len(powers) > 0)
    if head and (start >= stop or data[start] >= len(powers)):
        return False
    page = np.array((start + head, stop, count))
    if _decode_twin(data, page[:1], page[1:2], page[2:], width, whole) < 0:
        return False
    out = values.view(f"{'f' if head else 'i'}{width}")
    out[filled : filled + count] = whole[:count] / powers[data[start]] if head else whole[:count]
    return True


def _scaled_twin(
    data: ByteArray,
    starts: Int64Array,
    ends: Int64Array,
    counts: Int64Array,
    width: int,
    powers: Float64Array,
    whole: Int64Array,
    values: ByteArray,
) -> int:
    filled = 0
    for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
        if not numbers_page_twin(data, start, end, count, width, powers, whole, values, filled):
            return -1
        filled += count
    return filled


@kernel("i64(u8r[], i64r[], i64r[], i64r[], i64, f64r[], i64[], u8[])", twin=_scaled_twin)
def scaled_decode(
    data: ByteArray,
    starts: Int64Array,
    ends: Int64Array,
    counts: Int64Array,
    width: int,
    powers: Float64Array,
    whole: Int64Array,
    values: ByteArray,
) -> int:
    """Decode pages [starts[i], ends[i]) of counts[i] floats with `numbers_page`; return the number of floats, or -1."""
    filled = 0
    for page in range(len(starts)):
        if not numbers_page(data, starts[page], ends[page], counts[page], width, powers, whole, values, filled):
            return -1
        filled += counts[page]
    return filled


def _encode_twin(values: Int64Array, size: int, out: UInt64Array) -> int:
    stream = b""
    mask = (1 << 8 * size) - 1
    half = 1 << (8 * size - 1)
    for start in range(0, len(values), BLOCK_DELTAS + 1):
        block = values[start : start + BLOCK_DELTAS + 1].tolist()
        deltas = [((b - a + half) & mask) - half for a, b in pairwise(block)]
        low = min(deltas, default=0)
        width = max((((d - low) & mask).bit_length() for d in deltas), default=0)
        packed = "".join(format((d - low) & mask, f"0{width}b") for d in deltas) if width else ""
        packed = packed.ljust(-(-len(packed) // 8) * 8, "0")
        stream += len(deltas).to_bytes(4, "big") + width.to_bytes(4, "big") + (low & mask).to_bytes(size, "big")
        stream += (block[0] & mask).to_bytes(size, "big") + int(packed or "0", 2).to_bytes(len(packed) // 8, "big")
    padded = stream.ljust(-(-len(stream) // 8) * 8, b"\0")
    out[: len(padded) // 8] = np.frombuffer(padded, np.dtype(">u8"))
    return len(stream)


@part
def _encode_page(values: Int64Array, size: int, out: UInt64Array, begin: int) -> int:
    """Encode a page into the words of `out` from `begin` on; return the number of bytes.

    A full block takes a whole number of words, so every block starts at a word. The word under construction stays in a
    register.
    """
    one = U(1)
    shift = 64 - 8 * size
    mask = ~U(0) >> U(shift)
    count = len(values)
    word = begin
    spare = U(0)
    for start in range(0, count, BLOCK_DELTAS + 1):
        stop = min(start + BLOCK_DELTAS, count - 1)
        low, high = np.int64(0), np.int64(0)
        if start < stop:
            low = ((values[start + 1] - values[start]) << shift) >> shift
            high = low
        for i in range(start + 1, stop):
            delta = ((values[i + 1] - values[i]) << shift) >> shift
            low = min(low, delta)
            high = max(high, delta)
        width = U(0)
        probe = U(high - low)
        for step in (U(32), U(16), U(8), U(4), U(2), U(1)):
            if probe >> step != U(0):
                width += step
                probe >>= step
        width += probe
        out[word] = (U(stop - start) << U(32)) | width
        if size == 8:
            out[word + 1] = U(low)
            out[word + 2] = U(values[start])
        else:
            out[word + 1] = (U(low) << U(32)) | (U(values[start]) & mask)
        word += 3 if size == 8 else 2
        building, used = U(0), U(0)
        if width != U(0):
            for i in range(start, stop):
                bits = U((((values[i + 1] - values[i]) << shift) >> shift) - low) << (U(64) - width)
                building |= bits >> used
                used += width
                if used >= U(64):
                    out[word] = building
                    word += 1
                    used -= U(64)
                    building = (bits << one) << (width - used - one)
        spare = U(0)
        if used != U(0):
            out[word] = building
            word += 1
            spare = (U(64) - used) >> U(3)
    return (word - begin) * 8 - int(np.int64(spare))


@kernel("i64(i64r[], i64, u64[])", twin=_encode_twin)
def ts2diff_encode(values: Int64Array, size: int, out: UInt64Array) -> int:
    """Encode values of `size` bytes into words of `out`; return the number of bytes."""
    return _encode_page(values, size, out, 0)


def _encode_rows_twin(values: Int64Array, wanted: BoolArray, size: int, out: UInt64Array, sizes: Int64Array) -> int:
    word = 0
    for row, line in enumerate(values.reshape(len(wanted), -1)):
        sizes[row] = _encode_twin(line, size, out[word:]) if wanted[row] else 0
        word += (int(sizes[row]) + 7) >> 3
    return word


@kernel("i64(i64r[], b1r[], i64, u64[], i64[])", twin=_encode_rows_twin)
def ts2diff_encode_rows(values: Int64Array, wanted: BoolArray, size: int, out: UInt64Array, sizes: Int64Array) -> int:
    """Encode each wanted row of a matrix as a page; the pages follow each other in `out`, and each starts at a word.

    `values` consists of the joined rows. `sizes` receives the number of bytes of each page, or 0 for an unwanted row.
    Returns the number of words.
    """
    count = len(values) // len(wanted)
    word = 0
    for row in range(len(wanted)):
        sizes[row] = 0
        if wanted[row]:
            sizes[row] = _encode_page(values[row * count : (row + 1) * count], size, out, word)
            word += (sizes[row] + 7) >> 3
    return word
