"""Pages of several non-aligned series whose chunks have the same pages, decoded together.

    s0   page page page      one kernel call for all series    values   s0 s0 s0 | s1 s1 s1 | s2 s2 s2
    s1   page page page      of a type that has a kernel       times    compared as bytes, decoded once
    s2   page page page

The Python cost of a call is shared by many series, and a decoding thread takes the interpreter lock less often. Other
encodings are read series by series.

Pure over a mapped file: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from saros_storage.base.block import Column
from saros_storage.base.types import NUMPY_DTYPE, Int64Array
from saros_storage.encoding import DecodeError
from saros_storage.tsfile.chunk import ChunkLayout, PageTable
from saros_storage.tsfile.fused_decode import fused_decoder
from saros_storage.tsfile.pages import read_points
from saros_storage.tsfile.shared_timestamps import decode_times
from saros_storage.tsfile.structure.format import READ_BYTES_MAX, READ_ROWS_MAX

#: Times, a column for each series, decompressed bytes.
_Run: TypeAlias = tuple[Int64Array, list[Column], int]


class _TimesDiffer(Exception):
    """Raised if series differ in their times within pages of the same span, or in the encoding of these times."""


def read_points_together(layouts: Sequence[ChunkLayout], data: memoryview, first: int, stop: int) -> _Run | None:
    """Return pages [first, stop) of chunks that have the same pages (`ChunkLayout.same_pages`), one column per chunk.

    Returns None if the times differ. Raises CorruptFile, UnsupportedFile.
    """
    columns: list[Column | None] = [None] * len(layouts)
    times: list[Int64Array] = []
    sizes = 0
    try:
        for places in _groups(layouts):
            chosen = [layouts[place] for place in places]
            run = _decode_fused(chosen, data, first, stop) if len(chosen) > 1 else None
            one, found, size = run or _one_by_one(chosen, data, first, stop)
            times.append(one)
            sizes += size
            for place, column in zip(places, found, strict=True):
                columns[place] = column
        return _same(times), [column for column in columns if column is not None], sizes
    except _TimesDiffer:
        return None


def _groups(layouts: Sequence[ChunkLayout]) -> Iterable[list[int]]:
    """Group the positions of the series by kernel call; series without a kernel are alone in their group."""
    groups: dict[object, list[int]] = {}
    for place, layout in enumerate(layouts):
        read = fused_decoder(layout)
        one = read and layout.type and (read, NUMPY_DTYPE[layout.type])
        groups.setdefault(one or place, []).append(place)
    return groups.values()


def _decode_fused(layouts: Sequence[ChunkLayout], data: memoryview, first: int, stop: int) -> _Run | None:
    """Decode the series of one group; None if there is no kernel for them, or if they are damaged or too large."""
    read = fused_decoder(layouts[0])
    count, lead = len(layouts), layouts[0].table(first, stop)
    table = PageTable(*np.concatenate([layout.numbers[:, first:stop] for layout in layouts], axis=1))
    size = int(table.sizes.sum())
    types = [layout.type for layout in layouts if layout.type is not None]
    if read is None or count * lead.rows > READ_ROWS_MAX or size > READ_BYTES_MAX:
        return None
    values = np.empty(count * lead.rows, NUMPY_DTYPE[types[0]])
    found = read(data, table, size, max(layout.size_max for layout in layouts), values)
    if found is None:
        return None
    streams, lengths = found[0], found[1].reshape(count, -1)
    if (lengths != lengths[0]).any() or (streams.reshape(count, -1) != streams[: len(streams) // count]).any():
        raise _TimesDiffer
    stream = streams[: len(streams) // count].tobytes()
    try:
        times = decode_times(stream, lengths[0], lead.counts, lead.firsts, lead.lasts)
    except DecodeError as error:
        raise layouts[0].corrupt(str(error)) from error
    rows = values.reshape(count, -1)
    return times, [Column(t, row) for t, row in zip(types, rows, strict=True)], size


def _one_by_one(layouts: Sequence[ChunkLayout], data: memoryview, first: int, stop: int) -> _Run:
    parts = [read_points(layout, data, first, stop) for layout in layouts]
    return _same([part[0] for part in parts]), [part[1] for part in parts], sum(part[2] for part in parts)


def _same(times: Sequence[Int64Array]) -> Int64Array:
    """Return the times that all series share. Raises _TimesDiffer if they differ."""
    one = times[0]
    if not all(other is one or np.array_equal(other, one) for other in times[1:]):
        raise _TimesDiffer
    return one
