"""The plan tree, which describes the work of a query from the scans to the rows that the client gets.

    logical plan --optimiser rules--> logical plan --distribution--> fragments (cut at exchanges)
        --one instance per holder--> FragmentInstance --drivers--> operators (`operators/`), one per node

Each node describes its rows: `fields` are the names and types of the columns. Timed rows also have a time, and are in
ascending order of time unless `descending` is true. Nodes cannot be changed; rules build new nodes with `replace`.

    Scan                rows of one device: one non-aligned series, or columns of an aligned device
    AggregateScan       partial aggregates of one device per window, from statistics where exact
    AggregateScans      aggregates of many devices side by side
    TimeJoin            children side by side, aligned by time (full outer)
    WindowJoin          children side by side that have identical rows (same windows, or one row each)
    Filter Project Generate Aggregate LevelMerge Fill Sort Limit
    DeviceMerge         children one after the other (or merged by time), each with its device's name as first column
    LastScan            the latest point of each series
    Rows                rows known at planning time (SHOW, COUNT, EXPLAIN)
    ExchangeSource      the rows that another fragment sends, device by device if that fragment has several instances

Pure data: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import astuple

from saros_engine.plan.expression import Bound, FunctionCall
from saros_storage.base.block import Block
from saros_storage.base.types import DataType, Scalar
from saros_storage.scan.read_point import Sources
from saros_storage.scan.reading import ScanRequest, TimeRange

if TYPE_CHECKING:
    from saros_engine.functions.aggregate import Aggregate as AggregateFunction


class Field(msgspec.Struct, frozen=True):
    """One column of a plan node's rows. In the root of the plan, `name` is the header of the result's column."""

    name: str
    type: DataType


# ---------------------------------------------------------------------------------------------- windows, aggregates


class TimeWindows(msgspec.Struct, frozen=True):
    """Windows over time: window k covers [start_k, end_k), labelled by its start (left-open forms by its end).

    All windows are in the half-open range [`start`, `end`), in the time unit of the database; for a left-open
    statement, the planner has added 1 to both ends and set `label_end`. Each interval and each step is the sum of
    calendar months and calendar days, counted from `start` in `zone`, and of ticks.
    """

    start: int
    end: int
    interval_ticks: int
    interval_months: int
    step_ticks: int
    step_months: int
    label_end: bool = False
    zone: str = "UTC"
    interval_days: int = 0
    step_days: int = 0

    @property
    def by_calendar(self) -> bool:
        """True if windows vary in length or distance because they are measured in months or calendar days."""
        return bool(self.interval_months or self.step_months or self.interval_days or self.step_days)


class SessionWindows(msgspec.Struct, frozen=True):
    """A new window starts at a row whose time exceeds the time of the previous row by more than `gap` ticks."""

    gap: int


class VariationWindows(msgspec.Struct, frozen=True):
    """A new window starts at a row where `control` differs from the window's first value by more than `delta`."""

    control: Bound
    delta: float
    ignore_null: bool


class ConditionWindows(msgspec.Struct, frozen=True):
    """A window is a run of rows where `predicate` is true, if its length satisfies `keep_operator` and `keep_count`."""

    predicate: Bound
    keep_operator: str
    keep_count: int
    ignore_null: bool


class CountWindows(msgspec.Struct, frozen=True):
    """Windows of `size` rows; if `ignore_null`, rows where `control` is null do not count."""

    control: Bound
    size: int
    ignore_null: bool


Windows = TimeWindows | SessionWindows | VariationWindows | ConditionWindows | CountWindows


class Stage(Enum):
    """The input and output of an aggregation.

    PARTIAL: rows -> states; FINAL: states -> values; SINGLE: rows -> values; MERGE: states -> states.
    """

    SINGLE = "single"
    PARTIAL = "partial"
    MERGE = "merge"
    FINAL = "final"


class AggregateCall(msgspec.Struct, frozen=True):
    """A call of `function` (a lower-case key of `registry.AGGREGATES`); `arguments` refer to the child's columns.

    If the input consists of states (MERGE, FINAL), the arguments are the `InputColumn`s of all state columns of the
    function (`aggregates.state_types`).
    """

    function: str
    arguments: tuple[Bound, ...]
    type: DataType
    attributes: tuple[tuple[str, str], ...] = ()
    #: The aggregate if it is user-defined, otherwise None.
    own: AggregateFunction | None = None


# ---------------------------------------------------------------------------------------------- nodes


class Scan(msgspec.Struct, frozen=True):
    """Reads the rows of one device, with their times and one field per measurement."""

    request: ScanRequest
    fields: tuple[Field, ...]


class AggregateScan(msgspec.Struct, frozen=True):
    """Aggregates one device's columns for each window, from statistics where these give the exact result.

    `calls` take `InputColumn`s of the request's columns. There is one row per window, including empty windows, and its
    time is the window's label; if `windows` is None, there is one untimed row. Stage is PARTIAL or SINGLE.
    """

    request: ScanRequest
    calls: tuple[AggregateCall, ...]
    windows: TimeWindows | None
    stage: Stage
    fields: tuple[Field, ...]


class AggregateScans(msgspec.Struct, frozen=True):
    """The results of ascending scans side by side. All scans have the same windows without overlap, or no windows.

    If statistics can be used, the requests already contain the grid of windows; for a separate AggregateScan, the grid
    is computed when its operator is built.

    With `devices`, each device has the same number of consecutive scans, with the same columns. Rows are returned
    device by device, and their last column is the device's name. `together` is the number of devices whose rows are in
    one block.
    """

    scans: tuple[AggregateScan, ...]
    fields: tuple[Field, ...]
    devices: tuple[str, ...] = ()
    together: int = 0


class TimeJoin(msgspec.Struct, frozen=True):
    """Full outer join on time.

    The fields are the fields of the children, in order. All children are timed and have the same direction.
    """

    children: tuple[Node, ...]
    fields: tuple[Field, ...]
    descending: bool = False


class WindowJoin(msgspec.Struct, frozen=True):
    """Puts the children's columns side by side. All children have the same number of rows with the same times."""

    children: tuple[Node, ...]
    fields: tuple[Field, ...]


class Filter(msgspec.Struct, frozen=True):
    """Returns the rows where `predicate` is true."""

    child: Node
    predicate: Bound
    fields: tuple[Field, ...]


class Project(msgspec.Struct, frozen=True):
    """Evaluates `expressions` over the child's columns."""

    child: Node
    expressions: tuple[Bound, ...]
    fields: tuple[Field, ...]


class Generate(msgspec.Struct, frozen=True):
    """Returns the points that a function of `transforms.POINT_FUNCTIONS` generates, as ascending rows with one field.

    The call's arguments are expressions over the child's columns.
    """

    child: Node
    call: FunctionCall
    fields: tuple[Field, ...]


class Aggregate(msgspec.Struct, frozen=True):
    """Aggregates the child's rows, which ascend in time, for each window, or over all rows if `windows` is None.

    With `end_time`, the first field is `__endTime`, the last time that each window covers (end - 1 for TimeWindows). If
    `descending`, windows are returned in descending order.
    """

    child: Node
    calls: tuple[AggregateCall, ...]
    windows: Windows | None
    stage: Stage
    fields: tuple[Field, ...]
    end_time: bool = False
    descending: bool = False


class LevelMerge(msgspec.Struct, frozen=True):
    """GROUP BY LEVEL: the child's columns are states of single series; each call merges the states of a group.

    `members[i]` are the numbers of the first state column of each series of call i; the arguments of a call are the
    state columns of its first series. The first `passed` columns (`__endTime`) are passed on unchanged.
    """

    child: Node
    calls: tuple[AggregateCall, ...]
    members: tuple[tuple[int, ...], ...]
    passed: int
    fields: tuple[Field, ...]


class FillKind(Enum):
    """The method of replacing nulls."""

    PREVIOUS = "previous"
    LINEAR = "linear"
    VALUE = "value"


class FillNode(msgspec.Struct, frozen=True):
    """Replaces nulls: VALUE uses `values[i]` (None: leave column i).

    PREVIOUS uses values whose times differ by at most `bound` ticks from the time of the row.
    """

    child: Node
    kind: FillKind
    values: tuple[Scalar, ...]
    bound: int | None
    fields: tuple[Field, ...]
    descending: bool = False


class SortItem(msgspec.Struct, frozen=True):
    """A sort key: an expression over the columns or the time of the child's rows."""

    expression: Bound
    descending: bool
    nulls_first: bool


class Sort(msgspec.Struct, frozen=True):
    """A stable sort; with `limit`, only the first `limit` rows are kept."""

    child: Node
    keys: tuple[SortItem, ...]
    fields: tuple[Field, ...]
    limit: int | None = None


class Limit(msgspec.Struct, frozen=True):
    """Skips `offset` rows, then returns at most `count` (None: all)."""

    child: Node
    offset: int
    count: int | None
    fields: tuple[Field, ...]


class DeviceMerge(msgspec.Struct, frozen=True):
    """ALIGN BY DEVICE: prepends `devices[i]` to child i's rows as a TEXT column; all children have the same fields.

    If `by_time`, rows are merged by time, then device, instead of device by device.
    """

    children: tuple[Node, ...]
    devices: tuple[str, ...]
    fields: tuple[Field, ...]
    by_time: bool = False
    descending: bool = False


class LastScan(msgspec.Struct, frozen=True):
    """Returns the latest point of each series in its range, as a row (Time; Timeseries, Value, DataType as TEXT).

    There is one request, with `latest` set, for each run of consecutive series of one device. For each column of the
    requests, in order, `series` has a row of two TEXT columns: the series' name and its type. With `predicate` (over
    the value as `InputColumn(0)` and the time), each row is the latest point that satisfies the predicate.
    """

    requests: tuple[ScanRequest, ...]
    series: Block
    fields: tuple[Field, ...]
    predicate: Bound | None = None


class Rows(msgspec.Struct, frozen=True):
    """Rows that are known when the query is planned."""

    block: Block
    fields: tuple[Field, ...]


class ExchangeSource(msgspec.Struct, frozen=True):
    """The rows of all instances of the fragment with the number `fragment`.

    `devices` are the devices of the fragment's `DeviceMerge`, which are distributed round-robin over the instances;
    rows are returned in the order of `devices`. With `times`, devices were split into slices of time (`scan_splits`): a
    device is listed once per slice, and `times` has the slice's time range. If several devices are aggregated together,
    `devices` lists only the first of them. `named_by` is the number of the column with the device's name.
    """

    fragment: int
    fields: tuple[Field, ...]
    devices: tuple[str, ...] = ()
    times: tuple[TimeRange, ...] = ()
    named_by: int = 0


Node = (
    Scan
    | AggregateScan
    | AggregateScans
    | TimeJoin
    | WindowJoin
    | Filter
    | Project
    | Generate
    | Aggregate
    | LevelMerge
    | FillNode
    | Sort
    | Limit
    | DeviceMerge
    | LastScan
    | Rows
    | ExchangeSource
)


def scan_requests(node: Node) -> Iterator[ScanRequest]:
    """Yield the requests of all scans of a plan."""
    match node:
        case Scan(request) | AggregateScan(request):
            yield request
        case AggregateScans(scans):
            yield from (scan.request for scan in scans)
            return
        case LastScan(requests):
            yield from requests
    for value in astuple(node):
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Node):
                yield from scan_requests(part)


def sources_of(node: Node) -> Sources:
    """Return the devices and time ranges that a plan reads."""
    return dict.fromkeys((request.device, request.time) for request in scan_requests(node)).keys()


def width(node: Node) -> int:
    """Return the largest number of columns or children of the nodes from the root down to the first branch."""
    widest = 0
    while True:
        match node:
            case AggregateScans(scans=below) | LastScan(requests=below) | DeviceMerge(children=below):
                return max(widest, len(node.fields), len(below))
            case Filter() | Project() | Generate() | Aggregate() | LevelMerge() | FillNode() | Sort() | Limit():
                widest = max(widest, len(node.fields))
                node = node.child
            case _:
                return max(widest, len(node.fields))


# ---------------------------------------------------------------------------------------------- fragments


class PlanFragment(msgspec.Struct, frozen=True):
    """A part of the plan between exchanges; fragment 0 is the root, whose rows are the result."""

    number: int
    root: Node


class FragmentInstance(msgspec.Struct, frozen=True):
    """A fragment that will run on one of the nodes that hold its data.

    `sink` is the number of the fragment that consumes the instance's rows.
    """

    fragment: PlanFragment
    instance: int
    sink: int | None


class QueryPlan(msgspec.Struct, frozen=True, dict=True):
    """A complete plan, ready to run; if `timed`, the result has a Time column before `fields`."""

    fields: tuple[Field, ...]
    timed: bool
    logical: Node
    instances: tuple[FragmentInstance, ...]

    @cached_property
    def sources(self) -> Sources:
        """See `sources_of`."""
        return sources_of(self.logical)
