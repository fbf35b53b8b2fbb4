"""Rule: many scans side by side become one node if they all have the same windows, or if none has windows.

WindowJoin( AggregateScan ... a hundred thousand ... )      AggregateScans

A small number of scans is left unchanged, so that EXPLAIN shows more about each scan. Scans are also left unchanged if
their windows overlap, follow the calendar or are descending. So are scans with more windows than fit into a block,
because one node holds the results of all its scans in memory.

The plan, which may be cached, records whether statistics can be used, so that the operators need not determine this for
each scan in every execution.
"""

from __future__ import annotations

from msgspec.structs import replace

from saros_engine.aggregation.aggregation import WINDOW_ROWS_MAX
from saros_engine.aggregation.windows import grid
from saros_engine.functions.registry import uses_summaries
from saros_engine.optimizer.rewrite import bottom_up
from saros_engine.plan.plan import AggregateScan, AggregateScans, Node, TimeWindows, WindowJoin

#: The minimum number of scans to gather. With fewer scans, the details that EXPLAIN shows about each scan are worth the
#: cost of separate nodes.
SCANS_MIN = 8


def gather_scans(root: Node) -> Node:
    """Gather the scans of a plan."""
    return bottom_up(root, _gathered)


def _gathered(node: Node) -> Node:
    if not isinstance(node, WindowJoin) or len(node.children) < SCANS_MIN:
        return node
    scans = tuple([c for c in node.children if isinstance(c, AggregateScan)])
    if len(scans) < len(node.children) or not gatherable(scans):
        return node
    return AggregateScans(asking_statistics(scans), node.fields)


def asking_statistics(scans: tuple[AggregateScan, ...]) -> tuple[AggregateScan, ...]:
    """Return scans that share fixed windows, with the windows' grid in each request that can use statistics."""
    cells = grid(scans[0].windows)
    #: The keys are identities of tuples of calls, because many scans share the same tuple.
    answered = {id(scan.calls): all(map(uses_summaries, scan.calls)) for scan in scans}
    return tuple(
        [
            AggregateScan(replace(scan.request, grid=cells), scan.calls, scan.windows, scan.stage, scan.fields)
            if answered[id(scan.calls)] and not scan.request.bounds
            else scan
            for scan in scans
        ]
    )


def gatherable(scans: tuple[AggregateScan, ...]) -> bool:
    """Return whether one node can replace all the scans."""
    windows = scans[0].windows
    if any(scan.windows is not windows and scan.windows != windows for scan in scans):
        return False
    if windows is None:
        return True
    rows_max = min(WINDOW_ROWS_MAX, *(scan.request.block_rows for scan in scans))
    return 0 < windows_count(windows) <= rows_max and not any(scan.request.descending for scan in scans)


def windows_count(windows: TimeWindows) -> int:
    """Return the number of windows; 0 if they overlap or follow the calendar."""
    if windows.by_calendar or windows.interval_ticks > windows.step_ticks:
        return 0
    return -(-(windows.end - windows.start) // windows.step_ticks)
