"""TS_2DIFF streams: deltas less their block's minimum, bit-packed; many pages in one call.

    block:  i32 n | i32 width | min | first | n deltas of `width` bits, padded to a byte       value bytes: 4 or 8

Arithmetic wraps at the value's size; 32-bit values are sign-extended by the caller. Source: tsfile-format section 8.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from saros_storage.kernels.jit import kernel
from saros_storage.kernels.words import UInt64Array
from saros_storage.types import Int64Array

U = np.uint64
#: Deltas per block: Java's own block size.
BLOCK_DELTAS = 128


def _decode_twin(
    words: UInt64Array, starts: Int64Array, ends: Int64Array, counts: Int64Array, size: int, out: Int64Array
) -> int:
    data = words.astype(np.dtype(">u8")).tobytes()
    filled = 0
    for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
        position, left = start, count
        while left > 0:
            if position + 8 + 2 * size > end:
                return -1
            deltas = int.from_bytes(data[position : position + 4], "big")
            width = int.from_bytes(data[position + 4 : position + 8], "big")
            low = int.from_bytes(data[position + 8 : position + 8 + size], "big", signed=True)
            first = int.from_bytes(data[position + 8 + size : position + 8 + 2 * size], "big", signed=True)
            position += 8 + 2 * size
            if width > 8 * size or deltas >= 1 << 31 or position + (deltas * width + 7) // 8 > end:
                return -1
            packed = int.from_bytes(data[position : position + (deltas * width + 7) // 8], "big")
            total = (deltas * width + 7) // 8 * 8
            wanted = min(deltas, left - 1)
            steps = [low + (packed >> (total - (i + 1) * width) & ((1 << width) - 1)) for i in range(wanted)]
            wrapped = [(s + 2**63) % 2**64 - 2**63 for s in steps]
            out[filled : filled + wanted + 1] = np.cumsum(np.array([first, *wrapped], np.int64))
            filled += wanted + 1
            left -= wanted + 1
            position += (deltas * width + 7) // 8
    return filled


@kernel("i64(u64r[], i64r[], i64r[], i64r[], i64, i64[])", twin=_decode_twin)
def ts2diff_decode(
    words: UInt64Array, starts: Int64Array, ends: Int64Array, counts: Int64Array, size: int, out: Int64Array
) -> int:
    """Decode pages [starts[i], ends[i]) (bytes) of counts[i] values of `size` bytes; answers their number or -1."""
    one = U(1)
    filled = 0
    for page in range(len(starts)):
        position = starts[page]
        end = ends[page]
        left = counts[page]
        while left > 0:
            if position + 8 + 2 * size > end:
                return -1
            word = position >> 3
            offset = U((position & 7) * 8)
            head = (words[word] << offset) | ((words[word + 1] >> one) >> (U(63) - offset))
            deltas = np.int64(head >> U(32))
            width = np.int64(head & U(0xFFFFFFFF))
            if deltas >= 1 << 31 or width > 8 * size:
                return -1
            position += 8
            word = position >> 3
            offset = U((position & 7) * 8)
            low = np.int64((words[word] << offset) | ((words[word + 1] >> one) >> (U(63) - offset))) >> (64 - 8 * size)
            position += size
            word = position >> 3
            offset = U((position & 7) * 8)
            value = np.int64((words[word] << offset) | ((words[word + 1] >> one) >> (U(63) - offset)))
            value >>= 64 - 8 * size
            position += size
            if deltas * width > (end - position) * 8:
                return -1
            out[filled] = value
            filled += 1
            left -= 1
            wanted = min(deltas, left)
            if width == 0:
                for _ in range(wanted):
                    value += low
                    out[filled] = value
                    filled += 1
            else:
                bit = position * 8
                down = U(64 - width)
                for _ in range(wanted):
                    word = bit >> 6
                    offset = U(bit & 63)
                    packed = (words[word] << offset) | ((words[word + 1] >> one) >> (U(63) - offset))
                    value += low + np.int64(packed >> down)
                    out[filled] = value
                    filled += 1
                    bit += width
            left -= wanted
            position += (deltas * width + 7) >> 3
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


@kernel("i64(i64r[], i64, u64[])", twin=_encode_twin)
def ts2diff_encode(values: Int64Array, size: int, out: UInt64Array) -> int:
    """Encode values of `size` bytes into the zeroed words `out`; answers the bytes."""
    shift = 64 - 8 * size
    count = len(values)
    position = 0
    start = 0
    while start < count:
        deltas = min(BLOCK_DELTAS, count - start - 1)
        low = np.int64(0)
        for i in range(start, start + deltas):
            delta = ((values[i + 1] - values[i]) << shift) >> shift
            if i == start or delta < low:
                low = delta
        widest = U(0)
        for i in range(start, start + deltas):
            delta = ((values[i + 1] - values[i]) << shift) >> shift
            widest |= U(delta - low)
        width = 0
        probe = widest
        for step in (32, 16, 8, 4, 2, 1):
            if probe >> U(step) != U(0):
                width += step
                probe >>= U(step)
        if widest != U(0):
            width += 1
        for field in range(3):
            if field == 0:
                bits = (U(deltas) << U(32)) | U(width)
                length = 64
            elif field == 1:
                bits = U(low) << U(shift)
                length = 8 * size
            else:
                bits = U(values[start]) << U(shift)
                length = 8 * size
            word = position >> 6
            offset = position & 63
            out[word] |= bits >> U(offset)
            if offset + length > 64:
                out[word + 1] |= bits << U(64 - offset)
            position += length
        if width > 0:
            for i in range(start, start + deltas):
                delta = ((values[i + 1] - values[i]) << shift) >> shift
                bits = U(delta - low) << U(64 - width)
                word = position >> 6
                offset = position & 63
                out[word] |= bits >> U(offset)
                if offset + width > 64:
                    out[word + 1] |= bits << U(64 - offset)
                position += width
            position = (position + 7) & ~7
        start += deltas + 1
    return position >> 3
