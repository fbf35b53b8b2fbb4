"""The result of a query depends neither on the physical layout of the data nor on how the query is run.

    data       one history of writes, late rows, overwritten and deleted points, executed by stores that never flush,
               flush now and then, flush at the end, merge; in pages of few rows; with tombstones everywhere, so that
               hardly any statistics can be used
    running    one driver, two, four; each query twice, so that the second answer comes from caches

The queries are drawn at random from one seed; the first store with one driver is the reference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from engine.embedded_engine import Engine

from saros_engine.memory.options import EngineOptions
from saros_storage.base.block import Column
from saros_storage.base.types import DataType, Scalar
from saros_storage.folder.store_options import StoreOptions
from saros_storage.scan.reading import TimeRange

SEED, QUERIES, WRITES, END = 5, 30, 40, 600
TYPES = {"i": DataType.INT64, "x": DataType.DOUBLE, "f": DataType.FLOAT, "t": DataType.TEXT, "b": DataType.BOOLEAN}
DEVICES = {"root.g.d0": False, "root.g.d1": False, "root.g.d2": True, "root.h.d3": False, "root.h.d4": True}
#: Layouts of a store: (number of writes between flushes, or 0; whether it merges at the end; whether it has
#: tombstones).
LAYOUTS = {
    "memory": (0, False, False),
    "flushed at the end": (WRITES, False, False),
    "flushed often": (5, False, False),
    "merged": (5, True, False),
    "without statistics": (5, False, True),
}
PARALLELISM = (1, 2, 4)


def value(type_: DataType, chance: Random) -> Scalar:
    match type_:
        case DataType.TEXT:
            return chance.choice(["", "a", "ä", "long text"])
        case DataType.BOOLEAN:
            return chance.random() < 0.5
        case DataType.INT64:
            return chance.randrange(-50, 50)
        case _:
            return chance.randrange(-200, 200) / 4


def fill(engine: Engine, chance: Random, flush_each: int, merge: bool, touched: bool) -> None:
    """Write the random history, which is the same for all layouts: each call draws the same numbers from `chance`."""
    for number in range(1, WRITES + 1):
        device = chance.choice(list(DEVICES))
        start = chance.randrange(END)
        times = sorted({start + chance.randrange(80) for _ in range(chance.randrange(1, 40))})
        names = chance.sample(list(TYPES), chance.randrange(1, len(TYPES) + 1))
        columns = {
            name: Column.of(TYPES[name], [value(TYPES[name], chance) if chance.random() < 0.8 else None for _ in times])
            for name in sorted(names)
        }
        engine.engine.insert_columns(device, np.array(times, np.int64) * 2, columns, aligned=DEVICES[device])
        if chance.random() < 0.2:
            first = chance.randrange(2 * END)
            engine.store.delete([f"{device}.{chance.choice(['*', 'i', 'x'])}"], TimeRange(first, first + 50))
        if flush_each and number % flush_each == 0:
            engine.ask("flush")
    if merge:
        engine.store.merge(full=True)
    if touched:
        for time in range(1, 2 * END, 6):  # points have even times, so none is deleted
            engine.store.delete(["root.**"], TimeRange(time, time + 1))


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Engine]]:
    made = {}
    for name, layout in LAYOUTS.items():
        options = StoreOptions(durability="os", time_partition_interval=200, page_rows=7, compaction=False)
        made[name] = Engine(tmp_path_factory.mktemp("layout"), EngineOptions(plans_cached=1), options)
        fill(made[name], Random(SEED), *layout)
    yield made
    for engine in made.values():
        engine.close()


def query(chance: Random) -> str:
    source = chance.choice(["root.**", "root.g.*", "root.h.*", "root.g.d0", "root.g.d2", "root.h.d4, root.g.d1"])
    by_device = chance.random() < 0.3
    if chance.random() < 0.12:
        return f"select last {chance.choice(['*', 'i', 'x, t'])} from {source}{where(chance, values=False)}"
    if chance.random() < 0.35:
        names = chance.choice(["*", "x", "i, x + 1", "t, b", "f, i"])
        tail = chance.choice(["", " order by time desc", " limit 7 offset 3", " order by time desc limit 5"])
        fill_with = chance.choice(["", " fill(previous)"])
        text = f"select {names} from {source}{where(chance, values=True)}{fill_with}{tail}"
        return text + " align by device" if by_device else text
    functions = ["count", "min_time", "max_time", "first_value", "last_value"]
    numeric = [*functions, "sum", "avg", "min_value", "max_value", "stddev", "extreme"]
    items = [f"{chance.choice(numeric)}({chance.choice('ixf')})" for _ in range(chance.randrange(1, 4))]
    items += [f"{chance.choice(functions)}({chance.choice(['t', 'b', 'x', '*'])})"] * (chance.random() < 0.4)
    windows = chance.choice(["", "", " group by ([0, 1200), 100ms)", " group by ([50, 900), 70ms, 30ms)"])
    text = f"select {', '.join(dict.fromkeys(items))} from {source}{where(chance, values=True)}{windows}"
    if by_device:
        return text + " align by device"
    return text + " group by level = 1" * (chance.random() < 0.3 and not windows)


def where(chance: Random, *, values: bool) -> str:
    start = chance.randrange(2 * END)
    parts = [f"time >= {start} and time < {start + chance.choice([10, 150, 900])}"] * (chance.random() < 0.5)
    if values and chance.random() < 0.3:
        parts.append(
            chance.choice(
                ["x > 0", "i < 20", "f >= -10 and f <= 30", "i > 0 or x < 3", "round(x) < 0", "ceil(f / 9) in (0, 1)"]
            )
        )
    return f" where {' and '.join(f'({part})' for part in parts)}" if parts else ""


def answer(engine: Engine, text: str, parallelism: int) -> tuple[list[str], list[list[object]]]:
    engine.set_options(EngineOptions(parallelism=parallelism, plans_cached=1))
    return engine.ask(text)


def same(a: object, b: object) -> bool:
    """Return whether two values are equal.

    The last digits of floats are ignored, since they depend on the order of sums.
    """
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return a == b


@pytest.mark.slow
def test_answers_do_not_depend_on_layout_and_parallelism(engines: dict[str, Engine]) -> None:
    chance = Random(SEED)
    rows_seen = 0
    for text in [query(chance) for _ in range(QUERIES)]:
        header, rows = answer(engines["memory"], text, 1)
        rows_seen += len(rows)
        for name, engine in engines.items():
            for parallelism in PARALLELISM:
                found_header, found = answer(engine, text, parallelism)
                assert header == found_header
                assert len(rows) == len(found), (text, name, parallelism)
                for row, other in zip(rows, found, strict=True):
                    assert all(map(same, row, other)), (text, name, parallelism, row, other)
    assert rows_seen > 10 * QUERIES


@pytest.mark.slow
def test_the_layouts_are_read_in_different_ways(engines: dict[str, Engine]) -> None:
    used = {}
    for name, engine in engines.items():
        _, lines = answer(engine, "explain analyze select count(x), count(i), count(f), count(t) from root.**", 1)
        used[name] = sum(int(n) for (line,) in lines for n in re.findall(r"from statistics (\d+)", str(line)))
    assert used["memory"] == 0
    assert used["merged"] > 0
    assert used["flushed at the end"] > 0
    # Between the points of a page with few points, there may be no tombstone.
    assert used["without statistics"] < used["flushed often"] / 2
