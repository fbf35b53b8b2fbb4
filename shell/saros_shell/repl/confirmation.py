"""Questions before statements that may delete much data: DELETE and DROP with wildcards, and DROP DATABASE."""

from __future__ import annotations

from contextlib import suppress

import saros
from saros_grammar.syntax.ast import DeactivateTemplate, DeleteData, DeleteDatabases, DeleteTimeseries, DropViews
from saros_grammar.syntax.errors import SqlError


def question_before(connection: saros.Connection, statement: str) -> str | None:
    """Return the question to ask before a statement runs, or None if the statement needs no confirmation.

    A statement that matches no series needs no confirmation.
    """
    patterns = _patterns(statement)
    if not patterns:
        return None
    try:
        series = sum(_series_count(connection, pattern) for pattern in patterns)
    except saros.Error:
        return f"This deletes everything that matches {', '.join(patterns)}. Continue? [y/N] "
    return f"This deletes from {series} series. Continue? [y/N] " if series else None


def _patterns(statement: str) -> list[str]:
    """Return the patterns of series that a statement deletes, if it has wildcards or drops databases."""
    from saros_grammar.parser import parse

    if statement.split(maxsplit=1)[0].upper() not in ("DELETE", "DROP", "DEACTIVATE"):
        return []
    with suppress(SqlError):
        match parse(statement).statement:
            case DeleteDatabases(paths):
                return [f"{path}.**" for path in paths]
            case DeleteData(paths) | DeleteTimeseries(paths) | DropViews(paths):
                return [str(path) for path in paths] if any(path.has_wildcard for path in paths) else []
            case DeactivateTemplate(_, paths):
                return [f"{path}.*" for path in paths] if any(path.has_wildcard for path in paths) else []
    return []


def _series_count(connection: saros.Connection, pattern: str) -> int:
    with connection.execute(f"count timeseries {pattern}") as cursor:
        row = cursor.fetchone()
    assert row is not None
    return int(str(row[0]))
