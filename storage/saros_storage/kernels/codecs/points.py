"""Kernels over pages of non-aligned series: one call finds or decodes the times and values of many pages.

    page       uvar bytes of times | times | values      point_sections: finds the start of the times and of the values
    values     PLAIN: big-endian, 4 or 8 bytes each      plain_decode
    times      concatenated over all pages               pages_span: checks each page's first and last time

If pages are LZ4 blocks, one kernel decompresses and decodes them: `lz4_plain_points` for PLAIN values,
`lz4_ts2diff_points` for TS_2DIFF values. Thus a caller takes the interpreter lock only once for many pages, and each
page is still in the processor's cache when its values are decoded.
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import ByteArray, Float64Array, Int64Array
from saros_storage.kernels.codecs.lz4 import lz4_block, lz4_decode
from saros_storage.kernels.codecs.ts2diff import numbers_page, numbers_page_twin
from saros_storage.kernels.jit import kernel, part
from saros_storage.kernels.unaligned import turn_4, turn_8

U = np.uint64
#: Maximum bytes of a 32-bit varint.
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
    """Return the starts of times and values in the page [at, end).

    The start of values is -1 if the length of the times is malformed or exceeds the page.
    """
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
    """Find the start of times and values in pages [starts[i], ends[i]).

    Returns the number of pages before the first malformed one.
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
def _swap_bytes(data: ByteArray, at: np.uint64, size: int, count: int, out: ByteArray, to: np.uint64) -> None:
    """Copy `count` values of `size` bytes from `data` to `out`, reversing the bytes of each value."""
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
    """Decode counts[i] big-endian values of `size` bytes (4 or 8) from each page [starts[i], ends[i]) into `out`.

    Returns the number of bytes written, or -1 if a page is too short. The caller ensures that the pages are within
    `data` and that `out` has room for the values.
    """
    filled = 0
    for page in range(len(starts)):
        if size * counts[page] > ends[page] - starts[page]:
            return -1
        _swap_bytes(data, U(starts[page]), size, counts[page], out, U(filled))
        filled += size * counts[page]
    return filled


@part
def _opened(
    data: ByteArray, offset: int, stored: int, size: int, page: ByteArray, times: ByteArray, used: int
) -> tuple[int, int]:
    """Decompress a page into `page`, and copy its encoded times to position `used` of `times`.

    Returns the end of the times in `times` and the start of the values in `page`. The start of the values is -1 if the
    page is damaged, or if `page` or `times` is too small.
    """
    if min(offset, stored, size) < 0 or stored > len(data) - offset or size > len(page):
        return used, -1
    if not lz4_block(data, U(offset), U(offset + stored), page, U(0), U(size)):
        return used, -1
    begin, start = _section(page, 0, size)
    if start < 0 or start - begin > len(times) - used:
        return used, -1
    stream, copied = page[begin:start], times[used : used + start - begin]
    for i in range(len(stream)):
        copied[i] = stream[i]
    return used + start - begin, start


def _opened_twin(
    data: ByteArray, offset: int, stored: int, size: int, page: ByteArray, times: ByteArray, used: int
) -> tuple[int, int]:
    extent = np.array((offset, stored, size))
    begin, start = np.zeros(1, np.int64), np.zeros(1, np.int64)
    whole = lz4_decode.twin(data, extent[:1], extent[1:2], extent[2:], page)
    if not whole or not _sections_twin(page, np.zeros(1, np.int64), extent[2:], begin, start):
        return used, -1
    stream = page[int(begin[0]) : int(start[0])]
    if len(stream) > len(times) - used:
        return used, -1
    times[used : used + len(stream)] = stream
    return used + len(stream), int(start[0])


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
    extents = zip(offsets.tolist(), stored.tolist(), sizes.tolist(), counts.tolist(), strict=True)
    for number, (offset, length, size, count) in enumerate(extents):
        end, start = _opened_twin(data, offset, length, size, page, times, used)
        if start < 0 or not 0 <= width * count <= min(size - start, len(values) - filled):
            return -1
        content = page[start : start + width * count]
        values[filled : filled + width * count] = content.reshape(-1, width)[:, ::-1].ravel()
        lengths[number] = end - used
        used = end
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
    """Read pages that are LZ4 blocks with PLAIN values: times stay encoded, values get the machine's byte order.

    Page i has `stored[i]` bytes at `offsets[i]` of `data`; it is decompressed to `sizes[i]` bytes in `page`, and yields
    `lengths[i]` bytes of times and `counts[i]` values of `width` bytes (4 or 8). Returns the total number of bytes of
    the times, or -1 if a page is damaged or an array is too small for its contents.
    """
    used, filled = 0, 0
    for number in range(len(offsets)):
        wanted = width * counts[number]
        end, start = _opened(data, offsets[number], stored[number], sizes[number], page, times, used)
        if start < 0 or wanted < 0 or wanted > min(sizes[number] - start, len(values) - filled):
            return -1
        _swap_bytes(page, U(start), width, counts[number], values, U(filled))
        lengths[number] = end - used
        used = end
        filled += wanted
    return used


def _lz4_ts2diff_twin(
    data: ByteArray,
    offsets: Int64Array,
    stored: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    powers: Float64Array,
    page: ByteArray,
    whole: Int64Array,
    times: ByteArray,
    lengths: Int64Array,
    values: ByteArray,
) -> int:
    used, filled = 0, 0
    extents = zip(offsets.tolist(), stored.tolist(), sizes.tolist(), counts.tolist(), strict=True)
    for number, (offset, length, size, count) in enumerate(extents):
        end, start = _opened_twin(data, offset, length, size, page, times, used)
        if start < 0 or not 0 <= count <= min(len(whole), len(values) // width - filled):
            return -1
        if not numbers_page_twin(page, start, size, count, width, powers, whole, values, filled):
            return -1
        lengths[number] = end - used
        used = end
        filled += count
    return used


@kernel(
    "i64(u8r[], i64r[], i64r[], i64r[], i64r[], i64, f64r[], u8[], i64[], u8[], i64[], u8[])",
    twin=_lz4_ts2diff_twin,
)
def lz4_ts2diff_points(
    data: ByteArray,
    offsets: Int64Array,
    stored: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    width: int,
    powers: Float64Array,
    page: ByteArray,
    whole: Int64Array,
    times: ByteArray,
    lengths: Int64Array,
    values: ByteArray,
) -> int:
    """Read pages like `lz4_plain_points`, but with TS_2DIFF values; for `powers` and `whole`, see `numbers_page`."""
    used, filled = 0, 0
    for number in range(len(offsets)):
        count, size = counts[number], sizes[number]
        end, start = _opened(data, offsets[number], stored[number], size, page, times, used)
        if start < 0 or count < 0 or count > min(len(whole), len(values) // width - filled):
            return -1
        if not numbers_page(page, start, size, count, width, powers, whole, values, filled):
            return -1
        lengths[number] = end - used
        used = end
        filled += count
    return used


def _span_twin(times: Int64Array, counts: Int64Array, firsts: Int64Array, lasts: Int64Array) -> bool:
    if not counts.all():
        return False
    ends = np.cumsum(counts) - 1
    return bool((times[ends - counts + 1] == firsts).all() and (times[ends] == lasts).all())


@kernel("b1(i64r[], i64r[], i64r[], i64r[])", twin=_span_twin)
def pages_span(times: Int64Array, counts: Int64Array, firsts: Int64Array, lasts: Int64Array) -> bool:
    """Return whether each page has counts[i] > 0 times, of which the first is firsts[i] and the last is lasts[i]."""
    start = 0
    for page in range(len(counts)):
        stop = start + counts[page]
        if stop == start or times[start] != firsts[page] or times[stop - 1] != lasts[page]:
            return False
        start = stop
    return True
