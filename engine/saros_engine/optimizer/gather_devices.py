"""Rule: aggregates of many devices with equal plans become one node, with a single copy of the nodes above them.

DeviceMerge( d0: Project(Filter(AggregateScans))   d1: Project(Filter(AggregateScans)) ... )

Project( Device, ..; Filter( AggregateScans of d0, d1, .. ))

Plans are equal if their devices have the same columns of the same types. Other plans are left unchanged. The rule does
not apply to devices merged by time or in descending order. It does not apply to expressions that look back at earlier
rows either, because in the combined node, earlier rows can belong to another device.
"""

from __future__ import annotations

from itertools import chain

import msgspec

from saros_engine.aggregation.aggregation import WINDOW_ROWS_MAX
from saros_engine.evaluation.evaluate import looks_back
from saros_engine.optimizer.gather_scans import asking_statistics, gatherable, windows_count
from saros_engine.optimizer.rewrite import bottom_up
from saros_engine.plan.expression import Bound, InputColumn
from saros_engine.plan.plan import AggregateScan, AggregateScans, DeviceMerge, Field, Filter, Node, Project, WindowJoin
from saros_storage.scan.reading import rows_per_block

#: The maximum number of rows per block, which is large enough to amortise the cost of a block.
_ROWS_MAX = 4 * WINDOW_ROWS_MAX


class _Body(msgspec.Struct, frozen=True):
    """The plan of one device."""

    expressions: tuple[Bound, ...]
    predicate: Bound | None
    scans: tuple[AggregateScan, ...]

    def like(self, other: _Body) -> bool:
        """Return whether another device's plan is equal to this one."""
        if self.expressions != other.expressions or self.predicate != other.predicate:
            return False
        pairs = zip(self.scans, other.scans, strict=False)
        return len(self.scans) == len(other.scans) and all(
            a.calls == b.calls and a.request.types == b.request.types for a, b in pairs
        )


def gather_devices(root: Node) -> Node:
    """Gather the devices of a plan."""
    return bottom_up(root, _gathered)


def _gathered(node: Node) -> Node:
    if not isinstance(node, DeviceMerge) or node.by_time or node.descending or len(node.children) < 2:
        return node
    first = _body(node.children[0])
    if first is None:
        return node
    bodies = [first]
    for child in node.children[1:]:
        body = _body(child)
        if body is None or not body.like(first):
            return node
        bodies.append(body)
    scans = tuple(chain.from_iterable(body.scans for body in bodies))
    looked_at = first.expressions if first.predicate is None else (*first.expressions, first.predicate)
    if any(map(looks_back, looked_at)) or not gatherable(scans):
        return node
    return _gather(node, first, scans)


def _body(child: Node) -> _Body | None:
    """Return the plan of a device in a form that is the same for equal plans, or None if the plan cannot be shared."""
    if not isinstance(child, Project):
        return None
    below, predicate = child.child, None
    if isinstance(below, Filter):
        predicate = below.predicate
        below = below.child
    match below:
        case AggregateScan():
            return _Body(child.expressions, predicate, (below,))
        case AggregateScans(scans):
            return _Body(child.expressions, predicate, scans)
        case WindowJoin(children):
            found = tuple([scan for scan in children if isinstance(scan, AggregateScan)])
            return _Body(child.expressions, predicate, found) if len(found) == len(children) else None
        case _:
            return None


def _gather(node: DeviceMerge, body: _Body, scans: tuple[AggregateScan, ...]) -> Node:
    device = node.fields[0]
    fields = (*chain.from_iterable(scan.fields for scan in body.scans), device)
    windows = scans[0].windows
    rows = min(_ROWS_MAX, rows_per_block(len(fields)))
    together = max(rows // (1 if windows is None else windows_count(windows)), 1)
    gathered: Node = AggregateScans(asking_statistics(scans), fields, node.devices, together)
    if body.predicate is not None:
        gathered = Filter(gathered, body.predicate, fields)
    return Project(gathered, (_named(fields), *body.expressions), node.fields)


def _named(fields: tuple[Field, ...]) -> InputColumn:
    return InputColumn(len(fields) - 1, fields[-1].type)
