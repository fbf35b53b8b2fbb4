"""What the pages of a series that is not aligned are made of, many in one call.

page        uvar bytes of times | times | values          point_sections: where times and values begin
values      PLAIN: big-endian, 4 or 8 bytes each          plain_decode
times       one page's after the other's                  pages_span: each page's first and last time as it should be

Pages that are LZ4 blocks with PLAIN values are read by one kernel, `lz4_plain_points`, those with TS_2DIFF values by
another, `lz4_ts2diff_points`: the caller asks once for the interpreter's lock, and a page is in the processor's cache
when its values are decoded.
"""

from __future__ import annotations

import numpy as np

from saros_storage.kernels.jit import kernel, part
from saros_storage.kernels.lz4 import lz4_block, lz4_decode
from saros_storage.kernels.ts2diff import ts2diff_decode, ts2diff_page
from saros_storage.kernels.wide import turn_4, turn_8
from saros_storage.kernels.words import UInt64Array, words_of
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


@part
def _section(data: ByteArray, at: int, end: int) -> tuple[int, int]:
    """Where times and values of the page [at, end) begin; values at -1: times do not end in it."""
    size, shift, byte = 0, 0, 128
    while byte >= 128:
        if at >= end or shift == 7 * _VARINT_BYTES_MAX:
            return at, -1
        byte = np.int64(data[at])
        size |= (byte & 127) << shift
        shift += 7
        at += 1
    return (at, at + size) if size <= end - at else (at, -1)


@kernel("i64(u8r[], i64r[], i64r[], i64[], i64[])", twin=_sections_twin)
def point_sections(data: ByteArray, starts: Int64Array, ends: Int64Array, times: Int64Array, values: Int64Array) -> int:
    """Where times and values begin in pages [starts[i], ends[i]).

    Answers how many pages have both, before one that has not.
    """
    for page in range(len(starts)):
        times[page], values[page] = _section(data, starts[page], ends[page])
        if values[page] < 0:
            return page
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


@part
def _turn(data: ByteArray, at: np.uint64, size: int, count: int, out: ByteArray, to: np.uint64) -> None:
    """Turn `count` values of `size` bytes round."""
    wide = U(size)
    stop = to + wide * U(count)
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


@kernel("i64(u8r[], i64r[], i64r[], i64r[], i64, u8[])", twin=_plain_twin)
def plain_decode(
    data: ByteArray, starts: Int64Array, ends: Int64Array, counts: Int64Array, size: int, out: ByteArray
) -> int:
    """Turn counts[i] values of `size` bytes (4 or 8) of each of the pages [starts[i], ends[i]) round, into `out`.

    Answers the bytes, or -1: a page has too few. The caller sees to it that pages lie in `data`, and values in `out`.
    """
    filled = 0
    for page in range(len(starts)):
        if size * counts[page] > ends[page] - starts[page]:
            return -1
        _turn(data, U(starts[page]), size, counts[page], out, U(filled))
        filled += size * counts[page]
    return filled


def _lz4_plain_twin(
    data: ByteArray,
    offsets: Int64Array,
    stored: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    page: ByteArray,
    times: ByteArray,
    lengths: Int64Array,
    values: ByteArray,
) -> int:
    used, filled = 0, 0
    begin, start = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for number, count in enumerate(counts.tolist()):
        this = slice(number, number + 1)
        whole = lz4_decode.twin(data, offsets[this], stored[this], sizes[this], page)
        if not whole or not _sections_twin(page, np.zeros(1, np.int64), sizes[this], begin, start):
            return -1
        stream = page[int(begin[0]) : int(start[0])]
        if len(stream) > len(times) - used or count < 0 or width * count > len(values) - filled:
            return -1
        if _plain_twin(page, start, sizes[this], counts[this], width, values[filled:]) < 0:
            return -1
        times[used : used + len(stream)] = stream
        lengths[number] = len(stream)
        used += len(stream)
        filled += width * count
    return used


@kernel("i64(u8r[], i64r[], i64r[], i64r[], i64r[], i64, u8[], u8[], i64[], u8[])", twin=_lz4_plain_twin)
def lz4_plain_points(
    data: ByteArray,
    offsets: Int64Array,
    stored: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    page: ByteArray,
    times: ByteArray,
    lengths: Int64Array,
    values: ByteArray,
) -> int:
    """Times as they are stored, and values turned round, of pages that are LZ4 blocks and have PLAIN values.

    Page i is `stored[i]` bytes of `data`, `sizes[i]` when decompressed, which it is into `page`; it gives `lengths[i]`
    bytes of times, and `counts[i]` values of `width` bytes (4 or 8). Answers the bytes of all times, or -1: a page is
    damaged, or there is no room for what it gives.
    """
    used, filled = 0, 0
    for number in range(len(offsets)):
        offset, size, wanted = offsets[number], sizes[number], width * counts[number]
        if min(offset, size, stored[number], wanted) < 0 or stored[number] > len(data) - offset or size > len(page):
            return -1
        if not lz4_block(data, U(offset), U(offset + stored[number]), page, U(0), U(size)):
            return -1
        begin, start = _section(page, 0, size)
        length = start - begin
        if start < 0 or wanted > size - start or length > len(times) - used or wanted > len(values) - filled:
            return -1
        for i in range(length):
            times[used + i] = page[begin + i]
        _turn(page, U(start), width, counts[number], values, U(filled))
        lengths[number] = length
        used += length
        filled += wanted
    return used


def _lz4_ts2diff_twin(
    data: ByteArray,
    offsets: Int64Array,
    stored: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    head: int,
    page: ByteArray,
    words: UInt64Array,
    times: ByteArray,
    lengths: Int64Array,
    digits: ByteArray,
    values: Int64Array,
) -> int:
    used, filled = 0, 0
    begin, start = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for number, count in enumerate(counts.tolist()):
        this = slice(number, number + 1)
        whole = lz4_decode.twin(data, offsets[this], stored[this], sizes[this], page)
        if not whole or not _sections_twin(page, np.zeros(1, np.int64), sizes[this], begin, start):
            return -1
        stream = page[int(begin[0]) : int(start[0])]
        numbers = page[int(start[0]) : int(sizes[number])]
        if len(stream) > len(times) - used or not 0 <= count <= len(values) - filled or len(numbers) < head:
            return -1
        words[: len(numbers) // 8 + 3] = words_of(numbers)
        extent = np.array((head, len(numbers)))
        out = values[filled : filled + count]
        if ts2diff_decode.twin(words, extent[:1], extent[1:], counts[this], width, out) < 0:
            return -1
        times[used : used + len(stream)] = stream
        lengths[number] = len(stream)
        digits[number : number + head] = numbers[:head]
        used += len(stream)
        filled += count
    return used


@kernel(
    "i64(u8r[], i64r[], i64r[], i64r[], i64r[], i64, i64, u8[], u64[], u8[], i64[], u8[], i64[])",
    twin=_lz4_ts2diff_twin,
)
def lz4_ts2diff_points(
    data: ByteArray,
    offsets: Int64Array,
    stored: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    head: int,
    page: ByteArray,
    words: UInt64Array,
    times: ByteArray,
    lengths: Int64Array,
    digits: ByteArray,
    values: Int64Array,
) -> int:
    """As `lz4_plain_points`; the values are TS_2DIFF, of `width` bytes. `head` 1: behind a byte that is `digits[i]`.

    `words` has room for a page and three more: what is decoded is read from there.
    """
    used, filled = 0, 0
    for number in range(len(offsets)):
        offset, size, wanted = offsets[number], sizes[number], counts[number]
        if min(offset, size, stored[number], wanted) < 0 or stored[number] > len(data) - offset or size > len(page):
            return -1
        if not lz4_block(data, U(offset), U(offset + stored[number]), page, U(0), U(size)):
            return -1
        begin, start = _section(page, 0, size)
        length, rest = start - begin, size - start
        if start < 0 or rest < head or length > len(times) - used or wanted > len(values) - filled:
            return -1
        if rest >> 3 > len(words) - 3:
            return -1
        for i in range(length):
            times[used + i] = page[begin + i]
        for word in range(rest >> 3):
            words[word] = _word(page, start + 8 * word, 8)
        words[rest >> 3] = _word(page, start + (rest & ~7), rest & 7)
        words[(rest >> 3) + 1] = U(0)
        words[(rest >> 3) + 2] = U(0)
        filled = ts2diff_page(words, U(8 * head), U(8 * rest), wanted, width, values, filled)
        if filled < 0:
            return -1
        lengths[number] = length
        if head:
            digits[number] = page[start]
        used += length
    return used


@part
def _word(data: ByteArray, at: int, count: int) -> np.uint64:
    """Up to eight bytes as a word, the first one on top."""
    word = U(0)
    for i in range(count):
        word |= U(data[at + i]) << U(56 - 8 * i)
    return word


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
