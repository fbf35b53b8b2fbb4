"""Rule: a limit above a sort lets the sort keep no more rows than it takes.

Limit(offset 10, count 5) over Sort      Sort keeps 15 rows
"""

from __future__ import annotations

from dataclasses import replace

from saros_engine.optimizer.rewrite import bottom_up
from saros_engine.plan.plan import Limit, Node, Project, Sort


def keep_top_rows(root: Node) -> Node:
    """See the module."""
    return bottom_up(root, keep_top)


def keep_top(node: Node) -> Node:
    """The rule for one node."""
    if not isinstance(node, Limit) or node.count is None:
        return node
    wanted = node.offset + node.count
    child = node.child
    if isinstance(child, Sort):
        return replace(node, child=replace(child, limit=wanted))
    if isinstance(child, Project) and isinstance(child.child, Sort):
        return replace(node, child=replace(child, child=replace(child.child, limit=wanted)))
    return node
