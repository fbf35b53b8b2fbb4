"""Plans of SELECTs, as text in testdata/planner.txt, and statements without a plan, in testdata/mistakes.txt."""

from __future__ import annotations

import pytest
from engine.plan_fixtures import MOMENT, PLANT, cases, plan, shown_plan

from saros_engine.aggregation.windows import window_sequence
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.expressions.times import format_time
from saros_engine.plan.plan import AggregateScan, DeviceMerge, LastScan, Scan, TimeWindows
from saros_engine.planner import PlanContext, plan_select
from saros_engine.planner.windows import rows_of_windows
from saros_grammar.syntax.ast import PathExpression, Select, SelectItem
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import TimeUnit
from saros_storage.scan.reading import BLOCK_ROWS_MAX, TimeRange


@pytest.mark.parametrize(("text", "expected"), cases("planner.txt"))
def test_plans(text: str, expected: str) -> None:
    assert expected == shown_plan(text)


@pytest.mark.parametrize(("text", "expected"), cases("mistakes.txt"))
def test_mistakes(text: str, expected: str) -> None:
    assert expected == shown_plan(text)


def test_dates_are_read_in_the_sessions_zone_and_unit() -> None:
    moment = TimeContext("+08:00", TimeUnit.MICROSECOND, 0)
    scan = plan("select s1 from root.a.d1 where time >= 1970-01-01T08:00:01", moment).root.child
    assert isinstance(scan, Scan)
    assert 1_000_000 == scan.request.time.start


def test_scans_side_by_side_hold_few_windows_each_where_there_are_very_many() -> None:
    many, few = (TimeWindows(0, end, 1, 0, 1, 0) for end in (1_000_000, 100))
    assert BLOCK_ROWS_MAX == rows_of_windows(many)(1)
    assert 419 == rows_of_windows(many)(10_000)
    assert BLOCK_ROWS_MAX == rows_of_windows(few)(10_000)


def test_time_range_of_last() -> None:
    root = plan("select last s1 from root.a.d1 where time >= 3 and time < 9").root
    assert isinstance(root, LastScan)
    assert [TimeRange(3, 9)] == [request.time for request in root.requests]
    assert root.predicate is None


def test_devices_come_in_the_order_that_is_asked() -> None:
    for order, by_time, devices in (
        ("", False, ("root.a.d1", "root.a.d2", "root.a.d3")),
        ("order by device desc", False, ("root.a.d3", "root.a.d2", "root.a.d1")),
        ("order by time desc", True, ("root.a.d1", "root.a.d2", "root.a.d3")),
        ("order by time, device desc", True, ("root.a.d3", "root.a.d2", "root.a.d1")),
    ):
        root = plan(f"select s1 from root.a.* {order} align by device").root
        assert isinstance(root, DeviceMerge)
        assert (by_time, devices) == (root.by_time, root.devices)


def test_calendar_windows_take_a_zone_by_its_offset() -> None:
    moment = TimeContext("+08:00", TimeUnit.MILLISECOND, 0)
    scan = plan("select count(s1) from root.a.d1 group by ([2020-01-01, 2020-03-01), 1mo)", moment).root.child
    assert isinstance(scan, AggregateScan)
    assert scan.windows is not None
    starts = window_sequence(scan.windows).starts(0, 9).tolist()
    assert ["2020-01-01T00:00:00.000+08:00", "2020-02-01T00:00:00.000+08:00"] == [
        format_time(start, moment.zone, moment.unit) for start in starts
    ]


def test_a_series_without_from_is_refused() -> None:
    with pytest.raises(UserMistake, match="needs FROM") as refused:
        plan_select(Select((SelectItem(PathExpression(("s1",))),), ()), PlanContext(PLANT, MOMENT))
    assert 700 == refused.value.code
