"""Execute the schema statements CREATE, DROP and ALTER as changes of the store.

Each function executes one kind of statement and returns the number of changed objects, or raises UserMistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from saros_engine.base.authorized_schema import SchemaReader
from saros_engine.base.database import Database
from saros_engine.catalog.declared_series import declared_compressor, declared_encoding, declared_type, series_of
from saros_engine.catalog.tag_keys import require_not_internal
from saros_engine.catalog.templates import forget_places, given_by
from saros_engine.catalog.views import is_view, require_no_views, source_of_alias
from saros_engine.statements.alter_series import altered
from saros_engine.statements.view_statements import alter_view, forget_views
from saros_engine.writes.writer import Writer
from saros_grammar.syntax.ast import (
    AlterDatabase,
    AlterStorage,
    AlterTimeseries,
    CreateDatabase,
    CreateTimeseries,
    DeleteDatabases,
    DeleteTimeseries,
    PathExpression,
    SetTtl,
    UnsetTtl,
)
from saros_storage import schema
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, parse_pattern, split_path, split_series
from saros_storage.base.types import DataType
from saros_storage.base.write_request import WriteRequest

Matched = tuple[schema.DeviceSchema, schema.SeriesSchema]
_TEMPLATE_SERIES = 516
#: The longest TTL: about 285 years, which fit into INT64 as nanoseconds.
_TTL_MS_MAX = 9_000_000_000_000


def create_database(store: Database, statement: CreateDatabase, request: WriteRequest) -> int:
    """Execute CREATE DATABASE."""
    if statement.path.has_wildcard:
        raise UserMistake(f"{statement.path} is a pattern: a database needs one path", code=509)
    if statement.ttl is not None:
        _check_ttl(statement.ttl)
    store.change_schema([schema.CreateDatabase(str(statement.path))], request=request)
    if statement.ttl is not None:
        change_ttl(store, SetTtl(statement.path, statement.ttl), request)
    return 1


def alter_database(store: Database, statement: AlterDatabase, request: WriteRequest) -> int:
    """Execute ALTER DATABASE."""
    if not store.schema.is_database(str(statement.path)):
        raise UserMistake(f"Path [{statement.path}] is not a database", code=504)
    return 0 if statement.ttl is None else change_ttl(store, SetTtl(statement.path, statement.ttl), request)


def delete_databases(store: Database, statement: DeleteDatabases, request: WriteRequest) -> int:
    """Execute DROP DATABASE. Raises UserMistake 508 if the paths match no database."""
    databases: dict[str, None] = {}
    for path in statement.paths:
        databases |= dict.fromkeys(store.schema.match_databases(parse_pattern(str(path))))
    if not databases:
        raise UserMistake(f"Path [{', '.join(map(str, statement.paths))}] is not a database", code=508)
    for database in databases:
        store.delete_database(database, request=request)
        _forget_ttl(store, _patterns_of_database(database), request.unnumbered)
        forget_places(store, database, request.unnumbered)
        forget_views(store, database, request.unnumbered)
    return len(databases)


def change_ttl(store: Database, statement: SetTtl | UnsetTtl, request: WriteRequest) -> int:
    """Execute SET TTL or UNSET TTL. For a database, this also changes the rule for all paths below the database.

    Raises UserMistake 508 if there is no rule to remove.
    """
    path = str(statement.path)
    named = path.removesuffix(".**") if isinstance(statement, UnsetTtl) else path
    patterns = _patterns_of_database(named) if store.schema.is_database(named) else (path,)
    if isinstance(statement, UnsetTtl):
        if not _forget_ttl(store, patterns, request):
            raise UserMistake(f"{path} has no TTL of its own: see SHOW ALL TTL", code=508)
        return 1
    milliseconds = statement.milliseconds
    if milliseconds is not None:
        _check_ttl(milliseconds)
    store.change_schema([schema.SetTtl(pattern, milliseconds) for pattern in patterns], request=request)
    return 1


def _check_ttl(milliseconds: int) -> None:
    if milliseconds > _TTL_MS_MAX:
        raise UserMistake(f"a TTL may be at most {_TTL_MS_MAX} milliseconds, or INF, not {milliseconds}", code=701)


def _patterns_of_database(path: str) -> tuple[str, ...]:
    return path, f"{path}.**"


def _forget_ttl(store: Database, patterns: tuple[str, ...], request: WriteRequest) -> int:
    """Remove the TTL rules of these patterns, if there are any; return 1 if any rule was removed, otherwise 0."""
    known = dict(store.schema.ttl.live())
    found = [schema.UnsetTtl(pattern) for pattern in patterns if pattern in known]
    if found:
        store.change_schema(found, request=request)
    return int(bool(found))


def create_timeseries(store: Database, writer: Writer, statement: CreateTimeseries, request: WriteRequest) -> int:
    """Execute CREATE [ALIGNED] TIMESERIES; create the database if needed.

    A device is aligned if and only if its first series was created by ALIGNED.
    """
    device = join_nodes(statement.device.nodes)
    if statement.device.has_wildcard:
        raise UserMistake(f"{device} is a pattern: a series needs one path", code=509)
    require_not_internal(device)
    series = tuple(series_of(column) for column in statement.columns)
    require_no_views(store.schema.catalogue, device, [one.measurement for one in series])
    known = store.schema.device(device)
    if known is not None and known.aligned is not statement.aligned:
        verb, example = ("", f"ALIGNED TIMESERIES {device}(s1 INT32)") if known.aligned else ("not ", "TIMESERIES")
        raise UserMistake(f"{device} is {verb}aligned: CREATE {example} adds series to it", code=511)
    changes = [*writer.database_for(device), schema.CreateSeries(device, statement.aligned, series)]
    store.change_schema(changes, request=request)
    return len(series)


def delete_timeseries(store: Database, statement: DeleteTimeseries, request: WriteRequest) -> int:
    """Execute DROP TIMESERIES of the series that the patterns match, except for series of device templates.

    Raises UserMistake 508 if there are no such series.
    """
    found = [(path, store.schema.match_series(parse_pattern(str(path)))) for path in statement.paths]
    # Patterns without matches are passed on too, because the deletion also waits until other clients have dropped the
    # series that they are dropping.
    patterns = [pattern for path, matched in found for pattern in _own(store, path, matched)]
    count = sum(store.delete_series(pattern, request=request) for pattern in patterns)
    if not count:
        texts = ", ".join(str(path) for path, _ in found)
        raise UserMistake(f"Timeseries [{texts}] does not exist{_hint(store, *found[0])}", code=508)
    return count


def patterns_to_delete(tree: SchemaReader, patterns: Iterable[str]) -> tuple[list[str], int]:
    """Return the patterns of the points that a DELETE removes, and the number of matching series.

    The path of a view that consists of one series stands for the path of that series. Raises UserMistake 508 for a
    computed view, which has no points.
    """
    found: list[str] = []
    series: set[tuple[str, str]] = set()
    for named in patterns:
        pattern = source_of_alias(tree.catalogue, named) or named
        if is_view(tree.catalogue, pattern):
            raise UserMistake(f"{pattern} is a computed view without points: delete those of its series", code=508)
        matched = tree.match_series(parse_pattern(pattern))
        found += _own_paths(pattern, matched)
        series.update((device.path, one.measurement) for device, one in matched)
    return found, len(series)


def _own_paths(pattern: str, matched: Iterable[Matched]) -> list[str]:
    """Return the pattern, preceded by the paths of the series that it matches only by their alias.

    Points are stored under the measurement, which a pattern that matches the alias does not match.
    """
    parsed = parse_pattern(pattern)
    named = [(*split_path(device.path), one.measurement) for device, one in matched if one.alias is not None]
    return [*(join_nodes(nodes) for nodes in named if not parsed.matches(nodes)), pattern]


def _own(store: Database, path: PathExpression, matched: Sequence[Matched]) -> list[str]:
    """Return patterns of the matched series that do not belong to a template.

    If no device uses a template, the patterns are the `_own_paths` of `path`. Otherwise, they are the `_own_paths` of
    each device that uses no template, and the paths of all matched series outside the template of each device that uses
    one.
    """
    own: dict[str, list[Matched]] = {}
    using = set()
    for device, series in matched:
        if given_by(store.schema, device, series.measurement) is None:
            own.setdefault(device.path, []).append((device, series))
        else:
            using.add(device.path)
    if not using:
        return _own_paths(str(path), matched)
    last = "*" if path.nodes[-1] == "**" else path.nodes[-1]
    found: list[str] = []
    for place, those in own.items():
        paths = [f"{place}.{series.measurement}" for _, series in those]
        found += paths if place in using else _own_paths(f"{place}.{last}", those)
    return found


def _hint(store: Database, path: PathExpression, matched: Sequence[Matched]) -> str:
    """Return a hint for the error message if no series can be dropped. The hint is empty if the series do not exist."""
    if matched:
        return ", or belongs to a device template: deactivate the template there"
    return ": it is a view, use DROP VIEW" if is_view(store.schema.catalogue, str(path)) else ""


def alter_timeseries(store: Database, statement: AlterTimeseries, request: WriteRequest) -> int:
    """Execute ALTER TIMESERIES, or an ALTER VIEW that changes tags and attributes."""
    if is_view(store.schema.catalogue, str(statement.path)):
        return alter_view(store, statement, request)
    device, name = split_series(str(statement.path))
    known = store.schema.device(device)
    series = None if known is None else known.find(name)
    if known is None or series is None:
        raise UserMistake(f"Path [{statement.path}] does not exist", code=508)
    given = given_by(store.schema, known, series.measurement)
    if given is not None:
        message = f"{statement.path} belongs to template {given}: deactivate that to alter the series"
        raise UserMistake(message, code=_TEMPLATE_SERIES)
    if statement.type_name is not None:
        return _alter_type(store, known, series, declared_type(statement.type_name), request)
    changed = altered(series, statement)
    change = schema.AlterSeries(device, series.measurement, changed.alias, dict(changed.tags), dict(changed.attributes))
    store.change_schema([change], request=request)
    return 1


def alter_storage(store: Database, statement: AlterStorage, request: WriteRequest) -> int:
    """Execute SET STORAGE_PROPERTIES for the series that the patterns match, except for series of device templates."""
    encoding, compressor = declared_encoding(statement.encoding), declared_compressor(statement.compressor)
    found: dict[str, dict[str, None]] = {}
    for path in statement.paths:
        matched = store.schema.match_series(parse_pattern(str(path)))
        own = [(d.path, s.measurement) for d, s in matched if given_by(store.schema, d, s.measurement) is None]
        if not own and not statement.if_exists:
            raise UserMistake(f"Timeseries [{path}] does not exist, or belongs to a device template", code=508)
        for device, measurement in own:
            found.setdefault(device, {})[measurement] = None
    changes = [schema.AlterStorage(device, tuple(names), encoding, compressor) for device, names in found.items()]
    if changes:
        store.change_schema(changes, request=request)
    return sum(map(len, found.values()))


def _alter_type(
    store: Database, device: schema.DeviceSchema, series: schema.SeriesSchema, type_: DataType, request: WriteRequest
) -> int:
    """Execute SET DATA TYPE. The encoding does not change if it supports the new type."""
    if series.type is type_:
        return 0
    encoding = schema.encoding_as(series, type_)
    store.change_schema([schema.AlterType(device.path, series.measurement, type_, encoding)], request=request)
    return 1
