"""Conversion of GROUP BY to the windows of a plan. Pure: any thread."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from saros_engine.analysis.binding import NULL, Columns, bind, predicate
from saros_engine.base.errors import SemanticError
from saros_engine.expressions.time_filter import TimeContext, constant_time
from saros_engine.expressions.times import duration_ticks
from saros_engine.plan.expression import Bound
from saros_engine.plan.plan import (
    ConditionWindows,
    CountWindows,
    SessionWindows,
    TimeWindows,
    VariationWindows,
    Windows,
)
from saros_grammar.syntax.ast import (
    Duration,
    Expression,
    GroupByCondition,
    GroupByCount,
    GroupBySession,
    GroupByTime,
    GroupByVariation,
    GroupByWindow,
)
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType
from saros_storage.scan.reading import BLOCK_ROWS_MAX

#: The limit of windows times columns for scans that aggregate side by side. At this limit, states take some 100 MB.
_STATES_MAX = 4 << 20
_ROWS_MIN = 64


def rows_of_windows(windows: Windows | None) -> Callable[[int], int]:
    """Return a function that maps a number of columns to the number of rows that each scan reads at a time."""
    if not isinstance(windows, TimeWindows) or windows.step_ticks == 0:
        return lambda _columns: BLOCK_ROWS_MAX  # calendar windows are always few
    count = (windows.end - windows.start) // windows.step_ticks

    def rows(columns: int) -> int:
        most = max(_STATES_MAX // max(columns, 1), _ROWS_MIN)
        return BLOCK_ROWS_MAX if count <= most else min(most, BLOCK_ROWS_MAX)

    return rows


def with_expressions(
    group_by: GroupByWindow | None, change: Callable[[Expression], Expression]
) -> GroupByWindow | None:
    """Return the windows, with `change` applied to the expression that they depend on."""
    match group_by:
        case GroupByVariation() | GroupByCount():
            return replace(group_by, control=change(group_by.control))
        case GroupByCondition():
            return replace(group_by, predicate=change(group_by.predicate))
        case _:
            return group_by


def windows_of(group_by: GroupByWindow | None, columns: Columns | None, moment: TimeContext) -> Windows | None:
    """Return the windows, or None without GROUP BY or if the windows depend on an expression and `columns` is None."""
    match group_by:
        case GroupByTime():
            return _time_windows(group_by, moment)
        case GroupBySession(gap):
            return SessionWindows(duration_ticks(gap, moment.unit))
        case _ if columns is None or group_by is None:
            return None
        case GroupByVariation(control, delta, ignore_null):
            return _variation(bind(control, columns), delta, ignore_null=ignore_null)
        case GroupByCondition(condition, keep, ignore_null):
            if keep is None:
                raise SemanticError(
                    "GROUP BY CONDITION needs the number of rows that a window must have:"
                    f" GROUP BY CONDITION({condition}, KEEP >= 1)"
                )
            return ConditionWindows(predicate(condition, columns), keep[0].value, keep[1], ignore_null)
        case GroupByCount(control, size, ignore_null):
            if size < 1:
                raise SemanticError("the size of GROUP BY COUNT should be a positive integer")
            return CountWindows(bind(control, columns), size, ignore_null)


def _variation(control: Bound, delta: float, *, ignore_null: bool) -> VariationWindows:
    if delta < 0:
        raise SemanticError(f"the delta of GROUP BY VARIATION is negative: {delta}")
    if delta > 0 and control != NULL and (control.type.is_text or control.type is DataType.BOOLEAN):
        raise SemanticError(
            f"GROUP BY VARIATION takes a delta for numbers only, and the expression is {control.type.name}"
        )
    return VariationWindows(control, delta, ignore_null)


def _time_windows(group_by: GroupByTime, moment: TimeContext) -> TimeWindows:
    if group_by.start is None or group_by.end is None:
        raise SemanticError("GROUP BY needs a time range: GROUP BY ([start, end), interval)")
    start, end = constant_time(group_by.start, moment), constant_time(group_by.end, moment)
    if not TIME_MIN < start < TIME_MAX or not TIME_MIN < end < TIME_MAX:
        raise SemanticError(f"the range of GROUP BY does not fit 64 bits in {moment.unit.suffix}: [{start}, {end})")
    if start >= end:
        raise SemanticError("Start time should be smaller than endTime in GroupBy")
    interval, step = group_by.interval, group_by.step
    shift = int(group_by.left_open)
    return TimeWindows(
        start + shift,
        end + shift,
        _ticks(interval, "second parameter time interval", moment),
        interval.months,
        _ticks(step, "third parameter time slidingStep", moment),
        step.months,
        group_by.left_open,
        moment.zone,
        interval.days,
        step.days,
    )


def _ticks(duration: Duration, what: str, moment: TimeContext) -> int:
    """Return the ticks of the part of a duration that has a fixed length. Raises SemanticError for the duration 0."""
    ticks = duration_ticks(replace(duration, months=0, days=0), moment.unit)
    if ticks + duration.months + duration.days <= 0:
        raise SemanticError(f"The {what} should be a positive integer")
    return ticks
