"""Rule: many scans that aggregate without windows, side by side, are one node.

WindowJoin( AggregateScan ... a hundred thousand ... )      AggregateScans

Few of them stay as they are: EXPLAIN tells more of them.
"""

from __future__ import annotations

from saros_engine.optimizer.rewrite import bottom_up
from saros_engine.plan import AggregateScan, AggregateScans, Node, WindowJoin

#: From so many on, an operator for each costs more than it shows.
SCANS_MIN = 8


def gather_scans(root: Node) -> Node:
    """See the module."""
    return bottom_up(root, _gathered)


def _gathered(node: Node) -> Node:
    if not isinstance(node, WindowJoin) or len(node.children) < SCANS_MIN:
        return node
    scans = tuple([c for c in node.children if isinstance(c, AggregateScan) and c.windows is None])
    return AggregateScans(scans, node.fields) if len(scans) == len(node.children) else node
