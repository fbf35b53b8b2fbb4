"""Decompress and decode pages of non-aligned series by one kernel call.

There are kernels for pages that are compressed with LZ4 and contain values encoded as PLAIN or TS_2DIFF. Pure: any
thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from saros_storage.base.types import ByteArray, Compressor, Int64Array, NumericArray
from saros_storage.encoding import EXACT_POWERS, is_byte_swapped, is_delta_encoded
from saros_storage.kernels.codecs.points import lz4_plain_points, lz4_ts2diff_points
from saros_storage.tsfile.chunk import ChunkLayout, PageTable

#: The arguments are the file, the pages, the decompressed size of all pages together, an upper bound of the
#: decompressed size of one page, and the array that receives the values. Returns the encoded times of all pages,
#: concatenated, and the length of each page's times, or None if the pages are damaged.
FusedDecoder: TypeAlias = Callable[[memoryview, PageTable, int, int, NumericArray], tuple[ByteArray, Int64Array] | None]


def fused_decoder(layout: ChunkLayout) -> FusedDecoder | None:
    """Return the decoder for the chunk's pages, or None if no kernel supports the chunk's compressor and encoding."""
    if layout.compressor is not Compressor.LZ4 or layout.type is None:
        return None
    if is_byte_swapped(layout.encoding, layout.type):
        return _plain_points
    return _ts2diff_points if is_delta_encoded(layout.encoding, layout.type) else None


def _ts2diff_points(
    data: memoryview, table: PageTable, size: int, size_max: int, values: NumericArray
) -> tuple[ByteArray, Int64Array] | None:
    page, whole = np.empty(size_max, np.uint8), np.empty(int(table.counts.max(initial=0)), np.int64)
    times, lengths = np.empty(size, np.uint8), np.empty_like(table.sizes)
    used = lz4_ts2diff_points(
        *_blocks(data, table),
        values.itemsize,
        EXACT_POWERS if values.dtype.kind == "f" else EXACT_POWERS[:0],
        page,
        whole,
        times,
        lengths,
        values.view(np.uint8),
    )
    return None if used < 0 else (times[:used], lengths)


def _plain_points(
    data: memoryview, table: PageTable, size: int, size_max: int, values: NumericArray
) -> tuple[ByteArray, Int64Array] | None:
    others = size - values.nbytes
    if others < 0:
        return None
    page, times, lengths = np.empty(size_max, np.uint8), np.empty(others, np.uint8), np.empty_like(table.sizes)
    used = lz4_plain_points(
        *_blocks(data, table),
        values.itemsize,
        page,
        times,
        lengths,
        values.view(np.uint8),
    )
    return None if used < 0 else (times[:used], lengths)


def _blocks(data: memoryview, table: PageTable) -> tuple[ByteArray, Int64Array, Int64Array, Int64Array, Int64Array]:
    """Return the arguments that both kernels take: the file, and each page's offset, sizes and row count."""
    return np.frombuffer(data, np.uint8), table.offsets, table.stored, table.sizes, table.counts
