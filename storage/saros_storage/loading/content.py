"""The content of a foreign TsFile, and the check that it fits a schema.

    file     root.a.d (aligned)  temp FLOAT      tree        root.a.d aligned, temp DOUBLE
    changes_for -> UserMistake 507: root.a.d.temp is DOUBLE, the file has FLOAT
             or -> CreateDatabase, CreateSeries: the missing schema

A type is never converted, and a device must be aligned in the file if and only if it is aligned in the schema. A file
that does not fit is refused, and the error names the conflicts. A series of the file also fits if its type is one that
the schema's series had before a change of type. A new series gets the encoding and compressor of its first chunk. Pure
over a mapped file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from saros_storage.base.errors import CorruptFile, UnsupportedFile, UserMistake
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.base.types import DEFAULT_COMPRESSOR, DEFAULT_ENCODING, TIME_MAX, TIME_MIN
from saros_storage.scan.snapshot import DeviceSpan
from saros_storage.scan.tsfile_access import DeviceIndex, SeriesIndex
from saros_storage.schema import (
    LEGAL_ENCODINGS,
    CreateDatabase,
    CreateSeries,
    DeviceSchema,
    SchemaChange,
    SchemaTree,
    SeriesSchema,
)
from saros_storage.tsfile.encoding_selection import declared_encoding
from saros_storage.tsfile.reader import TsFileReader

#: Maximum number of conflicts named in an error.
_CONFLICTS_MAX = 10


class ForeignDevice(msgspec.Struct, frozen=True):
    """A device of the file; `span` is None if the device has no points."""

    path: str
    aligned: bool
    series: tuple[SeriesSchema, ...]
    span: DeviceSpan | None


def content_of(reader: TsFileReader) -> tuple[ForeignDevice, ...]:
    """Return all devices of a file.

    Raises CorruptFile, UnsupportedFile (for the table model), or UserMistake: 509 for an invalid name, 2007 for a time
    that is out of range.
    """
    return tuple(_device(reader, path) for path in reader.devices())


def _device(reader: TsFileReader, path: str) -> ForeignDevice:
    if not path.startswith("root."):
        raise UnsupportedFile(reader.path, f"the table model ({path})")
    split_path(path)
    index = reader.device(path)
    assert index is not None
    series = tuple(_series(reader, index, found) for found in index.series.values())
    spans = [s.statistics for s in index.series.values() if s.statistics is not None]
    if spans and index.time is not None and index.time.statistics is not None:
        spans.append(index.time.statistics)
    if not spans:
        return ForeignDevice(path, index.aligned, series, None)
    span = DeviceSpan(min(s.start for s in spans), max(s.end for s in spans))
    if span.start <= TIME_MIN or span.end >= TIME_MAX:
        raise UserMistake(f"time {span.start} of {path} in {reader.path} is out of range", code=2007)
    return ForeignDevice(path, index.aligned, series, span)


def _series(reader: TsFileReader, device: DeviceIndex, found: SeriesIndex) -> SeriesSchema:
    nodes = split_path(f"{device.device}.{found.measurement}")
    if len(nodes) != len(split_path(device.device)) + 1:
        raise CorruptFile(reader.path, 0, f"{found.measurement} is not the name of one series")
    encoding, compressor = DEFAULT_ENCODING[found.type], DEFAULT_COMPRESSOR
    if found.chunks:
        layout = reader.layout(device, found, 0)
        compressor = layout.compressor
        if layout.encoding in LEGAL_ENCODINGS[found.type]:
            encoding = declared_encoding(layout.encoding, found.type)
    return SeriesSchema(found.measurement, found.type, encoding, compressor)


def databases_of(content: Sequence[ForeignDevice], schema: SchemaTree, level: int) -> dict[str, str]:
    """Return the database of each device; a database still to be created is `level` nodes below root.

    Raises UserMistake 509 if the path of a device is too short.
    """
    found = {}
    for device in content:
        database = schema.database_of(device.path)
        if database is None:
            nodes = split_path(device.path)
            if len(nodes) <= level:
                needed = f"databases are created {level} level(s) below root"
                raise UserMistake(f"{device.path} is in no database and is too short to create one: {needed}", code=509)
            database = join_nodes(nodes[: level + 1])
        found[device.path] = database
    return found


def changes_for(
    content: Sequence[ForeignDevice], databases: Iterable[str], schema: SchemaTree, file: str
) -> list[SchemaChange]:
    """Return the schema changes that the content needs. Raises UserMistake 507 or 511, which names the conflicts."""
    changes: list[SchemaChange] = [
        CreateDatabase(database) for database in dict.fromkeys(databases) if not schema.is_database(database)
    ]
    kinds: list[str] = []
    types: list[str] = []
    for device in content:
        known = schema.device(device.path)
        if known is not None and known.aligned != device.aligned:
            ours, theirs = ("aligned", "not") if known.aligned else ("not aligned", "aligned")
            kinds.append(f"{device.path} is {ours}, but {theirs} in the file")
            continue
        types += _conflicts(device, known)
        missing = tuple(s for s in device.series if known is None or s.measurement not in known.series)
        if missing:
            changes.append(CreateSeries(device.path, device.aligned, missing))
    for conflicts, code in ((kinds, 511), (types, 507)):
        if conflicts:
            raise UserMistake(f"{file} conflicts with the schema: {_listed(conflicts)}", code=code)
    return changes


def _conflicts(device: ForeignDevice, known: DeviceSchema | None) -> list[str]:
    found = []
    for series in device.series:
        ours = None if known is None else known.series.get(series.measurement)
        if ours is not None and ours.type is not series.type and series.type not in ours.earlier:
            path = f"{device.path}.{series.measurement}"
            found.append(f"{path} is {ours.type.name}, the file has {series.type.name}")
    return found


def _listed(conflicts: Sequence[str]) -> str:
    more = len(conflicts) - _CONFLICTS_MAX
    return "; ".join(conflicts[:_CONFLICTS_MAX]) + (f"; and {more} more" if more > 0 else "")
