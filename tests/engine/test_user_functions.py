"""Functions that users write are registered by name, called with whole columns, and prevented from doing harm."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from engine.embedded_engine import Engine
from engine.installed_package import install, install_example

from saros_engine.base.errors import EngineError, ExtensionFailed, SemanticError
from saros_engine.memory.options import EngineOptions
from saros_engine.transforms import POINT_FUNCTIONS
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import DataType

BAD = """
import numpy as np
from saros.extensions import *

def raising(rows):
    raise KeyError("no such sensor")

def short(rows):
    return np.zeros(1), None

def text(rows):
    return np.array(["x"] * len(rows.times), object), None

def large(rows):
    return np.full(len(rows.times), 2**40), None

def writing(rows):
    rows.columns[0].values[:] = 0
    return rows.columns[0].values, None

def hoarding(state, rows):
    kept = np.concatenate((np.zeros(0) if state is None else state, np.zeros(200_000)))
    return kept, (rows.columns[0].values, rows.columns[0].valid)

def secret(state, rows):
    return object(), (rows.columns[0].values, None)

def scalar(run, result=DataType.DOUBLE):
    return ScalarFunction(arguments=[NUMBERS], result=result, evaluate=run, hint="ask ann")

bad_raising, bad_short, bad_text, bad_writing = map(scalar, (raising, short, text, writing))
bad_large = scalar(large, DataType.INT32)
bad_hoarding = SeriesFunction(arguments=[NUMBERS], result=DataType.DOUBLE, step=hoarding)
bad_secret = SeriesFunction(arguments=[NUMBERS], result=DataType.DOUBLE, step=secret)
bad_thing = 7
joined = ScalarFunction(
    arguments=[TEXTS, ANY], result=None, attributes=["by"],
    evaluate=lambda rows: (
        np.array([f"{a}{rows.attributes.get('by', '')}{b}" for a, b in
                  zip(rows.columns[0].values, rows.columns[1].values)], object),
        rows.columns[0].valid & rows.columns[1].valid,
    ),
)
bad_aggregate = AggregateFunction(
    arguments=[NUMBERS], result=DataType.DOUBLE, state=[DataType.DOUBLE],
    accumulate=lambda rows: (1.0, 2.0), merge=lambda states: (0.0,), finish=lambda states: (states[0].values, None),
)
"""
NAMES = ("raising", "short", "text", "large", "writing", "hoarding", "secret", "thing", "aggregate")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    install_example(monkeypatch, tmp_path / "example")
    points = {f"bad_{name}": f"bad_{name}" for name in NAMES} | {"joined": "joined", "gone": "gone"}
    install(monkeypatch, tmp_path / "bad", "bad_functions", BAD, {"functions": points})
    made = Engine(tmp_path / "data")
    made.ask("create timeseries root.a.d.t DOUBLE")
    made.ask("insert into root.a.d(time, t, n, s) values (1, 0, 2, 'x'), (2, 100, null, 'y'), (3, null, 8, null)")
    yield made
    made.close()


def test_a_scalar_function_stands_wherever_an_expression_may(engine: Engine) -> None:
    engine.ask("create function ToF as 'fahrenheit'")
    header, rows = engine.ask("select tof(t), TOF(t + 1) - 1 from root.a.d where tof(t) > 32.5 order by tof(t)")
    assert ["Time", "tof(root.a.d.t)", "TOF(root.a.d.t + 1) - 1"] == header
    assert [[2, 212.0, pytest.approx(212.8)]] == rows
    assert [[212.0]] == engine.ask("select max_value(tof(t)) from root.a.d")[1]
    assert [["root.a.d", 2]] == engine.ask("select count(tof(t)) from root.a.d align by device")[1]
    with pytest.raises(SemanticError, match="Unknown function: tocelsius"):
        engine.ask("select tocelsius(t) from root.a.d")
    with pytest.raises(
        SemanticError, match=r"^Unknown function: avgg; did you mean avg\? SHOW FUNCTIONS lists all functions$"
    ):
        engine.ask("select avgg(t) from root.a.d")
    with pytest.raises(SemanticError, match=r"^Unknown function: time_bucket; write windows of time as GROUP BY "):
        engine.ask("select time_bucket(1h, time), t from root.a.d")
    with pytest.raises(UserMistake, match=r"tof takes \(DOUBLE/FLOAT/INT32/INT64\), not \(TEXT\)"):
        engine.ask("select tof(s) from root.a.d")
    with pytest.raises(UserMistake, match="tof has no attribute k: there are none"):
        engine.ask("select tof(t, 'k'='v') from root.a.d")


def test_what_was_registered_before_saros_had_it_stays(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.ask("create function steady as 'fahrenheit'")
    monkeypatch.setitem(POINT_FUNCTIONS, "steady", POINT_FUNCTIONS["spread"])
    assert [[1, 32.0], [2, 212.0]] == engine.ask("select steady(t) from root.a.d")[1]
    assert [[2]] == engine.ask("select count(steady(t)) from root.a.d where steady(t) > 0")[1]
    shown = [row for row in engine.ask("show functions")[1] if row[0] == "STEADY"]
    assert [["STEADY", "external UDTF", "fahrenheit", "AVAILABLE"]] == shown
    engine.ask("drop function steady")
    assert [[0, 100.0]] == engine.ask("select steady(t) from root.a.d")[1]
    with pytest.raises(UserMistake, match="is a built-in function and cannot be dropped"):
        engine.ask("drop function steady")


def test_a_series_function_carries_its_state_over_blocks(engine: Engine) -> None:
    engine.ask("create function total as 'running_total'")
    assert [[1, 2.0], [3, 10.0]] == engine.ask("select total(n) from root.a.d")[1]
    many = 150_000  # more than two blocks
    engine.engine.insert_columns("root.a.long", np.arange(many), {"x": Column(DataType.DOUBLE, np.ones(many))})
    assert [[149_998, 149_999.0], [149_999, 150_000.0]] == engine.ask("select total(x) from root.a.long offset 149998")[
        1
    ]
    # Another query starts from the initial state.
    assert [[0, 1.0]] == engine.ask("select total(x) from root.a.long limit 1")[1]


def test_an_aggregate_works_over_all_windows_groups_and_blocks(engine: Engine) -> None:
    engine.ask("create function gmean as 'geometric_mean'")
    assert [[4.0]] == engine.ask("select gmean(n) from root.a.d")[1]
    windows = engine.ask("select gmean(n), count(n) from root.a.d group by ([0, 6), 2ms)")
    assert [[0, pytest.approx(2.0), 1], [2, pytest.approx(8.0), 1], [4, None, 0]] == windows[1]
    sliding = engine.ask("select gmean(n) from root.a.d group by ([1, 4), 3ms, 1ms)")[1]
    assert [[1, pytest.approx(4.0)], [2, pytest.approx(8.0)], [3, pytest.approx(8.0)]] == sliding
    engine.ask("insert into root.a.e(time, n) values (1, 32)")
    # 8 is the geometric mean of 2, 8 and 32: the cube root of 512.
    assert [[pytest.approx(8.0)]] == engine.ask("select gmean(n) from root.a.* group by level = 1")[1]
    assert [["root.a.e", 32.0]] == [
        [row[0], round(row[1], 9)]
        for row in engine.ask("select gmean(n) from root.a.* having gmean(n) > 5 align by device")[1]
    ]
    values = np.tile([2.0, 8.0], 75_000)
    engine.engine.insert_columns("root.a.long", np.arange(150_000), {"x": Column(DataType.DOUBLE, values)})
    assert [[pytest.approx(4.0)]] == engine.ask("select gmean(x) from root.a.long")[1]
    assert [[pytest.approx(4.0)]] == engine.ask("select gmean(x) from root.a.long where x > 0")[1]
    with pytest.raises(ExtensionFailed, match=r"aggregate gmean .* \(leave values out with WHERE s > 0\)"):
        engine.ask("select gmean(t) from root.a.d")


def test_text_and_attributes_come_as_they_are(engine: Engine) -> None:
    engine.ask("create function joined as 'joined'")
    assert [[1, "x-2.0"]] == engine.ask("select joined(s, n, 'by'='-') from root.a.d where time = 1")[1]
    assert [[1, "x2.0"], [2, None]] == engine.ask("select joined(s, n) from root.a.d where time < 3")[1]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "raising",
            r"function bad_raising failed in rows 0 to 1 \(times 1 to 2\): KeyError: 'no such sensor' \(ask ann\)",
        ),
        ("short", r"it returned values of shape \(1,\) for 2 rows"),
        ("text", "it returned object, but is declared to return DOUBLE"),
        ("large", "it returned a value that does not fit INT32"),
        ("writing", "read-only"),
        ("secret", "its state holds a object"),
    ],
)
def test_what_goes_wrong_fails_the_query_and_nothing_else(engine: Engine, name: str, reason: str) -> None:
    engine.ask(f"create function bad_{name} as 'bad_{name}'")
    with pytest.raises(ExtensionFailed, match=reason) as failure:
        engine.ask(f"select bad_{name}(t) from root.a.d")
    assert 2080 == failure.value.code
    assert 0 == engine.engine.open_queries
    assert [[2]] == engine.ask("select count(t) from root.a.d")[1]


def test_a_state_is_bounded_and_as_declared(engine: Engine) -> None:
    engine.ask("create function bad_hoarding as 'bad_hoarding'")
    engine.ask("create function bad_aggregate as 'bad_aggregate'")
    rows = ", ".join(f"({t}, 1)" for t in range(25_000))
    engine.ask(f"insert into root.a.long(time, x) values {rows}")
    with pytest.raises(ExtensionFailed, match="its state has 1600000 bytes, more than the 1048576 that are allowed"):
        engine.ask("select bad_hoarding(x) from root.a.long")
    with pytest.raises(ExtensionFailed, match="a state has 2 values instead of the declared 1"):
        engine.ask("select bad_aggregate(x) from root.a.long")


def test_only_what_is_installed_can_be_registered(engine: Engine) -> None:
    cases = {
        "create function f as 'nobody'": (1200, "no installed package has the entry point 'nobody'"),
        "create function f as 'bad_thing'": (
            1200,
            "'bad_thing' must be a ScalarFunction, SeriesFunction or AggregateFunction, not int",
        ),
        "create function f as 'gone'": (1200, "cannot be loaded: AttributeError"),
        "create function f as 'limits'": (1200, "no installed package"),
        "create function Sin as 'fahrenheit'": (2081, "Sin is a built-in function"),
        "create function top_k as 'fahrenheit'": (2081, "top_k is a built-in function"),
        "drop function f": (2082, "function f doesn't exist"),
        "drop function abs": (2082, "abs is a built-in function"),
    }
    for text, (code, words) in cases.items():
        with pytest.raises(UserMistake, match=words) as mistake:
            engine.ask(text)
        assert code == mistake.value.code, text
    engine.ask("create function f as 'fahrenheit'")
    with pytest.raises(UserMistake, match="function F already exists"):
        engine.ask("create function F as 'running_total'")


def test_scripts_that_register_the_library_of_iotdb_go_through(engine: Engine) -> None:
    before = engine.ask("show functions")
    engine.ask("create function acf as 'org.apache.iotdb.library.dprofile.UDTFACF'")
    engine.ask("create function Completeness as 'org.apache.iotdb.library.dquality.UDTFCompleteness'")
    assert before == engine.ask("show functions")
    with pytest.raises(UserMistake, match="no installed package has the entry point") as mistake:
        engine.ask("create function nosuch as 'org.apache.iotdb.library.dprofile.UDTFNoSuch'")
    assert 1200 == mistake.value.code


def test_functions_show_and_go(engine: Engine) -> None:
    engine.ask("create function f as 'fahrenheit'")
    engine.ask("create function g as 'geometric_mean'")
    header, rows = engine.ask("show functions")
    assert ["FunctionName", "FunctionType", "ClassName(UDF)", "State"] == header
    own = [row for row in rows if str(row[1]).startswith("external")]
    assert [
        ["F", "external UDTF", "fahrenheit", "AVAILABLE"],
        ["G", "external UDAF", "geometric_mean", "AVAILABLE"],
    ] == own
    assert sorted(row[0] for row in rows) == [row[0] for row in rows]
    engine.ask("select f(t) from root.a.d")
    engine.ask("drop function F")
    with pytest.raises(SemanticError, match="Unknown function: f"):
        engine.ask("select f(t) from root.a.d")
    with pytest.raises(EngineError, match="calls a user-defined function, which may be dropped"):
        engine.ask("create view root.a.v.g as select g(t) from root.a.d")


def test_a_restart_keeps_functions_and_one_that_is_gone_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from saros.extensions import *\n"
    source += "f = ScalarFunction(arguments=[ANY], result=None, evaluate=lambda r: (r.columns[0].values, None))"
    with monkeypatch.context() as patch:
        install(patch, tmp_path / "once", "once_installed", source, {"functions": {"once": "f"}})
        engine = Engine(tmp_path / "data")
        engine.ask("insert into root.a.d(time, x) values (1, 7)")
        engine.ask("create function f as 'once'")
        engine.close()
        engine = Engine(tmp_path / "data")
        assert [[1, 7.0]] == engine.ask("select f(x) from root.a.d")[1]
        engine.close()
    from saros_engine.extensions import installed

    installed._installed.cache_clear()  # another process would not have this cache
    engine = Engine(tmp_path / "data", EngineOptions())
    with pytest.raises(UserMistake, match="function f cannot be called on this node: no installed package has") as gone:
        engine.ask("select f(x) from root.a.d")
    assert 1200 == gone.value.code
    assert ["F", "external UDTF", "once", "UNAVAILABLE"] in engine.ask("show functions")[1]
    assert [[1, 7.0]] == engine.ask("select x from root.a.d")[1]
    engine.close()


def test_infinity_and_nan_pass(engine: Engine) -> None:
    engine.ask("create function f as 'fahrenheit'")
    engine.ask("insert into root.a.n(time, x) values (1, NaN)")
    assert math.isnan(engine.ask("select f(x) from root.a.n")[1][0][1])
