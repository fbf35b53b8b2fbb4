"""A model of a store, which consists of plain dictionaries, and operations that change both store and model.

    Operation        `run` runs the operation on a store; `changes` apply it to the dictionaries, step by step
    write_rows, delete_points, ..., load, keep_from      functions that create an operation

The dictionaries do not have expired points. The clock of these stores hardly advances from `NOW_MS`. After a power cut,
any prefix of the changes of an unacknowledged operation may remain, and all changes of acknowledged operations must
remain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from msgspec.structs import replace
from storage.crash_disk import CrashDisk
from storage.store_opening import FOLDER, NOW_MS, Wrong, open_store

from saros_storage.base.block import Block, Column
from saros_storage.base.errors import StorageError
from saros_storage.base.paths import parse_pattern, split_path
from saros_storage.base.tablet import MultiTablet, Tablet
from saros_storage.base.types import DEFAULT_ENCODING, TIME_MIN, Compressor, DataType, Scalar
from saros_storage.checkpoint.fetch import pull_partitions
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.folder.layout import GROUP_FOLDER, SCHEMA_FILE, SNAPSHOTS_FOLDER
from saros_storage.folder.node_file import check_node_file
from saros_storage.folder.schema_file import save_schema
from saros_storage.loading.loader import LoadOptions
from saros_storage.mutation.mutation import Mutation
from saros_storage.mutation.tablet_validation import frames_of
from saros_storage.scan.reading import ScanRequest, TimeRange
from saros_storage.scan.snapshot import everything
from saros_storage.schema import (
    AlterType,
    CreateDatabase,
    CreateSeries,
    SchemaChange,
    SeriesSchema,
    SetTtl,
    UnsetTtl,
    encoding_as,
)
from saros_storage.store import Store
from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

#: Types with which series are created.
TYPES = {
    "x": DataType.INT64,
    "y": DataType.DOUBLE,
    "t": DataType.TEXT,
    "b": DataType.BOOLEAN,
    "f": DataType.FLOAT,
    "i": DataType.INT32,
}
#: Databases by device.
DEVICES = {"root.a.d1": "root.a", "root.a.d2": "root.a", "root.b.c.d1": "root.b.c"}
ALIGNED = frozenset({"root.a.d2"})
_EVERYTHING = parse_pattern("root.**")

Points = Mapping[int, Scalar]


@dataclass(frozen=True)
class Device:
    """The points of each series of a device, by time."""

    aligned: bool
    series: Mapping[str, Points]


@dataclass(frozen=True)
class State:
    """The content of a store."""

    databases: frozenset[str] = frozenset()
    devices: Mapping[str, Device] = field(default_factory=dict)
    #: For each TTL rule's pattern, the first time that the rule keeps.
    limits: Mapping[str, int] = field(default_factory=dict)
    #: For each series whose type was changed: its earlier types, and its current type.
    types: Mapping[tuple[str, str], tuple[DataType, ...]] = field(default_factory=dict)

    def with_device(self, name: str, device: Device | None) -> State:
        devices = {n: d for n, d in self.devices.items() if n != name}
        if device is not None and device.series:
            devices[name] = device
        types = {(d, m): found for (d, m), found in self.types.items() if d in devices and m in devices[d].series}
        return dataclasses.replace(self, devices=devices, types=types)

    def type(self, device: str, name: str) -> DataType:
        """Return the current type of a series."""
        return self.types.get((device, name), (TYPES[name],))[-1]

    def limit(self, device: str) -> int | None:
        """Return the first time that the most specific TTL rule of a device keeps; None if there is no rule."""
        nodes = device.split(".")
        prefixes = [".".join(nodes[:count]) + ".**" for count in range(len(nodes) - 1, 0, -1)]
        return next((self.limits[pattern] for pattern in (device, *prefixes) if pattern in self.limits), None)

    def kept(self) -> State:
        """Return the state without expired points."""
        state = self
        for name, device in self.devices.items():
            limit = self.limit(name)
            if limit is not None:
                series = {m: {t: v for t, v in points.items() if t >= limit} for m, points in device.series.items()}
                state = state.with_device(name, dataclasses.replace(device, series=series))
        return state


Change = Callable[[State], State]


@dataclass(frozen=True)
class Operation:
    """An operation on a store. An operation without `changes` leaves the store's content as it is."""

    name: str
    run: Callable[[Store], None]
    changes: Sequence[Change] = ()
    #: True if all operations acknowledged before this one survive a later power cut, whatever the durability.
    makes_durable: bool = False
    #: True if a disk failure may refuse the operation, without any effect.
    may_be_refused: bool = False


def read_store(store: Store, *, descending: bool = False) -> State:
    """Read the content of a store with scans."""
    view = store.view()
    devices = {}
    changed = {}
    for device in store.schema.match_devices(_EVERYTHING):
        changed |= {(device.path, n): (*s.earlier, s.type) for n, s in device.series.items() if s.earlier}
        names = tuple(device.series)
        groups = [names] if device.aligned else [(name,) for name in names]
        points: dict[str, dict[int, Scalar]] = {name: {} for name in names}
        for group in groups:
            types = tuple(device.series[name].type for name in group)
            reader = view.open(ScanRequest(device.path, group, types, device.aligned, descending=descending))
            while (block := reader.next()) is not None:
                assert isinstance(block, Block)
                take_points(points, group, block)
            reader.close()
        devices[device.path] = Device(device.aligned, points)
    view.close()
    limits = {pattern: NOW_MS - ms for pattern, ms in store.schema.ttl.live() if ms is not None}
    return State(frozenset(store.schema.databases()), devices, limits, changed)


def take_points(points: dict[str, dict[int, Scalar]], names: Sequence[str], block: Block) -> None:
    times = block.times.tolist()
    for name, column in zip(names, block.columns, strict=True):
        values = column.to_list()
        points[name].update({t: v for t, v in zip(times, values, strict=True) if v is not None})


# ---------------------------------------------------------------------- operations


def write_rows(
    device: str, times: Sequence[int], mark: int, names: Sequence[str] = ("x", "y"), *, stale: bool = False
) -> Operation:
    """Write rows of one device; the same entry creates missing series.

    With `stale`, the rows have the types with which the series were created, as if the client did not know about later
    changes of the types.
    """

    def tablet(type_of: TypeOf) -> Tablet:
        return _tablet(device, times, mark, names, _created_as if stale else type_of)

    def run(store: Store) -> None:
        store.write([tablet(_types_in(store))], _needed(store, device, names))

    name = f"write {device} {list(times)} {mark}{' stale' if stale else ''}"
    return Operation(name, run, [_writing(tablet)])


def write_devices(devices: Sequence[str], times: Sequence[int], mark: int) -> Operation:
    """Write rows of non-aligned devices of different databases as one tablet, in one entry."""

    def tablets(type_of: TypeOf) -> list[Tablet]:
        return [_tablet(device, times, mark, ("x", "y"), type_of) for device in devices]

    def run(store: Store) -> None:
        own = tablets(_types_in(store))
        columns = tuple(Column.concat(parts) for parts in zip(*(tablet.columns for tablet in own), strict=True))
        rows = np.concatenate([tablet.times for tablet in own])
        together = MultiTablet(devices, [len(times)] * len(devices), ("x", "y"), rows, columns)
        store.write([together], [change for device in devices for change in _needed(store, device, ("x", "y"))])

    def change(state: State) -> State:
        for place in range(len(devices)):
            state = _writing(lambda type_of, place=place: tablets(type_of)[place])(state)
        return state

    return Operation(f"write {list(devices)} {list(times)} {mark}", run, [change])


def write_batch(*rows: tuple[str, Sequence[int], int]) -> Operation:
    """Write tablets that are queued in order and share an fsync; a power cut may leave only the first tablets."""

    def tablets_of(type_of: TypeOf) -> list[Tablet]:
        return [_tablet(device, times, mark, ("x", "y"), type_of) for device, times, mark in rows]

    def run(store: Store) -> None:
        for device, _, _ in rows:
            if creates := _needed(store, device, ("x", "y")):
                store.change_schema(creates)
        tickets = []
        tablets = tablets_of(_types_in(store))
        with store._lock:
            for tablet in tablets:
                placed = store._fitting.place(frames_of([tablet], joined=True), store.schema)
                tickets.append(store._append(Mutation(tablets=placed)))
        for error in [_failure(store, ticket) for ticket in tickets]:
            if error is not None:
                raise error

    places = range(len(rows))
    changes = [_writing(lambda type_of, place=place: _empty(tablets_of(type_of)[place])) for place in places]
    changes += [_writing(lambda type_of, place=place: tablets_of(type_of)[place]) for place in places]
    return Operation(f"batch {[(d, list(t), m) for d, t, m in rows]}", run, changes)


def _empty(tablet: Tablet) -> Tablet:
    """Return a tablet with the same series and no rows."""
    columns = tuple(column.slice(0, 0) for column in tablet.columns)
    return replace(tablet, times=tablet.times[:0], columns=columns)


def _failure(store: Store, ticket: tuple[int, int]) -> StorageError | None:
    try:
        store.await_ticket(ticket)
    except StorageError as error:
        return error
    return None


def delete_points(patterns: Sequence[str], start: int, end: int) -> Operation:
    """Delete points in [start, end) of the series that a pattern matches."""
    parsed = [parse_pattern(pattern) for pattern in patterns]

    def change(state: State) -> State:
        for name, device in state.devices.items():
            series = {
                measurement: {t: v for t, v in points.items() if not start <= t < end}
                if any(p.matches((*split_path(name), measurement)) for p in parsed)
                else points
                for measurement, points in device.series.items()
            }
            state = state.with_device(name, dataclasses.replace(device, series=series))
        return state

    run = lambda store: store.delete(patterns, TimeRange(start, end))  # noqa: E731
    return Operation(f"delete {list(patterns)} [{start}, {end})", run, [change])


def delete_series(pattern: str) -> Operation:
    parsed = parse_pattern(pattern)

    def change(state: State) -> State:
        for name, device in state.devices.items():
            left = {m: p for m, p in device.series.items() if not parsed.matches((*split_path(name), m))}
            state = state.with_device(name, dataclasses.replace(device, series=left))
        return state

    return Operation(f"delete series {pattern}", lambda store: _ignored(store.delete_series(pattern)), [change])


def _ignored(_: object) -> None:
    return


def delete_database(database: str) -> Operation:
    def change(state: State) -> State:
        for name in [name for name in state.devices if DEVICES[name] == database]:
            state = state.with_device(name, None)
        return dataclasses.replace(state, databases=state.databases - {database})

    return Operation(f"delete database {database}", lambda store: store.delete_database(database), [change])


def create_database(database: str) -> Operation:
    def change(state: State) -> State:
        return dataclasses.replace(state, databases=state.databases | {database})

    return Operation(f"create {database}", lambda store: store.change_schema([CreateDatabase(database)]), [change])


def alter_type(device: str, name: str, type_: DataType) -> Operation:
    """Run SET DATA TYPE, which converts the points. It has no effect if the series does not exist."""

    def run(store: Store) -> None:
        known = store.schema.device(device)
        if known is not None and name in known.series:
            store.change_schema([AlterType(device, name, type_, encoding_as(known.series[name], type_))])

    def change(state: State) -> State:
        known, before = state.devices.get(device), state.types.get((device, name), (TYPES[name],))
        if known is None or name not in known.series:
            return state
        points = {time: as_type(value, before[-1], type_) for time, value in known.series[name].items()}
        state = state.with_device(device, dataclasses.replace(known, series={**known.series, name: points}))
        types = (*(t for t in before if t is not type_), type_)
        return dataclasses.replace(state, types={**state.types, (device, name): types})

    return Operation(f"alter {device}.{name} {type_.name}", run, [change])


def as_type(value: Scalar, source: DataType, target: DataType) -> Scalar:
    """Convert a value to another type of the series."""
    if source is target:
        return value
    if target is DataType.BLOB:
        text = as_type(value, source, DataType.TEXT)
        assert isinstance(text, str)
        return text.encode()
    if target in (DataType.TEXT, DataType.STRING):
        return _text_of(value)
    assert isinstance(value, int | float)
    if target is DataType.FLOAT:
        return float(np.float32(value))
    return float(value) if target is DataType.DOUBLE else value


def _text_of(value: Scalar) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return str(value).lower() if isinstance(value, bool) else str(value)


def flush() -> Operation:
    """Flush, and wait until the flusher is idle: its disk operations must precede those of later operations."""
    return Operation("flush", lambda store: _flush(store, None), makes_durable=True)


def flush_database(database: str) -> Operation:
    """Flush one database. Points of other databases remain in memory, so the log is kept."""
    return Operation(f"flush {database}", lambda store: _flush(store, [database]))


def _flush(store: Store, databases: Sequence[str] | None) -> None:
    try:
        store.flush(databases)
    finally:
        with store._region.flusher.folders:
            pass


def merge() -> Operation:
    """Compact everything that can be compacted."""
    return Operation("merge", lambda store: store.merge(full=True))


def load(*rows: tuple[str, Sequence[int], int]) -> Operation:
    """LOAD a file with rows of devices below one database, atomically."""
    tablets = [_tablet(device, times, mark, ("x", "y"), _created_as) for device, times, mark in rows]
    path = "foreign/1.tsfile"

    def change(state: State) -> State:
        for tablet in tablets:
            state = _writing(lambda _, tablet=tablet: tablet)(state)
        return state

    def run(store: Store) -> None:
        disk = store._disk
        assert isinstance(disk, CrashDisk)
        disk.place(path, _file_of(tablets))
        level = max(len(split_path(DEVICES[tablet.device])) for tablet in tablets) - 1
        store.load(path, LoadOptions(level))

    name = f"load {[(d, list(t), m) for d, t, m in rows]}"
    return Operation(name, run, [change], makes_durable=True, may_be_refused=True)


def _file_of(tablets: Sequence[Tablet]) -> bytes:
    disk = CrashDisk()
    file = disk.create("made")
    writer = TsFileWriter(file, page_rows=4)
    for tablet in sorted(tablets, key=lambda t: t.device):
        how = [(name, c, DEFAULT_ENCODING[c.type]) for name, c in zip(tablet.measurements, tablet.columns, strict=True)]
        if tablet.aligned:
            columns = [AlignedColumn(name, c.type, encoding, Compressor.LZ4, c) for name, c, encoding in how]
            writer.write_aligned(tablet.device, tablet.times, columns)
        else:
            for name, c, encoding in how:
                writer.write_series(tablet.device, name, c.type, encoding, Compressor.LZ4, tablet.times, c.values)
    writer.finish()
    return disk.files["made"]


def keep_from(pattern: str, limit: int | None) -> Operation:
    """Set a TTL that keeps points from `limit` on; None unsets it.

    Expired points may still be on the disk. The operation first deletes them, so that no later rule shows them again.
    """

    def clear(store: Store) -> None:
        known = read_store(store)
        for device in DEVICES:
            expired = known.limit(device)
            if expired is not None:
                store.delete([f"{device}.*"], TimeRange(TIME_MIN, expired))

    def run(store: Store) -> None:
        clear(store)
        if limit is None:
            store.change_schema([UnsetTtl(pattern)])
        else:
            store.change_schema([SetTtl(pattern, NOW_MS - limit)])

    def change(state: State) -> State:
        limits = {p: found for p, found in state.limits.items() if p != pattern}
        return dataclasses.replace(state, limits=limits if limit is None else {**limits, pattern: limit}).kept()

    return Operation(f"keep {pattern} from {limit}", run, [change])


def capture() -> Operation:
    """Copy all files; a store opened on the copy must have the same content."""

    def run(store: Store) -> None:
        region, shelf = (
            store._region,
            CheckpointRegistry(f"{store._folder}/{SNAPSHOTS_FOLDER}", store._disk, store._clock),
        )
        region.flush_chosen(everything)
        with region.flusher.folders:
            with region.lock:
                captured = region.capture(everything)
            id_ = shelf.put(captured)
        copy = CrashDisk()
        copy.make_folder(FOLDER)
        check_node_file(FOLDER, store.options, copy)
        pull_partitions(partial(shelf.read, id_), captured, f"{FOLDER}/{GROUP_FOLDER}", copy)
        shelf.release(id_)
        copy.make_folder(f"{FOLDER}/meta")
        save_schema(copy, f"{FOLDER}/{SCHEMA_FILE}", captured.schema, captured.schema_index)
        restored = open_store(copy, replace(store.options, compaction=False))
        try:
            if read_store(restored) != read_store(store):
                raise Wrong(f"the copy holds {read_store(restored)}, and the store {read_store(store)}")
        finally:
            restored.close()

    return Operation("capture", lambda store: _with_storage_errors(lambda: run(store)), may_be_refused=True)


def _with_storage_errors(run: Callable[[], None]) -> None:
    try:
        run()
    except OSError as error:
        raise StorageError(str(error)) from error


def expire() -> Operation:
    """Delete files whose points have all expired."""
    return Operation("expire", lambda store: store.expire())


def _needed(store: Store, device: str, names: Sequence[str]) -> list[SchemaChange]:
    database = DEVICES[device]
    known = store.schema.device(device)
    missing = [name for name in names if known is None or name not in known.series]
    changes: list[SchemaChange] = []
    if not store.schema.is_database(database):
        changes.append(CreateDatabase(database))
    if missing:
        series = tuple(
            SeriesSchema(name, TYPES[name], DEFAULT_ENCODING[TYPES[name]], Compressor.LZ4) for name in missing
        )
        changes.append(CreateSeries(device, device in ALIGNED, series))
    return changes


#: A function that returns the type of the generated values of (device, measurement).
TypeOf = Callable[[str, str], DataType]


def _created_as(_device: str, name: str) -> DataType:
    return TYPES[name]


def _types_in(store: Store) -> TypeOf:
    def type_of(device: str, name: str) -> DataType:
        known = store.schema.device(device)
        series = None if known is None else known.series.get(name)
        return TYPES[name] if series is None else series.type

    return type_of


def _writing(make: Callable[[TypeOf], Tablet]) -> Change:
    def change(state: State) -> State:
        tablet = make(state.type)
        known = state.devices.get(tablet.device, Device(tablet.aligned, {}))
        series = {name: dict(points) for name, points in known.series.items()}
        for name in tablet.measurements:
            series.setdefault(name, {})
        fresh: dict[str, dict[int, Scalar]] = {name: {} for name in tablet.measurements}
        take_points(fresh, tablet.measurements, Block.timed(tablet.times, tablet.columns))
        for name, column in zip(tablet.measurements, tablet.columns, strict=True):
            type_ = state.type(tablet.device, name)
            series[name].update({t: as_type(v, column.type, type_) for t, v in fresh[name].items()})
        state = dataclasses.replace(state, databases=state.databases | {DEVICES[tablet.device]})
        return state.with_device(tablet.device, Device(tablet.aligned, series)).kept()

    return change


def _tablet(device: str, times: Sequence[int], mark: int, names: Sequence[str], type_of: TypeOf) -> Tablet:
    """Return rows whose values encode time, series and mark.

    Some values of aligned rows are null, but never the first value of a row.
    """
    array = np.array(times, np.int64)
    columns = []
    for place, name in enumerate(names):
        type_ = type_of(device, name)
        values: list[Scalar] = [_value(type_, time, mark) for time in times]
        if device in ALIGNED and place:
            values = [None if (time + mark + place) % 3 == 0 else v for time, v in zip(times, values, strict=True)]
        columns.append(Column.of(type_, values))
    return Tablet(device, tuple(names), array, tuple(columns), device in ALIGNED)


def _value(type_: DataType, time: int, mark: int) -> Scalar:
    match type_:
        case DataType.INT64 | DataType.TIMESTAMP:
            return time * 1_000 + mark
        case DataType.INT32:  # has more digits than a FLOAT, so a conversion rounds it
            return time * 100_000 + mark
        case DataType.BLOB:
            return f"{time}/{mark}".encode()
        case DataType.DOUBLE:
            return time + mark / 1_024
        case DataType.FLOAT:
            return float(time + mark % 64)
        case DataType.BOOLEAN:
            return (time + mark) % 3 == 0
        case _:
            return f"{time}/{mark}"
