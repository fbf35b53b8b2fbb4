"""The time range of a GROUP BY without a range, such as GROUP BY (1h), computed from WHERE or from the data.

    where time >= a and time < b     [a, b)
    where time >= a, or no WHERE     from the first to the last matching point, which `bounds_query` reads

Windows are aligned to a grid that does not depend on the data, so that results of different queries line up: steps are
counted from Monday 2000-01-03 (steps of months from 2000-01-01) at midnight in the session's zone. The first window is
the first one on this grid that contains a time of the range.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from saros_engine.analysis.scope import paths_of
from saros_engine.base.errors import SemanticError
from saros_engine.expressions.time_filter import TimeContext, conjuncts, range_of, split_time
from saros_engine.expressions.times import Calendar, duration_ticks, parse_time
from saros_engine.planner.query_core import conjunction
from saros_grammar.syntax.ast import (
    Call,
    Duration,
    GroupByTime,
    Literal,
    LiteralKind,
    Select,
    SelectItem,
)
from saros_storage.base.types import TIME_MAX, TIME_MIN
from saros_storage.scan.reading import TimeRange

_MONDAY, _JANUARY = "2000-01-03", "2000-01-01"
#: Calendar steps are searched within these numbers of years around the origin, which the calendar supports.
_YEARS_BEFORE, _YEARS_AFTER = 1_900, 7_900
_MONTHS_PER_YEAR, _DAYS_PER_YEAR, _SECONDS_PER_DAY = 12, 366, 86_400
#: A number of ticks that exceeds the distance of any two times.
_TICKS_MAX = 1 << 64
_NONE = Literal(LiteralKind.INTEGER, 0, "0")


def lacks_range(select: Select) -> bool:
    """Return whether the SELECT has windows of time without a range."""
    return isinstance(select.group_by, GroupByTime) and select.group_by.start is None


def bounds_query(select: Select, moment: TimeContext) -> Select | None:
    """Return a SELECT of all series' first and last times in WHERE's range, or None if WHERE bounds both ends."""
    time, _ = split_time(select.where, moment)
    paths = dict.fromkeys(path for item in select.items for path in paths_of(item.expression))
    if (time.start != TIME_MIN and time.end != TIME_MAX) or not paths:
        return None
    items = tuple(SelectItem(Call(name, (path,))) for path in paths for name in ("min_time", "max_time"))
    about_time = [part for part in conjuncts(select.where) if range_of(part, moment) is not None]
    return Select(items, select.from_paths, conjunction(about_time))


def with_range(select: Select, times: Iterable[int], moment: TimeContext) -> Select:
    """Return the SELECT with its range, or LIMIT 0 if the range is empty; `times` is the result of `bounds_query`."""
    group_by = select.group_by
    assert isinstance(group_by, GroupByTime)
    time = _covered(split_time(select.where, moment)[0], list(times))
    if time.empty:
        return replace(select, group_by=replace(group_by, start=_NONE, end=_literal(1)), limit=_NONE)
    start, end = _on_grid(group_by.interval, group_by.step, time, moment)
    return replace(select, group_by=replace(group_by, start=_literal(start), end=_literal(end)))


def _literal(ticks: int) -> Literal:
    return Literal(LiteralKind.INTEGER, ticks, str(ticks))


def _covered(time: TimeRange, times: list[int]) -> TimeRange:
    """Return the range of WHERE, with open ends replaced by the first or last time of the data."""
    if time.start != TIME_MIN and time.end != TIME_MAX:
        return time
    return time.intersect(TimeRange(min(times), max(times) + 1)) if times else TimeRange(0, 0)


def _on_grid(interval: Duration, step: Duration, time: TimeRange, moment: TimeContext) -> tuple[int, int]:
    """Return the start of the first window with a time of the range, and of the first window after the range."""
    ticks, more = (duration_ticks(replace(d, months=0, days=0), moment.unit) for d in (step, interval))
    kinds = (step.months > 0) + (step.days > 0) + (ticks > 0)
    if not kinds:
        return time.start, time.end  # a step of 0 is refused later, whatever the range
    if kinds > 1:
        raise SemanticError(
            "GROUP BY needs a time range if its step mixes months, calendar days and fixed lengths (mo or y, cd or cw,"
            " w and less): GROUP BY ([start, end), interval)"
        )
    day = _JANUARY if step.months else _MONDAY
    origin = Calendar(parse_time(day, moment.zone, moment.unit), moment.unit, moment.zone)

    def start(k: int) -> int:
        return origin.plus(k * step.months, k * step.days) + k * ticks

    def end(k: int) -> int:
        begin = start(k)
        if not interval.is_fixed:
            begin = Calendar(begin, moment.unit, moment.zone).plus(interval.months, interval.days)
        return begin + more

    low, high = _steps(step, ticks, moment, by_calendar=not (step.is_fixed and interval.is_fixed))
    first = _first(low, high, lambda k: end(k) > time.start)
    after = _first(first, high, lambda k: start(k) >= time.end)
    return start(first), start(after)


def _steps(step: Duration, ticks: int, moment: TimeContext, *, by_calendar: bool) -> tuple[int, int]:
    """Return the lowest and highest number of steps from the origin to search; the calendar limits calendar steps."""
    if not by_calendar:
        return -_TICKS_MAX // ticks, _TICKS_MAX // ticks
    if step.is_fixed:
        a_year, each = _DAYS_PER_YEAR * _SECONDS_PER_DAY * moment.unit.value, ticks
    else:
        a_year, each = (_MONTHS_PER_YEAR, step.months) if step.months else (_DAYS_PER_YEAR, step.days)
    return -_YEARS_BEFORE * a_year // each, _YEARS_AFTER * a_year // each


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the least number in [low, high) that satisfies a monotonic condition, or high."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
