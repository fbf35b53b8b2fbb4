"""Times that several series share, decoded once.

Each non-aligned series stores its own times, which are mostly the same as those of the series before it:

    s0  [times a][values]   s1  [times a][values]   s2  [times b][values]      a is decoded once, b is another

Recently decoded times are recognised by their stored bytes. The comparison is cheap where the bytes are equal, since
times at even distances take a few bytes per 128 rows, and cheaper still where they differ, which shows at once. A join
of such series gets one shared array, and has no times to compare.

A series is read run by run, and the next one again from its beginning. So the cache keeps the runs of a whole series,
or of a few that are read side by side.

Any thread: two threads that decode the same times at once may both do the work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saros_storage.base.lru import LruCache
from saros_storage.base.types import DataType, Encoding, Int64Array
from saros_storage.encoding import DecodeError, decode_pages_into
from saros_storage.kernels.codecs.bit_reader import Stream
from saros_storage.kernels.codecs.points import pages_span
from saros_storage.kernels.merge import rises

#: Some four million times at even distances: of two series side by side, two million each.
_BYTES_MAX = 32 << 20
#: Runs of more rows than a block has are not kept.
_ROWS_MAX = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class _CachedTimes:
    stream: bytes
    times: Int64Array


#: By what is known of each page: bytes, rows, first and last time. Weights are bytes.
_recent: LruCache[bytes, _CachedTimes] = LruCache(_BYTES_MAX)


def decode_times(
    stream: bytes, sizes: Int64Array, counts: Int64Array, firsts: Int64Array, lasts: Int64Array
) -> Int64Array:
    """Times of pages of so many bytes of the stream, and rows, one behind the other; not to be written to.

    Raises DecodeError: damaged, not strictly rising, or pages that do not begin and end with these times.
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
    """Raise DecodeError unless pages of so many times begin and end with those."""
    if not pages_span(times, counts, firsts, lasts):
        raise DecodeError("the times are not those that the statistics say")


def _decode(stream: bytes, sizes: Int64Array, counts: Int64Array) -> Int64Array:
    ends = np.cumsum(sizes)
    times = np.empty(int(counts.sum()), np.int64)
    some = counts > 0
    if some.any():
        data = Stream(np.frombuffer(stream, np.uint8))
        starts = (ends - sizes)[some]
        decode_pages_into(Encoding.TS_2DIFF, DataType.INT64, data, starts, ends[some], counts[some], times)
    if not rises(times):
        raise DecodeError("the times do not rise")
    times.setflags(write=False)
    return times
