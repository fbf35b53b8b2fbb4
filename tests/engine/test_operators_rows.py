"""The operators without aggregation: scan, joins, filter, project, fill, sort, limit, device merge, last."""

from __future__ import annotations

import tempfile
from concurrent.futures import Future

import numpy as np
import pytest
from engine.operator_fakes import (
    BOOL,
    CONTEXT,
    DOUBLE,
    INT,
    LONG,
    STAMP,
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
    unwanted,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from saros_engine.execution.build import build
from saros_engine.memory.spill import QuerySpill
from saros_engine.operators import sort
from saros_engine.operators.fill import FillOperator, LinearFillOperator
from saros_engine.operators.filter import FilterOperator
from saros_engine.operators.join.device_merge import DeviceAppendOperator, DeviceMergeOperator
from saros_engine.operators.join.time_join import TimeJoinOperator
from saros_engine.operators.join.window_join import WindowJoinOperator
from saros_engine.operators.limit import LimitOperator
from saros_engine.operators.operator import Operator, OperatorContext, UnlimitedMemory
from saros_engine.operators.project import ProjectOperator
from saros_engine.operators.sort import SortOperator, stable_order
from saros_engine.plan.expression import Constant, FunctionCall, InputColumn, InputTime, Operation
from saros_engine.plan.plan import (
    Aggregate,
    AggregateCall,
    AggregateScan,
    DeviceMerge,
    ExchangeSource,
    FillKind,
    FillNode,
    Filter,
    Limit,
    Node,
    Project,
    Rows,
    Scan,
    Sort,
    SortItem,
    Stage,
    TimeJoin,
    WindowJoin,
)
from saros_engine.planner import LastItem, last_scan
from saros_grammar.syntax.ast import BinaryOperator
from saros_scheduler.cancellation import QueryCancelled
from saros_storage.base.block import Block, Column
from saros_storage.base.types import Scalar
from saros_storage.scan.reading import BLOCK_ROWS_MAX, ScanRequest, TimeRange

NODE = Rows(Block.untimed([], 0), ())


def no_exchange(source: ExchangeSource) -> Operator:
    raise AssertionError(source)


def build_on(node: Node, pieces: list[Block], context: OperatorContext = CONTEXT) -> Operator:
    return build(node, FakeReaders(list(pieces)), context, no_exchange)


def test_scan_opens_late_passes_on_and_closes() -> None:
    readers = FakeReaders(blocks([DOUBLE], [(1, 1.0), (2, None), (3, 3.0)], 2))
    request = ScanRequest("root.d", ("s",), (DOUBLE,), aligned=False)
    operator = build(Scan(request, fields(DOUBLE)), readers, CONTEXT, no_exchange)
    assert [] == readers.opened
    assert [(1, 1.0), (2, None), (3, 3.0)] == rows_of(pull(operator))
    assert readers.opened[0].closed
    assert operator.statistics.reads is readers.opened[0].counters
    assert (3, 2) == (operator.statistics.rows, operator.statistics.blocks)


# ---------------------------------------------------------------------------------------------- joins


SERIES = st.lists(st.dictionaries(st.integers(0, 40), st.integers(0, 9), max_size=25), min_size=1, max_size=5)


@settings(max_examples=50)
@given(SERIES, st.integers(1, 9), st.booleans(), st.booleans())
def test_time_join_is_a_full_outer_join(
    series: list[dict[int, int]], size: int, descending: bool, as_text: bool
) -> None:
    type_ = TEXT if as_text else DOUBLE
    convert = str if as_text else float
    children = []
    for one in series:
        rows: list[Row] = [(t, convert(v)) for t, v in sorted(one.items(), reverse=descending)]
        pieces: list[Block | None] = []
        for piece in blocks([type_], rows, size):
            pieces += [piece, None]
        children.append(Source(pieces))
    times = sorted({t for one in series for t in one}, reverse=descending)
    expected = [(t, *(convert(one[t]) if t in one else None for one in series)) for t in times]
    node = TimeJoin((), (), descending)
    got = pull(TimeJoinOperator(node, children, [[type_]] * len(series), CONTEXT))
    assert expected == rows_of(got)
    assert all(child.closed for child in children)


def test_time_join_hands_on_equal_times_without_a_copy() -> None:
    left, right = block([DOUBLE], [(1, 1.0), (2, 2.0)]), block([INT, TEXT], [(1, 1, "a"), (2, None, "b")])
    got = pull(TimeJoinOperator(TimeJoin((), ()), [Source([left]), Source([right])], [[DOUBLE], [INT, TEXT]], CONTEXT))
    assert [(1, 1.0, 1, "a"), (2, 2.0, None, "b")] == rows_of(got)
    assert got[0].columns[0] is left.columns[0]


def test_time_join_keeps_its_blocks_small() -> None:
    children = [
        Source([Block.timed(np.arange(60_000) * 30 + i, block([INT], [(0, i)]).columns[0:0])]) for i in range(30)
    ]
    account = Account()
    operator = TimeJoinOperator(TimeJoin((), ()), children, [[]] * 30, OperatorContext(account))
    produced = pull(operator)
    assert max(b.rows for b in produced) <= BLOCK_ROWS_MAX
    assert 30 * 60_000 == sum(b.rows for b in produced)
    assert np.array_equal(np.concatenate([b.times for b in produced]), np.arange(30 * 60_000))
    assert 0 == account.used


def test_a_block_of_very_many_columns_has_few_rows() -> None:
    width, rows = 500, 20_000
    one = Block.timed(np.arange(rows), (Column(INT, np.arange(rows, dtype=np.int32)),))
    account = Account()
    context = OperatorContext(account)
    operator = TimeJoinOperator(TimeJoin((), ()), [Source([one]) for _ in range(width)], [[INT]] * width, context)
    produced = pull(operator)
    assert max(block.rows for block in produced) * width <= 2 << 20
    assert list(range(rows)) == [value for block in produced for value in block.columns[-1].to_list()]
    assert 0 == account.used


def test_a_join_waits_for_the_child_that_it_needs() -> None:
    slow = Source([block([INT], [(1, 1)])])
    slow.waits_for = Future()
    quick = Source([block([INT], [(1, 2)])])
    operator = TimeJoinOperator(TimeJoin((), ()), [quick, slow], [[INT], [INT]], CONTEXT)
    assert operator.blocked() is slow.waits_for
    slow.waits_for = None
    assert [(1, 2, 1)] == rows_of(pull(operator))


def test_window_join_puts_equal_rows_side_by_side() -> None:
    rows: list[Row] = [(t, t) for t in range(10)]
    children = [Source(blocks([INT], rows, size)) for size in (3, 10, 4)]
    got = rows_of(pull(WindowJoinOperator(children, CONTEXT)))
    assert [(t, t, t, t) for t in range(10)] == got
    single = [Source([block([INT], [(value,)], timed=False)]) for value in (1, 2)]
    assert [(1, 2)] == rows_of(pull(WindowJoinOperator(single, CONTEXT)))


# ---------------------------------------------------------------------------------------------- filter, project, limit


def test_filter_keeps_only_true() -> None:
    rows: list[Row] = [(1, 1.0), (2, None), (3, 3.0)]
    large = Operation(BinaryOperator.GREATER, InputColumn(0, DOUBLE), Constant(2.0, DOUBLE), BOOL)
    operator = FilterOperator(Filter(NODE, large, ()), Source(blocks([DOUBLE], rows, 1)), CONTEXT)
    assert [(3, 3.0)] == rows_of(pull(operator))


def test_project_keeps_all_rows_in_order() -> None:
    rows: list[Row] = [(1, 1.0, None), (2, None, None), (3, None, 5)]
    node = Project(NODE, (InputColumn(1, INT), InputColumn(0, DOUBLE)), ())
    got = rows_of(pull(ProjectOperator(node, Source(blocks([DOUBLE, INT], rows, 2)), CONTEXT)))
    assert [(1, None, 1.0), (2, None, None), (3, 5, None)] == got


def test_series_functions_go_over_block_borders() -> None:
    diff = FunctionCall("diff", (InputColumn(0, INT),), DOUBLE)
    rows: list[Row] = [(1, 1), (2, 4), (3, None), (4, 9), (5, 10)]
    operator = ProjectOperator(Project(NODE, (diff,), ()), Source(blocks([INT], rows, 2)), CONTEXT)
    assert [(1, None), (2, 3.0), (3, None), (4, 5.0), (5, 1.0)] == rows_of(pull(operator))


@pytest.mark.parametrize("size", [1, 3, 10])
def test_limit_stops_its_child(size: int) -> None:
    rows: list[Row] = [(t, t) for t in range(10)]
    child = Source(blocks([INT], rows, size))
    assert rows[2:5] == rows_of(pull(LimitOperator(Limit(NODE, 2, 3, ()), child, CONTEXT)))
    assert child.closed
    assert child.pulled <= -(-5 // size)
    assert rows[4:] == rows_of(
        pull(LimitOperator(Limit(NODE, 4, None, ()), Source(blocks([INT], rows, size)), CONTEXT))
    )
    assert [] == pull(LimitOperator(Limit(NODE, 0, 0, ()), Source(blocks([INT], rows, size)), CONTEXT))


# ---------------------------------------------------------------------------------------------- fill


CELLS = st.lists(
    st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(-9, 9)), st.one_of(st.none(), st.sampled_from("ab"))),
    max_size=30,
)


def with_times(cells: list[tuple[int, int | None, str | None]], descending: bool) -> list[Row]:
    """Return rows with times; each cell begins with the gap since the previous row."""
    rows: list[Row] = []
    time = 0
    for gap, number, text in cells:
        time += gap + 1
        rows.append((time, number, text))
    return rows[::-1] if descending else rows


@settings(max_examples=50)
@given(CELLS, st.integers(1, 7), st.one_of(st.none(), st.integers(0, 20)), st.booleans())
def test_previous_looks_back_along_the_rows(
    cells: list[tuple[int, int | None, str | None]], size: int, bound: int | None, descending: bool
) -> None:
    rows = with_times(cells, descending)
    expected = []
    last: list[tuple[Scalar, int] | None] = [None, None]
    for time, *values in rows:
        assert isinstance(time, int)
        filled: list[Scalar] = []
        for i, value in enumerate(values):
            known = last[i]
            if value is not None:
                last[i] = value, time
            elif known is not None and (bound is None or abs(time - known[1]) <= bound):
                filled.append(known[0])
                continue
            filled.append(value)
        expected.append((time, *filled))
    node = FillNode(NODE, FillKind.PREVIOUS, (), bound, (), descending)
    got = rows_of(pull(FillOperator(node, Source(blocks([INT, TEXT], rows, size)), CONTEXT)))
    assert expected == got


class Overdrawn(UnlimitedMemory):
    """A memory account that has no free memory. Every operator that can spill therefore does so."""

    @property
    def bytes_max(self) -> int:
        return 0


@settings(max_examples=50)
@given(CELLS, st.integers(1, 7), st.booleans(), st.booleans())
def test_linear_fills_between_points_and_never_beyond(
    cells: list[tuple[int, int | None, str | None]], size: int, descending: bool, in_files: bool
) -> None:
    rows: list[Row] = [
        (time, None if number is None else float(number), number, text)  # type: ignore[arg-type]
        for time, number, text in with_times(cells, descending)
    ]
    known = [(row[0], row[2]) for row in rows if row[2] is not None]
    expected = []
    for time, measured, count, text in rows:
        assert isinstance(time, int)
        double, number = measured, count
        before = [p for p in known if (p[0] > time if descending else p[0] < time)]  # type: ignore[operator]
        after = [p for p in known if (p[0] < time if descending else p[0] > time)]  # type: ignore[operator]
        if number is None and before and after:
            (t0, v0), (t1, v1) = before[-1], after[0]
            double = v0 + (v1 - v0) * ((time - t0) / (t1 - t0))  # type: ignore[operator]
            number = int(double)
        expected.append((time, double, number, text))
    node = FillNode(NODE, FillKind.LINEAR, (), None, fields(DOUBLE, INT, TEXT), descending)
    account = Account()
    spill = QuerySpill(tempfile.gettempdir(), 1 << 30) if in_files else None
    child = Source(blocks([DOUBLE, INT, TEXT], rows, size))
    context = OperatorContext(Overdrawn() if in_files else account, spill=spill)
    got = rows_of(pull(LinearFillOperator(node, child, context)))
    assert expected == got
    assert 0 == account.used
    assert spill is None or spill.bytes == 0
    assert spill is None or spill.peak > 0 or not rows


@given(st.integers(-(1 << 61), 1 << 61), st.integers(-(1 << 61), 1 << 61), st.integers(2, 1 << 50), st.booleans())
@example(0, 49, 49, False)
@example(1_700_000_000_000_000_000, 1_700_000_000_000_000_049, 49, True)
def test_linear_goes_through_times_exactly(low: int, high: int, run: int, descending: bool) -> None:
    between = sorted({1, run // 3 or 1, run // 2, run - 1})
    rows: list[Row] = [(0, low), *((t, None) for t in between), (run, high)]
    expected: list[Row] = [(0, low), *((t, low + (high - low) * t // run) for t in between), (run, high)]
    if descending:
        rows.reverse()
        expected.reverse()
    node = FillNode(NODE, FillKind.LINEAR, (), None, fields(STAMP), descending)
    operator = LinearFillOperator(node, Source(blocks([STAMP], rows, 3)), CONTEXT)
    assert expected == rows_of(pull(operator))


def test_linear_answers_as_soon_as_it_can() -> None:
    rows: list[Row] = [(t, None if t % 2 else float(t)) for t in range(10)]
    operator = LinearFillOperator(
        FillNode(NODE, FillKind.LINEAR, (), None, fields(DOUBLE)), Source(blocks([DOUBLE], rows, 5)), CONTEXT
    )
    first = operator.next()
    assert first is not None
    assert [(t, float(t)) for t in range(5)] == rows_of([first])


def test_constants_fill_the_columns_they_fit() -> None:
    rows: list[Row] = [(1, None, None, None), (2, 2, "b", True)]
    node = FillNode(NODE, FillKind.VALUE, (7, "x", None), None, ())
    operator = FillOperator(node, Source(blocks([INT, TEXT, BOOL], rows, 2)), CONTEXT)
    assert [(1, 7, "x", None), (2, 2, "b", True)] == rows_of(pull(operator))


# ---------------------------------------------------------------------------------------------- sort, devices


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.one_of(st.none(), st.sampled_from(["", "a", "ab", "ä"]))),
        max_size=30,
    ),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.one_of(st.none(), st.integers(1, 12)),
)
def test_sort_is_stable_in_every_direction(
    cells: list[tuple[int | None, str | None]], first_down: bool, second_down: bool, nulls: bool, limit: int | None
) -> None:
    rows: list[Row] = [(t, *cell) for t, cell in enumerate(cells)]
    keys = (
        SortItem(InputColumn(0, INT), first_down, nulls),
        SortItem(InputColumn(1, TEXT), second_down, not nulls),
    )
    expected = list(rows)
    for index, item in ((2, keys[1]), (1, keys[0])):
        there = [row for row in expected if row[index] is not None]
        gone = [row for row in expected if row[index] is None]
        # A reversed sort in Python keeps the order of equal rows.
        there.sort(key=lambda row, i=index: row[i], reverse=item.descending)  # type: ignore[misc]
        expected = gone + there if item.nulls_first else there + gone
    node = Sort(NODE, keys, (), limit)
    got = rows_of(pull(SortOperator(node, Source(blocks([INT, TEXT], rows, 4)), CONTEXT)))
    assert expected[:limit] == got


@given(rows=st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=40))
def test_many_rows_are_sorted_in_pieces_as_at_once(rows: list[tuple[bool, int]]) -> None:
    keys = [np.array([row[0] for row in rows]), np.array([float(row[1]) for row in rows])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort, "_PIECE_ROWS", 4)
        found = stable_order(keys).tolist()
        if len(rows) > 4:
            with unwanted(), pytest.raises(QueryCancelled):
                stable_order(keys)
    assert sorted(range(len(rows)), key=lambda row: rows[row]) == found


def test_sort_puts_nan_above_all_numbers() -> None:
    nan, inf = float("nan"), float("inf")
    rows: list[Row] = [(1, nan), (2, 1.0), (3, None), (4, inf), (5, -inf)]
    for down, expected in ((False, [5, 2, 4, 1, 3]), (True, [1, 4, 2, 5, 3])):
        node = Sort(NODE, (SortItem(InputColumn(0, DOUBLE), down, False),), ())
        got = rows_of(pull(SortOperator(node, Source(blocks([DOUBLE], rows, 2)), CONTEXT)))
        assert expected == [row[0] for row in got]


def test_top_k_keeps_little_and_sort_accounts_for_its_rows() -> None:
    rng = np.random.default_rng(1)
    pieces = [Block.timed(np.arange(50_000) + i * 50_000, block([LONG], [(0, 0)]).columns[:0]) for i in range(8)]
    pieces = [Block(p.time, (replace_column(rng.integers(0, 10**9, p.rows)),), p.rows) for p in pieces]
    account = Account()
    node = Sort(NODE, (SortItem(InputColumn(0, LONG), True, False),), (), 10)
    got = rows_of(pull(SortOperator(node, Source(list(pieces)), OperatorContext(account))))
    best = np.sort(np.concatenate([p.columns[0].numbers for p in pieces]))[::-1][:10]
    assert best.tolist() == [row[1] for row in got]
    assert account.peak < 5_000_000
    assert 0 == account.used
    with pytest.raises(MemoryError):
        pull(SortOperator(replace(node, limit=None), Source(list(pieces)), OperatorContext(Account(1_000_000))))


def replace_column(values: np.ndarray) -> object:
    from saros_storage.base.block import Column

    return Column(LONG, values)


def test_devices_come_one_after_the_other_or_by_time() -> None:
    first: list[Row] = [(1, 10), (3, 30), (5, 50)]
    second: list[Row] = [(1, 11), (2, 21), (5, 51), (6, 61)]
    node = DeviceMerge((), ("root.a", "root.b"), ())

    def children(descending: bool = False) -> list[Source]:
        return [Source(blocks([INT], rows[::-1] if descending else rows, 2)) for rows in (first, second)]

    a = [(row[0], "root.a", *row[1:]) for row in first]
    b = [(row[0], "root.b", *row[1:]) for row in second]
    assert a + b == rows_of(pull(DeviceAppendOperator(node, children(), CONTEXT)))
    by_time = sorted(a + b, key=lambda row: row[0])  # type: ignore[arg-type, return-value]
    assert by_time == rows_of(pull(DeviceMergeOperator(replace(node, by_time=True), children(), CONTEXT)))
    down = replace(node, by_time=True, descending=True)
    expected = sorted(a + b, key=lambda row: -row[0])  # type: ignore[operator]
    assert expected == rows_of(pull(DeviceMergeOperator(down, children(descending=True), CONTEXT)))
    assert [] == pull(DeviceAppendOperator(node, [], CONTEXT))


@pytest.mark.parametrize("block_rows", [1, 2, 3])
def test_rows_of_one_time_stay_with_their_device(block_rows: int) -> None:
    """All windows that end at the end of the range have the same time, and their rows may be in different blocks."""
    first: list[Row] = [(9, 1), (9, 2), (9, 3), (7, 4)]
    second: list[Row] = [(9, 5), (9, 6), (8, 7), (7, 8), (7, 9)]
    node = DeviceMerge((), ("root.a", "root.b"), (), by_time=True, descending=True)
    children = [Source(blocks([INT], rows, block_rows)) for rows in (first, second)]
    expected = [(9, "a", 1), (9, "a", 2), (9, "a", 3), (9, "b", 5), (9, "b", 6), (8, "b", 7)]
    expected += [(7, "a", 4), (7, "b", 8), (7, "b", 9)]
    merged = DeviceMergeOperator(node, children, CONTEXT)
    assert [(time, f"root.{device}", value) for time, device, value in expected] == rows_of(pull(merged))


# ---------------------------------------------------------------------------------------------- last, rows, build


ITEMS = (
    LastItem("root.d", "s", DOUBLE, False, "root.d.s"),
    LastItem("root.d", "t", TEXT, False, "root.d.t"),
)


def test_last_asks_for_the_series_of_a_device_together_and_leaves_out_those_without_a_point() -> None:
    readers = FakeReaders([block([DOUBLE, TEXT], [(1, 1.0, None), (2, 2.0, None)])])
    operator = build(last_scan(ITEMS[:2], TimeRange()), readers, CONTEXT, no_exchange)
    assert [(2, "root.d.s", "2.0", "DOUBLE")] == rows_of(pull(operator))
    assert [("s", "t")] == [request.measurements for request in readers.requests]
    assert readers.requests == readers.expected


def test_last_writes_values_of_all_types_in_the_order_of_the_series() -> None:
    readers = FakeReaders([block([TEXT, DOUBLE], [(1, "a", 1.0), (2, None, 2.0)])])
    items = [ITEMS[1], ITEMS[0], LastItem("root.e", "t", TEXT, False, "alias")]
    operator = build(last_scan(items, TimeRange()), readers, CONTEXT, no_exchange)
    expected = [(1, "root.d.t", "a", "TEXT"), (2, "root.d.s", "2.0", "DOUBLE"), (1, "alias", "a", "TEXT")]
    assert expected == rows_of(pull(operator))


def test_last_with_a_predicate_reads_backwards_and_stops() -> None:
    rows: list[Row] = [(1, 1.0), (2, 8.0), (3, 2.0), (4, None)]
    readers = FakeReaders(blocks([DOUBLE], rows, 1))
    small = Operation(BinaryOperator.LESS, InputColumn(0, DOUBLE), Constant(5.0, DOUBLE), BOOL)
    early = Operation(BinaryOperator.LESS, InputTime(), Constant(3, STAMP), BOOL)
    operator = build(last_scan(ITEMS[:1], TimeRange(0, 100), small), readers, CONTEXT, no_exchange)
    assert [(3, "root.d.s", "2.0", "DOUBLE")] == rows_of(pull(operator))
    assert [True] == [reader.closed for reader in readers.opened]
    assert 2 == len(readers.opened[0].pieces)
    assert readers.requests[0].descending
    both = Operation(BinaryOperator.AND, small, early, BOOL)
    operator = build(last_scan(ITEMS[:1], TimeRange(), both), readers, CONTEXT, no_exchange)
    assert [(1, "root.d.s", "1.0", "DOUBLE")] == rows_of(pull(operator))


def test_build_makes_a_whole_tree() -> None:
    request = ScanRequest("root.d", ("s",), (DOUBLE,), aligned=False)
    scan = Scan(request, fields(DOUBLE))
    join = TimeJoin((scan, scan), fields(DOUBLE, DOUBLE))
    large = Operation(BinaryOperator.GREATER, InputColumn(0, DOUBLE), Constant(1.0, DOUBLE), BOOL)
    plan: Node = Filter(join, large, join.fields)
    plan = Project(plan, (InputColumn(1, DOUBLE),), fields(DOUBLE))
    plan = FillNode(plan, FillKind.LINEAR, (), None, fields(DOUBLE))
    plan = Sort(plan, (SortItem(InputTime(), True, False),), fields(DOUBLE))
    plan = Limit(plan, 0, 2, fields(DOUBLE))
    pieces = blocks([DOUBLE], [(t, float(t)) for t in range(6)], 4)
    assert [(5, 5.0), (4, 4.0)] == rows_of(pull(build_on(plan, pieces)))

    total = AggregateCall("sum", (InputColumn(0, DOUBLE),), DOUBLE)
    scanned = AggregateScan(request, (total,), None, Stage.SINGLE, fields(DOUBLE))
    summed = Aggregate(scan, (total,), None, Stage.SINGLE, fields(DOUBLE))
    both = WindowJoin((scanned, summed), fields(DOUBLE, DOUBLE))
    assert [(15.0, 15.0)] == rows_of(pull(build_on(both, pieces)))
    merged = DeviceMerge((scan,), ("root.d",), fields(TEXT, DOUBLE))
    assert 6 == len(rows_of(pull(build_on(merged, pieces))))
    ready = Rows(block([INT], [(1,), (2,)], timed=False), fields(INT))
    assert [(1,), (2,)] == rows_of(pull(build_on(ready, [])))
    source = Source([block([INT], [(1, 1)])])
    assert build(ExchangeSource(1, ()), FakeReaders([]), CONTEXT, lambda _: source) is source


def test_closing_a_tree_closes_everything_below() -> None:
    children = [Source([block([INT], [(1, 1)]), block([INT], [(2, 2)])]) for _ in range(2)]
    operator = TimeJoinOperator(TimeJoin((), ()), children, [[INT], [INT]], CONTEXT)
    operator.next()
    operator.close()
    operator.close()
    assert operator.finished
    assert [True, True] == [child.closed for child in children]
