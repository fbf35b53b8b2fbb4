"""The inputs and outputs of planning. Pure data."""

from __future__ import annotations

import msgspec

from saros_engine.base.authorized_schema import SchemaReader
from saros_engine.expressions.time_filter import TimeContext, split_time
from saros_engine.plan.plan import Field, Node
from saros_grammar.syntax.ast import Expression
from saros_storage.scan.reading import TimeRange


class PlanContext(msgspec.Struct, frozen=True):
    """The schema that the session may read, and the session's zone, time unit and current time.

    If the conditions on time have already been removed from WHERE, `time` is their range; scans get this same object.
    """

    schema: SchemaReader
    moment: TimeContext
    time: TimeRange | None = None

    def split_time(self, where: Expression | None) -> tuple[TimeRange, Expression | None]:
        """Split a WHERE clause into a range of times and the remaining condition; see `time_filter.split_time`."""
        return split_time(where, self.moment) if self.time is None else (self.time, where)


class LogicalPlan(msgspec.Struct, frozen=True):
    """A plan that is not yet optimised; if `timed`, a Time column precedes `fields`.

    `sources` has the expression of each column, except for a leading column of device names. `aliases` has each
    column's alias in the statement, or None. For ALIGN BY DEVICE, `devices` has the devices with rows, in path order.
    """

    fields: tuple[Field, ...]
    timed: bool
    root: Node
    sources: tuple[Expression, ...] = ()
    aliases: tuple[str | None, ...] = ()
    devices: tuple[str, ...] = ()
