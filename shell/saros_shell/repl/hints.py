"""Hints at probable mistakes in a statement whose result is empty.

    SELECT ... WHERE state = on     `on` is not the path of a series; it may be a text without quotes. Its value is
                                    null, so no row qualifies. A query for it, with the user's own privileges, finds
                                    this mistake
    SELECT ... WHERE state = null   the comparison is neither true nor false for any value
    SHOW TIMESERIES root.a.d        the path is that of a device, not a pattern of series
    SELECT LAST nosuch FROM ...     the series does not exist, which the columns of the result do not show
    SELECT temprature FROM ...      a node of the path does not exist, but a node with a similar name does

Single-threaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import pyarrow as pa

import saros
from saros_grammar.syntax.ast import Select, Show, ShowKind
from saros_grammar.syntax.errors import ParseError
from saros_grammar.syntax.expression_tree import (
    Binary,
    BinaryOperator,
    Expression,
    IsNull,
    Literal,
    LiteralKind,
    PathExpression,
)
from saros_server.config.did_you_mean import did_you_mean

NO_SERIES = r"note: no series match the SELECT; \d [PATTERN] lists series"
#: The maximum number of paths that are looked up.
_PATHS_MAX = 8
#: The maximum number of names that are compared with a mistyped name.
_CHILDREN_MAX = 10_000
_EQUALITIES = (BinaryOperator.EQUAL, BinaryOperator.NOT_EQUAL)
_OF_PATTERNS = (ShowKind.TIMESERIES, ShowKind.DEVICES)


def is_empty_result(table: pa.Table) -> bool:
    """Return whether a result has no rows, or one row with only nulls and zeros, as aggregates of an empty set have."""
    return table.num_rows == 0 or (table.num_rows == 1 and all(map(_is_null_or_zero, table.columns)))


def _is_null_or_zero(column: pa.ChunkedArray) -> bool:
    """Return whether the only value of a column is null or zero. A time never counts as zero."""
    return bool(column.null_count) or (not pa.types.is_timestamp(column.type) and column[0].as_py() == 0)


def hints_for(connection: saros.Connection, statement: str) -> list[str]:
    """Return a note for each comparison with null in WHERE, and for each path in WHERE or SHOW without series."""
    from saros_engine.analysis.scope import paths_of  # only few statements need it
    from saros_grammar.parser import parse

    with suppress(ParseError, saros.Error):
        asked = parse(statement).statement
        if isinstance(asked, Select) and asked.last and not _finds_series(connection, asked):
            return [_no_series(connection, asked)]
        if isinstance(asked, Select) and asked.where is not None:
            paths = list(dict.fromkeys(paths_of(asked.where)))[:_PATHS_MAX]
            missing = [_hint(path) for path in paths if not _has_series(connection, path, asked.from_paths)]
            return [*dict.fromkeys(_null_notes(asked.where)), *missing]
        if isinstance(asked, Show) and asked.kind in _OF_PATTERNS and asked.path and not asked.path.has_wildcard:
            return [f"note: the pattern {asked.path} matches only that path; {asked.path}.** matches all below it"]
    return []


def no_series_note(connection: saros.Connection, statement: str) -> str:
    """Return the note for a query whose paths match no series. If a path may be mistyped, suggest a similar name."""
    from saros_grammar.parser import parse

    with suppress(ParseError, saros.Error):
        asked = parse(statement).statement
        if isinstance(asked, Select):
            return _no_series(connection, asked)
    return NO_SERIES


def _no_series(connection: saros.Connection, asked: Select) -> str:
    full_paths = (
        path if path.absolute else PathExpression(source.nodes + path.nodes)
        for path in _selected_paths(asked)
        for source in asked.from_paths
    )
    notes = (_mistyped(connection, path) for path in islice(full_paths, _PATHS_MAX))
    return next(filter(None, notes), NO_SERIES)


def _selected_paths(asked: Select) -> list[PathExpression]:
    from saros_engine.analysis.scope import paths_of

    return [path for item in asked.items for path in paths_of(item.expression)][:_PATHS_MAX]


def _mistyped(connection: saros.Connection, path: PathExpression) -> str | None:
    """Return a note about the first node of a path that does not exist, or None if no existing name resembles it."""
    if path.has_wildcard:
        return None
    for length in range(1, len(path.nodes)):
        parent, node = PathExpression(path.nodes[:length]), path.nodes[length]
        children = connection.execute(f"show child nodes {parent} limit {_CHILDREN_MAX}").fetch_arrow()
        names: list[str] = children.column(0).to_pylist()
        if node not in names:
            similar = did_you_mean(node, names)
            return f"note: {parent} has no {node}{similar}" if similar else None
    return None


def _finds_series(connection: saros.Connection, asked: Select) -> bool:
    return any(_has_series(connection, path, asked.from_paths) for path in _selected_paths(asked))


def _null_notes(where: Expression) -> Iterator[str]:
    from saros_engine.analysis.scope import children_of

    if isinstance(where, Binary) and where.operator in _EQUALITIES:
        null, other = (where.left, where.right) if _is_null(where.left) else (where.right, where.left)
        if _is_null(null):
            meant = IsNull(other, negated=where.operator is BinaryOperator.NOT_EQUAL)
            yield f"note: {where} is never true, since a comparison with null is null; use {meant}"
    for child in children_of(where):
        yield from _null_notes(child)


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.kind is LiteralKind.NULL


def _has_series(connection: saros.Connection, path: PathExpression, sources: tuple[PathExpression, ...]) -> bool:
    text = f"select {path} from {', '.join(map(str, sources))} limit 1"  # noqa: S608 (paths as they were parsed)
    names: list[str] = connection.execute(text).fetch_arrow().schema.names
    return names != ["Time"]


def _hint(path: PathExpression) -> str:
    text = "" if path.absolute or len(path.nodes) > 1 else f"; a text needs quotes: '{path}'"
    return f"note: no series match {path} in WHERE{text}"
