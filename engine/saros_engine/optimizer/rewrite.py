"""Walking plans, for the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from saros_engine.plan import (
    Aggregate,
    DeviceMerge,
    FillNode,
    Filter,
    Generate,
    LevelMerge,
    Limit,
    Node,
    Project,
    Sort,
    TimeJoin,
    WindowJoin,
)


def bottom_up(node: Node, change: Callable[[Node], Node]) -> Node:
    """The plan with every node changed, children first; what does not change is not copied."""
    if isinstance(node, (Filter, Project, Generate, Aggregate, LevelMerge, FillNode, Sort, Limit)):
        child = bottom_up(node.child, change)
        node = node if child is node.child else replace(node, child=child)
    elif isinstance(node, (TimeJoin, WindowJoin, DeviceMerge)):
        children = tuple(bottom_up(child, change) for child in node.children)
        same = all(new is old for new, old in zip(children, node.children, strict=True))
        node = node if same else replace(node, children=children)
    return change(node)
