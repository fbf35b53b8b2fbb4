"""The latest value of each measurement in a run of a MemTable, that is, in chunks that are read together.

    chunks       [a b, 1..9]  [a b, 10..19]  [a, 3..5]  [a, 20..29]
    newest first: the last chunk gives a; the third ends before it and has only a; the second gives b

The result is cached for the first chunks of the run. Later chunks are added to the result on demand. A chunk is scanned
only if it ends late enough to contain a latest value. At equal times the later write wins; a null does not count as a
value.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec
import numpy as np

from saros_storage.base.block import Column
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import TIME_MAX, DataType, Int64Array, NumericArray, Scalar
from saros_storage.mutation.tablet_codec import FrameHead

#: The time, the log index of the write, and the value.
LatestValue: TypeAlias = tuple[int, int, Scalar]


class WrittenRows(Protocol):
    """A tablet in a MemTable (`memtable.Chunk`)."""

    index: int
    end: int
    ordered: bool

    @property
    def shape(self) -> FrameHead | None:
        """The frame header with the measurements; None if the tablet is not stored as a frame."""
        ...

    def matrix(self, types: tuple[DataType, ...]) -> NumericArray | None:
        """Return all columns as one array; None unless the tablet is a frame with columns of one type without nulls."""
        ...

    @property
    def tablet(self) -> Tablet:
        """The rows."""
        ...


class LatestRows(msgspec.Struct, frozen=True):
    """The latest values among a run's first `count` chunks."""

    count: int
    values: Mapping[str, LatestValue]


def latest_rows(chunks: Sequence[WrittenRows], known: LatestRows | None) -> LatestRows:
    """Return the latest values in `chunks`; `known` is the result for the first of these chunks, if cached."""
    fresh: dict[str, LatestValue] = {}
    shape, floor = None, TIME_MAX
    for chunk in reversed(chunks[0 if known is None else known.count :]):
        if shape is not None and chunk.end <= floor and chunk.shape is shape:
            continue
        fresh |= dict(_values(chunk, fresh))
        shape = chunk.shape
        if shape is not None:
            missing = any(name not in fresh for name in shape.measurements)
            shape, floor = (None, floor) if missing else (shape, min(fresh[n][0] for n in shape.measurements))
    values = fresh
    if known is not None:
        values = dict(known.values)
        for name, found in fresh.items():
            if name not in values or found[0] >= values[name][0]:
                values[name] = found
    return LatestRows(len(chunks), values)


def _values(chunk: WrittenRows, fresh: Mapping[str, LatestValue]) -> Iterator[tuple[str, LatestValue]]:
    """Yield those values of a chunk that are later than their series' values in `fresh`, which later writes wrote."""
    head = chunk.shape
    matrix = chunk.matrix(head.types) if chunk.ordered and head is not None else None
    if head is not None and matrix is not None:
        for name, value in zip(head.measurements, matrix[:, -1].tolist(), strict=True):
            if name not in fresh or chunk.end > fresh[name][0]:
                yield name, (chunk.end, chunk.index, value)
        return
    tablet = chunk.tablet
    wanted = {name for name in tablet.measurements if name not in fresh or chunk.end > fresh[name][0]}
    for name, time, value in _of_tablet(tablet, wanted, ordered=chunk.ordered):
        if name not in fresh or time > fresh[name][0]:
            yield name, (time, chunk.index, value)


def _of_tablet(tablet: Tablet, wanted: Collection[str], *, ordered: bool) -> Iterator[tuple[str, int, Scalar]]:
    for name, column in zip(tablet.measurements, tablet.columns, strict=True):
        place = _last_place(tablet.times, column, ordered=ordered) if name in wanted else -1
        if place >= 0:
            yield name, int(tablet.times[place]), column.slice(place, place + 1).to_list()[0]


def _last_place(times: Int64Array, column: Column, *, ordered: bool) -> int:
    """Return the row of the latest value (at equal times, the last of these rows), or -1 if all values are null."""
    if column.valid is None:
        return len(times) - 1 if ordered else _last_maximum(times)
    places = np.flatnonzero(column.valid)
    if len(places) == 0:
        return -1
    return int(places[-1] if ordered else places[_last_maximum(times[places])])


def _last_maximum(times: Int64Array) -> int:
    return len(times) - 1 - int(np.argmax(times[::-1]))
