"""GROUP BY LEVEL, compared with plain Python, which aggregates the points of all series of a group together."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np
import pytest
from engine.embedded_engine import Engine

from saros_engine.base.errors import SemanticError
from saros_storage.base.block import Column
from saros_storage.base.types import DataType

POINTS: dict[str, dict[int, float]] = {}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = Engine(tmp_path_factory.mktemp("engine"))
    rng = np.random.default_rng(4)
    for number, device in enumerate(["root.a.h1.p1", "root.a.h1.p2", "root.a.h2.p1", "root.b.h1.p1"]):
        times = np.sort(rng.choice(1_000, 60, replace=False)) * 7 + number
        values = np.round(rng.normal(0, 10, 60), 1)
        opened.engine.insert_columns(device, times, {"s": Column(DataType.DOUBLE, values)}, aligned=number % 2 == 1)
        POINTS[device] = dict(zip(times.tolist(), values.tolist(), strict=True))
        if number == 1:
            opened.ask("flush")
    opened.engine.insert_columns("root.b.h1.p2", np.array([1]), {"s": Column.of(DataType.TEXT, ["x"])})
    yield opened
    opened.close()


def together(*devices: str) -> list[tuple[int, float]]:
    return sorted((t, v) for device in devices for t, v in POINTS[device].items())


EXPECTED = {
    "count": len,
    "sum": lambda p: sum(v for _, v in p),
    "avg": lambda p: sum(v for _, v in p) / len(p),
    "min_value": lambda p: min(v for _, v in p),
    "max_value": lambda p: max(v for _, v in p),
    "first_value": lambda p: p[0][1],
    "last_value": lambda p: p[-1][1],
    "min_time": lambda p: p[0][0],
    "max_time": lambda p: p[-1][0],
    "time_duration": lambda p: p[-1][0] - p[0][0],
    "stddev": lambda p: statistics.stdev(v for _, v in p),
}


@pytest.mark.parametrize("function", EXPECTED)
def test_each_aggregate_is_that_of_all_points_together(engine: Engine, function: str) -> None:
    header, rows = engine.ask(f"select {function}(s) from root.a.** group by level = 2")
    assert [f"{function}(root.*.h1.*.s)", f"{function}(root.*.h2.*.s)"] == header
    groups = [together("root.a.h1.p1", "root.a.h1.p2"), together("root.a.h2.p1")]
    assert [EXPECTED[function](points) for points in groups] == pytest.approx(rows[0])


@pytest.mark.parametrize("function", ["count", "avg", "last_value"])
@pytest.mark.parametrize("where", ["", "where s > 0"])
def test_windows_and_filters(engine: Engine, function: str, where: str) -> None:
    text = f"select {function}(s) from root.a.h1.p1, root.a.h1.p2 {where} group by ([0, 7000), 1s), level = 1"
    if where:
        text = f"select {function}(s) from root.a.h1.p1 {where} group by ([0, 7000), 1s), level = 1"
    devices = ["root.a.h1.p1"] if where else ["root.a.h1.p1", "root.a.h1.p2"]
    points = [(t, v) for t, v in together(*devices) if not where or v > 0]
    _, rows = engine.ask(text)
    assert 7 == len(rows)
    for start, value in rows:
        inside = [(t, v) for t, v in points if start <= t < start + 1_000]
        expected = EXPECTED[function](inside) if inside else (0 if function == "count" else None)
        assert value == expected if expected is None else pytest.approx(expected) == value


def test_expressions_having_and_several_levels(engine: Engine) -> None:
    header, rows = engine.ask("select sum(s) / count(s) as mean from root.a.h1.* group by level = 1, 2")
    assert (["mean"], pytest.approx(EXPECTED["avg"](together("root.a.h1.p1", "root.a.h1.p2")))) == (header, rows[0][0])
    assert [] == engine.ask("select count(s) from root.a.** group by level = 1 having count(s) > 1000")[1]
    assert [[180]] == engine.ask("select count(s) from root.a.** group by level = 1 having count(s) > 100")[1]


def test_series_of_different_types_do_not_merge_unless_they_are_counted(engine: Engine) -> None:
    assert [[61]] == engine.ask("select count(s) from root.b.** group by level = 1")[1]
    with pytest.raises(SemanticError, match="different types"):
        engine.ask("select last_value(s) from root.b.** group by level = 1")


def test_it_is_explained(engine: Engine) -> None:
    lines = [str(row[0]) for row in engine.ask("explain select count(s) from root.a.** group by level = 1")[1]]
    assert any("LevelMerge  (count(root.a.*.*.s))" in line for line in lines)
