"""A flush takes all points of a MemTable at once, and finds the points that readers find series by series."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from saros_storage.base.block import Column
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import NUMPY_DTYPE, DataType
from saros_storage.mutation.tablet_codec import TabletFrame
from saros_storage.partition.memtable import AlignedData, MemTable
from saros_storage.scan.reading import ScanRequest
from saros_storage.scan.snapshot import Rank

NUMBERS = (DataType.DOUBLE, DataType.INT64, DataType.FLOAT, DataType.INT32, DataType.BOOLEAN)


def column(type_: DataType, rows: int, chance: random.Random) -> Column:
    nulls = chance.random() < 0.1
    values = [None if nulls and chance.random() < 0.3 else chance.randrange(2) for _ in range(rows)]
    if type_ is DataType.TEXT:
        return Column.of(type_, [None if v is None else str(v) for v in values])
    return Column.of(type_, values) if nulls else Column(type_, np.array(values, NUMPY_DTYPE[type_]))


def filled(chance: random.Random) -> tuple[MemTable, dict[str, DataType], bool]:
    """Return a MemTable, its series' types, and whether its device is aligned.

    The MemTable has batches, most of which have the same shape, and some of which are late or repeated.
    """
    aligned = chance.random() < 0.4
    own = chance.choice(NUMBERS)
    types = {name: own if chance.random() < 0.9 else DataType.TEXT for name in ("a", "b", "c")}
    memtable = MemTable(Rank(0, 1), 1)
    order = chance.choice(("rises", "late", "repeats"))
    for index in range(1, chance.randrange(2, 6)):
        names = ["a", "b", "c"] if chance.random() < 0.8 else chance.sample(["a", "b", "c"], 2)
        rows = chance.randrange(1, 6)
        base = index * 10 if order == "rises" else chance.randrange(100) * 10
        times = np.arange(rows) + base if order != "repeats" else np.array([chance.randrange(4) for _ in range(rows)])
        columns = tuple(column(types[n], rows, chance) for n in names)
        frame = TabletFrame.of_tablet(Tablet("root.a.d", tuple(names), times.astype(np.int64), columns, aligned))
        memtable.write(frame, index)
    return memtable, types, aligned


def points(times: np.ndarray, values: Column) -> dict[int, object]:
    return {t: v for t, v in zip(times.tolist(), values.to_list(), strict=True) if v is not None}


@pytest.mark.parametrize("seed", range(150))
def test_a_flush_takes_what_readers_see(seed: int) -> None:
    memtable, types, aligned = filled(random.Random(seed))
    seen = {}
    for name, type_ in types.items():
        block = memtable.snapshot().read(ScanRequest("root.a.d", (name,), (type_,), aligned))
        if block is not None:
            seen[name] = points(block.times, block.columns[0])
    # A second MemTable, since the first one caches its results.
    memtable, _, _ = filled(random.Random(seed))
    taken: dict[str, dict[int, object]] = {}
    for _, content in memtable.snapshot().contents():
        if isinstance(content, AlignedData):
            taken |= {n: points(content.times, c) for n, c in zip(content.measurements, content.columns, strict=True)}
        else:
            taken |= {series.measurement: points(series.times, series.column) for series in content}
    assert seen == {name: found for name, found in taken.items() if found}


def looking_seconds(count: int) -> float:
    """Return the processor time of a flush of `count` series of one device, each of which was written separately."""
    memtable, one = MemTable(Rank(0, 1), 1), Column(DataType.INT64, np.array([1]))
    for i in range(count):
        memtable.write(TabletFrame.of_tablet(Tablet("root.a.d", (f"s{i}",), np.array([1]), (one,))), i + 1)
    before = time.process_time()
    ((_, content),) = memtable.snapshot().contents()
    took = time.process_time() - before
    assert isinstance(content, list)
    assert count == len(content)
    return took


@pytest.mark.slow
def test_what_a_flush_looks_at_grows_with_the_series_and_not_with_their_square() -> None:
    """Eight times as many series take eight times the work; comparing all pairs would take sixty-four times."""
    many, few = (min(looking_seconds(count) for _ in range(3)) for count in (4_000, 500))
    assert many < 24 * few


def wide_reading_seconds(count: int) -> float:
    """Return the processor time to read all series of one device that were written together."""
    memtable, one = MemTable(Rank(0, 1), 1), Column(DataType.INT64, np.array([1]))
    names = tuple(f"s{i}" for i in range(count))
    memtable.write(TabletFrame.of_tablet(Tablet("root.a.d", names, np.array([1]), (one,) * count)), 1)
    snapshot = memtable.snapshot()
    before = time.process_time()
    blocks = [snapshot.read(ScanRequest("root.a.d", (name,), (DataType.INT64,), aligned=False)) for name in names]
    took = time.process_time() - before
    assert count == sum(block is not None for block in blocks)
    return took


@pytest.mark.slow
def test_reading_wide_rows_grows_with_their_columns_and_not_with_the_square() -> None:
    many, few = (min(wide_reading_seconds(count) for _ in range(3)) for count in (16_000, 2_000))
    assert many < 24 * few
