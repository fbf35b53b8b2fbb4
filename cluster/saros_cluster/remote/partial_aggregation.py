"""Partial aggregation, which reduces the items of a holder's reader to the minimum that must be sent.

    bounds          rows within the bounds; the asking node filters exactly, and would discard the others
    grid            statistics of each window's rows, if they are smaller; statistics of files unchanged
    neither         all rows

Blocks are cut into parts, so that a message stays below the transport's limit. Pure, except that the reader may be used
by only one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from saros_storage.base.block import Block
from saros_storage.read.window_statistics import summarised
from saros_storage.scan.reading import ScanRequest, SeriesReader, Summaries, Summary, ValueBound

#: Items that are larger than this are divided into parts with fewer rows.
ITEM_BYTES_MAX = 4 << 20
#: Estimated size of a column's statistics, not counting texts.
_STATISTICS_BYTES = 64

Piece = Block | Summary | Summaries


def reduced(source: SeriesReader, request: ScanRequest) -> Iterator[Piece | None]:
    """Yield the items to send. After work without a result, yield None, so that the caller can check the time."""
    while (item := source.next()) is not None:
        if isinstance(item, Summary):
            yield item
        elif isinstance(item, Block) and request.bounds:
            kept = within(item, request.bounds)
            yield from _cut(kept) if kept.rows else [None]
        elif isinstance(item, Block) and request.grid is not None:
            yield from _cut(summarised(item, request.grid, descending=request.descending))
        else:
            yield from _cut(item)


def within(block: Block, bounds: Sequence[ValueBound]) -> Block:
    """Return the rows of the block whose values are within all bounds."""
    wanted = np.ones(block.rows, np.bool_)
    for bound in bounds:
        column = block.columns[bound.column]
        values = column.numbers
        if column.valid is not None:
            wanted &= column.valid
        if bound.low is not None:
            wanted &= values >= bound.low
        if bound.high is not None:
            wanted &= values <= bound.high
    return block.compress(wanted)


def _cut(item: Block | Summaries) -> Iterator[Block | Summaries]:
    """Yield the parts of an item: its halves are halved again until each part is small enough or has one row."""
    if item.nbytes <= ITEM_BYTES_MAX or item.rows == 1:
        yield item
        return
    half = item.rows // 2
    yield from _cut(item.slice(0, half))
    yield from _cut(item.slice(half, item.rows))


def bytes_of(item: Piece) -> int:
    """Return the approximate number of bytes that an item takes in a batch."""
    if not isinstance(item, Summary):
        return item.nbytes
    known = [column for column in item.columns if column is not None]
    texts = [value for column in known for value in (column.first, column.last) if isinstance(value, (str, bytes))]
    return _STATISTICS_BYTES * len(known) + sum(map(len, texts))
