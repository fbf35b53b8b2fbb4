"""Logical views: series without points of their own, which show what an expression over other series gives.

    ("view", "root.v.d.total") = {"as": "root.a.d1.s1 + root.a.d1.s2", "tags": {...}, ...}   in the schema's catalogue

    schema --ViewedSchema--> planner, SHOW        views are series to them, with the type of their expression
    count(root.v.d.total)  --base-->  count(root.a.d1.s1 + root.a.d1.s2)

Names of columns are made from what the statement says, and then views give way to their expressions; the rest of
planning knows series only. A view of a view is kept as a view of what that one looks at. Nobody sees by a view what he
may not read without it. A view whose series are gone (or may not be read), or have types by now that its expression
does not take, is no series any more; SHOW VIEW shows it.

A ViewedSchema belongs to one statement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

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
#: Types do not depend on it.
_ANY_MOMENT = TimeContext("UTC", TimeUnit.MILLISECOND, 0)
_PARSED_MAX = 4_096


@dataclass(frozen=True, slots=True)
class View:
    """One view; its expression's paths are whole, and of series."""

    path: str
    expression: Expression
    tags: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """What the catalogue keeps."""
        words = {"as": str(self.expression), "tags": dict(self.tags), "attributes": dict(self.attributes)}
        return json.dumps(words, ensure_ascii=False)

    @property
    def source(self) -> str | None:
        """The path of the series that it is another name for; None if it computes."""
        return str(self.expression) if isinstance(self.expression, PathExpression) else None


def parsed_view(path: str, text: str) -> View:
    """The view that a text of the catalogue is."""
    words = json.loads(text)
    return View(path, _parsed(words["as"]), words["tags"], words["attributes"])


@lru_cache(_PARSED_MAX)
def _parsed(text: str) -> Expression:
    select = parse(f"select {text} from root").statement  # noqa: S608 (an expression, printed)
    assert isinstance(select, Select)
    return select.items[0].expression


def texts_of_views(catalogue: Catalogue) -> dict[str, str]:
    """The texts of all views by path."""
    return dict(catalogue.all_of(KIND)) if catalogue.by_key else {}


def with_bases(catalogue: Catalogue, patterns: Collection[str]) -> Collection[str]:
    """Path patterns, and the series that the views at and below them look at."""
    texts = texts_of_views(catalogue)
    parsed = [parse_pattern(pattern) for pattern in patterns] if texts else []
    seen = [path for path in texts if any(pattern.overlaps(split_path(path)) for pattern in parsed)]
    bases = {str(base) for path in seen for base in paths_of(parsed_view(path, texts[path]).expression)}
    return bases.union(patterns) if bases else patterns


def is_view(catalogue: Catalogue, path: str) -> bool:
    """Whether a path is a view."""
    return catalogue.get(KIND, path) is not None


def require_no_views(catalogue: Catalogue, device: str, measurements: Iterable[str]) -> None:
    """Raise UserMistake 503 if one of these series of a device is to be created where a view is, or below one."""
    if not catalogue.by_key:
        return
    nodes = split_path(device)
    above = [join_nodes(nodes[:count]) for count in range(3, len(nodes) + 1)]
    for path in [*above, *(f"{device}.{name}" for name in measurements)]:
        if is_view(catalogue, path):
            message = f"{path} is a view: no series can be there or below it, and nothing is written to it"
            raise UserMistake(message, code=503)


class ViewedSchema:
    """See the module. Implements `SchemaReader`; `sees` tells which views show."""

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
        """The views that a pattern matches, in path order, also those that look at nothing."""
        return [self._views[p] for p in sorted(self._views, key=split_path) if pattern.matches(split_path(p))]

    def view(self, path: str) -> View | None:
        """The view that a path is."""
        return self._views.get(path)

    def series_of(self, view: View) -> SeriesSchema | None:
        """The view as a series; None if what it looks at is not there, or has types that it does not take."""
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
        """The series, not a view, that a whole path is."""
        device = self._schema.device(join_nodes(path.nodes[:-1]))
        series = None if device is None else device.find(path.nodes[-1])
        return None if device is None or series is None else (device, series)

    def database_of(self, path: str) -> str:
        """The database of a view or of a device of views; empty if there is none any more."""
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
        """A device with its series and views."""
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
        """Devices that have series or views."""
        found: dict[str, DeviceSchema | None] = {d.path: d for d in self._schema.match_devices(pattern)}
        found |= {path: found.get(path) for path in self._by_device if pattern.matches(split_path(path))}
        devices = [self._with_views(path, found[path]) for path in sorted(found, key=split_path)]
        return [device for device in devices if device is not None]

    def match_series(self, pattern: PathPattern) -> list[tuple[DeviceSchema, SeriesSchema]]:
        """Series and views, in path order."""
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
        """Beginnings of views' paths that the pattern matches, with so many nodes more."""
        paths = [split_path(path) for path in self._views]
        return [
            join_nodes(nodes[: count + more])
            for nodes in paths
            for count in range(1, len(nodes) + 1 - more)
            if pattern.matches(nodes[:count])
        ]


def view_in(schema: SchemaReader, path: str) -> View | None:
    """The view that a path is, to whoever sees the schema so."""
    return schema.view(path) if isinstance(schema, ViewedSchema) else None


class BaseSeries:
    """Makes views in the expressions of a statement give way, and adds the series that these look at to `series`.

    `device`: nodes in front of paths that are not whole (ALIGN BY DEVICE).
    """

    def __init__(self, schema: SchemaReader, series: dict[PathExpression, Leaf], device: tuple[str, ...] = ()) -> None:
        self._schema = schema if isinstance(schema, ViewedSchema) else None
        self._series = series
        self._device = device

    def of(self, expression: Expression) -> Expression:
        """The expression over series only."""
        if self._schema is None:
            return expression
        return with_paths(expression, [self._base(path) for path in paths_of(expression)])

    def of_each(self, expressions: Iterable[Expression]) -> list[Expression]:
        """The expressions over series only."""
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
