"""A computed -0.0 is less than 0.0 in every clause, however the data is stored and the query is run.

The series has all kinds of values that are rounded to a zero; the expected zeros were found by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from engine.embedded_engine import Engine

from saros_engine.memory.options import EngineOptions
from saros_storage.folder.store_options import StoreOptions

#: For each layout: (when the store is flushed, whether tombstones forbid the use of statistics).
LAYOUTS = {"memory": ("", False), "flushed": ("end", False), "in pieces": ("each", False), "tombstones": ("end", True)}
#: The values of x by time; x is a DOUBLE below root.z, and a FLOAT below root.y.
POINTS = {1: -0.4, 2: 0.4, 3: -0.0, 4: 0.0, 5: 1.0, 6: -1.0}
BELOW, AT, ABOVE = [1, 3, 6], [2, 4], [5]
#: The number of series, which is large enough for a second driver.
SERIES = 16


@pytest.fixture(scope="module", params=LAYOUTS)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    flushed, touched = LAYOUTS[request.param]
    made = Engine(tmp_path_factory.mktemp("zeros"), None, StoreOptions(durability="os", page_rows=1, compaction=False))
    devices = ["root.y.d", *(f"root.z.d{number}" for number in range(SERIES))]
    for device in devices:
        made.ask(f"create timeseries {device}.x {'FLOAT' if device == 'root.y.d' else 'DOUBLE'}")
    for time, value in POINTS.items():
        for device in devices:
            made.ask(f"insert into {device}(time, x) values ({time}, {value})")
        if flushed == "each":
            made.ask("flush")
    if flushed == "end":
        made.ask("flush")
    if touched:
        made.ask("delete from root.**.x where time > 100 and time < 200")
    yield made
    made.close()


@pytest.fixture(params=[1, 3])
def asked(engine: Engine, request: pytest.FixtureRequest) -> Engine:
    engine.set_options(EngineOptions(parallelism=request.param))
    return engine


def times(engine: Engine, text: str) -> list[object]:
    return [row[0] for row in engine.ask(text)[1]]


WHERE = {
    "round(x) < 0": BELOW,
    "0 > round(x)": BELOW,
    "round(x) = 0": AT,
    "round(x) in (0, 7)": AT,
    "not round(x) != 0.0": AT,
    "round(x) between 0 and 0.5": AT,
    "round(x) >= 0": [2, 4, 5],
    "round(x) = -0.0": [1, 3],
    "round(x) in (-0.0)": [1, 3],
    "round(x) + 0 = 0": [1, 2, 3, 4],
    "abs(round(x)) in (0)": [1, 2, 3, 4],
    "-x >= 0": [1, 3, 6],
    "x <= 0": [1, 3, 4, 6],
    "x = 0": [3, 4],
    "x in (0)": [3, 4],
    "x = 0 and -x < 0": [4],
    "x = 0 and -x = x": [],
    "case round(x) when 0 then true else false end": AT,
}


@pytest.mark.parametrize("condition", WHERE)
@pytest.mark.parametrize("path", ["root.z.d0", "root.y.d"])
def test_where_beside_the_expression_in_select_and_in_case(asked: Engine, path: str, condition: str) -> None:
    expected = WHERE[condition]
    for shown in ("x", "round(x), -x", f"x, {condition}"):
        for _ in range(3):  # the third execution uses the plan of the second
            assert expected == times(asked, f"select {shown} from {path} where {condition}")
    _, rows = asked.ask(f"select {condition}, case when {condition} then 1 else 0 end, round(x) from {path}")
    assert expected == [row[0] for row in rows if row[1]] == [row[0] for row in rows if row[2]]


@pytest.mark.parametrize("condition", ["round(x) < 0", "-x >= 0", "round(x) in (0, 7)", "x <= 0"])
def test_many_series(asked: Engine, condition: str) -> None:
    _, rows = asked.ask(f"select x, round(x) from root.z.* where {condition} align by device")
    assert WHERE[condition] * SERIES == [row[0] for row in rows]
    assert WHERE[condition] == times(asked, f"select x, round(x) from root.z.* where {condition}")
    _, rows = asked.ask(f"select {condition} as c, round(x) from root.z.* align by device")
    assert WHERE[condition] * SERIES == [row[0] for row in rows if row[2]]


@pytest.mark.parametrize(
    ("having", "expected"),
    [
        ("last_value(x) <= 0", [1, 3, 4, 6]),
        ("-last_value(x) >= 0", [1, 3, 6]),
        ("round(last_value(x)) = 0", AT),
        ("round(last_value(x)) in (0)", AT),
        ("case round(last_value(x)) when 0 then true else false end", AT),
        # The minimum and the maximum of zeros are 0.0, whether statistics are used or not.
        ("max_value(x) = 0", [3, 4]),
        ("-max_value(x) = -0.0", [3, 4]),
        ("-min_value(x) >= 0", [1, 6]),
        ("count_if(round(x) < 0, 1) = 1", BELOW),
    ],
)
def test_having(asked: Engine, having: str, expected: list[int]) -> None:
    windows = "group by ([1, 7), 1ms)"
    for shown in ("count(x)", "count(x), -last_value(x), round(last_value(x))", f"count(x), {having}"):
        assert expected == times(asked, f"select {shown} from root.y.d {windows} having {having}")
    _, rows = asked.ask(f"select {having}, last_value(x) from root.z.* {windows} align by device")
    assert expected * SERIES == [row[0] for row in rows if row[2]]


def test_windows_of_a_condition(asked: Engine) -> None:
    for condition, expected in (("round(x) < 0", BELOW), ("round(x) = 0", AT), ("x <= 0", [1, 3, 6])):
        text = f"select count(x) from root.y.d group by condition({condition}, keep >= 1)"
        assert expected == times(asked, text)


def test_the_least_and_the_largest_of_both_zeros_are_one(asked: Engine) -> None:
    names = ("min_value", "max_value", "extreme")
    calls = ", ".join(f"{name}(x)" for name in names)
    for tail in ("", " and x < 5", " group by ([3, 5), 2ms)", " group by ([3, 5), 2ms, 1ms)", " group by level = 0"):
        _, rows = asked.ask(f"select {calls} from root.z.d0 where time in (3, 4){tail}")
        assert [0.0] * 3 == [abs(value) for value in rows[0][-3:]]  # type: ignore[arg-type]
        assert ["0.0"] * 3 == [str(value) for value in rows[0][-3:]]


def test_a_view_is_what_it_looks_at(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.ask("insert into root.z.d(time, x) values (1, -0.4), (2, 0.4)")
    engine.ask("create view root.v.d.same as root.z.d.x")
    engine.ask("create view root.v.d.near as select round(x) from root.z.d")
    assert [1] == times(engine, "select near from root.v.d where near < 0")
    assert [1] == times(engine, "select near from root.v.d where near < 0 and same < 0 align by device")
    assert [2] == times(engine, "select same, near from root.v.d where near = 0")
    assert [[True, True]] == engine.ask("select count_if(near < 0, 1) = 1, count_if(near = 0, 1) = 1 from root.v.d")[1]
    assert [1, 2] == times(engine, "select near from root.v.d where near + 0 = 0")
    engine.close()
