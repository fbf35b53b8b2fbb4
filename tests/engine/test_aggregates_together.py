"""Aggregates of many devices, computed together, equal the aggregates of each single device, bit by bit.

d0, d1, d2      all series have the same times, in files of several pages, a file over them, and a MemTable
d3              one series has different times, in pages that cover the same time spans
d4              only one series has points in the MemTable
d5              points of one series are deleted
d6              one series is of another type
d7              has no points
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from engine.embedded_engine import Engine

from saros_engine.memory.options import EngineOptions
from saros_storage.base.block import Column
from saros_storage.base.types import DataType, Int64Array
from saros_storage.folder.store_options import StoreOptions

SERIES = ("a", "b", "c")
DEVICES = [f"root.g.d{number}" for number in range(8)]
RANDOM = np.random.default_rng(4)
WINDOWS = "group by ([3, 3000), 100ms)"


def write(engine: Engine, device: str, times: Int64Array, *names: str) -> None:
    columns = {}
    for name in names:
        if device == DEVICES[6] and name == "c":
            columns[name] = Column(DataType.INT64, RANDOM.integers(-9, 9, len(times)))
        else:
            columns[name] = Column(DataType.DOUBLE, RANDOM.normal(0, 1, len(times)) * 10.0 ** RANDOM.integers(-8, 8))
    engine.engine.insert_columns(device, times, columns, aligned=False)


@pytest.fixture(params=[0, 1 << 20], ids=["no cache", "cache"])
def engine(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Engine]:
    options = StoreOptions(
        durability="os", time_partition_interval=2_000, page_rows=130, compaction=False, cache_bytes=request.param
    )
    made = Engine(tmp_path, EngineOptions(), options)
    for device in DEVICES:
        for name in SERIES:
            type_ = "int64" if (device, name) == (DEVICES[6], "c") else "double"
            made.ask(f"create timeseries {device}.{name} {type_}")
    fill(made)
    yield made
    made.close()


def fill(engine: Engine) -> None:
    even = np.arange(0, 2_600, 2)
    moved = even + np.where((even % 260 == 0) | (even % 260 == 258) | (even > 1_800), 0, even // 2 % 2)
    for device in DEVICES[:7]:
        if device == DEVICES[3]:
            write(engine, device, even, "a", "b")
            write(engine, device, moved, "c")
        else:
            write(engine, device, even, *SERIES)
    engine.ask("flush")
    for device in DEVICES[:7]:
        write(engine, device, np.arange(700, 900, 3), *SERIES)
    engine.ask("flush")
    for device in DEVICES[:7]:
        write(engine, device, np.arange(2_500, 2_700), *SERIES[: 2 if device == DEVICES[4] else 3])
    engine.ask(f"delete from {DEVICES[5]}.b where time >= 300 and time < 1100")


def bits(rows: list[list[object]]) -> list[list[object]]:
    return [[value.hex() if isinstance(value, float) else value for value in row] for row in rows]


def alone(engine: Engine, what: str, group: str = "") -> list[list[object]]:
    """Return the aggregates of each series, computed by a separate statement with a single scan."""
    found: list[list[object]] = []
    for device in DEVICES:
        parts = [bits(engine.ask(f"select {what.format(name)} from {device} {group}")[1]) for name in SERIES]
        for rows in zip(*parts, strict=True):
            lead = [rows[0][0]] if group else []
            found.append([*lead, device, *[value for row in rows for value in row[len(lead) :]]])
    return found


CALLS = ["avg({0})", "count({0}), sum({0})", "max_value({0}), min_time({0})", "last_value({0}), stddev({0})"]


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("what", CALLS)
@pytest.mark.parametrize("group", ["", WINDOWS, "group by ((0, 2900], 350ms)", "group by ([0, 2600), 9ms, 50ms)"])
def test_together_they_say_what_each_says(engine: Engine, what: str, group: str, parallelism: int) -> None:
    engine.set_options(EngineOptions(parallelism=parallelism))
    expected = alone(engine, what, group)
    names = ", ".join(what.format(name) for name in SERIES)
    # ALIGN BY DEVICE cannot include d6, because d6 has a column of another type.
    same = ", ".join(device for device in DEVICES if device != DEVICES[6])
    for _ in range(2):
        by_device = bits(engine.ask(f"select {names} from {same} {group} align by device")[1])
        place = 1 if group else 0
        assert [row for row in expected if row[place] != DEVICES[6]] == by_device
        side_by_side = bits(engine.ask(f"select {names} from {', '.join(DEVICES)} {group}")[1])
        assert len(expected) // len(DEVICES) == len(side_by_side)
    header = engine.ask(f"select {names} from {', '.join(DEVICES)} {group}")[0]
    for device in DEVICES:
        own = [row for row in expected if row[place] == device]
        columns = [n for n, name in enumerate(header) if f"{device}." in name]
        assert sorted(map(str, own[0][place + 1 :])) == sorted(str(side_by_side[0][n]) for n in columns)
        assert sorted(map(str, own[-1][place + 1 :])) == sorted(str(side_by_side[-1][n]) for n in columns)


def test_having_limits_and_expressions_see_rows_of_all_devices_in_their_order(engine: Engine) -> None:
    expected = [row for row in alone(engine, "avg({0})", WINDOWS) if row[1] != DEVICES[6]]
    names, same = "avg(a), avg(b), avg(c)", ", ".join(device for device in DEVICES if device != DEVICES[6])
    text = f"select {names} from {same} {WINDOWS}"
    kept = [row for row in expected if isinstance(row[2], str) and float.fromhex(row[2]) > 0]
    assert 0 < len(kept) < len(expected)
    having = f"{text} having avg(a) > 0"
    assert kept == bits(engine.ask(f"{having} align by device")[1])
    assert kept[11:20] == bits(engine.ask(f"{having} limit 9 offset 11 align by device")[1])
    summed = engine.ask(f"select avg(a) + avg(b) from {same} {WINDOWS} align by device")[1]
    sums = [None if None in row[2:4] else sum(float.fromhex(str(value)) for value in row[2:4]) for row in expected]
    assert sums == [row[2] for row in summed]
    changes = engine.ask(f"select diff(count(a)) from {same} {WINDOWS} align by device")[1]
    assert [row[1] for row in changes if row[2] is None] == [d for d in DEVICES if d != DEVICES[6]]


def test_explain_analyze_shows_one_node_and_what_it_read(engine: Engine) -> None:
    engine.set_options(EngineOptions(parallelism=1))
    _, lines = engine.ask("explain analyze select count(*) from root.g.d0, root.g.d1, root.g.d2 align by device")
    text = "\n".join(str(line[-1]) for line in lines)
    assert "AggregateScans [9 scans of 3 devices]" in text
    assert "MemTable rows 1800" in text
