"""Statistics that replace rows: they are computed from the rows of each window and gathered into columns.

    rows        . . . . . | . . . . | . . . . . . |          a block, cut at the windows of a grid
    summarised      5          4           6                 a row each: count, first and last time, first, last, ...

Both ends of a network connection use this module: a node that has rows sends their statistics (`summarised`), together
with the statistics stored in its files (`of_summaries`). The statistics of rows equal those that a file would store for
them, see `tsfile.structure.statistics`; floats are summed in row order, as the engine does.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

import numpy as np

from saros_storage.base.block import Block, Column, TextArray
from saros_storage.base.types import NUMPY_DTYPE, TIME_MAX, TIME_MIN, BoolArray, DataType, Int64Array, Scalar
from saros_storage.read.row_ranges import RowRanges, counts_of, edges_of, extremes_of, pick, prefix_sums, sums_of
from saros_storage.scan.reading import Statistics, Summaries, Summary, WindowGrid, statistics_fields


def joined(types: tuple[DataType, ...], items: Iterable[Block | Summary | Summaries]) -> list[Block | Summaries]:
    """Return the items of a scan with adjacent summaries merged into one."""
    found: list[Block | Summaries] = []
    for are_blocks, run in groupby(items, lambda item: isinstance(item, Block)):
        if are_blocks:
            found += [item for item in run if isinstance(item, Block)]
        else:
            found.append(_merged(types, [item for item in run if not isinstance(item, Block)]))
    return found


def _merged(types: tuple[DataType, ...], items: Sequence[Summary | Summaries]) -> Summaries:
    parts: list[Summaries] = []
    for are_single, run in groupby(items, lambda item: isinstance(item, Summary)):
        if are_single:
            parts.append(of_summaries(types, [item for item in run if isinstance(item, Summary)]))
        else:
            parts += [item for item in run if isinstance(item, Summaries)]
    return Summaries.concat(parts)


# ---------------------------------------------------------------------------------------------- single summaries


def of_summaries(types: tuple[DataType, ...], summaries: Sequence[Summary]) -> Summaries:
    """Convert summaries of one scan to columns."""
    columns: list[Column] = []
    for type_, statistics in zip(types, zip(*(s.columns for s in summaries), strict=True), strict=True):
        columns += _fields_of(type_, statistics)
    return Summaries(types, Block.untimed(columns, len(summaries)))


def _fields_of(type_: DataType, statistics: Sequence[Statistics | None]) -> list[Column]:
    mask = np.array([one is not None for one in statistics], np.bool_)
    valid = None if mask.all() else mask
    known = [_NOTHING if one is None else one for one in statistics]
    found = []
    for name, field_type in statistics_fields(type_).items():
        values = [getattr(one, name) for one in known]
        found.append(_column(field_type, values, None if name == "count" else valid))
    return found


_NOTHING = Statistics(0, 0, 0, None, None, None, None, None)


def _column(type_: DataType, values: list[Scalar], valid: BoolArray | None) -> Column:
    if type_.is_text:
        return Column(type_, TextArray.of(v if isinstance(v, (str, bytes)) else None for v in values), valid)
    if valid is not None:
        values = [0 if v is None else v for v in values]
    return Column(type_, np.array(values, NUMPY_DTYPE[type_]), valid)


# ---------------------------------------------------------------------------------------------- rows


def summarised(block: Block, grid: WindowGrid, *, descending: bool) -> Block | Summaries:
    """Return the statistics of a block in each window that it touches, or the block itself if it takes fewer bytes."""
    # Near the limits of the time range, the distance to the grid's origin may not fit in 64 bits.
    low, high = (int(block.times[row]) - grid.origin for row in ((-1, 0) if descending else (0, -1)))
    if low < TIME_MIN or high > TIME_MAX:
        return block
    slices = _windows(block.times, grid)
    if len(slices) * _span_bytes(block) >= block.nbytes:
        return block
    return _cut(block, slices, descending=descending)


def celled(block: Block, grid: WindowGrid, pages: Sequence[int]) -> tuple[Summaries, list[int]]:
    """Return cells (the statistics of a page's rows in a window), and the index of each page's first cell.

    The block's times rise. `pages` holds one time per page: the time of its first row, or an earlier time after the
    last row of the previous page. The second result ends with the total number of cells.
    """
    times = block.times
    begins = np.searchsorted(times, _borders(int(times[0]), int(times[-1]), grid))
    cuts = np.searchsorted(times, np.array(pages[1:], np.int64))
    starts = np.unique(np.concatenate((np.zeros(1, np.int64), begins, cuts)))
    starts = starts[starts < block.rows]
    cells = _cut(block, RowRanges(starts, np.append(starts[1:], block.rows)), descending=False)
    return cells, [0, *np.searchsorted(starts, cuts).tolist(), cells.rows]


def _borders(first: int, last: int, grid: WindowGrid) -> Int64Array:
    """Return the times in (`first`, `last`] at which a window starts."""
    if grid.step is None or not (border := first + grid.step - (first - grid.origin) % grid.step) <= last:
        return np.empty(0, np.int64)
    return np.arange((last - border) // grid.step + 1, dtype=np.int64) * grid.step + border


def _cut(block: Block, slices: RowRanges, *, descending: bool) -> Summaries:
    columns: list[Column] = []
    shared: dict[str, Column] = {}
    for column in block.columns:
        columns += _statistics(block.times, column, slices, shared, descending=descending)
    return Summaries(tuple([c.type for c in block.columns]), Block.untimed(columns, len(slices)))


def _windows(times: Int64Array, grid: WindowGrid) -> RowRanges:
    """Return the row range of each window that has rows. Rows may be in ascending or descending order."""
    if grid.step is None:
        begins = np.zeros(1, np.int64)
    else:
        numbers = (times - grid.origin) // grid.step
        begins = np.flatnonzero(np.concatenate((np.ones(1, np.bool_), numbers[1:] != numbers[:-1])))
    return RowRanges(begins, np.append(begins[1:], len(times)))


def _span_bytes(block: Block) -> int:
    """Return the approximate size of one window's statistics; each text counts with the average size in the block."""
    return sum(_span_bytes_of(column) for column in block.columns)


def _span_bytes_of(column: Column) -> int:
    text_bytes = column.nbytes // len(column) if column.type.is_text else 0
    types = statistics_fields(column.type).values()
    return sum(text_bytes if type_.is_text else NUMPY_DTYPE[type_].itemsize for type_ in types)


#: Fields that all columns without nulls share.
_SHARED = ("count", "start", "end")


def _statistics(
    times: Int64Array, column: Column, slices: RowRanges, shared: dict[str, Column], *, descending: bool
) -> list[Column]:
    """Return the columns of `statistics_fields`, one row per slice.

    `shared` contains the `_SHARED` columns of the block, filled in by the first column without nulls.
    """
    counts = counts_of(column, slices)
    first, last = edges_of(column, slices)
    if descending:
        first, last = last, first
    time = Column(DataType.TIMESTAMP, times)
    made: dict[str, Callable[[], Column]] = {
        "count": lambda: Column(DataType.INT64, counts),
        "start": lambda: pick(time, first),
        "end": lambda: pick(time, last),
        "first": lambda: pick(column, first),
        "last": lambda: pick(column, last),
        "minimum": lambda: pick(column, least),
        "maximum": lambda: pick(column, most),
        "total": lambda: _total(column, slices, counts),
    }
    fields = statistics_fields(column.type)
    if "minimum" in fields:
        least, most = extremes_of(column, slices)
    if column.valid is not None:
        return [made[name]() for name in fields]
    if not shared:
        shared.update((name, made[name]()) for name in _SHARED)
    return [shared[name] if name in shared else made[name]() for name in fields]


def _total(column: Column, slices: RowRanges, counts: Int64Array) -> Column:
    present = counts > 0
    valid = None if present.all() else present
    if column.type in (DataType.FLOAT, DataType.DOUBLE, DataType.INT64):
        return Column(DataType.DOUBLE, sums_of(column, slices)[1], valid)
    values = column.numbers.astype(np.int64)
    if column.valid is not None:
        values[~column.valid] = 0
    return Column(DataType.INT64, prefix_sums(values, slices), valid)
