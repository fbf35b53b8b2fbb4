"""Aggregates over many row ranges ("slices") of one column at once.

    rows     0  1  2  3  4  5  6          counts_of     number of present rows
    slices  |--a--|     |---b---|         sums_of       number of present rows, and their sum as DOUBLE
            counts 2         3            edges_of      positions of the first and the last present row
                                          extremes_of   positions of the first smallest and first largest present value

A row is present if it has a value. A slice without present rows has count 0 and positions -1, which `pick` turns into
nulls. NaN is treated as in `kernels.windows`. Pure: any thread.
"""

from __future__ import annotations

import msgspec
import numpy as np

from saros_storage.base.block import Column
from saros_storage.base.types import FLOATING_TYPES, BoolArray, Float64Array, Int64Array
from saros_storage.kernels.windows import window_edges, window_extremes_f64, window_extremes_i64, window_sums

_ALL_VALID = np.empty(0, np.bool_)


class RowRanges(msgspec.Struct, frozen=True):
    """Row ranges [starts[k], stops[k]); they may be empty and may overlap."""

    starts: Int64Array
    stops: Int64Array

    def __len__(self) -> int:
        return len(self.starts)


def mask_of(column: Column) -> BoolArray:
    """Return the column's mask in the form that kernels take: it is empty if every row has a value."""
    return _ALL_VALID if column.valid is None else np.ascontiguousarray(column.valid)


def doubles_of(column: Column) -> Float64Array:
    """Return the column's values as a contiguous array of doubles, for kernels."""
    return np.ascontiguousarray(column.numbers, np.float64)


def counts_of(column: Column, slices: RowRanges) -> Int64Array:
    """Return the number of present rows of each slice."""
    if column.valid is None:
        return slices.stops - slices.starts
    return prefix_sums(column.valid.view(np.int8), slices)


def prefix_sums(values: np.ndarray[tuple[int, ...], np.dtype[np.int8 | np.int64]], slices: RowRanges) -> Int64Array:
    """Return the exact sum of the integers in each slice."""
    total = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=total[1:])
    return total[slices.stops] - total[slices.starts]


def sums_of(column: Column, slices: RowRanges) -> tuple[Int64Array, Float64Array]:
    """Return count and sum of each slice's present rows; the sum of an empty slice is 0."""
    counts, sums = np.empty(len(slices), np.int64), np.empty(len(slices), np.float64)
    window_sums(doubles_of(column), mask_of(column), slices.starts, slices.stops, counts, sums)
    return counts, sums


def edges_of(column: Column, slices: RowRanges) -> tuple[Int64Array, Int64Array]:
    """Return the positions of the first and last present row of each slice; -1 if the slice has only nulls."""
    if column.valid is None:
        empty = slices.starts >= slices.stops
        return np.where(empty, -1, slices.starts), np.where(empty, -1, slices.stops - 1)
    first, last = np.empty(len(slices), np.int64), np.empty(len(slices), np.int64)
    window_edges(mask_of(column), slices.starts, slices.stops, first, last)
    return first, last


def extremes_of(column: Column, slices: RowRanges) -> tuple[Int64Array, Int64Array]:
    """Return the positions of the first smallest and first largest present value of each slice; -1 if all are null.

    The column must not be text-like.
    """
    least, most = np.empty(len(slices), np.int64), np.empty(len(slices), np.int64)
    if column.type in FLOATING_TYPES:
        window_extremes_f64(doubles_of(column), mask_of(column), slices.starts, slices.stops, least, most)
    else:
        keys = np.ascontiguousarray(column.numbers, np.int64)
        window_extremes_i64(keys, mask_of(column), slices.starts, slices.stops, least, most)
    return least, most


def pick(column: Column, positions: Int64Array) -> Column:
    """Return the values at `positions`, with a null for each position of -1."""
    missing = positions < 0
    if len(column) == 0:
        return Column.nulls(column.type, len(positions))
    if not missing.any():
        return column.take(positions)
    taken = column.take(np.where(missing, 0, positions))
    return Column(taken.type, taken.values, taken.present & ~missing)
