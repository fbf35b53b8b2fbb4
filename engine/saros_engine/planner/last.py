"""SELECT LAST: the latest point of each series, as rows (Time, Timeseries, Value, DataType).

An alias of an item does not rename its series. FILL is accepted, but has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec

from saros_engine.analysis.binding import Columns, predicate
from saros_engine.analysis.scope import Leaf, Scope, paths_of
from saros_engine.base.errors import SemanticError
from saros_engine.catalog.views import BaseSeries
from saros_engine.plan.expression import Bound
from saros_engine.plan.plan import Field, LastScan, Node
from saros_engine.planner.context import LogicalPlan, PlanContext
from saros_engine.planner.post_processing import limited, sorted_by
from saros_engine.planner.query_core import Output
from saros_grammar.syntax.ast import PathExpression, Select
from saros_storage.base.block import Block, Column
from saros_storage.base.types import DataType
from saros_storage.scan.reading import ScanRequest, TimeRange

_NAMES = ("timeseries", "value", "datatype")
_FIELDS = (
    Field("Timeseries", DataType.TEXT),
    Field("Value", DataType.TEXT),
    Field("DataType", DataType.TEXT),
)


class LastItem(msgspec.Struct, frozen=True):
    """One series, with its canonical path and its name in the result."""

    device: str
    measurement: str
    type: DataType
    aligned: bool
    name: str


def last_scan(items: Sequence[LastItem], time: TimeRange, predicate: Bound | None = None) -> LastScan:
    """Return the scan of the series in the given order. Adjacent series of the same device share one request."""
    requests = []
    for (device, aligned), run in groupby(items, lambda item: (item.device, item.aligned)):
        own = list(run)
        names, types = tuple([item.measurement for item in own]), tuple([item.type for item in own])
        requests.append(ScanRequest(device, names, types, aligned, time, descending=True, latest=True))
    names_of = Column.of(DataType.TEXT, [item.name for item in items])
    types_of = Column.of(DataType.TEXT, [item.type.name for item in items])
    return LastScan(tuple(requests), Block.untimed((names_of, types_of)), _FIELDS, predicate)


def plan_last(select: Select, context: PlanContext) -> LogicalPlan:
    """Return the plan of SELECT LAST. Raises SemanticError."""
    _check(select)
    scope = Scope(context.schema, select.from_paths)
    time, rest = context.split_time(select.where)
    if rest is not None and any(paths_of(rest)):
        raise SemanticError("Only time filters are supported in LAST query.")
    condition = None if rest is None else predicate(rest, Columns(context.moment))
    items: dict[tuple[str, str, str], LastItem] = {}
    for item in select.items:
        if not isinstance(item.expression, PathExpression):
            raise SemanticError("Last queries can only be applied on raw time series.")
        for path in scope.find(item.expression):
            leaf = _series_of(path, scope, context)
            if leaf is None:
                if item.expression.has_wildcard:
                    continue
                raise SemanticError(f"{path} is a computed view: LAST takes series and views of one series")
            device, measurement = leaf.device.path, leaf.series.measurement
            name = str(path)
            items[name, device, measurement] = LastItem(
                device, measurement, leaf.series.type, leaf.device.aligned, name
            )
    node: Node = last_scan(list(items.values()), time, condition)
    if select.order_by:
        for key in select.order_by:
            if str(key.expression).lower() not in ("time", *_NAMES):
                raise SemanticError(f"LAST can be ordered by time, {', '.join(_NAMES)}, not by {key.expression}")
        none: list[Output] = []
        node = sorted_by(node, select.order_by, none, _NAMES, timed=True)
    node = limited(node, select.limit, select.offset)
    return LogicalPlan(_FIELDS, True, node)


def _check(select: Select) -> None:
    for given, what in (
        (select.group_by is not None or select.levels or select.tag_keys, "GROUP BY"),
        (select.having is not None, "HAVING"),
        (select.align_by_device, "ALIGN BY DEVICE"),
        (select.without_null is not None, "WITHOUT NULL"),
        (select.slimit is not None or select.soffset is not None, "SLIMIT and SOFFSET"),
    ):
        if given:
            raise SemanticError(f"{what} cannot be combined with LAST, which returns one point per series")


def _series_of(path: PathExpression, scope: Scope, context: PlanContext) -> Leaf | None:
    """Return the series of a path; for a view, the series that the view renames, or None if the view is computed."""
    base = BaseSeries(context.schema, scope.series).of(path)
    return scope.series[base] if isinstance(base, PathExpression) else None
