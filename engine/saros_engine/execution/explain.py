"""EXPLAIN and EXPLAIN ANALYZE: a plan, or the statistics of its operators, as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from saros_engine.execution.driver import PipelineDriver
from saros_engine.operators.operator import Operator
from saros_engine.plan.plan import (
    Aggregate,
    AggregateScan,
    AggregateScans,
    DeviceMerge,
    ExchangeSource,
    FillNode,
    Filter,
    Generate,
    LastScan,
    LevelMerge,
    Limit,
    Node,
    Project,
    QueryPlan,
    Rows,
    Scan,
    Sort,
    TimeWindows,
    Windows,
)
from saros_storage.base.types import TIME_MAX, TIME_MIN
from saros_storage.scan.reading import ReadCounters, ScanRequest

#: The maximum number of names that are shown for a list of columns.
_SHOWN = 8


def explain(plan: QueryPlan) -> list[str]:
    """Return the logical plan as lines of text, followed by the fragments if there are several."""
    lines = ["Logical plan", *_indent(_tree(plan.logical))]
    for instance in plan.instances if len(plan.instances) > 1 else ():
        lines.append(f"Fragment {instance.fragment.number}.{instance.instance}")
        lines += _indent(_tree(instance.fragment.root))
    return lines


def explain_analysis(drivers: Sequence[PipelineDriver], elapsed_ns: int, peak_bytes: int) -> list[str]:
    """Return the statistics of a finished query as lines of text, grouped by fragment, driver and operator."""
    rows = drivers[0].root.statistics.rows
    lines = [f"Query  rows {rows}  time {_ms(elapsed_ns)}  drivers {len(drivers)}  peak memory {peak_bytes} B"]
    for number, members in groupby(drivers, key=lambda d: d.id.fragment):
        lines.append(f"Fragment {number}")
        for driver in members:
            lines.append(f"  Driver {driver.id}")
            lines += _indent(_indent(_operators(driver.root)))
    return lines


def _indent(lines: Sequence[str]) -> list[str]:
    return ["  " + line for line in lines]


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.3f} ms"


def _operators(operator: Operator) -> list[str]:
    did = operator.statistics
    own = did.time_ns - sum(child.statistics.time_ns for child in operator.children)
    detail = f" [{did.detail}]" if did.detail else ""
    lines = [f"{did.name}{detail}  rows {did.rows}  blocks {did.blocks}  time {_ms(max(own, 0))}"]
    if did.reads is not None:
        lines.append("  " + _reads(did.reads))
    for child in operator.children:
        lines += _indent(_operators(child))
    return lines


def _reads(reads: ReadCounters) -> str:
    remote = f"  from other nodes {reads.remote_bytes} B" if reads.remote_bytes else ""
    return (
        f"files {reads.files} (skipped {reads.files_skipped})  chunks {reads.chunks} (skipped {reads.chunks_skipped})"
        f"  pages {reads.pages} (skipped {reads.pages_skipped})  from statistics {reads.summaries}"
        f"  read {reads.bytes_read} B  cache hits {reads.cache_hits}  MemTable rows {reads.memtable_rows}{remote}"
    )


def _tree(node: Node) -> list[str]:
    lines = ["  ".join([type(node).__name__.removesuffix("Node"), *_details(node)])]
    for child in _children(node):
        lines += _indent(_tree(child))
    return lines


def _children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, (Filter, Project, Generate, Aggregate, LevelMerge, FillNode, Sort, Limit)):
        return (node.child,)
    return getattr(node, "children", ())


def _details(node: Node) -> Iterator[str]:
    match node:
        case Scan(request):
            yield from _request(request)
        case AggregateScan():
            yield from _request(node.request)
            yield _names([call.function for call in node.calls])
            yield from _windows(node.windows)
        case AggregateScans(scans):
            yield f"{len(scans)} scans" + (f" of {len(node.devices)} devices" if node.devices else "")
            yield from _windows(scans[0].windows)
            yield _names([f"{s.request.device}.{n}" for s in scans[:_SHOWN] for n in s.request.measurements][:_SHOWN])
        case Aggregate():
            yield _names([call.function for call in node.calls])
            yield node.stage.value
            yield from _windows(node.windows)
        case LevelMerge():
            yield _names([field.name for field in node.fields])
        case Project():
            yield _names([field.name for field in node.fields])
        case Generate():
            yield _names([field.name for field in node.fields])
        case Sort():
            yield f"keys {len(node.keys)}" + ("" if node.limit is None else f"  top {node.limit}")
        case Limit():
            yield f"offset {node.offset}  count {'all' if node.count is None else node.count}"
        case FillNode():
            yield node.kind.value
        case DeviceMerge():
            yield _names(node.devices)
        case LastScan():
            yield _names([str(name) for name in node.series.columns[0].to_list()])
        case ExchangeSource():
            yield f"from fragment {node.fragment}"
        case Rows():
            yield f"rows {node.block.rows}"


def _request(request: ScanRequest) -> Iterator[str]:
    yield f"{request.device} {_names(request.measurements)}"
    low, high = request.time.start, request.time.end
    if (low, high) != (TIME_MIN, TIME_MAX):
        yield f"time [{'' if low == TIME_MIN else low}, {'' if high == TIME_MAX else high})"
    for bound in request.bounds:
        yield f"skips outside [{bound.low}, {bound.high}] of {request.measurements[bound.column]}"
    if request.descending:
        yield "descending"


def _windows(windows: Windows | None) -> Iterator[str]:
    if isinstance(windows, TimeWindows):
        yield f"windows from {windows.start} to {windows.end}"
    elif windows is not None:
        yield type(windows).__name__


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"({shown})" if len(names) <= _SHOWN else f"({shown}, ... {len(names)} in all)"
