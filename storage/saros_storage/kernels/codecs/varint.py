"""LEB128 integers and length-prefixed text: TsFile's PLAIN INT32 and TEXT, and ZIGZAG.

Positions are unsigned: numba adds code for NumPy's negative indices to every access by a signed integer, and then
cannot vectorise copies.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from saros_storage.base.types import ByteArray, Int32Array, Int64Array
from saros_storage.kernels.jit import kernel

U = np.uint64


def _read_twin(data: ByteArray, position: int, bits: int) -> tuple[int, int]:
    """Return (ZigZag-decoded value, position after it); the position is -1 for a truncated or too long integer."""
    raw, shift = 0, 0
    while position < len(data) and shift < bits:
        byte = int(data[position])
        raw |= (byte & 127) << shift
        position += 1
        shift += 7
        if byte < 128:
            raw &= (1 << bits) - 1
            return (raw >> 1) ^ -(raw & 1), position
    return 0, -1


def _decode_twin(data: ByteArray, bits: int, out: Int64Array) -> int:
    position = 0
    for index in range(len(out)):
        value, position = _read_twin(data, position, bits)
        if position < 0:
            return -1
        out[index] = value
    return position


@kernel("i64(u8r[], i64, i64[])", twin=_decode_twin)
def varint_decode(data: ByteArray, bits: int, out: Int64Array) -> int:
    """Fill `out` with ZigZag integers of 32 or 64 `bits`; return the number of bytes read, or -1 for damaged data."""
    one, seven = U(1), U(7)
    position, end = U(0), U(len(data))
    mask = U(0xFFFFFFFF) if bits == 32 else U(0xFFFFFFFFFFFFFFFF)
    for index in range(len(out)):
        raw, shift = U(0), U(0)
        while True:
            if position >= end or shift >= U(bits):
                return -1
            byte = U(data[position])
            raw |= (byte & U(127)) << shift
            position += one
            shift += seven
            if byte < U(128):
                break
        raw &= mask
        out[index] = np.int64(raw >> one) ^ -np.int64(raw & one)
    return int(np.int64(position))


def _encode_twin(values: Int64Array, bits: int, out: ByteArray) -> int:
    position = 0
    for value in values.tolist():
        raw = ((value << 1) ^ (value >> 63)) & ((1 << bits) - 1)
        while raw >= 128:
            out[position] = raw & 127 | 128
            raw >>= 7
            position += 1
        out[position] = raw
        position += 1
    return position


@kernel("i64(i64r[], i64, u8[])", twin=_encode_twin)
def varint_encode(values: Int64Array, bits: int, out: ByteArray) -> int:
    """Write ZigZag integers into `out` (at most 5 bytes each for 32 bits, 10 for 64); return the number of bytes."""
    one = U(1)
    position = U(0)
    mask = U(0xFFFFFFFF) if bits == 32 else U(0xFFFFFFFFFFFFFFFF)
    for value in values:
        raw = U((value << 1) ^ (value >> 63)) & mask
        while raw >= U(128):
            out[position] = np.uint8((raw & U(127)) | U(128))
            raw >>= U(7)
            position += one
        out[position] = np.uint8(raw)
        position += one
    return int(np.int64(position))


def _text_decode_twin(data: ByteArray, offsets: Int32Array, out: ByteArray) -> int:
    position, filled = 0, 0
    for index in range(len(offsets) - 1):
        length, position = _read_twin(data, position, 32)
        if position < 0 or length < 0 or length > len(data) - position:
            return -1
        out[filled : filled + length] = data[position : position + length]
        position += length
        filled += length
        offsets[index + 1] = filled
    return position


@kernel("i64(u8r[], i32[], u8[])", twin=_text_decode_twin)
def text_decode(data: ByteArray, offsets: Int32Array, out: ByteArray) -> int:
    """Decode texts that follow their ZigZag lengths: store their ends in `offsets[1:]`, and their bytes in `out`.

    `out` needs at most len(data) bytes. Returns the number of bytes read, or -1 if the texts are damaged.
    """
    one = U(1)
    position, filled, end = U(0), U(0), U(len(data))
    for index in range(len(offsets) - 1):
        raw, shift = U(0), U(0)
        while True:
            if position >= end or shift >= U(32):
                return -1
            byte = U(data[position])
            raw |= (byte & U(127)) << shift
            position += one
            shift += U(7)
            if byte < U(128):
                break
        raw &= U(0xFFFFFFFF)
        length = raw >> one
        if raw & one != U(0) or length > end - position:
            return -1
        for i in range(length):
            out[filled + i] = data[position + i]
        position += length
        filled += length
        offsets[index + 1] = np.int32(filled)
    return int(np.int64(position))


def _text_encode_twin(offsets: Int32Array, data: ByteArray, out: ByteArray) -> int:
    position = 0
    bounds = offsets.tolist()
    for start, stop in pairwise(bounds):
        position += _encode_twin(np.array([stop - start]), 32, out[position:])
        out[position : position + stop - start] = data[start:stop]
        position += stop - start
    return position


@kernel("i64(i32r[], u8r[], u8[])", twin=_text_encode_twin)
def text_encode(offsets: Int32Array, data: ByteArray, out: ByteArray) -> int:
    """Encode texts for `text_decode`, adding at most 5 bytes to each text; return the number of bytes."""
    one = U(1)
    position = U(0)
    for index in range(len(offsets) - 1):
        start = U(offsets[index])
        length = U(offsets[index + 1]) - start
        raw = length << one
        while raw >= U(128):
            out[position] = np.uint8((raw & U(127)) | U(128))
            raw >>= U(7)
            position += one
        out[position] = np.uint8(raw)
        position += one
        for i in range(length):
            out[position + i] = data[start + i]
        position += length
    return int(np.int64(position))
