"""The traversal of plans that the optimiser's rules use."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_

from msgspec.structs import replace

from saros_engine.plan.plan import (
    Aggregate,
    AggregateScan,
    AggregateScans,
    DeviceMerge,
    FillNode,
    Filter,
    Generate,
    LastScan,
    LevelMerge,
    Limit,
    Node,
    Project,
    Scan,
    Sort,
    TimeJoin,
    WindowJoin,
)

#: Scans, the bulk of a large plan, are not visited: a rule that changes scans does so when it visits their parent.
_SCANS = (Scan, AggregateScan, AggregateScans, LastScan)


def bottom_up(node: Node, change: Callable[[Node], Node]) -> Node:
    """Apply `change` to every node except scans, children first; unchanged nodes are not copied."""
    if isinstance(node, _SCANS):
        return node
    if isinstance(node, (Filter, Project, Generate, Aggregate, LevelMerge, FillNode, Sort, Limit)):
        child = bottom_up(node.child, change)
        node = node if child is node.child else replace(node, child=child)
    elif isinstance(node, (TimeJoin, WindowJoin, DeviceMerge)):
        children = tuple([c if isinstance(c, _SCANS) else bottom_up(c, change) for c in node.children])
        same = all(map(is_, children, node.children))
        node = node if same else replace(node, children=children)
    return change(node)
