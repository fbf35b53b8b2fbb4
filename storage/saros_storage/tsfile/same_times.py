"""Times that several series have, decoded once.

Each series of a device that is not aligned stores times of its own, mostly the same ones as the series before it:

    s0  [times a][values]   s1  [times a][values]   s2  [times b][values]      a is decoded once, b is another

What was decoded last is known by its bytes as stored. To compare them costs little where they are equal, since times at
even distances take some bytes for 128 rows, and nothing where they differ, which they do at once. Who joins the series
finds one array, and has nothing to compare.

Any thread: what two threads decode at once, one of them may decode in vain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saros_storage.encoding import DecodeError, decode_pages_into
from saros_storage.kernels.merge import rises
from saros_storage.kernels.words import Stream
from saros_storage.types import DataType, Encoding, Int64Array

#: Times of a few devices, for as many threads that read.
_KEPT_MAX = 8
#: More rows than a block has are not kept: a few MB in all, 16 at most.
_ROWS_MAX = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    streams: tuple[bytes, ...]
    counts: tuple[int, ...]
    times: Int64Array


class _Recent:
    def __init__(self) -> None:
        #: What was decoded last, the newest first; replaced as a whole.
        self.known: tuple[_Known, ...] = ()


_recent = _Recent()


def decode_times(streams: tuple[bytes, ...], counts: tuple[int, ...]) -> Int64Array:
    """Times of pages that are stored as `streams`, of so many rows each; not to be written to.

    Raises DecodeError: damaged, or not strictly rising.
    """
    for known in _recent.known:
        if known.counts == counts and known.streams == streams:
            return known.times
    times = _decode(streams, counts)
    if len(times) <= _ROWS_MAX:
        _recent.known = (_Known(streams, counts, times), *_recent.known[: _KEPT_MAX - 1])
    return times


def _decode(streams: tuple[bytes, ...], counts: tuple[int, ...]) -> Int64Array:
    sizes = np.array([len(stream) for stream in streams], np.int64)
    ends = np.cumsum(sizes)
    rows = np.array(counts, np.int64)
    times = np.empty(int(rows.sum()), np.int64)
    some = rows > 0
    if some.any():
        stream = Stream(np.frombuffer(b"".join(streams), np.uint8))
        starts = (ends - sizes)[some]
        decode_pages_into(Encoding.TS_2DIFF, DataType.INT64, stream, starts, ends[some], rows[some], times)
    if not rises(times):
        raise DecodeError("the times do not rise")
    times.setflags(write=False)
    return times
