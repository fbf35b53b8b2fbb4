"""Execute CREATE, ALTER, RENAME and DROP VIEW as changes of entries in the schema's catalogue.

Functions that execute a statement return the number of views that it changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from saros_engine.analysis.scope import any_part, paths_of, with_paths
from saros_engine.base.database import Database
from saros_engine.base.errors import SemanticError
from saros_engine.catalog.views import KIND, BaseSeries, View, ViewedSchema, parsed_view, texts_of_views
from saros_engine.extensions.registered import calls_registered
from saros_engine.functions.series import SERIES_FUNCTIONS
from saros_engine.planner import PlanContext, plan_select
from saros_engine.planner.into import targets_by_column
from saros_engine.planner.query_core import is_aggregate, makes_points
from saros_engine.statements.alter_series import altered
from saros_engine.writes.writer import Writer
from saros_grammar.syntax.ast import (
    AlterTimeseries,
    Call,
    CreateView,
    DropViews,
    Expression,
    PathExpression,
    RenameView,
)
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, parse_pattern, split_path, split_series
from saros_storage.base.types import DEFAULT_COMPRESSOR, DataType, Encoding
from saros_storage.base.write_request import WriteRequest
from saros_storage.schema import SeriesSchema, SetEntry

_METADATA, _EXISTS, _MISSING = 507, 503, 508
#: Functions whose result depends on more than the values of one row.
_NEEDS_OTHER_ROWS = frozenset({"now", "version", *(function.name for function in SERIES_FUNCTIONS)})


def planned_views(statement: CreateView, context: PlanContext) -> list[View]:
    """Return the views that a CREATE VIEW defines. Raises SemanticError."""
    sources = plan_select(statement.select, context).sources
    for source in sources:
        if calls_registered(source):
            raise SemanticError(
                f"create view: {source} calls a user-defined function, which may be dropped: use built-in functions"
            )
        if any_part(source, _needs_more):
            raise SemanticError(f"create view: {source} is not computed from the values of one row")
    if not sources:
        raise SemanticError("create view: the SELECT matches no series")
    targets = targets_by_column(statement.targets.items, sources)
    base = BaseSeries(context.schema, {})
    return [
        View(f"{target.device}.{target.measurement}", base.of(_by_own_names(source, context)))
        for target, source in zip(targets, sources, strict=True)
    ]


def _needs_more(part: Expression) -> bool:
    """Return whether the value of an expression depends on other rows, or on the time of the query."""
    return isinstance(part, Call) and (
        is_aggregate(part) or makes_points(part) or part.name.lower() in _NEEDS_OTHER_ROWS
    )


def _by_own_names(expression: Expression, context: PlanContext) -> Expression:
    """Return the expression with aliases of series replaced by their measurements."""
    names = []
    for path in paths_of(expression):
        device = context.schema.device(join_nodes(path.nodes[:-1]))
        series = None if device is None else device.find(path.nodes[-1])
        names.append(path if series is None else PathExpression((*path.nodes[:-1], series.measurement)))
    return with_paths(expression, names)


def create_views(store: Database, writer: Writer, views: Sequence[View], request: WriteRequest, *, exist: bool) -> int:
    """Execute CREATE VIEW, or ALTER VIEW ... AS if the views must `exist`."""
    for view in views:
        if exist:
            _require_view(store, view.path)
        else:
            _check_place(store, view.path)
        changes = writer.database_for(split_series(view.path)[0])
        if changes:
            store.change_schema(changes, request=request.unnumbered)
    store.change_schema([SetEntry(KIND, view.path, _altered(store, view).text()) for view in views], request=request)
    return len(views)


def _altered(store: Database, view: View) -> View:
    """Return the view with the tags and attributes of the existing view at its path, if there is one."""
    text = store.schema.catalogue.get(KIND, view.path)
    if text is None:
        return view
    known = parsed_view(view.path, text)
    return replace(view, tags=known.tags, attributes=known.attributes)


def _require_view(store: Database, path: str) -> View:
    text = store.schema.catalogue.get(KIND, path)
    if text is None:
        raise UserMistake(f"View [{path}] does not exist: see SHOW VIEW", code=_MISSING)
    return parsed_view(path, text)


def _check_place(store: Database, path: str) -> None:
    """Raise UserMistake 503 if the path or a path below it is in use, or if a path above it is a series or a view."""
    nodes = split_path(path)
    catalogue = store.schema.catalogue
    for count in range(3, len(nodes) + 1):
        above = join_nodes(nodes[:count])
        device = store.schema.device(join_nodes(nodes[: count - 1]))
        known = device is not None and nodes[count - 1] in device.series
        if known or catalogue.get(KIND, above) is not None:
            raise UserMistake(f"Path [{above}] already exist", code=_EXISTS)
    everything = ViewedSchema(store.schema, texts_of_views(catalogue), lambda _: True)
    if store.schema.device(path) is not None or everything.child_paths(parse_pattern(path)):
        raise UserMistake(f"Path [{path}] already exist, with series below it", code=_EXISTS)


def rename_view(store: Database, statement: RenameView, request: WriteRequest) -> int:
    """Execute ALTER VIEW ... RENAME TO."""
    view = _require_view(store, str(statement.path))
    target = str(statement.to)
    split_series(target)
    _check_place(store, target)
    if store.schema.database_of(split_series(target)[0]) is None:
        raise UserMistake(f"{target} is not in a database: create one first", code=504)
    store.change_schema([SetEntry(KIND, view.path, None), SetEntry(KIND, target, view.text())], request=request)
    return 1


def drop_views(store: Database, statement: DropViews, request: WriteRequest) -> int:
    """Execute DROP VIEW. If one of the paths matches no view, drop no view."""
    dropped: dict[str, None] = {}
    for path in statement.paths:
        pattern = parse_pattern(str(path))
        found = [known for known in texts_of_views(store.schema.catalogue) if pattern.matches(split_path(known))]
        if not found:
            raise UserMistake(f"View [{path}] does not exist: see SHOW VIEW", code=_MISSING)
        dropped |= dict.fromkeys(found)
    store.change_schema([SetEntry(KIND, known, None) for known in dropped], request=request)
    return len(dropped)


def forget_views(store: Database, database: str, request: WriteRequest) -> None:
    """Drop the views in a database that was dropped."""
    found = [path for path in texts_of_views(store.schema.catalogue) if path.startswith(f"{database}.")]
    if found:
        store.change_schema([SetEntry(KIND, path, None) for path in found], request=request)


def alter_view(store: Database, statement: AlterTimeseries, request: WriteRequest) -> int:
    """Execute an ALTER VIEW that changes tags and attributes."""
    view = _require_view(store, str(statement.path))
    if statement.type_name is not None:
        raise UserMistake(
            f"{view.path} is a view, whose type follows from its series: alter the series", code=_METADATA
        )
    if statement.alias is not None:
        raise UserMistake(f"{view.path} is a view, which has no alias: use RENAME", code=_METADATA)
    # This series takes the place of the view while its tags and attributes are altered. The type of the series does
    # not matter.
    series = SeriesSchema(
        view.path, DataType.TEXT, Encoding.PLAIN, DEFAULT_COMPRESSOR, None, view.tags, view.attributes
    )
    changed = altered(series, statement)
    view = replace(view, tags=dict(changed.tags), attributes=dict(changed.attributes))
    if view.tags.keys() & view.attributes.keys():
        raise UserMistake("Tag and attribute shouldn't have the same property key", code=_METADATA)
    store.change_schema([SetEntry(KIND, view.path, view.text())], request=request)
    return 1
