"""Calls about databases, series, templates and deletions. They are executed as SQL statements.

All names from clients are parsed and quoted first (`saros_server.api.quoting`). Calls about several objects process
each of them, and answer with a status for each if any fails.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from saros_server.api.errors import BadMessage
from saros_server.api.iotdb_codes import UNSUPPORTED
from saros_server.api.quoting import listed, path, pattern, properties, quoted_name, string, whole_number
from saros_server.thrift.queries import each
from saros_server.thrift.results import first_column
from saros_server.thrift.sessions import ThriftSession, WrongCall
from saros_server.thrift.status_codes import DONE
from saros_server.thrift.structs import (
    ActivateTemplate,
    AppendTemplate,
    CreateAlignedTimeseries,
    CreateMultiTimeseries,
    CreateTemplate,
    CreateTimeseries,
    DeleteData,
    DropTemplate,
    Paths,
    PruneTemplate,
    QueryTemplate,
    QueryTemplateAnswer,
    SetStorageGroup,
    SetTemplate,
    Status,
    UnsetTemplate,
)
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import Compressor, DataType, Encoding

_Number = TypeVar("_Number", bound=IntEnum)
_Item = TypeVar("_Item")
_INT = struct.Struct(">i")


class _Series(msgspec.Struct, frozen=True):
    """The definition of a series; `name` is a path or a single node."""

    name: str
    type: int
    encoding: int
    compressor: int
    alias: str = ""
    properties: Mapping[str, str] = msgspec.field(default_factory=dict)
    tags: Mapping[str, str] = msgspec.field(default_factory=dict)
    attributes: Mapping[str, str] = msgspec.field(default_factory=dict)

    def sql(self) -> str:
        """Return the definition as SQL. Raises UserMistake."""
        words = [self.name + (f"({quoted_name(self.alias)})" if self.alias else "")]
        words.append(_name_of(DataType, self.type, "data type"))
        words.append(f"encoding={_name_of(Encoding, self.encoding, 'encoding')}")
        words.append(f"compressor={_name_of(Compressor, self.compressor, 'compressor')}")
        words += [f"{string(key)}={string(value)}" for key, value in self.properties.items()]
        words += [f"tags({properties(self.tags)})"] if self.tags else []
        words += [f"attributes({properties(self.attributes)})"] if self.attributes else []
        return " ".join(words)


def _name_of(numbers: type[_Number], number: int, what: str) -> str:
    """Return the name of an IoTDB number. Raises UserMistake."""
    try:
        return numbers(number).name
    except ValueError as error:
        raise UserMistake(f"{what} {number} is not one of {', '.join(n.name for n in numbers)}", code=507) from error


def _items(values: Sequence[_Item] | None, count: int, what: str, missing: _Item) -> Sequence[_Item]:
    """Return a list with an item for each of `count` series; `missing` fills an absent one. Raises BadMessage."""
    if not values:
        return [missing] * count
    if len(values) != count:
        raise BadMessage(f"{count} series and {len(values)} {what}: give one for each series")
    return values


# ---------------------------------------------------------------------------------------------- databases and series


def create_database(session: ThriftSession, request: SetStorageGroup) -> Status:
    """Call `setStorageGroup`."""
    return session.run(f"create database {path(request.database)}")


def delete_databases(session: ThriftSession, request: Paths) -> Status:
    """Call `deleteStorageGroups`."""
    return session.run(f"delete database {listed(map(pattern, request.paths))}")


def create_timeseries(session: ThriftSession, request: CreateTimeseries) -> Status:
    """Call `createTimeseries`."""
    series = _Series(
        path(request.path),
        request.type,
        request.encoding,
        request.compressor,
        request.alias or "",
        request.properties or {},
        request.tags or {},
        request.attributes or {},
    )
    return session.run(f"create timeseries {series.sql()}")


def create_aligned_timeseries(session: ThriftSession, request: CreateAlignedTimeseries) -> Status:
    """Call `createAlignedTimeseries`: create either all of the given series of one device or none of them."""
    count = len(request.measurements)
    columns = zip(
        map(quoted_name, request.measurements),
        _items(request.types, count, "data types", 0),
        _items(request.encodings, count, "encodings", 0),
        _items(request.compressors, count, "compressors", 0),
        _items(request.aliases, count, "aliases", ""),
        [dict[str, str]()] * count,
        _items(request.tags, count, "maps of tags", {}),
        _items(request.attributes, count, "maps of attributes", {}),
        strict=True,
    )
    definitions = listed(_Series(*column).sql() for column in columns)
    return session.run(f"create aligned timeseries {path(request.device)}({definitions})")


def create_multi_timeseries(session: ThriftSession, request: CreateMultiTimeseries) -> Status:
    """Call `createMultiTimeseries`: each series independently."""
    count = len(request.paths)
    rows = zip(
        request.paths,
        _items(request.types, count, "data types", 0),
        _items(request.encodings, count, "encodings", 0),
        _items(request.compressors, count, "compressors", 0),
        _items(request.aliases, count, "aliases", ""),
        _items(request.properties, count, "maps of properties", {}),
        _items(request.tags, count, "maps of tags", {}),
        _items(request.attributes, count, "maps of attributes", {}),
        strict=True,
    )
    series = [_Series(*row) for row in rows]
    return each(series, lambda one: session.run(f"create timeseries {replace(one, name=path(one.name)).sql()}"))


def delete_timeseries(session: ThriftSession, request: Paths) -> Status:
    """Call `deleteTimeseries`."""
    return session.run(f"delete timeseries {listed(map(pattern, request.paths))}")


def delete_data(session: ThriftSession, request: DeleteData) -> Status:
    """Call `deleteData`: delete the points from `start` to `end`, inclusive."""
    between = f"time >= {whole_number(request.start)} and time <= {whole_number(request.end)}"
    return session.run(" ".join(("delete from", listed(map(pattern, request.paths)), "where", between)))


# ---------------------------------------------------------------------------------------------- templates


def create_template(session: ThriftSession, request: CreateTemplate) -> Status:
    """Call `createSchemaTemplate`."""
    aligned, series = _template_of(request.serialized)
    columns = f"({', '.join(one.sql() for one in series)})" if series else ""
    return session.run(f"create device template {quoted_name(request.name)} {'aligned ' if aligned else ''}{columns}")


def append_template(session: ThriftSession, request: AppendTemplate) -> Status:
    """Call `appendSchemaTemplate`."""
    count = len(request.measurements)
    columns = zip(
        map(quoted_name, request.measurements),
        _items(request.types, count, "data types", 0),
        _items(request.encodings, count, "encodings", 0),
        _items(request.compressors, count, "compressors", 0),
        strict=True,
    )
    definitions = listed(_Series(*column).sql() for column in columns)
    return session.run(f"alter device template {quoted_name(request.name)} add ({definitions})")


def prune_template(_: ThriftSession, __: PruneTemplate) -> Status:
    """Refuse `pruneSchemaTemplate`, which IoTDB does not support since 1.0 either."""
    raise WrongCall(UNSUPPORTED, "measurements cannot be removed from a template: make another template")


def set_template(session: ThriftSession, request: SetTemplate) -> Status:
    """Call `setSchemaTemplate`."""
    return session.run(f"set device template {quoted_name(request.name)} to {path(request.path)}")


def unset_template(session: ThriftSession, request: UnsetTemplate) -> Status:
    """Call `unsetSchemaTemplate`."""
    return session.run(f"unset device template {quoted_name(request.name)} from {path(request.path)}")


def drop_template(session: ThriftSession, request: DropTemplate) -> Status:
    """Call `dropSchemaTemplate`."""
    return session.run(f"drop device template {quoted_name(request.name)}")


def activate_template(session: ThriftSession, request: ActivateTemplate) -> Status:
    """Call `createTimeseriesUsingSchemaTemplate`."""
    return each(request.devices, lambda device: session.run(_activation(device)))


def _activation(device: str) -> str:
    return f"create timeseries using device template on {path(device)}"


class _TemplateQuery(IntEnum):
    """The kinds of `querySchemaTemplate`."""

    COUNT_MEASUREMENTS = 0
    IS_MEASUREMENT = 1
    PATH_EXIST = 2
    SHOW_MEASUREMENTS = 3
    SHOW_TEMPLATES = 4
    SHOW_SET_TEMPLATES = 5
    SHOW_USING_TEMPLATES = 6


def query_template(session: ThriftSession, request: QueryTemplate) -> QueryTemplateAnswer:
    """Call `querySchemaTemplate`."""
    kind = _TemplateQuery(request.kind) if request.kind in set(_TemplateQuery) else None
    if kind is None:
        raise WrongCall(UNSUPPORTED, f"query {request.kind} of templates: use SHOW DEVICE TEMPLATES and the like")
    if kind is _TemplateQuery.SHOW_TEMPLATES:
        return _listing(kind, session, "show device templates")
    name = quoted_name(request.name)
    if kind is _TemplateQuery.SHOW_SET_TEMPLATES:
        return _listing(kind, session, f"show paths set device template {name}")
    if kind is _TemplateQuery.SHOW_USING_TEMPLATES:
        return _listing(kind, session, f"show paths using device template {name}")
    nodes = _listing(kind, session, f"show nodes in device template {name}").measurements or []
    if kind is _TemplateQuery.COUNT_MEASUREMENTS:
        return QueryTemplateAnswer(DONE, kind, count=len(nodes))
    if kind is _TemplateQuery.SHOW_MEASUREMENTS:
        return QueryTemplateAnswer(DONE, kind, measurements=nodes)
    return QueryTemplateAnswer(DONE, kind, result=(request.measurement or "") in nodes)


def _listing(kind: _TemplateQuery, session: ThriftSession, text: str) -> QueryTemplateAnswer:
    """Return the first column of a statement's rows."""
    return QueryTemplateAnswer(DONE, kind, measurements=first_column(session.execute(text)))


def _template_of(data: bytes) -> tuple[bool, list[_Series]]:
    """Decode a serialized template: return whether it is aligned, and its series. Raises BadMessage."""
    reader = _Reader(data)
    try:
        reader.text()
        aligned = bool(reader.byte())
        return aligned, list(_series_of(reader))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise BadMessage(f"a template that cannot be read: {error}") from error


def _series_of(reader: _Reader) -> Iterator[_Series]:
    while not reader.is_at_end:
        prefix, _ = reader.text(), reader.byte()
        if prefix:
            raise UserMistake(f"a template has one level, and {prefix} is a second one: name its series", code=510)
        yield _Series(quoted_name(reader.text()), reader.byte(), reader.byte(), reader.byte())


class _Reader:
    """A reader of bytes from their start to their end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def is_at_end(self) -> bool:
        """True if all bytes were read."""
        return self._at >= len(self._data)

    def byte(self) -> int:
        """Return the next byte. Raises IndexError."""
        self._at += 1
        return self._data[self._at - 1]

    def text(self) -> str:
        """Return the next text, which is preceded by its length.

        Raises struct.error, IndexError, UnicodeDecodeError.
        """
        (size,) = _INT.unpack_from(self._data, self._at)
        start, self._at = self._at + 4, self._at + 4 + size
        if not start <= self._at <= len(self._data):
            raise IndexError(f"a text of {size} bytes")
        return self._data[start : self._at].decode()
