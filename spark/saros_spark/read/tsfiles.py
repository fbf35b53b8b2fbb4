"""Folders of TsFiles as relations: schema, parts, and the rows of a part. This module does not use Spark's classes.

    Folder(options)  -> .schema     devices and types from the files' indexes; keys of folders such as plant=north
                     -> .parts()    (file, devices, times) that statistics do not exclude
    read_part(...)   -> record batches

Each file is read independently, so a point in two files appears in two rows. The deletions of a database (`.mods`) are
ignored. To get one value per time, `LOAD` the files into a database.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from saros_server.api.arrow import arrow_schema, to_arrow
from saros_spark.base.errors import SourceError
from saros_spark.base.options import FileOptions
from saros_spark.base.times import parse_ticks
from saros_spark.base.types import common_type, field_of, instant_type, named_type
from saros_spark.read.batches import conform, melt
from saros_spark.read.catalogue import Catalogue, canonical
from saros_spark.read.planning import cut
from saros_storage.base.arrow import arrow_type
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.paths import PathPattern, parse_pattern, split_path, unquote_node
from saros_storage.base.types import TIME_MAX, TIME_MIN, TIME_UNITS, DataType, Int64Array
from saros_storage.io.disk import LocalDisk
from saros_storage.scan.tsfile_access import ChunkMeta, DeviceIndex, SeriesIndex
from saros_storage.tsfile.reader import TsFileReader

_FIXED = ("time", "device", "measurement", "value")
#: The number of rows of a batch for Spark.
_BATCH_ROWS = 50_000


class Part(msgspec.Struct, frozen=True):
    """The part of a file that one task reads: devices in [start, end). `keys` has its folders' `key=value`."""

    file: str
    devices: tuple[str, ...]
    start: int | None
    end: int | None
    keys: tuple[tuple[str, str], ...]


class _Found(msgspec.Struct, frozen=True):
    """A device in a file: the types of the requested series, the estimated number of rows, the first and last time."""

    types: Mapping[str, DataType]
    rows: int
    first: int
    last: int


class Folder:
    """Folders of TsFiles that Spark reads as one table. Each planning process has one object."""

    def __init__(self, options: FileOptions) -> None:
        self.options = options
        self._unit = TIME_UNITS[options.time_unit]

    @cached_property
    def files(self) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
        """The files, sorted by name, each with the keys and values of its folders (`key=value`). Raises SourceError."""
        found = []
        for text in self.options.paths:
            root = Path(text)
            if not root.exists():
                raise SourceError(f"there is no file or folder {text}")
            inside = [root] if root.is_file() else sorted(root.rglob("*.tsfile"))
            for file in inside:
                relative = file.relative_to(root).parts[:-1] if file != root else ()
                if any(part.startswith(("_", ".")) for part in relative):
                    continue
                if self.options.glob is None or fnmatch.fnmatch(file.name, self.options.glob):
                    pairs = (part.split("=", 1) for part in relative if "=" in part)
                    found.append((str(file), tuple((key, value) for key, value in pairs)))
        if not found:
            raise SourceError(f"there are no *.tsfile files in {', '.join(self.options.paths)}")
        names = {tuple(key for key, _ in keys) for _, keys in found}
        if len(names) > 1:
            different = " and ".join(map(str, sorted(names)[:2]))
            raise SourceError(f"the files' folders have different keys: {different}; read them separately")
        return found

    @cached_property
    def _contents(self) -> dict[str, dict[str, _Found]]:
        """For each file, the devices that match the patterns and have requested series."""
        wanted = frozenset(canonical(name) for name in self.options.columns)
        patterns = [_pattern(text) for text in self.options.devices]
        return {file: _contents(file, wanted, patterns) for file, _ in self.files}

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as Spark sees them. Raises SourceError."""
        named = {f"{file}: {d}": f.types for file, devices in self._contents.items() for d, f in devices.items()}
        if not named:
            raise SourceError("no file has a series of the requested devices and columns")
        types = Catalogue(self._unit, named).measurements()
        instant = instant_type(self.options.time_type, self._unit)
        fields = [pa.field("time", instant), pa.field("device", pa.string())]
        if self.options.layout == "narrow":
            value = self.options.value_type
            type_ = named_type(value) if value else arrow_type(common_type(types), instant)
            fields += [pa.field("measurement", pa.string()), pa.field("value", type_)]
        else:
            fields += [field_of(unquote_node(name), type_, instant) for name, type_ in types.items()]
        known = [field.name.lower() for field in fields]
        for key, type_ in self._keys().items():
            if key.lower() in known:
                raise SourceError(f"the folders' key {key} is a column of the files, too; rename the folders")
            fields.append(pa.field(key, type_))
        repeated = {name for name in known if known.count(name) > 1} & {"time", "device"}
        if repeated:
            raise SourceError(f"a measurement is named {repeated.pop()}; choose others with the option columns")
        return pa.schema(fields)

    def _keys(self) -> dict[str, pa.DataType]:
        """Return the types of the folders' keys: integers if all values are integers, otherwise text."""
        values: dict[str, list[str]] = {}
        for _, keys in self.files:
            for key, value in keys:
                values.setdefault(key, []).append(value)
        return {
            k: pa.int64() if all(re.fullmatch(r"-?\d{1,18}", v) for v in vs) else pa.string()
            for k, vs in values.items()
        }

    def parts(self) -> list[Part]:
        """Return the parts of all tasks, without the devices that statistics exclude from the times to read."""
        options = self.options
        start = None if options.start is None else parse_ticks(options.start, self._unit, "startTime")
        end = None if options.end is None else parse_ticks(options.end, self._unit, "endTime")
        parts: list[Part] = []
        for file, keys in self.files:
            waiting: list[str] = []
            points = 0
            for device, found in self._contents[file].items():
                if (start is not None and found.last < start) or (end is not None and found.first >= end):
                    continue
                more = found.rows * len(found.types)
                if more > options.points_per_partition:
                    pieces = -(-more // options.points_per_partition)
                    spans = cut((start, end), (found.first, found.last), pieces)
                    parts += [Part(file, (device,), a, b, keys) for a, b in spans]
                    continue
                if waiting and points + more > options.points_per_partition:
                    parts.append(Part(file, tuple(waiting), start, end, keys))
                    waiting, points = [], 0
                waiting.append(device)
                points += more
            if waiting:
                parts.append(Part(file, tuple(waiting), start, end, keys))
        return parts


def _pattern(text: str) -> PathPattern:
    try:
        return parse_pattern(text)
    except UserMistake as error:
        raise SourceError(f"devices: {error}") from error


def _open(file: str) -> TsFileReader:
    try:
        return TsFileReader(file, LocalDisk().map(file))
    except (StorageError, OSError) as error:
        raise SourceError(f"{file} cannot be read as a TsFile: {error}") from error


def _contents(file: str, wanted: frozenset[str], patterns: Sequence[PathPattern]) -> dict[str, _Found]:
    reader = _open(file)
    found = {}
    for path in reader.devices():
        if patterns and not any(pattern.matches(split_path(path)) for pattern in patterns):
            continue
        device = reader.device(path)
        assert device is not None
        series = {n: s for n, s in device.series.items() if (not wanted or n in wanted) and s.statistics is not None}
        known = [s.statistics for s in series.values() if s.statistics is not None]
        if known:
            types = {name: one.type for name, one in series.items()}
            rows = max(one.count for one in known)
            found[path] = _Found(types, rows, min(one.start for one in known), max(one.end for one in known))
    return found


def read_part(part: Part, options: FileOptions, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a part's rows with the schema `target`, decoding only the necessary pages. Raises SourceError."""
    keys = dict(part.keys)
    own = [field for field in target if field.name not in keys]
    narrow = options.layout == "narrow"
    wanted = {canonical(name) for name in options.columns}
    if not narrow:
        asked = {canonical(field.name) for field in own if field.name not in _FIXED[:2]}
        wanted = asked & wanted if wanted else asked
    reader = _open(part.file)
    span = (TIME_MIN if part.start is None else part.start, TIME_MAX if part.end is None else part.end)
    for path in part.devices:
        device = reader.device(path)
        assert device is not None
        names = [n for n, s in device.series.items() if (n in wanted or (narrow and not wanted)) and s.statistics]
        for block, types in _blocks(reader, device, names, span, every_row=not narrow):
            for start in range(0, block.rows, _BATCH_ROWS):
                rows = _rows(block.slice(start, start + _BATCH_ROWS), path, names, types, options)
                for batch in _shaped(rows, pa.schema(own), narrow=narrow):
                    yield _keyed(batch, target, keys)


def _rows(
    block: Block, device: str, names: Sequence[str], types: Sequence[DataType], options: FileOptions
) -> pa.RecordBatch:
    unit = TIME_UNITS[options.time_unit]
    schema = arrow_schema(list(map(unquote_node, names)), types, timed=True, unit=unit, zone="UTC")
    batch = to_arrow(block, schema)
    arrays = [batch.column(0), pa.repeat(pa.scalar(device), block.rows), *batch.columns[1:]]
    return pa.RecordBatch.from_arrays(arrays, names=["time", "device", *schema.names[1:]])


def _shaped(rows: pa.RecordBatch, own: pa.Schema, *, narrow: bool) -> Iterator[pa.RecordBatch]:
    if not narrow:
        yield conform(rows, own, {})
        return
    instant = own.field(0).type
    fields = [pa.field(f.name, instant if pa.types.is_timestamp(f.type) else f.type) for f in rows.schema]
    yield from melt(conform(rows, pa.schema(fields), {}), own)


def _keyed(batch: pa.RecordBatch, target: pa.Schema, keys: Mapping[str, str]) -> pa.RecordBatch:
    arrays = []
    for field in target:
        if field.name in keys:
            arrays.append(pa.repeat(pa.scalar(keys[field.name]).cast(field.type), batch.num_rows))
        else:
            arrays.append(batch.column(field.name))
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def _blocks(
    reader: TsFileReader, device: DeviceIndex, names: Sequence[str], span: tuple[int, int], *, every_row: bool
) -> Iterator[tuple[Block, list[DataType]]]:
    """Yield blocks of a device's rows, with a column per name, and the columns' types."""
    types = [device.series[name].type for name in names]
    if not names:
        return
    if device.time is not None:
        for chunk, meta in enumerate(device.time.chunks):
            block = _chunk(reader, device, names, chunk, meta, span)
            if block is not None:
                yield (block.without_empty_rows() if every_row else block), types
        return
    columns = [_series(reader, device, device.series[name], span) for name in names]
    yield _joined(columns), types


def _series(
    reader: TsFileReader, device: DeviceIndex, series: SeriesIndex, span: tuple[int, int]
) -> tuple[Int64Array, Column]:
    """Return a series' points in the span."""
    parts = []
    for chunk, meta in enumerate(series.chunks):
        block = _chunk(reader, device, [series.measurement], chunk, meta, span)
        if block is not None:
            parts.append(block)
    if not parts:
        return np.empty(0, np.int64), Column.nulls(series.type, 0)
    whole = Block.concat(parts)
    return whole.times, whole.columns[0]


def _chunk(
    reader: TsFileReader,
    device: DeviceIndex,
    names: Sequence[str],
    chunk: int,
    meta: ChunkMeta,
    span: tuple[int, int],
) -> Block | None:
    """Return a chunk's rows in the span, or None if there are no rows. Only pages that overlap the span are decoded."""
    start, end = span
    if meta.statistics is None or meta.statistics.end < start or meta.statistics.start >= end:
        return None
    pages = reader.pages(device, names, chunk)
    inside = [n for n, page in enumerate(pages) if page.end >= start and page.start < end]
    if not inside:
        return None
    block, _ = reader.read(device, names, chunk, inside[0], inside[-1] + 1)
    first, stop = np.searchsorted(block.times, (start, end))
    return block.slice(int(first), int(stop)) if stop > first else None


def _joined(columns: Sequence[tuple[Int64Array, Column]]) -> Block:
    """Join series into rows, with one row for each time at which any series has a point."""
    first = columns[0][0]
    if all(len(times) == len(first) and np.array_equal(times, first) for times, _ in columns):
        return Block.timed(first, [column for _, column in columns])
    times = np.unique(np.concatenate([times for times, _ in columns]))
    return Block.timed(times, [_scatter(column, np.searchsorted(times, own), len(times)) for own, column in columns])


def _scatter(column: Column, places: Int64Array, rows: int) -> Column:
    """Return the column with its row i at `places[i]`, and null elsewhere."""
    if not len(column):
        return Column.nulls(column.type, rows)
    source = np.zeros(rows, np.int64)
    valid = np.zeros(rows, np.bool_)
    source[places] = np.arange(len(column))
    valid[places] = column.present
    return Column(column.type, Column(column.type, column.values).take(source).values, valid)
