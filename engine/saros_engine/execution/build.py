"""Build the tree of operators that executes a tree of plan nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from saros_engine.operators.aggregate import AggregateOperator
from saros_engine.operators.fill import FillOperator, LinearFillOperator
from saros_engine.operators.filter import FilterOperator
from saros_engine.operators.generate import GenerateOperator
from saros_engine.operators.join.device_merge import DeviceAppendOperator, DeviceMergeOperator
from saros_engine.operators.join.level_merge import LevelMergeOperator
from saros_engine.operators.join.time_join import TimeJoinOperator
from saros_engine.operators.join.window_join import WindowJoinOperator
from saros_engine.operators.last import LastScanOperator
from saros_engine.operators.limit import LimitOperator
from saros_engine.operators.operator import Operator, OperatorContext
from saros_engine.operators.project import ProjectOperator
from saros_engine.operators.rows import RowsOperator
from saros_engine.operators.scan.aggregate_scan import AggregateScanOperator
from saros_engine.operators.scan.aggregate_scans import AggregateScansOperator
from saros_engine.operators.scan.scan import ScanOperator
from saros_engine.operators.scan.scans import ScansOperator, can_read_in_lockstep
from saros_engine.operators.sort import SortOperator
from saros_engine.plan.plan import (
    Aggregate,
    AggregateScan,
    AggregateScans,
    DeviceMerge,
    ExchangeSource,
    FillKind,
    FillNode,
    Filter,
    Generate,
    LastScan,
    LevelMerge,
    Limit,
    Node,
    Project,
    Rows,
    Scan,
    Sort,
    TimeJoin,
    WindowJoin,
)
from saros_storage.scan.reading import ReaderFactory

_Unary = Filter | Project | Generate | Aggregate | LevelMerge | FillNode | Sort | Limit
#: A function that builds the operator that receives another fragment's rows.
Exchange = Callable[[ExchangeSource], Operator]


def build(node: Node, readers: ReaderFactory, context: OperatorContext, exchange: Exchange) -> Operator:
    """Return the operator tree for a plan tree. An operator opens its readers when its first block is requested.

    Raises UserMistake for errors that do not depend on the data (too many windows, an invalid regular expression).
    """

    def below(child: Node) -> Operator:
        return build(child, readers, context, exchange)

    match node:
        case Scan() | AggregateScan() | AggregateScans() | LastScan():
            return _reading(node, readers, context)
        case TimeJoin():
            runs = _runs(node.children)
            return _joined_by_time(
                node, runs, [_read_together(run, readers, context) or below(run[0]) for run in runs], context
            )
        case WindowJoin() | DeviceMerge():
            return _joined(node, [below(child) for child in node.children], context)
        case Rows():
            return RowsOperator(node, context)
        case ExchangeSource():
            return exchange(node)
        case _:
            return _above(node, below(node.child), context)


def _above(node: _Unary, child: Operator, context: OperatorContext) -> Operator:
    """Return the operator of a node with one child."""
    match node:
        case Filter():
            return FilterOperator(node, child, context)
        case Project():
            return ProjectOperator(node, child, context)
        case Generate():
            return GenerateOperator(node, child, context)
        case Aggregate():
            return AggregateOperator(node, child, context)
        case LevelMerge():
            return LevelMergeOperator(node, child, context)
        case FillNode():
            kind = LinearFillOperator if node.kind is FillKind.LINEAR else FillOperator
            return kind(node, child, context)
        case Sort():
            return SortOperator(node, child, context)
        case Limit():
            return LimitOperator(node, child, context)


def _reading(
    node: Scan | AggregateScan | AggregateScans | LastScan, readers: ReaderFactory, context: OperatorContext
) -> Operator:
    match node:
        case Scan(request):
            readers.expect(request)
            return ScanOperator(request, readers, context)
        case AggregateScan():
            return AggregateScanOperator(node, readers, context)
        case AggregateScans():
            return AggregateScansOperator(node, readers, context)
        case LastScan():
            return LastScanOperator(node, readers, context)


def _runs(children: Sequence[Node]) -> list[list[Node]]:
    """Group the children of a join into runs; neighbouring scans that can be read in lockstep form one run."""
    runs: list[list[Node]] = []
    for child in children:
        last = runs[-1][-1] if runs else None
        if isinstance(child, Scan) and isinstance(last, Scan) and can_read_in_lockstep(last.request, child.request):
            runs[-1].append(child)
        else:
            runs.append([child])
    return runs


def _read_together(run: Sequence[Node], readers: ReaderFactory, context: OperatorContext) -> Operator | None:
    """Return the operator of a run of several scans, or None if the run is a single child."""
    scans = [child for child in run if isinstance(child, Scan)]
    return ScansOperator(scans, readers, context) if len(scans) > 1 else None


def _joined_by_time(
    node: TimeJoin, runs: Sequence[Sequence[Node]], children: Sequence[Operator], context: OperatorContext
) -> Operator:
    if len(children) == 1:
        return children[0]
    types = [tuple([field.type for child in run for field in child.fields]) for run in runs]
    return TimeJoinOperator(node, children, types, context)


def _joined(node: WindowJoin | DeviceMerge, children: list[Operator], context: OperatorContext) -> Operator:
    if isinstance(node, WindowJoin):
        return WindowJoinOperator(children, context)
    if node.by_time:
        return DeviceMergeOperator(node, children, context)
    return DeviceAppendOperator(node, children, context)
