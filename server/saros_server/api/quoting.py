"""Convert the names, strings and numbers in clients' calls to SQL text.

Each path, name or property that a client sends is parsed, and written to the SQL text in canonical form. So it cannot
inject SQL. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import parse_pattern, quote_node, split_path, unquote_node


def path(text: str) -> str:
    """Return a path without wildcards. Raises UserMistake."""
    return ".".join(split_path(text))


def pattern(text: str) -> str:
    """Return a path that may contain wildcards. Raises UserMistake."""
    return parse_pattern(text).text


def below_root(text: str) -> str:
    """Return a path without wildcards, relative to `root`. Raises UserMistake."""
    return _below(path(text), text)


def series_below_root(text: str) -> str:
    """Return a path of series, which may contain wildcards, relative to `root`. Raises UserMistake."""
    return _below(pattern(text), text)


def quoted_name(text: str) -> str:
    """Return a name as a node of a path; the client may have quoted the name. Raises UserMistake."""
    name = unquote_node(text) if text.startswith("`") and text.endswith("`") and len(text) > 1 else text
    if not name:
        raise UserMistake("a name is empty", code=509)
    return quote_node(name)


def string(text: str) -> str:
    """Return a string literal."""
    return "'" + text.replace("'", "''") + "'"


def properties(pairs: Mapping[str, str]) -> str:
    """Return pairs of strings in the syntax of `TAGS` and `ATTRIBUTES`."""
    return ", ".join(f"{string(key)}={string(value)}" for key, value in pairs.items())


def whole_number(value: int) -> str:
    """Return an integer literal."""
    return str(int(value))


def listed(parts: Iterable[str]) -> str:
    """Return parts of SQL as a comma-separated list. Raises UserMistake if there are none."""
    text = ", ".join(parts)
    if not text:
        raise UserMistake("the call names no paths or series: give at least one", code=301)
    return text


def _below(canonical: str, text: str) -> str:
    below = canonical.removeprefix("root.")
    if below == canonical:
        raise UserMistake(f"{text} is not a legal path: a node after root is missing", code=509)
    return below
