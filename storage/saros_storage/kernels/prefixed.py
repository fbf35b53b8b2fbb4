"""Kernels over values as IoTDB clients send them: each text follows its big-endian length, each value its type byte.

    texts     length i32 | bytes | length i32 | bytes ...
    records   type u8 | value | type u8 | value ...          a text also has its length before it

The input may be malformed: kernels never read beyond its end, and report errors in their results.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import ByteArray, Int32Array, Int64Array
from saros_storage.kernels.jit import kernel, part

#: Special entries of `sizes` in `typed_values`: PREFIXED if a value is preceded by its length, UNKNOWN if the type does
#: not exist.
PREFIXED, UNKNOWN = -1, -2


@part
def _length(data: ByteArray, at: int) -> np.int64:
    """Return four bytes as an unsigned number, so that a negative length becomes larger than any valid length."""
    high = (np.int64(data[at]) << 24) | (np.int64(data[at + 1]) << 16)
    return high | (np.int64(data[at + 2]) << 8) | np.int64(data[at + 3])


def _prefixed_offsets_plain(data: ByteArray, at: int, offsets: Int32Array) -> int:
    raw = data.tobytes()
    total = 0
    offsets[0] = 0
    for i in range(len(offsets) - 1):
        size = int.from_bytes(raw[at : at + 4], "big", signed=True)
        at += 4
        if at > len(raw) or not 0 <= size <= len(raw) - at:
            return -1
        at += size
        total += size
        offsets[i + 1] = total
    return at


@kernel("i64(u8r[], i64, i32[])", twin=_prefixed_offsets_plain)
def prefixed_offsets(data: ByteArray, at: int, offsets: Int32Array) -> int:
    """Compute the offsets of the `len(offsets) - 1` texts at `at` within the concatenation of the texts.

    Returns the end of the last text, or -1 if a length is negative or goes beyond the data.
    """
    total = 0
    offsets[0] = 0
    for i in range(len(offsets) - 1):
        if len(data) - at < 4:
            return -1
        size = _length(data, at)
        at += 4
        if size > len(data) - at:
            return -1
        at += size
        total += size
        offsets[i + 1] = total
    return at


def _gather_plain(data: ByteArray, starts: Int64Array, offsets: Int32Array, out: ByteArray) -> None:
    shifts = np.repeat(starts - offsets[:-1], np.diff(offsets))
    out[:] = data[shifts + np.arange(len(out))]


@kernel("void(u8r[], i64r[], i32r[], u8[])", twin=_gather_plain)
def gather(data: ByteArray, starts: Int64Array, offsets: Int32Array, out: ByteArray) -> None:
    """Copy text i, which begins at `starts[i]`, to `out[offsets[i]:offsets[i + 1]]`; `offsets` begins at 0."""
    for i in range(len(starts)):
        shift = starts[i] - offsets[i]
        for k in range(offsets[i], offsets[i + 1]):
            out[k] = data[shift + k]


def _typed_values_plain(
    data: ByteArray, bounds: Int64Array, counts: Int64Array, sizes: Int64Array, types: ByteArray, starts: Int64Array
) -> int:
    raw = data.tobytes()
    place = 0
    for record in range(len(counts)):
        at, end = int(bounds[record]), int(bounds[record + 1])
        for _ in range(int(counts[record])):
            size = int(sizes[raw[at]]) if at < end else UNKNOWN
            if size == UNKNOWN:
                return record
            types[place], starts[place] = raw[at], at + 1
            at += 1
            if size == PREFIXED:
                size = int.from_bytes(raw[at : at + 4], "big", signed=True)
                at += 4
            if not 0 <= size <= end - at:
                return record
            at += size
            place += 1
        if at != end:
            return record
    return -1


@kernel("i64(u8r[], i64r[], i64r[], i64r[], u8[], i64[])", twin=_typed_values_plain)
def typed_values(
    data: ByteArray, bounds: Int64Array, counts: Int64Array, sizes: Int64Array, types: ByteArray, starts: Int64Array
) -> int:
    """Find the values of records; record i is `data[bounds[i]:bounds[i + 1]]` and has `counts[i]` values.

    For each type byte, `sizes` contains the number of bytes of a value, PREFIXED or UNKNOWN. `types` receives the type
    byte of each value. `starts` receives the position after the type byte: the start of the value, or of its length if
    the value has a length.

    Returns the number of the first record with an unknown type, a wrong length or excess bytes; -1 if all are valid.
    """
    place = 0
    for record in range(len(counts)):
        at, end = bounds[record], bounds[record + 1]
        for _ in range(counts[record]):
            if at >= end:
                return record
            size = sizes[data[at]]
            types[place] = data[at]
            at += 1
            starts[place] = at
            if size == PREFIXED:
                if end - at < 4:
                    return record
                size = _length(data, at)
                at += 4
            if size < 0 or size > end - at:
                return record
            at += size
            place += 1
        if at != end:
            return record
    return -1
