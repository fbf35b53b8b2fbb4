"""A relation of a database: its schema, its slices, and the rows of a slice. Knows nothing of Spark's classes.

    Relation(options)   -> .schema          from the schema tree; of `sql` and `aggregate` from an empty result
                        -> .tasks()         statistics -> planning
    planned(options)    -> tasks that read at one moment, which the server holds from now on
    read_task(...)      -> record batches   one SQL statement, streamed

    plan   hold ──────── a task ─── its retry ─────── the last task         the moment's lease begins anew with each
             └─ what all of them see                       └── lease ── the server lets go

A moment that is gone (nobody read for the lease, or its node was lost or started anew) is replaced by one that the
tasks of a stage have in common, under a name that they all know, or else the task fails: `snapshot`. A task whose
statement breaks off amid its rows fails, and Spark runs it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

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
from saros_storage.base.paths import unquote_node
from saros_storage.base.types import TimeUnit

if TYPE_CHECKING:
    import saros

logger = logging.getLogger(__name__)

_TIME, _DEVICE = "time", "device"
T = TypeVar("T")
_GONE, _UNREACHABLE, _NO_LEADER = 2032, 2016, 2017
#: Rows that go to Spark at a time: less costs calls, more costs memory.
_BATCH_ROWS = 50_000
#: New moments, by the old one and the stage that reads: so that a process looks in vain for a lost node only once.
_moved: dict[tuple[saros.ReadPoint | None, str], saros.ReadPoint] = {}
#: A process reads for few stages at a time.
_MOVED_MAX = 64


@dataclass(frozen=True, slots=True)
class Task:
    """What one of Spark's tasks asks; `names` are the target's columns with others' names in the result."""

    sql: str
    names: tuple[tuple[str, str], ...]
    melts: bool = False
    #: Columns that the result has, unless series were dropped since.
    needed: tuple[str, ...] = ()
    #: Devices that have them, and measurements that each has; none: the statement is not one by device.
    devices: tuple[str, ...] = ()
    measurements: tuple[str, ...] = ()
    #: The moment that it reads at; None: its own.
    point: saros.ReadPoint | None = None


class Relation:
    """See the module. One per planning process; one thread."""

    def __init__(self, options: ScanOptions, at: saros.ReadPoint | None = None) -> None:
        """`at`: the moment that its statistics are of."""
        self.options = options
        self._at = at
        self._connection = connection_of(options.connecting)

    @cached_property
    def catalogue(self) -> Catalogue:
        """Devices and types. Raises SourceError."""
        return read_catalogue(self._connection, self.options.devices, self.options.columns, self.options.where)

    @cached_property
    def unit(self) -> TimeUnit:
        """The database's."""
        return unit_of(self._connection) if self.options.sql else self.catalogue.unit

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns as Spark sees them. Raises SourceError."""
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
                    f"a measurement is called {shown}, as a column of every row is: choose others with the option"
                    " columns, or read layout narrow or by_time"
                )
            fields.append(field_of(shown, type_, instant))
        return pa.schema(fields)

    def tasks(self) -> list[Task]:
        """One for each of Spark's tasks. Raises SourceError."""
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
        """The statement that reads a slice's rows."""
        options = self.options
        where = _where((part.start, part.end), options.where)
        text = f"select {', '.join(part.measurements)} from {', '.join(part.devices)}{where}"  # noqa: S608 (canonical)
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
        """First and last time of the relation's rows; None if there are none."""
        known = [extent for extent in self._extents(self.span).values() if extent.rows]
        return (min(e.first for e in known), max(e.last for e in known)) if known else None

    def rows_in(self, start: int, end: int) -> int:
        """Rows by device in [start, end), about."""
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
        """Of the aggregates over nothing: one window in which no time lies costs the server no reading."""
        fields: dict[str, pa.Field] = {}
        for _, devices in self._aggregate_groups():
            text = self._aggregate_sql(tuple(devices[:1]), (0, 1), self.options.interval)
            shown, _ = self._connection.execute(text).fetch_stream()
            for field in _spark_schema(shown, instant):
                known = fields.setdefault(field.name, field)
                if known.type != field.type:
                    raise SourceError(
                        f"{field.name} is {known.type} of some devices, {field.type} of {devices[0]}: read them apart"
                    )
        if not fields.keys() - {_TIME, _DEVICE}:
            raise SourceError(f"none of the devices has a series of {self.options.aggregate}")
        return pa.schema(list(fields.values()))

    def _aggregate_groups(self) -> list[tuple[list[str], list[str]]]:
        names = {name for series in self.catalogue.devices.values() for name in series}
        return by_signature(self.catalogue, names)

    def _aggregates(self, span: tuple[int | None, int | None]) -> list[Task]:
        """As few as statements may be long: the server's threads share one statement, and little travels."""
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
        """The times that the windows cover: as given, else from the window of the first point to the last point."""
        start, end = span
        if start is not None and end is not None:
            return (start, end) if start < end else None
        bounds = self.bounds()
        if bounds is None:
            return None
        if start is None:
            if width is None:
                raise SourceError("windows of the calendar need the option startTime: where the first one begins")
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
    """A job's tasks. Raises SourceError, and the driver's errors."""
    point = None if options.snapshot == "none" else connection_of(options.connecting).hold(options.lease_s)
    tasks = [replace(task, point=point) for task in Relation(options, point).tasks()]
    collect_garbage()
    return tasks


def read_task(task: Task, options: ScanOptions, target: pa.Schema, stage: str = "") -> Iterator[pa.RecordBatch]:
    """The rows of a task under `target`. Who stops early closes the iterator, and with it the statement.

    `stage` names the tasks that share a new moment if theirs is gone. Raises SourceError, and the driver's errors.
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
    """The task's statement at its moment; at a new one, that the stage's tasks have in common, if that is gone."""
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
                f"{error}: make the DataFrame anew; a longer snapshotLease keeps its moment, and with snapshot=auto the"
                " tasks take a new one"
            ) from error
        anew = _recreate_read_point(task.point, options, stage, lost=error.code == _UNREACHABLE)
    if len(_moved) >= _MOVED_MAX:
        _moved.clear()
    _moved[task.point, stage] = anew
    logger.warning("the moment of this DataFrame is gone: the tasks of stage %s read at a new one", stage)
    return connection_of(options.connecting).execute(task.sql, at=anew)


def _ask_node(address: str, options: ScanOptions, ask: Callable[[saros.Connection], T], *, elsewhere: bool) -> T:
    """Ask a node, for as long as calls look for it; if one may go `elsewhere`, not a node whose process has ended."""
    import saros

    if elsewhere:
        try:
            return ask(connection_of(options.connecting, ELSEWHERE_S))
        except saros.OperationalError as error:
            if error.code not in (_UNREACHABLE, _NO_LEADER) or (error.code == _UNREACHABLE and refuses(address)):
                raise
    return ask(connection_of(options.connecting))


def _recreate_read_point(point: saros.ReadPoint, options: ScanOptions, stage: str, *, lost: bool) -> saros.ReadPoint:
    """A moment under a name that all tasks of the stage know, at a node that all of them ask first.

    That is the one that kept the moment before; if it is `lost`, the others of the target come first, in their order.
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
    """Of rows by device that are to be melted to `target`: values keep their types until then."""
    values = []
    for field in list(result)[2:]:
        type_ = target.field(0).type if pa.types.is_timestamp(field.type) else field.type
        values.append(pa.field(unquote_node(field.name), type_))
    return pa.schema([target.field(0), target.field(1), *values])


def _spark_schema(result: pa.Schema, instant: pa.DataType) -> pa.Schema:
    """A result's schema as Spark sees it: Time and Device in small letters, instants in its type."""
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
