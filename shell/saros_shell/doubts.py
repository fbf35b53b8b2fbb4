"""Paths in the WHERE of a SELECT without an answer that no series has, such as a text without quotes.

WHERE takes it for null, so that no row qualifies, in silence. It is found by asking for it, with the rights of who
asks. One thread.
"""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

import saros
from saros_grammar.ast import Select
from saros_grammar.errors import ParseError
from saros_grammar.expression_tree import PathExpression

#: So many are asked for.
_PATHS_MAX = 8


def is_no_answer(table: pa.Table) -> bool:
    """Whether there are no rows, or one of nulls and zeros, as aggregates of no rows are."""
    return table.num_rows == 0 or (
        table.num_rows == 1 and all(column[0].as_py() in (None, 0) for column in table.columns)
    )


def doubts(connection: saros.Connection, statement: str) -> list[str]:
    """A note for each path in the statement's WHERE that no series has."""
    from saros_engine.analysis.scope import paths_of  # for the few statements that need it
    from saros_grammar.parser import parse

    with suppress(ParseError, saros.Error):
        select = parse(statement).statement
        if isinstance(select, Select) and select.where is not None:
            paths = list(dict.fromkeys(paths_of(select.where)))[:_PATHS_MAX]
            return [_note(path) for path in paths if not _is_there(connection, path, select.from_paths)]
    return []


def _is_there(connection: saros.Connection, path: PathExpression, sources: tuple[PathExpression, ...]) -> bool:
    text = f"select {path} from {', '.join(map(str, sources))} limit 1"  # noqa: S608 (paths as they were parsed)
    names: list[str] = connection.execute(text).fetch_arrow().schema.names
    return names != ["Time"]


def _note(path: PathExpression) -> str:
    text = "" if path.absolute or len(path.nodes) > 1 else f"; a text has quotes: '{path}'"
    return f"note: no series is called {path}, of which WHERE asks{text}"
