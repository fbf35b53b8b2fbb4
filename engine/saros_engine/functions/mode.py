"""MODE: the most frequent value. If several values are equally frequent, it is the value that occurs first.

A state is a BLOB. The state contains the number of distinct values, the count and the first time of each value, and the
values themselves (numbers in memory layout; text as offsets and bytes). The size of the state grows with the number of
distinct values.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saros_engine.expressions.text import text_ranks
from saros_engine.functions.aggregate import Aggregate, Rows, States
from saros_engine.plan.plan import AggregateCall
from saros_storage.base.block import Column, TextArray
from saros_storage.base.types import NUMPY_DTYPE, DataType, Int64Array
from saros_storage.read.row_ranges import RowRanges

#: The counts of some distinct values, the times of their first occurrences, and the values.
_Counted = tuple[Int64Array, Int64Array, Column]


class Mode(Aggregate):
    """The aggregate MODE; `type_` is the type of the values, which depends on the call (see `of`)."""

    state = (DataType.BLOB,)

    def __init__(self, name: str, type_: DataType = DataType.TEXT) -> None:
        super().__init__(name)
        self._type = type_

    def of(self, call: AggregateCall) -> Aggregate:
        """See `Aggregate.of`."""
        return Mode(self.name, call.type)

    def partial(self, rows: Rows, slices: RowRanges) -> States:
        """See `Aggregate.partial`."""
        column, times = rows.columns[0], rows.time.numbers
        found = []
        for start, stop in zip(slices.starts.tolist(), slices.stops.tolist(), strict=True):
            part = column.slice(start, stop)
            present = np.flatnonzero(part.present)
            ones = np.ones(len(present), np.int64)
            found.append(_encoded(_merge_counts(ones, times[start:stop][present], part.take(present))))
        return [_blobs(found)]

    def merge(self, states: Sequence[Column], slices: RowRanges) -> States:
        """See `Aggregate.merge`."""
        blobs = _bytes_of(states[0])
        found = []
        for start, stop in zip(slices.starts.tolist(), slices.stops.tolist(), strict=True):
            parts = [blob for blob in blobs[start:stop] if blob is not None]
            found.append(self._merged(parts) if len(parts) > 1 else next(iter(parts), None))
        return [_blobs(found)]

    def _merged(self, blobs: Sequence[bytes]) -> bytes | None:
        counts, times, values = zip(*(_decoded(blob, self._type) for blob in blobs), strict=True)
        return _encoded(_merge_counts(np.concatenate(counts), np.concatenate(times), Column.concat(values)))

    def final(self, states: Sequence[Column]) -> Column:
        """See `Aggregate.final`."""
        chosen = []
        for blob in _bytes_of(states[0]):
            if blob is None:
                chosen.append(Column.nulls(self._type, 1))
                continue
            counts, times, values = _decoded(blob, self._type)
            chosen.append(values.take(np.lexsort((times, -counts))[:1]))
        return Column.concat(chosen) if chosen else Column.nulls(self._type, 0)


def _merge_counts(counts: Int64Array, times: Int64Array, values: Column) -> _Counted:
    """Merge equal values: add their counts, and keep the earliest time."""
    if values.type.is_text:
        keys = text_ranks(values.text)
    elif values.numbers.dtype.kind == "f":
        # Values are compared by their bits, so NaN is one value. Adding zero turns -0.0 into 0.0.
        keys = (values.numbers.astype(np.float64) + 0.0).view(np.int64)
    else:
        keys = values.numbers.astype(np.int64)
    order = np.lexsort((times, keys))
    begins = np.flatnonzero(np.concatenate(([True], keys[order][1:] != keys[order][:-1]))) if len(order) else order
    first = order[begins]
    sums = np.add.reduceat(counts[order], begins) if len(order) else counts
    return sums, times[first], Column(values.type, values.take(first).values)


def _encoded(counted: _Counted) -> bytes | None:
    counts, times, values = counted
    if not len(counts):
        return None
    parts = [np.int64(len(counts)).tobytes(), counts.tobytes(), times.tobytes()]
    if isinstance(values.values, TextArray):
        text = values.values
        parts += [
            (text.offsets - text.offsets[0]).astype(np.int32).tobytes(),
            text.data[text.offsets[0] : text.offsets[-1]].tobytes(),
        ]
    else:
        parts.append(values.numbers.tobytes())
    return b"".join(parts)


def _decoded(blob: bytes, type_: DataType) -> _Counted:
    count = int(np.frombuffer(blob, np.int64, 1)[0])
    counts, times = np.frombuffer(blob, np.int64, 2 * count, 8).reshape(2, count)
    at = 8 + 16 * count
    if not type_.is_text:
        return counts, times, Column(type_, np.frombuffer(blob, NUMPY_DTYPE[type_], count, at))
    offsets = np.frombuffer(blob, np.int32, count + 1, at)
    data = np.frombuffer(blob, np.uint8, -1, at + 4 * (count + 1))
    return counts, times, Column(type_, TextArray(offsets, data))


def _blobs(values: Sequence[bytes | None]) -> Column:
    return Column.of(DataType.BLOB, values)


def _bytes_of(column: Column) -> list[bytes | None]:
    return [value if value is None or isinstance(value, bytes) else str(value).encode() for value in column.to_list()]
