"""The optimiser: a sequence of rules, each of which returns a cheaper plan with the same rows.

    gather_scans          many aggregates side by side become one node; runs first, so other rules visit one node
    gather_devices        aggregates of many devices, one after the other, become one node
    fold_constants        expressions without columns are computed once; a filter that is never true becomes empty
    push_value_bounds     comparisons with constants let scans skip pages by their statistics
    keep_top_rows         a sort below a LIMIT keeps only the rows that the LIMIT takes; scans return small blocks

Pure: each rule is a function from plan to plan, in a separate module.
"""

from __future__ import annotations

from collections.abc import Callable

from saros_engine.optimizer.fold_constants import fold_constants
from saros_engine.optimizer.gather_devices import gather_devices
from saros_engine.optimizer.gather_scans import gather_scans
from saros_engine.optimizer.keep_top_rows import keep_top_rows
from saros_engine.optimizer.push_value_bounds import push_value_bounds
from saros_engine.plan.plan import Node

RULES: tuple[Callable[[Node], Node], ...] = (
    gather_scans,
    gather_devices,
    fold_constants,
    push_value_bounds,
    keep_top_rows,
)


def optimize(root: Node) -> Node:
    """Return the plan after applying all rules."""
    for rule in RULES:
        root = rule(root)
    return root
