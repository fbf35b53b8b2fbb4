"""Distribution: cuts a plan at exchanges, so that several drivers run the plan's scans.

    TimeJoin                     fragment 0   TimeJoin
     - Scan a  Scan b                          - Exchange 1   Exchange 2
     - Scan c  Scan d            fragment 1   TimeJoin(Scan a, Scan b)
                                 fragment 2   TimeJoin(Scan c, Scan d)

The children of the topmost join that has enough of them are divided into runs, one for each permitted driver. The parts
of a join by time or by window are joined again by the same kind of join. Consecutive devices are distributed
round-robin over the instances of one fragment, and the receiver reads the instances in the same order. All instances
are therefore busy from the first row to the last, and buffers hold the rows of only a few devices. (Large devices are
cut into slices only when the query starts: `scan_splits`.) Devices that are aggregated together are distributed in the
same way, several at a time. On a single node, this node runs all fragments. If a limit takes only a few values, its
input is not cut: one driver reads the first blocks of all scans faster than several drivers could exchange rows.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import TypeVar

from msgspec.structs import replace

from saros_engine.plan.plan import (
    Aggregate,
    AggregateScan,
    AggregateScans,
    DeviceMerge,
    ExchangeSource,
    FillNode,
    Filter,
    FragmentInstance,
    Generate,
    LevelMerge,
    Limit,
    Node,
    PlanFragment,
    Project,
    Scan,
    Sort,
    TimeJoin,
    WindowJoin,
)
from saros_storage.scan.reading import rows_per_block

_Part = TypeVar("_Part", Node, AggregateScan)

#: The minimum number of children to cut: with fewer, a second driver does not pay off.
CHILDREN_MIN = 8
#: A second driver does not pay off for a limit that takes at most this many values from its scans, either.
_FEW_VALUES = 4_096


def distribute(root: Node, parallelism: int) -> tuple[FragmentInstance, ...]:
    """Return the fragment instances of a plan, starting with the instance of the root fragment."""
    cut: list[PlanFragment] = []
    top = _cut(root, parallelism, cut) if parallelism > 1 else root
    instances = [FragmentInstance(PlanFragment(0, top), 0, None)]
    counts: dict[int, int] = {}
    for fragment in cut:
        instance = counts.get(fragment.number, 0)
        counts[fragment.number] = instance + 1
        instances.append(FragmentInstance(fragment, instance, 0))
    return tuple(instances)


def _cut(node: Node, parallelism: int, fragments: list[PlanFragment]) -> Node:
    """Return the node after cutting its large join, and add the parts to `fragments`."""
    if isinstance(node, Limit) and _takes_few_values(node):
        return node
    if isinstance(node, (Filter, Project, Generate, Aggregate, LevelMerge, FillNode, Sort, Limit)):
        child = _cut(node.child, parallelism, fragments)
        return node if child is node.child else replace(node, child=child)
    if isinstance(node, AggregateScans):
        return _cut_scans(node, parallelism, fragments)
    if not isinstance(node, (TimeJoin, WindowJoin, DeviceMerge)) or len(node.children) < CHILDREN_MIN:
        return node
    if isinstance(node, DeviceMerge):
        return node if node.by_time else _cut_devices(node, parallelism, fragments)
    sources: list[Node] = []
    for run in _runs(node.children, parallelism):
        number = len(fragments) + 1
        fields = tuple(chain.from_iterable(child.fields for child in run))
        part = _with_more_rows(run, rows_per_block(len(fields))) if isinstance(node, TimeJoin) else run
        fragments.append(PlanFragment(number, replace(node, children=part, fields=fields)))
        sources.append(ExchangeSource(number, fields))
    return replace(node, children=tuple(sources))


def _takes_few_values(limit: Limit) -> bool:
    """Return whether a limit takes only a small number of values from the first rows of an unfiltered join of scans."""
    child = limit.child.child if isinstance(limit.child, Project) else limit.child
    if limit.count is None or not isinstance(child, TimeJoin):
        return False
    values = (limit.offset + limit.count) * len(child.children)
    return values <= _FEW_VALUES and all(isinstance(scan, Scan) for scan in child.children)


def _with_more_rows(children: tuple[Node, ...], block_rows: int) -> tuple[Node, ...]:
    """Return the children, with the block size of scans raised to `block_rows` if it is smaller."""
    return tuple(
        [
            replace(child, request=replace(child.request, block_rows=block_rows))
            if isinstance(child, Scan) and child.request.block_rows < block_rows
            else child
            for child in children
        ]
    )


def _cut_scans(node: AggregateScans, parallelism: int, fragments: list[PlanFragment]) -> Node:
    if node.devices:
        return _cut_aggregated_devices(node, parallelism, fragments)
    sources: list[Node] = []
    for run in _runs(node.scans, parallelism):
        number = len(fragments) + 1
        fields = tuple(chain.from_iterable(scan.fields for scan in run))
        fragments.append(PlanFragment(number, AggregateScans(run, fields)))
        sources.append(ExchangeSource(number, fields))
    return WindowJoin(tuple(sources), node.fields)


def _cut_aggregated_devices(node: AggregateScans, parallelism: int, fragments: list[PlanFragment]) -> Node:
    """Distribute groups of devices that are aggregated together round-robin; each instance gets at least one group."""
    if len(node.scans) < CHILDREN_MIN:
        return node
    width, count = len(node.scans) // len(node.devices), len(node.devices)
    together = min(node.together, -(-count // parallelism))
    turns = [slice(at, min(at + together, count)) for at in range(0, count, together)]
    number = len(fragments) + 1
    for first in range(min(parallelism, len(turns))):
        hand = turns[first::parallelism]
        devices = tuple(chain.from_iterable(node.devices[turn] for turn in hand))
        scans = tuple(chain.from_iterable(node.scans[turn.start * width : turn.stop * width] for turn in hand))
        fragments.append(PlanFragment(number, AggregateScans(scans, node.fields, devices, together)))
    names = tuple([node.devices[turn.start] for turn in turns])
    return ExchangeSource(number, node.fields, names, named_by=len(node.fields) - 1)


def _cut_devices(node: DeviceMerge, parallelism: int, fragments: list[PlanFragment]) -> Node:
    number = len(fragments) + 1
    for first in range(min(parallelism, len(node.children))):
        hand = slice(first, None, parallelism)
        part = replace(node, children=node.children[hand], devices=node.devices[hand])
        fragments.append(PlanFragment(number, part))
    return ExchangeSource(number, node.fields, node.devices)


def _runs(children: Sequence[_Part], count: int) -> list[tuple[_Part, ...]]:
    """Split the children into at most `count` non-empty runs of about equal length."""
    bounds = [len(children) * i // count for i in range(count + 1)]
    return [tuple(children[a:b]) for a, b in pairwise(bounds) if a < b]
