"""Relations of a database: schema, slices, and the rows of a slice. This module does not use Spark's classes.

    Relation(options)   -> .schema          from the schema tree; for `sql` and `aggregate` from a result
                        -> .tasks()         statistics -> planning
    planned(options)    -> tasks with a common read point, which the server holds from then on
    read_task(...)      -> record batches   one SQL statement, streamed

    plan   hold ──────── a task ─── its retry ─────── the last task         each read renews the lease
             └─ the data that all of them see              └── lease ── the server releases the read point

If a read point is lost (the lease expired, or its node was lost or restarted), the option `snapshot` decides: the tasks
of a stage share a new read point under a name that they all derive, or the task fails. A task whose statement fails in
the middle of its rows fails, and Spark repeats it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from saros_spark.base.connecting import ELSEWHERE_S, addresses_of, connection_of, refuses
from saros_spark.base.errors import SourceError
from saros_spark.base.options import ScanOptions
from saros_spark.base.times import duration, parse_ticks
from saros_spark.base.types import common_type, field_of, instant_type, named_type
from saros_spark.base.worker_gc import collect_garbage
from saros_spark.read.batches import conform, melt
from saros_spark.read.catalogue import (
    DEVICES_PER_STATEMENT,
    Catalogue,
    Extent,
    by_signature,
    read_catalogue,
    read_extents,
    unit_of,
)
from saros_spark.read.dropped_series_check import DroppedSeriesCheck, refuse
from saros_spark.read.planning import Sizes, Slice, plan_devices, plan_times, windows
from saros_storage.base.arrow import arrow_type
from saros_storage.base.paths import sql_node, unquote_node
from saros_storage.base.types import TimeUnit

if TYPE_CHECKING:
    import saros

logger = logging.getLogger(__name__)

_TIME, _DEVICE = "time", "device"
T = TypeVar("T")
_GONE, _UNREACHABLE, _NO_LEADER = 2032, 2016, 2017
#: The number of rows of a batch for Spark. Smaller batches need more calls, larger batches more memory.
_BATCH_ROWS = 50_000
#: Maps a lost read point and a stage to the new read point, so that a process waits for a lost node only once.
_moved: dict[tuple[saros.ReadPoint | None, str], saros.ReadPoint] = {}
#: The maximum number of entries in `_moved`; a process reads for only a few stages at a time.
_MOVED_MAX = 64


class Task(msgspec.Struct, frozen=True):
    """The statement of one read task; `names` are pairs (target column, result column) for columns that differ."""

    sql: str
    names: tuple[tuple[str, str], ...]
    melts: bool = False
    #: Columns that the result must have. A column is missing if its series were dropped after planning.
    needed: tuple[str, ...] = ()
    #: The devices of the statement, and the measurements of each device. Both are empty if the statement is not by
    #: device.
    devices: tuple[str, ...] = ()
    measurements: tuple[str, ...] = ()
    #: The read point that all tasks share, or None if the statement reads the current data.
    point: saros.ReadPoint | None = None


class Relation:
    """A part of the database that Spark reads as a table.

    Each planning process has one object, which only one thread may use.
    """

    def __init__(self, options: ScanOptions, at: saros.ReadPoint | None = None) -> None:
        """Connect to the database; `at` is the read point for the statistics."""
        self.options = options
        self._at = at
        self._connection = connection_of(options.connecting)

    @cached_property
    def catalogue(self) -> Catalogue:
        """The devices and types of the relation. Raises SourceError."""
        return read_catalogue(self._connection, self.options.devices, self.options.columns, self.options.where)

    @cached_property
    def unit(self) -> TimeUnit:
        """The database's time unit."""
        return unit_of(self._connection) if self.options.sql else self.catalogue.unit

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as Spark sees them. Raises SourceError."""
        options = self.options
        instant = instant_type(options.time_type, self.unit)
        if options.sql is not None:
            return _spark_schema(self._connection.execute(options.sql).fetch_stream()[0], instant)
        if options.aggregate is not None:
            return self._aggregate_schema(instant)
        if options.layout == "by_time":
            return pa.schema([_time_field(instant), *self._series_fields(instant)])
        names = self.catalogue.measurements() if options.layout == "by_device" else {}
        fields = [_time_field(instant), pa.field(_DEVICE, pa.string())]
        if options.layout == "narrow":
            value = (
                named_type(options.value_type)
                if options.value_type
                else arrow_type(common_type(self.catalogue.measurements()), instant)
            )
            return pa.schema([*fields, pa.field("measurement", pa.string()), pa.field("value", value)])
        for name, type_ in names.items():
            shown = unquote_node(name)
            if shown.lower() in (_TIME, _DEVICE):
                raise SourceError(
                    f"a measurement is named {shown}, like a column of every row; choose others with the option"
                    " columns, or read layout narrow or by_time"
                )
            fields.append(field_of(shown, type_, instant))
        return pa.schema(fields)

    def tasks(self) -> list[Task]:
        """Return the tasks that read the relation, without read points. Raises SourceError."""
        options = self.options
        if options.sql is not None:
            return [Task(options.sql, (("time", "Time"), ("device", "Device")))]
        span = self.span
        if options.aggregate is not None:
            return self._aggregates(span)
        extents = self._extents(span)
        sizes = Sizes(options.points_per_partition, options.partitions_max)
        if options.layout == "by_time":
            return [self.task(part) for part in plan_times(self.catalogue, extents, span, sizes)]
        return [self.task(part) for part in plan_devices(self.catalogue, extents, span, sizes)]

    def task(self, part: Slice) -> Task:
        """Return the task that reads a slice."""
        options = self.options
        where = _where((part.start, part.end), options.where)
        measurements = ", ".join(map(sql_node, part.measurements))
        text = f"select {measurements} from {', '.join(part.devices)}{where}"  # noqa: S608 (canonical)
        if options.layout == "by_time":
            series = [(device, name) for device in part.devices for name in self.catalogue.devices[device]]
            return Task(text, ((_TIME, "Time"),), needed=tuple(f"{device}.{name}" for device, name in series))
        names = tuple((unquote_node(name), name) for name in part.measurements if unquote_node(name) != name)
        return Task(
            f"{text} align by device",
            ((_TIME, "Time"), (_DEVICE, "Device"), *names),
            options.layout == "narrow",
            part.measurements,
            part.devices,
            part.measurements,
        )

    def _extents(self, span: tuple[int | None, int | None]) -> dict[str, Extent]:
        return read_extents(self._connection, self.catalogue, _where(span, None), self._at)

    @cached_property
    def span(self) -> tuple[int | None, int | None]:
        """The relation's [start, end)."""
        start, end = self.options.start, self.options.end
        return (
            None if start is None else parse_ticks(start, self.unit, "startTime"),
            None if end is None else parse_ticks(end, self.unit, "endTime"),
        )

    def bounds(self) -> tuple[int, int] | None:
        """Return the first and last time of the relation's rows, or None if it has no rows."""
        known = [extent for extent in self._extents(self.span).values() if extent.rows]
        return (min(e.first for e in known), max(e.last for e in known)) if known else None

    def rows_in(self, start: int, end: int) -> int:
        """Return the estimated number of rows by device in [start, end)."""
        return sum(extent.rows for extent in self._extents((start, end)).values())

    # ------------------------------------------------------------------ schemas

    def _series_fields(self, instant: pa.DataType) -> list[pa.Field]:
        return [
            field_of(f"{device}.{name}", type_, instant)
            for device, series in self.catalogue.devices.items()
            for name, type_ in sorted(series.items())
        ]

    # ------------------------------------------------------------------ aggregates

    def _aggregate_schema(self, instant: pa.DataType) -> pa.Schema:
        """Return the schema of the aggregates.

        The schema is that of a query over one window, which reads almost nothing.
        """
        fields: dict[str, pa.Field] = {}
        for _, devices in self._aggregate_groups():
            text = self._aggregate_sql(tuple(devices[:1]), (0, 1), self.options.interval)
            shown, _ = self._connection.execute(text).fetch_stream()
            for field in _spark_schema(shown, instant):
                known = fields.setdefault(field.name, field)
                if known.type != field.type:
                    raise SourceError(
                        f"{field.name} is {known.type} for some devices and {field.type} for {devices[0]}; read them"
                        " separately"
                    )
        if not fields.keys() - {_TIME, _DEVICE}:
            raise SourceError(f"none of the devices has a series of {self.options.aggregate}")
        return pa.schema(list(fields.values()))

    def _aggregate_groups(self) -> list[tuple[list[str], list[str]]]:
        names = {name for series in self.catalogue.devices.values() for name in series}
        return by_signature(self.catalogue, names)

    def _aggregates(self, span: tuple[int | None, int | None]) -> list[Task]:
        """Return as few tasks as possible, since the server parallelizes a statement itself, and results are small."""
        options, step = self.options, DEVICES_PER_STATEMENT
        parts = [
            (names, tuple(devices[at : at + step]))
            for names, devices in self._aggregate_groups()
            for at in range(0, len(devices), step)
        ]
        if options.interval is None:
            return [self._aggregate_task(*part, span, ((_DEVICE, "Device"),)) for part in parts]
        width = duration(options.interval, self.unit, "interval")
        covered = self._covered(span, width)
        return [
            self._aggregate_task(names, devices, of, ((_TIME, "Time"), (_DEVICE, "Device")))
            for names, devices in parts
            for of in ([] if covered is None else windows(covered, width, len(devices)))
        ]

    def _aggregate_task(
        self,
        measurements: list[str],
        devices: tuple[str, ...],
        span: tuple[int | None, int | None],
        names: tuple[tuple[str, str], ...],
    ) -> Task:
        text = self._aggregate_sql(devices, span, self.options.interval)
        return Task(text, names, devices=devices, measurements=tuple(measurements))

    def _covered(self, span: tuple[int | None, int | None], width: int | None) -> tuple[int, int] | None:
        """Return the times that windows cover.

        If the span has no start or no end, the first or the last point bounds the windows.
        """
        start, end = span
        if start is not None and end is not None:
            return (start, end) if start < end else None
        bounds = self.bounds()
        if bounds is None:
            return None
        if start is None:
            if width is None:
                raise SourceError("calendar windows need the option startTime, the beginning of the first window")
            start = bounds[0] // width * width
        if end is None:
            end = bounds[1] + 1
        return (start, end) if start < end else None

    def _aggregate_sql(
        self, devices: tuple[str, ...], span: tuple[int | None, int | None], interval: str | None
    ) -> str:
        select = f"select {self.options.aggregate} from {', '.join(devices)}"  # noqa: S608 (the user's own aggregate)
        if interval is None:
            return f"{select}{_where(span, self.options.where)} align by device"
        where = _where((None, None), self.options.where)
        return f"{select}{where} group by ([{span[0]}, {span[1]}), {interval}) align by device"


def planned(options: ScanOptions) -> list[Task]:
    """Return a job's tasks, with the read point that they share. Raises SourceError, and the driver's errors."""
    point = None if options.snapshot == "none" else connection_of(options.connecting).hold(options.lease_s)
    tasks = [replace(task, point=point) for task in Relation(options, point).tasks()]
    collect_garbage()
    return tasks


def read_task(task: Task, options: ScanOptions, target: pa.Schema, stage: str = "") -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task with the schema `target`. Closing the iterator early ends the statement.

    `stage` names the tasks that share a new read point if their read point is lost. Raises SourceError, and the
    driver's errors.
    """
    cursor = _executed(task, options, stage)
    try:
        result = cursor.fetch_stream()[0]
        refuse(sorted(set(task.needed) - set(result.names)))
        names = dict(task.names)
        columns = task.needed or {names.get(name, name) for name in target.names} - {"Time", "Device"}
        presence = DroppedSeriesCheck(task.devices, task.measurements, columns)
        if task.melts:
            names |= {unquote_node(name): name for name in result.names[2:]}
            rows = _rows_schema(result, target)
        for batch in cursor.fetch_batches():
            presence.observe(batch)
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                part = batch.slice(start, _BATCH_ROWS)
                if task.melts:
                    yield from melt(conform(part, rows, names), target)
                else:
                    yield conform(part, target, names)
        presence.check(connection_of(options.connecting), options.devices)
    finally:
        cursor.close()
    collect_garbage()


def _executed(task: Task, options: ScanOptions, stage: str) -> saros.Cursor:
    """Execute the task's statement at its read point.

    If the point is lost, use a new point that the stage's tasks share, or raise SourceError if `snapshot` is strict.
    """
    import saros

    point = _moved.get((task.point, stage), task.point)
    if point is None:
        return connection_of(options.connecting).execute(task.sql)
    try:
        elsewhere = options.snapshot == "auto" and len(addresses_of(options.connecting)) > 1
        return _ask_node(point.address, options, lambda asked: asked.execute(task.sql, at=point), elsewhere=elsewhere)
    except saros.OperationalError as error:
        if task.point is None or error.code not in (_GONE, _UNREACHABLE):
            raise
        if options.snapshot == "strict":
            raise SourceError(
                f"{error}; create the DataFrame again. A longer snapshotLease keeps its snapshot, and with"
                " snapshot=auto the tasks take a new one"
            ) from error
        anew = _recreate_read_point(task.point, options, stage, lost=error.code == _UNREACHABLE)
    if len(_moved) >= _MOVED_MAX:
        _moved.clear()
    _moved[task.point, stage] = anew
    logger.warning("the snapshot of this DataFrame is gone; the tasks of stage %s read a new one", stage)
    return connection_of(options.connecting).execute(task.sql, at=anew)


def _ask_node(address: str, options: ScanOptions, ask: Callable[[saros.Connection], T], *, elsewhere: bool) -> T:
    """Call `ask` with a connection. If another node may be used (`elsewhere`), fail fast if this node has ended."""
    import saros

    if elsewhere:
        try:
            return ask(connection_of(options.connecting, ELSEWHERE_S))
        except saros.OperationalError as error:
            if error.code not in (_UNREACHABLE, _NO_LEADER) or (error.code == _UNREACHABLE and refuses(address)):
                raise
    return ask(connection_of(options.connecting))


def _recreate_read_point(point: saros.ReadPoint, options: ScanOptions, stage: str, *, lost: bool) -> saros.ReadPoint:
    """Hold a read point under a name that each task of the stage can derive. All tasks try the nodes in the same order.

    If the node of the previous read point is `lost`, the target's other nodes are tried before it. Otherwise, only this
    node is tried.
    """
    import saros

    others = [address for address in addresses_of(options.connecting) if address != point.address] if lost else []
    for address in [*others, point.address]:
        like = replace(point, address=address, instance=0)
        hold = partial(saros.Connection.hold, lease_s=options.lease_s, name=f"{point.name}-{stage}", like=like)
        try:
            return _ask_node(address, options, hold, elsewhere=address != point.address)
        except saros.OperationalError as error:
            refused = error
    raise refused


def _rows_schema(result: pa.Schema, target: pa.Schema) -> pa.Schema:
    """Return the schema of rows by device, which `melt` then turns into `target`. Values keep their types."""
    values = []
    for field in list(result)[2:]:
        type_ = target.field(0).type if pa.types.is_timestamp(field.type) else field.type
        values.append(pa.field(unquote_node(field.name), type_))
    return pa.schema([target.field(0), target.field(1), *values])


def _spark_schema(result: pa.Schema, instant: pa.DataType) -> pa.Schema:
    """Return a result's schema as Spark sees it: Time and Device in lower case, times of type `instant`."""
    fields = []
    for field in result:
        name = {"Time": _TIME, "Device": _DEVICE}.get(field.name, field.name)
        fields.append(pa.field(name, instant if pa.types.is_timestamp(field.type) else field.type))
    return pa.schema(fields)


def _time_field(instant: pa.DataType) -> pa.Field:
    return pa.field(_TIME, instant)


def _where(span: tuple[int | None, int | None], condition: str | None) -> str:
    start, end = span
    parts = [] if start is None else [f"time >= {start}"]
    parts += [] if end is None else [f"time < {end}"]
    parts += [] if condition is None else [f"({condition})"]
    return f" where {' and '.join(parts)}" if parts else ""
