"""The analysis of expressions before planning: their names, times and types."""

from __future__ import annotations

import pytest
from engine.plan_fixtures import MOMENT, NOW, PLANT, expression_of, select_of, written

from saros_engine.analysis.binding import Columns, bind
from saros_engine.analysis.scope import (
    DeviceScope,
    Leaf,
    Scope,
    children_of,
    paths_of,
    rebuilt,
    with_paths,
)
from saros_engine.analysis.sources import column_numbers, joined, sources_of
from saros_engine.base.errors import SemanticError
from saros_engine.expressions.time_filter import constant_time, split_time, time_range
from saros_engine.plan.expression import InputColumn, Membership, Operation
from saros_engine.plan.plan import TimeJoin
from saros_grammar.syntax.ast import PathExpression
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType
from saros_storage.scan.reading import TimeRange, rows_per_block


def scope(*prefixes: str) -> Scope:
    return Scope(PLANT, [PathExpression(tuple(prefix.split("."))) for prefix in prefixes])


def expanded(text: str, *prefixes: str) -> list[str]:
    item = select_of(f"select {text} from root.x").items[0]
    return [str(expression) for expression in scope(*prefixes).expand(item.expression)]


# ---------------------------------------------------------------------------------------------- names


def test_a_path_is_looked_up_below_each_prefix_in_order() -> None:
    assert ["root.a.d2.s1", "root.a.d1.s1"] == expanded("s1", "root.a.d2", "root.a.d1")
    assert ["root.a.d1.s1", "root.a.d2.s1", "root.a.d3.s1"] == expanded("s1", "root.a.*")
    assert ["root.a.d1.s1", "root.a.d1.s2", "root.a.d1.tx"] == expanded("*", "root.a.d1")


def test_a_star_is_one_level_and_two_are_any_number() -> None:
    assert [] == expanded("*", "root.a")
    assert ["root.a.d1.s1", "root.a.d2.s1", "root.a.d3.s1"] == expanded("*.s1", "root.a")
    assert 9 == len(expanded("**", "root.a")) + len(expanded("**", "root.odd.mixed"))


def test_expressions_stand_for_all_combinations_and_the_first_path_varies_slowest() -> None:
    assert [
        "root.a.d1.s1 + root.a.d1.s2",
        "root.a.d1.s1 + root.a.d3.s2",
        "root.a.d3.s1 + root.a.d1.s2",
        "root.a.d3.s1 + root.a.d3.s2",
    ] == expanded("s1 + s2", "root.a.d1", "root.a.d3")
    assert ["count(root.a.d2.s1)", "count(root.a.d2.s3)"] == expanded("count(*)", "root.a.d2")


def test_what_means_no_series_stands_for_nothing() -> None:
    assert [] == expanded("nosuch", "root.a.**")
    assert [] == expanded("s1 + nosuch", "root.a.d1")
    assert ["1 + 2"] == expanded("1 + 2", "root.a.d1")


def test_a_condition_keeps_paths_that_mean_no_series_and_finds_the_others() -> None:
    found = scope("root.a.d1").expand_known(expression_of("s1 > 1 or nosuch > 2"))
    assert ["root.a.d1.s1 > 1 | nosuch > 2"] == [str(expression) for expression in found]


def test_too_many_combinations_are_refused() -> None:
    wide = " + ".join(["**"] * 6)
    with pytest.raises(SemanticError, match="matches 262144 combinations"):
        expanded(wide, "root.a")


def test_a_series_is_found_by_its_alias_and_back_quoted_names_stay_whole() -> None:
    by_alias = scope("root.a.d1")
    (path,) = by_alias.find(PathExpression(("heat",)))
    assert ("root.a.d1.heat", "s2") == (str(path), by_alias.series[path].series.measurement)
    quoted = scope("root.odd.*")
    paths = quoted.find(PathExpression(("*",)))
    assert ["root.odd.`x-z`.`p q`", "root.odd.`x.*`.`p q`", "root.odd.mixed.s1"] == [str(path) for path in paths]
    assert [4, 4, 4] == [len(path.nodes) for path in paths]
    assert not any(path.has_wildcard for path in paths)


def test_the_scope_of_a_device_keeps_paths_as_they_are_written() -> None:
    device = PLANT.device("root.a.d3")
    assert device is not None
    inside = DeviceScope(device)
    assert ["f", "s1", "s2"] == [str(path) for path in inside.find(PathExpression(("*",)))]
    assert ["s1", "s2"] == [str(path) for path in inside.find(PathExpression(("s*",)))]
    assert [] == inside.find(PathExpression(("nosuch",)))
    with pytest.raises(SemanticError, match="can only be measurement or one-level wildcard"):
        inside.find(PathExpression(("a", "b")))


@pytest.mark.parametrize(
    "text",
    [
        "s1 + 2 > -s2",
        "s1 between 1 and s2",
        "s1 not in (1, 2)",
        "tx like 'a%'",
        "s1 is not null",
        "cast(s1 as TEXT) = 'x'",
        "case when s1 > 1 then s2 else s1 end > 2",
        "case s1 when 1 then s2 end > 2",
        "substring(tx from 1 for 2) = 'ab'",
        "in_range(s1, 'lower'='1', 'upper'='2')",
    ],
)
def test_expressions_are_rebuilt_from_their_children(text: str) -> None:
    expression = expression_of(text)
    assert expression == rebuilt(expression, children_of(expression))
    paths = list(paths_of(expression))
    renamed = [PathExpression(("root", *path.nodes)) for path in paths]
    assert renamed == list(paths_of(with_paths(expression, renamed)))
    assert expression == with_paths(with_paths(expression, renamed), paths)


# ---------------------------------------------------------------------------------------------- sources


def leaves(text: str, *prefixes: str) -> list[Leaf]:
    names = scope(*prefixes)
    items = select_of(f"select {text} from root.x").items
    return [names.series[p] for item in items for e in names.expand(item.expression) for p in paths_of(e)]


def test_an_aligned_device_is_one_scan_and_other_series_are_one_each() -> None:
    wanted = leaves("s1, s2, s1", "root.a.d1", "root.a.d3")
    found = sources_of(wanted, TimeRange(5, 9), rows_per_block, descending=True)
    shown = [(s.request.device, s.request.measurements, s.request.aligned) for s in found]
    assert [
        ("root.a.d1", ("s1",), False),
        ("root.a.d3", ("s1", "s2"), True),
        ("root.a.d1", ("s2",), False),
    ] == shown
    assert {(TimeRange(5, 9), True)} == {(s.request.time, s.request.descending) for s in found}


def test_columns_are_numbered_along_the_join_and_both_names_of_a_series_are_one() -> None:
    wanted = leaves("heat, s1, s2", "root.a.d1")
    found = sources_of(wanted, TimeRange(), rows_per_block)
    numbers = column_numbers(found, wanted)
    assert {"root.a.d1.heat": 0, "root.a.d1.s1": 1, "root.a.d1.s2": 0} == {
        str(path): column.index for path, column in numbers.items()
    }
    node = joined(found)
    assert isinstance(node, TimeJoin)
    assert [DataType.DOUBLE, DataType.INT64] == [field.type for field in node.fields]


# ---------------------------------------------------------------------------------------------- time


@pytest.mark.parametrize(
    ("where", "start", "end", "rest"),
    [
        ("time = 5", 5, 6, None),
        ("time > 5", 6, TIME_MAX, None),
        ("time >= 5", 5, TIME_MAX, None),
        ("time < 5", TIME_MIN, 5, None),
        ("time <= 5", TIME_MIN, 6, None),
        ("5 < time", 6, TIME_MAX, None),
        ("5 >= time", TIME_MIN, 6, None),
        ("time between 5 and 7", 5, 8, None),
        ("time in (5)", 5, 6, None),
        ("time > 5 and time < 9 and time > 6", 7, 9, None),
        ("time > 9 and time < 5", 10, 5, None),
        ("time > 5 and s1 > 3 and time < 9 and s2 = 1", 6, 9, "s1 > 3 & s2 = 1"),
        ("time > 5 or s1 > 3", TIME_MIN, TIME_MAX, "Time > 5 | s1 > 3"),
        ("time != 5", TIME_MIN, TIME_MAX, "Time != 5"),
        ("time not between 5 and 7", TIME_MIN, TIME_MAX, "Time NOT BETWEEN 5 AND 7"),
        ("time in (5, 6)", TIME_MIN, TIME_MAX, "Time IN (5,6)"),
        ("time > s1", TIME_MIN, TIME_MAX, "Time > s1"),
        ("time > now() - 1s", NOW - 999, TIME_MAX, None),
        ("time > now() - 1mo", NOW - 31 * 86_400_000 + 1, TIME_MAX, None),
        ("time < 1970-01-01T00:00:01", TIME_MIN, 1_000, None),
        ("time >= 1970-01-01T00:00:01 + 2s", 3_000, TIME_MAX, None),
        ("time >= -5", -5, TIME_MAX, None),
        ("time < 99999999999999999999", TIME_MIN, TIME_MAX, None),
        ("time <= -99999999999999999999", TIME_MIN, TIME_MIN, None),
    ],
)
def test_what_a_condition_says_of_time(where: str, start: int, end: int, rest: str | None) -> None:
    time, left = split_time(expression_of(where), MOMENT)
    assert (start, end, rest) == (time.start, time.end, None if left is None else str(left))


@pytest.mark.parametrize("where", ["time > 99999999999999999999", "time = 99999999999999999999"])
def test_times_beyond_all_times_leave_an_empty_range(where: str) -> None:
    time, _ = split_time(expression_of(where), MOMENT)
    assert time.empty


def test_a_condition_of_delete_may_only_speak_of_time() -> None:
    assert TimeRange(6, 9) == time_range(expression_of("time > 5 and time < 9"), MOMENT)
    assert TimeRange() == time_range(None, MOMENT)
    with pytest.raises(SemanticError, match="can only contain time expressions"):
        time_range(expression_of("time > 5 and s1 > 3"), MOMENT)


def test_constants_of_time() -> None:
    assert NOW == constant_time(None, MOMENT)
    with pytest.raises(SemanticError, match="s1 is not a time"):
        constant_time(PathExpression(("s1",)), MOMENT)


# ---------------------------------------------------------------------------------------------- types

COLUMNS = Columns(
    MOMENT,
    {
        PathExpression((name,)): InputColumn(i, type_)
        for i, (name, type_) in enumerate(
            {
                "i": DataType.INT32,
                "d": DataType.DOUBLE,
                "t": DataType.TEXT,
                "b": DataType.BOOLEAN,
                "day": DataType.DATE,
                "at": DataType.TIMESTAMP,
                "s": DataType.STRING,
            }.items()
        )
    },
)


@pytest.mark.parametrize(
    ("text", "type_", "shown"),
    [
        ("i + 1", "DOUBLE", "(#0 + 1)"),
        ("i % 2", "INT64", "(#0 % 2)"),
        ("i / i", "INT64", "(#0 / #0)"),
        ("i / d", "DOUBLE", "(#0 / #1)"),
        ("(i + 1) / 2", "DOUBLE", "((#0 + 1) / 2)"),
        ("time / 1000", "INT64", "(time / 1000)"),
        ("i / 99999999999999999999", "DOUBLE", "(#0 / 1e+20)"),
        ("i / null", "DOUBLE", "null DOUBLE"),
        ("-i", "INT32", "Negate(#0)"),
        ("i > d", "BOOLEAN", "(#0 > #1)"),
        ("t = s", "BOOLEAN", "(#2 = #6)"),
        ("b and not b", "BOOLEAN", "(#3 & Not(#3))"),
        ("day = '2020-02-03'", "BOOLEAN", "(#4 = 20200203)"),
        ("at > '1970-01-01 00:00:01'", "BOOLEAN", "(#5 > 1000)"),
        ("at > 1970-01-01T00:00:01", "BOOLEAN", "(#5 > 1000)"),
        ("i in (1, null)", "BOOLEAN", "#0 in [1, None]"),
        ("day not in ('2020-02-03')", "BOOLEAN", "#4 not in [20200203]"),
        ("i not between 1 and 2", "BOOLEAN", "Not(((#0 >= 1) & (#0 <= 2)))"),
        ("cast(i as TEXT)", "TEXT", "Conversion(#0)"),
        ("abs(i)", "INT32", "abs(#0)"),
        ("now() > 3", "BOOLEAN", f"({NOW} > 3)"),
        ("time + 1", "DOUBLE", "(time + 1)"),
        ("time > d", "BOOLEAN", "(time > #1)"),
        ("at > time", "BOOLEAN", "(#5 > time)"),
        ("at >= 5", "BOOLEAN", "(#5 >= 5)"),
        ("i + 1970-01-01T00:00:01", "DOUBLE", "(#0 + 1000)"),
        ("99999999999999999999 + i", "DOUBLE", "(1e+20 + #0)"),
    ],
)
def test_types_and_columns(text: str, type_: str, shown: str) -> None:
    bound = bind(expression_of(text), COLUMNS)
    assert (type_, shown) == (bound.type.name, written(bound))


@pytest.mark.parametrize(
    ("text", "signed"),
    [
        ("d = 0", False),
        ("0 = d", False),
        ("(d) = 0", False),
        ("+d = 0", False),
        ("d = -0.0", False),
        ("d = i", False),
        ("d = 0 * -1.5", False),
        ("d > sin(0)", False),
        ("d > cast('0' as DOUBLE)", False),
        ("d in (0)", False),
        ("1 - 1 = -0.0", False),
        ("-d = 0", True),
        ("0 = -d", True),
        ("-d = d", True),
        ("d = -d", True),
        ("-d = -i", True),
        ("i + 1 > 0", True),
        ("time * 2 > 0", True),
        ("abs(d) != 5", True),
        ("cast(i as FLOAT) < 0", True),
        ("case when b then d end >= 0", True),
        ("-d in (0)", True),
        ("round(d) not in (1, null)", True),
        ("-i = d", False),
        ("i / 2 = d", False),
        ("length(t) = d", False),
        ("abs(i) in (0)", False),
        ("time > 5", False),
        ("t = upper(t)", False),
        ("concat(t, s) in ('a')", False),
    ],
)
def test_zeros_are_two_where_one_side_is_floating_and_computed(text: str, signed: bool) -> None:
    bound = bind(expression_of(text), COLUMNS)
    assert isinstance(bound, Operation | Membership)
    assert signed == bound.signed_zeros


@pytest.mark.parametrize(
    ("text", "signed"),
    [("max_value(d) = 0", False), ("max_value(d) in (0)", False), ("-max_value(d) = 0", True), ("count(d) = 0", False)],
)
def test_what_an_aggregate_gives_is_not_computed_and_what_is_made_of_it_is(text: str, signed: bool) -> None:
    calls = {expression_of(text): InputColumn(0, DataType.DOUBLE) for text in ("max_value(d)", "count(d)")}
    bound = bind(expression_of(text), Columns(MOMENT, aggregates=calls))
    assert isinstance(bound, Operation | Membership)
    assert signed == bound.signed_zeros


def test_points_that_a_function_makes_are_computed_though_they_are_a_column() -> None:
    points = {expression_of("valuefill(d)"): InputColumn(0, DataType.DOUBLE)}
    bound = bind(expression_of("valuefill(d) = 0"), Columns(MOMENT, points=points))
    assert isinstance(bound, Operation)
    assert isinstance(bound.left, InputColumn)
    assert bound.signed_zeros


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "none > 1",
        "-none",
        "none + 1",
        "sin(none)",
        "none in (1)",
        "none like 'x'",
        "concat(t, none) = 'x'",
        "case when b then none end > d",
    ],
)
def test_what_is_made_of_a_missing_series_is_null_whatever_its_type_might_be(text: str) -> None:
    assert written(bind(expression_of(text), COLUMNS)).startswith("null")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i = '5'", "expression: i, actual data type: INT32"),
        ("'5' = i", "expression: i, actual data type: INT32"),
        ("t > 5", "expression: t, actual data type: TEXT"),
        ("b > 1", "expression: b, actual data type: BOOLEAN"),
        ("i and b", "expression: i, actual data type: INT32"),
        ("not i", "expression: i, actual data type: INT32"),
        ("t + 1", "expression: t, actual data type: TEXT"),
        ("day = '2020-02-30'", "use YYYY-MM-DD"),
        ("i like 'x'", "expected data type\\(s\\): \\[TEXT, STRING\\]"),
        ("i in (d)", "is not a constant"),
        ("i in ('x')", "expression: i, actual data type: INT32"),
        ("__endTime > 1", "__endTime needs GROUP BY"),
        ("at + 1", "expression: at, actual data type: TIMESTAMP"),
        ("time - at", "expression: at, actual data type: TIMESTAMP"),
        ("-at", "expression: at, actual data type: TIMESTAMP"),
        ("i < at", "expression: i, actual data type: INT32, expected data type\\(s\\): \\[TIMESTAMP, INT64\\]"),
        ("at = 1.5", "expression: 1.5, actual data type: DOUBLE"),
        ("case when b then 1 when b then t end", "TEXT and other types cannot exist"),
    ],
)
def test_what_does_not_fit_is_named(text: str, message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        bind(expression_of(text), COLUMNS)
