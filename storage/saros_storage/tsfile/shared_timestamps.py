"""A cache of decoded times, so that times that several series share are decoded only once.

Each non-aligned series stores its own times, which are mostly the same as the times of the series before it:

    s0  [times a][values]   s1  [times a][values]   s2  [times b][values]      a is decoded once, b separately

Recently decoded times are recognised by their stored bytes. Comparing equal bytes is cheap, since times at regular
intervals take a few bytes per 128 rows. Comparing different bytes is even cheaper, because the first difference ends
the comparison. A join of series with equal times receives the same array for each series, so it need not compare the
times.

A series is read run by run, from its first page to its last, before the next series is read from its first page.
Therefore the cache has room for all runs of one series, or of a few series that are read side by side.

Any thread may use the cache. If two threads need the same times at once, both may decode them.
"""

from __future__ import annotations

import msgspec
import numpy as np

from saros_storage.base.lru import LruCache
from saros_storage.base.types import DataType, Encoding, Int64Array
from saros_storage.encoding import DecodeError, decode_pages_into
from saros_storage.kernels.codecs.bit_reader import Stream
from saros_storage.kernels.codecs.points import pages_span
from saros_storage.kernels.merge import rises

#: The size suffices for four million times at regular intervals, or two million for each of two series that are read
#: side by side.
_BYTES_MAX = 32 << 20
#: Runs with more rows than a block are not cached.
_ROWS_MAX = 1 << 17


class _CachedTimes(msgspec.Struct, frozen=True, eq=False):
    """Decoded times, and the stored bytes by which they are recognised."""

    stream: bytes
    times: Int64Array


#: The key is the shape of a run of pages: the pages' sizes, counts, first times and last times. Weights are in bytes.
_recent: LruCache[bytes, _CachedTimes] = LruCache(_BYTES_MAX)


def decode_times(
    stream: bytes, sizes: Int64Array, counts: Int64Array, firsts: Int64Array, lasts: Int64Array
) -> Int64Array:
    """Decode `stream`, the concatenated times of several pages, given the encoded size and the count of each page.

    The result is shared and read-only. Raises DecodeError if the stream is damaged, the times do not rise strictly, or
    the first or last time of a page differs from the page's element of `firsts` or `lasts`.
    """
    shape = b"".join([numbers.tobytes() for numbers in (sizes, counts, firsts, lasts)])
    known = _recent.get(shape)
    if known is not None and known.stream == stream:
        return known.times
    times = _decode(stream, sizes, counts)
    check_bounds(times, counts, firsts, lasts)
    if len(times) <= _ROWS_MAX:
        _recent.put(shape, _CachedTimes(stream, times), times.nbytes + len(stream) + len(shape))
    return times


def check_bounds(times: Int64Array, counts: Int64Array, firsts: Int64Array, lasts: Int64Array) -> None:
    """Raise DecodeError unless each page's first and last time equal the page's elements of `firsts` and `lasts`."""
    if not pages_span(times, counts, firsts, lasts):
        raise DecodeError("the timestamps differ from the statistics")


def _decode(stream: bytes, sizes: Int64Array, counts: Int64Array) -> Int64Array:
    ends = np.cumsum(sizes)
    times = np.empty(int(counts.sum()), np.int64)
    some = counts > 0
    if some.any():
        data = Stream(np.frombuffer(stream, np.uint8))
        starts = (ends - sizes)[some]
        decode_pages_into(Encoding.TS_2DIFF, DataType.INT64, data, starts, ends[some], counts[some], times)
    if not rises(times):
        raise DecodeError("the timestamps are not ascending")
    times.setflags(write=False)
    return times
