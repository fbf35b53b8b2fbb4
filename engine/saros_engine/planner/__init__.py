"""From a SELECT to a logical plan: `plan_select`.

by_time      one row per time, a column per series; windows; one row in all
by_device    ALIGN BY DEVICE: a body per device, one after the other
last         SELECT LAST
body         what by_time and by_device share: scans, filter, aggregation, expressions
finish       what comes after: FILL, ORDER BY, LIMIT
"""

from __future__ import annotations

from saros_engine.errors import NotSupportedError, SemanticError
from saros_engine.planner.by_device import plan_by_device
from saros_engine.planner.by_time import plan_by_time
from saros_engine.planner.context import LogicalPlan, PlanContext
from saros_engine.planner.last import plan_last
from saros_grammar.ast import Select

__all__ = ["LogicalPlan", "PlanContext", "plan_select"]


def plan_select(select: Select, context: PlanContext) -> LogicalPlan:
    """The plan of a SELECT whose parameters are bound. Raises SemanticError, NotSupportedError, UserMistake."""
    if not select.from_paths:
        raise SemanticError("SELECT needs FROM and a path")
    if select.into is not None:
        raise NotSupportedError("SELECT INTO")
    if select.levels or select.tag_keys:
        raise NotSupportedError("GROUP BY LEVEL and GROUP BY TAGS")
    if select.last:
        return plan_last(select, context)
    return plan_by_device(select, context) if select.align_by_device else plan_by_time(select, context)
