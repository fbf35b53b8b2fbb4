"""The inputs and outputs of planning. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from saros_engine.base.authorized_schema import SchemaReader
from saros_engine.expressions.time_filter import TimeContext, split_time
from saros_engine.plan.plan import Field, Node
from saros_grammar.syntax.ast import Expression
from saros_storage.scan.reading import TimeRange


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The schema as the session sees it, and the session's zone, unit and now.

    `time`: the range of times, where the WHERE of the statement says nothing of time any more; scans get it as it is.
    """

    schema: SchemaReader
    moment: TimeContext
    time: TimeRange | None = None

    def split_time(self, where: Expression | None) -> tuple[TimeRange, Expression | None]:
        """The range of times that a WHERE allows, and what is left of it: see `time_filter.split_time`."""
        return split_time(where, self.moment) if self.time is None else (self.time, where)


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """A plan before the optimiser; `timed`: a Time column stands in front of `fields`.

    `sources`: what each column is, but for the names of devices in front; `aliases`: what the statement calls those
    that it gives a name; `devices`: of ALIGN BY DEVICE, those that have rows, in path order.
    """

    fields: tuple[Field, ...]
    timed: bool
    root: Node
    sources: tuple[Expression, ...] = ()
    aliases: tuple[str | None, ...] = ()
    devices: tuple[str, ...] = ()
