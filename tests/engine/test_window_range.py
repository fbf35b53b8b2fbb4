"""Windows without a range: their grid has all windows that cover a time of the data, and no other windows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from saros_engine.expressions.time_filter import TimeContext, constant_time
from saros_engine.expressions.times import format_time, parse_time
from saros_engine.planner.window_range import with_range
from saros_grammar.syntax.ast import Binary, BinaryOperator, Duration, GroupByTime, Literal, LiteralKind, Select
from saros_storage.base.types import TimeUnit

HOUR, DAY = 3_600_000_000_000, 86_400_000_000_000
#: Steps of each kind: fixed, in months, in calendar days.
STEPS = [Duration(0, HOUR), Duration(0, 7 * DAY), Duration(1), Duration(12), Duration(0, 0, 1), Duration(0, 0, 7)]
INTERVALS = [*STEPS, Duration(0, 40 * HOUR), Duration(1, HOUR, 1)]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "+05:30"]


def _literal(value: int) -> Literal:
    return Literal(LiteralKind.INTEGER, value, str(value))


def covered(interval: Duration, step: Duration, times: list[int], moment: TimeContext) -> tuple[int, int]:
    """Return the range of the windows for data at these times."""
    group_by = with_range(Select((), (), group_by=GroupByTime(None, None, interval, step)), times, moment).group_by
    assert isinstance(group_by, GroupByTime)
    return constant_time(group_by.start, moment), constant_time(group_by.end, moment)


@settings(max_examples=200)
@given(
    st.sampled_from(INTERVALS),
    st.sampled_from(STEPS),
    st.sampled_from(ZONES),
    st.integers(-(10**12), 4 * 10**12),
    st.integers(0, 10**11),
)
def test_windows_cover_all_points_and_depend_on_the_outer_ones_only(
    interval: Duration, step: Duration, zone: str, first: int, length: int
) -> None:
    moment, last = TimeContext(zone, TimeUnit.MILLISECOND, 0), first + length
    start, end = covered(interval, step, [last, first], moment)
    behind = constant_time(
        Binary(BinaryOperator.ADD, _literal(start), Literal(LiteralKind.DURATION, interval, "")), moment
    )
    assert first < behind
    assert last < end
    assert start < covered(interval, step, [behind], moment)[0]  # so no earlier window contains `first`
    assert (start, end) == (covered(interval, step, [first], moment)[0], covered(interval, step, [last], moment)[1])


def test_weeks_begin_on_monday_and_months_on_the_first() -> None:
    moment = TimeContext("Europe/Berlin", TimeUnit.MILLISECOND, 0)
    point = parse_time("2024-07-18T12:00:00", "Europe/Berlin", TimeUnit.MILLISECOND)
    starts = {
        Duration(0, 0, 1): "2024-07-18T00:00:00",
        Duration(0, DAY): "2024-07-18T01:00:00",
        Duration(0, 0, 7): "2024-07-15T00:00:00",
        Duration(1): "2024-07-01T00:00:00",
        Duration(3): "2024-07-01T00:00:00",
        Duration(12): "2024-01-01T00:00:00",
    }
    for step, expected in starts.items():
        start, _ = covered(step, step, [point], moment)
        assert expected == format_time(start, moment.zone, moment.unit)[:19]
