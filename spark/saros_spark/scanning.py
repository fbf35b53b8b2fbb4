"""A relation of a database: its schema, its slices, and the rows of a slice. Knows nothing of Spark's classes.

    Relation(options)   -> .schema          from the schema tree; of `sql` and `aggregate` from an empty result
                        -> .slices()        statistics -> planning
    read_slice(...)     -> record batches   one SQL statement, streamed; what is read is what is there when it runs

There is no snapshot across slices: a slice that is read again (a retry, a second action) sees what was written since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from saros_spark.batches import conform, melt
from saros_spark.catalogue import Catalogue, Extent, by_signature, read_catalogue, read_extents, unit_of
from saros_spark.connecting import connection_of
from saros_spark.errors import SourceError
from saros_spark.options import ScanOptions
from saros_spark.planning import Sizes, Slice, duration, moment, plan_devices, plan_times, windows
from saros_spark.types import arrow_type, common_type, field_of, instant_type, named_type
from saros_storage.paths import unquote_node
from saros_storage.types import TimeUnit

_TIME, _DEVICE = "time", "device"
#: Rows that go to Spark at a time: less costs calls, more costs memory.
_BATCH_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Task:
    """What one of Spark's tasks asks; `names` are the target's columns with others' names in the result."""

    sql: str
    names: tuple[tuple[str, str], ...]
    melts: bool = False


class Relation:
    """See the module. One per planning process; one thread."""

    def __init__(self, options: ScanOptions) -> None:
        self.options = options
        self._connection = connection_of(options.connecting)

    @cached_property
    def catalogue(self) -> Catalogue:
        """Devices and types. Raises SourceError."""
        return read_catalogue(self._connection, self.options.devices, self.options.columns)

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
            return _shown(self._connection.execute(options.sql).fetch_stream()[0], instant)
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
        extents = read_extents(self._connection, self.catalogue, _where(span, None))
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
            return Task(text, ((_TIME, "Time"),))
        names = tuple((unquote_node(name), name) for name in part.measurements if unquote_node(name) != name)
        return Task(
            f"{text} align by device", ((_TIME, "Time"), (_DEVICE, "Device"), *names), options.layout == "narrow"
        )

    @cached_property
    def span(self) -> tuple[int | None, int | None]:
        """The relation's [start, end)."""
        start, end = self.options.start, self.options.end
        return (
            None if start is None else moment(start, self.unit, "startTime"),
            None if end is None else moment(end, self.unit, "endTime"),
        )

    def bounds(self) -> tuple[int, int] | None:
        """First and last time of the relation's rows; None if there are none."""
        extents = read_extents(self._connection, self.catalogue, _where(self.span, None))
        known = [extent for extent in extents.values() if extent.rows]
        return (min(e.first for e in known), max(e.last for e in known)) if known else None

    def rows_in(self, start: int, end: int) -> int:
        """Rows by device in [start, end), about."""
        extents = read_extents(self._connection, self.catalogue, _where((start, end), None))
        return sum(extent.rows for extent in extents.values())

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
            for field in _shown(shown, instant):
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
        """By sets of devices, and by windows if those are very many: little travels."""
        options = self.options
        sizes = Sizes(options.points_per_partition, options.partitions_max)
        unknown = dict.fromkeys(self.catalogue.devices, Extent(0, 0, 0))
        parts = [part.devices for part in plan_devices(self.catalogue, unknown, span, sizes)]
        if options.interval is None:
            return [Task(self._aggregate_sql(devices, span, None), ((_DEVICE, "Device"),)) for devices in parts]
        width = duration(options.interval, self.unit, "interval")
        covered = self._covered(span, width)
        return [
            Task(self._aggregate_sql(devices, of, options.interval), ((_TIME, "Time"), (_DEVICE, "Device")))
            for devices in parts
            for of in ([] if covered is None else windows(covered, width, len(devices)))
        ]

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
                raise SourceError("windows of months or years need the option startTime: where the first one begins")
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


def read_task(task: Task, options: ScanOptions, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a task under `target`. Who stops early closes the iterator, and with it the statement."""
    cursor = connection_of(options.connecting).execute(task.sql)
    try:
        names = dict(task.names)
        if task.melts:
            names |= {unquote_node(name): name for name in cursor.fetch_stream()[0].names[2:]}
            rows = _rows_schema(cursor.fetch_stream()[0], target)
        for batch in cursor.fetch_batches():
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                part = batch.slice(start, _BATCH_ROWS)
                if task.melts:
                    yield from melt(conform(part, rows, names), target)
                else:
                    yield conform(part, target, names)
    finally:
        cursor.close()


def _rows_schema(result: pa.Schema, target: pa.Schema) -> pa.Schema:
    """Of rows by device that are to be melted to `target`: values keep their types until then."""
    values = []
    for field in list(result)[2:]:
        type_ = target.field(0).type if pa.types.is_timestamp(field.type) else field.type
        values.append(pa.field(unquote_node(field.name), type_))
    return pa.schema([target.field(0), target.field(1), *values])


def _shown(result: pa.Schema, instant: pa.DataType) -> pa.Schema:
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
