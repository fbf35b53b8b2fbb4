"""What planning looks at and what it gives. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from saros_engine.plan import Field, Node
from saros_engine.readable_schema import SchemaReader
from saros_engine.time_filter import Moment
from saros_grammar.ast import Expression


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The schema as the session sees it, and the session's zone, unit and now."""

    schema: SchemaReader
    moment: Moment


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """A plan before the optimiser; `timed`: a Time column stands in front of `fields`.

    `sources`: what each column is, but for the names of devices in front; `devices`: of ALIGN BY DEVICE, those that
    have rows, in path order.
    """

    fields: tuple[Field, ...]
    timed: bool
    root: Node
    sources: tuple[Expression, ...] = ()
    devices: tuple[str, ...] = ()
