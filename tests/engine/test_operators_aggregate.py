"""AggregateScan and Aggregate compared with plain Python: windows of all kinds, summaries, stages, directions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from engine.operator_fakes import (
    BOOL,
    CONTEXT,
    DOUBLE,
    INT,
    LONG,
    TEXT,
    Account,
    FakeReaders,
    Row,
    Source,
    block,
    blocks,
    fields,
    pull,
    rows_of,
    summary_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from saros_engine.aggregation.windows import grid, window_sequence
from saros_engine.functions.registry import AGGREGATES, state_types, uses_summaries
from saros_engine.operators.aggregate import AggregateOperator
from saros_engine.operators.operator import OperatorContext
from saros_engine.operators.scan.aggregate_scan import AggregateScanOperator
from saros_engine.plan.expression import Constant, InputColumn, InputTime, Operation
from saros_engine.plan.plan import (
    Aggregate,
    AggregateCall,
    AggregateScan,
    ConditionWindows,
    CountWindows,
    SessionWindows,
    Stage,
    TimeWindows,
    VariationWindows,
    Windows,
)
from saros_grammar.syntax.ast import BinaryOperator
from saros_storage.base.block import Block
from saros_storage.base.types import DataType, Scalar
from saros_storage.read.window_statistics import joined
from saros_storage.scan.reading import ScanRequest, Summary, TimeRange

DAY = 86_400_000
NAMES = (
    "count",
    "sum",
    "avg",
    "min_value",
    "max_value",
    "extreme",
    "first_value",
    "last_value",
    "min_time",
    "max_time",
    "time_duration",
    "var_pop",
)


def call(name: str, type_: DataType = DOUBLE, index: int = 0) -> AggregateCall:
    result = AGGREGATES[name].check([type_])
    return AggregateCall(name, (InputColumn(index, type_),), result)


def calls(type_: DataType = DOUBLE) -> tuple[AggregateCall, ...]:
    return tuple(call(name, type_) for name in NAMES)


def model(points: list[tuple[int, float]]) -> Row:
    """Return the results of the aggregates in NAMES for points in time order."""
    if not points:
        return (0, *[None] * 11)
    times, values = [t for t, _ in points], [v for _, v in points]
    extreme = max(values, key=lambda v: (abs(v), v))
    mean = math.fsum(values) / len(values)
    variance = math.fsum((v - mean) ** 2 for v in values) / len(values)
    total = sum(values)
    return (
        *(len(values), total, total / len(values), min(values), max(values), extreme, values[0], values[-1]),
        *(times[0], times[-1], times[-1] - times[0], variance),
    )


def close(expected: list[Row], got: list[Row]) -> bool:
    def same(a: Scalar, b: Scalar) -> bool:
        if a is None or b is None:
            return a is b
        assert isinstance(a, (int, float))
        assert isinstance(b, (int, float))
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)

    return len(expected) == len(got) and all(
        len(a) == len(b) and all(map(same, a, b)) for a, b in zip(expected, got, strict=True)
    )


def scan(rows: list[Row], windows: TimeWindows | None, *, size: int = 7, descending: bool = False) -> list[Row]:
    readers = FakeReaders(blocks([DOUBLE], rows, size))
    request = ScanRequest("root.d", ("s",), (DOUBLE,), aligned=False, descending=descending)
    node = AggregateScan(request, calls(), windows, Stage.SINGLE, fields(*(c.type for c in calls())))
    got = rows_of(pull(AggregateScanOperator(node, readers, CONTEXT)))
    assert all(reader.closed for reader in readers.opened)
    return got


def points_in(rows: list[Row], start: int, end: int) -> list[tuple[int, float]]:
    return [(row[0], row[1]) for row in rows if start <= row[0] < end and row[1] is not None]  # type: ignore[misc, operator]


VALUES = st.one_of(st.none(), st.integers(-50, 50).map(float))
#: Draw rows in time order; the values may be null.
TIMED = st.dictionaries(st.integers(0, 120), VALUES, max_size=60).map(lambda rows: sorted(rows.items()))


def time_windows(rows: list[Row], windows: TimeWindows) -> list[Row]:
    """Return the expected rows, one per window."""
    expected: list[Row] = []
    for low in range(windows.start, windows.end, windows.step_ticks):
        high = min(low + windows.interval_ticks, windows.end)
        expected.append((high - 1 if windows.label_end else low, *model(points_in(rows, low, high))))
    return expected


@settings(max_examples=50)
@given(
    TIMED,
    st.integers(-10, 40),
    st.integers(0, 120),
    st.integers(1, 40),
    st.integers(1, 40),
    st.booleans(),
    st.booleans(),
)
def test_time_windows_are_what_python_says(
    rows: list[Row], start: int, length: int, interval: int, step: int, label_end: bool, descending: bool
) -> None:
    windows = TimeWindows(start, start + length, interval, 0, step, 0, label_end)
    expected = time_windows(rows, windows)
    inside = [row for row in rows if start <= row[0] < start + length]  # type: ignore[operator]
    got = scan(inside, windows, descending=descending)
    assert close(expected[::-1] if descending else expected, got)


@settings(max_examples=30)
@given(
    TIMED,
    st.integers(1, 30),
    st.integers(1, 30),
    st.lists(st.booleans(), min_size=60, max_size=60),
    st.booleans(),
    st.booleans(),
)
def test_summaries_count_like_the_rows_they_stand_for(
    rows: list[Row], interval: int, step: int, choice: list[bool], many: bool, descending: bool
) -> None:
    windows = TimeWindows(0, 121, interval, 0, step, 0)
    found = grid(windows)
    assert found.step is not None
    pieces: list[Block] = []
    for low in range(0, 121, found.step):
        cell = [row for row in rows if low <= row[0] < low + found.step]  # type: ignore[operator]
        if cell:
            pieces.append(block([DOUBLE], cell))
    mixed: list[Block | Summary] = [summary_of(p) if c else p for p, c in zip(pieces, choice, strict=False)]
    mixed += pieces[len(mixed) :]
    names = [c for c in calls() if c.function != "var_pop"]
    request = ScanRequest("root.d", ("s",), (DOUBLE,), aligned=False, descending=descending)
    node = AggregateScan(request, tuple(names), windows, Stage.SINGLE, ())
    readers = FakeReaders(joined((DOUBLE,), mixed) if many else mixed)
    got = rows_of(pull(AggregateScanOperator(node, readers, CONTEXT)))
    expected = [row[:-1] for row in time_windows(rows, windows)]
    assert close(expected[::-1] if descending else expected, got)
    assert readers.requests[0].grid == found
    assert readers.expected == readers.requests


@pytest.mark.parametrize(
    ("windows", "step"),
    [
        (TimeWindows(3, 500, 20, 0, 10, 0), 10),
        (TimeWindows(3, 500, 10, 0, 30, 0), 10),
        (TimeWindows(-7, 500, 15, 0, 20, 0), 5),
        (TimeWindows(0, 400 * DAY, 0, 1, 0, 1), DAY),
        (TimeWindows(5, 400 * DAY, 0, 2, 0, 1), DAY),
        (TimeWindows(0, 400 * DAY, 0, 1, 0, 1, False, "America/New_York"), 3_600_000),
        (TimeWindows(0, 400 * DAY, 7 * DAY, 0, 0, 1), DAY),
        (TimeWindows(0, 400 * DAY, 0, 0, 0, 0, interval_days=7, step_days=1), DAY),
        (TimeWindows(0, 400 * DAY, 0, 0, 0, 0, False, "America/New_York", 1, 1), 3_600_000),
        (TimeWindows(0, 20 * DAY, 0, 1, 0, 1), None),
        (TimeWindows(0, 400 * DAY, 0, 12, 0, 12), 365 * DAY),
    ],
)
def test_no_window_begins_or_ends_inside_a_cell_of_the_grid(windows: TimeWindows, step: int | None) -> None:
    found = grid(windows)
    assert step == found.step
    sequence = window_sequence(windows)
    borders = [*sequence.starts(0, sequence.count).tolist(), *sequence.ends(0, sequence.count).tolist()]
    inside = [border for border in borders if windows.start < border < windows.end]
    assert [] == [border for border in inside if found.same_window(border - 1, border)]


def test_statistics_of_blob_do_not_answer_its_first_and_last_value() -> None:
    for name, expected in (("count", True), ("max_time", True), ("first_value", False), ("last_value", False)):
        assert expected == uses_summaries(call(name, DataType.BLOB))


def test_without_windows_there_is_one_row_even_of_nothing() -> None:
    rows: list[Row] = [(1, 2.0), (2, None), (3, -4.0)]
    assert close([model([(1, 2.0), (3, -4.0)])], scan(rows, None))
    assert close([model([(1, 2.0), (3, -4.0)])], scan(rows, None, size=1, descending=True))
    assert close([model([])], scan([], None))


def test_a_million_windows_over_few_rows_come_in_blocks() -> None:
    windows = TimeWindows(0, 1_000_000, 1, 0, 1, 0)
    readers = FakeReaders([block([DOUBLE], [(7, 1.0), (999_999, 2.0)])])
    request = ScanRequest("root.d", ("s",), (DOUBLE,), aligned=False)
    node = AggregateScan(request, (call("count"),), windows, Stage.SINGLE, ())
    produced = pull(AggregateScanOperator(node, readers, CONTEXT))
    counts = np.concatenate([b.columns[0].numbers for b in produced])
    assert [7, 999_999] == np.flatnonzero(counts).tolist()
    assert 1_000_000 == len(counts)


def test_complete_windows_come_before_the_scan_has_ended() -> None:
    rows = [block([DOUBLE], [(t, 1.0) for t in range(low, low + 5_000)]) for low in (0, 5_000, 10_000)]
    readers = FakeReaders(rows)
    request = ScanRequest("root.d", ("s",), (DOUBLE,), aligned=False)
    node = AggregateScan(request, (call("count"),), TimeWindows(0, 15_000, 1, 0, 1, 0), Stage.SINGLE, ())
    operator = AggregateScanOperator(node, readers, CONTEXT)
    assert operator.next() is not None
    assert 2 == len(readers.opened[0].pieces)
    operator.close()
    assert readers.opened[0].closed


@settings(max_examples=25)
@given(TIMED, st.integers(1, 4), st.integers(1, 30), st.booleans(), st.booleans())
def test_partial_states_merge_to_the_whole(
    rows: list[Row], parts: int, interval: int, windowed: bool, merged_between: bool
) -> None:
    windows = TimeWindows(0, 121, interval, 0, interval, 0) if windowed else None
    states: list[Block] = []
    for part in range(parts):
        mine = rows[part::parts]
        request = ScanRequest("root.d", ("s",), (DOUBLE,), aligned=False, time=TimeRange(0, 121))
        node = AggregateScan(request, calls(), windows, Stage.PARTIAL, ())
        states += pull(AggregateScanOperator(node, FakeReaders(blocks([DOUBLE], mine, 5)), CONTEXT))
    final, at = [], 0
    for one in calls():
        types = state_types(one)
        final.append(replace(one, arguments=tuple(InputColumn(at + i, type_) for i, type_ in enumerate(types))))
        at += len(types)
    if merged_between:
        merge = Aggregate(_no_node(), tuple(final), windows, Stage.MERGE, ())
        states = pull(AggregateOperator(merge, Source(states), CONTEXT))
    node2 = Aggregate(_no_node(), tuple(final), windows, Stage.FINAL, ())
    got = rows_of(pull(AggregateOperator(node2, Source(states), CONTEXT)))
    assert close(time_windows(rows, windows) if windows else [model(points_in(rows, 0, 121))], got)


def _no_node() -> AggregateScan:
    """Return a placeholder child for nodes whose operators are given their children directly."""
    return AggregateScan(ScanRequest("root.d", (), (), aligned=False), (), None, Stage.SINGLE, ())


# ---------------------------------------------------------------------------------------------- Aggregate


def aggregate(
    rows: list[Row],
    types: list[DataType],
    windows: Windows | None,
    *wanted: AggregateCall,
    end_time: bool = False,
    descending: bool = False,
    size: int = 3,
) -> list[Row]:
    node = Aggregate(_no_node(), wanted, windows, Stage.SINGLE, (), end_time, descending)
    return rows_of(pull(AggregateOperator(node, Source(blocks(types, rows, size)), CONTEXT)))


def test_end_time_is_the_last_covered_time_and_descending_turns_around() -> None:
    rows: list[Row] = [(1, 1.0), (2, 2.0), (12, 3.0)]
    windows = TimeWindows(0, 25, 10, 0, 10, 0)
    expected: list[Row] = [(0, 9, 2), (10, 19, 1), (20, 24, 0)]
    assert expected == aggregate(rows, [DOUBLE], windows, call("count"), end_time=True)
    assert expected[::-1] == aggregate(rows, [DOUBLE], windows, call("count"), end_time=True, descending=True)


def test_final_stage_finds_the_end_times_again() -> None:
    states = [block([LONG], [(0, 1), (10, 2)]), block([LONG], [(0, 4), (10, 0)])]
    final = AggregateCall("count", (InputColumn(0, LONG),), LONG)
    node = Aggregate(_no_node(), (final,), TimeWindows(0, 15, 10, 0, 10, 0), Stage.FINAL, (), end_time=True)
    assert [(0, 9, 5), (10, 14, 2)] == rows_of(pull(AggregateOperator(node, Source(states), CONTEXT)))
    node = replace(node, descending=True)
    assert [(10, 14, 2), (0, 9, 5)] == rows_of(pull(AggregateOperator(node, Source(states), CONTEXT)))


@pytest.mark.parametrize("size", [1, 2, 100])
def test_session_windows_break_where_the_gap_is_exceeded(size: int) -> None:
    rows: list[Row] = [(1, 1.0), (5, 1.0), (9, None), (14, 1.0), (15, 1.0)]
    expected: list[Row] = [(1, 9, 2), (14, 15, 2)]
    assert expected == aggregate(rows, [DOUBLE], SessionWindows(4), call("count"), end_time=True, size=size)
    expected = [(1, 15, 4)]
    assert expected == aggregate(rows, [DOUBLE], SessionWindows(5), call("count"), end_time=True, size=size)
    far = 9 * 10**18  # their distance exceeds an INT64
    rows = [(-far, 1.0), (far, 1.0), (far + 5, 1.0)]
    assert [(-far, 1), (far, 2)] == aggregate(rows, [DOUBLE], SessionWindows(5), call("count"), size=size)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_variation_windows_compare_with_the_first_of_the_window(size: int) -> None:
    rows: list[Row] = [(1, 1.0), (2, 1.6), (3, None), (4, 2.0), (5, 2.1), (6, 9.0)]
    control = InputColumn(0, DOUBLE)
    got = aggregate(rows, [DOUBLE], VariationWindows(control, 1.0, True), call("count"), end_time=True, size=size)
    assert [(1, 4, 3), (5, 5, 1), (6, 6, 1)] == got
    got = aggregate(rows, [DOUBLE], VariationWindows(control, 1.0, False), call("count"), end_time=True, size=size)
    assert [(1, 2, 2), (3, 3, 0), (4, 5, 2), (6, 6, 1)] == got


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize(("type_", "a", "b"), [(TEXT, "x", "yy"), (BOOL, True, False), (INT, 3, 4)])
def test_variation_without_delta_breaks_at_every_change(size: int, type_: DataType, a: Scalar, b: Scalar) -> None:
    rows: list[Row] = [(1, a), (2, a), (3, b), (4, None), (5, None), (6, b), (7, a)]
    control = InputColumn(0, type_)
    got = aggregate(rows, [type_], VariationWindows(control, 0.0, True), call("count", type_), end_time=True, size=size)
    assert [(1, 2, 2), (3, 6, 2), (7, 7, 1)] == got
    got = aggregate(
        rows, [type_], VariationWindows(control, 0.0, False), call("count", type_), end_time=True, size=size
    )
    assert [(1, 2, 2), (3, 3, 1), (4, 5, 0), (6, 6, 1), (7, 7, 1)] == got


@pytest.mark.parametrize("size", [1, 2, 100])
def test_condition_windows_are_runs_of_truth(size: int) -> None:
    # The example of a charging car in IoTDB's manual: the status at each time, null where the car sent no status.
    status = [1, 1, 0, 0, 1, 1, 1, None, 1, 1]
    rows: list[Row] = [(t + 1, value) for t, value in enumerate(status)]
    charging = Operation(BinaryOperator.EQUAL, InputColumn(0, INT), Constant(1, INT), BOOL)
    kept = ConditionWindows(charging, ">=", 2, ignore_null=False)
    got = aggregate(rows, [INT], kept, call("count", INT), end_time=True, size=size)
    assert [(1, 2, 2), (5, 7, 3), (9, 10, 2)] == got
    got = aggregate(rows, [INT], replace(kept, ignore_null=True), call("count", INT), end_time=True, size=size)
    assert [(1, 2, 2), (5, 10, 5)] == got
    got = aggregate(rows, [INT], replace(kept, keep_operator="=", keep_count=3), call("count", INT), size=size)
    assert [(5, 3)] == got
    got = aggregate(rows, [INT], replace(kept, keep_operator="!=", keep_count=3), call("count", INT), size=size)
    assert [(1, 2), (9, 2)] == got
    got = aggregate(rows, [INT], replace(kept, keep_count=1), call("count", INT), descending=True, size=size)
    assert [(9, 2), (5, 3), (1, 2)] == got


@pytest.mark.parametrize("size", [1, 2, 100])
def test_count_windows_are_full_ones(size: int) -> None:
    rows: list[Row] = [(1, 1.0), (2, None), (3, 3.0), (4, 4.0), (5, 5.0)]
    control = InputColumn(0, DOUBLE)
    got = aggregate(rows, [DOUBLE], CountWindows(control, 2, True), call("sum"), end_time=True, size=size)
    assert [(1, 3, 4.0), (4, 5, 9.0)] == got
    got = aggregate(rows, [DOUBLE], CountWindows(control, 2, False), call("sum"), end_time=True, size=size)
    assert [(1, 2, 1.0), (3, 4, 7.0)] == got


def test_many_row_windows_stream() -> None:
    rows: list[Row] = [(t * 10, float(t)) for t in range(20_000)]
    got = aggregate(rows, [DOUBLE], SessionWindows(1), call("max_value"), size=3_000)
    assert [(t * 10, float(t)) for t in range(20_000)] == got


# ---------------------------------------------------------------------------------------------- functions and types


def test_text_booleans_and_times_are_aggregated_too() -> None:
    rows: list[Row] = [(1, "b", True), (2, "a", None), (3, None, False), (4, "ab", True)]
    wanted = [AggregateCall(n, (InputColumn(0, TEXT),), TEXT) for n in ("first_value", "last_value")]
    wanted += [AggregateCall(n, (InputColumn(1, BOOL),), BOOL) for n in ("first_value", "last_value")]
    wanted.append(call("count", BOOL, 1))
    wanted.append(AggregateCall("count_time", (), LONG))
    assert [("b", "ab", True, True, 3, 4)] == aggregate(rows, [TEXT, BOOL], None, *wanted)
    string = DataType.STRING
    least = [AggregateCall(n, (InputColumn(0, string),), string) for n in ("min_value", "max_value")]
    assert [("a", "b")] == aggregate([row[:2] for row in rows], [string], None, *least, size=2)


def test_max_by_takes_the_earliest_of_equals_and_x_may_be_null() -> None:
    rows: list[Row] = [(1, 10, 1.0), (2, 20, 5.0), (3, 30, 5.0), (4, None, math.nan), (5, 50, None)]
    x, y = InputColumn(0, INT), InputColumn(1, DOUBLE)
    wanted = (
        AggregateCall("max_by", (x, y), INT),
        AggregateCall("min_by", (InputTime(), y), LONG),
        AggregateCall("max_by", (InputColumn(0, INT), InputTime()), INT),
    )
    assert [(20, 1, 50)] == aggregate(rows, [INT, DOUBLE], None, *wanted)
    assert [(20, 1, 50)] == aggregate(rows, [INT, DOUBLE], None, *wanted, size=1)
    assert [(None,)] == aggregate([*rows, (6, None, 9.0)], [INT, DOUBLE], None, wanted[0])


def test_nan_counts_only_where_nothing_else_is() -> None:
    rows: list[Row] = [(1, math.nan), (2, 3.0), (3, -1.0), (10, math.nan)]
    wanted = [call(n) for n in ("min_value", "max_value", "extreme", "count")]
    got = aggregate(rows, [DOUBLE], TimeWindows(0, 20, 10, 0, 10, 0), *wanted)
    assert repr([(0, -1.0, 3.0, 3.0, 3), (10, math.nan, math.nan, math.nan, 1)]) == repr(got)


def test_extreme_prefers_the_positive_and_survives_the_smallest_integer() -> None:
    low = -(2**63)
    got = aggregate([(1, low), (2, 5)], [LONG], None, call("extreme", LONG))
    assert [(low,)] == got
    assert [(4,)] == aggregate([(1, -4), (2, 4)], [INT], None, call("extreme", INT))


def test_deviations_of_samples_and_populations() -> None:
    rows: list[Row] = [(t, v) for t, v in enumerate([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])]
    names = ("stddev_pop", "var_pop", "stddev", "stddev_samp", "variance", "var_samp")
    sample = 32 / 7
    got = aggregate(rows, [DOUBLE], None, *[call(n) for n in names])
    assert close([(2.0, 4.0, sample**0.5, sample**0.5, sample, sample)], got)
    assert [(0.0, None)] == aggregate(rows[:1], [DOUBLE], None, call("var_pop"), call("var_samp"))


def test_borders_of_very_many_windows_are_the_same_in_whatever_order_they_are_asked_for() -> None:
    count, step, interval, end = 10_001, 7, 5, 70_003
    sequence = window_sequence(TimeWindows(0, end, interval, 0, step, 0))
    assert count == sequence.count
    for low, high in (
        (9_990, 10_001),
        (4_000, 4_200),
        (4_095, 4_097),
        (0, 10_001),
        (5, 5),
        (10_001, 10_001),
        (3, 9_000),
    ):
        starts = [number * step for number in range(low, high)]
        assert starts == sequence.starts(low, high).tolist()
        assert [min(start + interval, end) for start in starts] == sequence.ends(low, high).tolist()


def test_memory_is_accounted_and_given_back() -> None:
    account = Account()
    node = Aggregate(_no_node(), (call("sum"),), SessionWindows(1), Stage.SINGLE, (), descending=True)
    rows: list[Row] = [(t * 10, 1.0) for t in range(10_000)]
    pull(AggregateOperator(node, Source(blocks([DOUBLE], rows, 1_000)), OperatorContext(account)))
    assert account.peak > 10_000 * 8
    assert 0 == account.used
    with pytest.raises(MemoryError):
        pull(AggregateOperator(node, Source(blocks([DOUBLE], rows, 1_000)), OperatorContext(Account(1_000))))
