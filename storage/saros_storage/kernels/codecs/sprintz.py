"""Decoder of SPRINTZ pages: a block has nine values, eight of which are stored as the errors of a predictor (FIRE).

    block   u8 w | first value | w bytes: 8 errors of w bits, high bit first
    tail    u8 0x80 | k, then k values in another encoding, which the caller decodes

An error e is stored as -2e if e <= 0, otherwise as 2e - 1. The prediction is `previous + ((sum >> learn) * delta >>
scale)`, with a new predictor in every block; arithmetic wraps at the value's size. Apache TsFile (Java) writes this
format.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import ByteArray, Int64Array
from saros_storage.kernels.jit import kernel

U = np.uint64
#: Number of errors in a block; they follow the block's first value.
ERRORS = 8


def _wrapped(value: int, width: int) -> int:
    half = 1 << (width - 1)
    return ((value + half) & ((1 << width) - 1)) - half


def _decode_twin(data: ByteArray, width: int, varint_first: int, out: Int64Array, filled: Int64Array) -> int:
    raw, position = data.tobytes(), 0
    values: list[int] = []
    learn, scale = (2, 8) if width == 32 else (3, 16)
    while len(values) < len(out) and not (position < len(raw) and raw[position] & 128):
        if position >= len(raw) or raw[position] > width:
            return -1
        bits, first, size = raw[position], 0, width // 8
        position += 1
        if varint_first:
            size = next((i + 1 for i, b in enumerate(raw[position : position + 5]) if b < 128), len(raw))
            first = sum((b & 127) << (7 * i) for i, b in enumerate(raw[position : position + size][:5]))
        else:
            first = int.from_bytes(raw[position : position + size], "big")
        position += size
        if position + bits > len(raw):
            return -1
        packed = int.from_bytes(raw[position : position + bits], "big")
        position += bits
        previous, total, delta = _wrapped(first, width), 0, 0
        values.append(previous)
        for i in range(ERRORS):
            stored = (packed >> ((ERRORS - 1 - i) * bits)) & ((1 << bits) - 1)
            error = _wrapped((stored + 1) // 2 if stored % 2 else -(stored // 2), width)
            guess = previous + (_wrapped((total >> learn) * delta, width) >> scale)
            value = _wrapped(guess + error, width)
            total = _wrapped(total - (-delta if error > 0 else delta), width)
            delta, previous = _wrapped(value - previous, width), value
            values.append(value)
    out[: len(values)] = values[: len(out)]
    filled[0] = min(len(values), len(out))
    return position


@kernel("i64(u8r[], i64, i64, i64[], i64[])", twin=_decode_twin)
def sprintz_decode(data: ByteArray, width: int, varint_first: int, out: Int64Array, filled: Int64Array) -> int:
    """Fill `out` until it is full or a tail begins; `filled[0]` receives the number of values.

    Returns the number of bytes read, or -1 if the page is damaged.
    """
    down = 64 - width
    learn, scale = (2, 8) if width == 32 else (3, 16)
    position, end = U(0), U(len(data))
    done = 0
    while done < len(out):
        if position >= end:
            return -1
        bits = U(data[position])
        if bits >= U(128):
            break
        if bits > U(width):
            return -1
        position += U(1)
        first, shift = U(0), U(0)
        for i in range(5 if varint_first != 0 else width // 8):
            if position >= end:
                return -1
            byte = U(data[position])
            position += U(1)
            if varint_first == 0:
                first = (first << U(8)) | byte
                continue
            first |= (byte & U(127)) << shift
            shift += U(7)
            if byte < U(128):
                break
            if i == 4:
                return -1
        if bits > end - position:
            return -1
        previous = (np.int64(first) << down) >> down
        total, delta = np.int64(0), np.int64(0)
        out[done] = previous
        done += 1
        bit = position << U(3)
        for i in range(done, min(done + ERRORS, len(out))):
            stored = U(0)
            for _ in range(bits):
                stored = (stored << U(1)) | ((U(data[bit >> U(3)]) >> (U(7) - (bit & U(7)))) & U(1))
                bit += U(1)
            half = np.int64(stored >> U(1))
            error = half + 1 if stored & U(1) != U(0) else -half
            error = (error << down) >> down
            product = ((((total >> learn) * delta) << down) >> down) >> scale
            value = ((previous + product + error) << down) >> down
            total = ((total + (delta if error > 0 else -delta)) << down) >> down
            delta = ((value - previous) << down) >> down
            previous = value
            out[i] = value
            done += 1
        position += bits
    filled[0] = done
    return int(np.int64(position))
