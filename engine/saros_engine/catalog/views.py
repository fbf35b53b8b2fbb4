"""Logical views: series without stored points, whose values are computed by an expression over other series.

    ("view", "root.v.d.total") = {"as": "root.a.d1.s1 + root.a.d1.s2", "tags": {...}, ...}   in the schema's catalogue

    schema --ViewedSchema--> planner, SHOW        both see a view as a series with the type of the view's expression
    count(root.v.d.total)  --base-->  count(root.a.d1.s1 + root.a.d1.s2)

The planner names the result columns after the views, and then replaces the views by their expressions. Later steps of
planning see only series. If the expression of a new view refers to another view, that view is replaced by its
expression before the new view is stored.

A view gives no access to data that the user may not read directly. If a series of its expression was dropped or may not
be read, or now has a type that the expression does not accept, the view does not appear as a series; SHOW VIEW still
lists it.

A ViewedSchema belongs to one statement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from heapq import merge
from itertools import groupby
from operator import itemgetter

import msgspec
from msgspec.structs import replace

from saros_engine.analysis.binding import Columns, bind
from saros_engine.analysis.scope import Leaf, paths_of, with_paths
from saros_engine.base.authorized_schema import SchemaReader
from saros_engine.base.errors import SemanticError
from saros_engine.expressions.time_filter import TimeContext
from saros_engine.plan.expression import InputColumn
from saros_grammar.parser import parse
from saros_grammar.syntax.ast import Expression, PathExpression, Select
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import PathPattern, join_nodes, parse_pattern, split_path, split_series
from saros_storage.base.types import DEFAULT_COMPRESSOR, DEFAULT_ENCODING, TimeUnit
from saros_storage.schema import Catalogue, DeviceSchema, SeriesSchema, TtlRules

KIND = "view"
#: The context for binding an expression if only its type is needed. The type depends on neither the time nor the zone.
_ANY_MOMENT = TimeContext("UTC", TimeUnit.MILLISECOND, 0)
_PARSED_MAX = 4_096


class View(msgspec.Struct, frozen=True):
    """A view. The paths in its expression are full paths of series, never of views."""

    path: str
    expression: Expression
    tags: Mapping[str, str] = msgspec.field(default_factory=dict)
    attributes: Mapping[str, str] = msgspec.field(default_factory=dict)

    def text(self) -> str:
        """Return the text that represents the view in the catalogue."""
        words = {"as": str(self.expression), "tags": dict(self.tags), "attributes": dict(self.attributes)}
        return json.dumps(words, ensure_ascii=False)

    @property
    def source(self) -> str | None:
        """The path of the series if the view is an alias of one series, or None if the view computes its values."""
        return str(self.expression) if isinstance(self.expression, PathExpression) else None


def parsed_view(path: str, text: str) -> View:
    """Return the view that a catalogue entry describes."""
    words = json.loads(text)
    return View(path, _parsed(words["as"]), words["tags"], words["attributes"])


@lru_cache(_PARSED_MAX)
def _parsed(text: str) -> Expression:
    select = parse(f"select {text} from root").statement  # noqa: S608 (an expression, printed)
    assert isinstance(select, Select)
    return select.items[0].expression


def texts_of_views(catalogue: Catalogue) -> dict[str, str]:
    """Return the catalogue entries of all views, by path."""
    return dict(catalogue.all_of(KIND)) if catalogue.by_key else {}


def with_bases(catalogue: Catalogue, patterns: Collection[str]) -> Collection[str]:
    """Return the path patterns, and the paths of the series to which views at or below matching paths refer."""
    texts = texts_of_views(catalogue)
    parsed = [parse_pattern(pattern) for pattern in patterns] if texts else []
    seen = [path for path in texts if any(pattern.overlaps(split_path(path)) for pattern in parsed)]
    bases = {str(base) for path in seen for base in paths_of(parsed_view(path, texts[path]).expression)}
    return bases.union(patterns) if bases else patterns


def is_view(catalogue: Catalogue, path: str) -> bool:
    """Return whether a path is the path of a view."""
    return catalogue.get(KIND, path) is not None


def sources_of_aliases(schema: SchemaReader, device: str, names: Iterable[str]) -> dict[str, str]:
    """For each of `names` that is a view of the device and an alias of one series, return the path of that series.

    Raises UserMistake 508 if such a series does not exist.
    """
    catalogue, found = schema.catalogue, dict[str, str]()
    if not catalogue.by_key:
        return found
    known = schema.device(device)
    for name in names:
        path = f"{device}.{name}"
        is_series = known is not None and known.find(name) is not None
        source = None if is_series else source_of_alias(catalogue, path)
        if source is not None:
            _require_series(schema, path, source)
            found[name] = source
    return found


def source_of_alias(catalogue: Catalogue, path: str) -> str | None:
    """Return the series that a view is an alias of, or None for other views and paths."""
    text = catalogue.get(KIND, path)
    return None if text is None else parsed_view(path, text).source


def _require_series(schema: SchemaReader, path: str, source: str) -> None:
    device, measurement = split_series(source)
    known = schema.device(device)
    if known is None or known.find(measurement) is None:
        raise UserMistake(f"{path} is a view of {source}, which does not exist", code=508)


def require_no_views(catalogue: Catalogue, device: str, measurements: Iterable[str]) -> None:
    """Raise UserMistake 503 if one of these series of a device would be at or below the path of a view."""
    if not catalogue.by_key:
        return
    nodes = split_path(device)
    above = [join_nodes(nodes[:count]) for count in range(3, len(nodes) + 1)]
    for path in [*above, *(f"{device}.{name}" for name in measurements)]:
        if is_view(catalogue, path):
            message = f"{path} is a view: only views of one series are written, and no series is created there or below"
            raise UserMistake(message, code=503)


class ViewedSchema:
    """A `SchemaReader` that presents views as series.

    `sees` returns whether the path of a view is visible to the user.
    """

    def __init__(self, schema: SchemaReader, texts: Mapping[str, str], sees: Callable[[str], bool]) -> None:
        self._schema = schema
        self._views: dict[str, View] = {}
        self._kept: dict[str, SeriesSchema | None] = {}
        self._by_device: dict[str, list[str]] = {}
        for path, text in texts.items():
            device, measurement = split_series(path)
            base = schema.device(device)
            if sees(path) and (base is None or measurement not in base.series):
                self._views[path] = parsed_view(path, text)
                self._by_device.setdefault(device, []).append(measurement)

    # ------------------------------------------------------------------ views

    def views(self, pattern: PathPattern) -> list[View]:
        """Return the views that a pattern matches, in path order, including views whose series are missing."""
        return [self._views[p] for p in sorted(self._views, key=split_path) if pattern.matches(split_path(p))]

    def view(self, path: str) -> View | None:
        """Return the view at a path, if there is one."""
        return self._views.get(path)

    def series_of(self, view: View) -> SeriesSchema | None:
        """Return the view as a series; None if series in its expression are missing or have types that do not fit."""
        if view.path not in self._kept:
            self._kept[view.path] = self._as_series(view)
        return self._kept[view.path]

    def _as_series(self, view: View) -> SeriesSchema | None:
        paths: dict[PathExpression, InputColumn] = {}
        for path in paths_of(view.expression):
            found = self.base(path)
            if found is None:
                return None
            paths[path] = InputColumn(0, found[1].type)
        try:
            type_ = bind(view.expression, Columns(_ANY_MOMENT, paths)).type
        except SemanticError:
            return None
        name = split_path(view.path)[-1]
        encoding, compressor = DEFAULT_ENCODING[type_], DEFAULT_COMPRESSOR
        return SeriesSchema(name, type_, encoding, compressor, None, view.tags, view.attributes)

    def base(self, path: PathExpression) -> tuple[DeviceSchema, SeriesSchema] | None:
        """Return the stored series at a full path, and its device; None if no series is stored there."""
        device = self._schema.device(join_nodes(path.nodes[:-1]))
        series = None if device is None else device.find(path.nodes[-1])
        return None if device is None or series is None else (device, series)

    def database_of(self, path: str) -> str:
        """Return the database that contains a path; an empty text if the database was dropped."""
        return next((d for d in self._schema.databases() if f"{path}.".startswith(f"{d}.")), "")

    # ------------------------------------------------------------------ the schema with views as series

    @property
    def ttl(self) -> TtlRules:
        """See `SchemaTree.ttl`."""
        return self._schema.ttl

    @property
    def catalogue(self) -> Catalogue:
        """See `SchemaTree.catalogue`."""
        return self._schema.catalogue

    def databases(self) -> list[str]:
        """See `SchemaTree.databases`."""
        return self._schema.databases()

    def match_databases(self, pattern: PathPattern) -> list[str]:
        """See `SchemaTree.match_databases`."""
        return self._schema.match_databases(pattern)

    def device(self, path: str) -> DeviceSchema | None:
        """Return a device with its series and views."""
        return self._with_views(path, self._schema.device(path))

    def _with_views(self, path: str, base: DeviceSchema | None) -> DeviceSchema | None:
        own: dict[str, SeriesSchema] = {}
        for name in self._by_device.get(path, ()):
            series = self.series_of(self._views[f"{path}.{name}"])
            if series is not None:
                own[name] = series
        if not own:
            return base
        if base is None:
            return DeviceSchema(path, self.database_of(path), aligned=False, series=own)
        return replace(base, series={**base.series, **own})

    def match_devices(self, pattern: PathPattern) -> list[DeviceSchema]:
        """Return the devices with series or views that a pattern matches, in path order."""
        found: dict[str, DeviceSchema | None] = {d.path: d for d in self._schema.match_devices(pattern)}
        found |= {path: found.get(path) for path in self._by_device if pattern.matches(split_path(path))}
        devices = [self._with_views(path, found[path]) for path in sorted(found, key=split_path)]
        return [device for device in devices if device is not None]

    def walk_devices(self, pattern: PathPattern) -> Iterator[DeviceSchema]:
        """Yield the devices with series or views that a pattern matches, in path order."""
        return iter(self.match_devices(pattern))

    def walk_series(self, pattern: PathPattern) -> Iterator[tuple[DeviceSchema, list[str]]]:
        """Yield the devices with series or views that a pattern matches, in path order, and their sorted names."""
        own: dict[str, list[str]] = {}
        for view in self.views(pattern):
            if self.series_of(view) is not None:
                device, measurement = split_series(view.path)
                own.setdefault(device, []).append(measurement)
        stored = ((device.path, names) for device, names in self._schema.walk_series(pattern))
        viewed = [(path, own[path]) for path in sorted(own, key=split_path)]
        for path, parts in groupby(merge(stored, viewed, key=lambda part: split_path(part[0])), itemgetter(0)):
            found = self.device(path)
            assert found is not None
            yield found, sorted(name for _, names in parts for name in names)

    def match_series(self, pattern: PathPattern) -> list[tuple[DeviceSchema, SeriesSchema]]:
        """Return the series and views that a pattern matches, in path order."""
        found = self._schema.match_series(pattern)
        for view in self.views(pattern):
            device = self.device(split_series(view.path)[0])
            series = self.series_of(view)
            if device is not None and series is not None:
                found.append((device, series))
        return sorted(found, key=lambda pair: (split_path(pair[0].path), pair[1].measurement))

    def child_paths(self, pattern: PathPattern) -> list[str]:
        """See `SchemaTree.child_paths`."""
        return sorted({*self._schema.child_paths(pattern), *self._prefixes(pattern, 1)})

    def child_nodes(self, pattern: PathPattern) -> list[str]:
        """See `SchemaTree.child_nodes`."""
        own = {split_path(path)[-1] for path in self._prefixes(pattern, 1)}
        return sorted({*self._schema.child_nodes(pattern), *own})

    def nodes_at_level(self, pattern: PathPattern, level: int) -> list[str]:
        """See `SchemaTree.nodes_at_level`."""
        found = set(self._schema.nodes_at_level(pattern, level))
        for path in self._prefixes(pattern, 0):
            nodes = split_path(path)
            if len(nodes) > level:
                found.add(join_nodes(nodes[: level + 1]))
        return sorted(found)

    def _prefixes(self, pattern: PathPattern, more: int) -> list[str]:
        """Return the prefixes of view paths that the pattern matches, each with the next `more` nodes of its path."""
        paths = [split_path(path) for path in self._views]
        return [
            join_nodes(nodes[: count + more])
            for nodes in paths
            for count in range(1, len(nodes) + 1 - more)
            if pattern.matches(nodes[:count])
        ]


def view_in(schema: SchemaReader, path: str) -> View | None:
    """Return the view at a path if the schema presents it, otherwise None."""
    return schema.view(path) if isinstance(schema, ViewedSchema) else None


class BaseSeries:
    """Replaces the views in a statement's expressions by their definitions.

    The series in these definitions are added to `series`. In ALIGN BY DEVICE, paths are relative to `device`.
    """

    def __init__(self, schema: SchemaReader, series: dict[PathExpression, Leaf], device: tuple[str, ...] = ()) -> None:
        self._schema = schema if isinstance(schema, ViewedSchema) else None
        self._series = series
        self._device = device

    def of(self, expression: Expression) -> Expression:
        """Return the expression with its views replaced by their definitions."""
        if self._schema is None:
            return expression
        return with_paths(expression, [self._base(path) for path in paths_of(expression)])

    def of_each(self, expressions: Iterable[Expression]) -> list[Expression]:
        """Return the expressions with their views replaced by their definitions."""
        return [self.of(expression) for expression in expressions]

    def _base(self, path: PathExpression) -> Expression:
        assert self._schema is not None
        view = self._schema.view(join_nodes(path.nodes if path.absolute else (*self._device, *path.nodes)))
        if view is None:
            return path
        for own in paths_of(view.expression):
            found = self._schema.base(own)
            if found is not None:
                self._series.setdefault(own, Leaf(own, *found))
        return view.expression
