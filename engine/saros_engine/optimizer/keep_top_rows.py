"""Rule: nodes below a LIMIT keep no more rows than the LIMIT takes, and read no more rows at a time.

Limit(offset 10, count 5) over Sort                         Sort keeps 15 rows
Limit(count 5) over [Project over] [TimeJoin over] Scan     each Scan returns blocks of 5 rows, reading page by page
"""

from __future__ import annotations

from msgspec.structs import replace

from saros_engine.optimizer.rewrite import bottom_up
from saros_engine.plan.plan import Limit, Node, Project, Scan, Sort, TimeJoin


def keep_top_rows(root: Node) -> Node:
    """Apply the rule to a plan."""
    return bottom_up(root, keep_top)


def keep_top(node: Node) -> Node:
    """Apply the rule to one node."""
    if not isinstance(node, Limit) or node.count is None:
        return node
    child = _of_rows(node.child, max(node.offset + node.count, 1))
    return node if child is node.child else replace(node, child=child)


def _of_rows(node: Node, wanted: int) -> Node:
    """Return the node, adapted to a parent that takes only `wanted` rows; return the same node if nothing changes."""
    match node:
        case Sort():
            return node if node.limit == wanted else replace(node, limit=wanted)
        case Project():
            child = _of_rows(node.child, wanted)
            return node if child is node.child else replace(node, child=child)
        case TimeJoin() if all(isinstance(child, Scan) for child in node.children):
            if all(child.request.block_rows <= wanted for child in node.children if isinstance(child, Scan)):
                return node
            return replace(node, children=tuple([_of_rows(child, wanted) for child in node.children]))
        case Scan(request) if request.block_rows > wanted:
            return replace(node, request=replace(request, block_rows=wanted))
        case _:
            return node
