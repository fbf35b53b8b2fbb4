"""SHOW and COUNT of databases, devices, series, templates and other contents of the schema.

Columns have IoTDB's names. Pure, except for the schema that it reads.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from msgspec.structs import replace

from saros_engine.base.authorized_schema import SchemaReader
from saros_engine.base.errors import NotSupportedError, SemanticError
from saros_engine.base.row_set import Row, RowSet
from saros_engine.catalog.continuous_queries import continuous_queries, last_run
from saros_engine.catalog.templates import places, template, templates, used_by
from saros_engine.catalog.views import ViewedSchema, view_in
from saros_engine.expressions.text import like_pattern, match_text
from saros_engine.expressions.time_filter import ALL_TIME
from saros_engine.plan.plan import Field
from saros_engine.planner.post_processing import row_count
from saros_engine.show.show_times import Points, split_times
from saros_grammar.syntax.ast import (
    Binary,
    BinaryOperator,
    Call,
    Count,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    PathExpression,
    Show,
    ShowKind,
    SortKey,
    Unary,
)
from saros_storage.base.block import TextArray
from saros_storage.base.paths import PathPattern, join_nodes, parse_pattern, split_path
from saros_storage.base.types import TIME_MAX, TIME_MIN, DataType
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import Deadband, DeviceSchema, SeriesSchema

_TEXT, _INT64 = DataType.TEXT, DataType.INT64
_NO_TTL = "INF"
#: The default pattern, which is also the path of a TTL for all series.
_EVERYTHING = "root.**"
_BASE, _VIEW = "BASE", "VIEW"
_SERIES_COLUMNS = (
    "Timeseries",
    "Alias",
    "Database",
    "DataType",
    "Encoding",
    "Compression",
    "Tags",
    "Attributes",
    "Deadband",
    "DeadbandParameters",
    "ViewType",
)
#: The two kinds of labels of a series, in the same order as the parameters of `_labels`.
_LABELS = ("tags", "attributes")
#: The columns of a SHOW, and its rows.
_Listing = tuple[tuple[Field, ...], Iterator[Row]]
#: A device, and the sorted names of some of its series.
_Series = tuple[DeviceSchema, list[str]]
#: The names that a condition may use, and their texts (None: null).
Subjects = Mapping[str, str | None]


#: The kinds of SHOW that accept WHERE.
_FILTERED = frozenset({ShowKind.DEVICES, ShowKind.TIMESERIES, ShowKind.VIEWS})


def show_schema(statement: Show, schema: SchemaReader, points: Points) -> RowSet:
    """Return the rows of SHOW for databases, devices, series and paths; LATEST puts the latest points first."""
    if statement.where is not None and statement.kind not in _FILTERED:
        raise NotSupportedError(f"WHERE in SHOW {statement.kind.value.upper()}")
    where, spans = split_times(statement.where, points.moment)
    if statement.latest and statement.order_by:
        raise SemanticError("SHOW LATEST TIMESERIES has a fixed order: leave ORDER BY out")
    start, count = row_count(statement.offset, "OFFSET") or 0, row_count(statement.limit, "LIMIT")
    stop = None if count is None else start + count
    most = stop if spans is None and not statement.order_by and not statement.latest else None
    shown = _listed(replace(statement, where=where), schema, most)
    if spans is not None:
        shown = _written(shown, statement.kind, spans, schema, points)
    if statement.order_by:
        _order(shown, statement.order_by)
    if statement.latest:
        times = points.latest([str(row[0]) for row in shown.rows], ALL_TIME)
        shown.rows.sort(key=lambda row: -times.get(str(row[0]), TIME_MIN))
    return RowSet(shown.fields, shown.rows[start:stop])


def _listed(statement: Show, schema: SchemaReader, most: int | None) -> RowSet:
    """Return the rows of SHOW without its other clauses, at most `most` of them for devices and series."""
    if statement.kind not in _LISTED:
        return _SHOW[statement.kind](statement, schema)
    fields, rows = _LISTED[statement.kind](statement, schema)
    return RowSet(fields, [*islice(rows, most)])


def _written(shown: RowSet, kind: ShowKind, spans: Sequence[TimeRange], schema: SchemaReader, points: Points) -> RowSet:
    """Return the rows of devices or series with points in `spans`. Raises SemanticError for views."""
    names = [str(row[0]) for row in shown.rows]
    if kind is ShowKind.VIEWS:
        raise SemanticError("views have no points of their own: SHOW VIEW takes no time condition")
    if kind is ShowKind.TIMESERIES:
        found = points.of_series(names, spans)
    else:
        found = points.of_devices([d for d in map(schema.device, names) if d is not None], spans)
    return RowSet(shown.fields, [row for row, name in zip(shown.rows, names, strict=True) if name in found])


def _order(shown: RowSet, keys: Sequence[SortKey]) -> None:
    """Sort by the first column, whose values are unique. Raises SemanticError for another key."""
    (key, *more), name = keys, shown.fields[0].name
    if more or str(key.expression).lower() != name.lower():
        raise SemanticError(f"this SHOW can only be ordered by {name}")
    shown.rows.sort(key=lambda row: split_path(str(row[0])), reverse=key.descending)


def count_schema(statement: Count, schema: SchemaReader, points: Points) -> RowSet:
    """Return the rows of COUNT for databases, devices, series and nodes."""
    pattern = _pattern(statement.path)
    kind = statement.kind
    where, spans = split_times(statement.where, points.moment)
    if kind is ShowKind.DATABASES:
        return _one("count", len(schema.match_databases(pattern)), DataType.INT32)
    if kind is ShowKind.DEVICES:
        devices = _devices(schema, pattern, where)
        found_devices = devices if spans is None else points.of_devices([*devices], spans)
        return _one("count(devices)", sum(1 for _ in found_devices))
    if kind is ShowKind.NODES:
        if statement.level is None:
            raise SemanticError("COUNT NODES needs LEVEL = n")
        return _one("count(nodes)", len(schema.nodes_at_level(pattern, statement.level)))
    listed = _series(schema, pattern, where)
    if spans is not None:
        paths = {f"{device.path}.{name}": (device, [name]) for device, names in listed for name in names}
        written = points.of_series([*paths], spans)
        listed = (series for path, series in paths.items() if path in written)
    if statement.level is None:
        return _one("count(timeseries)", sum(len(names) for _, names in listed))
    counts = _counts_at(statement.level, listed)
    fields = (Field("Column", _TEXT), Field("count(timeseries)", _INT64))
    return RowSet(fields, [(name, counts[name]) for name in sorted(counts)])


def _counts_at(level: int, series: Iterable[_Series]) -> dict[str, int]:
    """Return the number of series below each node at a level. A series at the level counts as below its own path."""
    counts: Counter[str] = Counter()
    for device, names in series:
        nodes = split_path(device.path)
        if len(nodes) > level:
            counts[join_nodes(nodes[: level + 1])] += len(names)
        elif len(nodes) == level:
            counts.update(f"{device.path}.{name}" for name in names)
    return counts


def _one(name: str, count: int, type_: DataType = _INT64) -> RowSet:
    return RowSet((Field(name, type_),), [(count,)])


def _pattern(path: PathExpression | None) -> PathPattern:
    return parse_pattern(_EVERYTHING if path is None else str(path))


def _texts(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, _TEXT) for name in names)


# ---------------------------------------------------------------------------------------------- kinds


def _show_databases(statement: Show, schema: SchemaReader) -> RowSet:
    found = schema.match_databases(_pattern(statement.path))
    return RowSet(_texts("Database"), [(database,) for database in found])


def _list_devices(statement: Show, schema: SchemaReader) -> _Listing:
    def row(device: DeviceSchema) -> Row:
        database = (device.database,) if statement.details else ()
        ttl = _ttl_text(schema.ttl.milliseconds(device.path))
        return (device.path, *database, str(device.aligned).lower(), used_by(schema, device), ttl)

    database_column = ("Database",) if statement.details else ()
    fields = _texts("Device", *database_column, "IsAligned", "Template", "TTL(ms)")
    return fields, map(row, _devices(schema, _pattern(statement.path), statement.where))


def _ttl_text(milliseconds: int | None) -> str:
    return _NO_TTL if milliseconds is None else str(milliseconds)


def _show_ttl(statement: Show, schema: SchemaReader) -> RowSet:
    """Return the TTL rules, the default first.

    With ON, return only the rule whose pattern is given, and rules for paths that match it.
    """
    patterns = [parse_pattern(str(path)) for path in statement.databases]
    rules = {_EVERYTHING: None, **dict(schema.ttl.live())}
    rows: list[Row] = [
        (path, _ttl_text(milliseconds))
        for path, milliseconds in rules.items()
        if not patterns or any(p.text == path or p.matches(parse_pattern(path).nodes) for p in patterns)
    ]
    return RowSet(_texts("Device", "TTL(ms)"), rows)


def _list_timeseries(statement: Show, schema: SchemaReader) -> _Listing:
    found = _series(schema, _pattern(statement.path), statement.where)
    rows = (_series_row(device, device.series[name], schema) for device, names in found for name in names)
    return _texts(*_SERIES_COLUMNS), rows


def _series_row(device: DeviceSchema, series: SeriesSchema, schema: SchemaReader) -> Row:
    path = f"{device.path}.{series.measurement}"
    view = view_in(schema, path) is not None
    stored = (None, None) if view else (series.encoding.name, series.compressor.name)
    labels = (_json(series.tags), _json(series.attributes), *_deadband_columns(series.deadband))
    return (path, series.alias, device.database, series.type.name, *stored, *labels, _VIEW if view else _BASE)


def _deadband_columns(deadband: Deadband | None) -> tuple[str | None, str | None]:
    """Return the two columns about a deadband, in IoTDB's notation."""
    if deadband is None:
        return None, None
    words = [f"compdev={deadband.deviation:.15g}"]
    words += [f"compmintime={deadband.shortest}"] if deadband.shortest else []
    words += [f"compmaxtime={deadband.longest}"] if deadband.longest < TIME_MAX else []
    return "SDT", f"{{{', '.join(words)}}}"


def _show_views(statement: Show, schema: SchemaReader) -> RowSet:
    """Return the views. The type and the source of a view are null if its sources are missing or unreadable."""
    rows: list[Row] = []
    views = schema.views(_pattern(statement.path)) if isinstance(schema, ViewedSchema) else []
    for view in views:
        assert isinstance(schema, ViewedSchema)
        series, database = schema.series_of(view), schema.database_of(view.path)
        type_ = None if series is None else series.type.name
        labels = _labels(view.tags, view.attributes)
        subjects = {"timeseries": view.path, "datatype": type_, "database": database, **labels}
        if statement.where is None or _holds(statement.where, subjects):
            source = None if series is None else str(view.expression)
            rows.append((view.path, database, type_, _json(view.tags), _json(view.attributes), _VIEW, source))
    names = ("Timeseries", "Database", "DataType", "Tags", "Attributes", "ViewType", "Source")
    return RowSet(_texts(*names), rows)


def _json(words: Mapping[str, str]) -> str | None:
    """Return labels as IoTDB prints them, that is, in the order of the smallest Java hash table that holds them."""
    if not words:
        return None
    places = 1
    while len(words) > places * 3 / 4:
        places *= 2
    ordered = sorted(words.items(), key=lambda word: _java_hash(word[0]) % places)
    return json.dumps(dict(ordered), ensure_ascii=False, separators=(",", ":"))


@lru_cache(1_000)
def _java_hash(text: str) -> int:
    """Return the hash that Java's hash tables use for a String: hashCode() over UTF-16 units, with its halves XORed."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for place in range(0, len(units), 2):
        found = (31 * found + int.from_bytes(units[place : place + 2])) & 0xFFFF_FFFF
    return found ^ (found >> 16)


def _show_child_paths(statement: Show, schema: SchemaReader) -> RowSet:
    found = schema.child_paths(_pattern(statement.path))
    databases = schema.databases()
    rows: list[Row] = [(path, _node_type(path, schema, databases)) for path in found]
    return RowSet(_texts("ChildPaths", "NodeTypes"), rows)


def _node_type(path: str, schema: SchemaReader, databases: Iterable[str]) -> str:
    if path in databases:
        return "DATABASE"
    if schema.device(path) is not None:
        return "DEVICE"
    device, _, measurement = path.rpartition(".")
    known = schema.device(device)
    if known is not None and measurement in known.series:
        return "TIMESERIES"
    inside = any(path.startswith(database + ".") for database in databases)
    return "INTERNAL" if inside else "SG INTERNAL"


def _show_child_nodes(statement: Show, schema: SchemaReader) -> RowSet:
    return RowSet(_texts("ChildNodes"), [(node,) for node in schema.child_nodes(_pattern(statement.path))])


def _show_templates(_: Show, schema: SchemaReader) -> RowSet:
    return RowSet(_texts("TemplateName"), [(name,) for name in templates(schema)])


def _show_template_nodes(statement: Show, schema: SchemaReader) -> RowSet:
    assert statement.template is not None
    rows: list[Row] = [
        (s.measurement, s.type.name, s.encoding.name, s.compressor.name)
        for s in template(schema, statement.template).series
    ]
    return RowSet(_texts("ChildNodes", "DataType", "Encoding", "Compression"), rows)


def _show_template_set(statement: Show, schema: SchemaReader) -> RowSet:
    assert statement.template is not None
    pattern = _pattern(statement.path)
    set_to = places(schema, template(schema, statement.template).name)
    found = [path for path in set_to if pattern.matches(split_path(path))]
    return RowSet(_texts("Paths"), [(path,) for path in found])


def _show_template_using(statement: Show, schema: SchemaReader) -> RowSet:
    assert statement.template is not None
    wanted = template(schema, statement.template).name
    found = schema.match_devices(_pattern(statement.path))
    return RowSet(_texts("Paths"), [(d.path,) for d in found if used_by(schema, d) == wanted])


def _show_continuous_queries(_: Show, schema: SchemaReader) -> RowSet:
    rows: list[Row] = []
    for query in continuous_queries(schema):
        problem = last_run(schema, query.name)[1]
        rows.append((query.name, query.statement, "ACTIVE" if problem is None else f"ACTIVE, last failed: {problem}"))
    return RowSet(_texts("CQId", "Query", "State"), rows)


_SHOW: dict[ShowKind, Callable[[Show, SchemaReader], RowSet]] = {
    ShowKind.DATABASES: _show_databases,
    ShowKind.VIEWS: _show_views,
    ShowKind.CHILD_PATHS: _show_child_paths,
    ShowKind.CHILD_NODES: _show_child_nodes,
    ShowKind.TTL: _show_ttl,
    ShowKind.TEMPLATES: _show_templates,
    ShowKind.TEMPLATE_NODES: _show_template_nodes,
    ShowKind.TEMPLATE_SET: _show_template_set,
    ShowKind.TEMPLATE_USING: _show_template_using,
    ShowKind.CONTINUOUS_QUERIES: _show_continuous_queries,
}


#: The kinds whose rows are produced one at a time, because there may be millions of them.
_LISTED: dict[ShowKind, Callable[[Show, SchemaReader], _Listing]] = {
    ShowKind.DEVICES: _list_devices,
    ShowKind.TIMESERIES: _list_timeseries,
}


# ---------------------------------------------------------------------------------------------- conditions


def _devices(schema: SchemaReader, pattern: PathPattern, where: Expression | None) -> Iterator[DeviceSchema]:
    found = schema.walk_devices(pattern)
    return found if where is None else (d for d in found if _holds(where, _device_subjects(schema, d)))


def _device_subjects(schema: SchemaReader, device: DeviceSchema) -> Subjects:
    return {"device": device.path, "template": used_by(schema, device), "database": device.database}


def _series(schema: SchemaReader, pattern: PathPattern, where: Expression | None) -> Iterator[_Series]:
    """Return the series whose name or alias matches the pattern, and for which the condition holds."""
    found = schema.walk_series(pattern) if pattern.has_wildcard else iter(_one_series(schema, pattern))
    if where is None:
        return found
    chosen = (
        (device, [name for name in names if _holds(where, _subjects_of(device, device.series[name], schema))])
        for device, names in found
    )
    return (pair for pair in chosen if pair[1])


def _one_series(schema: SchemaReader, pattern: PathPattern) -> list[_Series]:
    """Return the series at a path without wildcards, if there is one."""
    found = [*schema.walk_series(pattern)]
    if not found and len(pattern.nodes) > 1:
        device = schema.device(".".join(pattern.nodes[:-1]))
        series = None if device is None else device.find(pattern.nodes[-1])
        found = [] if device is None or series is None else [(device, [series.measurement])]
    return found


def _subjects_of(device: DeviceSchema, series: SeriesSchema, schema: SchemaReader) -> Subjects:
    path = f"{device.path}.{series.measurement}"
    labels = _labels(series.tags, series.attributes)
    kind = _BASE if view_in(schema, path) is None else _VIEW
    return {"timeseries": path, "datatype": series.type.name, "database": device.database, "viewtype": kind, **labels}


def _holds(where: Expression, subjects: Subjects) -> bool:
    """Return whether a condition of SHOW or COUNT is true."""
    match where:
        case Binary(BinaryOperator.AND, left, right):
            return _holds(left, subjects) and _holds(right, subjects)
        case Binary(BinaryOperator.OR, left, right):
            return _holds(left, subjects) or _holds(right, subjects)
        case Binary(BinaryOperator.EQUAL, subject, Literal(_, value, _)):
            return _value(subject, subjects) == value
        case Binary(BinaryOperator.NOT_EQUAL, subject, Literal(_, value, _)):
            return _value(subject, subjects) not in (None, value)
        case Call("contains", (subject, Literal(_, str(part), _))):
            return part in (_value(subject, subjects) or "")
        case IsNull(subject, negated):
            return (_value(subject, subjects) is None) != negated
        case InList(subject, items, negated):
            value = _value(subject, subjects)
            return value is not None and (value in [_text_of(item) for item in items]) != negated
        case Like(subject, Literal(_, str(pattern), _), regexp, negated, escape):
            value = _value(subject, subjects)
            if value is None:
                return False
            if not regexp:
                pattern, regexp = like_pattern(pattern, escape)
            return bool(match_text(TextArray.of([value]), pattern, regexp=regexp)[0]) != negated
        case Unary("!", operand):
            return not _holds(operand, subjects)
        case _:
            raise NotSupportedError(f"the condition {where} in SHOW or COUNT")


def _labels(tags: Mapping[str, str], attributes: Mapping[str, str]) -> Subjects:
    both = zip(_LABELS, (tags, attributes), strict=True)
    return {f"{kind}({key})": value for kind, labels in both for key, value in labels.items()}


def _text_of(item: Expression) -> object:
    return item.value if isinstance(item, Literal) else str(item)


def _value(subject: Expression, subjects: Subjects) -> str | None:
    if isinstance(subject, Call) and subject.name.lower() in _LABELS and len(subject.arguments) == 1:
        (key,) = subject.arguments
        word = key.value if isinstance(key, Literal) and isinstance(key.value, str) else str(key)
        return subjects.get(f"{subject.name.lower()}({word})")
    name = str(subject)
    if name not in subjects:
        raise SemanticError(f"{name} is not available here: use one of {', '.join(subjects)}")
    return subjects[name]
