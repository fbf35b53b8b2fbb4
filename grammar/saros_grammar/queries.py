"""Checks of texts with which programs read data: the kind of a text (query or condition), and the series in it.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from saros_grammar.parser import parse
from saros_grammar.syntax import ast
from saros_grammar.syntax.errors import ParseError
from saros_grammar.templates import field_names

_LISTS = ast.ListUsers | ast.ListRoles | ast.ListPrivileges | ast.ShowTokens
_QUERIES = ast.Select | ast.Show | ast.Count | ast.Explain | _LISTS


def is_non_query(text: str) -> bool:
    """Return whether the text is a statement that returns no rows or that writes.

    Return False for texts that do not parse and for unsupported statements, because the database refuses them itself.
    """
    try:
        statement = parse(text).statement
    except ParseError:
        return False
    if isinstance(statement, ast.Explain):
        statement = statement.statement
    if isinstance(statement, ast.Select):
        return statement.into is not None
    return not isinstance(statement, _QUERIES | ast.NotSupported)


def check_condition(condition: str) -> None:
    """Raise ParseError, with its place in `condition`, unless the text is one WHERE condition, with or without ()."""
    for opening, closing in (("", ""), ("(", ")")):
        before = f"select s from root.d where {opening}"  # noqa: S608 (is not run)
        try:
            parse(f"{before}{condition}{closing}")
        except ParseError as error:
            raise _moved(error, condition, len(before)) from None


def _moved(error: ParseError, condition: str, before: int) -> ParseError:
    """Return the error with its place in the condition, which is `before` characters into the parsed text.

    If the place is after the condition, it becomes the end of the condition.
    """
    lines = condition.split("\n")
    line = min(error.line, len(lines))
    column = error.column - (before if line == 1 else 0)
    return ParseError(
        error.message,
        text=condition,
        line=line,
        column=min(column, len(lines[line - 1])),
        expected=error.expected,
        code=error.code,
    )


def paths_in_condition(condition: str) -> tuple[ast.PathExpression, ...]:
    """Return each path in a WHERE condition once. Return () if it does not parse: the database reports the error."""
    try:
        statement = parse(f"select s from root.d where ({condition})").statement  # noqa: S608 (is not run)
    except ParseError:
        return ()
    where = statement.where if isinstance(statement, ast.Select) else None
    return tuple(dict.fromkeys(_paths(where)))


def _paths(part: Any) -> Iterator[ast.PathExpression]:
    if isinstance(part, ast.PathExpression):
        yield part
        return
    parts = part if isinstance(part, tuple) else [getattr(part, name) for name in field_names(type(part))]
    for inner in parts:
        yield from _paths(inner)
