"""What the pages of a series that is not aligned are made of, many in one call.

page        uvar bytes of times | times | values          point_sections: where times and values begin
values      PLAIN: big-endian, 4 or 8 bytes each          plain_decode
times       one page's after the other's                  pages_span: each page's first and last time as it should be
"""

from __future__ import annotations

import numpy as np

from saros_storage.kernels.jit import kernel
from saros_storage.kernels.wide import turn_4, turn_8
from saros_storage.types import ByteArray, Int64Array

U = np.uint64
#: A varint of 32 bits has so many bytes at most.
_VARINT_BYTES_MAX = 5


def _sections_twin(data: ByteArray, starts: Int64Array, ends: Int64Array, times: Int64Array, values: Int64Array) -> int:
    for page, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        head = data[start : min(start + _VARINT_BYTES_MAX, end)].tolist()
        length = next((i + 1 for i, byte in enumerate(head) if byte < 128), 0)
        size = sum((byte & 127) << (7 * i) for i, byte in enumerate(head[:length]))
        if not length or start + length + size > end:
            return page
        times[page], values[page] = start + length, start + length + size
    return len(starts)


@kernel("i64(u8r[], i64r[], i64r[], i64[], i64[])", twin=_sections_twin)
def point_sections(data: ByteArray, starts: Int64Array, ends: Int64Array, times: Int64Array, values: Int64Array) -> int:
    """Where times and values begin in pages [starts[i], ends[i]).

    Answers how many pages have both, before one that has not.
    """
    for page in range(len(starts)):
        at, end = starts[page], ends[page]
        size, shift, byte = 0, 0, 128
        while byte >= 128:
            if at >= end or shift == 7 * _VARINT_BYTES_MAX:
                return page
            byte = np.int64(data[at])
            size |= (byte & 127) << shift
            shift += 7
            at += 1
        if size > end - at:
            return page
        times[page] = at
        values[page] = at + size
    return len(starts)


def _plain_twin(
    data: ByteArray, starts: Int64Array, ends: Int64Array, counts: Int64Array, size: int, out: ByteArray
) -> int:
    filled = 0
    for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
        stop = start + size * count
        if stop > end:
            return -1
        out[filled : filled + size * count] = data[start:stop].reshape(-1, size)[:, ::-1].ravel()
        filled += size * count
    return filled


@kernel("i64(u8r[], i64r[], i64r[], i64r[], i64, u8[])", twin=_plain_twin)
def plain_decode(
    data: ByteArray, starts: Int64Array, ends: Int64Array, counts: Int64Array, size: int, out: ByteArray
) -> int:
    """Turn counts[i] values of `size` bytes (4 or 8) of each of the pages [starts[i], ends[i]) round, into `out`.

    Answers the bytes, or -1: a page has too few. The caller sees to it that pages lie in `data`, and values in `out`.
    """
    wide = U(size)
    to = U(0)
    for page in range(len(starts)):
        at = U(starts[page])
        if size * counts[page] > ends[page] - starts[page]:
            return -1
        stop = to + wide * U(counts[page])
        if size == 8:
            while to < stop:
                turn_8(out, to, data, at)
                to += wide
                at += wide
        else:
            while to < stop:
                turn_4(out, to, data, at)
                to += wide
                at += wide
    return int(np.int64(to))


def _span_twin(times: Int64Array, counts: Int64Array, firsts: Int64Array, lasts: Int64Array) -> bool:
    if not counts.all():
        return False
    ends = np.cumsum(counts) - 1
    return bool((times[ends - counts + 1] == firsts).all() and (times[ends] == lasts).all())


@kernel("b1(i64r[], i64r[], i64r[], i64r[])", twin=_span_twin)
def pages_span(times: Int64Array, counts: Int64Array, firsts: Int64Array, lasts: Int64Array) -> bool:
    """Whether pages of counts[i] times, at least one, begin and end with those."""
    start = 0
    for page in range(len(counts)):
        stop = start + counts[page]
        if stop == start or times[start] != firsts[page] or times[stop - 1] != lasts[page]:
            return False
        start = stop
    return True
