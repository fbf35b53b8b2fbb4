"""Decode several non-aligned series together if their pages have the same counts and time spans.

    s0   page page page      one kernel call for all series    values   s0 s0 s0 | s1 s1 s1 | s2 s2 s2
    s1   page page page      of a type that has a kernel       times    compared as bytes, decoded once
    s2   page page page

One call for many series takes less time in Python than many calls, and the thread acquires the interpreter lock less
often. Series that no kernel supports are decoded one after another.

Pure functions over a mapped file, for any thread.
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

#: The times, one column for each series, and the number of decompressed bytes.
_Run: TypeAlias = tuple[Int64Array, list[Column], int]


class _TimesDiffer(Exception):
    """Two series have pages with equal spans, but with different times, or with times that are encoded differently."""


def read_points_together(layouts: Sequence[ChunkLayout], data: memoryview, first: int, stop: int) -> _Run | None:
    """Decode pages [first, stop) of chunks for which `ChunkLayout.same_pages` is true, into one column per chunk.

    Returns None if the chunks have different times. Raises CorruptFile, UnsupportedFile.
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
    """Return positions in `layouts`, grouped: each group is decoded by one kernel call, or is a single series."""
    groups: dict[object, list[int]] = {}
    for place, layout in enumerate(layouts):
        read = fused_decoder(layout)
        one = read and layout.type and (read, NUMPY_DTYPE[layout.type])
        groups.setdefault(one or place, []).append(place)
    return groups.values()


def _decode_fused(layouts: Sequence[ChunkLayout], data: memoryview, first: int, stop: int) -> _Run | None:
    """Decode the series of one group by one kernel call. Raises _TimesDiffer.

    Returns None if no kernel supports these series, or if their pages are damaged or exceed the limits of a read.
    """
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
    """Return the times that all series share. Raises _TimesDiffer if two series have different times."""
    one = times[0]
    if not all(other is one or np.array_equal(other, one) for other in times[1:]):
        raise _TimesDiffer
    return one
