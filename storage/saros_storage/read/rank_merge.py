"""Merge blocks of sources with different ranks: each column gets, at each time, its value of the highest rank.

    rank 1   time 0 10 20     a  1 2 3     b  4 ? 6
    rank 2   time   10    30  a    ?   5   b    7   ?
    merged   time 0 10 20 30  a  1 2 3 5   b  4 7 6 ?

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saros_storage.base.block import Block, Column
from saros_storage.base.types import Int64Array, NumericArray
from saros_storage.kernels.merge import union_times


def merge_blocks(blocks: Sequence[Block]) -> Block:
    """Merge blocks, which are sorted by rank, lowest first; times rise strictly within each block."""
    times, places = union_times([block.times for block in blocks])
    columns = []
    for parts in zip(*(block.columns for block in blocks), strict=True):
        merge = _merge_text if parts[0].type.is_text else _merge_numbers
        columns.append(merge(parts, places, len(times)))
    return Block.timed(times, columns)


def _merge_numbers(parts: Sequence[Column], places: Sequence[Int64Array], rows: int) -> Column:
    last = parts[-1]
    if len(last) == rows and last.valid is None:
        return last
    values: NumericArray = np.zeros(rows, last.numbers.dtype)
    if all(part.valid is None for part in parts):
        for part, at in zip(parts, places, strict=True):
            _put(values, at, part.numbers)
        return Column(last.type, values)
    valid = np.zeros(rows, np.bool_)
    for part, at in zip(parts, places, strict=True):
        if part.valid is None:
            _put(values, at, part.numbers)
            _put(valid, at, True)
        else:
            kept = at[part.valid]
            values[kept] = part.numbers[part.valid]
            valid[kept] = True
    return Column(last.type, values, None if valid.all() else valid)


def _put(out: NumericArray, at: Int64Array, values: NumericArray | bool) -> None:
    """Write values at rising positions; if the positions are consecutive, assign to a slice, which is much faster."""
    if len(at) and int(at[-1]) - int(at[0]) == len(at) - 1:
        out[at[0] : at[-1] + 1] = values
    else:
        out[at] = values


def _merge_text(parts: Sequence[Column], places: Sequence[Int64Array], rows: int) -> Column:
    """Merge texts: find, as in `_merge_numbers`, the positions of the merged values in the concatenated parts."""
    chosen = np.full(rows, -1, np.int64)
    start = 0
    for part, at in zip(parts, places, strict=True):
        numbers = np.arange(start, start + len(part))
        if part.valid is None:
            chosen[at] = numbers
        else:
            chosen[at[part.valid]] = numbers[part.valid]
        start += len(part)
    valid = chosen >= 0
    taken = Column.concat([Column(p.type, p.values) for p in parts]).take(np.maximum(chosen, 0))
    return Column(taken.type, taken.values, None if valid.all() else valid)
