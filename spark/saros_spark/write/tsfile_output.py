"""Write a task's rows to sealed TsFiles: sorted, with one value per time, and one file per database and time slice.

LOAD adopts a file of one database and one slice unchanged. It must split any other file, that is, rewrite all its
points. Types, encodings and compressors are those of existing series; new series have the defaults. A task needs the
memory for `points_max` points and for their sorting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from saros_server.api.arrow import to_column, to_times
from saros_spark.base.errors import SourceError
from saros_spark.read.catalogue import unit_of
from saros_spark.write.rows import Rows, describe_misfit
from saros_storage.base.arrow import arrow_type
from saros_storage.base.block import Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, split_path, split_series
from saros_storage.base.types import (
    DEFAULT_COMPRESSOR,
    DEFAULT_ENCODING,
    FLOATING_TYPES,
    Compressor,
    DataType,
    Encoding,
    Int64Array,
    TimeUnit,
)
from saros_storage.io.disk import LocalDisk
from saros_storage.schema import stored_encoding
from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

if TYPE_CHECKING:
    import saros

#: Up to `_ASKED_MAX` devices are queried separately. For more devices, one query covers all devices below their common
#: prefix, unless its result has `_SHOWN_MAX` rows.
_ASKED_MAX, _SHOWN_MAX = 4, 20_000


class Stored(msgspec.Struct, frozen=True):
    """The type, encoding and compressor of a series."""

    type: DataType
    encoding: Encoding
    compressor: Compressor

    @staticmethod
    def default(type_: DataType) -> Stored:
        """Return the defaults for a series that does not exist yet."""
        return Stored(type_, DEFAULT_ENCODING[type_], DEFAULT_COMPRESSOR)


class StorageSchema(Protocol):
    """The schema of existing series; it determines the types, the encodings and the files of the rows."""

    unit: TimeUnit
    #: The width of a slice in ticks, or None if files are not split by time.
    interval: int | None

    def database(self, device: str) -> str:
        """Return the database of a device; rows of different databases go to different files."""
        ...

    def series(self, devices: Sequence[str]) -> Mapping[str, tuple[Mapping[str, Stored], bool]]:
        """Return, for each device, its existing series by measurement, and whether the device is or will be aligned."""
        ...


class DatabaseSchema:
    """The schema of the database that loads the files. Implements `StorageSchema`."""

    def __init__(self, connection: saros.Connection, *, aligned: bool) -> None:
        self._connection = connection
        self._aligned = aligned
        self.unit = unit_of(connection)
        variables = {str(name): str(value) for name, value in connection.execute("show variables")}
        self.interval: int | None = int(variables["TimePartitionInterval"])
        self._level = int(variables["DefaultDatabaseLevel"])
        self._databases = sorted((str(row[0]) for row in connection.execute("show databases")), key=len, reverse=True)

    def database(self, device: str) -> str:
        """See `StorageSchema`. For a device outside of all databases, this is the database that LOAD will create."""
        known = (name for name in self._databases if device == name or device.startswith(name + "."))
        return next(known, None) or join_nodes(split_path(device)[: self._level + 1])

    def series(self, devices: Sequence[str]) -> Mapping[str, tuple[Mapping[str, Stored], bool]]:
        """See `StorageSchema`."""
        found: dict[str, dict[str, Stored]] = {device: {} for device in devices}
        for path, _, _, type_, encoding, compressor, *_ in self._show("timeseries", devices, "viewtype=BASE"):
            device, measurement = split_series(str(path))
            if device in found:
                kind = DataType[str(type_)]
                stored = Stored(kind, stored_encoding(kind, Encoding[str(encoding)]), Compressor[str(compressor)])
                found[device][measurement] = stored
        known = [device for device, series in found.items() if series]
        aligned = {str(row[0]): str(row[1]) == "true" for row in self._show("devices", known)}
        return {device: (series, aligned.get(device, self._aligned)) for device, series in found.items()}

    def _show(self, what: str, devices: Sequence[str], where: str | None = None) -> list[tuple[object, ...]]:
        """Return the rows of a SHOW statement for the devices. There may also be rows for other devices.

        One statement covers many devices if possible.
        """
        condition = "" if where is None else f" where {where}"
        if len(devices) > _ASKED_MAX:
            text = f"show {what} {_above(devices)}.**{condition} limit {_SHOWN_MAX}"
            rows = self._connection.execute(text).fetchall()
            if len(rows) < _SHOWN_MAX:
                return rows
        of = ".*" if what == "timeseries" else ""
        texts = (f"show {what} {device}{of}{condition}" for device in devices)
        return [row for text in texts for row in self._connection.execute(text)]


def _above(devices: Sequence[str]) -> str:
    """Return the longest path that is an ancestor of all devices."""
    parents = [split_path(device)[:-1] for device in devices]
    ends = zip(min(parents), max(parents), strict=False)
    return join_nodes([one for one, _ in takewhile(lambda nodes: nodes[0] == nodes[1], ends)])


class Unknown:
    """The schema of files that belong to no database. Implements `StorageSchema`."""

    def __init__(self, unit: TimeUnit, *, aligned: bool) -> None:
        self.unit = unit
        self.interval: int | None = None
        self._aligned = aligned

    def database(self, device: str) -> str:  # noqa: ARG002 - all devices share the files
        """See `StorageSchema`."""
        return ""

    def series(self, devices: Sequence[str]) -> Mapping[str, tuple[Mapping[str, Stored], bool]]:
        """See `StorageSchema`."""
        return {device: ({}, self._aligned) for device in devices}


class Sealer:
    """Writes the rows of one task to sealed TsFiles: call `add` for all rows, then `finish`."""

    def __init__(self, known: StorageSchema, folder: Path, name: str, *, points_max: int) -> None:
        self._known = known
        self._folder = folder
        self._name = name
        self._points_max = points_max
        self._waiting: dict[str, list[Rows]] = {}
        self._points = 0
        self._files: list[str] = []

    def add(self, rows: Rows) -> None:
        """Buffer rows; write files when there are `points_max` points. Raises SourceError (naming a row), OSError."""
        self._waiting.setdefault(rows.device, []).append(rows)
        self._points += len(rows.times) * len(rows.columns)
        if self._points >= self._points_max:
            self._write()

    def finish(self) -> list[str]:
        """Write the remaining rows, and return the paths of all files. Raises SourceError (naming a row), OSError."""
        self._write()
        return self._files

    def _write(self) -> None:
        pieces: dict[tuple[str, int], list[_Piece]] = {}
        devices = sorted(self._waiting)
        known = self._known.series(devices)
        for device in devices:
            for number, piece in self._pieces(device, self._waiting[device], *known[device]):
                pieces.setdefault((self._known.database(device), number), []).append(piece)
        for key in sorted(pieces):
            self._files.append(self._write_file(pieces[key]))
        self._waiting, self._points = {}, 0

    def _write_file(self, pieces: list[_Piece]) -> str:
        path = str(self._folder / f"{self._name}-{len(self._files)}.tsfile")
        Path(path).touch()  # readable like the user's other files, since only their owner can read a database's files
        file = LocalDisk().create(path)
        try:
            writer = TsFileWriter(file)
            for piece in pieces:
                piece.write(writer)
            writer.finish()
            file.sync()
        finally:
            file.close()
        return path

    def _pieces(
        self, device: str, parts: list[Rows], stored: Mapping[str, Stored], aligned: bool
    ) -> Iterator[tuple[int, _Piece]]:
        """Yield the device's rows for each time slice, sorted by time; of equal times, only the last value remains."""
        times, columns = self._columns(device, parts, stored)
        times, columns = _sorted(times, columns)
        numbers = times // interval if (interval := self._known.interval) else np.zeros(len(times), np.int64)
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(times)]
        for start, stop in pairwise(bounds):
            part = {
                name: (stored.get(name) or Stored.default(column.type), column.slice(start, stop))
                for name, column in columns.items()
            }
            yield int(numbers[start]), _Piece(device, times[start:stop], part, aligned)

    def _columns(
        self, device: str, parts: list[Rows], stored: Mapping[str, Stored]
    ) -> tuple[Int64Array, dict[str, Column]]:
        names = sorted({name for part in parts for name in part.columns})
        try:
            times = np.concatenate([to_times(part.times, self._known.unit, "UTC") for part in parts])
            columns = {}
            for name in names:
                type_ = next(part.columns[name].type for part in parts if name in part.columns)
                whole = pa.concat_arrays([part.columns.get(name, pa.nulls(len(part.times), type_)) for part in parts])
                columns[name] = self._column(name, whole, stored[name].type if name in stored else None)
        except (UserMistake, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise self._explained(device, parts, stored, error) from error
        return times, columns

    def _column(self, name: str, array: pa.Array, type_: DataType | None) -> Column:
        if type_ is None:
            return to_column(name, array, self._known.unit)
        text = pa.types.is_string(array.type) or pa.types.is_binary(array.type)
        if text != type_.is_text or (pa.types.is_floating(array.type) and type_ not in FLOATING_TYPES):
            raise UserMistake(f"a column of {array.type} does not fit {type_.name}", code=507)
        cast = array.cast(arrow_type(type_, pa.timestamp(self._known.unit.suffix, "UTC")))
        column = to_column(name, cast, self._known.unit)
        return Column(type_, column.values, column.valid)

    def _explained(self, device: str, parts: list[Rows], stored: Mapping[str, Stored], error: Exception) -> SourceError:
        types = {name: how.type for name, how in stored.items()}
        for part in parts:
            said = describe_misfit(device, part.times, part.columns, types, self._known.unit.suffix)
            if said is not None:
                return SourceError(said)
        return SourceError(f"rows of {device}: {error}")


def _sorted(times: Int64Array, columns: dict[str, Column]) -> tuple[Int64Array, dict[str, Column]]:
    """Sort rows by time, and merge rows with equal times: each column keeps its last value that is not null."""
    if (times[1:] > times[:-1]).all():
        return times, columns
    distinct, slots = np.unique(times, return_inverse=True)
    return distinct, {name: _scatter(column, slots, len(distinct)) for name, column in columns.items()}


def _scatter(column: Column, slots: Int64Array, rows: int) -> Column:
    """Return the column with row i at `slots[i]`. The last value that is not null wins; empty slots are null."""
    source = np.full(rows, -1, np.int64)
    present = np.arange(len(column)) if column.valid is None else np.flatnonzero(column.valid)
    np.maximum.at(source, slots[present], present)
    valid = source >= 0
    taken = Column(column.type, column.values).take(np.maximum(source, 0))
    return Column(column.type, taken.values, None if valid.all() else valid)


class _Piece(msgspec.Struct, frozen=True, eq=False):
    """A device's rows in one slice."""

    device: str
    times: Int64Array
    columns: Mapping[str, tuple[Stored, Column]]
    aligned: bool

    def write(self, writer: TsFileWriter) -> None:
        """Write the rows as one aligned chunk group, or as one chunk per series."""
        if self.aligned:
            columns = [
                AlignedColumn(name, how.type, how.encoding, how.compressor, column)
                for name, (how, column) in self.columns.items()
                if column.valid is None or column.valid.any()
            ]
            writer.write_aligned(self.device, self.times, columns)
            return
        for name, (how, column) in self.columns.items():
            if column.valid is None:
                writer.write_series(
                    self.device, name, how.type, how.encoding, how.compressor, self.times, column.values
                )
            elif column.valid.any():
                places = np.flatnonzero(column.valid)
                values = column.take(places).values
                writer.write_series(
                    self.device, name, how.type, how.encoding, how.compressor, self.times[places], values
                )
